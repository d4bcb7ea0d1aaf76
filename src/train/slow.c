/* SPDX-License-Identifier: Apache-2.0 */
#include "train/slow.h"

#include "base/str.h"
#include "gpu/watch.h"
#include "train/job.h"
#include "os/file.h"
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

/* Of one process: who has seen so many has seen enough. */
enum { TOLD_MOST = 10 };

static void add_memory(struct str *out, const struct step_record *m)
{
    static const struct {
        enum metric metric;
        const char *words;
    } rows[] = {
        { METRIC_MEM_BYTES, "of the device in use" }, { METRIC_MEM_ALLOCATED, "of cairn's own allocated" },
        { METRIC_MEM_RESERVED, "reserved" },          { METRIC_MEM_PEAK, "at most" },
        { METRIC_MEM_HOST, "on the host" },
    };
    str_addf(out, "memory after step %" PRIu64 ":", m->step);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (step_record_has(m, rows[i].metric))
            str_addf(out, " %.0f MiB %s;", m->value[rows[i].metric] / (1 << 20), rows[i].words);
    out->s[--out->len] = '\0';
    str_add(out, "\n");
}

/* The file grows by what is added and is closed at once: the process may be ended soon. */
static void append(const struct job *j, const char *text)
{
    char path[4096], at[32];
    time_t now = time(NULL);
    struct tm tm;
    snprintf(path, sizeof(path), "%s/slow.txt", j->o->dir);
    CLEANUP(fd_close) int fd = os_open(path, OS_APPEND | OS_CREATE | OS_NO_LINK);
    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    if (fd >= 0)
        dprintf(fd, "%s %s", at, text);
}

/* From the watch's thread, while the job's own is in its step. */
static void tell(void *to, double spent_s, const char *call)
{
    struct job *j = to;
    const char *last = gpu_last(j->o->g);
    CLEANUP(str_release) struct str brief = { 0 }, full = { 0 };
    j->slow.is = true;
    if (j->slow.told++ >= TOLD_MOST)
        return;
    str_addf(&brief, "%s: no end after %.1f s, where %.3g s are usual", j->slow.what, spent_s,
             pace_median(&j->slow.pace));
    if (last)
        str_addf(&brief, "; last queued: %.96s", last); /* it may change right now */
    if (call)
        str_addf(&brief, "; the driver has not answered: %.96s", call);
    str_addf(&full, "%s\n", brief.s);
    add_memory(&full, &j->ticker.last);
    if (j->o->evidence)
        j->o->evidence(gpu_info(j->o->g), &brief, &full);
    str_add(&full, "\n");
    append(j, full.s);
    struct step_record m = { .step = j->state.step, .event = "slow-step", .note = brief.s };
    job_log(j, &m);
    job_say(j, "%s%s", brief.s, j->slow.told == TOLD_MOST ? "; of further slow steps nothing is said" : "");
}

void slow_begin(struct job *j)
{
    const struct pace *p = &j->slow.pace;
    int limit_s = watch_limit_s();
    struct watch_work w = { .what = j->slow.what, .slow_s = pace_slow_s(p, limit_s), .slow = tell, .to = j };
    if (gpu_info(j->o->g)->api !=
        GPU_API_HOST) /* the CPU is slow for reasons that a new process does not mend */
        w.end_s = pace_end_s(p, limit_s);
    j->slow.is = false;
    snprintf(j->slow.what, sizeof(j->slow.what), "step %" PRIu64, j->state.step + 1);
    if (j->metrics) /* there is a log */
        watch_work_begin(&w);
}

void slow_end(struct job *j, bool done, double seconds)
{
    char text[96];
    watch_work_end();
    if (!done)
        return;
    pace_add(&j->slow.pace, seconds);
    if (!j->slow.is || j->slow.told > TOLD_MOST)
        return;
    snprintf(text, sizeof(text), "%s ended after %.1f s\n\n", j->slow.what, seconds);
    append(j, text);
}

void slow_forget(struct job *j)
{
    pace_forget(&j->slow.pace);
}
