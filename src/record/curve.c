/* SPDX-License-Identifier: Apache-2.0 */
#include "record/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *new_doubles(size_t n)
{
    double *p = calloc(n ? n : 1, sizeof(*p));
    if (!p) {
        fputs("cairn: out of memory (curve)\n", stderr);
        abort();
    }
    return p;
}

struct curve curve_of(const struct series *s, enum metric which, double unit)
{
    struct curve c = { new_doubles(s->n), new_doubles(s->n), 0 };
    for (size_t i = 0; i < s->n; i++)
        if (step_record_has(&s->point[i], which)) {
            c.step[c.n] = (double)s->point[i].step;
            c.value[c.n++] = s->point[i].value[which] / unit;
        }
    return c;
}

void curve_release(struct curve *c)
{
    free(c->step);
    free(c->value);
    *c = (struct curve){ 0 };
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The 90th percentile; a long curve is sampled at some thousand values. */
static double usual_most(const struct curve *c)
{
    enum { ENOUGH = 8192 };
    CLEANUP(mem_free) double *some = new_doubles(ENOUGH + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i += c->n / ENOUGH + 1)
        if (isfinite(c->value[i]))
            some[n++] = c->value[i];
    qsort(some, n, sizeof(*some), compare);
    return n ? some[(n - 1) - (n - 1) / 50] : INFINITY;
}

struct range curve_range(const struct curve *c)
{
    struct range r = { INFINITY, -INFINITY };
    for (size_t i = 0; i < c->n; i++)
        if (isfinite(c->value[i])) {
            r.lo = fmin(r.lo, c->value[i]);
            r.hi = fmax(r.hi, c->value[i]);
        }
    double usual = usual_most(c);
    if (usual > r.lo && r.hi - r.lo > 20 * (usual - r.lo))
        r.hi = r.lo + 1.5 * (usual - r.lo);
    return r;
}

/* The sum over a sliding window. */
struct sum {
    const double *values;
    double total;
    size_t count, begin, end; /* end is one past the last */
};

static void change(struct sum *s, double v, int by)
{
    if (!isfinite(v))
        return;
    s->total += by * v;
    s->count += (size_t)by;
}

static void move(struct sum *s, size_t begin, size_t end)
{
    while (s->end < end)
        change(s, s->values[s->end++], 1);
    while (s->begin < begin)
        change(s, s->values[s->begin++], -1);
}

static void smooth(const double *values, size_t n, size_t window, double *out)
{
    struct sum s = { .values = values };
    for (size_t i = 0; i < n; i++) {
        size_t half = window / 2 < i ? window / 2 : i;
        if (i % window == 0) /* start over now and then: a huge value makes the sum inexact */
            s = (struct sum){ .values = values, .begin = i - half, .end = i - half };
        move(&s, i - half, i + half + 1 < n ? i + half + 1 : n);
        out[i] = isfinite(values[i]) && s.count ? s.total / (double)s.count : NAN;
    }
}

size_t curve_window(const struct curve *c)
{
    return c->n < 40 ? 1 : c->n / 80 * 2 + 1;
}

struct curve curve_mean(const struct curve *c, size_t window)
{
    struct curve mean = { new_doubles(c->n), new_doubles(c->n), c->n };
    CLEANUP(mem_free) double *clipped = new_doubles(c->n);
    struct range r = curve_range(c);
    for (size_t i = 0; i < c->n; i++)
        clipped[i] = isfinite(c->value[i]) && c->value[i] > r.hi ? r.hi : c->value[i];
    smooth(clipped, c->n, window ? window : 1, mean.value);
    memcpy(mean.step, c->step, c->n * sizeof(*c->step));
    return mean;
}
