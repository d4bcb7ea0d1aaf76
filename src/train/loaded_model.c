/* SPDX-License-Identifier: Apache-2.0 */
#include "train/loaded_model.h"
#include "base/str.h"
#include "train/checkpoint_file.h"
#include "record/runs.h"
#include "os/path.h"
#include "os/info.h"
#include <string.h>
#include <unistd.h>

static const char *folder_of(struct arena *a, const char *path)
{
    const char *name = path_name(path);
    if (os_is_folder(path))
        return path;
    return name == path ? "." : arena_strndup(a, path, (size_t)(name - path));
}

static bool has(struct arena *a, const char *dir, const char *name)
{
    return !access(arena_printf(a, "%s/%s", dir, name), R_OK);
}

/* ---- finding the files ---- */

static int find_place(struct loaded_model *t, const char *what, struct loaded_place *out,
                      struct cairn_error *err)
{
    struct checkpoint_state s = { 0 };
    struct cairn_error none = { 0 };
    const char *dir = folder_of(&t->arena, what), *run;
    char *newest;
    struct task_env e = job_task_env(&t->job);
    if (has(&t->arena, dir, CHECKPOINT_STATE) && has(&t->arena, dir, "../../config.yaml")) {
        *out = (struct loaded_place){ arena_printf(&t->arena, "%s/../..", dir), dir,
                                      os_is_folder(what) ? NULL : what };
        if (checkpoint_state_read(dir, &s, err))
            return -1;
    } else if (!runs_find(what, &t->arena, &run, &none)) {
        if (checkpoints_newest(run, &t->arena, &newest, &s, task_say_skipped, &e, err))
            return -1;
        *out = (struct loaded_place){ run, newest, NULL };
    } else if (str_ends(what, ".safetensors") && has(&t->arena, dir, "config.yaml")) {
        *out = (struct loaded_place){ dir, dir, what }; /* a file beside a run's checkpoints */
    } else if (access(what, F_OK)) {
        cairn_fail(err, CAIRN_EIO, "no run or model named %s", what);
        return cairn_hint(err, "cairn train --list lists the runs");
    }
    t->step = s.step;
    return 0;
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
    return found ? 0 : cairn_fail(err, CAIRN_EUSAGE, "%s has no weights of this model", p->file);
}

static int open_run(struct loaded_model *t, struct cairn_error *err)
{
    struct job *j = &t->job;
    struct task_saved saved = { .dir = t->place.run, .is_run = true, .tokenizer = t->tokenizer };
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
    struct task_saved saved = { .dir = folder_of(&t->arena, t->weights), .tokenizer = t->tokenizer };
    return job_resolve(j, err) || job_open_saved(j, &saved, err) || job_load_saved(j, NULL, err) ? -1 : 0;
}

/* ---- both ---- */

int loaded_model_find(struct loaded_model *t, const struct loaded_model_options *o, struct cairn_error *err)
{
    struct loaded_place *p = &t->place;
    *t = (struct loaded_model){
        .options = { .talk = o->talk, .stop = o->stop },
        .tokenizer = o->tokenizer,
        .average = o->average,
    };
    config_init(&t->config, &t->arena);
    t->options.config = &t->config;
    t->job = (struct job){ .o = &t->options, .c = &t->config };
    if (find_place(t, o->what, p, err))
        return -1;
    if (o->average && (!p->run || p->file)) {
        cairn_fail(err, CAIRN_EUSAGE, "--ema needs a run or a checkpoint, but %s is a file or a model folder",
                   o->what);
        return cairn_hint(err, "in a checkpoint, %s holds the moving average of the weights",
                          CHECKPOINT_MODEL_EMA);
    }
    if (p->run) /* its config.yaml has all keys, including computed ones */
        return config_read(&t->config, arena_printf(&t->arena, "%s/config.yaml", p->run), err);
    t->weights = t->config.model.path = o->what;
    return 0;
}

int loaded_model_open(struct loaded_model *t, struct cairn_error *err)
{
    return t->place.run ? open_run(t, err) : open_model(t, err);
}

void loaded_model_close(struct loaded_model *t)
{
    job_close(&t->job);
    arena_release(&t->arena);
}
