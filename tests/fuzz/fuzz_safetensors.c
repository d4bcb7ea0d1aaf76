/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a safetensors file or, when they begin with a brace, as the index of two shards: no crash, and what
 * is accepted keeps the promises of the header. */
#include "tensor/safetensors.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include "tree.h"
#include <sys/mman.h>

enum { READ_MOST = 4096 };

static void check_tensor(const struct st_file *f, const struct st_tensor *t)
{
    struct cairn_error err = { 0 };
    char bytes[READ_MOST];
    size_t size = dtype_size(t->dtype);
    const struct st_shard *s = &f->shards[t->shard];
    FUZZ_REQUIRE(t->name && t->dtype_text && t->rank >= 0 && t->rank <= ST_RANK_MAX);
    FUZZ_REQUIRE(st_find(f, t->name) == t);
    FUZZ_REQUIRE(t->at >= s->data_at && t->at <= s->size && t->bytes <= s->size - t->at);
    if (!size)
        return;
    FUZZ_REQUIRE(t->bytes == t->elements * size);
    uint64_t n = t->elements < READ_MOST / size ? t->elements : READ_MOST / size;
    FUZZ_REQUIRE(!st_read(f, t, t->elements - n, n, bytes, &err));
    FUZZ_REQUIRE(st_read(f, t, t->elements, 1, bytes, &err) == -1);
}

/* All bytes of every file belong to exactly one tensor. */
static void check_cover(const struct st_file *f)
{
    uint64_t sum = 0, data = 0;
    for (size_t i = 0; i < f->n_tensors; i++)
        sum += f->tensors[i].bytes;
    for (size_t i = 0; i < f->n_shards; i++)
        data += f->shards[i].size - f->shards[i].data_at;
    FUZZ_REQUIRE(sum == data);
}

static void look(const char *path)
{
    struct st_file f;
    struct cairn_error err = { 0 };
    if (st_open(&f, path, &err)) {
        FUZZ_REQUIRE(err.msg[0] && err.code != CAIRN_OK);
        return;
    }
    for (size_t i = 0; i < f.n_tensors; i++)
        check_tensor(&f, &f.tensors[i]);
    for (size_t i = 0; i < f.n_meta; i++)
        FUZZ_REQUIRE(f.meta[i].key && f.meta[i].value && st_meta_find(&f, f.meta[i].key));
    check_cover(&f);
    st_close(&f);
}

static struct tree tree; /* the folder of the index, made once */

static void remove_tree(void)
{
    tree_remove(&tree);
}

static void put_shard(const char *file, const char *name)
{
    char bytes[128], header[96];
    uint64_t len = (uint64_t)snprintf(
        header, sizeof(header), "{\"%s\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", name);
    memcpy(bytes, &len, 8);
    memcpy(bytes + 8, header, len);
    memcpy(bytes + 8 + len, "ab", 2);
    tree_put_bytes(&tree, file, bytes, 8 + len + 2);
}

static void look_at_index(const uint8_t *data, size_t size)
{
    if (!tree.dir[0]) {
        tree_make(&tree);
        atexit(remove_tree);
        put_shard("one", "a");
        put_shard("two", "b");
    }
    tree_put_bytes(&tree, "x.index.json", data, size);
    look(tree_path(&tree, "x.index.json"));
}

static void look_at_file(const uint8_t *data, size_t size)
{
    char path[64];
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    look(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == '{')
        look_at_index(data, size);
    else
        look_at_file(data, size);
    return 0;
}
