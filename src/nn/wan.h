/* SPDX-License-Identifier: Apache-2.0
 * Wan 2.1 and 2.2: a transformer that removes noise from the latents of a video
 * (https://github.com/Wan-Video/Wan2.2).  Its weights are frozen; LoRAs over them are trained.
 *
 * A latent is cut into patches of 1 × 2 × 2, each a token.  A block is self attention over all tokens,
 * cross attention to the caption (and, in Wan 2.1 I2V, to the features of an image), and an MLP.  The
 * time, how much of the latent is noise, shifts, scales and gates what each block does.
 *
 * Wan 2.2 A14B has two experts of the same shape: base 0 is the only model or the expert for little
 * noise, base 1 the one for much.  Parameters have the official names and layout ([out, in]).
 *
 * A model holds weights; a workspace (wan_work.h) holds what passes over a batch need. */
#ifndef CAIRN_NN_WAN_H
#define CAIRN_NN_WAN_H

#include "nn/model.h"
#include "tensor/lora_names.h"

enum { WAN_EXPERTS = 2, WAN_PATCH = 4 /* cells of a patch */, WAN_MODULATIONS = 6 };

struct wan_shape {
    size_t layers, heads, width, ffn;
    size_t in, out;    /* channels: those that go in, with what an image adds, and those that come out */
    size_t text_width; /* of a caption's features */
    size_t text_rows;  /* captions are padded to so many */
    size_t time_width; /* of the sinusoid of the time */
    size_t clip_width; /* of an image's features; 0: the model takes none */
    size_t clip_rows;
};
/* The parts that all released models share: text, time, CLIP's rows. */
struct wan_shape wan_shape_common(void);
/* CAIRN_EUSAGE with what is wrong. */
int wan_shape_check(const struct wan_shape *s, struct cairn_error *err);
size_t wan_head_size(const struct wan_shape *s);

/* The linears of a block.  Those of the image are there with clip_width. */
enum wan_matrix {
    WAN_Q,
    WAN_K,
    WAN_V,
    WAN_O,
    WAN_CROSS_Q,
    WAN_CROSS_K,
    WAN_CROSS_V,
    WAN_CROSS_O,
    WAN_CROSS_K_IMG,
    WAN_CROSS_V_IMG,
    WAN_FFN_IN,
    WAN_FFN_OUT,
    WAN_MATRICES,
};
extern const char *const wan_modules[WAN_MATRICES]; /* "self_attn.q" */
bool wan_has_matrix(const struct wan_shape *s, enum wan_matrix m);

struct wan_linear {
    size_t w, b; /* indices of parameters */
    size_t in, out;
};
struct wan_block {
    struct wan_linear linear[WAN_MATRICES];
    size_t modulation; /* WAN_MODULATIONS × width */
    size_t norm_q, norm_k, cross_norm_q, cross_norm_k, cross_norm_k_img;
    size_t norm3_w, norm3_b;
    struct lora_site lora[WAN_EXPERTS][WAN_MATRICES]; /* of each LoRA */
};
/* The features of an image: norm, linear, GELU, linear, norm. */
struct wan_image {
    size_t norm_w[2], norm_b[2];
    struct wan_linear linear[2];
};

struct wan_options {
    size_t experts; /* 1 or 2 */
    bool quantize;  /* the blocks' linears */
    enum weights_format format;
    const struct lora_options *lora; /* NULL: none */
    bool lora_per_expert;            /* with two experts; else one LoRA for both */
};

struct wan_save_meta {
    struct st_meta *list;
    size_t n;
    bool is_all; /* instead of the model's own; else added to it */
};
/* How LoRA files are written. */
struct wan_save {
    enum lora_dialect dialect;
    enum dtype dtype;
    bool joined;   /* the LoRAs of both experts in one file, as ai-toolkit has it; comfy alone */
    bool no_alpha; /* where alpha is the rank */
    /* The metadata for a header, in the arena, maybe asked for by another thread; NULL: the model's own. */
    void (*describe)(const void *to, uint64_t step, struct arena *a, struct wan_save_meta *out);
    const void *to;
};

struct wan_adapters; /* wan_adapters.h */

struct wan {
    struct model model; /* first */
    struct nn *nn;
    struct wan_shape shape;
    struct params params[WAN_EXPERTS]; /* both have the same indices */
    struct weights weights[WAN_EXPERTS];
    struct weights_blocks blocks_of[WAN_EXPERTS];
    struct wan_block *blocks;
    struct wan_linear patch, text[2], time[2], time_projection, head;
    struct wan_image image; /* with clip_width */
    size_t head_modulation; /* 2 × width */
    struct lora loras[WAN_EXPERTS];
    struct lora_options lora_options; /* that the LoRAs were made with */
    struct wan_adapters *adapters;    /* NULL: none */
    struct wan_save save;             /* set by its owner */
};

/* Without allocating, to compute the size; then model_alloc.  Close it by model_close. */
int wan_new(struct nn *nn, const struct wan_shape *s, const struct wan_options *o, struct wan **out,
            struct cairn_error *err);
/* The LoRA that a base is trained with. */
size_t wan_lora_of(const struct wan *m, size_t base);

/* Random weights of the scale of a trained model's, for tests and benchmarks. */
int wan_init(struct wan *m, size_t base, uint64_t seed, struct cairn_error *err);
/* a uniform in ±1/sqrt(in), b zero. */
int wan_init_lora(struct wan *m, uint64_t seed, struct cairn_error *err);

#endif
