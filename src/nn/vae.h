/* SPDX-License-Identifier: Apache-2.0
 * The VAEs of Wan 2.1 and 2.2: pixels to latents and back.
 *
 * A clip passes in chunks of latent frames (the first is one pixel frame, each of the others four).  Every causal
 * convolution keeps the last frames of its input on the device for the next chunk, so that the result does not depend
 * on the size of chunks, but for the rounding of sums where matmuls of another size use another library.  Where memory is short, a frame is divided into tiles that overlap and are blended; that
 * changes the result slightly.  Of a clip whose length is not 4n + 1 the last frames are dropped.
 *
 * Where the storage format of struct nn is f32, computation is in f32; else it is in f16, with sums in f32, also for bf16:
 * that takes the same time, and its rounding is an eighth.  What is 16 bits wide is in the range of f16: rows that were
 * normalised, and sums of at most a million, which are divided first.  Results that are not finite, and latents that say
 * nothing (the same everywhere), are errors. */
#ifndef CAIRN_NN_VAE_H
#define CAIRN_NN_VAE_H

#include "base/str.h"
#include "nn/nn.h"
#include "tensor/dtype.h"

/* Frames first … first + n - 1, [n][height][width][3] in -1 … 1.  Each is asked for once, in order; with tiles once for
 * each tile, and after a result that is not finite once more from the first, to find the layer. */
struct vae_source {
    int (*read)(void *ctx, size_t first, size_t n, float *out, struct cairn_error *err);
    void *ctx;
};
/* The same frames in order, not clamped. */
struct vae_sink {
    int (*write)(void *ctx, size_t first, size_t n, const float *rgb, struct cairn_error *err);
    void *ctx;
};

struct vae_info {
    int version;                /* 21, 22 */
    size_t channels;            /* of latents */
    size_t stride_time, stride; /* pixels for each latent, in time and in height and width */
    const float *mean, *std;    /* of each channel */
    size_t dim, decoder_dim;    /* 96 and 96, or 160 and 256, in released models */
    enum dtype dtype;           /* of the weights in the file */
    bool diffusers;             /* names */
};
struct vae_size {
    size_t frames, height, width; /* pixels */
};
struct vae_layout {
    size_t tile_height, tile_width; /* pixels; those of the clip: no tiles */
    size_t overlap;                 /* of tiles, in pixels */
    size_t chunk;                   /* latent frames for each pass */
    uint64_t bytes;                 /* the peak on the device, beyond the weights */
    uint64_t host_bytes;            /* on the host: of tiles that wait */
};

/* A file, a folder with one, or a folder that has "vae": the file.  CAIRN_EUSAGE: there is none, or more than one. */
int vae_find(const char *path, struct str *out, struct cairn_error *err);
/* Both take what vae_find does. */
int vae_read_info(const char *path, struct vae_info *out, struct cairn_error *err);
/* nn must stay open; it is used by one thread. */
struct vae;
int vae_open(struct vae **out, struct nn *nn, const char *path, bool encoder, bool decoder,
             struct cairn_error *err);
void vae_close(struct vae *v);
const struct vae_info *vae_info(const struct vae *v);
/* With it, NaN and Inf in results become 0 instead of an error, and are counted. */
void vae_set_repair(struct vae *v, bool repair);
uint64_t vae_repaired(const struct vae *v); /* values since it was opened */
uint64_t vae_weight_bytes(const struct vae *v);

/* Latent frames, height and width of a clip. */
struct vae_size vae_latent_size(const struct vae_info *i, const struct vae_size *size);
/* The bytes of a layout that the caller chose; its chunk and tiles must be possible. */
int vae_layout_bytes(const struct vae *v, bool encode, const struct vae_size *size, struct vae_layout *layout,
                     struct cairn_error *err);
/* The fastest that fits.  CAIRN_ENOMEM says how much the smallest needs. */
int vae_plan(const struct vae *v, bool encode, const struct vae_size *size, uint64_t budget,
             struct vae_layout *out, struct cairn_error *err);

/* Height and width are multiples of the stride.  latent: [channels][F][h][w], normalised. */
int vae_encode(struct vae *v, const struct vae_size *size, const struct vae_layout *layout,
               const struct vae_source *source, float *latent, struct cairn_error *err);
int vae_decode(struct vae *v, const struct vae_size *size, const struct vae_layout *layout,
               const float *latent, const struct vae_sink *sink, struct cairn_error *err);

#endif
