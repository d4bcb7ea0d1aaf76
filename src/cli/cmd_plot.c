/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "os/terminal.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/train_list.h"
#include "record/chart.h"
#include "record/plot.h"
#include "record/runs.h"
#include "report/plot.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct options {
    const char *out;
    bool json;
    int smooth;
    bool is_log;
};

struct comparison {
    struct arena a;
    struct run_curves *runs;
    size_t n;
};

static void comparison_release(struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        series_release(&c->runs[i].series);
    arena_release(&c->a);
}

/* Runs of the same name are distinguished by their folders. */
static void name_runs(struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->runs[i].name = runs_name(c->runs[i].dir, &c->a);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = i + 1; k < c->n; k++)
            if (str_eq(c->runs[i].name, c->runs[k].name)) {
                c->runs[i].name = c->runs[i].dir;
                c->runs[k].name = c->runs[k].dir;
            }
}

static int read_runs(struct comparison *c, char **names, size_t n, struct cairn_error *err)
{
    c->runs = ARENA_NEW(&c->a, struct run_curves, n);
    for (size_t i = 0; i < n; i++) {
        struct run_curves *r = &c->runs[i];
        if (runs_find(names[i], &c->a, &r->dir, err) ||
            series_read(arena_printf(&c->a, "%s/log.jsonl", r->dir), &r->series, err))
            return -1;
        c->n++;
    }
    name_runs(c);
    return 0;
}

static void print_figure(const struct step_record *m, enum metric which, int width)
{
    if (m)
        printf(" %*.4g", width, m->value[which]);
    else
        printf(" %*s", width, "-");
}

static void print_time(const struct step_record *m)
{
    char text[32] = "-";
    long long s = m ? (long long)(m->value[METRIC_ELAPSED_S] + 0.5) : 0;
    if (m)
        snprintf(text, sizeof(text), "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    printf(" %9s\n", text);
}

static int name_width(const struct comparison *c)
{
    enum { FIGURES = 65 };
    int widest = 3, most = print_width() - FIGURES;
    for (size_t i = 0; i < c->n; i++) {
        int w = print_columns(c->runs[i].name);
        widest = w > widest ? w : widest;
    }
    return widest < most ? widest : most < 8 ? 8 : most;
}

static const enum print_color colors[] = { COLOR_CYAN, COLOR_YELLOW, COLOR_GREEN, COLOR_RED };

/* If there are more runs than colors, letters distinguish them. */
static const char *color_of(const struct comparison *c, size_t run)
{
    return c->n > ARRAY_LEN(colors) ? "" : print_color(colors[run]);
}

static void print_table(const struct comparison *c)
{
    int width = name_width(c);
    printf("\n%s  %-*s %7s %8s %8s %8s %8s %8s %9s%s\n", print_color(COLOR_BOLD), width, "RUN", "STEPS",
           "LOSS", "BEST", "VAL", "BEST VAL", "TOKENS/S", "TIME", print_color(COLOR_PLAIN));
    for (size_t i = 0; i < c->n; i++) {
        struct run_figures s = run_figures(&c->runs[i].series);
        printf("%s%c%s ", color_of(c, i), c->n > 1 ? chart_mark(i) : ' ', print_color(COLOR_PLAIN));
        print_cell(stdout, c->runs[i].name, width);
        printf(" %7" PRIu64, s.steps);
        print_figure(s.loss, METRIC_LOSS, 8);
        print_figure(s.best, METRIC_LOSS, 8);
        print_figure(s.val, METRIC_VAL_LOSS, 8);
        print_figure(s.best_val, METRIC_VAL_LOSS, 8);
        if (isfinite(s.tokens_per_s))
            printf(" %8.0f", s.tokens_per_s);
        else
            printf(" %8s", "-");
        print_time(s.time);
    }
}

static int chart_width(void)
{
    int width = print_width() - 12;
    return width < 60 ? width : 60;
}

/* A terminal has few columns, so only the smoothed curve is drawn. */
static void print_chart(const struct comparison *c, const struct options *w)
{
    CLEANUP(str_release) struct str text = { 0 };
    CLEANUP(mem_free) struct chart_line *lines = calloc(c->n, sizeof(*lines));
    if (!lines)
        abort();
    for (size_t i = 0; i < c->n; i++) {
        CLEANUP(curve_release) struct curve loss = curve_of(&c->runs[i].series, METRIC_LOSS, 1);
        size_t window = w->smooth >= 0 ? (size_t)w->smooth : curve_window(&loss);
        lines[i] = (struct chart_line){ curve_mean(&loss, window), color_of(c, i) };
    }
    struct chart chart = { .lines = lines,
                           .n = c->n,
                           .width = chart_width(),
                           .height = 12,
                           .is_log = w->is_log,
                           .utf8 = tty_knows_utf8() };
    chart_draw(&chart, &text);
    if (text.len)
        printf("%8s loss:\n", "");
    fputs(text.len ? text.s : "no loss logged\n", stdout);
    for (size_t i = 0; i < c->n; i++)
        curve_release(&lines[i].curve);
}

/* ---- memory, where the runs have told of it ---- */

enum { MEMORY_LINES = 3, EVENTS_MOST = 6, MIB = 1 << 20, GIB = 1 << 30 };
static const struct {
    enum metric metric;
    const char *words;
} memory_lines[MEMORY_LINES] = {
    { METRIC_MEM_RESERVED, "reserved" },
    { METRIC_MEM_ALLOCATED, "allocated" },
    { METRIC_MEM_HOST, "on the host" },
};

static double memory_unit(const struct comparison *c)
{
    double most = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct step_record *m = series_most(&c->runs[i].series, METRIC_MEM_RESERVED);
        most = m ? fmax(most, m->value[METRIC_MEM_RESERVED]) : most;
    }
    return most >= GIB ? GIB : MIB;
}

/* One run: each kind of memory.  Several runs: reserved memory of each. */
static size_t memory_curves(const struct comparison *c, double unit, struct chart_line *lines,
                            struct str *legend)
{
    size_t n = 0;
    for (size_t i = 0; i < MEMORY_LINES && c->n == 1; i++) {
        if (!series_last(&c->runs[0].series, memory_lines[i].metric))
            continue;
        const char *color = print_color(colors[n]);
        lines[n] = (struct chart_line){ curve_of(&c->runs[0].series, memory_lines[i].metric, unit), color };
        str_addf(legend, "  %s%c %s%s", color, chart_mark(n), memory_lines[i].words,
                 print_color(COLOR_PLAIN));
        n++;
    }
    for (size_t i = 0; i < c->n && c->n > 1; i++)
        lines[n++] =
            (struct chart_line){ curve_of(&c->runs[i].series, METRIC_MEM_RESERVED, unit), color_of(c, i) };
    if (c->n > 1)
        str_add(legend, " reserved");
    return n;
}

/* The steps with events, which are added to `list`. */
static double *marked_steps(const struct comparison *c, size_t *n, struct str *list)
{
    double *steps = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct series *s = &c->runs[i].series;
        for (size_t k = series_next_event(s, 0); k < s->n; k = series_next_event(s, k + 1)) {
            steps = realloc(steps, (*n + 1) * sizeof(*steps));
            if (!steps)
                abort();
            steps[(*n)++] = (double)s->point[k].step;
            if (*n <= EVENTS_MOST)
                str_addf(list, "%s %" PRIu64 " %s", *n > 1 ? "," : "", s->point[k].step, s->point[k].event);
            if (*n <= EVENTS_MOST && c->n > 1)
                str_addf(list, " (%c)", chart_mark(i));
        }
    }
    if (*n > EVENTS_MOST)
        str_addf(list, " and %zu more", *n - EVENTS_MOST);
    return steps;
}

static void print_memory(const struct comparison *c)
{
    CLEANUP(str_release) struct str text = { 0 }, legend = { 0 }, events = { 0 };
    CLEANUP(mem_free) struct chart_line *lines = calloc(c->n + MEMORY_LINES, sizeof(*lines));
    if (!lines)
        abort();
    double unit = memory_unit(c);
    size_t n_marks = 0, n = memory_curves(c, unit, lines, &legend);
    CLEANUP(mem_free) double *marks = marked_steps(c, &n_marks, &events);
    struct chart chart = { .lines = lines,
                           .n = n,
                           .width = chart_width(),
                           .height = 6,
                           .from_0 = true,
                           .utf8 = tty_knows_utf8(),
                           .marks = marks,
                           .n_marks = n_marks };
    chart_draw(&chart, &text);
    if (text.len)
        printf("\n%8s memory, %s:%s\n%s", "", unit == GIB ? "GiB" : "MiB", legend.s, text.s);
    if (text.len && n_marks)
        printf("%8s %s%s\n", "", chart_tip(chart.utf8), events.s);
    for (size_t i = 0; i < n; i++)
        curve_release(&lines[i].curve);
}

static int write_svg(const struct comparison *c, const struct options *w, const char *path,
                     struct cairn_error *err)
{
    CLEANUP(mem_free) struct plot_run *runs = calloc(c->n, sizeof(*runs));
    if (!runs)
        abort();
    for (size_t i = 0; i < c->n; i++)
        runs[i] = (struct plot_run){ c->runs[i].name, &c->runs[i].series };
    struct plot_options o = { w->is_log, w->smooth < 0 ? 0 : w->smooth < 1 ? 1 : (size_t)w->smooth };
    return plot_write(path, runs, c->n, &o, err);
}

static void warn_of_bad_lines(const struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->runs[i].series.bad_lines)
            fprintf(stderr, "cairn: %s/log.jsonl: ignoring %zu damaged line%s\n", c->runs[i].dir,
                    c->runs[i].series.bad_lines, c->runs[i].series.bad_lines == 1 ? "" : "s");
}

/* A single run has its own plot, which is updated if possible. */
static const char *svg_path(struct comparison *c, const struct options *w)
{
    if (w->out || w->json || c->n > 1)
        return w->out;
    return arena_printf(&c->a, "%s/loss.svg", c->runs[0].dir);
}

static int compare(char **names, size_t n, const struct options *w)
{
    CLEANUP(comparison_release) struct comparison c = { .n = 0 };
    struct cairn_error err = { 0 };
    if (read_runs(&c, names, n, &err))
        return print_error(&err);
    const char *svg = svg_path(&c, w);
    warn_of_bad_lines(&c);
    if (w->json) {
        if (svg && write_svg(&c, w, svg, &err))
            return print_error(&err);
        print_report(report_plot(c.runs, c.n, svg));
        return EXIT_FINE;
    }
    print_chart(&c, w);
    print_memory(&c);
    print_table(&c);
    if (!svg)
        return EXIT_FINE;
    if (!write_svg(&c, w, svg, &err))
        printf("\n%s\n", svg);
    else if (w->out)
        return print_error(&err);
    else
        fprintf(stderr, "cairn: cannot write the plot: %s\n", err.msg);
    return EXIT_FINE;
}

int cmd_plot(int argc, char **argv)
{
    struct options w = { .smooth = -1 };
    const struct opt_row rows[] = {
        OPT_STR('o', "out", &w.out, "FILE", "write the plot (SVG) to FILE"),
        OPT_FLAG(0, "log", &w.is_log, "use a logarithmic axis for the loss"),
        OPT_INT('s', "smooth", &w.smooth, "N",
                "smooth over N steps; 1: no smoothing (default: by the length of the run)"),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        "cairn plot [RUN...] [options]",
        "Plots loss and memory of training runs, and prints a table of results. RUN is the folder "
        "of a run, or its name in ./runs or $XDG_STATE_HOME/cairn/train; without RUN, the runs "
        "are listed. A single run is drawn to its own loss.svg, several only with --out.",
        "  cairn plot runs/gpt-tiny\n"
        "  cairn plot runs/a runs/b --out compare.svg --log\n",
        .mixed = true,
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (rest == argc && w.out)
        return options_error(argv[0], "--out needs at least one RUN");
    return rest == argc ? train_list(NULL, w.json) : compare(argv + rest, (size_t)(argc - rest), &w);
}
