/* SPDX-License-Identifier: Apache-2.0
 * The ops that models are made of, forward and backward, queued on one device.
 *
 * Tensors are plain pointers to device memory in the storage format; rows are tokens.  Gradients of
 * parameters are f32, and are accumulated.  Ops allocate nothing and wait for nothing, so that a step
 * is a fixed list of launches. Errors name the part of the model that nn_at set before. */
#ifndef CAIRN_NN_NN_H
#define CAIRN_NN_NN_H

#include "gpu/attention.h"
#include "gpu/blas.h"
#include "gpu/gpu.h"
#include "gpu/kernels/conv.h"

struct nn;

/* An op that was just queued, for a watcher: a profiler, or a search for the first NaN. */
struct nn_output {
    const void *at; /* NULL: none, or it is not contiguous */
    size_t n;
};
enum { NN_OUTPUTS = 3 };
struct nn_event {
    const char *op;
    const char *where; /* "h.3.attn" */
    struct nn_output out[NN_OUTPUTS];
    enum gpu_storage storage;
    double flops, bytes; /* the minimum that the op computes and moves */
};
struct nn_watcher {
    int (*after)(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *err);
};

struct nn {
    struct gpu *g;
    struct gpu_stream *stream;
    struct blas *blas;
    enum gpu_storage storage;
    void *sums; /* scratch for partial sums */
    size_t sums_bytes;
    size_t packed_bytes; /* of the CPU's scratch for packed operands */
    void *conv_work;     /* scratch for convolutions */
    size_t conv_work_bytes;
    struct nn_watcher *watcher; /* may be NULL */
    const struct gpu_info *as;  /* sizes are those on this device, for a plan; NULL: on g */
    char where[64];
};

int nn_open(struct nn *nn, struct gpu *g, enum gpu_storage storage, struct cairn_error *err);
void nn_close(struct nn *nn);
/* The device that sizes depend on. */
const struct gpu_info *nn_device(const struct nn *nn);
/* Reserves scratch for the gradients of vectors (biases, weights of norms) of up to `columns` values, over so
 * many rows. */
int nn_reserve(struct nn *nn, size_t rows, size_t columns, struct cairn_error *err);
size_t nn_reserve_bytes(size_t rows, size_t columns);
/* The same where each set of so many rows has a vector of its own, as in a modulated norm or a gate. */
int nn_reserve_sets(struct nn *nn, size_t sets, size_t rows, size_t columns, struct cairn_error *err);
/* Says which part of the model the next ops belong to: "h.3.attn". */
void nn_at(struct nn *nn, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* y = x wᵀ + bias + residual. x is rows × in, w out × in. Where `before` is given, y = GELU(x wᵀ + bias) +
 * residual, and `before` gets the input of GELU. */
struct nn_linear {
    const void *x, *w;
    const float *bias;    /* may be NULL */
    void *y, *before;     /* before may be NULL */
    const void *residual; /* may be NULL */
    size_t rows, in, out;
    size_t y_stride; /* from row to row of y, in elements; 0: out */
    float alpha;     /* 0 counts as 1 */
    bool add;        /* to the contents of y */
    bool y_f32;      /* y is f32 whatever the storage; no residual then */
};
int nn_linear(struct nn *nn, const struct nn_linear *l, struct cairn_error *err);

/* From dy, rows × out, to the gradients of x, w and bias; NULL: not needed. Where x is the output of GELU,
 * slope_of is the input of GELU, and dx becomes its gradient. */
struct nn_linear_back {
    const void *dy, *x, *w;
    const void *slope_of; /* may be NULL; not with `add` */
    void *dx;
    float *dw, *dbias; /* added to; may be NULL */
    size_t rows, in, out;
    size_t dy_stride; /* 0: out */
    float alpha;      /* of the forward; 0 counts as 1 */
    bool add;         /* to the contents of dx */
};
int nn_linear_back(struct nn *nn, const struct nn_linear_back *l, struct cairn_error *err);

/* y = xhat (w + w_plus) + b over each row. A modulated layer of a diffusion transformer has a w (scale) and a
 * b (shift) for each sample, and w_plus 1. */
enum nn_norm_kind { NN_NORM_LAYER, NN_NORM_RMS };
struct nn_norm {
    enum nn_norm_kind kind;
    const void *x;
    void *y;
    const float *w, *b; /* NULL: 1 and 0 */
    float *mean, *rstd; /* out, one per row; mean is not used by RMS norm */
    size_t rows, columns;
    size_t rows_per_w; /* each so many rows have a w and b, one after the other; 0: one for all */
    float epsilon, w_plus;
    bool wide; /* x, and in the backward pass dx, are f32 whatever the storage; there is no dw and db then */
};
int nn_norm(struct nn *nn, const struct nn_norm *n, struct cairn_error *err);
/* After nn_norm: the gradients of x, w and b. */
struct nn_norm_back {
    const void *dy;
    void *dx;
    bool add;       /* to the contents of dx */
    float *dw, *db; /* added to; NULL: not needed */
};
int nn_norm_back(struct nn *nn, const struct nn_norm *n, const struct nn_norm_back *b,
                 struct cairn_error *err);

/* Heads of tokens: sample 0, token 0, head 0 begins at `at`, and strides, in elements, lead to the others.
 * The values of a head are neighbours. */
struct nn_heads {
    void *at;
    struct attention_stride by;
};
/* Tokens are `row` elements apart, the heads of a token follow each other, and so do the samples. */
struct nn_heads nn_heads_in_rows(void *at, size_t tokens, size_t row, size_t size);

/* o = softmax(scale q kᵀ + bias) v, as attention.h says. Self attention has as many keys as queries, cross
 * attention keys of its own; several heads of q may share one of k and v. With `causal`, query i sees the
 * keys up to past + i. */
struct nn_attention {
    struct nn_heads q, k, v; /* k and v have kv_heads heads */
    struct nn_heads o;       /* out */
    float *lse;              /* out; [sample][head][query] */
    size_t samples, queries, keys, heads, kv_heads, size;
    bool causal;
    size_t past;       /* keys before that of the first query */
    float scale;       /* 0: 1 / sqrt(size) */
    const float *bias; /* by distance, [head][2 bias_span + 1]; may be NULL; there is no backward pass then */
    size_t bias_span;
};
int nn_attention(struct nn *nn, const struct nn_attention *a, struct cairn_error *err);

/* After nn_attention: from the gradient of o to those of q, k and v, each with strides of its own. */
struct nn_attention_back {
    struct nn_heads d_o;
    struct nn_heads dq, dk, dv; /* out */
    float *delta;               /* scratch of the size of lse */
};
int nn_attention_back(struct nn *nn, const struct nn_attention *a, const struct nn_attention_back *b,
                      struct cairn_error *err);

/* Rotates heads in place by the positions of their tokens. Tables of rope.h begin at the first token's
 * position; all samples have the same. The heads of a token follow each other, and so do the samples. */
struct nn_rope {
    struct nn_heads x;
    size_t samples, tokens, heads, size;
    const float *cos_, *sin_;
    bool
        /* values 2i and 2i + 1 make a pair, as in GPT-J and Wan; else i and i + size / 2, as in Llama */
        pairs;
    bool back; /* the gradient: the inverse rotation */
};
int nn_rope(struct nn *nn, const struct nn_rope *r, struct cairn_error *err);

/* y = gelu(x) and dx = dy gelu'(x), which may be in place; the same for silu(x) = x sigmoid(x). */
int nn_gelu(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err);
int nn_gelu_back(struct nn *nn, void *dx, const void *dy, const void *x, size_t n, struct cairn_error *err);
/* GELU in its exact form, by the error function. */
int nn_gelu_erf(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err);
int nn_silu(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err);
int nn_silu_back(struct nn *nn, void *dx, const void *dy, const void *x, size_t n, struct cairn_error *err);
int nn_swiglu(struct nn *nn, void *y, const void *gate, const void *up, size_t n, struct cairn_error *err);
/* y = factor gelu(gate) up.  A row of x is gate and up, `columns` values each. */
struct nn_geglu {
    void *y;
    const void *x;
    size_t rows, columns;
    float factor;
};
int nn_geglu(struct nn *nn, const struct nn_geglu *g, struct cairn_error *err);
struct nn_swiglu_back {
    void *dgate, *dup; /* out; either may be dy */
    const void *dy, *gate, *up;
    size_t n;
};
int nn_swiglu_back(struct nn *nn, const struct nn_swiglu_back *s, struct cairn_error *err);
int nn_add(struct nn *nn, void *y, const void *x, const void *z, size_t n, struct cairn_error *err);
/* y = x with a share of the values dropped and the rest scaled up; the same call with dy is the gradient. A
 * rate of 0 copies, or does nothing in place. */
struct nn_drop {
    float rate;
    uint64_t seed, stream;
};
int nn_dropout(struct nn *nn, void *y, const void *x, size_t n, const struct nn_drop *d,
               struct cairn_error *err);

/* y = table[ids] + positions[row % n_positions]. */
struct nn_embedding {
    void *y;
    const void *table, *positions; /* positions may be NULL */
    const int *ids;
    size_t rows, columns;
    size_t limit; /* rows of the table */
    size_t n_positions;
};
int nn_embedding(struct nn *nn, const struct nn_embedding *e, struct cairn_error *err);
/* dtable[id] += the rows of dy that have this id, by lists on the device (gpu/id_index.h). */
struct nn_embedding_back {
    float *dtable;
    const void *dy;
    const int *ids, *first, *members;
    size_t lists, rows, columns;
    size_t limit; /* rows of the table */
};
int nn_embedding_back(struct nn *nn, const struct nn_embedding_back *e, struct cairn_error *err);

/* The loss of each row, and the gradient of its logits. */
struct nn_cross_entropy {
    float *loss;
    void *dlogits; /* NULL: not needed; may be logits */
    const void *logits;
    const int *targets; /* -1: the row has no loss */
    size_t rows, columns;
    size_t stride;   /* from row to row of logits, in elements */
    float scale;     /* of the gradient */
    float smoothing; /* of the labels */
};
int nn_cross_entropy(struct nn *nn, const struct nn_cross_entropy *c, struct cairn_error *err);

/* ---- convolutions ---- */

/* A convolution over frames, height and width, channels last: a pixel is a row.  A pixel of y sees kernel.t ×
 * kernel.h × kernel.w pixels of x from its place times the stride minus the padding on; what is outside is zero,
 * but frames before the first are those of `past`.  The sizes of y say how much padding there is behind.  y may
 * be the residual, but not x.  With y_f32 it is f32 whatever the storage, and the residual is NULL or y. */
struct nn_conv {
    const void *x; /* frames × height × width × in */
    size_t frames, height, width, in;
    const void *past; /* the frames before x's first; NULL: zeros */
    size_t past_frames;
    const void *w;        /* [out][kernel.t][kernel.h][kernel.w][in] */
    const float *bias;    /* may be NULL */
    const void *residual; /* laid out as y, added to it; may be NULL */
    void *y;              /* out_frames × out_height × out_width × out */
    size_t out, out_frames, out_height, out_width;
    struct conv_size kernel, stride, pad; /* pad: in front; a stride of 0 counts as 1 */
    bool y_f32;
    bool double_size; /* nearest neighbor: the convolution sees each pixel of x as 2 × 2 */
};
int nn_conv(struct nn *nn, const struct nn_conv *c, struct cairn_error *err);
/* The scratch that nn_conv needs, for a plan.  nn_conv allocates more by itself where nn_reserve_conv did not
 * reserve enough, and keeps it. */
size_t nn_conv_workspace(const struct nn *nn, const struct nn_conv *c);
int nn_reserve_conv(struct nn *nn, size_t bytes, struct cairn_error *err);

/* y = silu(x / max(|x|, 1e-12) sqrt(columns) w) for each row x; y may be x, unless that is wide. */
struct nn_norm_silu {
    const void *x;
    void *y;
    const float *w;
    size_t rows, columns;
    bool wide; /* x is f32 whatever the storage */
};
int nn_norm_silu(struct nn *nn, const struct nn_norm_silu *n, struct cairn_error *err);

/* ---- diffusion transformers ---- */

/* y = x wᵀ + bias for few rows, as of embeddings of times: x, y, bias and the sums are f32, w, out × in, has the
 * storage format.  Rows share what is read of w. */
struct nn_small_linear {
    const float *x; /* rows × in */
    const void *w;
    const float *bias; /* may be NULL */
    float *y;          /* rows × out; not x */
    size_t rows, in, out;
    bool silu; /* of x first */
};
int nn_small_linear(struct nn *nn, const struct nn_small_linear *l, struct cairn_error *err);

/* y[part][set][column] = x[part][column] + add[set][part][column], all f32: what a block learned, plus what the
 * time of each set says; each part is a w, a b or a gate for all sets.  Where add_parts is 0 or 1, add is
 * [set][column], for every part. */
struct nn_modulation {
    float *y;
    const float *x, *add;
    size_t sets, parts, columns;
    size_t add_parts; /* 0, 1 or parts */
};
int nn_modulation(struct nn *nn, const struct nn_modulation *m, struct cairn_error *err);

/* y = x + gate z: what a block adds, gated.  One gate for all rows, or for each rows_per_gate of them. y may be
 * x. */
struct nn_gate {
    void *y;
    const void *x; /* NULL: y = gate z */
    const void *z;
    const float *gate; /* NULL: 1 */
    size_t rows, columns;
    size_t rows_per_gate; /* 0: one for all */
    bool
        wide; /* x and y, and in the backward pass dy, are f32 whatever the storage; there is no dgate then */
};
int nn_gate(struct nn *nn, const struct nn_gate *g, struct cairn_error *err);
/* dz = gate dy, and dgate += the sums of dy z.  The gradient of x is dy. */
struct nn_gate_back {
    const void *dy;
    void *dz;     /* NULL: not needed; may be z, and dy if that is not wide */
    float *dgate; /* NULL: not needed */
};
int nn_gate_back(struct nn *nn, const struct nn_gate *g, const struct nn_gate_back *b,
                 struct cairn_error *err);

/* Patch embedding: a convolution whose stride is its kernel. x is [sample][channels][in.t][in.h][in.w];
 * the sizes of `in` are multiples of those of `patch`. Each patch becomes a row of y, in the order of t, h
 * and w. */
struct nn_patches {
    const void *x;
    const void *w;     /* out × (channels × patch) */
    const float *bias; /* may be NULL */
    void *y;           /* samples × patches rows of `out` values */
    void *scratch;     /* nn_patches_scratch bytes */
    size_t samples, channels, out;
    struct conv_size in, patch;
};
size_t nn_patches_scratch(const struct nn *nn, const struct nn_patches *p);
int nn_patches(struct nn *nn, const struct nn_patches *p, struct cairn_error *err);
/* The gradients of w and bias; x, the input of the model, has none. */
struct nn_patches_back {
    const void *dy;
    float *dw, *dbias; /* added to; NULL: not needed */
};
int nn_patches_back(struct nn *nn, const struct nn_patches *p, const struct nn_patches_back *b,
                    struct cairn_error *err);

/* The squared error of each sample, in nn_square_error_parts(n) sums that the caller adds up; and its
 * gradient. */
struct nn_square_error {
    float *parts; /* out, [sample][part] */
    void *dx;     /* out, 2 scale (x - target); NULL: not needed; may be x */
    const void *x;
    const float *target;
    size_t samples, n; /* n values each */
    float scale;       /* of the gradient */
};
size_t nn_square_error_parts(size_t n);
int nn_square_error(struct nn *nn, const struct nn_square_error *s, struct cairn_error *err);

#endif
