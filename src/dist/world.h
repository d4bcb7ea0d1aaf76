/* SPDX-License-Identifier: Apache-2.0
 * Which of several processes this one is.  A launcher (mpirun, srun, torchrun) starts the same command many times, one
 * process per device, and tells each its rank in environment variables (launchers.def). */
#ifndef CAIRN_DIST_WORLD_H
#define CAIRN_DIST_WORLD_H

#include "base/error.h"
#include <stdbool.h>

enum launcher {
    LAUNCHER_NONE,
#define X(kind, ...) LAUNCHER_##kind,
#include "dist/launchers.def"
#undef X
};

enum { WORLD_HOST = 64 };

struct world {
    enum launcher launcher;
    int rank, size;             /* 0 of 1: it trains alone */
    int local_rank, local_size; /* among those of this machine; local_size 0: not told */
    char host[WORLD_HOST];      /* name of this machine */
};

/* From the environment of this process.  Fails for values that contradict each other, and names the variable. */
int world_find(struct world *out, struct cairn_error *err);

const char *launcher_name(enum launcher l);
/* Whether processes that it starts can open MPI. */
bool launcher_has_mpi(enum launcher l);

#endif
