/* SPDX-License-Identifier: Apache-2.0
 * The blocks of weights: resident on the device, streamed from the host, or idle. */
#include "gpu/transfer.h"
#include "nn/weights_inside.h"
#include <assert.h>
#include <stdlib.h>

/* ---- which are streamed ---- */

static size_t reverse_bits(size_t n, size_t most)
{
    size_t out = 0;
    for (; most; most >>= 1, n >>= 1)
        out = out << 1 | (n & 1);
    return out;
}

/* The place of a block in the order in which blocks are offloaded: the last block first, then such that those
 * offloaded so far are spread evenly.  Then each has several resident blocks to come behind. */
static size_t turn_of(size_t piece, size_t pieces)
{
    size_t turn = 0, most = pieces - 1, mine = reverse_bits(most - piece, most);
    for (size_t i = 0; i < pieces; i++)
        turn += reverse_bits(i, most) < mine;
    return turn;
}

bool weights_is_streamed(const struct weights *w, size_t piece)
{
    return turn_of(piece, w->blocks.pieces) < w->streamed;
}

/* Two windows are enough where most blocks are resident. */
static size_t windows_of(size_t pieces, size_t streamed)
{
    size_t most = streamed > pieces / 2 ? OFFLOAD_WINDOWS : 2;
    return streamed < most ? streamed : most;
}

size_t weights_block_size(const struct weights_blocks *b, enum gpu_storage storage)
{
    return b->numbers * weights_kind_size(storage, b->kind);
}

size_t weights_windows_size(const struct weights_blocks *b, enum gpu_storage storage, size_t streamed)
{
    size_t bytes = weights_block_size(b, storage), n = windows_of(b->pieces, streamed);
    return n ? offload_device_bytes(&(struct offload_array){ n * bytes, bytes }, 1) : 0;
}

/* ---- memory ---- */

static size_t block_bytes(const struct weights *w)
{
    return weights_block_size(&w->blocks, w->storage);
}

void *weights_block_host(const struct weights *w, size_t piece)
{
    return w->offloaded ? offload_piece_host(w->offloaded->offload, piece) : NULL;
}

void *weights_block_device(const struct weights *w, size_t piece)
{
    if (w->block_memory[piece])
        return w->block_memory[piece];
    assert(w->offloaded && w->offloaded->piece == piece && w->offloaded->at);
    return w->offloaded->at;
}

static int open_offload(struct weights *w, const struct weights *beside, struct cairn_error *err)
{
    struct offload *other = beside && beside->offloaded && block_bytes(beside) == block_bytes(w)
                                ? beside->offloaded->offload
                                : NULL;
    if (w->offloaded)
        return 0;
    struct weights_offload *o = calloc(1, sizeof(*o));
    if (!o)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (offload_open_pieces(w->g, block_bytes(w), w->blocks.pieces, other, &o->offload, err)) {
        free(o);
        return -1;
    }
    w->offloaded = o;
    return 0;
}

static void close_offload(struct weights *w)
{
    if (w->offloaded)
        offload_close(w->offloaded->offload);
    free(w->offloaded);
    w->offloaded = NULL;
}

/* Host memory for the streamed blocks; with copies, for all of them. */
static int open_homes(struct weights *w, const struct weights *beside, struct cairn_error *err)
{
    if (!w->streamed && !w->copies)
        return 0;
    if (open_offload(w, beside, err))
        return -1;
    for (size_t i = 0; i < w->blocks.pieces; i++)
        if ((w->copies || weights_is_streamed(w, i)) && offload_piece_open(w->offloaded->offload, i, err))
            return -1;
    return 0;
}

/* Frees host memory that no block needs any more. */
static void close_homes(struct weights *w)
{
    if (!w->offloaded || w->copies)
        return;
    for (size_t i = 0; i < w->blocks.pieces; i++)
        if (!weights_is_streamed(w, i))
            offload_piece_close(w->offloaded->offload, i);
    if (!w->streamed)
        close_offload(w);
}

static int open_windows(struct weights *w, struct cairn_error *err)
{
    if (!w->offloaded)
        return 0;
    size_t n = windows_of(w->blocks.pieces, w->streamed);
    if (offload_set_windows(w->offloaded->offload, n, err))
        return -1;
    return n ? offload_ready(w->offloaded->offload, err) : 0;
}

static void free_block(struct weights *w, size_t piece)
{
    if (w->block_memory[piece])
        gpu_free(w->g, GPU_MEM_DEVICE, w->block_memory[piece]);
    w->block_memory[piece] = NULL;
}

/* Device memory for the resident blocks that have none. */
static int open_blocks(struct weights *w, struct cairn_error *err)
{
    for (size_t i = 0; i < w->blocks.pieces && !w->idle; i++)
        if (!w->block_memory[i] && !weights_is_streamed(w, i) &&
            gpu_alloc(w->g, GPU_MEM_DEVICE, block_bytes(w), &w->block_memory[i], err)) {
            w->block_memory[i] = NULL;
            return -1;
        }
    return 0;
}

int weights_open_memory(struct weights *w, const struct weights_options *o, struct cairn_error *err)
{
    if (!w->blocks.pieces)
        return 0;
    w->streamed = o->streamed < w->blocks.pieces ? o->streamed : w->blocks.pieces;
    w->copies = o->copies;
    w->idle = o->idle;
    if (!(w->block_memory = calloc(w->blocks.pieces, sizeof(*w->block_memory))))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    return open_homes(w, o->beside, err) || open_windows(w, err) || open_blocks(w, err) ? -1 : 0;
}

void weights_close_memory(struct weights *w)
{
    for (size_t i = 0; w->block_memory && i < w->blocks.pieces; i++)
        free_block(w, i);
    free(w->block_memory);
    close_offload(w);
}

/* ---- moving ---- */

/* Copies blocks between device and host: all that are on the device and not listed in `but`. */
static int copy_blocks(const struct weights *w, void *const *but, bool up, struct cairn_error *err)
{
    size_t n = 0;
    CLEANUP(mem_free) struct transfer_part *parts = calloc(w->blocks.pieces, sizeof(*parts));
    if (!parts)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < w->blocks.pieces; i++) {
        void *home = weights_block_host(w, i);
        if (!w->block_memory[i] || (but && but[i]) || !home)
            continue;
        parts[n++] = (struct transfer_part){
            .device = w->block_memory[i],
            .bytes = block_bytes(w),
            .move = up ? transfer_move_from : transfer_move_into,
            .context = home,
        };
    }
    if (!n)
        return 0;
    return up ? transfer_up(gpu_transfer(w->g), parts, n, NULL, err)
              : transfer_down(gpu_transfer(w->g), parts, n, NULL, err);
}

/* More of them to the host.  What is on the device is freed once it is there. */
static int to_host(struct weights *w, size_t streamed, const struct weights *beside, struct cairn_error *err)
{
    size_t before = w->streamed;
    w->streamed = streamed;
    if (open_homes(w, beside, err) || (!w->copies && copy_blocks(w, NULL, false, err))) {
        w->streamed = before;
        close_homes(w);
        return -1;
    }
    for (size_t i = 0; i < w->blocks.pieces; i++)
        if (weights_is_streamed(w, i))
            free_block(w, i);
    return open_windows(w, err);
}

static int to_device(struct weights *w, size_t streamed, struct cairn_error *err)
{
    size_t before = w->streamed;
    CLEANUP(mem_free) void **there = calloc(w->blocks.pieces, sizeof(*there));
    if (!there)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < w->blocks.pieces; i++)
        there[i] = w->block_memory[i];
    w->streamed = streamed;
    if (open_blocks(w, err) || offload_rest(w->offloaded->offload, err) || copy_blocks(w, there, true, err)) {
        w->streamed = before;
        for (size_t i = 0; i < w->blocks.pieces; i++)
            if (!there[i])
                free_block(w, i);
        return -1;
    }
    close_homes(w);
    return open_windows(w, err);
}

int weights_move_blocks(struct weights *w, size_t streamed, const struct weights *beside,
                        struct cairn_error *err)
{
    streamed = streamed < w->blocks.pieces ? streamed : w->blocks.pieces;
    if (streamed == w->streamed)
        return 0;
    return streamed > w->streamed ? to_host(w, streamed, beside, err) : to_device(w, streamed, err);
}

int weights_copy_blocks(struct weights *w, const struct weights *beside, struct cairn_error *err)
{
    if (w->copies)
        return 0;
    w->copies = true;
    if (!open_homes(w, beside, err) && !copy_blocks(w, NULL, false, err))
        return 0;
    w->copies = false;
    close_homes(w);
    return -1;
}

void weights_drop_copies(struct weights *w)
{
    w->copies = false;
    close_homes(w);
}

void weights_drop_blocks(struct weights *w)
{
    for (size_t i = 0; i < w->blocks.pieces; i++)
        free_block(w, i);
    w->idle = true;
}

void weights_hand_over(struct weights *from, struct weights *to)
{
    assert(!from->idle && to->idle && from->blocks.pieces == to->blocks.pieces &&
           from->streamed == to->streamed && block_bytes(from) == block_bytes(to));
    for (size_t i = 0; i < to->blocks.pieces; i++) {
        to->block_memory[i] = from->block_memory[i];
        from->block_memory[i] = NULL;
    }
    from->idle = true;
    to->idle = false;
}

int weights_upload_blocks(const struct weights *w, struct cairn_error *err)
{
    return copy_blocks(w, NULL, true, err);
}

/* ---- streaming ---- */

/* The next streamed block behind this one, in the direction of `next`; or itself. */
static size_t next_streamed(const struct weights *w, size_t piece, size_t next)
{
    size_t i = next;
    if (next == piece)
        return piece;
    while (i < w->blocks.pieces && !weights_is_streamed(w, i))
        i += next > piece ? 1 : (size_t)-1; /* below 0 it is larger than all */
    return i < w->blocks.pieces ? i : piece;
}

int weights_need(const struct weights *w, struct gpu_stream *s, size_t piece, size_t next,
                 struct cairn_error *err)
{
    void *at[OFFLOAD_ARRAYS];
    if (!w->offloaded || !w->streamed)
        return 0;
    size_t then = next_streamed(w, piece, next);
    if (weights_is_streamed(w, piece)) {
        if (offload_get(w->offloaded->offload, piece, s, at, err))
            return -1;
        w->offloaded->piece = piece;
        w->offloaded->at = at[0];
    }
    return weights_is_streamed(w, then) ? offload_send(w->offloaded->offload, then, err) : 0;
}

int weights_passed(const struct weights *w, struct gpu_stream *s, size_t piece, struct cairn_error *err)
{
    return w->offloaded && weights_is_streamed(w, piece)
               ? offload_done(w->offloaded->offload, piece, s, false, err)
               : 0;
}
