/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step_watch.h"

#include "base/str.h"
#include "gpu/watch.h"
#include "os/file.h"
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Per process. */
enum { REPORTS_MOST = 10 };

static void add_memory(struct str *out, const struct step_record *m)
{
    static const struct {
        enum metric metric;
        const char *words;
    } rows[] = {
        { METRIC_MEM_BYTES, "in use on the device" }, { METRIC_MEM_ALLOCATED, "allocated by cairn" },
        { METRIC_MEM_RESERVED, "reserved" },          { METRIC_MEM_PEAK, "peak" },
        { METRIC_MEM_HOST, "on the host" },
    };
    str_addf(out, "memory after step %" PRIu64 ":", m->step);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (step_record_has(m, rows[i].metric))
            str_addf(out, " %.0f MiB %s;", m->value[rows[i].metric] / (1 << 20), rows[i].words);
    out->s[--out->len] = '\0';
    str_add(out, "\n");
}

/* Appends and closes at once: the process may be killed soon. */
static void append(const struct step_watch *w, const char *text)
{
    char path[4096], at[32];
    time_t now = time(NULL);
    struct tm tm;
    snprintf(path, sizeof(path), "%s/slow.txt", w->o.dir);
    CLEANUP(fd_close) int fd = os_open(path, OS_APPEND | OS_CREATE | OS_NO_LINK);
    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    if (fd >= 0)
        dprintf(fd, "%s %s", at, text);
}

/* Called from the watch thread. */
static void report(void *to, double spent_s, const char *call)
{
    struct step_watch *w = to;
    const char *last = gpu_last(w->o.g);
    CLEANUP(str_release) struct str brief = { 0 }, full = { 0 };
    w->is_slow = true;
    if (w->n_reported++ >= REPORTS_MOST)
        return;
    str_addf(&brief, "%s still running after %.1f s (median %.3g s)", w->what, spent_s,
             step_times_median(&w->times) * w->o.work);
    if (last)
        str_addf(&brief, "; last queued: %.96s", last); /* another thread may be changing it */
    if (call)
        str_addf(&brief, "; the driver has not answered: %.96s", call);
    str_addf(&full, "%s\n", brief.s);
    add_memory(&full, w->last);
    if (w->o.evidence)
        w->o.evidence(gpu_info(w->o.g), &brief, &full);
    str_add(&full, "\n");
    append(w, full.s);
    if (w->n_reported == REPORTS_MOST)
        str_add(&brief, "; further slow steps are not reported");
    w->o.report(w->o.to, brief.s);
}

void step_watch_begin(struct step_watch *w, const struct step_watch_options *o, uint64_t step,
                      const struct step_record *last)
{
    int limit_s = watch_limit_s();
    w->o = *o;
    w->last = last;
    w->is_slow = false;
    struct watch_work work = {
        .what = w->what, .slow_s = step_times_slow_s(&w->times, o->work, limit_s), .slow = report, .to = w
    };
    if (gpu_info(o->g)->api != GPU_API_HOST) /* restarting does not help a slow CPU */
        work.end_s = step_times_end_s(&w->times, o->work, limit_s);
    snprintf(w->what, sizeof(w->what), "step %" PRIu64, step);
    if (o->dir[0])
        watch_work_begin(&work);
}

void step_watch_end(struct step_watch *w, bool done, double seconds)
{
    char text[96];
    watch_work_end();
    if (!done)
        return;
    step_times_add(&w->times, seconds / w->o.work);
    if (!w->is_slow || w->n_reported > REPORTS_MOST)
        return;
    snprintf(text, sizeof(text), "%s ended after %.1f s\n\n", w->what, seconds);
    append(w, text);
}

void step_watch_reset(struct step_watch *w)
{
    step_times_reset(&w->times);
}
