/* SPDX-License-Identifier: Apache-2.0
 * Which frames of a clip become items. */
#include "media/dataset_parts.h"

#include "base/int.h"
#include <math.h>
#include <stdlib.h>

/* The latents of Wan hold one frame, then four at a time. */
static size_t round_frames(size_t n)
{
    return n ? (n - 1) / 4 * 4 + 1 : 0;
}

static int compare_counts(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

const size_t *dataset_frame_counts(const size_t *frames, size_t *n, struct arena *a)
{
    size_t *out = ARENA_NEW(a, size_t, *n), unique = 0;
    for (size_t i = 0; i < *n; i++)
        out[i] = round_frames(frames[i]);
    qsort(out, *n, sizeof(*out), compare_counts);
    for (size_t i = 0; i < *n; i++)
        if (!unique || out[unique - 1] != out[i])
            out[unique++] = out[i];
    *n = unique;
    return out;
}

/* ---- the rate ---- */

/* Frame i stays if its place at the lower rate is a new one. */
static bool stays(size_t i, double fps, double source)
{
    return !i || floor((double)i * fps / source) != floor((double)(i - 1) * fps / source);
}

static double rate_of(const struct dataset_source *s, const struct media_info *m)
{
    return s->source_fps > 0 ? s->source_fps : m->fps;
}

/* Frames that remain of a clip, at most `most`; their numbers if `out` is given. */
static size_t keep_frames(const struct dataset_source *s, const struct media_info *m, size_t most,
                          size_t *out)
{
    double source = rate_of(s, m);
    bool drops = s->fps > 0 && source > s->fps;
    size_t n = 0;
    if (!drops && !out)
        return at_most(m->frames, most);
    for (size_t i = 0; i < m->frames && n < most; i++) {
        if (drops && !stays(i, s->fps, source))
            continue;
        if (out)
            out[n] = i;
        n++;
    }
    return n;
}

/* ---- musubi-tuner's ways ---- */

struct cutter {
    struct arena *a;
    struct dataset_piece *piece;
    size_t n;
};

static void add_piece(struct cutter *c, size_t start, size_t n)
{
    *ARENA_PUSH(c->a, c->piece, c->n) = (struct dataset_piece){ .start = start, .n = n };
}

/* numpy.linspace(0, span, samples), truncated; a start that is there already is left out. */
static void cut_uniform(struct cutter *c, size_t span, size_t samples, size_t n)
{
    double step = samples > 1 ? (double)span / (double)(samples - 1) : 0;
    size_t before = (size_t)-1;
    for (size_t i = 0; i < samples; i++) {
        size_t start = i && i + 1 == samples ? span : (size_t)((double)i * step);
        if (start != before)
            add_piece(c, start, n);
        before = start;
    }
}

static void cut_count(struct cutter *c, const struct dataset_source *s, size_t count, size_t n)
{
    if (count < n)
        return;
    if (s->extract == DATASET_HEAD)
        add_piece(c, 0, n);
    for (size_t i = 0; s->extract == DATASET_CHUNK && i + n <= count; i += n)
        add_piece(c, i, n);
    for (size_t i = 0; s->extract == DATASET_SLIDE && i + n <= count; i += s->stride)
        add_piece(c, i, n);
    if (s->extract == DATASET_UNIFORM)
        cut_uniform(c, count - n, s->samples, n);
}

static void cut_pieces(struct cutter *c, const struct dataset_source *s, const struct media_info *m)
{
    size_t most = s->extract == DATASET_FULL   ? s->max_frames
                  : s->extract == DATASET_HEAD ? s->frames[s->n_frames - 1]
                                               : m->frames;
    size_t count = keep_frames(s, m, most, NULL), end = 0;
    if (s->extract == DATASET_FULL && count)
        add_piece(c, 0, round_frames(at_most(count, s->max_frames)));
    for (size_t i = 0; s->extract != DATASET_FULL && i < s->n_frames; i++)
        cut_count(c, s, count, s->frames[i]);
    for (size_t i = 0; i < c->n; i++)
        end = at_least(end, c->piece[i].start + c->piece[i].n);
    if (!end)
        return;
    size_t *kept = ARENA_NEW(c->a, size_t, end);
    keep_frames(s, m, end, kept);
    for (size_t i = 0; i < c->n; i++)
        c->piece[i].frames = kept + c->piece[i].start;
}

/* ---- ai-toolkit's ways ---- */

static void spread(size_t *out, size_t n, size_t last)
{
    double step = n > 1 ? (double)last / (double)(n - 1) : 0;
    for (size_t i = 0; i < n; i++)
        out[i] = at_most((size_t)rint((double)i * step), last);
}

static size_t length_at_rate(const struct dataset_source *s, const struct media_info *m)
{
    size_t n = m->fps > 0 ? (size_t)((double)m->frames / m->fps * s->fps) : m->frames;
    return s->trim_tail ? (n ? n - 1 : 0) / 4 * 4 + 1 : n / 4 * 4 + 1;
}

static void take_toolkit(struct cutter *c, const struct dataset_source *s, const struct media_info *m)
{
    bool by_length = s->extract == DATASET_LENGTH, trims = by_length && s->trim_tail;
    size_t n = by_length ? length_at_rate(s, m) : s->max_frames, last = m->frames - 1;
    double ratio = m->fps > 0 && s->fps > 0 ? m->fps / s->fps : 1;
    size_t interval = at_least((size_t)rint(ratio), 1);
    bool spreads = by_length ? s->shrink : s->extract == DATASET_SPREAD;
    size_t *out = ARENA_NEW(c->a, size_t, n);
    if (trims)
        for (size_t i = 0; i < n; i++)
            out[i] = at_most((size_t)rint((double)i * ratio), last);
    else if (spreads || m->frames < n || m->frames / interval < n)
        spread(out, n, last);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = i * interval;
    /* The VAE drops a tail that is not whole. */
    add_piece(c, out[0], round_frames(n));
    c->piece[0].frames = out;
}

size_t dataset_cut(const struct dataset_source *s, const struct media_info *m, struct arena *a,
                   struct dataset_piece **pieces, size_t *needed)
{
    struct cutter c = { .a = a };
    *needed = s->extract <= DATASET_UNIFORM ? s->frames[0] : 1;
    if (m->frames && s->extract <= DATASET_FULL)
        cut_pieces(&c, s, m);
    else if (m->frames)
        take_toolkit(&c, s, m);
    *pieces = c.piece;
    return c.n;
}
