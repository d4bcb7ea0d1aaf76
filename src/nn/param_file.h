/* SPDX-License-Identifier: Apache-2.0
 * Parameters in files of tensors: a list says which tensor holds which rows of which parameter, and two
 * functions move the values, one parameter at a time and in pieces on all cores.
 *
 * A parameter is a matrix or a vector; its tensor in a file may have more dimensions, which the list
 * then names, as [5120, 16, 1, 2, 2] for the 5120 × 64 matrix of a convolution.  A file must have
 * exactly that shape, and gets it.
 *
 * NaN and infinity are refused in both directions, with the name of the tensor: such a model is useless. */
#ifndef CAIRN_NN_PARAM_FILE_H
#define CAIRN_NN_PARAM_FILE_H

#include "base/str.h"
#include "nn/weights.h"
#include "tensor/source.h"

enum { PARAM_DIMS = 8 };
struct param_tensor {
    const char *name;
    const struct param *param;
    size_t first, rows; /* of a matrix; of a vector, its values */
    bool transposed;    /* columns × rows in the file */
    /* Of a convolution: a row of the file is channels × taps, that of the parameter taps × (columns / taps), where
     * the channels of the file come `copies` times and those beyond are zero.  taps 0: not so.  Such tensors can be
     * read, not written. */
    size_t taps, channels, copies;
    /* The parameter is the file's tensor times this; 0: it is the tensor.  Such ones can be read, not written, and are
     * not quantized. */
    float factor;
    int rank; /* dimensions in the file; 0: a matrix has two, a vector one */
    uint64_t shape[PARAM_DIMS];
};
/* The tensors of one parameter follow each other.  {0} is an empty list. */
struct param_tensors {
    struct arena arena;
    struct param_tensor *list;
    size_t n;
};
/* A shape must have as many values as the rows, and is not for one that is transposed. */
void param_tensors_add(struct param_tensors *t, const struct param_tensor *tensor, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* All of a parameter. */
struct param_tensor param_tensor_whole(const struct param *p);
void param_tensors_release(struct param_tensors *t);

/* Where values come from, if not from the weights: a moving average of them, say. */
struct param_getter {
    int (*get)(void *context, const struct param *p, float *into, struct cairn_error *err);
    void *context;
};
/* Writes a safetensors file in the order of the list, for torch, as f32, f16 or bf16. It appears whole or not
 * at all. */
int param_file_write(const struct param_tensors *t, const struct weights *w,
                     const struct param_getter *getter, enum dtype dtype, const char *path,
                     struct cairn_error *err);
/* The same with more than parameters. */
struct param_scalar {
    const char *name;
    float value; /* f32 in the file, of shape [] */
};
struct param_file_options {
    const struct weights *weights;
    const struct param_getter *getter; /* NULL: the weights */
    enum dtype dtype;
    enum st_order order;
    bool hashes;                /* st_contents has it */
    const struct st_meta *meta; /* instead of "format": "pt"; NULL: that */
    size_t n_meta;
    const struct param_scalar *scalars;
    size_t n_scalars;
};
int param_file_write_with(const struct param_tensors *t, const struct param_file_options *o, const char *path,
                          struct cairn_error *err);

struct param_report {
    size_t tensors;                 /* that were read */
    size_t strided;                 /* of them: were strided, and made contiguous */
    size_t skipped;                 /* known, and not needed */
    size_t rescaled;                /* pairs of a LoRA whose alpha / rank is not the model's */
    struct str missing, unexpected; /* one name per line */
};
void param_report_release(struct param_report *r);
/* "148 tensors; 7 were strided, made contiguous" */
void param_report_say(const struct param_report *r, struct str *out);

struct param_file_rules {
    const char *under;         /* the prefix of the model's names; others are ignored */
    const char *const *unused; /* patterns of names to skip; NULL at the end */
};
/* Checks all names, types and shapes: found[i] becomes the tensor of t->list[i]. */
int param_file_match(const struct param_tensors *t, const struct tensor_source *s,
                     const struct param_file_rules *rules, const struct st_tensor **found,
                     struct param_report *r, struct cairn_error *err);
/* Checks all names, types and shapes before it reads. After a later failure some of the weights are the
 * file's. */
int param_file_read(const struct param_tensors *t, const struct weights *w, const struct tensor_source *s,
                    const struct param_file_rules *rules, struct param_report *report,
                    struct cairn_error *err);

#endif
