/* SPDX-License-Identifier: Apache-2.0 */
#include "train/loaded_model.h"
#include "base/str.h"
#include "train/checkpoint_file.h"
#include "train/run_folder.h"
#include "record/runs.h"
#include "tensor/lora.h"
#include "os/path.h"
#include "os/info.h"
#include <string.h>
#include <unistd.h>

static const char *folder_of(struct arena *a, const char *path)
{
    const char *name = path_name(path);
    if (os_is_folder(path))
        return path;
    if (name == path)
        return ".";
    size_t n = (size_t)(name - path); /* with the separator */
    return arena_strndup(a, path, n > 1 ? n - 1 : n);
}

static bool has(struct arena *a, const char *dir, const char *name)
{
    return !access(arena_printf(a, "%s/%s", dir, name), R_OK);
}

/* ---- finding the files ---- */

static bool is_lora(const char *path)
{
    CLEANUP(lora_close) struct lora_file l = { 0 };
    struct cairn_error ignored = { 0 };
    return os_is_file(path) && !lora_open(&l, path, &ignored);
}

static int lacks_base(const char *path, struct cairn_error *err)
{
    cairn_fail(err, CAIRN_EUSAGE, "%s is a LoRA, and its base model is not known", path);
    return cairn_hint(err,
                      "name the configuration of its job: cairn sample %s --config job.yaml; for a text "
                      "model, cairn tensor merge adds it to the base",
                      path_name(path));
}

static int find_place(struct loaded_model *t, const char *what, struct loaded_place *out,
                      struct cairn_error *err)
{
    struct checkpoint_state s = { 0 };
    struct cairn_error none = { 0 };
    const char *dir = folder_of(&t->arena, what), *run;
    char *newest;
    struct task_env e = job_task_env(&t->job);
    if (has(&t->arena, dir, CHECKPOINT_STATE) && has(&t->arena, dir, "../../config.yaml")) {
        *out = (struct loaded_place){ .run = arena_printf(&t->arena, "%s/../..", dir),
                                      .checkpoint = dir,
                                      .file = os_is_folder(what) ? NULL : what };
        if (checkpoint_state_read(dir, &s, err))
            return -1;
    } else if (!runs_find(what, &t->arena, &run, &none)) {
        if (checkpoints_newest(run, &t->arena, &newest, &s, task_say_skipped, &e, err))
            return -1;
        *out = (struct loaded_place){ .run = run, .checkpoint = newest };
    } else if (str_ends(what, ".safetensors") && has(&t->arena, dir, "config.yaml")) {
        *out = (struct loaded_place){ .run = dir,
                                      .checkpoint = dir,
                                      .file = what }; /* a file beside a run's checkpoints */
    } else if (access(what, F_OK)) {
        cairn_fail(err, CAIRN_EIO, "no run or model named %s", what);
        return cairn_hint(err, "cairn train --list lists the runs");
    } else if (is_lora(what)) {
        return lacks_base(what, err);
    }
    t->step = s.step;
    return 0;
}

/* ---- a configuration and LoRAs ---- */

static bool is_config(const char *path)
{
    static const char *const ends[] = { ".yaml", ".yml", ".toml", ".json" };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (str_ends(path, ends[i]))
            return os_is_file(path);
    return false;
}

/* The files of two experts may lie beside the configuration of their run. */
static const char *config_beside(struct arena *a, const char *path)
{
    const char *dir = folder_of(a, path);
    return os_is_file(path) && has(a, dir, "config.yaml") ? arena_printf(a, "%s/config.yaml", dir) : NULL;
}

static const char *config_file(struct arena *a, const struct loaded_model_options *o)
{
    if (!o->config)
        return o->n_what == 1 ? o->what[0] : config_beside(a, o->what[0]);
    return os_is_folder(o->config) ? arena_printf(a, "%s/config.yaml", o->config) : o->config;
}

static int find_config(struct loaded_model *t, const struct loaded_model_options *o, struct cairn_error *err)
{
    struct loaded_place *p = &t->place;
    p->config = config_file(&t->arena, o);
    if (p->config == o->what[0])
        return 0;
    for (size_t i = 0; i < o->n_what; i++)
        if (is_config(o->what[i])) {
            cairn_fail(err, CAIRN_EUSAGE, "%s is a configuration, not a LoRA", o->what[i]);
            return cairn_hint(err, "give one configuration, and LoRA files with --lora");
        }
    if (!p->config)
        return is_lora(o->what[0]) ? lacks_base(o->what[0], err)
                                   : cairn_fail(err, CAIRN_EUSAGE, "give only one model");
    p->loras = o->what;
    p->n_loras = o->n_what;
    return 0;
}

static int open_config(struct loaded_model *t, struct cairn_error *err)
{
    struct job *j = &t->job;
    struct config_lora *l = &t->config.lora;
    const struct loaded_place *p = &t->place;
    struct task_saved saved = t->saved;
    saved.is_config = true;
    saved.loras = p->loras;
    saved.n_loras = p->n_loras;
    *l = (struct config_lora){ .path = "", .targets = l->targets, .plus = 1 }; /* the files have their own */
    t->weights = p->n_loras ? p->loras[0] : t->config.model.path;
    if (job_resolve(j, err))
        return cairn_wrap(err, "%s", p->config);
    return job_open_saved(j, &saved, err) || job_load_saved(j, NULL, err) ? -1 : 0;
}

/* ---- a run ---- */

/* The file of each set.  A requested file is used for the set of that name, or for the only set. */
static int find_files(struct loaded_model *t, const struct model *m, const char *files[MODEL_SETS],
                      struct cairn_error *err)
{
    const struct loaded_place *p = &t->place;
    bool found = !p->file, average = t->average;
    for (size_t i = 0; i < model_sets(m); i++) {
        const char *name = p->file ? path_name(p->file) : "";
        bool asked = p->file && (model_sets(m) == 1 || !strcmp(name, m->ops->file_name(m, i, false)) ||
                                 !strcmp(name, m->ops->file_name(m, i, true)));
        found = found || asked;
        files[i] = asked ? p->file
                         : arena_printf(&t->arena, "%s/%s", p->checkpoint, m->ops->file_name(m, i, average));
        if (average && access(files[i], F_OK)) {
            cairn_fail(err, CAIRN_EUSAGE, "%s does not exist", files[i]);
            return cairn_hint(
                err, "a run saves the moving average (EMA) of its weights only if train.ema is above 0");
        }
    }
    if (found)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s is not a file of this run's checkpoints", p->file);
    return cairn_hint(err, "name the LoRAs of both experts, or add --config %s/config.yaml to use it alone",
                      p->run);
}

static int open_run(struct loaded_model *t, struct cairn_error *err)
{
    struct job *j = &t->job;
    struct task_saved saved = t->saved;
    saved.dir = t->place.run;
    saved.is_run = true;
    const char *files[MODEL_SETS];
    if (config_fill(&t->config, err) || job_open_saved(j, &saved, err) ||
        find_files(t, j->task->model, files, err))
        return -1;
    t->weights = model_sets(j->task->model) == 1 ? files[0] : t->place.checkpoint;
    return job_load_saved(j, files, err);
}

/* ---- any other model ---- */

static int open_model(struct loaded_model *t, struct cairn_error *err)
{
    struct job *j = &t->job;
    struct task_saved saved = t->saved;
    saved.dir = folder_of(&t->arena, t->weights);
    if (!job_resolve(j, err) && !job_open_saved(j, &saved, err) && !job_load_saved(j, NULL, err))
        return 0;
    return err->hint[0] || err->code != CAIRN_EFORMAT
               ? -1
               : cairn_hint(
                     err,
                     "a file or a folder is a model of text; for videos give a run, a configuration, or a "
                     "LoRA with --config");
}

/* ---- both ---- */

int loaded_model_find(struct loaded_model *t, const struct loaded_model_options *o, struct cairn_error *err)
{
    struct loaded_place *p = &t->place;
    *t = (struct loaded_model){
        .options = { .talk = o->talk, .stop = o->stop },
        .saved = { .dir = o->dir, .tokenizer = o->tokenizer, .image = o->image, .lora_scale = o->lora_scale },
        .average = o->average,
    };
    config_init(&t->config, &t->arena);
    t->options.config = &t->config;
    t->job = (struct job){ .o = &t->options, .c = &t->config };
    bool by_config = o->config || o->n_what > 1 || is_config(o->what[0]);
    if (by_config ? find_config(t, o, err) : find_place(t, o->what[0], p, err))
        return -1;
    if (o->average && (!p->run || p->file)) {
        cairn_fail(err, CAIRN_EUSAGE, "--ema needs a run or a checkpoint, but %s is a file or a model folder",
                   o->what[0]);
        return cairn_hint(err, "in a checkpoint, %s holds the moving average of the weights",
                          CHECKPOINT_MODEL_EMA);
    }
    if (p->run) { /* its config.yaml has all keys, including computed ones */
        const char *file = arena_printf(&t->arena, "%s/config.yaml", p->run);
        if (config_read(&t->config, file, err))
            return -1;
        run_folder_use(&t->config, file);
        return 0;
    }
    if (!p->config)
        t->weights = t->config.model.path = o->what[0];
    return 0;
}

int loaded_model_open(struct loaded_model *t, struct cairn_error *err)
{
    return t->place.config ? open_config(t, err) : t->place.run ? open_run(t, err) : open_model(t, err);
}

void loaded_model_close(struct loaded_model *t)
{
    job_close(&t->job);
    arena_release(&t->arena);
}
