/* SPDX-License-Identifier: Apache-2.0 */
#include "train/load_line.h"
#include "gpu/transfer.h"

static void close_line(struct load_line *l)
{
    if (l->done)
        progress_end(&l->progress);
    l->done = 0;
}

static void show(void *to, uint64_t done, uint64_t total)
{
    enum { LARGE = 256 << 20 };
    struct load_line *l = to;
    if (total < LARGE)
        return;
    if (done < l->done)
        close_line(l);
    if (!l->done)
        progress_start(&l->progress, l->out, "load", total);
    progress_add(&l->progress, done - l->done);
    l->done = done;
    if (done == total)
        close_line(l);
}

void load_line_start(struct load_line *l, struct gpu *g, FILE *out, const volatile sig_atomic_t *stop)
{
    *l = (struct load_line){ .g = g, .out = out };
    transfer_watch(gpu_transfer(g), show, l, stop);
}

void load_line_end(struct load_line *l)
{
    transfer_watch(gpu_transfer(l->g), NULL, NULL, NULL);
    close_line(l);
}
