/* SPDX-License-Identifier: Apache-2.0
 * An open umT5 encoder, for the files that know: umt5_weights.c places and reads weights, umt5_pass.c computes, umt5.c
 * goes through prompts. */
#ifndef CAIRN_NN_UMT5_INSIDE_H
#define CAIRN_NN_UMT5_INSIDE_H

#include "nn/param_load.h"
#include "nn/umt5_file.h"
#include "nn/weights.h"
#include <pthread.h>

enum {
    UMT5_SPAN = 128, /* from this distance on the bias is the same */
    UMT5_WINDOWS = 2,
    UMT5_LEAST_ROWS = 512, /* of a pass: the longest prompt of Wan */
    UMT5_MOST_ROWS = 4096,
    UMT5_HOST_BYTES = 1 << 30, /* of a group of prompts on the host, where layers come from the file */
};

/* The matrices of a layer on the device: q, k, v in one, and gate and up. */
enum umt5_param { UMT5_QKV, UMT5_OUT, UMT5_GATE_UP, UMT5_FFN_OUT, UMT5_PARAMS };

/* Reads a layer on another thread, into memory of the host: `staging`, or on the CPU the window itself. */
struct umt5_reader {
    bool running, by_main; /* by_main: the layer cannot be read in pieces, so the device's thread loads it */
    size_t layer, window;
    pthread_t thread;
    struct param_tensors tensors; /* that the parts point to */
    const struct st_tensor *found[UMT5_MATRICES];
    struct param_parts parts;
    struct cairn_error err;
    int result;
    int threads;
};

struct umt5_work {
    void *memory;
    float *x;    /* the residual stream: rows × dim */
    void *norm;  /* of x, and what attention gives */
    void *inner; /* q, k, v; gate and up; what a half of a layer adds */
    void *act;
    float *lse, *rstd;
    int *ids;
};

struct umt5 {
    struct nn *nn;
    struct umt5_file file;
    struct umt5_layout layout;
    struct params params;
    struct weights weights;
    size_t (*slots)[UMT5_PARAMS]; /* indices of parameters: of the resident layers, then of the windows */
    size_t (*norms)[2];
    size_t norm, bias, gate, embedding; /* gate: what an f16 MLP is multiplied by */
    struct umt5_work work;
    /* Layers from the file. */
    struct umt5_reader reader;
    struct gpu_staging staging;
    struct gpu_stream *up;
    struct gpu_event *came[UMT5_WINDOWS], *used[UMT5_WINDOWS];
    bool was_used[UMT5_WINDOWS];
};

/* Prompts of the same length, one after the other in the rows of a pass. */
struct umt5_run {
    size_t first, tokens, samples;
};

/* ---- umt5_weights.c ---- */

int umt5_weights_open(struct umt5 *u, struct cairn_error *err);
void umt5_weights_close(struct umt5 *u);
/* Starts to read the layer, if it comes from the file. */
int umt5_weights_send(struct umt5 *u, size_t layer, struct cairn_error *err);
/* The slot of the layer, whose weights the next ops may use. */
int umt5_weights_get(struct umt5 *u, size_t layer, size_t *slot, struct cairn_error *err);
int umt5_weights_done(struct umt5 *u, size_t layer, struct cairn_error *err);
/* Waits for the thread. */
void umt5_weights_rest(struct umt5 *u);
/* Bytes of a pass over so many rows; memory NULL: only these. */
uint64_t umt5_work_list(struct umt5_work *w, const struct umt5_info *s, enum gpu_storage storage,
                        size_t rows);

/* ---- umt5_pass.c ---- */

/* What the MLP is scaled down by before it is rounded. */
float umt5_ffn_factor(enum gpu_storage storage);
int umt5_layer(struct umt5 *u, size_t layer, size_t slot, const struct umt5_run *runs, size_t n, size_t rows,
               struct cairn_error *err);
int umt5_last_norm(struct umt5 *u, size_t rows, struct cairn_error *err); /* into work.norm */

/* ---- umt5_check.c ---- */

enum umt5_row { UMT5_ROW_FINE, UMT5_ROW_ODD /* NaN or Inf */, UMT5_ROW_CONSTANT };
/* kinds[i] becomes the kind of row i. */
int umt5_check_rows(const float *rows, size_t n, size_t dim, uint8_t *kinds, struct cairn_error *err);

/* A watcher that finds the first op whose output has a constant row. */
struct umt5_constant_finder {
    struct nn_watcher watcher;
    size_t row, rows, dim; /* set by the caller: which row, of tensors of this size */
    bool found;
    char where[64], op[32];
};
void umt5_constant_finder_init(struct umt5_constant_finder *f);

#endif
