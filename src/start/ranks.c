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
        return cairn_hint(err, "use mpirun -n %d cairn train ..., or srun --mpi=pmix", w.size);
    }
    if (comm_open(&w, out, err))
        return -1;
    if (*out && share_cpus(*out, err)) {
        comm_fail(*out, err);
        comm_close(*out, 1);
    }
    return 0;
}

int start_rank_device(const struct comm *c, const char *asked, const struct gpu_info *list, size_t n,
                      struct arena *a, const char **out, struct cairn_error *err)
{
    bool any = !strcmp(asked, "auto"), shared = getenv("CAIRN_RANKS_SHARE_GPU") != NULL;
    size_t gpus = 0, mine = (size_t)comm_local_rank(c);
    *out = asked;
    if (!c || !strcmp(asked, "cpu"))
        return 0;
    if (strchr(asked, ':') && !shared) {
        cairn_fail(err, CAIRN_EUSAGE, "train.device is %s, but %d ranks on %s need a GPU each", asked,
                   comm_local_size(c), comm_host(c, comm_rank(c)));
        return cairn_hint(err, "auto gives each rank its own; ROCR_VISIBLE_DEVICES chooses among them");
    }
    for (size_t i = 0; i < n; i++)
        gpus += list[i].api != GPU_API_HOST && (any || str_starts(list[i].name, asked));
    if (any && !gpus)
        return 0;
    if (mine >= gpus && !shared) {
        cairn_fail(err, CAIRN_ELACK, "rank %d on %s needs a GPU of its own, but there %s %zu", comm_rank(c),
                   comm_host(c, comm_rank(c)), gpus == 1 ? "is only" : "are only", gpus);
        return cairn_hint(err, "start %zu ranks there, or --device cpu", gpus);
    }
    mine = gpus ? mine % gpus : 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].api != GPU_API_HOST && (any || str_starts(list[i].name, asked)) && !mine--) {
            *out = arena_printf(a, "%s", list[i].name);
            return 0;
        }
    return 0;
}
