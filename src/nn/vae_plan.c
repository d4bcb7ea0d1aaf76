/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/vae_clip.h"
#include <inttypes.h>

enum { OVERLAP = 64 /* pixels */, LEAST_TILE = 128, CHUNK_MOST = 8, DRY_CHUNKS = 3 };

struct vae_size vae_latent_size(const struct vae_info *i, const struct vae_size *size)
{
    size_t frames = size->frames ? (size->frames - 1) / i->stride_time + 1 : 0;
    return (struct vae_size){ frames, size->height / i->stride, size->width / i->stride };
}

/* ---- tiles ---- */

struct vae_tiles vae_tiles_of(size_t size, size_t tile, size_t overlap)
{
    struct vae_tiles t = { size, tile < size ? tile : size, overlap, 1 };
    if (t.tile < size)
        t.n = (size - overlap + tile - overlap - 1) / (tile - overlap);
    return t;
}

/* The last one ends where the frame does. */
size_t vae_tile_start(const struct vae_tiles *t, size_t i)
{
    size_t start = i * (t->tile - t->overlap);
    return start + t->tile > t->size ? t->size - t->tile : start;
}

/* A ramp at each end that another tile overlaps. */
static float ramp(const struct vae_tiles *t, size_t i, size_t scale, size_t at)
{
    size_t n = t->tile * scale;
    float w = 1, over = (float)(t->overlap * scale);
    if (i > 0 && ((float)at + 0.5f) / over < w)
        w = ((float)at + 0.5f) / over;
    if (i + 1 < t->n && ((float)(n - at) - 0.5f) / over < w)
        w = ((float)(n - at) - 0.5f) / over;
    return w;
}

void vae_tile_shares(const struct vae_tiles *t, size_t i, size_t scale, float *out)
{
    size_t start = vae_tile_start(t, i) * scale, n = t->tile * scale;
    for (size_t k = 0; k < n; k++) {
        float sum = 0;
        for (size_t j = 0; j < t->n; j++) {
            size_t other = vae_tile_start(t, j) * scale;
            if (start + k >= other && start + k < other + n)
                sum += ramp(t, j, scale, start + k - other);
        }
        out[k] = ramp(t, i, scale, k) / sum;
    }
}

/* ---- chunks ---- */

size_t vae_chunks(size_t latents, size_t chunk)
{
    return (latents + chunk - 1) / chunk;
}

struct vae_chunk vae_chunk_of(size_t latents, size_t chunk, size_t k)
{
    struct vae_chunk c = { .first = k * chunk };
    c.n = latents - c.first < chunk ? latents - c.first : chunk;
    c.first_frame = c.first ? 4 * c.first - 3 : 0;
    c.n_frames = c.first ? 4 * c.n : 4 * c.n - 3;
    return c;
}

/* ---- bytes ---- */

struct vae_parts vae_parts_of(const struct vae *v, bool encode, const struct vae_size *size,
                              const struct vae_layout *l)
{
    struct vae_size latent = vae_latent_size(&v->info, size);
    struct vae_memory memory = { 0 };
    struct vae_stream stream = { 0 };
    struct vae_pass pass = { .v = v, .memory = &memory, .stream = &stream, .dry = true };
    struct vae_chunk_io none = { 0 };
    struct cairn_error ignored;
    size_t n = vae_chunks(latent.frames, l->chunk);
    enum gpu_storage before = vae_enter(v);
    /* All after the first few are alike, but for the last. */
    for (size_t k = 0; k < n; k++) {
        if (k >= DRY_CHUNKS && k + 1 < n)
            continue;
        struct vae_chunk c = vae_chunk_of(latent.frames, l->chunk, k);
        pass.first = !k;
        pass.last = k + 1 == n;
        (void)vae_run_chunk(&pass, encode, l->tile_height / v->info.stride, l->tile_width / v->info.stride,
                            &c, &none, &ignored);
    }
    v->nn->storage = before;
    return (struct vae_parts){ memory.most, stream.bytes, pass.work, pass.packed };
}

int vae_layout_check(const struct vae *v, bool encode, const struct vae_size *size,
                     const struct vae_layout *l, struct cairn_error *err)
{
    size_t stride = v->info.stride;
    bool tiles = l->tile_height < size->height || l->tile_width < size->width;
    if (!(encode ? v->table.encoder.n : v->table.decoder.n))
        return cairn_fail(err, CAIRN_EUSAGE, "%s was opened without its %s", v->path,
                          encode ? "encoder" : "decoder");
    if (!size->frames || !size->height || !size->width || size->height % stride || size->width % stride)
        return cairn_fail(
            err, CAIRN_EUSAGE,
            "a clip of %zu frames of %zu x %zu pixels: height and width must be multiples of %zu",
            size->frames, size->width, size->height, stride);
    if (!l->chunk || !l->tile_height || !l->tile_width || l->tile_height > size->height ||
        l->tile_width > size->width || l->tile_height % stride || l->tile_width % stride ||
        l->overlap % stride ||
        (tiles && (!l->overlap || l->overlap >= l->tile_height || l->overlap >= l->tile_width)))
        return cairn_fail(
            err, CAIRN_EUSAGE,
            "no VAE pass in chunks of %zu and tiles of %zu x %zu with an overlap of %zu: sizes must be "
            "multiples of %zu",
            l->chunk, l->tile_width, l->tile_height, l->overlap, stride);
    return 0;
}

int vae_layout_bytes(const struct vae *v, bool encode, const struct vae_size *size, struct vae_layout *l,
                     struct cairn_error *err)
{
    if (vae_layout_check(v, encode, size, l, err))
        return -1;
    struct vae_parts p = vae_parts_of(v, encode, size, l);
    size_t stride = v->info.stride, overlap = l->overlap / stride;
    struct vae_tiles rows = vae_tiles_of(size->height / stride, l->tile_height / stride, overlap);
    struct vae_tiles columns = vae_tiles_of(size->width / stride, l->tile_width / stride, overlap);
    l->bytes = p.activations + p.past + p.work + p.packed;
    l->host_bytes = rows.n * columns.n > 1 && !encode ? (uint64_t)p.past * rows.n * columns.n : 0;
    return 0;
}

/* ---- a plan ---- */

/* A tile so large that n of them cover the size. */
static size_t tile_for(size_t size, size_t n, size_t overlap, size_t stride)
{
    if (n < 2)
        return size;
    size_t tile = (size + (n - 1) * overlap + n - 1) / n;
    tile = (tile + stride - 1) / stride * stride;
    return tile < size ? tile : size;
}

static bool fits(const struct vae *v, bool encode, const struct vae_size *size, uint64_t budget,
                 struct vae_layout *l)
{
    struct cairn_error ignored;
    return !vae_layout_bytes(v, encode, size, l, &ignored) && l->bytes <= budget;
}

int vae_plan(const struct vae *v, bool encode, const struct vae_size *size, uint64_t budget,
             struct vae_layout *out, struct cairn_error *err)
{
    struct vae_layout l = {
        .tile_height = size->height, .tile_width = size->width, .overlap = OVERLAP, .chunk = 1
    };
    size_t latents = vae_latent_size(&v->info, size).frames, stride = v->info.stride;
    if (vae_layout_check(v, encode, size, &l, err))
        return -1;
    for (size_t chunk = CHUNK_MOST; chunk; chunk /= 2) {
        l.chunk = chunk < latents ? chunk : latents;
        if (fits(v, encode, size, budget, &l)) {
            *out = l;
            return 0;
        }
    }
    l.chunk = 1;
    for (size_t rows = 1, columns = 1;;) {
        bool high = l.tile_height >= l.tile_width;
        if ((high ? l.tile_height : l.tile_width) <= LEAST_TILE)
            break;
        *(high ? &rows : &columns) += 1;
        l.tile_height = tile_for(size->height, rows, OVERLAP, stride);
        l.tile_width = tile_for(size->width, columns, OVERLAP, stride);
        if (fits(v, encode, size, budget, &l)) {
            *out = l;
            return 0;
        }
    }
    return cairn_fail(err, CAIRN_ENOMEM,
                      "%s: a clip of %zu x %zu pixels needs %" PRIu64
                      " MiB at least, in tiles of %zu x %zu; %" PRIu64 " MiB are free",
                      v->path, size->width, size->height, (l.bytes >> 20) + 1, l.tile_width, l.tile_height,
                      budget >> 20);
}
