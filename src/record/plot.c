/* SPDX-License-Identifier: Apache-2.0 */
#include "record/plot.h"

#include "base/file.h"
#include "record/axis.h"
#include "record/curve.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, GIB = 1 << 30 };

enum { WIDTH = 960, LEFT = 66, RIGHT = 26, TOP = 54, LEGEND_LINE = 22, MAIN_HEIGHT = 340 };
enum { MEMORY_TOP = 62, MEMORY_HEIGHT = 120, MARK_ROWS = 3, MARK_HEIGHT = 14 };
enum { SMALL_TOP = 62, SMALL_HEIGHT = 104, SMALL_GAP = 66, FOOT = 40, COLORS = 6 };

static const struct {
    const char *light, *dark;
} colors[COLORS] = {
    { "#2563eb", "#60a5fa" }, { "#ea580c", "#fb923c" }, { "#059669", "#34d399" },
    { "#c026d3", "#e879f9" }, { "#ca8a04", "#facc15" }, { "#0891b2", "#22d3ee" },
};

/* The seventh run has the first one's colour and a dashed line. */
static const char *color_class(size_t run)
{
    static const char *const classes[] = { "c0",       "c1",       "c2",       "c3",
                                           "c4",       "c5",       "c0 again", "c1 again",
                                           "c2 again", "c3 again", "c4 again", "c5 again" };
    return classes[run % ARRAY_LEN(classes)];
}

struct panel {
    double x, y, w, h;
    struct axis steps, values;
};

struct plot {
    const struct plot_run *runs;
    size_t n;
    const struct plot_options *o;
    struct str *out;
};

static void add_style(struct str *out)
{
    str_add(
        out,
        "<style>"
        "text{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#6b7280}"
        ".title{font-size:17px;font-weight:600;fill:#111827}.name{font-size:13px;fill:#374151}"
        ".back{fill:#fff}.grid{stroke:#e5e7eb}.axis{stroke:#9ca3af}.bad{stroke:#dc2626}"
        "path{fill:none;stroke-linejoin:round;stroke-linecap:round}"
        ".raw{stroke-width:1;opacity:.35}.mean{stroke-width:2.2}.small{stroke-width:1.5}"
        ".reserved{stroke-width:1.4;stroke-dasharray:7 3}.allocated{stroke-width:2}"
        ".host{stroke-width:1.8;stroke-dasharray:1 4}.mark{stroke-width:1;opacity:.8}.event{fill:#dc2626}"
        ".val{stroke-width:1.3;stroke-dasharray:4 3}circle{fill:#fff;stroke-width:2}.again{stroke-dasharray:8 4}circle.again{stroke-dasharray:none}");
    for (int i = 0; i < COLORS; i++)
        str_addf(out, ".c%d{stroke:%s}", i, colors[i].light);
    str_add(
        out,
        "@media(prefers-color-scheme:dark){"
        "text{fill:#9ca3af}.title{fill:#f3f4f6}.name{fill:#d1d5db}.back{fill:#111827}"
        ".grid{stroke:#253041}.axis{stroke:#6b7280}.bad{stroke:#f87171}.event{fill:#f87171}circle{fill:#111827}");
    for (int i = 0; i < COLORS; i++)
        str_addf(out, ".c%d{stroke:%s}", i, colors[i].dark);
    str_add(out, "}</style>\n");
}

/* Escapes text for XML. */
static void add_text(struct str *out, const char *text)
{
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, text, strlen(text));
    for (const char *p = clean.s; *p; p++) {
        if (*p == '&' || *p == '<' || *p == '>')
            str_add(out, *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : "&gt;");
        else
            str_addn(out, p, 1);
    }
}

static double place_x(const struct panel *p, double step)
{
    return p->x + axis_place(&p->steps, step) * p->w;
}

static double place_y(const struct panel *p, double v)
{
    /* The clip path hides what lies outside; clamp it, so that coordinates stay small. */
    double at = fmax(-1, fmin(2, axis_place(&p->values, v)));
    return p->y + (1 - at) * p->h;
}

static void add_axes(struct str *out, const struct panel *p, int want_x, int want_y)
{
    double ticks[AXIS_TICKS_MOST];
    char label[AXIS_LABEL];
    size_t n = axis_ticks(&p->values, want_y, ticks);
    for (size_t i = 0; i < n; i++) {
        double y = place_y(p, ticks[i]);
        str_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", p->x, y, p->x + p->w);
        str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", p->x - 8, y + 4,
                 axis_label(&p->values, ticks[i], label));
    }
    n = axis_ticks(&p->steps, want_x, ticks);
    for (size_t i = 0; i < n; i++) {
        double x = place_x(p, ticks[i]);
        str_addf(out, "<path class=\"axis\" d=\"M%.1f %.1fv5\"/>", x, p->y + p->h);
        str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, p->y + p->h + 19,
                 axis_label(&p->steps, ticks[i], label));
    }
    str_addf(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", p->x, p->y + p->h, p->x + p->w);
}

/* The points in one pixel column. */
struct column {
    double first, last, least, most;
    size_t count, next; /* next: the first point after it */
};

static struct column column_at(const struct panel *p, const struct curve *c, size_t i)
{
    struct column k = { NAN, NAN, INFINITY, -INFINITY, 0, i };
    double x = floor(place_x(p, c->step[i]));
    for (; k.next < c->n && floor(place_x(p, c->step[k.next])) == x; k.next++) {
        double v = c->value[k.next];
        if (!isfinite(v))
            continue;
        k.first = k.count++ ? k.first : v;
        k.last = v;
        k.least = fmin(k.least, v);
        k.most = fmax(k.most, v);
    }
    return k;
}

/* Position of the pen, to a tenth; level: a horizontal line to the right is pending. */
struct pen {
    double x, y;
    bool level;
};

static void pen_draw_level(struct pen *pen, struct str *out)
{
    if (pen->level)
        str_addf(out, "H%.1f", pen->x);
    pen->level = false;
}

/* A column shows the extremes of its points, so nothing visible is lost. */
static void add_curve(struct str *out, const struct panel *p, const struct curve *c, const char *class,
                      size_t run)
{
    struct pen pen = { 0 };
    bool any = false;
    for (size_t i = 0, next; i < c->n; i = next) {
        struct column k = column_at(p, c, i);
        next = k.next;
        if (!k.count)
            continue;
        bool rises = k.last > k.first;
        double x = place_x(p, c->step[i]), from = round(10 * place_y(p, rises ? k.least : k.most)) / 10;
        x = k.count == 1 ? x : floor(x) + 0.5;
        if (any && from == pen.y && k.least == k.most) {
            pen = (struct pen){ x, from, true };
            continue;
        }
        if (!any)
            str_addf(out, "<path class=\"%s %s\" d=\"M", class, color_class(run));
        pen_draw_level(&pen, out);
        str_addf(out, "%s%.1f %.1f", any ? "L" : "", x, from);
        pen = (struct pen){ x, round(10 * place_y(p, rises ? k.most : k.least)) / 10, false };
        if (k.least < k.most)
            str_addf(out, "V%.1f", pen.y);
        any = true;
    }
    pen_draw_level(&pen, out);
    if (any)
        str_add(out, "\"/>\n");
}

/* Already smooth, so one point per column is enough. */
static void add_mean(struct str *out, const struct panel *p, const struct curve *c, size_t run)
{
    double drawn = -INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        double x = place_x(p, c->step[i]);
        if (!isfinite(c->value[i]) || (x < drawn + 1 && i + 1 < c->n))
            continue;
        if (drawn < 0)
            str_addf(out, "<path class=\"mean %s\" d=\"M", color_class(run));
        str_addf(out, "%s%.1f %.1f", drawn < 0 ? "" : "L", x, place_y(p, c->value[i]));
        drawn = x;
    }
    if (drawn >= 0)
        str_add(out, "\"/>\n");
}

/* Too many validations for a circle each. */
static void add_points(struct str *out, const struct panel *p, const struct curve *c, size_t run)
{
    add_curve(out, p, c, "val", run);
    for (size_t i = 0; c->n <= 200 && i < c->n; i++)
        if (isfinite(c->value[i]))
            str_addf(
                out,
                "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>step %.0f: %.5g</title></circle>\n",
                color_class(run), place_x(p, c->step[i]), place_y(p, c->value[i]), c->step[i], c->value[i]);
}

/* A cross where the loss first is NaN or Inf. */
static void add_bad(struct str *out, const struct panel *p, const struct curve *c)
{
    size_t i = 0;
    while (i < c->n && isfinite(c->value[i]))
        i++;
    if (i == c->n)
        return;
    str_addf(
        out,
        "<path class=\"bad\" stroke-width=\"2\" d=\"M%.1f %.1fl8 8m-8 0l8 -8\"><title>step %.0f: the loss is %s"
        "</title></path>\n",
        place_x(p, c->step[i]) - 4, p->y + 4, c->step[i], isnan(c->value[i]) ? "nan" : "inf");
}

static void add_loss(const struct plot *q, const struct panel *p, size_t run)
{
    const struct series *s = q->runs[run].series;
    CLEANUP(curve_release) struct curve loss = curve_of(s, METRIC_LOSS, 1);
    CLEANUP(curve_release) struct curve val = curve_of(s, METRIC_VAL_LOSS, 1);
    size_t window = q->o->smooth ? q->o->smooth : curve_window(&loss);
    CLEANUP(curve_release) struct curve mean = curve_mean(&loss, window);
    if (window > 1)
        add_curve(q->out, p, &loss, "raw", run);
    if (window > 1)
        add_mean(q->out, p, &mean, run);
    else
        add_curve(q->out, p, &loss, "mean", run);
    add_points(q->out, p, &val, run);
    add_bad(q->out, p, &loss);
}

/* All steps of all runs; from 0 unless they start late. */
static struct axis step_axis(const struct plot *q)
{
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < q->n; i++) {
        const struct series *s = q->runs[i].series;
        if (s->n) {
            lo = fmin(lo, (double)s->point[0].step);
            hi = fmax(hi, (double)s->point[s->n - 1].step);
        }
    }
    if (!(lo <= hi))
        return (struct axis){ 0, 1, false };
    return (struct axis){ lo < hi / 10 ? 0 : lo, hi > lo ? hi : lo + 1, false };
}

static struct range range_of(const struct plot *q, enum metric which, double unit)
{
    struct range all = { INFINITY, -INFINITY };
    for (size_t i = 0; i < q->n; i++) {
        CLEANUP(curve_release) struct curve c = curve_of(q->runs[i].series, which, unit);
        struct range r = curve_range(&c);
        all = (struct range){ fmin(all.lo, r.lo), fmax(all.hi, r.hi) };
    }
    return all;
}

static void begin_clip(struct str *out, const struct panel *p, const char *name)
{
    str_addf(out,
             "<clipPath id=\"%s\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>",
             name, p->x, p->y - 4, p->w + 4, p->h + 4);
    str_addf(out, "<g clip-path=\"url(#%s)\">\n", name);
}

static void add_main(const struct plot *q, double top)
{
    struct range r = range_of(q, METRIC_LOSS, 1), val = range_of(q, METRIC_VAL_LOSS, 1);
    r = (struct range){ fmin(r.lo, val.lo), fmax(r.hi, val.hi) };
    if (!(r.lo <= r.hi)) {
        str_addf(q->out, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"middle\">no loss has been logged</text>\n",
                 WIDTH / 2, top + MAIN_HEIGHT / 2.0);
        return;
    }
    struct panel p = { LEFT,        top,          WIDTH - LEFT - RIGHT,
                       MAIN_HEIGHT, step_axis(q), axis_fit(r.lo, r.hi, q->o->is_log) };
    add_axes(q->out, &p, 8, 7);
    str_addf(q->out, "<text x=\"%d\" y=\"%.0f\">loss%s</text>", LEFT, top - 9,
             p.values.is_log ? " (logarithmic)" : "");
    str_addf(q->out, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">step</text>\n", WIDTH - RIGHT,
             top + MAIN_HEIGHT + 34);
    begin_clip(q->out, &p, "main");
    for (size_t i = 0; i < q->n; i++)
        add_loss(q, &p, i);
    str_add(q->out, "</g>\n");
}

static void add_legend_entry(struct str *out, double x, double y, const char *shape, size_t run,
                             const char *text)
{
    if (!strcmp(shape, "val"))
        str_addf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>", color_class(run), x + 11,
                 y - 4);
    else
        str_addf(out, "<path class=\"%s %s\" d=\"M%.1f %.1fh22\"/>", shape, color_class(run), x, y - 4);
    str_addf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", x + 29, y);
    add_text(out, text);
    str_add(out, "</text>\n");
}

static double entry_width(const char *text)
{
    return 29 + 7.4 * (double)strlen(text) + 22;
}

/* ---- memory ---- */

/* The lines of the panel. */
static const struct {
    enum metric metric;
    const char *class, *words;
} memory_lines[] = {
    { METRIC_MEM_BYTES, "raw", "in use on the device, all processes" },
    { METRIC_MEM_RESERVED, "reserved", "reserved" },
    { METRIC_MEM_ALLOCATED, "allocated", "allocated" },
    { METRIC_MEM_HOST, "host", "on the host" },
};

/* The use by all processes is shown for a single run, and for one that has no other metric. */
static bool shows(const struct plot *q, size_t run, enum metric which)
{
    const struct series *s = q->runs[run].series;
    return series_last(s, which) &&
           (which != METRIC_MEM_BYTES || q->n == 1 || !series_last(s, METRIC_MEM_RESERVED));
}

static bool any_shows(const struct plot *q, enum metric which)
{
    for (size_t i = 0; i < q->n; i++)
        if (shows(q, i, which))
            return true;
    return false;
}

static bool has_memory(const struct plot *q)
{
    return any_shows(q, METRIC_MEM_RESERVED);
}

/* The full range: peaks matter here. */
static double most_memory(const struct plot *q)
{
    double most = 0;
    for (size_t i = 0; i < q->n; i++)
        for (size_t k = 0; k < ARRAY_LEN(memory_lines); k++) {
            const struct step_record *m = series_most(q->runs[i].series, memory_lines[k].metric);
            if (m && shows(q, i, memory_lines[k].metric))
                most = fmax(most, m->value[memory_lines[k].metric]);
        }
    return most;
}

static void add_memory_legend(const struct plot *q, double x, double y)
{
    for (size_t k = 0; k < ARRAY_LEN(memory_lines); k++)
        if (any_shows(q, memory_lines[k].metric)) {
            add_legend_entry(q->out, x, y, memory_lines[k].class, 0, memory_lines[k].words);
            x += entry_width(memory_lines[k].words);
        }
}

/* Rows of event names above the curves: one for each run that has events, as far as they fit. */
static size_t mark_rows(const struct plot *q)
{
    size_t rows = 0;
    for (size_t i = 0; i < q->n; i++)
        rows += series_next_event(q->runs[i].series, 0) < q->runs[i].series->n;
    return rows < MARK_ROWS ? rows : MARK_ROWS;
}

/* A line at each step with an event, and its name if it fits. */
static void add_marks(const struct plot *q, const struct panel *p, size_t run, size_t row)
{
    const struct series *s = q->runs[run].series;
    double drawn = -INFINITY, free_from = -INFINITY, y = p->y + 11 + (double)row * MARK_HEIGHT;
    for (size_t i = series_next_event(s, 0); i < s->n; i = series_next_event(s, i + 1)) {
        const char *event = s->point[i].event;
        double x = place_x(p, (double)s->point[i].step), width = 6.6 * (double)strlen(event) + 8;
        if (x < drawn + 1)
            continue;
        drawn = x;
        str_addf(q->out,
                 "<path class=\"mark %s\" d=\"M%.1f %.1fV%.1f\"><title>step %" PRIu64 ": %s</title></path>\n",
                 q->n > 1 ? color_class(run) : "bad", x, p->y, p->y + p->h, s->point[i].step, event);
        bool left = x + width > p->x + p->w;
        if ((left ? x - width : x) < free_from)
            continue;
        str_addf(q->out, "<text class=\"event\" x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", left ? x - 4 : x + 4, y,
                 left ? " text-anchor=\"end\"" : "", event);
        free_from = x + width;
    }
}

static void add_memory_of(const struct plot *q, const struct panel *p, size_t run, double unit)
{
    for (size_t k = 0; k < ARRAY_LEN(memory_lines); k++) {
        CLEANUP(curve_release)
        struct curve c = curve_of(q->runs[run].series, memory_lines[k].metric, unit);
        if (shows(q, run, memory_lines[k].metric))
            add_curve(q->out, p, &c, memory_lines[k].class, run);
    }
}

static void add_memory(const struct plot *q, double top)
{
    double most = most_memory(q), unit = most >= GIB ? GIB : MIB;
    size_t rows = mark_rows(q), row = 0;
    struct panel p = { LEFT,          top,          WIDTH - LEFT - RIGHT,
                       MEMORY_HEIGHT, step_axis(q), axis_fit(0, most > 0 ? most / unit : 1, false) };
    p.values.lo = 0;
    p.values.hi *= MEMORY_HEIGHT / (MEMORY_HEIGHT - (double)rows * MARK_HEIGHT);
    add_axes(q->out, &p, 8, 4);
    str_addf(q->out, "<text x=\"%d\" y=\"%.0f\">memory, %s</text>\n", LEFT, top - 9,
             most >= GIB ? "GiB" : "MiB");
    add_memory_legend(q, LEFT + 110, top - 9);
    begin_clip(q->out, &p, "memory");
    for (size_t i = 0; i < q->n; i++) {
        const struct series *s = q->runs[i].series;
        add_memory_of(q, &p, i, unit);
        if (series_next_event(s, 0) < s->n)
            add_marks(q, &p, i, row++ % MARK_ROWS);
    }
    str_add(q->out, "</g>\n");
}

/* ---- the small panels ---- */

struct small {
    enum metric metric;
    const char *title;
    double unit;
    struct range range;
};

static void add_small(const struct plot *q, const struct small *s, double x, double y, double w)
{
    struct panel p = {
        x, y, w, SMALL_HEIGHT, step_axis(q), axis_fit(fmin(0, s->range.lo), s->range.hi, false)
    };
    char clip[16];
    p.values.lo = fmin(0, s->range.lo); /* these start at 0 */
    add_axes(q->out, &p, w > 500 ? 8 : 3, 4);
    str_addf(q->out, "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", x, y - 9, s->title);
    snprintf(clip, sizeof(clip), "small%d", (int)s->metric);
    begin_clip(q->out, &p, clip);
    for (size_t i = 0; i < q->n; i++) {
        CLEANUP(curve_release) struct curve c = curve_of(q->runs[i].series, s->metric, s->unit);
        add_curve(q->out, &p, &c, "small", i);
    }
    str_add(q->out, "</g>\n");
}

/* The small panels that have data; returns how many.  One for memory if there is no large panel for it. */
static size_t choose_smalls(const struct plot *q, struct small out[3])
{
    bool giga = range_of(q, METRIC_MEM_BYTES, 1).hi >= GIB;
    const struct small all[] = {
        { METRIC_LR, "learning rate", 1, { 0, 0 } },
        { METRIC_MEM_BYTES, giga ? "memory, GiB" : "memory, MiB", giga ? GIB : MIB, { 0, 0 } },
        { METRIC_TOKENS_PER_S, "tokens/s", 1, { 0, 0 } },
    };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        out[n] = all[i];
        out[n].range = range_of(q, all[i].metric, all[i].unit);
        n += out[n].range.lo <= out[n].range.hi && !(all[i].metric == METRIC_MEM_BYTES && has_memory(q));
    }
    return n;
}

/* The legend.  One run: the kinds of line.  Several: the runs.  Returns its height. */
static double add_legend(const struct plot *q)
{
    char mean[64];
    const struct series *first = q->runs[0].series;
    CLEANUP(curve_release) struct curve loss = curve_of(first, METRIC_LOSS, 1);
    size_t window = q->o->smooth ? q->o->smooth : curve_window(&loss);
    bool thick = window > 1, val = series_last(first, METRIC_VAL_LOSS) != NULL;
    snprintf(mean, sizeof(mean), "mean of %zu steps", window);
    const char *shapes[] = { thick ? "raw" : "mean", thick ? "mean" : "val", "val" };
    const char *words[] = { "each step", thick ? mean : "validation", "validation" };
    size_t kinds = 1 + thick + val, n = q->n > 1 ? q->n : kinds;
    double x = LEFT, y = TOP;
    for (size_t i = 0; i < n; i++) {
        const char *text = q->n > 1 ? q->runs[i].name : words[i];
        if (x > LEFT && x + entry_width(text) > WIDTH) {
            x = LEFT;
            y += LEGEND_LINE;
        }
        add_legend_entry(q->out, x, y, q->n > 1 ? "mean" : shapes[i], q->n > 1 ? i : 0, text);
        x += entry_width(text);
    }
    return y - TOP + LEGEND_LINE;
}

static void add_smalls(const struct plot *q, const struct small *smalls, size_t n, double top)
{
    double w = n ? (WIDTH - LEFT - RIGHT - (double)(n - 1) * SMALL_GAP) / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        add_small(q, &smalls[i], LEFT + (double)i * (w + SMALL_GAP), top, w);
}

void plot_svg(const struct plot_run *runs, size_t n, const struct plot_options *o, struct str *out)
{
    CLEANUP(str_release) struct str body = { 0 };
    struct plot q = { runs, n, o, &body };
    struct small smalls[4];
    size_t n_smalls = choose_smalls(&q, smalls);
    double top = TOP + add_legend(&q) + 18, end = top + MAIN_HEIGHT;
    add_main(&q, top);
    if (has_memory(&q)) {
        add_memory(&q, end + MEMORY_TOP);
        end += MEMORY_TOP + MEMORY_HEIGHT;
    }
    add_smalls(&q, smalls, n_smalls, end + SMALL_TOP);
    double height = n_smalls ? end + SMALL_TOP + SMALL_HEIGHT + FOOT : end + FOOT + 8;
    str_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\">\n",
        WIDTH, height, WIDTH, height);
    add_style(out);
    str_addf(out, "<rect class=\"back\" width=\"%d\" height=\"%.0f\" rx=\"8\"/>\n", WIDTH, height);
    str_addf(out, "<text class=\"title\" x=\"%d\" y=\"28\">", LEFT);
    add_text(out, n == 1 ? runs[0].name : "training loss");
    str_add(out, "</text>\n");
    str_addn(out, body.s ? body.s : "", body.len);
    str_add(out, "</svg>\n");
}

int plot_write(const char *path, const struct plot_run *runs, size_t n, const struct plot_options *o,
               struct cairn_error *err)
{
    CLEANUP(str_release) struct str svg = { 0 };
    plot_svg(runs, n, o, &svg);
    return file_write(path, svg.s, svg.len, err);
}

int plot_write_run(const char *dir, const char *name, struct cairn_error *err)
{
    CLEANUP(series_release) struct series s = { 0 };
    CLEANUP(mem_free) char *log = NULL, *svg = NULL;
    if (asprintf(&log, "%s/log.jsonl", dir) < 0 || asprintf(&svg, "%s/loss.svg", dir) < 0)
        abort();
    if (series_read(log, &s, err))
        return -1;
    return plot_write(svg, &(struct plot_run){ name, &s }, 1, &(struct plot_options){ 0 }, err);
}
