/* SPDX-License-Identifier: Apache-2.0
 * A clip on its way through the VAE: its chunks, its tiles, and how much memory they take. */
#ifndef CAIRN_NN_VAE_CLIP_H
#define CAIRN_NN_VAE_CLIP_H

#include "nn/vae_inside.h"

/* How a height or a width is divided into tiles that overlap, in latents. */
struct vae_tiles {
    size_t size, tile, overlap, n;
};
struct vae_tiles vae_tiles_of(size_t size, size_t tile, size_t overlap);
size_t vae_tile_start(const struct vae_tiles *t, size_t i);
/* The shares of tile i, `scale` of them for each latent; those of all tiles add up to 1 everywhere. */
void vae_tile_shares(const struct vae_tiles *t, size_t i, size_t scale, float *out);

/* Latent frames of chunk k, and their pixel frames. */
struct vae_chunk {
    size_t first, n;              /* latent frames */
    size_t first_frame, n_frames; /* pixel frames */
};
struct vae_chunk vae_chunk_of(size_t latents, size_t chunk, size_t k);
size_t vae_chunks(size_t latents, size_t chunk);

/* One chunk of one tile, of `height` × `width` latents: from f32 on the host to f32 on the host, which the caller
 * waits for.  in and out are those of a pass in the direction: pixels or latents, channels last. */
struct vae_chunk_io {
    const float *in;
    float *out;
};
int vae_run_chunk(struct vae_pass *p, bool encode, size_t height, size_t width, const struct vae_chunk *c,
                  const struct vae_chunk_io *io, struct cairn_error *err);
/* CAIRN_EUSAGE: no such layout, or the VAE has not this half. */
int vae_layout_check(const struct vae *v, bool encode, const struct vae_size *size,
                     const struct vae_layout *l, struct cairn_error *err);
/* The parts of a layout's bytes. */
struct vae_parts {
    size_t activations, past, work, packed;
};
struct vae_parts vae_parts_of(const struct vae *v, bool encode, const struct vae_size *size,
                              const struct vae_layout *l);

#endif
