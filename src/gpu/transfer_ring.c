/* SPDX-License-Identifier: Apache-2.0
 * The ring of the transfer, and copies that are checked. */
#include "os/fault.h"
#include "base/hash.h"
#include "gpu/transfer_inside.h"
#include "os/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, SLOT_LEAST = 256 << 10, PAGEABLE_SLOT = 1 << 20, COMPARED = 4 << 20, PROBED = 64 };

void transfer_note(struct transfer *t, enum transfer_rung rung, const struct cairn_error *why)
{
    if (!t->stats.rungs[rung]++)
        snprintf(t->why[rung], sizeof(t->why[rung]), "%.*s", (int)sizeof(t->why[rung]) - 1, why->msg);
}

/* ---- memory that both reach ---- */

/* Lets the kernel move the bytes: an invalid address is then an error, not a signal. */
static bool by_pipe(const int pipe_of[2], void *to, const void *from)
{
    return write(pipe_of[1], from, PROBED) == PROBED && read(pipe_of[0], to, PROBED) == PROBED;
}

/* Each side must see what the other wrote. */
static bool see_each_other(struct gpu *g, const int pipe_of[2], char *device)
{
    struct cairn_error ignored = { 0 };
    char ours[PROBED], theirs[PROBED], seen[PROBED] = { 0 };
    memset(ours, 0x5a, sizeof(ours));
    memset(theirs, 0xa5, sizeof(theirs));
    if (!by_pipe(pipe_of, device, ours) || gpu_download(g, NULL, seen, device, PROBED, &ignored) ||
        gpu_wait(g, NULL, &ignored) || memcmp(seen, ours, PROBED) ||
        gpu_upload(g, NULL, device, theirs, PROBED, &ignored) || gpu_wait(g, NULL, &ignored))
        return false;
    return by_pipe(pipe_of, seen, device) && !memcmp(seen, theirs, PROBED);
}

static bool is_reached(struct gpu *g)
{
    const char *told = getenv("CAIRN_TRANSFER");
    struct cairn_error ignored = { 0 };
    void *device;
    int pipe_of[2];
    if (g->info.api == GPU_API_HOST)
        return true;
    if (!g->info.unified || (told && !strcmp(told, "staged")) || fault_hit() || pipe(pipe_of))
        return false;
    bool seen = false;
    if (!gpu_alloc(g, GPU_MEM_DEVICE, PROBED, &device, &ignored)) {
        seen = see_each_other(g, pipe_of, device);
        gpu_free(g, GPU_MEM_DEVICE, device);
    }
    close(pipe_of[0]);
    close(pipe_of[1]);
    return seen;
}

bool transfer_is_direct(struct transfer *t)
{
    if (t->reach == UNKNOWN)
        t->reach = is_reached(t->g) ? YES : NO;
    t->stats.direct = t->reach == YES;
    return t->stats.direct;
}

/* ---- the ring ---- */

static int take(struct transfer *t, struct transfer_slot *s, size_t bytes, struct cairn_error *err)
{
    void *p;
    if (s->pinned) {
        if (gpu_alloc(t->g, GPU_MEM_STAGING, bytes, &p, err))
            return -1;
    } else if (!(p = os_aligned(PAGE, bytes))) {
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for copies of %zu bytes", t->g->info.name, bytes);
    }
    s->bytes = p;
    return 0;
}

static void give_back(struct transfer *t, struct transfer_slot *s)
{
    if (s->stream)
        t->g->backend->stream_close(t->g, s->stream);
    if (s->pinned)
        gpu_free(t->g, GPU_MEM_STAGING, s->bytes);
    else
        os_free_aligned(s->bytes);
    *s = (struct transfer_slot){ 0 };
}

/* As large as the driver allows; if it allows nothing, ordinary memory. */
static int take_first(struct transfer *t, struct transfer_slot *s, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    size_t least = t->want_bytes < SLOT_LEAST ? t->want_bytes : SLOT_LEAST;
    s->pinned = true;
    for (size_t bytes = t->want_bytes; bytes >= least; bytes /= 2) {
        struct cairn_error now = { 0 };
        if (!take(t, s, bytes, &now)) {
            t->slot_bytes = bytes;
            if (why.code)
                transfer_note(t, TRANSFER_SMALL_RING, &why);
            return 0;
        }
        why = why.code ? why : now;
        if (gpu_lost(t->g)) {
            *err = now;
            return -1;
        }
    }
    transfer_note(t, TRANSFER_PAGEABLE, &why);
    s->pinned = false;
    t->slot_bytes = PAGEABLE_SLOT;
    return take(t, s, PAGEABLE_SLOT, err);
}

static int add_slot(struct transfer *t, struct cairn_error *err)
{
    struct transfer_slot *s = &t->slots[t->n_slots];
    struct cairn_error why = { 0 };
    if (!t->n_slots) {
        if (take_first(t, s, err))
            return -1;
        (void)t->g->backend->stream_open(t->g, &s->stream, &why); /* the first one will do */
    } else {
        s->pinned = t->slots[0].pinned;
        if (take(t, s, t->slot_bytes, &why) || t->g->backend->stream_open(t->g, &s->stream, &why)) {
            give_back(t, s);
            t->full = true;
            transfer_note(t, TRANSFER_SMALL_RING, &why);
            return 0;
        }
    }
    t->n_slots++;
    t->stats.ring_bytes += t->slot_bytes;
    return 0;
}

int transfer_ring(struct transfer *t, uint64_t bytes, struct cairn_error *err)
{
    while (!t->n_slots ||
           (!t->full && t->n_slots < t->want_slots && (uint64_t)t->n_slots * t->slot_bytes < bytes))
        if (add_slot(t, err))
            return -1;
    return 0;
}

void transfer_ring_close(struct transfer *t)
{
    for (size_t i = 0; i < t->n_slots; i++)
        give_back(t, &t->slots[i]);
    give_back(t, &t->arrived);
    t->n_slots = 0;
    t->full = false;
    t->stats.ring_bytes = 0;
}

int transfer_wait(struct transfer *t, const struct transfer_slot *s, struct cairn_error *err)
{
    if (gpu_lost(t->g)) {
        *err = *gpu_lost(t->g);
        return -1;
    }
    return t->g->backend->wait(t->g, s->stream, err);
}

/* ---- copies that are checked ---- */

/* Pinned if the driver gives any. */
static int take_arrived(struct transfer *t, struct cairn_error *err)
{
    struct transfer_slot *s = &t->arrived;
    struct cairn_error ignored = { 0 };
    if (s->bytes)
        return 0;
    s->pinned = true;
    if (!take(t, s, COMPARED, &ignored))
        return 0;
    s->pinned = false;
    return take(t, s, COMPARED, err);
}

int transfer_compare(struct transfer *t, const struct transfer_run *run, struct hash *h,
                     struct cairn_error *err)
{
    if (take_arrived(t, err))
        return -1;
    char *arrived = t->arrived.bytes;
    for (size_t at = 0, n; at < run->n; at += n) {
        n = run->n - at < COMPARED ? run->n - at : COMPARED;
        if (gpu_download(t->g, NULL, arrived, run->device + at, n, err) || gpu_wait(t->g, NULL, err))
            return -1;
        if (memcmp(arrived, run->host + at, n))
            return cairn_fail(err, CAIRN_EDEVICE, "%s: %zu bytes differ between device and host",
                              t->g->info.name, n);
        if (h)
            hash_add(h, arrived, n);
    }
    return 0;
}

static int copy_in_pieces(struct transfer *t, const struct transfer_run *run, size_t most, bool down,
                          struct cairn_error *err)
{
    for (size_t at = 0, n; at < run->n; at += n) {
        n = run->n - at < most ? run->n - at : most;
        struct transfer_run piece = { run->device + at, run->host + at, n };
        int r = down ? gpu_download(t->g, NULL, piece.host, piece.device, n, err)
                     : gpu_upload(t->g, NULL, piece.device, piece.host, n, err);
        t->stats.copies++;
        if (r || gpu_wait(t->g, NULL, err) || transfer_compare(t, &piece, NULL, err))
            return -1;
    }
    return 0;
}

int transfer_again(struct transfer *t, const struct transfer_run *run, bool down, struct cairn_error *err)
{
    static const size_t most[] = { SIZE_MAX, 1 << 20, 64 << 10 };
    for (size_t i = 0; i < ARRAY_LEN(most); i++) {
        struct cairn_error ignored;
        if (i && run->n <= most[i])
            continue;
        if (i)
            transfer_note(t, TRANSFER_PIECES, err);
        if (!copy_in_pieces(t, run, most[i], down, err))
            return 0;
        if (gpu_lost(t->g))
            return -1;
        (void)gpu_wait(t->g, NULL, &ignored); /* what an error left on the stream */
    }
    transfer_note(t, TRANSFER_REFUSED, err);
    return cairn_hint(err,
                      "the device works, but refuses this copy, even alone and in pieces of %zu KiB; "
                      "`dmesg` may say why",
                      most[ARRAY_LEN(most) - 1] >> 10);
}
