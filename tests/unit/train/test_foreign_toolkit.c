/* SPDX-License-Identifier: Apache-2.0
 * Jobs of ai-toolkit: each key of the table with a right and a wrong value, and the jobs of tests/data/toolkit. */
#include "train/foreign_toolkit.h"

#include "base/file.h"
#include "media/dataset_parts.h"
#include "train/foreign_toolkit_keys.h"
#include "train/task_wan.h"
#include "check.h"
#include <stdlib.h>
#include <sys/stat.h>

static struct arena arena;
static struct cairn_error err;

/* ---- jobs by their keys ---- */

struct pair {
    const char *key, *value;
};

static const struct pair base[] = {
    { "type", "sd_trainer" },
    { "datasets", "[{folder_path: media, resolution: [512], num_frames: 33}]" },
    { "network.type", "lora" },
    { "network.linear", "16" },
    { "train.steps", "100" },
    { "train.lr", "1e-4" },
    { "model.name_or_path", "Nobody/No-Such-Model" },
    { "model.arch", "wan22_14b" },
};

/* The keys below a prefix, as nested maps. */
static void add_level(struct str *out, const struct pair *p, size_t n, const char *prefix, int indent)
{
    size_t len = strlen(prefix);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(p[i].key, prefix, len) != 0)
            continue;
        const char *rest = p[i].key + len, *dot = strchr(rest, '.');
        if (!dot) {
            str_addf(out, "%*s%s: %s\n", indent, "", rest, p[i].value);
            continue;
        }
        const char *below = arena_strndup(&arena, p[i].key, (size_t)(dot + 1 - p[i].key));
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || str_starts(p[k].key, below);
        if (seen)
            continue;
        str_addf(out, "%*s%.*s:\n", indent, "", (int)(dot - rest), rest);
        add_level(out, p, n, below, indent + 2);
    }
}

/* The base with some keys changed, added, or left out where the value is NULL. */
static const char *job_text(const struct pair *changes, size_t n_changes)
{
    struct pair all[64];
    size_t n = 0;
    struct str out = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(base); i++) {
        bool changed = false;
        for (size_t k = 0; k < n_changes; k++)
            changed = changed || !strcmp(base[i].key, changes[k].key) ||
                      (str_starts(base[i].key, changes[k].key) && base[i].key[strlen(changes[k].key)] == '.');
        if (!changed)
            all[n++] = base[i];
    }
    for (size_t k = 0; k < n_changes; k++)
        if (changes[k].value)
            all[n++] = changes[k];
    str_add(&out, "job: extension\nconfig:\n  name: small\n  process:\n    -\n");
    add_level(&out, all, n, "", 6);
    const char *text = arena_strdup(&arena, out.s);
    str_release(&out);
    return text;
}

static int read_text(const char *text, struct foreign_job *j)
{
    struct yaml_node *root;
    err = (struct cairn_error){ 0 };
    if (yaml_parse("job.yaml", text, strlen(text), &arena, &root, &err))
        return -1;
    CHECK(foreign_is_toolkit(root));
    return foreign_toolkit("job.yaml", root, &arena, j, &err);
}

static int read_with(const char *key, const char *value, struct foreign_job *j)
{
    struct pair change = { key, value };
    return read_text(job_text(&change, 1), j);
}

static const char *ours(const char *key, const char *value, const char *wanted)
{
    struct foreign_job j;
    if (read_with(key, value, &j))
        return err.msg;
    const char *found = foreign_value(&j, wanted);
    return found ? found : "not set";
}

/* ---- the table ---- */

/* A key of a sample is tried in a list of one. */
static const struct pair *placed(const char *key, const char *value)
{
    static const char samples[] = "sample.samples[].";
    struct pair *p = ARENA_NEW(&arena, struct pair, 1);
    bool in_sample = str_starts(key, samples);
    p->key = in_sample ? "sample.samples" : key;
    p->value = in_sample ? arena_printf(&arena, "[{%s: %s}]", key + strlen(samples), value) : value;
    return p;
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

/* The error names the file, a line, the key, and what to do. */
static bool is_complete(const char *key)
{
    int line = 0, column = 0;
    return err.code == CAIRN_EUSAGE && sscanf(err.msg, "job.yaml:%d:%d: ", &line, &column) == 2 && line > 4 &&
           strstr(err.msg, last_part(key)) && err.hint[0];
}

/* Values of every other type. */
static const char *const wrong[][5] = {
    [TOOLKIT_TEXT] = { "{a: 1}", "[a]", "7", "true" },
    [TOOLKIT_TEXTS] = { "7", "a", "{a: 1}", "[[a]]" },
    [TOOLKIT_COUNT] = { "0.5", "0", "many", "\"3\"", "[3]" },
    [TOOLKIT_INDEX] = { "-3", "0.5", "many", "true", "{a: 1}" },
    [TOOLKIT_REAL] = { "much", "true", "\"0.5\"", "[1]", "{a: 1}" },
    [TOOLKIT_BOOL] = { "may", "7", "\"true\"", "[true]" },
    [TOOLKIT_MAP] = { "7", "a", "[a]" },
    [TOOLKIT_LIST] = { "7", "a", "{a: 1}" },
    [TOOLKIT_ANY] = { NULL },
};

static void check_wrong(const char *key, const struct pair *change)
{
    struct foreign_job j;
    if (!read_text(job_text(change, 1), &j) || !is_complete(key))
        CHECK_FAIL_("%s: %s is taken, or not named: %s (%s)", key, change->value, err.msg, err.hint);
}

static void a_wrong_type_names_line_key_and_remedy(void)
{
    for (size_t i = 0; i < n_toolkit_keys; i++)
        for (size_t v = 0; v < ARRAY_LEN(wrong[0]) && wrong[toolkit_keys[i].type][v]; v++)
            check_wrong(toolkit_keys[i].name, placed(toolkit_keys[i].name, wrong[toolkit_keys[i].type][v]));
}

/* The keys of a dataset have a table of their own. */
static void a_wrong_type_in_a_dataset_does_too(void)
{
    static const char *const values[][4] = {
        [SETTING_TEXT] = { "{a: 1}", "[a]", "7", "true" },
        [SETTING_COUNT] = { "0", "0.5", "many", "\"3\"" },
        [SETTING_REAL] = { "much", "true", "\"0.5\"", "[1]" },
        [SETTING_BOOL] = { "may", "7", "\"true\"", "[true]" },
        [SETTING_SIZE] = { "wide", "[1]", "[1, 2, 3]", "true" },
        [SETTING_COUNTS] = { "many", "[a]", "[]", "0.5" },
        [SETTING_INDEX] = { "-3", "0.5", "many", "true" },
        [SETTING_LIST] = { "7", "a", "{a: 1}" },
        [SETTING_ANY] = { NULL },
        [SETTING_REFUSED] = { "7", "a", "[a]", "{a: 1}" },
    };
    for (size_t i = 0; i < n_dataset_toolkit_keys; i++) {
        const struct setting *row = &dataset_toolkit_keys[i];
        const char *more = strcmp(row->name, "folder_path") ? "folder_path: media, " : "";
        for (size_t v = 0; v < ARRAY_LEN(values[0]) && values[row->type][v]; v++)
            check_wrong(row->name,
                        &(struct pair){ "datasets", arena_printf(&arena, "[{%s%s: %s}]", more, row->name,
                                                                 values[row->type][v]) });
    }
}

static void an_unknown_key_of_any_map_does_too(void)
{
    for (size_t i = 0; i < n_toolkit_keys; i++)
        if (toolkit_keys[i].type == TOOLKIT_MAP) {
            const char *key = arena_printf(&arena, "%s.qqqq", toolkit_keys[i].name);
            check_wrong(key, &(struct pair){ key, "7" });
        }
    check_wrong("qqqq", &(struct pair){ "qqqq", "7" });
    check_wrong("qqqq", &(struct pair){ "sample.samples", "[{qqqq: 7}]" });
    check_wrong("qqqq", &(struct pair){ "datasets", "[{folder_path: media, qqqq: 7}]" });
}

static const char *const right[] = {
    [TOOLKIT_TEXT] = "something", [TOOLKIT_TEXTS] = "[attn1]", [TOOLKIT_COUNT] = "3",
    [TOOLKIT_INDEX] = "3",        [TOOLKIT_REAL] = "0.25",     [TOOLKIT_BOOL] = "true",
    [TOOLKIT_MAP] = "{}",         [TOOLKIT_LIST] = "[]",       [TOOLKIT_ANY] = "something",
};

static bool notes_have(const struct foreign_job *j, const char *text)
{
    for (size_t i = 0; i < j->n_notes; i++)
        if (strstr(j->notes[i], text))
            return true;
    return false;
}

/* Every key is honoured, noted or refused with its line. */
static bool is_treated(const struct toolkit_key *k)
{
    struct foreign_job j;
    bool off = k->harmless && !strcmp(k->harmless, "true");
    const char *value = off ? "false" : right[k->type];
    int failed = read_text(job_text(placed(k->name, value), 1), &j);
    if (k->use == TOOLKIT_REFUSED)
        return failed && is_complete(k->name);
    if (failed)
        return k->use == TOOLKIT_READ && !k->to && err.code == CAIRN_EUSAGE && err.hint[0];
    return k->use != TOOLKIT_IGNORED || notes_have(&j, k->name);
}

static void every_key_is_honoured_noted_or_refused(void)
{
    for (size_t i = 0; i < n_toolkit_keys; i++) {
        bool treated = is_treated(&toolkit_keys[i]);
        CHECK(treated);
        if (!treated)
            printf("# %s: %s\n", toolkit_keys[i].name, err.msg);
    }
}

static void harmless_values_are_accepted(void)
{
    for (size_t i = 0; i < n_toolkit_keys; i++) {
        const struct toolkit_key *k = &toolkit_keys[i];
        struct foreign_job j;
        if (k->use != TOOLKIT_REFUSED)
            continue;
        CHECK(!read_text(job_text(placed(k->name, "null"), 1), &j));
        if (k->harmless)
            CHECK(!read_text(job_text(placed(k->name, k->harmless), 1), &j));
    }
}

static void an_unknown_key_gets_the_nearest(void)
{
    struct foreign_job j;
    CHECK(read_with("train.stepz", "5", &j) && is_complete("train.stepz"));
    CHECK(strstr(err.hint, "train.steps"));
    CHECK(read_with("model_kwargs", "{}", &j) && is_complete("model_kwargs"));
    CHECK(strstr(err.hint, "model.model_kwargs"));
    CHECK(read_with("datasets", "[{folder_path: media, num_repeat: 3}]", &j) && is_complete("num_repeat"));
    CHECK(strstr(err.hint, "num_repeats"));
}

/* ---- what becomes of them ---- */

static void defaults_are_ai_toolkits(void)
{
    struct foreign_job j;
    CHECK(!read_with("network.linear", NULL, &j));
    CHECK_STR(foreign_value(&j, "lora.rank"), "4");
    CHECK_STR(foreign_value(&j, "train.optimizer"), "adamw");
    CHECK_STR(foreign_value(&j, "train.eps"), "1e-6");
    CHECK_STR(foreign_value(&j, "train.weight_decay"), "0.01");
    CHECK_STR(foreign_value(&j, "train.timesteps"), "sigmoid");
    CHECK_STR(foreign_value(&j, "train.recipe"), "ai-toolkit");
    CHECK_STR(foreign_value(&j, "train.schedule"), "constant");
    CHECK_STR(foreign_value(&j, "train.warmup"), "0");
    CHECK_STR(foreign_value(&j, "train.switch_every"), "1");
    CHECK_STR(foreign_value(&j, "checkpoint.every"), "1000");
    CHECK_STR(foreign_value(&j, "checkpoint.keep"), "5");
    CHECK_STR(foreign_value(&j, "save.dtype"), "f16");
    CHECK_STR(foreign_value(&j, "data.path"), "job.yaml");
    CHECK_STR(foreign_value(&j, "data.size"), "512x512x33");
    CHECK_STR(foreign_value(&j, "run.name"), "small");
    CHECK(j.missing && j.missing_remedy);
}

static void values_become_ours(void)
{
    const struct {
        const char *key, *value, *ours, *wanted;
    } rows[] = {
        { "train.optimizer", "adamw8bit", "train.optimizer", "adamw8" },
        { "train.optimizer", "Prodigy", "train.lr", "1" },
        { "train.optimizer", "lion", "train.beta2", "0.99" },
        { "train.optimizer", "adafactor", "train.weight_decay", "0" },
        { "train.unet_lr", "3e-5", "train.lr", "3e-5" },
        { "train.timestep_type", "flux_shift", "train.timesteps", "shift" },
        { "train.timestep_type", "weighted", "train.timesteps", "weighted" },
        { "train.content_or_style", "style", "train.content_or_style", "style" },
        { "train.gradient_accumulation", "4", "train.accumulate", "4" },
        { "train.gradient_checkpointing", "false", "train.recompute", "none" },
        { "train.switch_boundary_every", "10", "train.switch_every", "10" },
        { "train.ema_config", "{use_ema: true}", "train.ema", "0.999" },
        { "train.ema_config", "{use_ema: true, ema_decay: 0.99}", "train.ema", "0.99" },
        { "train.ema_config", "{use_ema: false, ema_decay: 0.99}", "train.ema", "not set" },
        { "train.lr_scheduler", "cosine", "train.min_lr", "0" },
        { "train.lr_scheduler", "constant_with_warmup", "train.warmup", "1000" },
        { "network.rank", "8", "lora.rank", "8" },
        { "network.dropout", "0.1", "lora.dropout", "0.1" },
        { "save.dtype", "bf16", "save.dtype", "bf16" },
        { "save.save_every", "250", "checkpoint.every", "250" },
        { "model.model_kwargs", "{train_high_noise: false}", "model.expert", "low" },
        { "model.model_kwargs", "{train_low_noise: false}", "model.expert", "high" },
        { "model.arch", "wan22_14b_i2v", "model.task", "i2v-A14B" },
        { "model.arch", "wan22_5b", "model.task", "ti2v-5B" },
        { "model.arch", "\"wan21:1b\"", "model.task", "t2v-1.3B" },
        { "model.arch", "wan21", "model.task", "t2v-14B" },
        { "model.quantize", "true", "model.quantize", "fp8" },
        { "model.low_vram", "true", "memory.idle", "host" },
        { "model.layer_offloading", "true", "memory.blocks", "host" },
        { "training_seed", "9", "train.seed", "9" },
        { "training_folder", "out", "run.dir", "out/small" },
        { "training_folder", "\"out/[name]\"", "run.dir", "out/small/small" },
        { "device", "cuda", "train.device", "cuda:0" },
        { "datasets", "[{folder_path: media, resolution: [256, 632]}]", "data.size", "640x624x1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(ours(rows[i].key, rows[i].value, rows[i].ours), rows[i].wanted);
}

static void quantization_is_a_wish(void)
{
    static const struct {
        const char *theirs, *ours;
    } rows[] = { { "qfloat8", "fp8" },
                 { "uint8", "int8" },
                 { "qint8", "int8" },
                 { "\"uint4|a/b.safetensors\"", "int8" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pair p[] = { { "model.quantize", "true" }, { "model.qtype", rows[i].theirs } };
        struct foreign_job j;
        CHECK(!read_text(job_text(p, 2), &j));
        CHECK_STR(foreign_value(&j, "model.quantize"), rows[i].ours);
    }
}

static void filters_choose_layers(void)
{
    static const char only[] = "network.network_kwargs.only_if_contains",
                      ignore[] = "network.network_kwargs.ignore_if_contains";
    struct foreign_job j;
    CHECK_STR(ours(only, "[attn1.to_q, ffn.net.2]", "lora.targets"),
              "[\"blocks.*.self_attn.q\", \"blocks.*.ffn.2\"]");
    CHECK_STR(ours(ignore, "[no_such_layer]", "lora.targets"), "not set");
    CHECK(read_with(only, "[single_blocks]", &j) && is_complete(only));
    CHECK(read_with(only, "[transformer_1]", &j) && is_complete(only));
    struct pair p[] = { { only, "[blocks.3., blocks.30.]" }, { ignore, "[attn2]" } };
    CHECK(!read_text(job_text(p, 2), &j));
    const char *targets = foreign_value(&j, "lora.targets");
    CHECK(strstr(targets, "\"blocks.3.self_attn.q\"") && strstr(targets, "\"blocks.30.ffn.2\""));
    CHECK(!strstr(targets, "cross_attn") && !strstr(targets, "\"blocks.4."));
}

static void what_cannot_be_done_is_refused(void)
{
    static const struct pair rows[] = {
        { "train.optimizer", "automagic" },
        { "train.optimizer", "dadaptation" },
        { "train.timestep_type", "next_sample" },
        { "train.timestep_type", "four_step" }, /* with two experts */
        { "train.lr_scheduler", "linear" },
        { "train.lr_scheduler", "step" },
        { "train.dtype", "int4" },
        { "network.type", "lokr" },
        { "network", NULL },
        { "network.pretrained_lora_path", "/no/such/lora.safetensors" },
        { "model.arch", "flux" },
        { "model.arch", "\"wan21_i2v:14b\"" },
        { "model.model_kwargs", "{train_high_noise: false, train_low_noise: false}" },
        { "type", "concept_slider" },
        { "device", "mps" },
        { "datasets", NULL },
        { "datasets", "[{folder_path: media, shuffle_tokens: true}]" },
        { "datasets", "[{folder_path: media, resolution: wide}]" },
        { "training_folder", "\"${CAIRN_NO_SUCH_VARIABLE}/x\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct foreign_job j;
        CHECK(read_with(rows[i].key, rows[i].value, &j));
        CHECK_INT(err.code, CAIRN_EUSAGE);
        CHECK(str_starts(err.msg, "job.yaml") && err.hint[0]);
    }
}

/* ---- the jobs of tests/data/toolkit ---- */

static bool same_config(const struct job_config *a, const struct job_config *b)
{
    CLEANUP(str_release) struct str one = { 0 }, two = { 0 };
    config_write(a, &one);
    config_write(b, &two);
    return !strcmp(one.s, two.s);
}

static void try_good(const char *path, const struct yaml_node *root)
{
    struct foreign_job j;
    struct job_config c, again;
    CLEANUP(str_release) struct str yaml = { 0 };
    int failed = foreign_toolkit(path, root, &arena, &j, &err);
    CHECK(!failed);
    if (failed) {
        printf("# %s\n", err.msg);
        return;
    }
    config_init(&c, &arena);
    CHECK(!foreign_apply(&c, &j, &err) && !config_check(&c, &err));
    foreign_write(&j, &yaml);
    config_init(&again, &arena);
    CHECK(!config_read_text(&again, "converted.yaml", yaml.s, yaml.len, &err) && !config_check(&again, &err));
    CHECK(same_config(&c, &again));
}

static void published_jobs_load_or_are_refused(void)
{
    const char *dir = getenv("CAIRN_TOOLKIT_JOBS");
    char **names = NULL;
    size_t n = 0, good = 0, bad = 0;
    setenv("TOOLKIT_DATA", "/data", 1);
    CHECK(dir && !file_names(dir, &arena, &names, &n));
    for (size_t i = 0; i < n; i++) {
        const char *path = arena_printf(&arena, "%s/%s", dir, names[i]);
        struct yaml_node *root;
        struct foreign_job j;
        err = (struct cairn_error){ 0 };
        CHECK(!yaml_read(path, &arena, &root, &err) && foreign_is_toolkit(root));
        if (str_starts(names[i], "ok-")) {
            good++;
            try_good(path, root);
            continue;
        }
        bad++;
        CHECK(foreign_toolkit(path, root, &arena, &j, &err));
        CHECK(err.code == CAIRN_EUSAGE && str_starts(err.msg, path) && err.hint[0]);
    }
    CHECK(good >= 16 && bad >= 4);
}

int main(void)
{
    setenv("HF_HUB_CACHE", "/no/such/cache", 1);
    RUN(a_wrong_type_names_line_key_and_remedy);
    RUN(a_wrong_type_in_a_dataset_does_too);
    RUN(an_unknown_key_of_any_map_does_too);
    RUN(every_key_is_honoured_noted_or_refused);
    RUN(harmless_values_are_accepted);
    RUN(an_unknown_key_gets_the_nearest);
    RUN(defaults_are_ai_toolkits);
    RUN(values_become_ours);
    RUN(quantization_is_a_wish);
    RUN(filters_choose_layers);
    RUN(what_cannot_be_done_is_refused);
    RUN(published_jobs_load_or_are_refused);
    arena_release(&arena);
    return check_done();
}
