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
    size_t piece; /* that is here or in flight; or none */
    uint64_t last_use;
    bool wanted;                          /* requested, and not handed out since */
    bool held;                            /* between offload_get and offload_done */
    bool was_used, changed;               /* so `used`, `home` were recorded */
    struct gpu_stream *by;                /* the stream that uses it */
    struct gpu_event *came, *used, *home; /* came: on `up`; home: on `down` */
};

struct offload {
    struct gpu *g;
    struct offload_array arrays[OFFLOAD_ARRAYS];
    size_t offsets[OFFLOAD_ARRAYS]; /* in a window */
    char *homes[OFFLOAD_ARRAYS];
    size_t n, pieces, n_windows;
    struct window windows[OFFLOAD_WINDOWS];
    struct gpu_stream *up, *down;
    struct gpu_staging host;
    void *device;
    uint64_t uses;
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

static int open_host(struct offload *b, struct cairn_error *err)
{
    size_t bytes = offload_host_bytes(b->arrays, b->n), at = 0;
    if (gpu_staging_open(b->g, bytes, &b->host, err))
        return err->code != CAIRN_ENOMEM
                   ? -1
                   : cairn_fail(err, CAIRN_ELACK, "no host memory to offload %zu bytes", bytes);
    memset(b->host.at, 0, bytes);
    for (size_t i = 0; i < b->n; i++) {
        b->homes[i] = (char *)b->host.at + at;
        at += align_up(b->arrays[i].bytes, ALIGN);
    }
    return 0;
}

static int open_queues(struct offload *b, struct cairn_error *err)
{
    if (gpu_stream_open(b->g, &b->up, err) || gpu_stream_open(b->g, &b->down, err))
        return -1;
    for (size_t i = 0; i < b->n_windows; i++) {
        struct window *w = &b->windows[i];
        w->piece = nothing;
        if (gpu_event_open(b->g, &w->came, err) || gpu_event_open(b->g, &w->used, err) ||
            gpu_event_open(b->g, &w->home, err))
            return -1;
    }
    return 0;
}

int offload_ready(struct offload *b, struct cairn_error *err)
{
    size_t bytes = window_bytes(b->arrays, b->n), at = 0;
    if (b->device)
        return 0;
    if (gpu_alloc(b->g, GPU_MEM_DEVICE, b->n_windows * bytes, &b->device, err))
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        b->offsets[i] = at;
        at += align_up(b->arrays[i].piece_bytes, ALIGN);
    }
    for (size_t i = 0; i < b->n_windows; i++)
        b->windows[i].at = (char *)b->device + i * bytes;
    return 0;
}

int offload_open(struct gpu *g, const struct offload_array *arrays, size_t n, struct offload **out,
                 struct cairn_error *err)
{
    assert(n > 0 && n <= OFFLOAD_ARRAYS);
    struct offload *b = calloc(1, sizeof(*b));
    if (!b)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    b->g = g;
    b->n = n;
    memcpy(b->arrays, arrays, n * sizeof(*arrays));
    b->pieces = most_pieces(arrays, n);
    b->n_windows = windows_of(b->pieces);
    if (open_queues(b, err) || open_host(b, err)) {
        offload_close(b);
        return -1;
    }
    *out = b;
    return 0;
}

void offload_close(struct offload *b)
{
    struct cairn_error ignored;
    if (!b)
        return;
    if (b->host.at)
        offload_rest(b, &ignored);
    for (size_t i = 0; i < b->n_windows; i++) {
        struct gpu_event *events[] = { b->windows[i].came, b->windows[i].used, b->windows[i].home };
        for (size_t k = 0; k < ARRAY_LEN(events); k++)
            if (events[k])
                gpu_event_close(b->g, events[k]);
    }
    if (b->up)
        gpu_stream_close(b->g, b->up);
    if (b->down)
        gpu_stream_close(b->g, b->down);
    if (b->device)
        gpu_free(b->g, GPU_MEM_DEVICE, b->device);
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
    for (size_t i = 0; i < b->n_windows; i++)
        if (b->windows[i].piece == piece)
            return &b->windows[i];
    return NULL;
}

/* The one to reuse: the longest unused of those that nobody waits for; else of all that are not in use. */
static struct window *oldest(struct offload *b)
{
    struct window *best = NULL;
    for (size_t i = 0; i < b->n_windows; i++) {
        struct window *w = &b->windows[i];
        int more = best ? (int)best->held * 2 + best->wanted - (int)w->held * 2 - w->wanted : 1;
        if (more > 0 || (more == 0 && w->last_use < best->last_use))
            best = w;
    }
    return best;
}

static int copy(struct offload *b, bool up, char *at, char *home, size_t n, struct cairn_error *err)
{
    return up ? gpu_upload(b->g, b->up, at, home, n, err) : gpu_download(b->g, b->down, home, at, n, err);
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
        char *home = b->homes[i] + from, *at = w->at + b->offsets[i];
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
    if ((w->held || w->was_used) && gpu_event_wait(b->g, b->up, w->used, err))
        return -1;
    return w->changed ? gpu_event_wait(b->g, b->up, w->home, err) : 0;
}

static int bring(struct offload *b, size_t piece, struct window *w, struct cairn_error *err)
{
    if (offload_ready(b, err) || wait_for_window(b, w, err))
        return -1;
    w->piece = piece;
    w->held = w->was_used = w->changed = false;
    if (!copy_piece(b, w, true, err) && !gpu_event_record(b->g, w->came, b->up, err))
        return 0;
    w->piece = nothing;
    return -1;
}

int offload_send(struct offload *b, size_t piece, struct cairn_error *err)
{
    assert(piece < b->pieces);
    struct window *w = find(b, piece);
    if (!w && bring(b, piece, w = oldest(b), err))
        return -1;
    w->last_use = ++b->uses;
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
    if (gpu_event_wait(b->g, b->down, w->used, err) || copy_piece(b, w, false, err) ||
        gpu_event_record(b->g, w->home, b->down, err))
        return -1;
    w->changed = true;
    return 0;
}

int offload_rest(struct offload *b, struct cairn_error *err)
{
    if (!b)
        return 0;
    if (gpu_wait(b->g, b->up, err) || gpu_wait(b->g, b->down, err))
        return -1;
    for (size_t i = 0; i < b->n_windows; i++) {
        b->windows[i].piece = nothing;
        b->windows[i].wanted = false;
    }
    return 0;
}
