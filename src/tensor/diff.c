/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/diff.h"

#include "base/int.h"
#include "base/progress.h"
#include "base/thread.h"
#include "tensor/scan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A piece is one thread's work; buffers and chunks are parts of it. */
enum { PIECE = 1 << 20, BUFFER = 1 << 15, CHUNK = 2048 };

struct piece {
    size_t pair;
    uint64_t first, n;
    struct diff_result result;
};

struct job {
    const struct tensor_source *a, *b;
    struct diff_pair *pairs;
    struct piece *pieces;
    const struct diff_options *o;
};

bool diff_same_shape(const struct st_tensor *a, const struct st_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

static bool is_known(const struct st_tensor *t)
{
    return t->dtype != DTYPE_OTHER;
}

static bool can_compare(const struct st_tensor *a, const struct st_tensor *b)
{
    if (!diff_same_shape(a, b))
        return false;
    return (is_known(a) && is_known(b)) || (!strcmp(a->dtype_text, b->dtype_text) && a->bytes == b->bytes);
}

/* Elements, or bytes where the dtype is not known. */
static uint64_t units(const struct st_tensor *t)
{
    return is_known(t) ? t->elements : t->bytes;
}

static size_t unit_size(const struct st_tensor *t)
{
    return is_known(t) ? dtype_size(t->dtype) : 1;
}

static enum dtype unit_dtype(const struct st_tensor *t)
{
    return is_known(t) ? t->dtype : DTYPE_U8;
}

static void note(struct diff_result *r, uint64_t index, double a, double b, double by)
{
    struct diff_place here = { index, a, b, by };
    if (!r->differing++)
        r->first = r->worst = here;
    else if (by > r->worst.by)
        r->worst = here;
}

static double distance(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : INFINITY;
    return a == b ? 0 : fabs(a - b);
}

/* Neighbours beyond 2^53 may be one and the same double. */
static bool is_whole64(const struct st_tensor *t)
{
    return t->dtype == DTYPE_I64 || t->dtype == DTYPE_U64;
}

static void compare_chunk(const struct job *j, const struct diff_pair *p, struct diff_result *r,
                          uint64_t first, const char *a, const char *b, size_t n)
{
    double x[CHUNK], y[CHUNK];
    size_t size = unit_size(p->a);
    bool whole = is_whole64(p->a) && p->a->dtype == p->b->dtype;
    scan_widen(x, unit_dtype(p->a), a, n);
    scan_widen(y, unit_dtype(p->b), b, n);
    for (size_t i = 0; i < n; i++) {
        double by = distance(x[i], y[i]);
        if (whole && by == 0 && memcmp(a + i * size, b + i * size, size))
            by = 1;
        if (isinf(by) || by > j->o->atol + j->o->rtol * fabs(y[i]))
            note(r, first + i, x[i], y[i], by);
    }
}

static void compare_buffer(const struct job *j, const struct diff_pair *p, struct diff_result *r,
                           uint64_t first, const char *a, const char *b, uint64_t n)
{
    size_t size_a = unit_size(p->a), size_b = unit_size(p->b);
    if (unit_dtype(p->a) == unit_dtype(p->b) && !memcmp(a, b, n * size_a))
        return;
    for (uint64_t at = 0; at < n; at += CHUNK)
        compare_chunk(j, p, r, first + at, a + at * size_a, b + at * size_b, n - at < CHUNK ? n - at : CHUNK);
}

static int compare_piece(void *context, size_t i, struct cairn_error *err)
{
    struct job *j = context;
    struct piece *piece = &j->pieces[i];
    const struct diff_pair *p = &j->pairs[piece->pair];
    size_t size_a = unit_size(p->a), size_b = unit_size(p->b);
    uint64_t most = j->a->scattered || j->b->scattered ? PIECE : BUFFER;
    CLEANUP(mem_free) char *a = malloc(most * size_a);
    CLEANUP(mem_free) char *b = malloc(most * size_b);
    if (!a || !b)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to compare %s", p->a->name);
    for (uint64_t done = 0; done < piece->n;) {
        uint64_t n = piece->n - done < most ? piece->n - done : most, first = piece->first + done;
        if (source_read_bytes(j->a, p->a, first * size_a, n * size_a, a, err) ||
            source_read_bytes(j->b, p->b, first * size_b, n * size_b, b, err))
            return -1;
        compare_buffer(j, p, &piece->result, first, a, b, n);
        progress_add(j->o->progress, n * size_a);
        done += n;
    }
    return 0;
}

static uint64_t pieces_of(const struct diff_pair *p)
{
    uint64_t n = units(p->a);
    return p->compared ? div_up(n, PIECE) : 0;
}

static void cut(struct diff_pair *pairs, size_t n, struct piece *pieces)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t all = units(pairs[i].a);
        for (uint64_t at = 0; pairs[i].compared && at < all; at += PIECE)
            *pieces++ = (struct piece){ .pair = i, .first = at, .n = all - at < PIECE ? all - at : PIECE };
    }
}

static void join(struct diff_result *r, const struct diff_result *next)
{
    if (!next->differing)
        return;
    if (!r->differing)
        r->first = next->first;
    if (!r->differing || next->worst.by > r->worst.by)
        r->worst = next->worst;
    r->differing += next->differing;
}

int diff_pairs(const struct tensor_source *a, const struct tensor_source *b, struct diff_pair *pairs,
               size_t n, const struct diff_options *o, struct cairn_error *err)
{
    uint64_t n_pieces = 0;
    for (size_t i = 0; i < n; i++) {
        pairs[i].compared = can_compare(pairs[i].a, pairs[i].b);
        pairs[i].result = (struct diff_result){ 0 };
        n_pieces += pieces_of(&pairs[i]);
    }
    CLEANUP(mem_free) struct piece *pieces = calloc(n_pieces + 1, sizeof(*pieces));
    if (!pieces)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to compare %s and %s", a->path, b->path);
    cut(pairs, n, pieces);
    struct job job = { a, b, pairs, pieces, o };
    if (parallel_for(n_pieces, o->threads, compare_piece, &job, err) || source_unchanged(a, err) ||
        source_unchanged(b, err))
        return -1;
    for (uint64_t i = 0; i < n_pieces; i++)
        join(&pairs[pieces[i].pair].result, &pieces[i].result);
    return 0;
}
