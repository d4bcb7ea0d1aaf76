/* SPDX-License-Identifier: Apache-2.0 */
#include "start/open_device.h"
#include "base/str.h"
#include "start/device_memory.h"
#include "start/ranks.h"
#include <string.h>

static bool has_api(const struct gpu_info *list, size_t n, enum gpu_api api)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].api == api)
            return true;
    return false;
}

/* cuda:0 in a job file is PyTorch's name for a GPU of any vendor. */
static const char *device_name(const char *asked, const struct gpu_info *list, size_t n, struct arena *a)
{
    if (!str_starts(asked, "cuda:") || has_api(list, n, GPU_API_CUDA) || !has_api(list, n, GPU_API_HIP))
        return asked;
    return arena_printf(a, "hip:%s", asked + strlen("cuda:"));
}

/* Whether the value comes from the command line, not from the file. */
static bool is_typed(const struct job_config *c, const char *key)
{
    const char *place = config_place(c, key);
    return place && str_starts(place, "--");
}

/* A GPU named on the command line overrides train.allow_cpu of the file.  A restarted run may still fall
 * back to the CPU. */
static bool allows_cpu(const struct job_config *c, const struct train_options *o)
{
    if (o->restarted || !is_typed(c, "train.device") || is_typed(c, "train.allow_cpu"))
        return c->train.allow_cpu;
    return false;
}

/* Falls back to the CPU if the GPU cannot be opened and that is allowed; *why is then the reason, else
 * NULL. */
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

int start_open_device(const struct job_config *c, struct arena *a, struct train_options *o,
                      struct cairn_error *err)
{
    struct gpu_info *list = NULL;
    char **reasons = NULL;
    size_t n = 0, n_reasons = 0;
    if (strcmp(c->train.device, "cpu") != 0) /* does not ask a driver, which might not answer */
        gpu_list(a, &list, &n, &reasons, &n_reasons);
    const char *name = device_name(c->train.device, list, n, a);
    name = start_rank_device(o->comm, name, list, n);
    bool allowed = allows_cpu(c, o);
    if (open_named(name, allowed, &o->g, a, &o->why_device, err)) {
        if (err->code == CAIRN_ELACK && !allowed && c->train.allow_cpu)
            cairn_hint(
                err,
                "%s%sto train on the CPU, omit --device or add --set train.allow_cpu=true; `cairn doctor` "
                "shows what the GPU lacks",
                n_reasons ? reasons[0] : "", n_reasons ? "; " : "");
        else if (!err->hint[0] && n_reasons && err->code == CAIRN_ELACK)
            cairn_hint(err, "%s", reasons[0]);
        return -1;
    }
    o->budget_bytes = device_memory_apply(o->g, (uint64_t)(c->memory.limit * (1 << 30)));
    if (start_check_devices(o->comm, gpu_info(o->g), err))
        return -1;
    if (gpu_info(o->g)->api == GPU_API_HOST)
        o->budget_bytes /= (uint64_t)comm_local_size(o->comm);
    o->host_available = device_memory_host;
    if (o->why_device)
        return 0;
    if (strcmp(c->train.device, "auto") != 0)
        o->why_device = "as requested";
    else if (gpu_info(o->g)->api != GPU_API_HOST)
        o->why_device = "the first GPU that works";
    else
        o->why_device = n_reasons ? arena_printf(a, "no usable GPU: %s", reasons[0]) : "no GPU found";
    return 0;
}
