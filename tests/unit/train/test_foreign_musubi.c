/* SPDX-License-Identifier: Apache-2.0 */
#include "train/foreign_musubi.h"

#include "media/dataset_parts.h"
#include "train/foreign_musubi_inside.h"
#include "train/task_wan.h"
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct arena arena;
static struct cairn_error err;
static struct foreign_job job;
static struct job_config config;

static void put(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    fputs(text, f);
    fclose(f);
}

/* Words that are separated by spaces. */
static int convert(const char *command)
{
    const char *words[200];
    size_t n = 0;
    err = (struct cairn_error){ 0 };
    for (char *p = strtok(arena_strdup(&arena, command), " "); p; p = strtok(NULL, " "))
        words[n++] = p;
    return foreign_musubi_command(words, n, &arena, &job, &err);
}

/* Added to a small job that is complete. */
static int with(const char *options)
{
    return convert(arena_printf(&arena,
                                "wan_train_network.py --dit a.safetensors --dataset_config d.toml "
                                "--output_dir out --output_name x %s",
                                options));
}

static int apply(const char *options)
{
    config_init(&config, &arena);
    return with(options) || foreign_apply(&config, &job, &err) || config_check(&config, &err);
}

static void check_key(const char *options, const char *key, const char *want)
{
    if (with(options))
        CHECK_FAIL_("%s: %s", options, err.msg);
    CHECK_STR(foreign_value(&job, key), want);
    if (apply(options))
        CHECK_FAIL_("%s: %s", options, err.msg);
}

static void options_become_keys(void)
{
    static const char *const rows[][3] = {
        { "", "model.task", "t2v-14B" },
        { "", "train.timesteps", "sigma" },
        { "", "train.lr", "2e-6" },
        { "", "lora.rank", "4" },
        { "", "lora.alpha", "1" },
        { "", "train.warmup", "0" },
        { "", "train.steps", "1600" },
        { "", "train.recompute", "none" },
        { "", "save.dtype", "f32" },
        { "", "train.batch", "2" },
        { "", "run.dir", "out/x" },
        { "--task t2v-1.3B", "model.task", "t2v-1.3B" },
        { "--task t2i-14B", "model.task", "t2v-14B" },
        { "--vae v --t5 t", "model.vae_path", "v" },
        { "--vae v --t5 t", "model.text_encoder_path", "t" },
        { "--fp8_base", "model.quantize", "fp8" },
        { "--task t2v-A14B --dit_high_noise h", "lora.experts", "one" },
        { "--task t2v-A14B --dit_high_noise h --timestep_boundary 900", "model.boundary", "0.9" },
        { "--task t2v-A14B --dit_high_noise h --offload_inactive_dit", "memory.idle", "host" },
        { "--task t2v-A14B --min_timestep 875", "model.expert", "high" },
        { "--task i2v-A14B --max_timestep 900", "model.expert", "low" },
        { "--blocks_to_swap 20", "memory.blocks", "20" },
        { "--gradient_checkpointing", "train.recompute", "blocks" },
        { "--gradient_checkpointing --gradient_checkpointing_cpu_offload", "memory.inputs", "host" },
        { "--gradient_accumulation_steps 4", "train.accumulate", "4" },
        { "--mixed_precision fp16", "train.dtype", "f16" },
        { "--max_grad_norm 0", "train.clip", "0" },
        { "--timestep_sampling shift --discrete_flow_shift 3.0", "train.shift", "3.0" },
        { "--timestep_sampling logsnr --logit_mean -1.5", "train.logit_mean", "-1.5" },
        { "--weighting_scheme cosmap", "train.weighting", "cosmap" },
        { "--preserve_distribution_shape", "train.preserve_distribution_shape", "true" },
        { "--num_timestep_buckets 8", "train.timestep_buckets", "8" },
        { "--network_dim 32 --network_alpha 16", "lora.alpha", "16" },
        { "--network_weights w.safetensors --dim_from_weights", "lora.rank", "0" },
        { "--network_args loraplus_lr_ratio=4", "lora.plus", "4" },
        { "--network_args exclude_patterns=['.*ffn.*'] include_patterns=[r'.*ffn\\.2']", "lora.targets",
          "[\"blocks.*.self_attn.q\", \"blocks.*.self_attn.k\", \"blocks.*.self_attn.v\", "
          "\"blocks.*.self_attn.o\", \"blocks.*.cross_attn.q\", \"blocks.*.cross_attn.k\", "
          "\"blocks.*.cross_attn.v\", \"blocks.*.cross_attn.o\", \"blocks.*.ffn.2\"]" },
        { "--network_args exclude_patterns=['ffn.0']", "lora.targets", NULL }, /* not a whole name */
        { "--network_args exclude_patterns=['.*attn.*','.*ffn.0','blocks.([1-9]|.[0-9]).*']", "lora.targets",
          "[\"blocks.0.ffn.2\"]" },
        { "--optimizer_type adamw8bit", "train.optimizer", "adamw8" },
        { "--optimizer_type bitsandbytes.optim.PagedAdamW8bit", "train.optimizer", "adamw8" },
        { "--optimizer_type prodigyopt.Prodigy", "train.weight_decay", "0" },
        { "--optimizer_type lion_pytorch.Lion --optimizer_args weight_decay=0.2", "train.weight_decay",
          "0.2" },
        { "--optimizer_args betas=0.8,0.95", "train.beta2", "0.95" },
        { "--optimizer_args betas=(0.8,0.95)", "train.beta1", "0.8" },
        { "--optimizer_type Adafactor", "train.relative_step", "true" },
        { "--optimizer_type adafactor --optimizer_args relative_step=False scale_parameter=False warmup_init=False",
          "train.relative_step", "false" },
        { "--lr_scheduler constant_with_warmup --lr_warmup_steps 50", "train.warmup", "50" },
        { "--lr_scheduler constant --lr_warmup_steps 50", "train.warmup", "0" },
        { "--lr_scheduler cosine --lr_warmup_steps 0.1 --max_train_steps 500", "train.warmup", "50" },
        { "--lr_scheduler linear --lr_warmup_steps 10%", "train.warmup", "160" },
        { "--lr_scheduler linear", "train.min_lr", "0" },
        { "--lr_scheduler cosine_with_restarts --lr_scheduler_num_cycles 3", "train.cycles", "3" },
        { "--lr_scheduler cosine_with_min_lr --lr_scheduler_min_lr_ratio 0.2", "train.min_lr", "0.2" },
        { "--lr_scheduler polynomial --lr_scheduler_power 2 --learning_rate 1e-4", "train.min_lr", "0.001" },
        { "--lr_scheduler rex", "train.min_lr", "0.01" },
        { "--save_precision bf16", "save.dtype", "bf16" },
        { "--save_every_n_steps 100 --save_last_n_steps 300", "checkpoint.keep", "3" },
        { "--save_every_n_epochs 2 --save_last_n_epochs 4", "checkpoint.keep", "4" },
        { "--save_every_n_epochs 2", "save.epochs", "2" },
        { "--training_comment hello", "save.meta", "[\"ss_training_comment=hello\"]" },
        { "--vae v --t5 t --sample_prompts p.txt --sample_every_n_steps 20", "sample.every", "20" },
        { "--vae v --t5 t --sample_prompts p.txt --sample_every_n_steps 20", "sample.first", "false" },
        { "--vae v --t5 t --sample_prompts p.txt --sample_every_n_steps 20 --sample_at_first", "sample.first",
          "true" },
        { "--seed 7 --seed 8", "train.seed", "8" },
        { "--seed=9", "train.seed", "9" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_key(rows[i][0], rows[i][1], rows[i][2]);
}

static void launchers(void)
{
    static const char options[] = "--dit a --dataset_config d.toml --output_dir out";
    static const char *const starts[] = {
        "accelerate launch --num_cpu_threads_per_process 1 --mixed_precision bf16 src/musubi_tuner/wan_train_network.py",
        "accelerate launch --num_processes 1 --mixed_precision=bf16 wan_train_network.py",
        "A=1 B_C=x uv run --extra cu128 accelerate launch --mixed_precision bf16 src/musubi_tuner/wan_train_network.py",
        "python -m accelerate.commands.launch --mixed_precision bf16 -m musubi_tuner.wan_train_network",
    };
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        if (convert(arena_printf(&arena, "%s %s", starts[i], options)))
            CHECK_FAIL_("%s: %s", starts[i], err.msg);
        CHECK_STR(foreign_value(&job, "train.dtype"), "bf16");
    }
    CHECK_INT(convert(options), 0);
    CHECK_STR(foreign_value(&job, "train.dtype"), NULL);
}

static void check_refused(const char *command, const char *named, const char *remedy)
{
    if (!convert(command) || !strstr(err.msg, named) || (remedy && !strstr(err.hint, remedy)))
        CHECK_FAIL_("%s: \"%s\" (%s), want %s and %s", command, err.msg, err.hint, named, remedy);
}

static void wrong_commands(void)
{
    check_refused("accelerate launch --multi-gpu wan_train_network.py", "--multi-gpu", "one process");
    check_refused("accelerate launch --num-processes 2 wan_train_network.py", "--num_processes", NULL);
    check_refused("accelerate launch --multi_gpu wan_train_network.py", "--multi_gpu", "one process");
    check_refused("accelerate launch --num_processes 2 wan_train_network.py", "--num_processes",
                  "accumulation");
    check_refused("accelerate launch", "wan_train_network.py", "--from-musubi");
    check_refused("python hv_train_network.py", "hv_train_network", "cairn run");
    check_refused("python wan_cache_latents.py", "wan_cache_latents", "cairn cache");
    check_refused("wan_train_network.py --dataset_config d.toml", "--dit", "--dit");
    check_refused("wan_train_network.py --dit a", "--dataset_config", "toml");
    check_refused("wan_train_network.py --dit a --dataset_config no.toml", "no.toml", NULL);
    check_refused("wan_train_network.py --dit a --dataset_config mixed.toml --output_dir o", "batch_size",
                  "same");
    check_refused("wan_train_network.py --dit a --dataset_config d.toml", "--output_dir", "--output_dir");
    check_refused("wan_train_network.py --config_file none --dit a", "none.toml", NULL);
    check_refused("wan_train_network.py stray", "stray", "remove");
}

static void wrong_options(void)
{
    static const char *const rows[][3] = {
        { "--foo_bar 1", "--foo_bar", "remove" },
        { "--learningrate 1", "--learningrate", "--learning_rate" },
        { "--max_train 5", "--max_train_epochs", "whole" },
        { "--sdpa=1", "--sdpa", NULL },
        { "--seed", "--seed", NULL },
        { "--task t2v-14", "--task", "t2v-14B" },
        { "--task t2v-14B-FC", "--task", "t2v-A14B" },
        { "--dit_high_noise h", "--dit_high_noise", NULL },
        { "--optimizer_type CAME", "--optimizer_type", "AdamW" },
        { "--optimizer_args wd=1", "--optimizer_args", NULL },
        { "--optimizer_args weight_decay=much", "weight_decay", NULL },
        { "--optimizer_args betas=1", "betas", NULL },
        { "--optimizer_args amsgrad=True", "amsgrad", "False" },
        { "--lr_scheduler cosin", "--lr_scheduler", "cosine" },
        { "--lr_scheduler inverse_sqrt", "inverse_sqrt", "polynomial" },
        { "--network_module networks.loha", "loha", "lora_wan" },
        { "--network_args rank_dropout=0.1", "rank_dropout", "remove" },
        { "--network_args use_dora=True", "use_dora", "DoRA" },
        { "--network_args algo=lokr", "algo=lokr", "LoKr" },
        { "--network_module networks.lokr", "networks.lokr", "LoKr" },
        { "--network_args odd=1", "odd", "exclude_patterns" },
        { "--network_args exclude_patterns=['.*']", "exclude_patterns", "whole names" },
        { "--network_args exclude_patterns=x", "exclude_patterns", NULL },
        { "--network_args exclude_patterns=['(?!a)b']", "exclude_patterns", "lookahead" },
        { "--dim_from_weights", "--dim_from_weights", NULL },
        { "--sample_every_n_steps 5", "--sample_every_n_steps", NULL },
        { "--sample_prompts gone.txt", "gone.txt", NULL },
        { "--max_train_steps 0", "--max_train_steps", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!with(rows[i][0]) || !strstr(err.msg, rows[i][1]) || !err.hint[0] ||
            (rows[i][2] && !strstr(err.hint, rows[i][2])))
            CHECK_FAIL_("%s: \"%s\" (%s)", rows[i][0], err.msg, err.hint);
    }
}

/* Each option with a value of another type, and without one.  On a command line everything is a text. */
static void wrong_types(void)
{
    for (size_t i = 0; i < n_musubi_options; i++) {
        const struct musubi_option *o = &musubi_options[i];
        const char *dashes = arena_printf(&arena, "--%s", o->name);
        bool is_text = o->type == MUSUBI_TEXT || o->type == MUSUBI_LIST, is_flag = o->type == MUSUBI_FLAG;
        if (!is_text && (!with(arena_printf(&arena, is_flag ? "%s=x" : "%s x1y", dashes)) ||
                         !strstr(err.msg, dashes) || !err.hint[0]))
            CHECK_FAIL_("%s: \"%s\" (%s)", o->name, err.msg, err.hint);
        if (!is_flag && o->type != MUSUBI_LIST &&
            (!with(arena_printf(&arena, "%s", dashes)) || !strstr(err.msg, dashes) || !err.hint[0]))
            CHECK_FAIL_("%s without a value: \"%s\" (%s)", o->name, err.msg, err.hint);
    }
}

/* One after the other in a file: line 2 has the error. */
static void check_file(const char *options, const char *name, const char *value)
{
    put("wrong.toml", arena_printf(&arena, "[any]\n%s = %s\n", name, value));
    if (!with(options) || !strstr(err.msg, "wrong.toml:2:") || !strstr(err.msg, name) || !err.hint[0])
        CHECK_FAIL_("%s = %s: \"%s\" (%s)", name, value, err.msg, err.hint);
}

static void wrong_types_in_a_file(void)
{
    static const char *const wrong[][5] = {
        [MUSUBI_FLAG] = { "\"true\"", "1", "[true]", "\"x\"" },
        [MUSUBI_TEXT] = { "5", "true", "[\"a\"]", "1.5" },
        [MUSUBI_INT] = { "\"5\"", "1.5", "true", "[5]" },
        [MUSUBI_REAL] = { "\"0.5\"", "true", "[0.5]", "\"much\"" },
        [MUSUBI_SHARE] = { "\"much\"", "-1", "true", "[5]" },
        [MUSUBI_WORD] = { "\"none of them\"", "5", "[\"a\"]", "true" },
        [MUSUBI_LIST] = { "5", "[5]", "true", "[[\"a\"]]" },
    };
    for (size_t i = 0; i < n_musubi_options; i++)
        for (size_t v = 0; v < ARRAY_LEN(wrong[0]) && wrong[musubi_options[i].type][v]; v++)
            if (strcmp(musubi_options[i].name, "config_file")) /* the file is named by it */
                check_file("--config_file wrong", musubi_options[i].name, wrong[musubi_options[i].type][v]);
    check_file("--config_file wrong", "qqqq", "5");
}

/* The keys of a dataset file, in each of the maps that may have them. */
static void wrong_types_in_a_dataset(void)
{
    static const char *const wrong[][5] = {
        [SETTING_TEXT] = { "5", "true", "[\"a\"]" },
        [SETTING_COUNT] = { "\"5\"", "0", "1.5", "true", "[5]" },
        [SETTING_REAL] = { "\"16\"", "true", "[16.0]", "\"much\"" },
        [SETTING_BOOL] = { "\"true\"", "1", "[true]" },
        [SETTING_SIZE] = { "\"5\"", "[1]", "[1, 2, 3]", "true", "[\"5\", \"6\"]" },
        [SETTING_COUNTS] = { "\"5\"", "[\"5\"]", "[]", "[0]", "true" },
        [SETTING_REFUSED] = { "5", "\"a\"", "true", "[1]" },
    };
    static const struct {
        unsigned where;
        const char *before, *after;
    } maps[] = {
        { DATASET_MUSUBI_GENERAL, "[general]\n", "[[datasets]]\nimage_directory = \"i\"\n" },
        { DATASET_MUSUBI_IMAGE, "[[datasets]]\n", "image_directory = \"i\"\n" },
        { DATASET_MUSUBI_VIDEO, "[[datasets]]\n", "video_directory = \"i\"\n" },
    };
    for (size_t i = 0; i < n_dataset_musubi_keys; i++)
        for (size_t m = 0; m < ARRAY_LEN(maps); m++)
            for (size_t v = 0; v < ARRAY_LEN(wrong[0]); v++) {
                const struct setting *row = &dataset_musubi_keys[i];
                const char *value = wrong[row->type][v], *rest = maps[m].after;
                if (!(row->where & maps[m].where) || !value)
                    continue;
                if (!strncmp(rest, row->name, strlen(row->name))) /* no key twice */
                    rest = "";
                put("wrong.toml",
                    arena_printf(&arena, "%s%s = %s\n%s", maps[m].before, row->name, value, rest));
                if (!with("--dataset_config wrong.toml") || !strstr(err.msg, "wrong.toml:2:") ||
                    !strstr(err.msg, row->name) || !err.hint[0])
                    CHECK_FAIL_("%s%s = %s: \"%s\" (%s)", maps[m].before, row->name, value, err.msg,
                                err.hint);
            }
}

static void misspelt_keys_of_a_dataset(void)
{
    static const char *const rows[][3] = {
        { "[general]\nbatchsize = 2\n[[datasets]]\nimage_directory = \"i\"\n", "wrong.toml:2:1",
          "batch_size" },
        { "[[datasets]]\nvido_directory = \"i\"\n", "wrong.toml:2:1", "video_directory" },
        { "[[datasets]]\nvideo_directory = \"i\"\nimage_directory = \"i\"\n", "wrong.toml:3:1", "leave" },
        { "[datasets]\nvideo_directory = \"i\"\n", "[[datasets]]", "two brackets" },
        { "[[datasets]]\nresolution = 64\n", "video_directory", "video_directory" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put("wrong.toml", rows[i][0]);
        if (!with("--dataset_config wrong.toml") || !strstr(err.msg, rows[i][1]) ||
            !strstr(err.hint, rows[i][2]))
            CHECK_FAIL_("%s: \"%s\" (%s)", rows[i][0], err.msg, err.hint);
    }
}

static void what_is_refused_names_a_remedy(void)
{
    for (size_t i = 0; i < n_musubi_options; i++) {
        const struct musubi_option *o = &musubi_options[i];
        if (o->use != MUSUBI_REFUSED)
            continue;
        if (!with(arena_printf(&arena, "--%s %s", o->name, o->type == MUSUBI_FLAG ? "" : "1")) ||
            !strstr(err.msg, o->name) || !err.hint[0])
            CHECK_FAIL_("%s: \"%s\" (%s)", o->name, err.msg, err.hint);
    }
}

static void the_file_and_the_command_line(void)
{
    put("c.toml", "dit = \"b\"\nlearning_rate = 1e-4\n[x]\nsdpa = true\nfp8_base = false\n"
                  "optimizer_args = [\"weight_decay=0.3\"]\n[y]\nseed = 5\nnetwork_dim = 16\n");
    CHECK_INT(
        convert("wan_train_network.py --config_file c.toml --dataset_config d.toml --output_dir o --seed 6"),
        0);
    CHECK_STR(foreign_value(&job, "model.path"), "b");
    CHECK_STR(foreign_value(&job, "train.lr"), "1e-4");
    CHECK_STR(foreign_value(&job, "train.seed"), "6");
    CHECK_STR(foreign_value(&job, "train.weight_decay"), "0.3");
    CHECK_STR(foreign_value(&job, "model.quantize"), NULL);
    put("u.toml", "dit = \"b\"\nlearningrate = 1\n");
    check_refused("wan_train_network.py --config_file u", "u.toml:2:1", "learning_rate");
    put("r.toml", "dit = \"b\"\noutput_dir = \"o\"\ndataset_config = \"d.toml\"\nnetwork_dim = -4\n");
    config_init(&config, &arena);
    CHECK_INT(foreign_musubi_read("r.toml", &arena, &job, &err), 0);
    CHECK(foreign_apply(&config, &job, &err) && strstr(err.msg, "r.toml:4:1"));
}

int main(void)
{
    char folder[] = "/tmp/cairn-musubi-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    put("d.toml", "[general]\nbatch_size = 2\n[[datasets]]\nimage_directory = \"i\"\n");
    put("p.txt", "a cat --w 64 --h 64\n");
    put("mixed.toml",
        "[[datasets]]\nimage_directory = \"i\"\n[[datasets]]\nimage_directory = \"k\"\nbatch_size = 3\n");
    RUN(options_become_keys);
    RUN(launchers);
    RUN(wrong_commands);
    RUN(wrong_options);
    RUN(wrong_types);
    RUN(wrong_types_in_a_file);
    RUN(wrong_types_in_a_dataset);
    RUN(misspelt_keys_of_a_dataset);
    RUN(what_is_refused_names_a_remedy);
    RUN(the_file_and_the_command_line);
    static const char *const files[] = { "d.toml", "mixed.toml", "p.txt", "wrong.toml",
                                         "c.toml", "u.toml",     "r.toml" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        unlink(files[i]);
    rmdir(folder);
    arena_release(&arena);
    return check_done();
}
