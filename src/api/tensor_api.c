/* SPDX-License-Identifier: Apache-2.0
 * The public C interface: a thin layer, so that the internals can change. */
#include <cairn/tensor.h>

#include "base/int.h"
#include "base/str.h"
#include "base/thread.h"
#include "tensor/safetensors.h"
#include "tensor/source.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The two lists of codes must match. */
_Static_assert((int)CAIRN_TENSOR_EIO == (int)CAIRN_EIO && (int)CAIRN_TENSOR_EFORMAT == (int)CAIRN_EFORMAT &&
                   (int)CAIRN_TENSOR_EUSAGE == (int)CAIRN_EUSAGE &&
                   (int)CAIRN_TENSOR_ELACK == (int)CAIRN_ELACK &&
                   (int)CAIRN_TENSOR_ENOMEM == (int)CAIRN_ENOMEM,
               "enum cairn_tensor_code is enum cairn_code");

struct cairn_tensor_file {
    struct tensor_source source;
};

struct cairn_tensor_writer {
    struct st_writer writer;
    struct arena arena;
    struct st_tensor *tensors;
    size_t n;
    uint64_t bytes;       /* of all tensors */
    _Atomic uint64_t put; /* bytes written so far */
    bool done;
};

static int tell(struct cairn_tensor_error *out, const struct cairn_error *err)
{
    if (!out)
        return -1;
    out->code = (int)err->code;
    snprintf(out->message, sizeof(out->message), "%s", err->msg);
    snprintf(out->hint, sizeof(out->hint), "%s", err->hint);
    return -1;
}

int cairn_tensor_version(void)
{
    return CAIRN_TENSOR_VERSION;
}

int cairn_tensor_open_with(const char *path, unsigned flags, struct cairn_tensor_file **out,
                           struct cairn_tensor_error *err)
{
    struct cairn_error why = { 0 };
    if (flags & ~(unsigned)CAIRN_TENSOR_DIRECT) {
        cairn_fail(&why, CAIRN_EUSAGE, "%s: unknown flags %u", path, flags);
        return tell(err, &why);
    }
    struct cairn_tensor_file *f = calloc(1, sizeof(*f));
    if (!f)
        cairn_fail(&why, CAIRN_ENOMEM, "%s: no memory", path);
    if (!f || source_open(&f->source, path, &why)) {
        free(f);
        return tell(err, &why);
    }
    if (flags & CAIRN_TENSOR_DIRECT)
        source_set_direct(&f->source);
    *out = f;
    return 0;
}

int cairn_tensor_open(const char *path, struct cairn_tensor_file **out, struct cairn_tensor_error *err)
{
    return cairn_tensor_open_with(path, 0, out, err);
}

int cairn_tensor_is_direct(const struct cairn_tensor_file *f)
{
    return f->source.direct;
}

void cairn_tensor_close(struct cairn_tensor_file *f)
{
    if (f)
        source_close(&f->source);
    free(f);
}

size_t cairn_tensor_count(const struct cairn_tensor_file *f)
{
    return f->source.n_tensors;
}

int cairn_tensor_get(const struct cairn_tensor_file *f, size_t i, struct cairn_tensor_info *out)
{
    const struct tensor_source *s = &f->source;
    uint64_t at;
    int fd;
    if (i >= s->n_tensors)
        return -1;
    const struct st_tensor *t = &s->tensors[i];
    *out = (struct cairn_tensor_info){
        .name = t->name,
        .dtype = t->dtype_text,
        .shape = t->shape,
        .rank = (size_t)t->rank,
        .elements = t->elements,
        .bytes = t->bytes,
        .file = source_path_of(s, t),
        .offset = source_place(s, t, &fd, &at) ? at : UINT64_MAX,
    };
    return 0;
}

size_t cairn_tensor_find(const struct cairn_tensor_file *f, const char *name)
{
    const struct st_tensor *t = source_find(&f->source, name);
    return t ? (size_t)(t - f->source.tensors) : SIZE_MAX;
}

size_t cairn_tensor_meta_count(const struct cairn_tensor_file *f)
{
    return f->source.n_meta;
}

int cairn_tensor_meta_get(const struct cairn_tensor_file *f, size_t i, const char **key, const char **value)
{
    if (i >= f->source.n_meta)
        return -1;
    *key = f->source.meta[i].key;
    *value = f->source.meta[i].value;
    return 0;
}

size_t cairn_tensor_dtype_bytes(const char *dtype)
{
    return dtype_size(dtype_parse(dtype));
}

/* One large read, cut into pieces for the threads.  Raw bytes (DTYPE_OTHER) count as elements of one byte. */
struct read_job {
    const struct tensor_source *source;
    const struct st_tensor *tensor;
    uint64_t first, n, piece;
    enum dtype as;
    size_t size; /* bytes of one element in memory */
    char *into;
};

enum { PIECE_BYTES = 4 << 20 };

static int read_piece(void *context, size_t i, struct cairn_error *err)
{
    const struct read_job *j = context;
    uint64_t begin = i * j->piece, n = j->n - begin < j->piece ? j->n - begin : j->piece;
    char *into = j->into + begin * j->size;
    if (j->as == DTYPE_OTHER)
        return source_read_bytes(j->source, j->tensor, j->first + begin, n, into, err);
    return source_read_as(j->source, j->tensor, j->first + begin, n, j->as, into, err);
}

static int plan_read(struct read_job *j, const char *dtype, size_t into_bytes, struct cairn_error *err)
{
    const struct st_tensor *t = j->tensor;
    const char *path = source_path_of(j->source, t);
    uint64_t bytes;
    j->as = dtype ? dtype_parse(dtype) : t->dtype;
    if (dtype && j->as == DTYPE_OTHER)
        return cairn_fail(err, CAIRN_EUSAGE, "unknown dtype \"%s\"", dtype);
    if (j->first > t->elements || j->n > t->elements - j->first)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s has no elements %" PRIu64 " to %" PRIu64, path,
                          t->name, j->first, j->first + j->n);
    j->size = dtype_size(j->as);
    if (j->as == DTYPE_OTHER) {
        if (j->first || j->n != t->elements)
            return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s is %s, which can only be read as a whole",
                              path, t->name, t->dtype_text);
        j->n = t->bytes;
        j->size = 1;
    }
    if (__builtin_mul_overflow(j->n, j->size, &bytes) || bytes > into_bytes)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s: a buffer of %zu bytes is too small", path,
                          t->name, into_bytes);
    j->piece = PIECE_BYTES / j->size;
    return 0;
}

int cairn_tensor_read(const struct cairn_tensor_file *f, size_t i, uint64_t first, uint64_t n,
                      const char *dtype, int threads, void *into, size_t into_bytes,
                      struct cairn_tensor_error *err)
{
    struct cairn_error why = { 0 };
    struct read_job j = { .source = &f->source, .first = first, .n = n, .into = into };
    if (i >= f->source.n_tensors) {
        cairn_fail(&why, CAIRN_EUSAGE, "%s: no tensor with index %zu", f->source.path, i);
        return tell(err, &why);
    }
    j.tensor = &f->source.tensors[i];
    if (plan_read(&j, dtype, into_bytes, &why))
        return tell(err, &why);
    size_t pieces = div_up(j.n, j.piece);
    if (threads <= 0)
        threads = parallel_threads();
    return parallel_for(pieces, threads, read_piece, &j, &why) ? tell(err, &why) : 0;
}

static int plan_tensor(struct cairn_tensor_writer *w, const struct cairn_tensor_info *info,
                       struct st_tensor *t, struct cairn_error *err)
{
    enum dtype dtype = info->dtype ? dtype_parse(info->dtype) : DTYPE_OTHER;
    if (!info->name || dtype == DTYPE_OTHER)
        return cairn_fail(err, CAIRN_EUSAGE, "tensor %s: unknown dtype \"%s\"",
                          info->name ? info->name : "without a name", info->dtype ? info->dtype : "");
    if (info->rank > ST_RANK_MAX)
        return cairn_fail(err, CAIRN_EUSAGE, "tensor %s: more than %d dimensions", info->name, ST_RANK_MAX);
    uint64_t *shape = ARENA_NEW(&w->arena, uint64_t, info->rank + 1);
    *t = (struct st_tensor){
        .name = arena_strdup(&w->arena, info->name),
        .dtype = dtype,
        .dtype_text = dtype_safetensors(dtype),
        .shape = shape,
        .rank = (int)info->rank,
        .elements = 1,
    };
    for (size_t i = 0; i < info->rank; i++) {
        shape[i] = info->shape[i];
        if (__builtin_mul_overflow(t->elements, shape[i], &t->elements))
            return cairn_fail(err, CAIRN_EUSAGE, "tensor %s: shape overflows 64 bits", info->name);
    }
    if (__builtin_mul_overflow(t->elements, dtype_size(dtype), &t->bytes) || t->bytes > INT64_MAX)
        return cairn_fail(err, CAIRN_EUSAGE, "tensor %s: shape overflows 64 bits", info->name);
    if (__builtin_add_overflow(w->bytes, t->bytes, &w->bytes) || w->bytes > INT64_MAX / 2)
        return cairn_fail(err, CAIRN_EUSAGE, "tensor %s: too large for a file", info->name);
    return 0;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses text that JSON would have to change, and duplicate names: neither could be found again. */
static int check_texts(const char *what, const char *const *texts, size_t n, struct cairn_error *err)
{
    CLEANUP(mem_free) const char **sorted = calloc(n + 1, sizeof(*sorted));
    if (!sorted)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu names", n);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = texts[i];
        if (!texts[i] || !str_is_utf8(texts[i]))
            return cairn_fail(err, CAIRN_EUSAGE, "%s %zu is not UTF-8", what, i);
    }
    qsort(sorted, n, sizeof(*sorted), compare_text);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(sorted[i - 1], sorted[i]))
            return cairn_fail(err, CAIRN_EUSAGE, "duplicate %s %s", what, sorted[i]);
    return 0;
}

static int open_writer(struct cairn_tensor_writer *w, const char *path,
                       const struct cairn_tensor_info *tensors, const char *const *meta, size_t n_meta,
                       unsigned flags, struct cairn_error *err)
{
    const char **names = ARENA_NEW(&w->arena, const char *, w->n + n_meta + 2);
    struct st_meta *pairs = ARENA_NEW(&w->arena, struct st_meta, n_meta + 1);
    w->tensors = ARENA_NEW(&w->arena, struct st_tensor, w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        if (plan_tensor(w, &tensors[i], &w->tensors[i], err))
            return -1;
        names[i] = w->tensors[i].name;
        if (!strcmp(names[i], "__metadata__"))
            return cairn_fail(err, CAIRN_EUSAGE, "a tensor cannot be named __metadata__");
    }
    if (check_texts("tensor", names, w->n, err))
        return -1;
    for (size_t i = 0; i < n_meta; i++) {
        names[i] = meta[2 * i];
        pairs[i] = (struct st_meta){ meta[2 * i], meta[2 * i + 1] };
        if (!pairs[i].value || !str_is_utf8(pairs[i].value))
            return cairn_fail(err, CAIRN_EUSAGE, "the metadata's value %zu is not UTF-8", i);
    }
    if (check_texts("metadata key", names, n_meta, err))
        return -1;
    const struct st_contents contents = {
        .tensors = w->tensors,
        .n = w->n,
        .meta = pairs,
        .n_meta = n_meta,
        .order = flags & CAIRN_TENSOR_KEEP_ORDER ? ST_ORDER_GIVEN : ST_ORDER_REFERENCE,
    };
    return st_writer_open(&w->writer, path, &contents, flags & CAIRN_TENSOR_REPLACE, err);
}

int cairn_tensor_writer_open(const char *path, const struct cairn_tensor_info *tensors, size_t n,
                             const char *const *meta, size_t n_meta, unsigned flags,
                             struct cairn_tensor_writer **out, struct cairn_tensor_error *err)
{
    struct cairn_error why = { 0 };
    struct cairn_tensor_writer *w = calloc(1, sizeof(*w));
    if (!w) {
        cairn_fail(&why, CAIRN_ENOMEM, "%s: no memory", path);
        return tell(err, &why);
    }
    w->writer.out = (struct file_out)FILE_OUT_NONE;
    w->n = n;
    if (open_writer(w, path, tensors, meta, n_meta, flags, &why)) {
        cairn_tensor_writer_close(w);
        return tell(err, &why);
    }
    *out = w;
    return 0;
}

int cairn_tensor_writer_put(struct cairn_tensor_writer *w, size_t i, uint64_t byte, const void *bytes,
                            size_t n, struct cairn_tensor_error *err)
{
    struct cairn_error why = { 0 };
    if (w->done)
        cairn_fail(&why, CAIRN_EUSAGE, "the file is already committed");
    else if (i >= w->n)
        cairn_fail(&why, CAIRN_EUSAGE, "no tensor with index %zu", i);
    else if (byte > w->tensors[i].bytes || n > w->tensors[i].bytes - byte)
        cairn_fail(&why, CAIRN_EUSAGE, "tensor %s has no bytes %" PRIu64 " to %" PRIu64, w->tensors[i].name,
                   byte, byte + n);
    else if (!st_writer_put(&w->writer, i, byte, bytes, n, &why)) {
        w->put += n;
        return 0;
    }
    return tell(err, &why);
}

int cairn_tensor_writer_commit(struct cairn_tensor_writer *w, struct cairn_tensor_error *err)
{
    struct cairn_error why = { 0 };
    if (w->done)
        cairn_fail(&why, CAIRN_EUSAGE, "the file is already committed");
    else if (w->put < w->bytes)
        cairn_fail(&why, CAIRN_EUSAGE, "%s: only %" PRIu64 " of %" PRIu64 " bytes were written",
                   w->writer.out.path, (uint64_t)w->put, w->bytes);
    else if (!st_writer_commit(&w->writer, &why)) {
        w->done = true;
        return 0;
    }
    return tell(err, &why);
}

void cairn_tensor_writer_close(struct cairn_tensor_writer *w)
{
    if (!w)
        return;
    st_writer_close(&w->writer);
    arena_release(&w->arena);
    free(w);
}
