/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/torch_gather.h"

#include <stdlib.h>
#include <string.h>

enum { RUN_BYTES = 4096 }; /* rows of at least this size are read one by one */

/* A walk over the elements of a tensor in the order of its shape. */
struct walk {
    const struct st_tensor *t;
    const struct torch_strided *how;
    uint64_t index[ST_RANK_MAX];
    uint64_t place; /* of the present element in the storage, from the tensor's first */
};

static void walk_start(struct walk *w, const struct st_tensor *t, const struct torch_strided *how,
                       uint64_t first)
{
    w->t = t;
    w->how = how;
    w->place = 0;
    for (int i = t->rank; i-- > 0; first /= t->shape[i]) {
        w->index[i] = first % t->shape[i];
        w->place += w->index[i] * how->stride[i];
    }
}

/* Steps over n elements of dimension d, of which at least n are left before its end. */
static void walk_step(struct walk *w, int d, uint64_t n)
{
    w->index[d] += n;
    w->place += n * w->how->stride[d];
    for (; d > 0 && w->index[d] == w->t->shape[d]; d--) {
        w->place += w->how->stride[d - 1] - w->index[d] * w->how->stride[d];
        w->index[d] = 0;
        w->index[d - 1]++;
    }
}

/* Rows that lie in one piece are read one by one. */
static int read_rows(const struct torch_bytes *f, struct walk *w, uint64_t n, char *into,
                     struct cairn_error *err)
{
    int last = w->t->rank - 1;
    size_t size = w->how->size;
    while (n) {
        uint64_t left = w->t->shape[last] - w->index[last], run = n < left ? n : left;
        if (file_read_at(f->fd, f->path, into, run * size, w->how->at + w->place * size, err))
            return -1;
        walk_step(w, last, run);
        into += run * size;
        n -= run;
    }
    return 0;
}

/* Elements that lie anywhere are gathered box by box: part of one dimension, and all of those below it.
 * Within a box the storage is walked from its start to its end, whatever the order of the elements, so that
 * no byte is read twice. */
struct axis {
    uint64_t n;        /* how many */
    uint64_t from, to; /* the step in the storage, and in the output; elements */
};

struct gather {
    const struct torch_bytes *f;
    const struct torch_strided *how;
    struct axis axes[ST_RANK_MAX]; /* the smallest step in the storage first */
    int rank;
    uint64_t end;      /* of the box in the storage; elements from the tensor's first */
    char *window;      /* bytes of the storage */
    uint64_t at, held; /* which; elements */
    bool ahead;        /* more than a run is worth reading at once */
};

enum { WINDOW_BYTES = 256 << 10, GAP_BYTES = 4096 };

static int by_step(const void *a, const void *b)
{
    const struct axis *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The elements from index[d] on, n of them along dimension d. */
static void gather_start(struct gather *g, const struct walk *w, int d, uint64_t n)
{
    uint64_t to = 1;
    g->rank = 0;
    g->end = w->place + 1;
    g->held = 0;
    for (int i = w->t->rank; i-- > d;) {
        g->axes[g->rank++] = (struct axis){ i == d ? n : w->t->shape[i], w->how->stride[i], to };
        to *= w->t->shape[i];
    }
    for (int i = 0; i < g->rank; i++)
        g->end += (g->axes[i].n - 1) * g->axes[i].from;
    qsort(g->axes, (size_t)g->rank, sizeof(*g->axes), by_step);
    uint64_t run = (g->axes[0].n - 1) * g->axes[0].from + 1;
    g->ahead = g->rank > 1 && g->axes[1].from < run + GAP_BYTES / g->how->size;
}

/* `span` elements from `place` on are in the window then. */
static int gather_hold(struct gather *g, uint64_t place, uint64_t span, struct cairn_error *err)
{
    size_t size = g->how->size;
    if (place >= g->at && place + span <= g->at + g->held)
        return 0;
    uint64_t n = g->ahead ? WINDOW_BYTES / size : span, left = g->end - place;
    g->at = place;
    g->held = n < left ? n : left;
    return file_read_at(g->f->fd, g->f->path, g->window, g->held * size, g->how->at + place * size, err);
}

static void copy_strided(char *to, uint64_t to_step, const char *from, uint64_t from_step, uint64_t n,
                         size_t size)
{
#define COPY(type)                   \
    for (uint64_t i = 0; i < n; i++) \
    memcpy(to + i * to_step * size, from + i * from_step * size, sizeof(type))
    switch (size) {
    case 1:
        COPY(uint8_t);
        break;
    case 2:
        COPY(uint16_t);
        break;
    case 4:
        COPY(uint32_t);
        break;
    case 8:
        COPY(uint64_t);
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + i * to_step * size, from + i * from_step * size, size);
    }
#undef COPY
}

/* One run along the innermost axis, in parts that fit into the window. */
static int gather_run(struct gather *g, uint64_t place, char *into, struct cairn_error *err)
{
    const struct axis *a = &g->axes[0];
    size_t size = g->how->size;
    uint64_t fits = a->from ? (WINDOW_BYTES / size - 1) / a->from + 1 : a->n;
    for (uint64_t done = 0, m; done < a->n; done += m) {
        m = a->n - done < fits ? a->n - done : fits;
        if (gather_hold(g, place, (m - 1) * a->from + 1, err))
            return -1;
        copy_strided(into, a->to, g->window + (place - g->at) * size, a->from, m, size);
        place += m * a->from;
        into += m * a->to * size;
    }
    return 0;
}

/* A transposed matrix: runs of the storage are columns of the output.  TILE of them side by side, so that a
 * row gets neighbours, and not one element at a time from a cache line of its own. */
enum { TILE = 32 };

static bool gather_is_tiled(const struct gather *g)
{
    return g->rank > 1 && g->axes[0].from == 1 && g->axes[1].to == 1 && !g->ahead;
}

static void turn_tile(char *to, uint64_t to_step, const char *from, uint64_t rows, uint64_t cols, size_t size)
{
    for (uint64_t r = 0; r < rows; r++)
        copy_strided(to + r * to_step * size, 1, from + r * size, rows, cols, size);
}

static int gather_tiles(struct gather *g, uint64_t place, char *into, struct cairn_error *err)
{
    const struct axis *rows = &g->axes[0], *cols = &g->axes[1];
    size_t size = g->how->size;
    uint64_t fits = WINDOW_BYTES / size / TILE;
    for (uint64_t r = 0, m; r < rows->n; r += m) {
        m = rows->n - r < fits ? rows->n - r : fits;
        for (uint64_t c = 0, k; c < cols->n; c += k) {
            k = cols->n - c < TILE ? cols->n - c : TILE;
            for (uint64_t i = 0; i < k; i++)
                if (file_read_at(g->f->fd, g->f->path, g->window + i * m * size, m * size,
                                 g->how->at + (place + r + (c + i) * cols->from) * size, err))
                    return -1;
            turn_tile(into + (r * rows->to + c) * size, rows->to, g->window, m, k, size);
        }
    }
    return 0;
}

static int gather_box(struct gather *g, uint64_t place, char *into, struct cairn_error *err)
{
    uint64_t index[ST_RANK_MAX] = { 0 };
    bool tiled = gather_is_tiled(g);
    for (;;) {
        if ((tiled ? gather_tiles : gather_run)(g, place, into, err))
            return -1;
        int i = tiled ? 2 : 1;
        for (; i < g->rank; i++) {
            const struct axis *a = &g->axes[i];
            place += a->from;
            into += a->to * g->how->size;
            if (++index[i] < a->n)
                break;
            place -= a->n * a->from;
            into -= a->n * a->to * g->how->size;
            index[i] = 0;
        }
        if (i >= g->rank)
            return 0;
    }
}

/* The largest box that begins at the walk's element and has no more than n: its dimension, and how many along
 * that. */
static int largest_box(const struct walk *w, uint64_t n, uint64_t *along)
{
    uint64_t below = 1;
    int d = w->t->rank - 1;
    while (d > 0 && !w->index[d] && below * w->t->shape[d] <= n)
        below *= w->t->shape[d--];
    uint64_t left = w->t->shape[d] - w->index[d];
    *along = n / below < left ? n / below : left;
    return d;
}

static int read_scattered(const struct torch_bytes *f, struct walk *w, uint64_t n, char *into,
                          struct cairn_error *err)
{
    CLEANUP(mem_free) char *window = malloc(WINDOW_BYTES);
    struct gather g = { .f = f, .how = w->how, .window = window };
    if (!window)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: tensor %s: no memory", f->path, w->t->name);
    while (n) {
        uint64_t along, all = 1;
        int d = largest_box(w, n, &along);
        gather_start(&g, w, d, along);
        if (gather_box(&g, w->place, into, err))
            return -1;
        for (int i = 0; i < g.rank; i++)
            all *= g.axes[i].n;
        walk_step(w, d, along);
        into += all * w->how->size;
        n -= all;
    }
    return 0;
}

int torch_gather(const struct torch_bytes *f, const struct st_tensor *t, const struct torch_strided *how,
                 uint64_t first, uint64_t n, char *into, struct cairn_error *err)
{
    struct walk w;
    int last = t->rank - 1;
    walk_start(&w, t, how, first);
    bool rows = how->stride[last] == 1 && t->shape[last] * how->size >= RUN_BYTES;
    return (rows ? read_rows : read_scattered)(f, &w, n, into, err);
}
