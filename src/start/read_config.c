/* SPDX-License-Identifier: Apache-2.0 */
#include "start/read_config.h"

#include "base/str.h"
#include "host/root.h"
#include "os/info.h"
#include "run/job_file.h"
#include "train/foreign_musubi.h"
#include "train/foreign_toolkit.h"
#include "train/run_folder.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the user may have given instead of a configuration: a run, a folder of images, a model. */
static void hint_at_config(const char *path, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *file = path_join(&a, path, "config.yaml");
    if (!access(file, R_OK))
        cairn_hint(err, "it is a run: --resume=%s continues it; its configuration is %s", path, file);
    else if (os_is_folder(path))
        cairn_hint(err, "a configuration is needed: `cairn train --example wan-lora > job.yaml` writes one; "
                        "data.path takes the folder");
    else if (str_ends(path, ".safetensors") || str_ends(path, ".pth"))
        cairn_hint(err, "a configuration is needed: `cairn train --example wan-lora > job.yaml` writes one; "
                        "model.path takes the model");
    else if (access(path, F_OK))
        cairn_hint(err, "`cairn train --example wan-lora > job.yaml` writes a configuration");
}

/* The job of another trainer, which `cairn run` can start. */
static bool is_foreign(const char *file, struct arena *a, struct cairn_error *err)
{
    struct job_file f;
    if (!job_file_read(file, a, &f))
        return false;
    cairn_fail(err, CAIRN_EUSAGE, "%s is a %s of %s, which `cairn train` cannot run", file,
               f.is_dataset ? "dataset file" : "job file", f.trainer);
    cairn_hint(err, "in %s's folder: %s", f.trainer, job_file_command(&f, a));
    return true;
}

/* What cairn cannot do, the trainer itself may. */
static int hint_at_trainer(const char *file, struct arena *a, struct cairn_error *err)
{
    struct job_file f;
    size_t n = strlen(err->hint);
    if (!job_file_read(file, a, &f))
        return -1;
    const char *more =
        arena_printf(a, "%sor in %s's folder: %s", n ? "; " : "", f.trainer, job_file_command(&f, a));
    if (n + strlen(more) < sizeof(err->hint))
        memcpy(err->hint + n, more, strlen(more) + 1);
    return -1;
}

int start_read_foreign(const char *file, struct arena *a, struct foreign_job *out, bool *found,
                       struct cairn_error *err)
{
    struct yaml_node *root;
    struct cairn_error ignored = { 0 };
    struct job_file f;
    *found = str_ends(file, ".toml") && job_file_read(file, a, &f) && !f.is_dataset &&
             str_eq(f.trainer, "musubi-tuner");
    if (*found)
        return foreign_musubi_read(file, a, out, err);
    *found = !yaml_read(file, a, &root, &ignored) && foreign_is_toolkit(root);
    return *found ? foreign_toolkit(file, root, a, out, err) : -1;
}

int start_check_weights(const struct job_config *c, struct cairn_error *err)
{
    if (!c->foreign || !c->foreign->missing)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s", c->foreign->missing);
    return cairn_hint(err, "%s", c->foreign->missing_remedy);
}

int start_parse_config(const char *file, struct job_config *c, const struct message_sink *sink,
                       struct cairn_error *err)
{
    struct foreign_job job = { 0 };
    bool is_job;
    if (!start_read_foreign(file, c->arena, &job, &is_job, err)) {
        for (size_t i = 0; i < job.n_notes; i++)
            message_say(sink, "%s: %s", job.program, job.notes[i]);
        return foreign_apply(c, &job, err);
    }
    if (is_job)
        return job.refused ? hint_at_trainer(file, c->arena, err) : -1;
    if (!config_read(c, file, err)) {
        run_folder_use(c, file);
        return 0;
    }
    if (is_foreign(file, c->arena, err))
        return -1;
    if (err->code == CAIRN_EFORMAT) /* not even YAML */
        err->code = CAIRN_EUSAGE;
    hint_at_config(file, err);
    return -1;
}

int start_change_config(const struct config_changes *changes, struct job_config *c, struct cairn_error *err)
{
    for (size_t i = 0; i < changes->n_set; i++)
        if (config_set_pair(c, changes->set[i], err))
            return -1;
    char steps[32];
    snprintf(steps, sizeof(steps), "%d", changes->steps);
    if (changes->steps >= 0 && config_set(c, "--steps", "train.steps", steps, err))
        return -1;
    return changes->device ? config_set(c, "--device", "train.device", changes->device, err) : 0;
}

int start_read_config(const struct config_changes *changes, const char *file, struct job_config *c,
                      const struct message_sink *sink, struct cairn_error *err)
{
    if (start_parse_config(file, c, sink, err))
        return -1;
    /* A plan is for this machine, unless a GPU is named on the command line. */
    bool any = c->foreign && changes->only_plan && !strcmp(c->train.device, "cuda:0");
    if ((any && config_set(c, "the plan", "train.device", "auto", err)) ||
        start_change_config(changes, c, err))
        return -1;
    /* They may be named on the command line, too. */
    if (!changes->only_plan && !c->model.path[0] && start_check_weights(c, err))
        return -1;
    return config_check(c, err);
}
