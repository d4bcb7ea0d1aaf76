/* SPDX-License-Identifier: Apache-2.0 */
#include "web/pyramid.h"

#include "base/cleanup.h"
#include <math.h>
#include <stdlib.h>

enum { FAN = 1 << PYRAMID_FAN_BITS };

void pyramid_release(struct pyramid *p)
{
    free(p->value);
    for (int i = 0; i < PYRAMID_LEVELS; i++)
        free(p->level[i].node);
    *p = (struct pyramid){ 0 };
}

static int grow(void *array, size_t *room, size_t want, size_t size, struct cairn_error *err)
{
    void **at = array;
    size_t more = *room ? *room : 256;
    while (more < want)
        more *= 2;
    if (more == *room)
        return 0;
    void *bigger = realloc(*at, more * size);
    if (!bigger)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu points", more);
    *at = bigger;
    *room = more;
    return 0;
}

int pyramid_set(struct pyramid *p, size_t at, double value, struct cairn_error *err)
{
    if (at >= p->room && grow(&p->value, &p->room, at + 1, sizeof(*p->value), err))
        return -1;
    while (p->n <= at)
        p->value[p->n++] = NAN;
    p->value[at] = (float)value;
    return 0;
}

void pyramid_halve(struct pyramid *p)
{
    for (size_t i = 0; i < p->n; i += 2) {
        float later = i + 1 < p->n ? p->value[i + 1] : NAN;
        p->value[i / 2] = isnan(later) ? p->value[i] : later;
    }
    p->n = (p->n + 1) / 2;
    for (int i = 0; i < PYRAMID_LEVELS; i++)
        p->level[i].n = 0;
}

void pyramid_cut(struct pyramid *p, size_t n)
{
    if (n >= p->n)
        return;
    p->n = n;
    for (int i = 0; i < PYRAMID_LEVELS; i++) {
        size_t whole = n >> (PYRAMID_FAN_BITS * (i + 1));
        p->level[i].n = p->level[i].n < whole ? p->level[i].n : whole;
    }
}

static void add_value(struct pyramid_node *to, float v)
{
    if (!isfinite(v))
        return;
    to->min = to->n && to->min < v ? to->min : v;
    to->max = to->n && to->max > v ? to->max : v;
    to->sum += (double)v;
    to->n++;
}

static void add_node(struct pyramid_node *to, const struct pyramid_node *n)
{
    if (!n->n)
        return;
    to->min = to->n && to->min < n->min ? to->min : n->min;
    to->max = to->n && to->max > n->max ? to->max : n->max;
    to->sum += n->sum;
    to->n += n->n;
}

/* Nodes whose points are all here but the very last, which may still be set again. */
static int build(struct pyramid *p, struct cairn_error *err)
{
    size_t below = p->n ? p->n - 1 : 0;
    for (int i = 0; i < PYRAMID_LEVELS; i++) {
        struct pyramid_level *l = &p->level[i];
        size_t whole = below / FAN;
        if (whole > l->room && grow(&l->node, &l->room, whole, sizeof(*l->node), err))
            return -1;
        for (; l->n < whole; l->n++) {
            struct pyramid_node node = { 0 };
            for (size_t k = l->n * FAN; k < (l->n + 1) * FAN; k++)
                if (i)
                    add_node(&node, &p->level[i - 1].node[k]);
                else
                    add_value(&node, p->value[k]);
            l->node[l->n] = node;
        }
        below = l->n;
    }
    return 0;
}

int pyramid_read(struct pyramid *p, size_t from, size_t to, struct pyramid_node *out, struct cairn_error *err)
{
    if (build(p, err))
        return -1;
    *out = (struct pyramid_node){ 0 };
    to = to < p->n ? to : p->n;
    while (from < to) {
        int level = 0; /* the largest node that begins here and ends in time */
        while (level < PYRAMID_LEVELS) {
            int bits = PYRAMID_FAN_BITS * (level + 1);
            size_t size = (size_t)1 << bits;
            if (from & (size - 1) || to - from < size || from >> bits >= p->level[level].n)
                break;
            level++;
        }
        if (!level)
            add_value(out, p->value[from++]);
        else {
            add_node(out, &p->level[level - 1].node[from >> (PYRAMID_FAN_BITS * level)]);
            from += (size_t)1 << (PYRAMID_FAN_BITS * level);
        }
    }
    return 0;
}

size_t pyramid_bytes(const struct pyramid *p)
{
    size_t bytes = p->room * sizeof(*p->value);
    for (int i = 0; i < PYRAMID_LEVELS; i++)
        bytes += p->level[i].room * sizeof(*p->level[i].node);
    return bytes;
}
