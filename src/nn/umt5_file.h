/* SPDX-License-Identifier: Apache-2.0
 * The tensors of an umT5 encoder in its file. */
#ifndef CAIRN_NN_UMT5_FILE_H
#define CAIRN_NN_UMT5_FILE_H

#include "nn/param_file.h"
#include "nn/param_scale.h"
#include "nn/umt5.h"

enum { UMT5_BUCKETS = 32 };

enum umt5_tensor {
    UMT5_Q,
    UMT5_K,
    UMT5_V,
    UMT5_O,
    UMT5_GATE,
    UMT5_UP,
    UMT5_DOWN,
    UMT5_MATRICES,
    UMT5_NORM1 = UMT5_MATRICES,
    UMT5_NORM2,
    UMT5_BIAS,
    UMT5_LAYER_TENSORS,
};

struct umt5_file {
    struct arena arena;
    struct tensor_source source;
    struct umt5_info info;
    const struct st_tensor *embedding, *norm;
    const struct st_tensor *(*layers)[UMT5_LAYER_TENSORS];
    struct param_scale embedding_scale;
};

/* All tensors are there and have the right shapes.  Close it, also after a failure. */
int umt5_file_open(struct umt5_file *f, const char *path, struct cairn_error *err);
void umt5_file_close(struct umt5_file *f);
/* The path of the file, in the arena, that a file or a folder leads to. */
int umt5_find(const char *path, struct arena *a, const char **out, struct cairn_error *err);

/* Which names a file has. */
struct umt5_names {
    const char *prefix;
    bool official;
};
int umt5_names_find(const struct tensor_source *s, struct arena *a, struct umt5_names *out,
                    struct cairn_error *err);
const char *umt5_name(const struct umt5_names *n, struct arena *a, size_t layer, enum umt5_tensor t);
const char *umt5_name_norm(const struct umt5_names *n, struct arena *a);
/* The name that the file has; where it has none, the usual one. */
const char *umt5_name_embedding(const struct umt5_names *n, struct arena *a, const struct tensor_source *s);

#endif
