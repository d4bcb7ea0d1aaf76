/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train_list.h"

#include "cli/commands.h"
#include "cli/print.h"
#include "report/runs.h"
#include "run/run_list.h"
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* "3 h" */
static const char *age_text(int64_t s, char buf[24])
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } rows[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (s >= 2 * rows[i].seconds || rows[i].seconds == 1) {
            snprintf(buf, 24, "%" PRId64 " %s", s / rows[i].seconds, rows[i].unit);
            break;
        }
    return buf;
}

static enum print_color color_of(enum run_state s)
{
    return s == RUN_CRASHED    ? COLOR_RED
           : s == RUN_RUNNING  ? COLOR_CYAN
           : s == RUN_FINISHED ? COLOR_GREEN
                               : COLOR_YELLOW;
}

/* Columns are as narrow as possible: a terminal has 80 columns, and the folder comes last. */
struct widths {
    int name, model, steps;
};

static void widen(int *width, int most, const char *text)
{
    int w = print_columns(text);
    *width = w < *width ? *width : w < most ? w : most;
}

static const char *steps_text(const struct run_entry *r, char buf[48])
{
    if (r->info.steps)
        snprintf(buf, 48, "%" PRIu64 "/%" PRIu64, r->done, r->info.steps);
    else
        snprintf(buf, 48, "%" PRIu64, r->done);
    return buf;
}

static const char *model_text(const struct run_entry *r)
{
    return r->info.model ? r->info.model : "-";
}

static struct widths widths_of(const struct run_entry *rows, size_t n)
{
    struct widths w = { 4, 5, 5 };
    char steps[48];
    for (size_t i = 0; i < n; i++) {
        widen(&w.name, 32, rows[i].name);
        widen(&w.model, 18, model_text(&rows[i]));
        widen(&w.steps, 15, steps_text(&rows[i], steps));
    }
    return w;
}

static void print_row(const struct run_entry *r, struct widths w)
{
    char steps[48], loss[24] = "-", age[24];
    if (r->has_loss)
        snprintf(loss, sizeof(loss), "%.4g", r->loss);
    print_cell(stdout, r->name, w.name);
    putchar(' ');
    print_cell(stdout, model_text(r), w.model);
    printf(" %*s %8s %s%-9s%s %7s  ", w.steps, steps_text(r, steps), loss, print_color(color_of(r->state)),
           run_state_name(r->state), print_color(COLOR_PLAIN), age_text(run_age_s(r, time(NULL)), age));
    print_padded(stdout, r->dir, 0);
    putchar('\n');
}

static void print_table(const struct run_entry *rows, size_t n)
{
    struct widths w = widths_of(rows, n);
    if (!n) {
        puts("no training runs");
        return;
    }
    printf("%s%-*s %-*s %*s %8s %-9s %7s  %s%s\n", print_color(COLOR_BOLD), w.name, "NAME", w.model, "MODEL",
           w.steps, "STEPS", "LOSS", "STATE", "AGE", "FOLDER", print_color(COLOR_PLAIN));
    for (size_t i = n; i-- > 0;) /* the newest last, above the prompt */
        print_row(&rows[i], w);
}

int train_list(const char *dir, bool json)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct run_list_options o = { .native = true, .dir = dir };
    struct cairn_error err = { 0 };
    struct run_entry *runs;
    size_t n;
    if (run_list(&o, &a, &runs, &n, &err))
        return print_error(&err);
    if (json)
        print_report(report_train_runs(runs, n, time(NULL)));
    else
        print_table(runs, n);
    return EXIT_FINE;
}
