/* SPDX-License-Identifier: Apache-2.0
 * A view of a series as JSON.  Its text is written here and not through values of base/json.h: it may have a
 * hundred thousand numbers. */
#include "base/cleanup.h"
#include "base/json.h"
#include "web/run_series_inside.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

enum { DIGITS = 9, NUMBER_BYTES = 32 }; /* nine digits: enough for any float */

static char *put_uint(char *to, uint64_t v)
{
    char text[24];
    size_t n = 0;
    do {
        text[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n)
        *to++ = text[--n];
    return to;
}

/* 1e-4 ≤ v < 1e9, as most values are: nine digits with a point. */
static char *put_fixed(char *to, double v)
{
    static const double power[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13
    };
    int before = 0; /* digits before the point */
    while (v >= power[before])
        before++;
    int zeros = 0; /* after it, before the first digit */
    while (!before && v * power[zeros + 1] < 1)
        zeros++;
    int after = DIGITS - before + zeros;
    char text[24];
    int n = (int)(put_uint(text, (uint64_t)(v * power[after] + 0.5)) - text), digits = after;
    while (digits && n > 1 && text[n - 1] == '0')
        n--, digits--;
    if (n <= digits)
        *to++ = '0';
    for (int i = 0; i < n - digits; i++)
        *to++ = text[i];
    if (digits)
        *to++ = '.';
    for (int i = n; i < digits; i++)
        *to++ = '0';
    for (int i = n > digits ? n - digits : 0; i < n; i++)
        *to++ = text[i];
    return to;
}

static char *put_number(char *to, double v)
{
    if (!isfinite(v)) {
        memcpy(to, "null", 4);
        return to + 4;
    }
    if (v < 0) {
        *to++ = '-';
        v = -v;
    }
    if (v < 1e15 && v == (double)(uint64_t)v)
        return put_uint(to, (uint64_t)v);
    if (v >= 1e-4 && v < 1e9)
        return put_fixed(to, v);
    return to + snprintf(to, NUMBER_BYTES, "%.*g", DIGITS, v);
}

/* Room for n numbers and their commas. */
static char *reserve(struct str *out, size_t n)
{
    size_t want = out->len + n * NUMBER_BYTES + 64;
    if (out->cap < want) {
        char *bigger = realloc(out->s, want * 2);
        if (!bigger)
            abort();
        out->s = bigger;
        out->cap = want * 2;
    }
    return out->s + out->len;
}

static void wrote(struct str *out, char *end)
{
    *end = '\0';
    out->len = (size_t)(end - out->s);
}

/* ---- groups: points that share a place in the chart ---- */

struct groups {
    size_t first, end; /* points */
    size_t size, n;
};

/* The first point of at least that step. */
static size_t find_step(const struct run_series *s, uint64_t step)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->step[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct groups divide(const struct run_series *s, const struct run_series_view *v)
{
    struct groups g = { .first = find_step(s, v->from),
                        .end = v->to == UINT64_MAX ? s->n : find_step(s, v->to + 1),
                        .size = 1 };
    if (g.first >= g.end || !v->points)
        return (struct groups){ .size = 1 };
    g.size = (g.end - g.first + v->points - 1) / v->points;
    g.n = (g.end - g.first + g.size - 1) / g.size;
    return g;
}

static size_t end_of(const struct groups *g, size_t i)
{
    size_t end = g->first + (i + 1) * g->size;
    return end < g->end ? end : g->end;
}

static void add_steps(const struct run_series *s, const struct groups *g, struct str *out)
{
    char *at = reserve(out, g->n);
    for (size_t i = 0; i < g->n; i++) {
        if (i)
            *at++ = ',';
        at = put_uint(at, s->step[end_of(g, i) - 1]);
    }
    wrote(out, at);
}

enum field { MIN, MAX, MEAN };

static double field_of(const struct pyramid_node *k, enum field which)
{
    if (!k->n)
        return NAN;
    return which == MIN ? (double)k->min : which == MAX ? (double)k->max : k->sum / k->n;
}

static int add_metric(struct run_series *s, enum metric m, const struct groups *g, struct str *out,
                      struct cairn_error *err)
{
    static const char *const names[] = { [MIN] = "min", [MAX] = "max", [MEAN] = "mean" };
    CLEANUP(mem_free) struct pyramid_node *node = malloc((g->n + 1) * sizeof(*node));
    if (!node)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu points", g->n);
    for (size_t i = 0; i < g->n; i++)
        if (pyramid_read(&s->metric[m], g->first + i * g->size, end_of(g, i), &node[i], err))
            return -1;
    str_addf(out, "\"%s\":{", metric_key(m));
    for (int f = MIN; f <= MEAN; f++) {
        str_addf(out, "%s\"%s\":[", f ? "," : "", names[f]);
        char *at = reserve(out, g->n);
        for (size_t i = 0; i < g->n; i++) {
            if (i)
                *at++ = ',';
            at = put_number(at, field_of(&node[i], (enum field)f));
        }
        wrote(out, at);
        str_add(out, "]");
    }
    str_add(out, "}");
    return 0;
}

static void add_events(const struct run_series *s, const struct run_series_view *v, struct str *out)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    struct json *list = json_add_array(top, "events");
    for (size_t i = 0; i < s->n_events; i++) {
        const struct run_series_event *e = &s->event[i];
        if (e->step < v->from || e->step > v->to)
            continue;
        struct json *o = json_add_object(list, NULL);
        json_add_int(o, "step", (int64_t)e->step);
        json_add_text(o, "event", e->event);
        json_add_text(o, "note", e->note);
    }
    CLEANUP(mem_free) char *text = json_to_short(list);
    str_add(out, text);
}

int run_series_write(struct run_series *s, const struct run_series_view *v, struct str *out,
                     struct cairn_error *err)
{
    struct groups g = divide(s, v);
    bool any = false;
    str_add(out, "{\"schema\":1,\"step\":[");
    add_steps(s, &g, out);
    str_add(out, "],\"metrics\":{");
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (!(v->metrics >> i & 1) || (v->only_known && (!g.n || s->metric[i].n <= g.first)))
            continue;
        if (any)
            str_add(out, ",");
        any = true;
        if (add_metric(s, (enum metric)i, &g, out, err))
            return -1;
    }
    str_add(out, "},\"events\":");
    add_events(s, v, out);
    str_addf(out, ",\"last_step\":%" PRIu64 "}", s->n ? s->step[s->n - 1] : 0);
    return 0;
}
