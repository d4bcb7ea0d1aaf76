/* SPDX-License-Identifier: Apache-2.0
 * Encodes and decodes clips, chunk by chunk.  While the device computes a chunk, the host reads the next one or writes
 * the last one. */
#include "nn/nn_inside.h"
#include "nn/op_trace.h"
#include "nn/param_layout.h"
#include "nn/vae_clip.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- slots ---- */

static int reserve(struct gpu *g, struct gpu_staging *s, size_t *have, size_t bytes, struct cairn_error *err)
{
    if (bytes <= *have)
        return 0;
    if (*have)
        gpu_staging_close(g, s);
    *have = 0;
    if (gpu_staging_open(g, bytes, s, err))
        return -1;
    *have = bytes;
    return 0;
}

int vae_slots_open(struct vae *v, size_t in_bytes, size_t out_bytes, struct cairn_error *err)
{
    struct gpu *g = v->nn->g;
    if (!v->until && gpu_stream_open(g, &v->until, err))
        return -1;
    for (size_t i = 0; i < VAE_SLOTS; i++) {
        struct vae_slot *s = &v->slots[i];
        if (reserve(g, &s->in, &s->in_bytes, in_bytes, err) ||
            reserve(g, &s->out, &s->out_bytes, out_bytes, err) ||
            (!s->done && gpu_event_open(g, &s->done, err)))
            return -1;
    }
    return 0;
}

void vae_slots_close(struct vae *v)
{
    struct gpu *g = v->nn->g;
    for (size_t i = 0; i < VAE_SLOTS; i++) {
        struct vae_slot *s = &v->slots[i];
        if (s->in_bytes)
            gpu_staging_close(g, &s->in);
        if (s->out_bytes)
            gpu_staging_close(g, &s->out);
        if (s->done)
            gpu_event_close(g, s->done);
    }
    if (v->until)
        gpu_stream_close(g, v->until);
}

/* ---- a chunk ---- */

static int run_layers(struct vae_pass *p, bool encode, struct vae_activation *x, struct cairn_error *err)
{
    return vae_run_layers(p, encode ? &p->v->table.encoder : &p->v->table.decoder, x, err);
}

static float *floats_at(const struct vae_pass *p, size_t at)
{
    return p->memory->base ? (float *)(void *)(p->memory->base + at) : NULL;
}

/* From f32 on the host to an activation. */
static int bring(struct vae_pass *p, bool encode, const struct vae_activation *x, const float *in,
                 struct cairn_error *err)
{
    struct nn *nn = p->v->nn;
    size_t patch = vae_patch(&p->v->info);
    size_t rows = vae_numbers(x) / x->channels, channels = encode ? 3 * patch * patch : x->channels / 2;
    size_t n = rows * channels;
    size_t at = vae_memory_add(p->memory, n * sizeof(float));
    float *floats = floats_at(p, at);
    vae_memory_drop(p->memory, at);
    if (p->dry)
        return 0;
    nn_at(nn, "input");
    if (gpu_upload(nn->g, nn->stream, floats, in, n * sizeof(float), err))
        return -1;
    return encode ? vae_pixels_pack(nn, vae_at(p, x), floats, x, patch, err)
                  : vae_split(nn, vae_at(p, x), floats, rows, channels, err);
}

static int fetch(struct vae_pass *p, bool encode, const struct vae_activation *x, float *out,
                 struct cairn_error *err)
{
    struct nn *nn = p->v->nn;
    size_t n = vae_numbers(x), bytes = n * sizeof(float);
    if (encode)
        return p->dry ? 0 : gpu_download(nn->g, nn->stream, out, vae_at(p, x), bytes, err);
    size_t at = vae_memory_add(p->memory, bytes);
    float *floats = floats_at(p, at);
    vae_memory_drop(p->memory, at);
    if (p->dry)
        return 0;
    if (vae_pixels_unpack(nn, floats, vae_at(p, x), x, vae_patch(&p->v->info), err))
        return -1;
    return gpu_download(nn->g, nn->stream, out, floats, bytes, err);
}

int vae_run_chunk(struct vae_pass *p, bool encode, size_t height, size_t width, const struct vae_chunk *c,
                  const struct vae_chunk_io *io, struct cairn_error *err)
{
    const struct vae_info *i = &p->v->info;
    size_t scale = i->stride / vae_patch(i);
    struct vae_activation x =
        encode ? vae_new(p, c->n_frames, height * scale, width * scale, vae_input_channels(i))
               : vae_new(p, c->n, height, width, 2 * i->channels);
    p->convs = 0;
    if (bring(p, encode, &x, io->in, err) || run_layers(p, encode, &x, err) ||
        fetch(p, encode, &x, io->out, err))
        return -1;
    vae_drop(p, &x);
    return 0;
}

/* ---- a clip ---- */

struct slot {
    float *in, *out;
    struct gpu_event *done;
    bool busy;
    size_t row, column; /* its tile */
    struct vae_chunk chunk;
};
struct clip {
    struct vae *v;
    bool encode;
    struct vae_size size, latent;
    struct vae_tiles rows, columns;
    size_t chunk, chunks;
    struct vae_memory memory;
    struct vae_stream stream;
    struct slot slots[VAE_SLOTS];
    const struct vae_source *source;
    const struct vae_sink *sink;
    float *latents;     /* out of the encoder, or */
    const float *given; /* into the decoder */
    float *frames;      /* of a chunk, whole; with tiles only */
    float *row_shares, *column_shares;
    char **waiting; /* what streams of the tiles keep, on the host */
    struct vae_past (*pasts)[VAE_MOST_CONVS];
    bool is_bad;                /* a result that is not finite: */
    size_t bad_first, bad_last; /* in these pixel frames */
    struct nan_finder *finder;  /* looks for the layer; NULL: no need */
};

static bool has_tiles(const struct clip *c)
{
    return c->rows.n * c->columns.n > 1;
}

static size_t in_numbers(const struct clip *c, const struct vae_chunk *k)
{
    size_t cells = c->rows.tile * c->columns.tile, stride = c->v->info.stride;
    return c->encode ? k->n_frames * cells * stride * stride * 3 : k->n * cells * c->v->info.channels;
}

static size_t out_numbers(const struct clip *c, const struct vae_chunk *k)
{
    size_t cells = c->rows.tile * c->columns.tile, stride = c->v->info.stride;
    return c->encode ? k->n * cells * c->v->info.channels : k->n_frames * cells * stride * stride * 3;
}

/* The largest chunk: the second, if there is one. */
static struct vae_chunk largest(const struct clip *c)
{
    struct vae_chunk k = vae_chunk_of(c->latent.frames, c->chunk, c->chunks > 1 ? 1 : 0),
                     first = vae_chunk_of(c->latent.frames, c->chunk, 0);
    k.n = first.n > k.n ? first.n : k.n;
    k.n_frames = first.n_frames > k.n_frames ? first.n_frames : k.n_frames;
    return k;
}

static int open_slots(struct clip *c, struct cairn_error *err)
{
    struct vae_chunk most = largest(c);
    if (vae_slots_open(c->v, in_numbers(c, &most) * sizeof(float), out_numbers(c, &most) * sizeof(float),
                       err))
        return -1;
    for (size_t i = 0; i < VAE_SLOTS; i++)
        c->slots[i] = (struct slot){ .in = c->v->slots[i].in.at,
                                     .out = c->v->slots[i].out.at,
                                     .done = c->v->slots[i].done };
    return 0;
}

static int open_host(struct clip *c, struct cairn_error *err)
{
    struct vae_chunk most = largest(c);
    size_t scale = c->encode ? 1 : c->v->info.stride, tiles = c->rows.n * c->columns.n;
    c->row_shares = calloc(c->rows.tile * scale, sizeof(float));
    c->column_shares = calloc(c->columns.tile * scale, sizeof(float));
    c->waiting = calloc(tiles, sizeof(*c->waiting));
    c->pasts = calloc(tiles, sizeof(*c->pasts));
    if (has_tiles(c))
        c->frames = calloc(most.n_frames * c->size.height * c->size.width * 3, sizeof(float));
    bool ok = c->row_shares && c->column_shares && c->waiting && c->pasts && (c->frames || !has_tiles(c));
    for (size_t i = 0; ok && has_tiles(c) && !c->encode && i < tiles; i++)
        ok = (c->waiting[i] = malloc(c->stream.bytes + 1)) != NULL;
    return ok ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory on the host for tiles of a clip");
}

static int open_clip(struct clip *c, const struct vae_size *size, const struct vae_layout *l,
                     struct cairn_error *err)
{
    size_t stride = c->v->info.stride;
    void *at;
    if (vae_layout_check(c->v, c->encode, size, l, err))
        return -1;
    c->size = *size;
    c->latent = vae_latent_size(&c->v->info, size);
    c->rows = vae_tiles_of(c->latent.height, l->tile_height / stride, l->overlap / stride);
    c->columns = vae_tiles_of(c->latent.width, l->tile_width / stride, l->overlap / stride);
    c->chunk = l->chunk < c->latent.frames ? l->chunk : c->latent.frames;
    c->chunks = vae_chunks(c->latent.frames, c->chunk);
    struct vae_parts p = vae_parts_of(c->v, c->encode, size, l);
    c->stream.bytes = p.past;
    if (nn_reserve_conv(c->v->nn, p.work, err) ||
        gpu_alloc(c->v->nn->g, GPU_MEM_DEVICE, p.activations, &at, err))
        return -1;
    c->memory.base = at;
    if (gpu_alloc(c->v->nn->g, GPU_MEM_DEVICE, p.past, &at, err))
        return -1;
    c->stream.base = at;
    return open_slots(c, err) || open_host(c, err) ? -1 : 0;
}

static void close_clip(struct clip *c)
{
    struct gpu *g = c->v->nn->g;
    struct cairn_error ignored;
    (void)gpu_wait(g, c->v->nn->stream, &ignored);
    gpu_free(g, GPU_MEM_DEVICE, c->memory.base);
    gpu_free(g, GPU_MEM_DEVICE, c->stream.base);
    for (size_t i = 0; c->waiting && i < c->rows.n * c->columns.n; i++)
        free(c->waiting[i]);
    free(c->waiting);
    free(c->pasts);
    free(c->frames);
    free(c->row_shares);
    free(c->column_shares);
}

/* ---- to and from the caller ---- */

static int read_pixels(struct clip *c, struct slot *s, struct cairn_error *err)
{
    const struct vae_chunk *k = &s->chunk;
    size_t stride = c->v->info.stride, row = c->columns.tile * stride * 3, wide = c->size.width * 3;
    if (!has_tiles(c))
        return c->source->read(c->source->ctx, k->first_frame, k->n_frames, s->in, err);
    if (c->source->read(c->source->ctx, k->first_frame, k->n_frames, c->frames, err))
        return -1;
    size_t top = vae_tile_start(&c->rows, s->row) * stride,
           left = vae_tile_start(&c->columns, s->column) * stride;
    float *to = s->in;
    for (size_t f = 0; f < k->n_frames; f++)
        for (size_t y = 0; y < c->rows.tile * stride; y++, to += row)
            memcpy(to, c->frames + (f * c->size.height + top + y) * wide + left * 3, row * sizeof(float));
    return 0;
}

/* Latents as the decoder wants them: channels last, and not normalised. */
static int read_latents(struct clip *c, struct slot *s)
{
    const struct vae_info *i = &c->v->info;
    size_t top = vae_tile_start(&c->rows, s->row), left = vae_tile_start(&c->columns, s->column);
    float *to = s->in;
    for (size_t f = s->chunk.first; f < s->chunk.first + s->chunk.n; f++)
        for (size_t y = 0; y < c->rows.tile; y++)
            for (size_t x = 0; x < c->columns.tile; x++)
                for (size_t z = 0; z < i->channels; z++) {
                    size_t at = ((z * c->latent.frames + f) * c->latent.height + top + y) * c->latent.width +
                                left + x;
                    *to++ = c->given[at] * i->std[z] + i->mean[z];
                }
    return 0;
}

static void find_shares(struct clip *c, const struct slot *s)
{
    size_t scale = c->encode ? 1 : c->v->info.stride;
    vae_tile_shares(&c->rows, s->row, scale, c->row_shares);
    vae_tile_shares(&c->columns, s->column, scale, c->column_shares);
}

static void add_latents(struct clip *c, const struct slot *s)
{
    size_t top = vae_tile_start(&c->rows, s->row), left = vae_tile_start(&c->columns, s->column);
    const float *from = s->out;
    for (size_t f = s->chunk.first; f < s->chunk.first + s->chunk.n; f++)
        for (size_t y = 0; y < c->rows.tile; y++)
            for (size_t x = 0; x < c->columns.tile; x++)
                for (size_t z = 0; z < c->v->info.channels; z++) {
                    size_t at = ((z * c->latent.frames + f) * c->latent.height + top + y) * c->latent.width +
                                left + x;
                    c->latents[at] += c->row_shares[y] * c->column_shares[x] * *from++;
                }
}

static void add_pixels(struct clip *c, const struct slot *s)
{
    size_t stride = c->v->info.stride, high = c->rows.tile * stride, wide = c->columns.tile * stride;
    size_t top = vae_tile_start(&c->rows, s->row) * stride,
           left = vae_tile_start(&c->columns, s->column) * stride;
    const float *from = s->out;
    for (size_t f = 0; f < s->chunk.n_frames; f++)
        for (size_t y = 0; y < high; y++) {
            float *to = c->frames + ((f * c->size.height + top + y) * c->size.width + left) * 3;
            for (size_t x = 0; x < wide; x++)
                for (size_t i = 0; i < 3; i++)
                    *to++ += c->row_shares[y] * c->column_shares[x] * *from++;
        }
}

static void zero_bad(struct vae *v, float *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(numbers[i])) {
            numbers[i] = 0;
            v->repaired++;
        }
}

/* Waits for a chunk, checks it and hands it on. */
static int finish(struct clip *c, struct slot *s, struct cairn_error *err)
{
    struct nn *nn = c->v->nn;
    if (!s->busy)
        return 0;
    s->busy = false;
    /* Not for what was queued after it. */
    if (gpu_event_wait(nn->g, c->v->until, s->done, err) || gpu_wait(nn->g, c->v->until, err))
        return -1;
    if (c->finder)
        return 0;
    if (c->v->repair)
        zero_bad(c->v, s->out, out_numbers(c, &s->chunk));
    else if (!param_layout_is_finite(s->out, DTYPE_F32, out_numbers(c, &s->chunk))) {
        c->is_bad = true;
        c->bad_first = s->chunk.first_frame;
        c->bad_last = s->chunk.first_frame + s->chunk.n_frames - 1;
        return -1;
    }
    if (!c->encode && !has_tiles(c))
        return c->sink->write(c->sink->ctx, s->chunk.first_frame, s->chunk.n_frames, s->out, err);
    find_shares(c, s);
    if (c->encode)
        add_latents(c, s);
    else
        add_pixels(c, s);
    return 0;
}

/* ---- all chunks ---- */

static int queue(struct clip *c, struct slot *s, size_t k, struct cairn_error *err)
{
    struct nn *nn = c->v->nn;
    struct vae_pass pass = {
        .v = c->v, .memory = &c->memory, .stream = &c->stream, .first = !k, .last = k + 1 == c->chunks
    };
    struct vae_chunk_io io = { s->in, s->out };
    if (c->encode ? read_pixels(c, s, err) : read_latents(c, s))
        return -1;
    if (pass.first)
        c->stream.bytes = 0;
    c->memory.n = 0;
    if (vae_run_chunk(&pass, c->encode, c->rows.tile, c->columns.tile, &s->chunk, &io, err) ||
        gpu_event_record(nn->g, s->done, nn->stream, err))
        return -1;
    s->busy = true;
    return 0;
}

static int run_chunk(struct clip *c, size_t row, size_t column, size_t k, struct cairn_error *err)
{
    struct slot *s = &c->slots[k % VAE_SLOTS], *before = &c->slots[(k + 1) % VAE_SLOTS];
    s->chunk = vae_chunk_of(c->latent.frames, c->chunk, k);
    s->row = row;
    s->column = column;
    if (queue(c, s, k, err) || finish(c, before, err))
        return -1;
    return c->finder && c->finder->found ? -1 : 0;
}

/* Tile after tile: latents are small. */
static int run_encoder(struct clip *c, struct cairn_error *err)
{
    for (size_t tile = 0; tile < c->rows.n * c->columns.n; tile++) {
        for (size_t k = 0; k < c->chunks; k++)
            if (run_chunk(c, tile / c->columns.n, tile % c->columns.n, k, err))
                return -1;
        if (finish(c, &c->slots[(c->chunks - 1) % VAE_SLOTS], err))
            return -1;
    }
    return 0;
}

static int run_decoder(struct clip *c, struct cairn_error *err)
{
    for (size_t k = 0; k < c->chunks; k++)
        if (run_chunk(c, 0, 0, k, err))
            return -1;
    return finish(c, &c->slots[(c->chunks - 1) % VAE_SLOTS], err);
}

/* Moves what a tile's convolutions keep between the device and the host. */
static int swap_past(struct clip *c, size_t tile, bool in, struct cairn_error *err)
{
    struct nn *nn = c->v->nn;
    if (in)
        memcpy(c->stream.past, c->pasts[tile], sizeof(c->stream.past));
    else
        memcpy(c->pasts[tile], c->stream.past, sizeof(c->stream.past));
    if (!c->stream.bytes)
        return 0;
    return (in ? gpu_upload(nn->g, nn->stream, c->stream.base, c->waiting[tile], c->stream.bytes, err)
               : gpu_download(nn->g, nn->stream, c->waiting[tile], c->stream.base, c->stream.bytes, err)) ||
                   gpu_wait(nn->g, nn->stream, err)
               ? -1
               : 0;
}

/* Chunk after chunk, all tiles of each: frames are written in order. */
static int run_decoder_tiles(struct clip *c, struct cairn_error *err)
{
    for (size_t k = 0; k < c->chunks; k++) {
        struct vae_chunk chunk = vae_chunk_of(c->latent.frames, c->chunk, k);
        memset(c->frames, 0, chunk.n_frames * c->size.height * c->size.width * 3 * sizeof(float));
        for (size_t tile = 0; tile < c->rows.n * c->columns.n; tile++) {
            if (k && swap_past(c, tile, true, err))
                return -1;
            if (run_chunk(c, tile / c->columns.n, tile % c->columns.n, k, err) ||
                finish(c, &c->slots[k % VAE_SLOTS], err) ||
                (k + 1 < c->chunks && swap_past(c, tile, false, err)))
                return -1;
        }
        if (!c->finder && c->sink->write(c->sink->ctx, chunk.first_frame, chunk.n_frames, c->frames, err))
            return -1;
    }
    return 0;
}

static int run_clip(struct clip *c, struct cairn_error *err)
{
    return c->encode ? run_encoder(c, err) : has_tiles(c) ? run_decoder_tiles(c, err) : run_decoder(c, err);
}

/* ---- results that are no results ---- */

/* A second pass with a look at every op finds the layer. */
static int explain(struct clip *c, struct cairn_error *err)
{
    struct nn *nn = c->v->nn;
    struct nan_finder finder;
    struct nn_watcher *before = nn->watcher;
    struct cairn_error ignored = { 0 };
    const char *what = c->encode ? "latents" : "pixels";
    if (gpu_wait(nn->g, nn->stream, err))
        return -1;
    nan_finder_init(&finder);
    nn->watcher = &finder.watcher;
    c->finder = &finder;
    c->slots[0].busy = c->slots[1].busy = false;
    (void)run_clip(c, &ignored);
    nn->watcher = before;
    nan_finder_release(&finder, nn->g);
    if (finder.found)
        cairn_fail(
            err, CAIRN_EFORMAT,
            "frames %zu to %zu: NaN or Inf in the %s; the first are in %s (%s): %lld NaN and %lld Inf of %zu",
            c->bad_first, c->bad_last, what, finder.where, finder.op, finder.nan, finder.infinite, finder.n);
    else
        cairn_fail(err, CAIRN_EFORMAT,
                   "frames %zu to %zu: NaN or Inf in the %s; a second pass did not have them", c->bad_first,
                   c->bad_last, what);
    return c->v->storage == GPU_F16
               ? cairn_hint(
                     err,
                     "the CPU computes in f32, which does not overflow: vae.device: cpu, or --device cpu")
               : -1;
}

/* Whether each channel is the same everywhere, which no picture is: borders alone make a difference. */
static bool is_constant(const float *latents, size_t channels, size_t cells)
{
    for (size_t z = 0; z < channels; z++)
        for (size_t i = 0; i < cells; i++)
            if (latents[z * cells + i] != latents[cells > 1 ? z * cells : 0])
                return false;
    return true;
}

static int check_latents(const struct clip *c, struct cairn_error *err)
{
    size_t cells = c->latent.frames * c->latent.height * c->latent.width;
    if (!is_constant(c->latents, c->v->info.channels, cells))
        return 0;
    cairn_fail(err, CAIRN_EFORMAT,
               "the latents are constant (channel 0 is %g everywhere): the encoder's result is void",
               (double)c->latents[0]);
    return cairn_hint(err, "run `cairn selftest`, or encode on the CPU");
}

static void normalise(const struct clip *c)
{
    size_t cells = c->latent.frames * c->latent.height * c->latent.width;
    for (size_t z = 0; z < c->v->info.channels; z++)
        for (size_t i = 0; i < cells; i++)
            c->latents[z * cells + i] = (c->latents[z * cells + i] - c->v->info.mean[z]) / c->v->info.std[z];
}

static int run_or_explain(struct clip *c, struct cairn_error *err)
{
    enum gpu_storage before = vae_enter(c->v);
    int r = run_clip(c, err);
    r = r && c->is_bad ? explain(c, err) : r;
    c->v->nn->storage = before;
    return r;
}

int vae_encode(struct vae *v, const struct vae_size *size, const struct vae_layout *layout,
               const struct vae_source *source, float *latent, struct cairn_error *err)
{
    CLEANUP(close_clip) struct clip c = { .v = v, .encode = true, .source = source, .latents = latent };
    if (open_clip(&c, size, layout, err))
        return -1;
    memset(latent, 0, v->info.channels * c.latent.frames * c.latent.height * c.latent.width * sizeof(float));
    if (run_or_explain(&c, err) || check_latents(&c, err))
        return -1;
    normalise(&c);
    return 0;
}

int vae_decode(struct vae *v, const struct vae_size *size, const struct vae_layout *layout,
               const float *latent, const struct vae_sink *sink, struct cairn_error *err)
{
    CLEANUP(close_clip) struct clip c = { .v = v, .sink = sink, .given = latent };
    if (open_clip(&c, size, layout, err))
        return -1;
    return run_or_explain(&c, err);
}
