/* SPDX-License-Identifier: Apache-2.0 */
#include "start/ranks.h"
#include "base/str.h"
#include "os/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rank_cpus {
    char host[WORLD_HOST];
    uint64_t mask[OS_CPU_WORDS];
};

static bool overlap(const struct rank_cpus *a, const struct rank_cpus *b)
{
    uint64_t common = 0;
    for (int i = 0; i < OS_CPU_WORDS; i++)
        common |= a->mask[i] & b->mask[i];
    return common && !strcmp(a->host, b->host);
}

/* A launcher may have given each rank CPUs of its own, or all of them the same. */
static int share_cpus(struct comm *c, struct cairn_error *err)
{
    int size = comm_size(c), sharers = 0;
    struct rank_cpus mine = { 0 };
    CLEANUP(mem_free) struct rank_cpus *all = calloc((size_t)size, sizeof(*all));
    if (!all)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %d ranks", size);
    snprintf(mine.host, sizeof(mine.host), "%s", comm_host(c, comm_rank(c)));
    os_cpu_mask(mine.mask);
    if (comm_gather(c, &mine, sizeof(mine), all, err))
        return -1;
    for (int r = 0; r < size; r++)
        sharers += overlap(&mine, &all[r]);
    os_share_cpus(sharers);
    return 0;
}

int start_join_ranks(struct comm **out, struct cairn_error *err)
{
    struct world w;
    *out = NULL;
    if (world_find(&w, err))
        return -1;
    if (w.size > 1 && !launcher_has_mpi(w.launcher)) {
        cairn_fail(err, CAIRN_ELACK, "%s started %d ranks, but cairn joins ranks by MPI alone",
                   launcher_name(w.launcher), w.size);
        return cairn_hint(
            err, "use mpirun -n %d cairn train ...; or unset RANK and WORLD_SIZE to train with one process",
            w.size);
    }
    return comm_open(&w, out, err) || (*out && share_cpus(*out, err)) ? -1 : 0;
}

const char *start_rank_device(const struct comm *c, const char *asked, const struct gpu_info *list, size_t n)
{
    bool any = !strcmp(asked, "auto");
    size_t gpus = 0, mine = (size_t)comm_local_rank(c);
    if (!c || strchr(asked, ':') || !strcmp(asked, "cpu"))
        return asked;
    for (size_t i = 0; i < n; i++)
        gpus += list[i].api != GPU_API_HOST && (any || str_starts(list[i].name, asked));
    if (!gpus)
        return asked;
    mine %= gpus; /* a launcher may show each rank a GPU of its own alone */
    for (size_t i = 0; i < n; i++)
        if (list[i].api != GPU_API_HOST && (any || str_starts(list[i].name, asked)) && !mine--)
            return list[i].name;
    return asked;
}

struct rank_gpu {
    char host[WORLD_HOST], pci[16];
};

int start_check_devices(struct comm *c, const struct gpu_info *mine, struct cairn_error *err)
{
    size_t size = (size_t)comm_size(c);
    struct rank_gpu own = { 0 };
    CLEANUP(mem_free) struct rank_gpu *all = calloc(size, sizeof(*all));
    if (!all)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu ranks", size);
    snprintf(own.host, sizeof(own.host), "%s", comm_host(c, comm_rank(c)));
    snprintf(own.pci, sizeof(own.pci), "%s", mine->pci);
    if (!c || comm_gather(c, &own, sizeof(own), all, err))
        return c ? -1 : 0;
    for (size_t r = 1; r < size && !getenv("CAIRN_RANKS_SHARE_GPU"); r++)
        for (size_t other = 0; other < r; other++)
            if (all[r].pci[0] && !strcmp(all[r].pci, all[other].pci) &&
                !strcmp(all[r].host, all[other].host)) {
                cairn_fail(err, CAIRN_EUSAGE, "ranks %zu and %zu on %s have the same GPU, %s", other, r,
                           all[r].host, all[r].pci);
                return cairn_hint(err, "start as many ranks there as it has GPUs, with train.device auto; or "
                                       "--device cpu");
            }
    return 0;
}
