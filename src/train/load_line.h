/* SPDX-License-Identifier: Apache-2.0
 * A progress bar for loading a model, on a terminal. */
#ifndef CAIRN_TRAIN_LOAD_LINE_H
#define CAIRN_TRAIN_LOAD_LINE_H

#include "base/progress.h"
#include "gpu/gpu.h"
#include <signal.h>

struct load_line {
    struct progress progress;
    struct gpu *g;
    FILE *out;
    uint64_t done; /* bytes shown; 0: no bar */
};

/* From now on large transfers show a bar, and setting *stop ends them. */
void load_line_start(struct load_line *l, struct gpu *g, FILE *out, const volatile sig_atomic_t *stop);
void load_line_end(struct load_line *l);

#endif
