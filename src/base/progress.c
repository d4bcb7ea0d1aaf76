/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include "base/clock.h"
#include "os/terminal.h"
#include <inttypes.h>

static const double terminal_every_s = 0.1, plain_every_s = 10;

void progress_start(struct progress *p, FILE *out, const char *what, uint64_t total)
{
    *p = (struct progress){ .out = out && tty_obeys(out) ? out : NULL, .what = what, .total = total };
    p->started = p->shown = clock_s();
}

static void left_text(double seconds, char *buf, size_t size)
{
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(buf, size, "%ld:%02ld:%02ld left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, size, "%ld:%02ld left", s / 60, s % 60);
}

static void count_text(const struct progress *p, uint64_t done, double seconds, char *buf, size_t size)
{
    char left[32] = "", speed[32] = "";
    double each = done > 1 ? seconds / (double)(done - 1) : 0;
    if (done > 1)
        snprintf(speed, sizeof(speed), "  %.2f s/%s  ", each, p->unit);
    if (done > 1 && done < p->total)
        left_text(each * (double)(p->total - done), left, sizeof(left));
    snprintf(buf, size, "%s  %s %" PRIu64 " of %" PRIu64 "%s%s", p->what, p->unit, done, p->total, speed,
             left);
}

void progress_text(const struct progress *p, uint64_t done, double seconds, char *buf, size_t size)
{
    if (p->unit) {
        count_text(p, done, seconds, buf, size);
        return;
    }
    double total = (double)p->total, part = p->total ? (double)done / total : 1;
    double speed = seconds > 0 ? (double)done / seconds : 0;
    char left[32] = "";
    /* Too early for an estimate. */
    if (speed > 0 && seconds >= 0.5 && done < p->total)
        left_text((total - (double)done) / speed, left, sizeof(left));
    bool small = p->total < 1000000000;
    double unit = small ? 1e6 : 1e9;
    snprintf(buf, size,
             small ? "%s %3d%%  %.0f of %.0f MB  %.0f MB/s  %s" : "%s %3d%%  %.1f of %.1f GB  %.2f GB/s  %s",
             p->what, (int)(part * 100), (double)done / unit, total / unit, speed / unit, left);
}

static void show(struct progress *p, uint64_t done, double at)
{
    char line[128];
    progress_text(p, done, at - p->started, line, sizeof(line));
    if (p->plain)
        fprintf(p->out, "%s\n", line);
    else
        fprintf(p->out, "\r%.*s\033[K", tty_width(p->out) - 1, line);
    fflush(p->out);
    p->shown = at;
}

void progress_start_count(struct progress *p, FILE *out, const char *what, const char *unit, uint64_t total)
{
    *p = (struct progress){ .out = out, .what = what, .unit = unit, .total = total };
    p->plain = out && !tty_obeys(out);
    p->started = p->shown = clock_s();
    if (out && !p->plain)
        show(p, 0, p->started);
}

void progress_add(struct progress *p, uint64_t bytes)
{
    if (!p || !p->out)
        return;
    uint64_t done = __atomic_add_fetch(&p->done, bytes, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&p->busy, true, __ATOMIC_ACQUIRE))
        return;
    double at = clock_s();
    if (p->unit && done == bytes) /* the first: it also loads and compiles */
        p->started = at;
    if (at - p->shown >= (p->plain ? plain_every_s : terminal_every_s))
        show(p, done, at);
    __atomic_store_n(&p->busy, false, __ATOMIC_RELEASE);
}

bool progress_is_stopped(const struct progress *p)
{
    return p && p->stopped && p->stopped(p->context);
}

void progress_end(struct progress *p)
{
    if (p->out && !p->plain) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
    p->out = NULL;
}
