/* SPDX-License-Identifier: Apache-2.0
 * The LoRA's files in the run's folder, under the names of save.files. */
#include "os/info.h"
#include "os/path.h"
#include "train/task_wan_inside.h"
#include <stdio.h>

enum { PATH_MOST = 4096 };

const char *wan_job_file_name(const struct wan_job *t)
{
    const struct task_env *e = &t->task.env;
    if (t->keys.save.name[0])
        return t->keys.save.name;
    return e->config->run.name[0] ? e->config->run.name : path_name(e->dir);
}

uint64_t wan_job_epochs(const struct wan_job *t, uint64_t steps)
{
    uint64_t batches = t->batches ? batches_per_epoch(t->batches) : 0;
    return batches ? steps * (uint64_t)t->task.env.config->train.accumulate / batches : 0;
}

static bool ends_epochs(const struct wan_job *t, uint64_t step)
{
    uint64_t every = (uint64_t)t->keys.save.epochs;
    return every && step && wan_job_epochs(t, step) / every > wan_job_epochs(t, step - 1) / every;
}

bool wan_job_is_save_due(const struct task *task, uint64_t step)
{
    return ends_epochs((const struct wan_job *)task, step);
}

/* ai-toolkit names the expert even where it is the only one. */
static const char *suffix_of(const struct wan_job *t, size_t set)
{
    bool has_two = t->task.model->n_loras > 1;
    if (has_two && t->keys.save.split)
        return set ? "_high_noise" : "_low_noise";
    if (has_two || t->keys.save.files != LORA_FILES_AI_TOOLKIT || t->side == FLOW_ANY)
        return "";
    return t->side == FLOW_HIGH ? "_high_noise" : "_low_noise";
}

/* The moving average where there is one, as ai-toolkit has it. */
static int put_set(const struct wan_job *t, const struct lora_files *f, struct lora_files_stamp stamp,
                   const char *checkpoint, size_t set, struct cairn_error *err)
{
    const struct model *m = t->task.model;
    struct os_info info;
    char from[PATH_MOST];
    stamp.suffix = suffix_of(t, set);
    snprintf(from, sizeof(from), "%s/%s", checkpoint, m->ops->file_name(m, set, true));
    if (os_info(from, &info))
        snprintf(from, sizeof(from), "%s/%s", checkpoint, m->ops->file_name(m, set, false));
    return lora_files_put(f, &stamp, from, err);
}

static int put_all(const struct wan_job *t, const struct lora_files *f, struct lora_files_stamp stamp,
                   const char *checkpoint, struct cairn_error *err)
{
    size_t n = t->keys.save.split ? model_sets(t->task.model) : 1;
    for (size_t i = 0; i < n; i++)
        if (put_set(t, f, stamp, checkpoint, i, err))
            return -1;
    if (stamp.kind != LORA_FILES_LAST)
        lora_files_rotate(f, stamp.kind, stamp.number, (size_t)t->task.env.config->checkpoint.keep);
    return 0;
}

int wan_job_publish(const struct task *task, const char *checkpoint, uint64_t step, struct cairn_error *err)
{
    const struct wan_job *t = (const struct wan_job *)task;
    const struct job_config *c = task->env.config;
    struct lora_files f = { t->keys.save.files, task->env.dir, wan_job_file_name(t) };
    if (f.style == LORA_FILES_NONE)
        return 0;
    if (step >= (uint64_t)c->train.steps)
        return put_all(t, &f, (struct lora_files_stamp){ .kind = LORA_FILES_LAST }, checkpoint, err);
    bool epoch = f.style == LORA_FILES_MUSUBI && ends_epochs(t, step);
    bool also_step = !epoch || (c->checkpoint.every && step % (uint64_t)c->checkpoint.every == 0);
    struct lora_files_stamp of_epoch = { LORA_FILES_EPOCH, wan_job_epochs(t, step), "" };
    if (epoch && put_all(t, &f, of_epoch, checkpoint, err))
        return -1;
    return also_step ? put_all(t, &f, (struct lora_files_stamp){ LORA_FILES_STEP, step, "" }, checkpoint, err)
                     : 0;
}

/* ---- what the user does with them ---- */

static const char *file_to_use(const struct wan_job *t, size_t set, bool finished, struct arena *a)
{
    const struct task_env *e = &t->task.env;
    const struct model *m = t->task.model;
    struct lora_files f = { t->keys.save.files, e->dir, wan_job_file_name(t) };
    struct lora_files_stamp last = { .kind = LORA_FILES_LAST, .suffix = suffix_of(t, set) };
    char name[PATH_MOST];
    if (f.style == LORA_FILES_NONE || !finished)
        return arena_printf(a, "%s/checkpoints/latest/%s", e->dir, m->ops->file_name(m, set, false));
    lora_files_name(&f, &last, name, sizeof(name));
    return arena_printf(a, "%s/%s", e->dir, name);
}

const char *wan_job_use(const struct task *task, bool finished, struct arena *a)
{
    const struct wan_job *t = (const struct wan_job *)task;
    bool diffusers = t->keys.save.format == WAN_SAVE_DIFFUSERS;
    const char *files = file_to_use(t, 0, finished, a);
    if (t->keys.save.split && model_sets(task->model) > 1)
        files = arena_printf(a, "%s and %s", files, file_to_use(t, 1, finished, a));
    return diffusers ? arena_printf(a, "load_lora_weights of diffusers takes %s", files)
                     : arena_printf(a, "copy %s to ComfyUI/models/loras", files);
}
