/* SPDX-License-Identifier: Apache-2.0 */
#include "train/foreign_musubi.h"

#include "base/int.h"
#include "media/dataset_parts.h"
#include "os/info.h"
#include "train/foreign_musubi_inside.h"
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

/* 0, "" and false are as good as nothing. */
static bool is_nothing(const struct musubi_setting *s)
{
    double v;
    return !s->n || !s->value[0][0] || !strcmp(s->value[0], "false") ||
           (musubi_parse_real(s->value[0], &v) && v == 0 && s->n == 1);
}

static int apply_table(struct musubi_job *j)
{
    CLEANUP(str_release) struct str unused = { 0 };
    for (size_t i = 0; i < n_musubi_options; i++) {
        const struct musubi_option *o = &musubi_options[i];
        const struct musubi_setting *s = &j->set[i];
        if (!s->value)
            continue;
        if (o->use == MUSUBI_REFUSED && !is_nothing(s))
            return musubi_refuse(j, o->name, o->remedy, "%s", o->text);
        if (o->use == MUSUBI_KEY && s->n && s->value[0][0])
            musubi_add(j, o->name, o->text, "%s", s->value[0]);
        if (o->use == MUSUBI_NOTED && !is_nothing(s))
            str_addf(&unused, "%s%s", unused.len ? ", " : "", s->name);
    }
    if (unused.len)
        foreign_note(j->out, j->a, "of no effect here: %s", unused.s);
    return 0;
}

/* ---- the model ---- */

static double boundary_of(const struct musubi_job *j, const char *task)
{
    double given = musubi_real(j, "timestep_boundary", 0);
    return given > 1 ? given / 1000 : given > 0 ? given : !strcmp(task, "i2v-A14B") ? 0.9 : 0.875;
}

/* One expert alone is named by its range of timesteps; otherwise by its file. */
static void choose_expert(struct musubi_job *j, const char *task)
{
    double boundary = 1000 * boundary_of(j, task);
    bool high = musubi_real(j, "min_timestep", 0) >= boundary - 1;
    bool low = musubi_real(j, "max_timestep", 1000) <= boundary + 1;
    if (high != low)
        musubi_add(j, high ? "min_timestep" : "max_timestep", "model.expert", high ? "high" : "low");
    else
        foreign_note(j->out, j->a,
                     "the expert of --dit is trained on its own timesteps only; --min_timestep and "
                     "--max_timestep name other ones");
}

static int make_model(struct musubi_job *j)
{
    const char *task = musubi_text(j, "task"), *dit = musubi_text(j, "dit");
    bool both = musubi_text(j, "dit_high_noise");
    task = task ? task : "t2v-14B";
    if (str_ends(task, "-FC") || !strcmp(task, "flf2v-14B"))
        return musubi_refuse(j, "task", "use t2v-1.3B, t2v-14B, i2v-14B, t2v-A14B or i2v-A14B",
                             "cairn cannot train %s", task);
    if (!dit)
        return musubi_refuse(j, "dit", "--dit FILE names the transformer of Wan", "it is missing");
    bool experts = str_ends(task, "A14B");
    if (both && !experts)
        return musubi_refuse(j, "dit_high_noise", "set --task to t2v-A14B or i2v-A14B, or leave it out",
                             "%s has no high-noise expert", task);
    foreign_add(j->out, j->a, "model.kind", "wan", NULL, NULL);
    musubi_add(j, "task", "model.task", "%s", !strcmp(task, "t2i-14B") ? "t2v-14B" : task);
    musubi_add(j, "dit", "model.path", "%s", dit);
    if (experts && !both)
        choose_expert(j, task);
    if (both)
        musubi_add(j, "dit_high_noise", "lora.experts", "one");
    if (musubi_find(j, "timestep_boundary"))
        musubi_add(j, "timestep_boundary", "model.boundary", "%g", boundary_of(j, task));
    if (musubi_flag(j, "offload_inactive_dit"))
        musubi_add(j, "offload_inactive_dit", "memory.idle", "host");
    if (musubi_flag(j, "fp8_base") || musubi_flag(j, "fp8_scaled"))
        musubi_add(j, musubi_flag(j, "fp8_base") ? "fp8_base" : "fp8_scaled", "model.quantize", "fp8");
    if (musubi_flag(j, "fp8_base") && !musubi_flag(j, "fp8_scaled"))
        foreign_note(j->out, j->a, "weights in fp8 have scales here, as with --fp8_scaled");
    return 0;
}

/* ---- the dataset ---- */

/* musubi-tuner has one batch size for each dataset; here there is one. */
static int make_data(struct musubi_job *j)
{
    const struct musubi_setting *s = musubi_find(j, "dataset_config");
    const char *path = musubi_text(j, "dataset_config");
    struct dataset_sources sources;
    if (!path)
        return musubi_refuse(j, "dataset_config", "--dataset_config FILE.toml describes the training data",
                             "it is missing");
    if (dataset_read_config(&(struct dataset_options){ .config = path }, j->a, &sources, j->err))
        return musubi_wrap(j, "dataset_config", "it takes a dataset file of musubi-tuner (TOML)");
    for (size_t i = 1; i < sources.n; i++)
        if (sources.source[i].block.batch != sources.source[0].block.batch)
            return musubi_refuse(j, "dataset_config",
                                 "cairn has one batch size for all: use the same in every [[datasets]]",
                                 "%s: batch_size is %zu in one dataset and %zu in another", path,
                                 sources.source[0].block.batch, sources.source[i].block.batch);
    foreign_add_list(j->out, j->a, "data.path", &path, 1, s->place, s->name);
    musubi_add(j, "dataset_config", "train.batch", "%zu", sources.source[0].block.batch);
    return 0;
}

/* Items of one batch. */
struct batch_group {
    const struct dataset_block *block;
    struct bucket_size size;
    size_t frames, items;
};

/* Batches of an epoch: datasets and buckets are not mixed. */
static uint64_t count_batches(const struct dataset *d, struct arena *a)
{
    struct batch_group *group = NULL;
    size_t n = 0;
    uint64_t batches = 0;
    for (size_t i = 0; i < dataset_count(d); i++) {
        const struct dataset_item *item = dataset_item(d, i);
        size_t k = 0;
        if (item->problem)
            continue;
        while (k < n && (group[k].block != item->block || group[k].size.width != item->bucket.width ||
                         group[k].size.height != item->bucket.height || group[k].frames != item->n_frames))
            k++;
        if (k == n)
            *ARENA_PUSH(a, group, n) =
                (struct batch_group){ .block = item->block, .size = item->bucket, .frames = item->n_frames };
        group[k].items += item->block->repeats;
    }
    for (size_t k = 0; k < n; k++)
        batches += div_up(group[k].items, group[k].block->batch);
    return batches;
}

/* Steps of an epoch; 0: nothing is counted in epochs. */
static int count_epoch(struct musubi_job *j, int64_t *out)
{
    static const char *const options[] = { "max_train_epochs", "sample_every_n_epochs" };
    CLEANUP(dataset_cleanup) struct dataset *d = NULL;
    const char *first = NULL;
    *out = 0;
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (!first && musubi_find(j, options[i]))
            first = options[i];
    if (!first)
        return 0;
    struct dataset_options o = { .config = musubi_text(j, "dataset_config") };
    if (dataset_open(&d, &o, j->err) || dataset_check(d, j->err)) {
        cairn_wrap(j->err, "--%s needs the number of batches", first);
        return j->err->hint[0] ? -1 : cairn_hint(j->err, "or give the number of steps");
    }
    int64_t accumulate = musubi_int(j, "gradient_accumulation_steps", 1);
    *out = (int64_t)div_up((size_t)count_batches(d, j->a),
                           at_least((size_t)(accumulate > 0 ? accumulate : 1), 1));
    return 0;
}

/* ---- training ---- */

static int need_positive(struct musubi_job *j)
{
    static const char *const options[] = { "max_train_epochs",      "max_train_steps",
                                           "save_every_n_epochs",   "save_every_n_steps",
                                           "sample_every_n_epochs", "sample_every_n_steps",
                                           "save_last_n_epochs",    "save_last_n_steps" };
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        int64_t v = musubi_int(j, options[i], 1);
        if (v < 1 || v > 1000000000)
            return musubi_refuse(j, options[i], MUSUBI_CORRECT, "%lld is not a number from 1 to 1000000000",
                                 (long long)v);
    }
    return 0;
}

static void make_precision(struct musubi_job *j)
{
    const char *own = musubi_text(j, "mixed_precision"), *word = own ? own : j->mixed_precision;
    const char *dtype = str_eq(word, "bf16")   ? "bf16"
                        : str_eq(word, "fp16") ? "f16"
                        : str_eq(word, "no")   ? "f32"
                                               : NULL;
    if (dtype)
        foreign_add(j->out, j->a, "train.dtype", dtype, "--mixed_precision", "--mixed_precision");
}

static void make_times(struct musubi_job *j)
{
    const char *sampling = musubi_text(j, "timestep_sampling"),
               *shift = musubi_text(j, "discrete_flow_shift");
    musubi_add(j, "timestep_sampling", "train.timesteps", "%s", sampling ? sampling : "sigma");
    musubi_add(j, "discrete_flow_shift", "train.shift", "%s", shift ? shift : "1");
    if (shift && (!sampling || !strcmp(sampling, "sigma")))
        foreign_note(j->out, j->a, "--discrete_flow_shift has no effect with --timestep_sampling sigma");
}

static int64_t make_steps(struct musubi_job *j, int64_t epoch)
{
    int64_t epochs = musubi_int(j, "max_train_epochs", 0);
    int64_t steps = epochs ? epochs * epoch : musubi_int(j, "max_train_steps", 1600);
    musubi_add(j, epochs ? "max_train_epochs" : "max_train_steps", "train.steps", "%lld", (long long)steps);
    musubi_add(j, "gradient_checkpointing", "train.recompute",
               musubi_flag(j, "gradient_checkpointing") ? "blocks" : "none");
    if (musubi_flag(j, "gradient_checkpointing_cpu_offload"))
        musubi_add(j, "gradient_checkpointing_cpu_offload", "memory.inputs", "host");
    return steps;
}

/* ---- files and samples ---- */

/* What the user wants to be in the metadata. */
static void make_metadata(struct musubi_job *j)
{
    static const char *const rows[][2] = {
        { "training_comment", "ss_training_comment" }, { "metadata_title", "modelspec.title" },
        { "metadata_author", "modelspec.author" },     { "metadata_description", "modelspec.description" },
        { "metadata_license", "modelspec.license" },   { "metadata_tags", "modelspec.tags" },
        { "metadata_reso", "modelspec.resolution" },   { "metadata_arch", "modelspec.architecture" },
    };
    const char *list[ARRAY_LEN(rows)];
    const struct musubi_setting *last = NULL;
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *text = musubi_text(j, rows[i][0]);
        if (!text)
            continue;
        list[n++] = arena_printf(j->a, "%s=%s", rows[i][1], text);
        last = musubi_find(j, rows[i][0]);
    }
    if (n)
        foreign_add_list(j->out, j->a, "save.meta", list, n, last->place, last->name);
}

static void make_saves(struct musubi_job *j)
{
    static const char *const dtypes[][2] = {
        { "float", "f32" }, { "fp32", "f32" }, { "fp16", "f16" }, { "bf16", "bf16" }
    };
    const char *precision = musubi_text(j, "save_precision"), *dtype = "f32";
    int64_t every = musubi_int(j, "save_every_n_steps", 0), epochs = musubi_int(j, "save_every_n_epochs", 0);
    int64_t last = musubi_int(j, "save_last_n_steps", 0), keep = musubi_int(j, "save_last_n_epochs", 0);
    for (size_t i = 0; precision && i < ARRAY_LEN(dtypes); i++)
        dtype = strcmp(precision, dtypes[i][0]) ? dtype : dtypes[i][1];
    musubi_add(j, "save_precision", "save.dtype", "%s", dtype);
    foreign_add(j->out, j->a, "save.format", "musubi", NULL, NULL);
    foreign_add(j->out, j->a, "save.files", "musubi", NULL, NULL);
    if (epochs)
        musubi_add(j, "save_every_n_epochs", "save.epochs", "%lld", (long long)epochs);
    if (every || epochs)
        musubi_add(j, every ? "save_every_n_steps" : "save_every_n_epochs", "checkpoint.every", "%lld",
                   (long long)every);
    if (keep)
        musubi_add(j, "save_last_n_epochs", "checkpoint.keep", "%lld", (long long)keep);
    else if (last && every)
        musubi_add(j, "save_last_n_steps", "checkpoint.keep", "%lld",
                   (long long)((last + every - 1) / every));
}

static int make_output(struct musubi_job *j)
{
    const char *dir = musubi_text(j, "output_dir"), *name = musubi_text(j, "output_name");
    if (!dir)
        return musubi_refuse(j, "output_dir", "--output_dir FOLDER says where the LoRA goes",
                             "it is missing");
    musubi_add(j, "output_dir", "run.dir", "%s%s%s", dir, str_ends(dir, "/") ? "" : "/",
               name ? name : "last");
    musubi_add(j, "output_name", "run.name", "%s", name ? name : "last");
    musubi_add(j, "output_name", "save.name", "%s", name ? name : "last");
    return 0;
}

/* Prompts say their size; one that does not is small, as in musubi-tuner. */
static int make_samples(struct musubi_job *j, int64_t epoch)
{
    const char *file = musubi_text(j, "sample_prompts");
    int64_t steps = musubi_int(j, "sample_every_n_steps", 0),
            epochs = musubi_int(j, "sample_every_n_epochs", 0);
    int64_t every = epochs ? epochs * epoch : steps;
    bool first = musubi_flag(j, "sample_at_first");
    if (!file && (every || first))
        return musubi_refuse(
            j, every ? epochs ? "sample_every_n_epochs" : "sample_every_n_steps" : "sample_at_first",
            "name a file with a prompt on each line, or leave it out", "it needs --sample_prompts FILE");
    if (!file)
        return 0;
    if (!os_is_file(file))
        return musubi_refuse(j, "sample_prompts",
                             "it takes a file with a prompt on each line; or leave it out",
                             "%s does not exist, or is no file", file);
    musubi_add(j, "sample_prompts", "sample.file", "%s", file);
    foreign_add(j->out, j->a, "sample.size", "256x256x1", NULL, NULL);
    foreign_note(j->out, j->a, "samples of prompts without --fs have the shift of the model, not 14.5");
    if (every)
        musubi_add(j, epochs ? "sample_every_n_epochs" : "sample_every_n_steps", "sample.every", "%lld",
                   (long long)every);
    musubi_add(j, "sample_at_first", "sample.first", first ? "true" : "false");
    return 0;
}

/* ---- the job ---- */

static int make_keys(struct musubi_job *j)
{
    int64_t epoch, steps;
    if (need_positive(j) || make_model(j) || apply_table(j) || make_data(j) || musubi_make_lora(j) ||
        make_output(j) || count_epoch(j, &epoch))
        return -1;
    steps = make_steps(j, epoch);
    make_precision(j);
    make_times(j);
    make_saves(j);
    make_metadata(j);
    return musubi_make_optimizer(j) || musubi_make_schedule(j, steps) || make_samples(j, epoch) ? -1 : 0;
}

static struct musubi_job job_of(struct arena *a, struct foreign_job *out, struct cairn_error *err)
{
    *out = (struct foreign_job){ .program = "musubi-tuner" };
    return (struct musubi_job){
        .a = a, .set = ARENA_NEW(a, struct musubi_setting, n_musubi_options + 1), .out = out, .err = err
    };
}

int foreign_musubi_command(const char *const *words, size_t n, struct arena *a, struct foreign_job *out,
                           struct cairn_error *err)
{
    struct musubi_job j = job_of(a, out, err);
    if (musubi_read_command(&j, words, n))
        return -1;
    const char *file = musubi_text(&j, "config_file");
    return (file && musubi_read_file(&j, file)) || make_keys(&j) ? -1 : 0;
}

int foreign_musubi_read(const char *path, struct arena *a, struct foreign_job *out, struct cairn_error *err)
{
    struct musubi_job j = job_of(a, out, err);
    out->file = arena_strdup(a, path);
    return musubi_read_file(&j, path) || make_keys(&j) ? -1 : 0;
}
