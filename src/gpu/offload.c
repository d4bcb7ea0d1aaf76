/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/offload.h"
#include "base/int.h"
#include "gpu/transfer.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };
static const size_t nothing = SIZE_MAX;

struct window {
    char *at;
    const struct offload *of; /* whose piece it is */
    size_t piece;             /* that is here or in flight; or none */
    uint64_t last_use;
    bool wanted;                          /* requested, and not handed out since */
    bool held;                            /* between offload_get and offload_done */
    bool was_used, changed;               /* so `used`, `home` were recorded */
    struct gpu_stream *by;                /* the stream that uses it */
    struct gpu_event *came, *used, *home; /* came: on `up`; home: on `down` */
};

/* Windows and streams, which several offloads may share. */
struct windows {
    struct gpu *g;
    struct window list[OFFLOAD_WINDOWS];
    size_t n, want; /* allocated; to be allocated */
    size_t bytes;   /* of each */
    size_t users;
    struct gpu_stream *up, *down;
    void *device;
    uint64_t uses;
};

struct offload {
    struct gpu *g;
    struct offload_array arrays[OFFLOAD_ARRAYS];
    size_t offsets[OFFLOAD_ARRAYS]; /* in a window */
    char *homes[OFFLOAD_ARRAYS];
    size_t n, pieces;
    struct windows *windows;
    struct gpu_staging host;
    struct gpu_staging *own; /* of each piece, where each has memory of its own; NULL: not so */
    size_t used;             /* bytes of a piece that are copied, where each has memory of its own */
};

static size_t most_pieces(const struct offload_array *arrays, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        size_t pieces = div_up(arrays[i].bytes, arrays[i].piece_bytes);
        most = at_least(pieces, most);
    }
    return most;
}

static size_t windows_of(size_t pieces)
{
    return pieces < OFFLOAD_WINDOWS ? pieces : OFFLOAD_WINDOWS;
}

static size_t window_bytes(const struct offload_array *arrays, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += align_up(arrays[i].piece_bytes, ALIGN);
    return sum;
}

size_t offload_device_bytes(const struct offload_array *arrays, size_t n)
{
    return windows_of(most_pieces(arrays, n)) * window_bytes(arrays, n);
}

size_t offload_host_bytes(const struct offload_array *arrays, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += align_up(arrays[i].bytes, ALIGN);
    return sum;
}

/* ---- opening ---- */

static void windows_release(struct windows *v)
{
    if (!v || --v->users)
        return;
    for (size_t i = 0; i < OFFLOAD_WINDOWS; i++) {
        struct gpu_event *events[] = { v->list[i].came, v->list[i].used, v->list[i].home };
        for (size_t k = 0; k < ARRAY_LEN(events); k++)
            if (events[k])
                gpu_event_close(v->g, events[k]);
    }
    if (v->up)
        gpu_stream_close(v->g, v->up);
    if (v->down)
        gpu_stream_close(v->g, v->down);
    if (v->device)
        gpu_free(v->g, GPU_MEM_DEVICE, v->device);
    free(v);
}

static int windows_open(struct offload *b, struct cairn_error *err)
{
    struct windows *v = b->windows = calloc(1, sizeof(*v));
    if (!v)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    v->g = b->g;
    v->users = 1;
    v->bytes = window_bytes(b->arrays, b->n);
    v->want = windows_of(b->pieces);
    if (gpu_stream_open(b->g, &v->up, err) || gpu_stream_open(b->g, &v->down, err))
        return -1;
    for (size_t i = 0; i < OFFLOAD_WINDOWS; i++) {
        struct window *w = &v->list[i];
        w->piece = nothing;
        if (i < v->want && (gpu_event_open(b->g, &w->came, err) || gpu_event_open(b->g, &w->used, err) ||
                            gpu_event_open(b->g, &w->home, err)))
            return -1;
    }
    return 0;
}

static int offload_new(struct gpu *g, const struct offload_array *arrays, size_t n, struct offload *beside,
                       struct offload **out, struct cairn_error *err)
{
    assert(n > 0 && n <= OFFLOAD_ARRAYS);
    struct offload *b = calloc(1, sizeof(*b));
    size_t at = 0;
    if (!b)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    b->g = g;
    b->n = n;
    memcpy(b->arrays, arrays, n * sizeof(*arrays));
    b->pieces = most_pieces(arrays, n);
    for (size_t i = 0; i < n; i++) {
        b->offsets[i] = at;
        at += align_up(arrays[i].piece_bytes, ALIGN);
    }
    *out = b;
    if (!beside)
        return windows_open(b, err);
    assert(beside->windows->bytes >= window_bytes(arrays, n));
    b->windows = beside->windows;
    b->windows->users++;
    return 0;
}

static int open_staging(struct gpu *g, size_t bytes, struct gpu_staging *out, struct cairn_error *err)
{
    if (gpu_staging_open(g, bytes, out, err)) {
        *out = (struct gpu_staging){ 0 };
        return err->code != CAIRN_ENOMEM
                   ? -1
                   : cairn_fail(err, CAIRN_ELACK, "no host memory to offload %zu bytes", bytes);
    }
    memset(out->at, 0, bytes);
    return 0;
}

int offload_open(struct gpu *g, const struct offload_array *arrays, size_t n, struct offload **out,
                 struct cairn_error *err)
{
    struct offload *b = NULL;
    size_t at = 0;
    if (offload_new(g, arrays, n, NULL, &b, err) ||
        open_staging(g, offload_host_bytes(arrays, n), &b->host, err)) {
        offload_close(b);
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        b->homes[i] = (char *)b->host.at + at;
        at += align_up(arrays[i].bytes, ALIGN);
    }
    *out = b;
    return 0;
}

int offload_open_pieces(struct gpu *g, size_t piece_bytes, size_t pieces, struct offload *beside,
                        struct offload **out, struct cairn_error *err)
{
    struct offload *b = NULL;
    struct offload_array one = { piece_bytes * pieces, piece_bytes };
    int r = offload_new(g, &one, 1, beside, &b, err);
    if (!r && !(b->own = calloc(pieces, sizeof(*b->own))))
        r = cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (r) {
        offload_close(b);
        return -1;
    }
    b->used = piece_bytes;
    *out = b;
    return 0;
}

int offload_piece_open(struct offload *b, size_t piece, struct cairn_error *err)
{
    assert(b->own && piece < b->pieces);
    return b->own[piece].at ? 0 : open_staging(b->g, b->arrays[0].piece_bytes, &b->own[piece], err);
}

void offload_piece_close(struct offload *b, size_t piece)
{
    if (!b->own[piece].at)
        return;
    gpu_staging_close(b->g, &b->own[piece]);
    b->own[piece] = (struct gpu_staging){ 0 };
}

void *offload_piece_host(const struct offload *b, size_t piece)
{
    return b->own[piece].at;
}

void offload_set_used(struct offload *b, size_t bytes)
{
    assert(b->own && bytes <= b->arrays[0].piece_bytes);
    b->used = bytes;
}

/* Of all users: their pieces are not in windows afterwards. */
static int release_windows(struct windows *v, struct cairn_error *err)
{
    if (gpu_wait(v->g, v->up, err) || gpu_wait(v->g, v->down, err))
        return -1;
    for (size_t i = 0; i < OFFLOAD_WINDOWS; i++) {
        struct window *w = &v->list[i];
        if ((w->held || w->was_used) && gpu_wait(v->g, w->by, err))
            return -1;
        w->piece = nothing;
        w->wanted = w->held = w->was_used = w->changed = false;
    }
    if (v->device)
        gpu_free(v->g, GPU_MEM_DEVICE, v->device);
    v->device = NULL;
    v->n = 0;
    return 0;
}

int offload_set_windows(struct offload *b, size_t n, struct cairn_error *err)
{
    struct windows *v = b->windows;
    assert(n <= windows_of(b->pieces));
    v->want = n;
    return v->n > n ? release_windows(v, err) : 0;
}

int offload_ready(struct offload *b, struct cairn_error *err)
{
    struct windows *v = b->windows;
    size_t n = at_least(v->want, 1);
    if (v->n == n)
        return 0;
    if (v->device && release_windows(v, err))
        return -1;
    if (gpu_alloc(b->g, GPU_MEM_DEVICE, n * v->bytes, &v->device, err))
        return -1;
    v->n = n;
    for (size_t i = 0; i < v->n; i++)
        v->list[i].at = (char *)v->device + i * v->bytes;
    return 0;
}

void offload_close(struct offload *b)
{
    struct cairn_error ignored;
    if (!b)
        return;
    if (b->windows && b->windows->down)
        offload_rest(b, &ignored);
    windows_release(b->windows);
    for (size_t i = 0; b->own && i < b->pieces; i++)
        offload_piece_close(b, i);
    free(b->own);
    gpu_staging_close(b->g, &b->host);
    free(b);
}

size_t offload_pieces(const struct offload *b)
{
    return b->pieces;
}

void *offload_host(const struct offload *b, size_t array)
{
    return b->homes[array];
}

/* ---- copying ---- */

static struct window *find(struct offload *b, size_t piece)
{
    for (size_t i = 0; i < b->windows->n; i++) {
        struct window *w = &b->windows->list[i];
        if (w->of == b && w->piece == piece)
            return w;
    }
    return NULL;
}

/* The one to reuse: the longest unused of those that nobody waits for; else of all that are not in use. */
static struct window *oldest(struct offload *b)
{
    struct window *best = NULL;
    for (size_t i = 0; i < b->windows->n; i++) {
        struct window *w = &b->windows->list[i];
        int more = best ? (int)best->held * 2 + best->wanted - (int)w->held * 2 - w->wanted : 1;
        if (more > 0 || (more == 0 && w->last_use < best->last_use))
            best = w;
    }
    return best;
}

static int copy(struct offload *b, bool up, char *at, char *home, size_t n, struct cairn_error *err)
{
    return up ? gpu_upload(b->g, b->windows->up, at, home, n, err)
              : gpu_download(b->g, b->windows->down, home, at, n, err);
}

/* In smaller pieces if the driver refuses the whole. */
static int copy_anyhow(struct offload *b, bool up, char *at, char *home, size_t n, struct cairn_error *err)
{
    static const size_t sizes[] = { 1 << 20, 64 << 10, 4 << 10 };
    struct cairn_error why = { 0 };
    if (!copy(b, up, at, home, n, &why))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes) && !gpu_lost(b->g); i++) {
        struct cairn_error ignored;
        size_t done = 0;
        for (size_t part; done < n; done += part) {
            part = n - done < sizes[i] ? n - done : sizes[i];
            if (copy(b, up, at + done, home + done, part, &ignored))
                break;
        }
        if (done < n)
            continue;
        if (gpu_transfer(b->g))
            transfer_tell(gpu_transfer(b->g), TRANSFER_PIECES, &why);
        return 0;
    }
    *err = why;
    return -1;
}

static int copy_piece(struct offload *b, const struct window *w, bool up, struct cairn_error *err)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct offload_array *a = &b->arrays[i];
        size_t from = w->piece * a->piece_bytes;
        if (from >= a->bytes)
            continue;
        size_t n = a->bytes - from < a->piece_bytes ? a->bytes - from : a->piece_bytes;
        char *home = b->own ? b->own[w->piece].at : b->homes[i] + from, *at = w->at + b->offsets[i];
        n = b->own ? b->used : n;
        if (copy_anyhow(b, up, at, home, n, err))
            return -1;
    }
    return 0;
}

/* Waits for the window's previous piece: its work, and the download of its changes.  That download is queued
 * before this upload, so a piece that leaves this window and returns is complete. */
static int wait_for_window(struct offload *b, struct window *w, struct cairn_error *err)
{
    if (w->held && gpu_event_record(b->g, w->used, w->by, err)) /* given out in a step that failed */
        return -1;
    if ((w->held || w->was_used) && gpu_event_wait(b->g, b->windows->up, w->used, err))
        return -1;
    return w->changed ? gpu_event_wait(b->g, b->windows->up, w->home, err) : 0;
}

static int bring(struct offload *b, size_t piece, struct window *w, struct cairn_error *err)
{
    if (wait_for_window(b, w, err))
        return -1;
    w->of = b;
    w->piece = piece;
    w->held = w->was_used = w->changed = false;
    if (!copy_piece(b, w, true, err) && !gpu_event_record(b->g, w->came, b->windows->up, err))
        return 0;
    w->piece = nothing;
    return -1;
}

int offload_send(struct offload *b, size_t piece, struct cairn_error *err)
{
    assert(piece < b->pieces);
    if (offload_ready(b, err))
        return -1;
    struct window *w = find(b, piece);
    if (!w && bring(b, piece, w = oldest(b), err))
        return -1;
    w->last_use = ++b->windows->uses;
    w->wanted = true;
    return 0;
}

int offload_get(struct offload *b, size_t piece, struct gpu_stream *s, void *at[OFFLOAD_ARRAYS],
                struct cairn_error *err)
{
    struct window *w = find(b, piece);
    if (w && w->held &&
        bring(b, piece, w, err)) /* given out in a step that failed: who knows what it holds */
        return -1;
    if (offload_send(b, piece, err))
        return -1;
    w = find(b, piece);
    if (gpu_event_wait(b->g, s, w->came, err))
        return -1;
    w->wanted = false;
    w->held = true;
    w->by = s;
    for (size_t i = 0; i < b->n; i++)
        at[i] = w->at + b->offsets[i];
    return 0;
}

int offload_fresh(struct offload *b, size_t piece, struct gpu_stream *s, void *at[OFFLOAD_ARRAYS],
                  struct cairn_error *err)
{
    assert(piece < b->pieces);
    if (offload_ready(b, err))
        return -1;
    struct window *w = find(b, piece);
    w = w ? w : oldest(b);
    if (wait_for_window(b, w, err) || gpu_event_wait(b->g, s, w->came, err) ||
        ((w->held || w->was_used) && gpu_event_wait(b->g, s, w->used, err)) ||
        (w->changed && gpu_event_wait(b->g, s, w->home, err)))
        return -1;
    *w = (struct window){ .at = w->at,
                          .of = b,
                          .piece = piece,
                          .last_use = ++b->windows->uses,
                          .held = true,
                          .by = s,
                          .came = w->came,
                          .used = w->used,
                          .home = w->home };
    for (size_t i = 0; i < b->n; i++)
        at[i] = w->at + b->offsets[i];
    return 0;
}

int offload_done(struct offload *b, size_t piece, struct gpu_stream *s, bool changed, struct cairn_error *err)
{
    struct window *w = find(b, piece);
    assert(w);
    if (gpu_event_record(b->g, w->used, s, err))
        return -1;
    w->held = false;
    w->was_used = true;
    if (!changed)
        return 0;
    if (gpu_event_wait(b->g, b->windows->down, w->used, err) || copy_piece(b, w, false, err) ||
        gpu_event_record(b->g, w->home, b->windows->down, err))
        return -1;
    w->changed = true;
    return 0;
}

int offload_rest(struct offload *b, struct cairn_error *err)
{
    if (!b)
        return 0;
    if (gpu_wait(b->g, b->windows->up, err) || gpu_wait(b->g, b->windows->down, err))
        return -1;
    for (size_t i = 0; i < OFFLOAD_WINDOWS; i++) {
        struct window *w = &b->windows->list[i];
        if (w->of != b)
            continue;
        w->piece = nothing;
        w->wanted = false;
    }
    return 0;
}
