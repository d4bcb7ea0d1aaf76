/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/source.h"

#include "base/str.h"
#include "tensor/torchfile.h"
#include "os/info.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a format has to offer.  `open` fills the list of the source and sets its file. */
struct source_format {
    const char *name;
    int (*open)(struct tensor_source *s, struct cairn_error *err);
    void (*close)(struct tensor_source *s);
    int (*read)(const struct tensor_source *s, const struct st_tensor *t, uint64_t byte, uint64_t n,
                void *into, struct cairn_error *err);
    bool (*place)(const struct tensor_source *s, const struct st_tensor *t, int *fd, uint64_t *at);
    int (*descriptor)(const struct tensor_source *s, size_t file);
    const char *(*path)(const struct tensor_source *s, size_t file);
    /* NULL: the format has no sums. */
    int (*sums)(const struct tensor_source *s, struct arena *a, struct st_sum **out, size_t *n,
                struct cairn_error *err);
};

static int safetensors_open(struct tensor_source *s, struct cairn_error *err)
{
    struct st_file *f = ARENA_NEW(&s->arena, struct st_file, 1);
    if (s->siblings ? st_open_siblings(f, s->path, err) : st_open(f, s->path, err))
        return -1;
    s->file = f;
    s->tensors = f->tensors;
    s->n_tensors = f->n_tensors;
    s->meta = f->meta;
    s->n_meta = f->n_meta;
    s->n_files = f->n_shards;
    return 0;
}

static void safetensors_close(struct tensor_source *s)
{
    st_close(s->file);
}

static int safetensors_descriptor(const struct tensor_source *s, size_t file)
{
    return ((const struct st_file *)s->file)->shards[file].fd;
}

static const char *safetensors_path(const struct tensor_source *s, size_t file)
{
    return ((const struct st_file *)s->file)->shards[file].path;
}

static int safetensors_read(const struct tensor_source *s, const struct st_tensor *t, uint64_t byte,
                            uint64_t n, void *into, struct cairn_error *err)
{
    return file_read_at(safetensors_descriptor(s, t->shard), safetensors_path(s, t->shard), into, n,
                        t->at + byte, err);
}

static bool safetensors_place(const struct tensor_source *s, const struct st_tensor *t, int *fd, uint64_t *at)
{
    *fd = safetensors_descriptor(s, t->shard);
    *at = t->at;
    return true;
}

static const struct source_format safetensors = {
    .name = "safetensors",
    .open = safetensors_open,
    .close = safetensors_close,
    .read = safetensors_read,
    .place = safetensors_place,
    .descriptor = safetensors_descriptor,
    .path = safetensors_path,
};

static int torch_open(struct tensor_source *s, struct cairn_error *err)
{
    struct torch_file *f = ARENA_NEW(&s->arena, struct torch_file, 1);
    if (torch_file_open(f, s->path, err))
        return -1;
    s->file = f;
    s->tensors = f->tensors;
    s->n_tensors = f->n_tensors;
    s->n_files = 1;
    s->scattered = torch_file_is_scattered(f);
    return 0;
}

static void torch_close(struct tensor_source *s)
{
    torch_file_close(s->file);
}

static int torch_descriptor(const struct tensor_source *s, size_t file)
{
    (void)file;
    return ((const struct torch_file *)s->file)->fd;
}

static const char *torch_path(const struct tensor_source *s, size_t file)
{
    (void)file;
    return s->path;
}

static int torch_read(const struct tensor_source *s, const struct st_tensor *t, uint64_t byte, uint64_t n,
                      void *into, struct cairn_error *err)
{
    return torch_file_read_bytes(s->file, t, byte, n, into, err);
}

static bool torch_place(const struct tensor_source *s, const struct st_tensor *t, int *fd, uint64_t *at)
{
    *fd = torch_descriptor(s, 0);
    *at = t->at;
    return t->at != 0;
}

static int torch_sums(const struct tensor_source *s, struct arena *a, struct st_sum **out, size_t *n,
                      struct cairn_error *err)
{
    return torch_file_sums(s->file, a, out, n, err);
}

static const struct source_format torch = {
    .name = "torch",
    .open = torch_open,
    .close = torch_close,
    .read = torch_read,
    .place = torch_place,
    .descriptor = torch_descriptor,
    .path = torch_path,
    .sums = torch_sums,
};

/* How other files begin.  A safetensors file begins with the length of its header, and its ninth byte is
 * '{'. */
static const struct {
    const char *magic;
    size_t n;
    const struct source_format *how;
    const char *refusal;
} magics[] = {
    { "PK\003\004", 4, &torch, NULL },
    { "\x80\002\x8a\012\x6c\xfc", 6, &torch, NULL }, /* the format before torch 1.6; it says so itself */
    { "GGUF", 4, NULL, "is a GGUF file; cairn reads .safetensors and .pth files" },
    { "\x89HDF", 4, NULL, "is an HDF5 file; cairn reads .safetensors and .pth files" },
};

static int choose_format(struct tensor_source *s, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    char start[9] = "";
    if (file_open(s->path, &fd, &size, err) ||
        file_read_at(fd, s->path, start, size < sizeof(start) ? (size_t)size : sizeof(start), 0, err))
        return -1;
    s->how = &safetensors;
    for (size_t i = 0; i < ARRAY_LEN(magics); i++) {
        if (start[8] == '{' || memcmp(start, magics[i].magic, magics[i].n))
            continue;
        if (!magics[i].how)
            return cairn_fail(err, CAIRN_EFORMAT, "%s %s", s->path, magics[i].refusal);
        s->how = magics[i].how;
    }
    s->format = s->how->name;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct st_tensor *const *)a)->name, (*(const struct st_tensor *const *)b)->name);
}

static void sort_names(struct tensor_source *s)
{
    s->by_name = ARENA_NEW(&s->arena, const struct st_tensor *, s->n_tensors + 1);
    for (size_t i = 0; i < s->n_tensors; i++)
        s->by_name[i] = &s->tensors[i];
    qsort(s->by_name, s->n_tensors, sizeof(*s->by_name), compare_names);
}

static int take_stamp(const struct tensor_source *s, size_t file, struct os_info *out,
                      struct cairn_error *err)
{
    return os_info_fd(s->how->descriptor(s, file), out)
               ? cairn_fail_errno(err, "stat %s", s->how->path(s, file))
               : 0;
}

static int take_stamps(struct tensor_source *s, struct cairn_error *err)
{
    s->stamps = ARENA_NEW(&s->arena, struct os_info, s->n_files + 1);
    for (size_t i = 0; i < s->n_files; i++)
        if (take_stamp(s, i, &s->stamps[i], err))
            return -1;
    return 0;
}

static int open_source(struct tensor_source *s, const char *path, bool siblings, struct cairn_error *err)
{
    *s = (struct tensor_source){ .siblings = siblings };
    s->path = arena_strdup(&s->arena, path);
    if (choose_format(s, err) || s->how->open(s, err) || take_stamps(s, err)) {
        source_close(s);
        return -1;
    }
    sort_names(s);
    return 0;
}

int source_open(struct tensor_source *s, const char *path, struct cairn_error *err)
{
    return open_source(s, path, false, err);
}

int source_open_model(struct tensor_source *s, const char *path, struct cairn_error *err)
{
    return open_source(s, path, true, err);
}

void source_close(struct tensor_source *s)
{
    if (s->file)
        s->how->close(s);
    arena_release(&s->arena);
    *s = (struct tensor_source){ 0 };
}

bool source_set_direct(struct tensor_source *s)
{
    s->direct = !s->scattered; /* a little from everywhere would be a block each time */
    for (size_t i = 0; i < s->n_files && !s->scattered; i++)
        s->direct &= file_set_direct(s->how->descriptor(s, i));
    return s->direct;
}

const struct st_tensor *source_find(const struct tensor_source *s, const char *name)
{
    struct st_tensor key = { .name = name };
    const struct st_tensor *wanted = &key;
    const struct st_tensor **found =
        bsearch(&wanted, s->by_name, s->n_tensors, sizeof(*s->by_name), compare_names);
    return found ? *found : NULL;
}

const char *source_meta_find(const struct tensor_source *s, const char *key)
{
    for (size_t i = 0; i < s->n_meta; i++)
        if (!strcmp(s->meta[i].key, key))
            return s->meta[i].value;
    return NULL;
}

const char *source_path_of(const struct tensor_source *s, const struct st_tensor *t)
{
    return s->how->path(s, t->shard);
}

int source_read_bytes(const struct tensor_source *s, const struct st_tensor *t, uint64_t byte, uint64_t n,
                      void *into, struct cairn_error *err)
{
    if (byte > t->bytes || n > t->bytes - byte)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s has no bytes %" PRIu64 " to %" PRIu64,
                          source_path_of(s, t), t->name, byte, byte + n);
    if (!s->how->read(s, t, byte, n, into, err))
        return 0;
    return cairn_wrap(err, "tensor %s", t->name);
}

int source_read(const struct tensor_source *s, const struct st_tensor *t, uint64_t first, uint64_t n,
                void *into, struct cairn_error *err)
{
    uint64_t size = dtype_size(t->dtype);
    if (!size || first > t->elements || n > t->elements - first)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s (%s) has no elements %" PRIu64 " to %" PRIu64,
                          source_path_of(s, t), t->name, t->dtype_text, first, first + n);
    return source_read_bytes(s, t, first * size, n * size, into, err);
}

int source_read_as(const struct tensor_source *s, const struct st_tensor *t, uint64_t first, uint64_t n,
                   enum dtype as, void *into, struct cairn_error *err)
{
    size_t bytes = s->direct ? 4 << 20 : 256 << 10;
    if (t->dtype == as)
        return source_read(s, t, first, n, into, err);
    if (!dtype_can_convert(t->dtype, as))
        return cairn_fail(err, CAIRN_EUSAGE, "%s: tensor %s is %s, which cannot be converted to %s",
                          source_path_of(s, t), t->name, t->dtype_text, dtype_name(as));
    CLEANUP(mem_free) char *piece = malloc(bytes);
    if (!piece)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", bytes);
    uint64_t most = bytes / dtype_size(t->dtype);
    for (uint64_t done = 0; done < n;) {
        uint64_t m = n - done < most ? n - done : most;
        if (source_read(s, t, first + done, m, piece, err))
            return -1;
        dtype_convert((char *)into + done * dtype_size(as), as, piece, t->dtype, m, &(struct dtype_how){ 0 });
        done += m;
    }
    return 0;
}

bool source_place(const struct tensor_source *s, const struct st_tensor *t, int *fd, uint64_t *at)
{
    return s->how->place(s, t, fd, at);
}

int source_unchanged(const struct tensor_source *s, struct cairn_error *err)
{
    for (size_t i = 0; i < s->n_files; i++) {
        struct os_info now;
        if (take_stamp(s, i, &now, err))
            return -1;
        if (!os_info_is_unchanged(&s->stamps[i], &now))
            return cairn_fail(err, CAIRN_EIO, "%s changed while cairn read it", s->how->path(s, i));
    }
    return 0;
}

int source_sums(const struct tensor_source *s, struct arena *a, struct st_sum **out, size_t *n,
                struct cairn_error *err)
{
    *out = NULL;
    *n = 0;
    return s->how->sums ? s->how->sums(s, a, out, n, err) : 0;
}

int source_read_sum(const struct tensor_source *s, const struct st_sum *sum, uint64_t byte, uint64_t n,
                    void *into, struct cairn_error *err)
{
    return file_read_at(s->how->descriptor(s, 0), s->how->path(s, 0), into, n, sum->at + byte, err);
}

bool source_lies_in(const struct tensor_source *s, const struct st_tensor *t, const struct st_sum *sum)
{
    return s->how == &torch && torch_file_lies_in(s->file, t, sum);
}

bool source_name_matches(const char *name, const char *const *globs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fnmatch(globs[i], name, 0))
            return true;
    return !n;
}
