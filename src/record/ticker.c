/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ticker.h"

#include "base/clock.h"
#include "os/terminal.h"
#include "record/chart.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const double terminal_every_s = 0.1, plain_every_s = 10;

void ticker_start(struct ticker *t, FILE *out, uint64_t total)
{
    *t = (struct ticker){ .out = out, .total = total, .shown = -1, .per_bin = 1 };
    t->terminal = out && tty_obeys(out);
    t->utf8 = tty_knows_utf8();
}

/* Merges pairs of bins. */
static void halve(struct ticker *t)
{
    for (size_t i = 0; i < TICKER_BINS / 2; i++)
        t->bin[i] = (t->bin[2 * i] + t->bin[2 * i + 1]) / 2;
    t->bins = TICKER_BINS / 2;
    t->per_bin *= 2;
}

static void add_loss(struct ticker *t, double loss)
{
    if (!isfinite(loss))
        return;
    if (t->bins == TICKER_BINS && t->in_bin == t->per_bin)
        halve(t);
    if (!t->bins || t->in_bin == t->per_bin) {
        t->bin[t->bins++] = 0;
        t->in_bin = 0;
    }
    t->in_bin++;
    double *bin = &t->bin[t->bins - 1];
    *bin += (loss - *bin) / (double)t->in_bin;
}

static void add_duration(struct str *out, double seconds)
{
    long long s = (long long)(seconds + 0.5);
    if (s >= 100 * 3600)
        str_addf(out, "%lldd %lldh", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        str_addf(out, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        str_addf(out, "%lld:%02lld", s / 60, s % 60);
}

/* "1,850" */
static void add_grouped(struct str *out, double v)
{
    char digits[32];
    int n = snprintf(digits, sizeof(digits), "%.0f", v < 1e15 ? v : 1e15);
    for (int i = 0; i < n; i++)
        str_addf(out, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
}

static void add_loss_text(struct str *out, const char *name, double v)
{
    double size = fabs(v);
    int digits = size >= 1 ? 3 : size >= 0.01 ? 4 : 6;
    str_addf(out, size < 1e6 ? "  %s %.*f" : "  %s %.*g", name, digits, v);
}

static void add_speed(struct str *out, const struct step_record *m)
{
    if (step_record_has(m, METRIC_TOKENS_PER_S) && m->value[METRIC_TOKENS_PER_S] >= 0) {
        str_add(out, "  ");
        add_grouped(out, m->value[METRIC_TOKENS_PER_S]);
        str_add(out, " tok/s");
    } else if (step_record_has(m, METRIC_S_PER_IT)) {
        str_addf(out, "  %.2f s/it", m->value[METRIC_S_PER_IT]);
    }
}

static void add_memory(struct str *out, const struct step_record *m)
{
    double mib = m->value[METRIC_MEM_ALLOCATED] / (1 << 20);
    if (step_record_has(m, METRIC_MEM_ALLOCATED))
        str_addf(out, mib < 1024 ? "  mem %.0f MiB" : "  mem %.1f GiB", mib < 1024 ? mib : mib / 1024);
}

static void add_left(struct str *out, const struct ticker *t, double seconds)
{
    uint64_t done = t->last.step + 1 - t->first;
    if (t->last.step < t->first || t->last.step >= t->total)
        return;
    double ratio =
        t->work_done > 0 ? t->work_left / t->work_done : (double)(t->total - t->last.step) / (double)done;
    str_add(out, "  ETA ");
    add_duration(out, seconds * ratio);
}

/* The newest bins, as many as fit. */
static void add_spark(struct str *out, const struct ticker *t, int width)
{
    int free_columns = width - 3 - (int)out->len; /* the line so far is ASCII */
    size_t n = free_columns < 8 ? 0 : (size_t)free_columns < t->bins ? (size_t)free_columns : t->bins;
    if (n < 2)
        return;
    str_add(out, "  ");
    chart_sparkline(t->bin + t->bins - n, n, t->utf8, out);
}

void ticker_text(const struct ticker *t, double seconds, int width, char buf[TICKER_LINE])
{
    CLEANUP(str_release) struct str line = { 0 };
    const struct step_record *m = &t->last;
    str_addf(&line, "step %" PRIu64 "/%" PRIu64, m->step, t->total);
    if (step_record_has(m, METRIC_LOSS))
        add_loss_text(&line, "loss", m->value[METRIC_LOSS]);
    if (step_record_has(m, METRIC_VAL_LOSS))
        add_loss_text(&line, "val", m->value[METRIC_VAL_LOSS]);
    add_speed(&line, m);
    add_memory(&line, m);
    add_left(&line, t, seconds);
    if ((int)line.len >= width) {
        line.len = (size_t)(width > 1 ? width - 1 : 0);
        line.s[line.len] = '\0';
    }
    if (t->terminal)
        add_spark(&line, t, width);
    snprintf(buf, TICKER_LINE, "%s", line.s);
}

static void show(struct ticker *t, double at)
{
    char text[TICKER_LINE];
    ticker_text(t, at - t->started, t->terminal ? tty_width(t->out) : TICKER_LINE - 1, text);
    fprintf(t->out, t->terminal ? "\r%s\033[K" : "%s\n", text);
    fflush(t->out);
    t->shown = at;
    t->shown_step = t->last.step;
}

/* Metrics that not every step has keep their last value. */
static void remember(struct ticker *t, const struct step_record *m)
{
    t->last.step = m->step;
    t->last.event = t->last.note = NULL;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (step_record_has(m, i))
            step_record_set(&t->last, i, m->value[i]);
}

void ticker_work(struct ticker *t, double step, double left)
{
    t->step_work = step;
    t->work_left = left;
}

void ticker_step(struct ticker *t, const struct step_record *m)
{
    if (!t->out)
        return;
    remember(t, m);
    if (step_record_has(m, METRIC_LOSS))
        add_loss(t, m->value[METRIC_LOSS]);
    double at = clock_s();
    if (t->shown < 0) { /* the first step includes warm-up and says nothing about the others */
        t->started = at;
        t->first = m->step + 1;
    } else {
        t->work_done += t->step_work;
    }
    t->step_work = 0;
    if (t->shown < 0 || at - t->shown >= (t->terminal ? terminal_every_s : plain_every_s))
        show(t, at);
}

void ticker_say(struct ticker *t, const char *fmt, ...)
{
    if (!t->out)
        return;
    va_list ap;
    va_start(ap, fmt);
    fputs(t->terminal ? "\r\033[K" : "", t->out);
    vfprintf(t->out, fmt, ap);
    fputc('\n', t->out);
    va_end(ap);
    if (t->terminal && t->shown >= 0)
        show(t, clock_s());
    fflush(t->out);
}

void ticker_end(struct ticker *t)
{
    if (t->out && t->shown >= 0) {
        if (t->terminal || t->shown_step != t->last.step)
            show(t, clock_s());
        fputs(t->terminal ? "\n" : "", t->out);
        fflush(t->out);
    }
    t->out = NULL;
}
