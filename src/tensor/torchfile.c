/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/torchfile.h"

#include "base/str.h"
#include "tensor/torch_gather.h"
#include "tensor/torch_pickle.h"
#include "tensor/zip.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Tensors may share a storage or repeat its elements (stride 0), so that a few bytes can claim any size.
     * All of them together may claim so many times the bytes of the file, and SHARED_MIN besides. */
    SHARED_TIMES = 16,
    SHARED_MIN = 1 << 30,
};

/* What an archive offers besides the pickle. */
struct archive {
    const char *prefix; /* "archive/" */
    struct torch_named *found;
    size_t n;
};

/* The old format begins with a pickled number, 0x1950a86a20f9469cfc6c. */
static const unsigned char legacy_magic[] = { 0x80, 2,    0x8a, 10,   0x6c, 0xfc,
                                              0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8 };

static int check_kind(const struct torch_file *f, struct cairn_error *err)
{
    unsigned char start[sizeof(legacy_magic)] = { 0 };
    size_t n = f->size < sizeof(start) ? (size_t)f->size : sizeof(start);
    if (file_read_at(f->fd, f->path, start, n, 0, err))
        return -1;
    if (!memcmp(start, legacy_magic, sizeof(start))) {
        cairn_fail(err, CAIRN_EFORMAT, "%s is a torch file of the format before 1.6, which is not supported",
                   f->path);
        return cairn_hint(err, "convert it: torch.save(torch.load(FILE, weights_only=True), NEW)");
    }
    if (memcmp(start, "PK\003\004", 4))
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not a torch file: it is not a zip archive", f->path);
    return 0;
}

/* "archive/data.pkl": the one such entry gives the prefix of all. */
static int find_prefix(struct torch_file *f, struct archive *z, const struct zip_entry **pickle,
                       struct cairn_error *err)
{
    static const char last[] = "data.pkl";
    *pickle = NULL;
    for (size_t i = 0; i < f->zip.n_entries; i++) {
        const char *name = f->zip.entries[i].name, *slash = strchr(name, '/');
        if (strcmp(slash ? slash + 1 : name, last))
            continue;
        if (*pickle)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: two pickles: %s and %s", f->path, (*pickle)->name,
                              name);
        *pickle = &f->zip.entries[i];
        z->prefix = arena_strndup(&f->arena, name, strlen(name) - strlen(last));
    }
    if (!*pickle)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not a torch file: a zip archive without data.pkl",
                          f->path);
    return 0;
}

/* Files before torch 2.1 have no such entry; they are little-endian in practice. */
static int check_byte_order(struct torch_file *f, const struct archive *z, struct cairn_error *err)
{
    char text[8] = "";
    uint64_t at;
    const struct zip_entry *e = zip_find(&f->zip, arena_printf(&f->arena, "%sbyteorder", z->prefix));
    if (!e)
        return 0;
    if (zip_locate(&f->zip, e, &at, err))
        return -1;
    if (file_read_at(f->fd, f->path, text, e->size < sizeof(text) ? (size_t)e->size : sizeof(text) - 1, at,
                     err))
        return -1;
    if (strcmp(text, "little"))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the byte order is not little-endian", f->path);
    return 0;
}

static int read_pickle(struct torch_file *f, struct archive *z, const struct zip_entry *e,
                       struct cairn_error *err)
{
    uint64_t at;
    if (zip_locate(&f->zip, e, &at, err))
        return -1;
    if (e->size > PICKLE_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has %" PRIu64 " bytes, more than the limit of %d",
                          f->path, e->name, e->size, PICKLE_MAX);
    CLEANUP(mem_free) char *bytes = malloc((size_t)e->size + 1);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %" PRIu64 " bytes", f->path, e->size);
    if (file_read_at(f->fd, f->path, bytes, (size_t)e->size, at, err))
        return -1;
    if (!torch_pickle_read(bytes, (size_t)e->size, &f->arena, &z->found, &z->n, err))
        return 0;
    return cairn_wrap(err, "%s: %s", f->path, e->name);
}

/* How many elements of the storage the view reaches over; false on overflow. */
static bool view_reach(const struct torch_view *v, uint64_t *elements, uint64_t *reach)
{
    uint64_t last = v->offset, step;
    *elements = 1;
    for (int i = 0; i < v->rank; i++)
        if (__builtin_mul_overflow(*elements, v->shape[i], elements))
            return false;
    if (!*elements) {
        *reach = v->offset;
        return true;
    }
    for (int i = 0; i < v->rank; i++)
        if (__builtin_mul_overflow(v->shape[i] - 1, v->stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    return !__builtin_add_overflow(last, 1, reach);
}

static bool view_is_whole(const struct torch_view *v, uint64_t elements)
{
    uint64_t want = 1;
    for (int i = v->rank; elements && i-- > 0;) {
        if (v->shape[i] > 1 && v->stride[i] != want)
            return false;
        want *= v->shape[i];
    }
    return true;
}

static int add_tensor(struct torch_file *f, const struct archive *z, const struct torch_named *named,
                      struct st_tensor *t, struct torch_strided *how, struct cairn_error *err)
{
    const struct torch_view *v = named->view;
    uint64_t elements, reach, bytes, reach_bytes, at;
    const struct zip_entry *e =
        zip_find(&f->zip, arena_printf(&f->arena, "%sdata/%s", z->prefix, v->storage->key));
    if (!e)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s: no entry %sdata/%s in the archive", f->path,
                          named->name, z->prefix, v->storage->key);
    if (zip_locate(&f->zip, e, &at, err))
        return -1;
    if (!view_reach(v, &elements, &reach) || __builtin_mul_overflow(elements, v->type->size, &bytes) ||
        __builtin_mul_overflow(reach, v->type->size, &reach_bytes))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s: shape overflows 64 bits", f->path, named->name);
    if (reach_bytes > e->size)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: tensor %s reaches %" PRIu64 " bytes into %s (at byte %" PRIu64
                          "), which has %" PRIu64,
                          f->path, named->name, reach_bytes, e->name, at, e->size);
    uint64_t claimed; /* what the storage says of itself; torch goes by it */
    if (__builtin_mul_overflow(v->storage->n, v->storage->type ? v->storage->type->size : 1, &claimed) ||
        reach_bytes > claimed)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: tensor %s reaches %" PRIu64 " bytes into a storage that says it has %" PRIu64
                          " elements",
                          f->path, named->name, reach_bytes, v->storage->n);
    uint64_t data_at = at;
    at += v->offset * v->type->size;
    *how = (struct torch_strided){ at, v->type->size, v->stride, view_is_whole(v, elements), e, data_at };
    *t = (struct st_tensor){
        .name = named->name,
        .dtype = v->type->dtype,
        .dtype_text = v->type->safetensors,
        .shape = v->shape,
        .rank = v->rank,
        .elements = elements,
        .bytes = bytes,
        .at = how->whole ? at : 0,
    };
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* {"a.b": …, "a": {"b": …}} has one name for two tensors. */
static int check_names(const struct torch_file *f, const struct archive *z, struct cairn_error *err)
{
    CLEANUP(mem_free) const char **names = calloc(z->n + 1, sizeof(*names));
    if (!names)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu names", f->path, z->n);
    for (size_t i = 0; i < z->n; i++)
        names[i] = z->found[i].name;
    qsort(names, z->n, sizeof(*names), compare_names);
    for (size_t i = 1; i < z->n; i++)
        if (!strcmp(names[i - 1], names[i]))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: duplicate tensor %s", f->path, names[i]);
    return 0;
}

static int check_total(const struct torch_file *f, struct cairn_error *err)
{
    uint64_t total = 0, most = f->size * SHARED_TIMES + SHARED_MIN;
    for (size_t i = 0; i < f->n_tensors; i++)
        if (__builtin_add_overflow(total, f->tensors[i].bytes, &total) || total > most)
            return cairn_fail(err, CAIRN_EFORMAT,
                              "%s: its tensors repeat the %" PRIu64 " bytes of the file more than %d times",
                              f->path, f->size, SHARED_TIMES);
    return 0;
}

struct extent {
    uint64_t from, to;
    const char *name;
};

static int by_place(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : strcmp(x->name, y->name);
}

/* No writer makes two entries of the same bytes; of such an archive each reader sees another. */
static int check_overlap(const struct torch_file *f, struct cairn_error *err)
{
    CLEANUP(mem_free) struct extent *list = calloc(f->n_tensors + 1, sizeof(*list));
    if (!list)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu tensors", f->path, f->n_tensors);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct torch_strided *how = &f->strided[i];
        list[i] = (struct extent){ how->data_at, how->data_at + how->entry->size, how->entry->name };
    }
    qsort(list, f->n_tensors, sizeof(*list), by_place);
    for (size_t i = 1; i < f->n_tensors; i++)
        if (list[i].name != list[i - 1].name && list[i].from < list[i - 1].to)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: the entries %s and %s overlap", f->path,
                              list[i - 1].name, list[i].name);
    return 0;
}

static int read_archive(struct torch_file *f, struct cairn_error *err)
{
    struct archive z = { 0 };
    const struct zip_entry *pickle;
    if (check_kind(f, err) || zip_read(&f->zip, f->fd, f->path, f->size, &f->arena, err) ||
        find_prefix(f, &z, &pickle, err) || check_byte_order(f, &z, err) || read_pickle(f, &z, pickle, err) ||
        check_names(f, &z, err))
        return -1;
    struct torch_strided *strided = ARENA_NEW(&f->arena, struct torch_strided, z.n + 1);
    f->tensors = ARENA_NEW(&f->arena, struct st_tensor, z.n + 1);
    for (size_t i = 0; i < z.n; i++)
        if (add_tensor(f, &z, &z.found[i], &f->tensors[i], &strided[i], err))
            return -1;
    f->strided = strided;
    f->n_tensors = z.n;
    return check_total(f, err) || check_overlap(f, err) ? -1 : 0;
}

int torch_file_sums(const struct torch_file *f, struct arena *a, struct st_sum **out, size_t *n,
                    struct cairn_error *err)
{
    const struct st_tensor **of = ARENA_NEW(a, const struct st_tensor *, f->zip.n_entries + 1);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct torch_strided *how = &f->strided[i];
        if (how->whole && f->tensors[i].bytes == how->entry->size)
            of[how->entry - f->zip.entries] = &f->tensors[i];
    }
    *out = NULL;
    *n = 0;
    for (size_t i = 0; i < f->zip.n_entries; i++) {
        const struct zip_entry *e = &f->zip.entries[i];
        struct st_sum sum = { .name = e->name, .bytes = e->size, .crc = e->crc, .tensor = of[i] };
        if (!e->crc || e->method)
            continue;
        if (zip_locate(&f->zip, e, &sum.at, err))
            return -1;
        *ARENA_PUSH(a, *out, *n) = sum;
    }
    return 0;
}

bool torch_file_is_scattered(const struct torch_file *f)
{
    for (size_t i = 0; i < f->n_tensors; i++)
        if (!f->strided[i].whole && f->tensors[i].bytes > 1 << 20)
            return true;
    return false;
}

bool torch_file_lies_in(const struct torch_file *f, const struct st_tensor *t, const struct st_sum *sum)
{
    return f->strided[t - f->tensors].entry->name == sum->name;
}

int torch_file_open(struct torch_file *f, const char *path, struct cairn_error *err)
{
    *f = (struct torch_file){ .fd = -1 };
    f->path = arena_strdup(&f->arena, path);
    if (file_open(path, &f->fd, &f->size, err) || read_archive(f, err)) {
        torch_file_close(f);
        return -1;
    }
    return 0;
}

void torch_file_close(struct torch_file *f)
{
    if (f->path)
        fd_close(&f->fd);
    arena_release(&f->arena);
    *f = (struct torch_file){ .fd = -1 };
}

int torch_file_read_bytes(const struct torch_file *f, const struct st_tensor *t, uint64_t byte, uint64_t n,
                          void *into, struct cairn_error *err)
{
    const struct torch_strided *how = &f->strided[t - f->tensors];
    if (byte > t->bytes || n > t->bytes - byte || byte % how->size || n % how->size)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s has no bytes %" PRIu64 " to %" PRIu64, f->path,
                          t->name, byte, byte + n);
    if (!n)
        return 0;
    if (how->whole)
        return file_read_at(f->fd, f->path, into, n, how->at + byte, err);
    return torch_gather(&(struct torch_bytes){ f->fd, f->path }, t, how, byte / how->size, n / how->size,
                        into, err);
}

int torch_file_read(const struct torch_file *f, const struct st_tensor *t, uint64_t first, uint64_t n,
                    void *into, struct cairn_error *err)
{
    uint64_t size = dtype_size(t->dtype);
    if (!size || first > t->elements || n > t->elements - first)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s (%s) has no elements %" PRIu64 " to %" PRIu64,
                          f->path, t->name, t->dtype_text, first, first + n);
    return torch_file_read_bytes(f, t, first * size, n * size, into, err);
}
