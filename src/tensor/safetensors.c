/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/safetensors.h"

#include "base/json.h"
#include "base/str.h"
#include "os/path.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names of the format that are no dtype of ours, with their size in bits. */
static const struct {
    const char *name;
    unsigned bits;
} other_dtypes[] = {
    { "F4", 4 },          { "F6_E2M3", 6 },     { "F6_E3M2", 6 }, { "F8_E8M0", 8 },
    { "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "C64", 64 },
};

/* 0: not known. */
static unsigned dtype_bits(const char *text, enum dtype *type)
{
    for (int t = DTYPE_OTHER + 1; t < DTYPE_COUNT; t++) {
        if (!strcmp(text, dtype_safetensors((enum dtype)t))) {
            *type = (enum dtype)t;
            return (unsigned)dtype_size(*type) * 8;
        }
    }
    *type = DTYPE_OTHER;
    for (size_t i = 0; i < ARRAY_LEN(other_dtypes); i++)
        if (!strcmp(text, other_dtypes[i].name))
            return other_dtypes[i].bits;
    return 0;
}

static int read_shape(const struct json *v, struct arena *a, struct st_tensor *t, struct cairn_error *err)
{
    size_t rank = json_length(v);
    if (!json_is_array(v) || rank > ST_RANK_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "tensor %s: shape must be a list of at most %d numbers",
                          t->name, ST_RANK_MAX);
    uint64_t *shape = ARENA_NEW(a, uint64_t, rank + 1);
    t->elements = 1;
    for (size_t i = 0; i < rank; i++) {
        if (!json_to_u64(json_at(v, i), &shape[i]))
            return cairn_fail(err, CAIRN_EFORMAT, "tensor %s: shape[%zu] is not an integer >= 0", t->name, i);
        if (__builtin_mul_overflow(t->elements, shape[i], &t->elements))
            return cairn_fail(err, CAIRN_EFORMAT, "tensor %s: shape overflows 64 bits", t->name);
    }
    t->shape = shape;
    t->rank = (int)rank;
    return 0;
}

static int read_extent(const struct json *v, struct st_tensor *t, struct cairn_error *err)
{
    uint64_t begin, end;
    if (json_length(v) != 2 || !json_to_u64(json_at(v, 0), &begin) || !json_to_u64(json_at(v, 1), &end) ||
        end < begin)
        return cairn_fail(err, CAIRN_EFORMAT, "tensor %s: data_offsets must be [begin, end]", t->name);
    t->at = begin;
    t->bytes = end - begin;
    return 0;
}

static int read_tensor(const struct json_member *m, struct arena *a, struct st_tensor *t,
                       struct cairn_error *err)
{
    const char *dtype = json_text(json_get(m->value, "dtype"));
    t->name = arena_strdup(a, m->key);
    if (!json_is_object(m->value) || !dtype)
        return cairn_fail(err, CAIRN_EFORMAT, "tensor %s: no dtype", t->name);
    t->dtype_text = arena_strdup(a, dtype);
    if (read_shape(json_get(m->value, "shape"), a, t, err) ||
        read_extent(json_get(m->value, "data_offsets"), t, err))
        return -1;
    unsigned bits = dtype_bits(dtype, &t->dtype);
    uint64_t all_bits;
    if (!bits) /* a dtype of the future: its extent is all that is known */
        return 0;
    if (__builtin_mul_overflow(t->elements, bits, &all_bits))
        return cairn_fail(err, CAIRN_EFORMAT, "tensor %s: shape overflows 64 bits", t->name);
    if (all_bits % 8 || all_bits / 8 != t->bytes)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "tensor %s: %" PRIu64 " elements of %s do not take %" PRIu64 " bytes", t->name,
                          t->elements, dtype, t->bytes);
    return 0;
}

struct header {
    struct st_tensor *tensors;
    size_t n;
    struct st_meta *meta;
    size_t n_meta;
};

static int read_meta(const struct json *v, struct arena *a, struct header *h, struct cairn_error *err)
{
    if (json_is_null(v))
        return 0;
    if (!json_is_object(v))
        return cairn_fail(err, CAIRN_EFORMAT, "__metadata__ must be an object");
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m)) {
        const char *value = json_text(m.value);
        if (!value)
            return cairn_fail(err, CAIRN_EFORMAT, "__metadata__: %s is not a string", m.key);
        *ARENA_PUSH(a, h->meta, h->n_meta) =
            (struct st_meta){ arena_strdup(a, m.key), arena_strdup(a, value) };
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    /* An empty tensor lies before the one that starts at the same place. */
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) : strcmp(x->name, y->name);
}

/* The data must be covered exactly: no hole, no overlap, nothing left over. */
static int check_cover(const struct st_tensor *t, size_t n, uint64_t data_bytes, struct cairn_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (t[i].at != at)
            return cairn_fail(err, CAIRN_EFORMAT,
                              "tensor %s: data starts at %" PRIu64 ", %s (expected %" PRIu64 ")", t[i].name,
                              t[i].at, t[i].at < at ? "inside another tensor's data" : "which leaves a hole",
                              at);
        at += t[i].bytes;
    }
    if (at > data_bytes)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "the file is truncated: the header describes %" PRIu64
                          " bytes of data, it has %" PRIu64,
                          at, data_bytes);
    if (at < data_bytes)
        return cairn_fail(err, CAIRN_EFORMAT, "%" PRIu64 " bytes after the last tensor belong to no tensor",
                          data_bytes - at);
    return 0;
}

/* Checks it against the size of the data that follows. */
static int parse_header(const char *text, size_t len, uint64_t data_bytes, struct arena *a, struct header *h,
                        struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    if (json_parse(text, len, &top, err))
        return cairn_wrap(err, "header");
    if (!json_is_object(top))
        return cairn_fail(err, CAIRN_EFORMAT, "header: not a JSON object");
    *h = (struct header){ 0 };
    for (struct json_member m = json_first(top); m.key; m = json_next(top, m)) {
        if (!strcmp(m.key, "__metadata__")) {
            if (read_meta(m.value, a, h, err))
                return -1;
        } else if (read_tensor(&m, a, ARENA_PUSH(a, h->tensors, h->n), err)) {
            return -1;
        }
    }
    if (h->n > 1)
        qsort(h->tensors, h->n, sizeof(*h->tensors), by_place);
    return check_cover(h->tensors, h->n, data_bytes, err);
}

static int read_header(struct st_file *f, struct st_shard *s, struct header *h, struct cairn_error *err)
{
    uint64_t len;
    if (s->size < sizeof(len))
        return cairn_fail(err, CAIRN_EFORMAT, "%" PRIu64 " bytes are too few for a safetensors file",
                          s->size);
    if (file_read_at(s->fd, s->path, &len, sizeof(len), 0, err))
        return -1;
    len = le64toh(len);
    if (len > ST_HEADER_MAX)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "header of %" PRIu64 " bytes; not a safetensors file, or damaged", len);
    if (len > s->size - sizeof(len))
        return cairn_fail(err, CAIRN_EFORMAT,
                          "the file is truncated: header of %" PRIu64 " bytes in a file of %" PRIu64, len,
                          s->size);
    CLEANUP(mem_free) char *text = malloc(len ? len : 1);
    if (!text)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a header of %" PRIu64 " bytes", len);
    if (file_read_at(s->fd, s->path, text, len, sizeof(len), err))
        return -1;
    s->data_at = sizeof(len) + len;
    return parse_header(text, len, s->size - s->data_at, &f->arena, h, err);
}

static int open_shard(struct st_file *f, const char *path, struct cairn_error *err)
{
    struct st_shard *s = ARENA_PUSH(&f->arena, f->shards, f->n_shards);
    struct header h;
    *s = (struct st_shard){ .path = arena_strdup(&f->arena, path), .fd = -1 };
    if (file_open(path, &s->fd, &s->size, err))
        return -1;
    if (read_header(f, s, &h, err))
        return cairn_wrap(err, "%s", path);
    for (size_t i = 0; i < h.n; i++) {
        h.tensors[i].shard = f->n_shards - 1;
        h.tensors[i].at += s->data_at;
        *ARENA_PUSH(&f->arena, f->tensors, f->n_tensors) = h.tensors[i];
    }
    if (f->n_shards == 1)
        f->meta = h.meta, f->n_meta = h.n_meta;
    return 0;
}

/* A shard's name comes from a file; it must stay beside the index. */
static int shard_path(struct st_file *f, const char *index, const char *name, char **out,
                      struct cairn_error *err)
{
    if (!*name || path_separator(name) || !strcmp(name, ".."))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" is not a file name", index, name);
    *out = arena_printf(&f->arena, "%.*s%s", (int)(path_name(index) - index), index, name);
    return 0;
}

static bool has_shard(const struct st_file *f, const char *path)
{
    for (size_t i = 0; i < f->n_shards; i++)
        if (!strcmp(f->shards[i].path, path))
            return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct st_tensor *const *)a)->name, (*(const struct st_tensor *const *)b)->name);
}

/* Within one file the parser refuses a duplicate name; two shards may still have the same one. */
static int sort_names(struct st_file *f, struct cairn_error *err)
{
    f->by_name = ARENA_NEW(&f->arena, const struct st_tensor *, f->n_tensors);
    for (size_t i = 0; i < f->n_tensors; i++)
        f->by_name[i] = &f->tensors[i];
    if (f->n_tensors > 1)
        qsort(f->by_name, f->n_tensors, sizeof(*f->by_name), compare_names);
    for (size_t i = 1; i < f->n_tensors; i++)
        if (!strcmp(f->by_name[i]->name, f->by_name[i - 1]->name))
            return cairn_fail(err, CAIRN_EFORMAT, "tensor %s is in %s and in %s", f->by_name[i]->name,
                              f->shards[f->by_name[i - 1]->shard].path, f->shards[f->by_name[i]->shard].path);
    return 0;
}

static int open_index(struct st_file *f, const char *path, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    CLEANUP(json_cleanup) struct json *top = NULL;
    size_t size;
    if (file_read_whole(path, ST_HEADER_MAX, &text, &size, err))
        return -1;
    if (json_parse(text, size, &top, err))
        return cairn_wrap(err, "%s", path);
    const struct json *map = json_get(top, "weight_map");
    if (!json_is_object(map))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: no \"weight_map\"", path);
    for (struct json_member m = json_first(map); m.key; m = json_next(map, m)) {
        const char *name = json_text(m.value);
        char *shard = NULL;
        if (!name)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: the file of %s is not a string", path, m.key);
        if (shard_path(f, path, name, &shard, err) || (!has_shard(f, shard) && open_shard(f, shard, err)))
            return -1;
    }
    if (sort_names(f, err))
        return -1;
    for (struct json_member m = json_first(map); m.key; m = json_next(map, m))
        if (!st_find(f, m.key))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: %s is not in %s", path, m.key, json_text(m.value));
    return 0;
}

int st_open(struct st_file *f, const char *path, struct cairn_error *err)
{
    *f = (struct st_file){ 0 };
    bool index = str_ends(path, ".index.json");
    if (index ? open_index(f, path, err) : open_shard(f, path, err) || sort_names(f, err)) {
        st_close(f);
        return -1;
    }
    return 0;
}

/* Digits that are followed by `end`; returns what comes after, or NULL. */
static const char *read_number(const char *text, const char *end, unsigned *out)
{
    size_t n = strspn(text, "0123456789");
    if (!n || n > 6 || !str_starts(text + n, end))
        return NULL;
    *out = (unsigned)strtoul(text, NULL, 10);
    return text + n + strlen(end);
}

bool st_is_shard(const char *path, unsigned *number, unsigned *of, size_t *at)
{
    for (const char *dash = strchr(path_name(path), '-'); dash; dash = strchr(dash + 1, '-')) {
        const char *total = read_number(dash + 1, "-of-", number);
        const char *end = total ? read_number(total, ".safetensors", of) : NULL;
        *at = (size_t)(dash + 1 - path);
        if (end && !*end && *number && *number <= *of)
            return true;
    }
    return false;
}

int st_open_siblings(struct st_file *f, const char *path, struct cairn_error *err)
{
    unsigned number, of;
    size_t at;
    if (!st_is_shard(path, &number, &of, &at))
        return st_open(f, path, err);
    *f = (struct st_file){ 0 };
    int digits = (int)strspn(path + at, "0123456789"), r = 0;
    for (unsigned i = 1; i <= of && !r; i++)
        r = open_shard(f, arena_printf(&f->arena, "%.*s%0*u%s", (int)at, path, digits, i, path + at + digits),
                       err);
    if (r || sort_names(f, err)) {
        st_close(f);
        return r ? cairn_hint(err, "%s is one of %u shards, and all are needed", path_name(path), of) : -1;
    }
    return 0;
}

void st_close(struct st_file *f)
{
    for (size_t i = 0; i < f->n_shards; i++)
        fd_close(&f->shards[i].fd);
    arena_release(&f->arena);
    *f = (struct st_file){ 0 };
}

const struct st_tensor *st_find(const struct st_file *f, const char *name)
{
    struct st_tensor key = { .name = name };
    const struct st_tensor *wanted = &key;
    const struct st_tensor **found =
        f->n_tensors ? bsearch(&wanted, f->by_name, f->n_tensors, sizeof(*f->by_name), compare_names) : NULL;
    return found ? *found : NULL;
}

const char *st_meta_find(const struct st_file *f, const char *key)
{
    for (size_t i = 0; i < f->n_meta; i++)
        if (!strcmp(f->meta[i].key, key))
            return f->meta[i].value;
    return NULL;
}

int st_read(const struct st_file *f, const struct st_tensor *t, uint64_t first, uint64_t n, void *into,
            struct cairn_error *err)
{
    const struct st_shard *s = &f->shards[t->shard];
    size_t size = dtype_size(t->dtype);
    if (!size || first > t->elements || n > t->elements - first)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: %s has no elements %" PRIu64 " to %" PRIu64, s->path,
                          t->name, first, first + n);
    if (file_read_at(s->fd, s->path, into, n * size, t->at + first * size, err))
        return cairn_hint(err, "tensor %.200s", t->name);
    return 0;
}
