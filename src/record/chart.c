/* SPDX-License-Identifier: Apache-2.0 */
#include "record/chart.h"

#include "record/axis.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int clamp(double v, int most)
{
    return !(v > 0) ? 0 : v > most ? most : (int)v; /* 0 for NaN, too */
}

char chart_mark(size_t line)
{
    return (char)('a' + line % 26);
}

const char *chart_tip(bool utf8)
{
    return utf8 ? "▲" : "^";
}

void chart_sparkline(const double *values, size_t n, bool utf8, struct str *out)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const plain[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            lo = fmin(lo, values[i]);
            hi = fmax(hi, values[i]);
        }
    for (size_t i = 0; i < n; i++) {
        bool is_known = isfinite(values[i]);
        int level = is_known && hi > lo ? clamp((values[i] / 2 - lo / 2) / (hi / 2 - lo / 2) * 7.999, 7) : 0;
        str_add(out, !is_known ? " " : utf8 ? blocks[level] : plain[level]);
    }
}

/* A cell has four quarters; bit 0 is the upper left quarter, 1 upper right, 2 lower left, 3 lower right. */
struct cell {
    unsigned char quarters;
    unsigned short line; /* the line drawn last */
};

struct field {
    const struct chart *c;
    struct axis x, y;
    struct cell *cells;
};

static bool find_ranges(const struct chart *c, struct field *f)
{
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        const struct curve *curve = &c->lines[i].curve;
        struct range r = curve_range(curve);
        if (r.lo > r.hi)
            continue;
        x0 = fmin(x0, curve->step[0]);
        x1 = fmax(x1, curve->step[curve->n - 1]);
        y0 = fmin(y0, r.lo);
        y1 = fmax(y1, r.hi);
    }
    f->x = (struct axis){ x0, x1 > x0 ? x1 : x0 + 1, false };
    f->y = axis_fit(c->from_0 ? 0 : y0, y1, c->is_log);
    f->y.lo = c->from_0 ? 0 : f->y.lo;
    return x0 <= x1;
}

static void dot(struct field *f, size_t line, int x, int y)
{
    struct cell *cell = &f->cells[y / 2 * f->c->width + x / 2];
    cell->quarters = (unsigned char)((cell->line == line ? cell->quarters : 0) | 1 << (x % 2 + y % 2 * 2));
    cell->line = (unsigned short)line;
}

/* The extremes of the values that fall into each of the columns of quarters. */
struct column {
    double least, most, last;
    bool any;
};

static void gather(const struct field *f, const struct curve *curve, struct column *columns)
{
    int most = 2 * f->c->width - 1;
    for (size_t i = 0; i < curve->n; i++) {
        double v = curve->value[i];
        if (!isfinite(v))
            continue;
        struct column *c = &columns[clamp(axis_place(&f->x, curve->step[i]) * (most + 1), most)];
        c->least = c->any ? fmin(c->least, v) : v;
        c->most = c->any ? fmax(c->most, v) : v;
        c->last = v;
        c->any = true;
    }
}

static int row_of(const struct field *f, double v)
{
    int most = 2 * f->c->height - 1;
    return most - clamp(axis_place(&f->y, v) * (most + 1), most);
}

/* A straight line from the last column with a value to this one. */
static void bridge(struct field *f, size_t line, int x0, int y0, int x1, int y1)
{
    for (int x = x0 + 1; x < x1; x++)
        dot(f, line, x, y0 + (y1 - y0) * (x - x0) / (x1 - x0));
    /* The jump within the last column. */
    int from = x1 - x0 > 1 ? y0 + (y1 - y0) * (x1 - 1 - x0) / (x1 - x0) : y0;
    for (int y = from + (from < y1) - (from > y1); y != y1; y += y < y1 ? 1 : -1)
        dot(f, line, x1, y);
}

static void draw_line(struct field *f, size_t line, struct column *columns)
{
    int last_x = -1, last_y = 0;
    for (int x = 0; x < 2 * f->c->width; x++) {
        const struct column *c = &columns[x];
        if (!c->any)
            continue;
        int top = row_of(f, c->most), bottom = row_of(f, c->least);
        int near = last_y < top ? top : last_y > bottom ? bottom : last_y;
        if (last_x >= 0)
            bridge(f, line, last_x, last_y, x, near);
        for (int y = top; y <= bottom; y++)
            dot(f, line, x, y);
        last_x = x;
        last_y = row_of(f, c->last);
    }
}

static void add_cell(const struct chart *c, const struct cell *cell, struct str *out)
{
    static const char *const blocks[16] = { " ", "▘", "▝", "▀", "▖", "▌", "▞", "▛",
                                            "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█" };
    const char *color = c->lines[cell->line].color;
    bool colored = color && *color;
    if (!cell->quarters) {
        str_add(out, " ");
    } else if (c->n > 1 && !colored) {
        str_addf(out, "%c", chart_mark(cell->line));
    } else if (!c->utf8) {
        str_addf(out, "%s*%s", colored ? color : "", colored ? "\033[0m" : "");
    } else {
        str_addf(out, "%s%s%s", colored ? color : "", blocks[cell->quarters], colored ? "\033[0m" : "");
    }
}

static void trim_end(struct str *out)
{
    while (out->len && out->s[out->len - 1] == ' ')
        out->s[--out->len] = '\0';
}

enum { LABEL_WIDTH = 8 };

static void add_rows(const struct field *f, struct str *out)
{
    const struct chart *c = f->c;
    double ticks[AXIS_TICKS_MOST];
    char label[AXIS_LABEL];
    size_t n = axis_ticks(&f->y, c->height / 2, ticks);
    for (int y = 0; y < c->height; y++) {
        const char *text = "";
        for (size_t i = 0; i < n; i++)
            if (row_of(f, ticks[i]) / 2 == y)
                text = axis_label(&f->y, ticks[i], label);
        str_addf(out, "%*s %s", LABEL_WIDTH, text, c->utf8 ? (*text ? "┤" : "│") : (*text ? "+" : "|"));
        for (int x = 0; x < c->width; x++)
            add_cell(c, &f->cells[y * c->width + x], out);
        trim_end(out);
        str_add(out, "\n");
    }
}

static bool is_marked(const struct field *f, int x)
{
    const struct chart *c = f->c;
    for (size_t i = 0; i < c->n_marks; i++)
        if (clamp(axis_place(&f->x, c->marks[i]) * c->width, c->width - 1) == x)
            return true;
    return false;
}

static void add_foot(const struct field *f, struct str *out)
{
    const struct chart *c = f->c;
    double ticks[AXIS_TICKS_MOST];
    char label[AXIS_LABEL], *labels = calloc(1, (size_t)c->width + AXIS_LABEL + 1);
    if (!labels)
        abort();
    memset(labels, ' ', (size_t)c->width + AXIS_LABEL);
    str_addf(out, "%*s %s", LABEL_WIDTH, "", c->utf8 ? "└" : "+");
    size_t n = axis_ticks(&f->x, c->width / 14 + 1, ticks), next = 0;
    int free_from = 0;
    for (int x = 0; x < c->width; x++) {
        int tick = next < n ? clamp(axis_place(&f->x, ticks[next]) * c->width, c->width - 1) : -1;
        str_add(out, is_marked(f, x) ? chart_tip(c->utf8)
                     : tick == x     ? (c->utf8 ? "┬" : "+")
                                     : (c->utf8 ? "─" : "-"));
        if (tick != x)
            continue;
        int len = (int)strlen(axis_label(&f->x, ticks[next++], label)), at = x - len / 2;
        if (at < free_from)
            continue;
        memcpy(labels + at, label, (size_t)len);
        free_from = at + len + 1;
    }
    str_addf(out, "\n%*s%s", LABEL_WIDTH + 2, "", labels);
    trim_end(out);
    str_add(out, "\n");
    free(labels);
}

void chart_draw(const struct chart *c, struct str *out)
{
    struct field f = { .c = c };
    if (!find_ranges(c, &f))
        return;
    CLEANUP(mem_free) struct cell *cells = calloc((size_t)(c->width * c->height), sizeof(*cells));
    if (!cells)
        abort();
    f.cells = cells;
    for (size_t i = 0; i < c->n; i++) {
        CLEANUP(mem_free) struct column *columns = calloc((size_t)(2 * c->width), sizeof(*columns));
        if (!columns)
            abort();
        gather(&f, &c->lines[i].curve, columns);
        draw_line(&f, i, columns);
    }
    add_rows(&f, out);
    add_foot(&f, out);
}
