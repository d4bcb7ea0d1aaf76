/* SPDX-License-Identifier: Apache-2.0
 * Small tensor files for the tests of LoRA: written from numbers, read back as numbers. */
#ifndef CAIRN_TESTS_LORA_FILES_H
#define CAIRN_TESTS_LORA_FILES_H

#include "check.h"
#include "tensor/safetensors.h"
#include "tensor/source.h"
#include <dirent.h>

/* A tensor of the wanted file: numbers from a generator, or all the same. */
struct put {
    const char *name;
    enum dtype dtype;
    uint64_t rows, cols; /* cols 0: one dimension; both 0: a scalar */
    float same;          /* 0: pseudo-random in (-spread, spread) */
    float spread;
};

static inline float put_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((double)(*state >> 8) / (1 << 23) - 1);
}

static inline size_t put_elements(const struct put *p)
{
    return (size_t)((p->rows ? p->rows : 1) * (p->cols ? p->cols : 1));
}

static inline void put_data(struct st_writer *w, const struct put *p, size_t i, struct cairn_error *err)
{
    size_t n = put_elements(p);
    float *v = calloc(n, sizeof(float));
    char *bytes = calloc(n, sizeof(double));
    uint32_t state = (uint32_t)strlen(p->name) * 7919u + (uint32_t)i;
    for (size_t k = 0; k < n; k++)
        v[k] = p->same != 0 ? p->same : p->spread * put_random(&state);
    if (p->dtype == DTYPE_I64) {
        for (size_t k = 0; k < n; k++)
            ((int64_t *)bytes)[k] = (int64_t)v[k];
    } else {
        dtype_convert(bytes, p->dtype, v, DTYPE_F32, n, &(struct dtype_how){ 0 });
    }
    if (st_writer_put(w, i, 0, bytes, n * dtype_size(p->dtype), err))
        exit(99);
    free(v), free(bytes);
}

/* Rows end with one that has no name. */
static inline void put_file(const char *path, const struct put *rows)
{
    struct st_tensor t[64] = { 0 };
    uint64_t shape[64][2];
    struct st_meta meta[] = { { "format", "pt" }, { "sshs_model_hash", "old" } };
    struct st_writer w;
    struct cairn_error err;
    size_t n = 0;
    for (; rows[n].name; n++) {
        shape[n][0] = rows[n].rows, shape[n][1] = rows[n].cols;
        t[n] = (struct st_tensor){ .name = rows[n].name,
                                   .dtype = rows[n].dtype,
                                   .dtype_text = dtype_safetensors(rows[n].dtype),
                                   .shape = shape[n],
                                   .rank = !rows[n].rows  ? 0
                                           : rows[n].cols ? 2
                                                          : 1,
                                   .elements = put_elements(&rows[n]),
                                   .bytes = put_elements(&rows[n]) * dtype_size(rows[n].dtype) };
    }
    if (st_writer_open(
            &w, path,
            &(struct st_contents){ .tensors = t, .n = n, .meta = meta, .n_meta = 2, .order = ST_ORDER_GIVEN },
            true, &err))
        exit(99);
    for (size_t i = 0; i < n; i++)
        put_data(&w, &rows[i], i, &err);
    if (st_writer_commit(&w, &err))
        exit(99);
    st_writer_close(&w);
}

/* The numbers of one tensor, on the heap; NULL when it is not there. */
static inline float *get_numbers(const char *path, const char *name, struct st_tensor *what)
{
    struct tensor_source s;
    struct cairn_error err;
    if (source_open(&s, path, &err)) {
        printf("# %s\n", err.msg);
        return NULL;
    }
    const struct st_tensor *t = source_find(&s, name);
    float *v = t ? calloc((size_t)t->elements + 1, sizeof(float)) : NULL;
    if (v && source_read_as(&s, t, 0, t->elements, DTYPE_F32, v, &err))
        exit(99);
    if (t && what)
        *what = *t, what->name = what->dtype_text = NULL, what->shape = NULL;
    source_close(&s);
    return v;
}

/* The files in a directory, to see that no temporary is left. */
static inline int count_files(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

#endif
