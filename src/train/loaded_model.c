/* SPDX-License-Identifier: Apache-2.0 */
#include "train/loaded_model.h"
#include "nn/gpt_file.h"
#include "train/checkpoint_file.h"
#include "record/runs.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 256 };

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static const char *folder_of(struct arena *a, const char *path)
{
    const char *name = str_file_name(path);
    if (is_folder(path))
        return path;
    return name == path ? "." : arena_strndup(a, path, (size_t)(name - path));
}

static bool has(struct arena *a, const char *dir, const char *name)
{
    return !access(arena_printf(a, "%s/%s", dir, name), R_OK);
}

static void say_skipped(void *to, const char *path, const char *why)
{
    job_say(to, "%s is not whole (%s); an older one is looked for", path, why);
}

/* ---- where it lies ---- */

struct place {
    const char *run, *checkpoint; /* NULL: it is a model and no run's */
    const char *file;             /* of weights in the checkpoint, if one was asked for */
};

static int find_place(struct loaded_model *t, const char *what, struct place *out, struct cairn_error *err)
{
    struct checkpoint_state s = { 0 };
    struct cairn_error none = { 0 };
    const char *dir = folder_of(&t->arena, what), *run;
    char *newest;
    if (has(&t->arena, dir, CHECKPOINT_STATE) && has(&t->arena, dir, "../../config.yaml")) {
        *out = (struct place){ arena_printf(&t->arena, "%s/../..", dir), dir, is_folder(what) ? NULL : what };
        if (checkpoint_state_read(dir, &s, err))
            return -1;
    } else if (!runs_find(what, &t->arena, &run, &none)) {
        if (checkpoints_newest(run, &t->arena, &newest, &s, say_skipped, &t->job, err))
            return -1;
        *out = (struct place){ run, newest, NULL };
    } else if (access(what, F_OK)) {
        cairn_fail(err, CAIRN_EIO, "there is no run and no model %s", what);
        return cairn_hint(err, "cairn train --list lists the runs");
    }
    t->step = s.step;
    return 0;
}

/* ---- a run ---- */

static const char *weights_file(struct loaded_model *t, const struct place *p, bool average)
{
    bool lora = t->config.lora.rank;
    const char *name = average ? lora ? CHECKPOINT_LORA_EMA : CHECKPOINT_MODEL_EMA
                       : lora  ? CHECKPOINT_LORA
                               : CHECKPOINT_MODEL;
    return p->file ? p->file : arena_printf(&t->arena, "%s/%s", p->checkpoint, name);
}

static int load_weights(struct loaded_model *t, struct cairn_error *err)
{
    struct param_report report = { 0 };
    struct gpt *m = t->job.m;
    int r = t->config.lora.rank ? gpt_file_load_lora(m, t->weights, &report, err)
                                : gpt_file_load(m, t->weights, &report, err);
    param_report_release(&report);
    return r;
}

/* The file of a run has all keys, also those that were worked out. */
static int open_run(struct loaded_model *t, const struct place *p, bool average, struct cairn_error *err)
{
    struct job *j = &t->job;
    const char *tokenizer = arena_printf(&t->arena, "%s/tokenizer.json", p->run);
    if (config_read(&t->config, arena_printf(&t->arena, "%s/config.yaml", p->run), err) ||
        config_fill(&t->config, err))
        return -1;
    t->weights = weights_file(t, p, average);
    if (average && access(t->weights, F_OK)) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is not there", t->weights);
        return cairn_hint(err, "a run keeps the mean of its weights where train.ema is above 0");
    }
    if (!j->tokenizer &&
        (strcmp(t->config.data.tokenizer, "bytes") ? tokenizer_open(tokenizer, &j->tokenizer, err)
                                                   : tokenizer_new_bytes(&j->tokenizer, err)))
        return -1;
    if (job_new_network(j, err) || job_take_network(j, err) ||
        (t->config.lora.rank && job_fill_model(j, err)))
        return -1;
    return load_weights(t, err);
}

/* ---- any other model ---- */

static int open_model(struct loaded_model *t, const char *what, struct cairn_error *err)
{
    struct job *j = &t->job;
    const char *dir = folder_of(&t->arena, what);
    t->weights = t->config.model.path = what;
    if (job_read_shape(j, err))
        return -1;
    if (!j->tokenizer && has(&t->arena, dir, "tokenizer.json") &&
        tokenizer_open(arena_printf(&t->arena, "%s/tokenizer.json", dir), &j->tokenizer, err))
        return -1;
    if (!j->tokenizer && t->config.model.vocab != BYTES) {
        cairn_fail(err, CAIRN_EUSAGE, "%s has no tokenizer.json, and %lld tokens, which are not bytes", what,
                   (long long)t->config.model.vocab);
        return cairn_hint(err, "--tokenizer FILE names one");
    }
    if (!j->tokenizer && tokenizer_new_bytes(&j->tokenizer, err))
        return -1;
    return job_new_network(j, err) || job_take_network(j, err) || job_fill_model(j, err) ? -1 : 0;
}

int loaded_model_open(struct loaded_model *t, const struct loaded_model_options *o, struct cairn_error *err)
{
    struct place p = { 0 };
    *t = (struct loaded_model){ .options = { .g = o->g, .talk = o->talk } };
    config_init(&t->config, &t->arena);
    t->options.config = &t->config;
    t->job = (struct job){ .o = &t->options, .c = &t->config };
    if (find_place(t, o->what, &p, err))
        return -1;
    if (o->average && (!p.run || p.file)) {
        cairn_fail(err, CAIRN_EUSAGE, "--ema is for a run or a checkpoint, and %s is a file or a model",
                   o->what);
        return cairn_hint(err, "the mean of the weights is %s in a checkpoint", CHECKPOINT_MODEL_EMA);
    }
    if ((o->tokenizer && tokenizer_open(o->tokenizer, &t->job.tokenizer, err)) ||
        (p.run ? open_run(t, &p, o->average, err) : open_model(t, o->what, err)))
        return -1;
    if (tokenizer_vocab(t->job.tokenizer) > t->job.m->shape.vocab)
        return cairn_fail(err, CAIRN_EUSAGE, "the tokenizer has %u tokens, and the model knows %zu",
                          tokenizer_vocab(t->job.tokenizer), t->job.m->shape.vocab);
    return 0;
}

void loaded_model_close(struct loaded_model *t)
{
    job_close(&t->job);
    arena_release(&t->arena);
}
