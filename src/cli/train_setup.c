/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train_setup.h"
#include "base/str.h"
#include "cli/device_memory.h"
#include "host/root.h"
#include "run/job_file.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of a run may be given instead of a file, and is not that. */
static void hint_at_run(const char *dir, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *file = path_join(&a, dir, "config.yaml");
    if (!access(file, R_OK))
        cairn_hint(err, "it is a run: --resume=%s goes on with it; its configuration is %s", dir, file);
}

/* The job of another trainer, which `cairn run` can start. */
static bool is_foreign(const char *file, struct arena *a, struct cairn_error *err)
{
    struct job_file f;
    if (!job_file_read(file, a, &f))
        return false;
    cairn_fail(err, CAIRN_EUSAGE, "%s is a %s of %s, which cairn does not train by itself", file,
               f.is_dataset ? "dataset file" : "job file", f.trainer);
    cairn_hint(err, "in %s's folder: %s", f.trainer, job_file_command(&f, a));
    return true;
}

int train_read_config(const struct train_wish *args, const char *file, struct job_config *c,
                      struct cairn_error *err)
{
    if (config_read(c, file, err)) {
        if (is_foreign(file, c->arena, err))
            return -1;
        if (err->code == CAIRN_EFORMAT) /* not even YAML */
            err->code = CAIRN_EUSAGE;
        hint_at_run(file, err);
        return -1;
    }
    for (size_t i = 0; i < args->set.n; i++)
        if (config_set_pair(c, args->set.item[i], err))
            return -1;
    char steps[32];
    snprintf(steps, sizeof(steps), "%d", args->steps);
    if (args->steps >= 0 && config_set(c, "--steps", "train.steps", steps, err))
        return -1;
    if (args->device && config_set(c, "--device", "train.device", args->device, err))
        return -1;
    return config_check(c, err);
}

static bool has_api(const struct gpu_info *list, size_t n, enum gpu_api api)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].api == api)
            return true;
    return false;
}

/* cuda:0 in a job file is PyTorch's name for a GPU of any maker. */
static const char *device_name(const char *asked, const struct gpu_info *list, size_t n, struct arena *a)
{
    if (!str_starts(asked, "cuda:") || has_api(list, n, GPU_API_CUDA) || !has_api(list, n, GPU_API_HIP))
        return asked;
    return arena_printf(a, "hip:%s", asked + strlen("cuda:"));
}

/* Whether the user typed it, in place of a file that says so. */
static bool is_typed(const struct job_config *c, const char *key)
{
    const char *place = config_place(c, key);
    return place && str_starts(place, "--");
}

/* A GPU that was typed is meant: a file's train.allow_cpu does not stand for another wish.  A run that goes on without
 * one in the middle is another matter. */
static bool allows_cpu(const struct job_config *c, const struct train_options *o)
{
    if (o->restarted || !is_typed(c, "train.device") || is_typed(c, "train.allow_cpu"))
        return c->train.allow_cpu;
    return false;
}

/* The CPU where the GPU that is asked for cannot be had, if that is wanted; *why then says so, else it is NULL. */
static int open_named(const char *name, bool allow_cpu, struct gpu **g, struct arena *a, const char **why,
                      struct cairn_error *err)
{
    *why = NULL;
    if (!gpu_open(name, g, err))
        return 0;
    if (!allow_cpu || (err->code != CAIRN_ELACK && err->code != CAIRN_EDEVICE))
        return -1;
    *why = arena_printf(a, "%s (train.allow_cpu)", err->msg);
    *err = (struct cairn_error){ 0 };
    return gpu_open("cpu", g, err);
}

int train_open_device(const struct job_config *c, struct arena *a, struct train_options *o,
                      struct cairn_error *err)
{
    struct gpu_info *list;
    char **reasons;
    size_t n, n_reasons;
    gpu_list(a, &list, &n, &reasons, &n_reasons);
    const char *name = device_name(c->train.device, list, n, a);
    bool allowed = allows_cpu(c, o);
    if (open_named(name, allowed, &o->g, a, &o->why_device, err)) {
        if (err->code == CAIRN_ELACK && !allowed && c->train.allow_cpu)
            cairn_hint(
                err,
                "%s%sleave --device out, or add --set train.allow_cpu=true, for the CPU; `cairn doctor` says "
                "what the GPU lacks",
                n_reasons ? reasons[0] : "", n_reasons ? "; " : "");
        else if (!err->hint[0] && n_reasons && err->code == CAIRN_ELACK)
            cairn_hint(err, "%s", reasons[0]);
        return -1;
    }
    o->budget_bytes = device_memory_apply(o->g, (uint64_t)(c->memory.limit * (1 << 30)));
    o->host_available = device_memory_host;
    if (o->why_device)
        return 0;
    if (strcmp(name, "auto") != 0)
        o->why_device = "as asked";
    else if (gpu_info(o->g)->api != GPU_API_HOST)
        o->why_device = "the first GPU that works";
    else
        o->why_device =
            n_reasons ? arena_printf(a, "no GPU can be used (%s)", reasons[0]) : "there is no GPU";
    return 0;
}
