/* SPDX-License-Identifier: Apache-2.0 */
#include "run/watchdog.h"

/* Tolerances: an idle Python wakes now and then, a desktop draws, and a busy GPU does not always read 100
 * %. */
static const double cpu_idle_share = 0.01;
enum { CPU_IDLE_TICKS = 2, GPU_IDLE_PERCENT = 2, GPU_PINNED_PERCENT = 99 };

void watchdog_init(struct watchdog *w, double after_s)
{
    *w = (struct watchdog){ .after_s = after_s };
}

static bool cpu_moves(const struct watchdog *w, const struct watch_sample *s)
{
    if (s->cpu_ticks < w->last.cpu_ticks)
        return true; /* a process of the tree has ended */
    double idle = (s->now_s - w->since_s) * s->ticks_per_s * cpu_idle_share;
    return (double)(s->cpu_ticks - w->last.cpu_ticks) > CPU_IDLE_TICKS + idle;
}

static bool gpu_moves(const struct watchdog *w, const struct watch_sample *s)
{
    if (s->busy_percent <= GPU_IDLE_PERCENT)
        return false;
    return s->busy_percent < GPU_PINNED_PERCENT || s->gpu_bytes != w->last.gpu_bytes;
}

bool watchdog_feed(struct watchdog *w, const struct watch_sample *s)
{
    if (!w->begun || s->output_bytes != w->last.output_bytes || cpu_moves(w, s) || gpu_moves(w, s)) {
        w->begun = true;
        w->since_s = s->now_s;
        w->last = *s;
    }
    return w->after_s > 0 && s->now_s - w->since_s >= w->after_s;
}

void watchdog_rest(struct watchdog *w)
{
    w->begun = false;
}
