/* SPDX-License-Identifier: Apache-2.0
 * Writes small caches as musubi-tuner does. */
#ifndef CAIRN_TESTS_VIDEO_CACHES_H
#define CAIRN_TESTS_VIDEO_CACHES_H

#include "tensor/safetensors.h"
#include "tree.h"
#include <stdarg.h>

struct cache_tensor {
    const char *name;
    enum dtype dtype;
    uint64_t shape[4];
    int rank;
    float fill; /* every value; 0: values count up from 1 */
};

/* Values are given as f32 and stored as the dtype. */
static inline void cache_write(const char *path, const struct cache_tensor *t, size_t n, const char *frames)
{
    struct st_tensor list[4] = { 0 };
    struct st_meta meta[2] = { { "architecture", "wan" }, { "frame_count", frames } };
    CLEANUP(st_writer_close) struct st_writer w = { 0 };
    struct cairn_error err = { 0 };
    for (size_t i = 0; i < n; i++) {
        uint64_t elements = 1;
        for (int k = 0; k < t[i].rank; k++)
            elements *= t[i].shape[k];
        list[i] = (struct st_tensor){ .name = t[i].name,
                                      .dtype = t[i].dtype,
                                      .dtype_text = dtype_safetensors(t[i].dtype),
                                      .shape = t[i].shape,
                                      .rank = t[i].rank,
                                      .elements = elements,
                                      .bytes = elements * dtype_size(t[i].dtype) };
    }
    struct st_contents c = { .tensors = list, .n = n, .meta = meta, .n_meta = frames ? 2 : 1 };
    int r = st_writer_open(&w, path, &c, true, &err);
    for (size_t i = 0; i < n && !r; i++) {
        float *values = calloc(list[i].elements + 1, sizeof(float));
        void *raw = calloc(list[i].elements + 1, 8);
        for (uint64_t k = 0; k < list[i].elements; k++)
            values[k] = t[i].fill != 0 ? t[i].fill : (float)(k % 100 + 1);
        if (dtype_is_float(t[i].dtype))
            dtype_convert(raw, t[i].dtype, values, DTYPE_F32, list[i].elements, &(struct dtype_how){ 0 });
        r = st_writer_put(&w, i, 0, raw, list[i].bytes, &err);
        free(values);
        free(raw);
    }
    if (r || st_writer_commit(&w, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(99);
    }
}

/* Latents of a clip [channels, f, h, w]. */
static inline void cache_latents(const char *path, uint64_t channels, uint64_t f, uint64_t h, uint64_t w)
{
    char name[64];
    snprintf(name, sizeof(name), "latents_%dx%dx%d_bfloat16", (int)f, (int)h, (int)w);
    cache_write(path, &(struct cache_tensor){ name, DTYPE_BF16, { channels, f, h, w }, 4, 0 }, 1,
                f > 1 ? "5" : NULL);
}

static inline void cache_text(const char *path, uint64_t rows, uint64_t dim)
{
    cache_write(path, &(struct cache_tensor){ "varlen_t5_bfloat16", DTYPE_BF16, { rows, dim }, 2, 0 }, 1,
                NULL);
}

#endif
