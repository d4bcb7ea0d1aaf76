/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/zip.h"

#include "base/file.h"
#include "base/str.h"
#include <endian.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,       /* end of central directory, without its comment */
    LOCATOR_BYTES = 20,   /* ZIP64 end of central directory locator */
    END64_BYTES = 56,     /* ZIP64 end of central directory */
    CENTRAL_BYTES = 46,   /* one entry of the central directory, without name, extra and comment */
    LOCAL_BYTES = 30,     /* the header before an entry's data, without name and extra */
    COMMENT_MAX = 0xffff, /* the end record is searched for from the back, over a comment of this size */
    EXTRA_ZIP64 = 1,
};

static uint16_t u16_at(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return le16toh(v);
}

static uint32_t u32_at(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

static uint64_t u64_at(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

/* Where the directory is, as the end records say. */
struct directory {
    uint64_t at, size, n_entries;
    uint64_t end_at; /* of the end record: the directory lies before it */
};

static int read_end64(const struct zip *z, uint64_t end_at, struct directory *d, struct cairn_error *err)
{
    unsigned char locator[LOCATOR_BYTES], end[END64_BYTES];
    if (end_at < LOCATOR_BYTES)
        return 0;
    if (file_read_at(z->fd, z->path, locator, sizeof(locator), end_at - LOCATOR_BYTES, err))
        return -1;
    if (memcmp(locator, "PK\006\007", 4))
        return 0;
    uint64_t at = u64_at(locator + 8);
    if (at > end_at - LOCATOR_BYTES || end_at - LOCATOR_BYTES - at < END64_BYTES)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: no ZIP64 end record fits at byte %" PRIu64, z->path, at);
    if (file_read_at(z->fd, z->path, end, sizeof(end), at, err))
        return -1;
    if (memcmp(end, "PK\006\006", 4))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: no ZIP64 end record at byte %" PRIu64, z->path, at);
    *d = (struct directory){ u64_at(end + 48), u64_at(end + 40), u64_at(end + 32), at };
    return 0;
}

static int find_end(const struct zip *z, struct directory *d, struct cairn_error *err)
{
    size_t most = END_BYTES + COMMENT_MAX;
    size_t n = z->size < most ? (size_t)z->size : most;
    CLEANUP(mem_free) unsigned char *tail = malloc(n + 1);
    if (!tail)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", n);
    if (file_read_at(z->fd, z->path, tail, n, z->size - n, err))
        return -1;
    for (size_t back = END_BYTES; back <= n; back++) {
        const unsigned char *end = tail + n - back;
        if (memcmp(end, "PK\005\006", 4) || u16_at(end + 20) + (size_t)END_BYTES != back)
            continue;
        uint64_t end_at = z->size - back;
        *d = (struct directory){ u32_at(end + 16), u32_at(end + 12), u16_at(end + 10), end_at };
        return read_end64(z, end_at, d, err);
    }
    cairn_fail(err, CAIRN_EFORMAT, "%s: no zip directory at the end", z->path);
    return cairn_hint(err, "the file is truncated; download it again");
}

/* The 64-bit values that did not fit into the entry, in the order of the format: size, packed size,
 * offset. */
static int read_extra64(const struct zip *z, const unsigned char *extra, size_t n, uint64_t *const *wide,
                        struct cairn_error *err)
{
    while (n >= 4) {
        uint16_t id = u16_at(extra), size = u16_at(extra + 2);
        const unsigned char *value = extra + 4;
        if (size > n - 4)
            break;
        extra = value + size;
        n -= 4u + size;
        for (; id == EXTRA_ZIP64 && *wide && size >= 8; wide++, value += 8, size -= 8)
            **wide = u64_at(value);
    }
    if (*wide)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: an entry lacks its 64-bit size or offset", z->path);
    return 0;
}

static int read_entry(const struct zip *z, const unsigned char *p, size_t n, struct arena *a,
                      struct zip_entry *e, size_t *used, struct cairn_error *err)
{
    if (n < CENTRAL_BYTES || memcmp(p, "PK\001\002", 4))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the zip directory is damaged", z->path);
    size_t name = u16_at(p + 28), extra = u16_at(p + 30), comment = u16_at(p + 32);
    *used = CENTRAL_BYTES + name + extra + comment;
    if (*used > n || str_clean_span((const char *)p + CENTRAL_BYTES, name) != name)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the zip directory is damaged", z->path);
    uint64_t packed = u32_at(p + 20);
    *e = (struct zip_entry){
        .name = arena_strndup(a, (const char *)p + CENTRAL_BYTES, name),
        .flags = u16_at(p + 8),
        .method = u16_at(p + 10),
        .crc = u32_at(p + 16),
        .size = u32_at(p + 24),
        .header_at = u32_at(p + 42),
    };
    uint64_t *wide[4] = { NULL };
    size_t n_wide = 0;
    uint64_t *const fields[] = { &e->size, &packed, &e->header_at };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (*fields[i] == UINT32_MAX)
            wide[n_wide++] = fields[i];
    if (read_extra64(z, p + CENTRAL_BYTES + name, extra, wide, err))
        return -1;
    if (e->header_at > z->size || packed > z->size - e->header_at)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: entry %s of %" PRIu64 " bytes at byte %" PRIu64
                          " lies after the end of the file",
                          z->path, e->name, packed, e->header_at);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct zip_entry *)a)->name, ((const struct zip_entry *)b)->name);
}

static int read_entries(struct zip *z, const unsigned char *p, const struct directory *d, struct arena *a,
                        struct cairn_error *err)
{
    size_t n = (size_t)d->size;
    while (z->n_entries < d->n_entries) {
        size_t used;
        if (read_entry(z, p, n, a, ARENA_PUSH(a, z->entries, z->n_entries), &used, err))
            return -1;
        p += used;
        n -= used;
    }
    if (z->n_entries > 1)
        qsort(z->entries, z->n_entries, sizeof(*z->entries), compare_names);
    /* Of two entries with one name each reader takes another. */
    for (size_t i = 1; i < z->n_entries; i++)
        if (!compare_names(&z->entries[i - 1], &z->entries[i]))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: duplicate entry %s", z->path, z->entries[i].name);
    return 0;
}

int zip_read(struct zip *z, int fd, const char *path, uint64_t size, struct arena *a, struct cairn_error *err)
{
    struct directory d;
    *z = (struct zip){ .fd = fd, .path = path, .size = size };
    if (find_end(z, &d, err))
        return -1;
    if (d.at > d.end_at || d.size > d.end_at - d.at || d.size > ZIP_DIRECTORY_MAX)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: a zip directory of %" PRIu64 " bytes at byte %" PRIu64 " exceeds the file",
                          path, d.size, d.at);
    CLEANUP(mem_free) unsigned char *bytes = malloc((size_t)d.size + 1);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for a directory of %" PRIu64 " bytes", path,
                          d.size);
    if (file_read_at(fd, path, bytes, (size_t)d.size, d.at, err))
        return -1;
    return read_entries(z, bytes, &d, a, err);
}

const struct zip_entry *zip_find(const struct zip *z, const char *name)
{
    struct zip_entry key = { .name = name };
    return z->n_entries ? bsearch(&key, z->entries, z->n_entries, sizeof(*z->entries), compare_names) : NULL;
}

int zip_locate(const struct zip *z, const struct zip_entry *e, uint64_t *at, struct cairn_error *err)
{
    unsigned char local[LOCAL_BYTES];
    if (e->method)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: entry %s is compressed (method %d); torch stores it plain",
                          z->path, e->name, e->method);
    if (e->flags & 1)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: entry %s is encrypted", z->path, e->name);
    if (z->size - e->header_at < LOCAL_BYTES)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: entry %s lies after the end of the file", z->path,
                          e->name);
    if (file_read_at(z->fd, z->path, local, sizeof(local), e->header_at, err))
        return -1;
    if (memcmp(local, "PK\003\004", 4))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: entry %s: no header at byte %" PRIu64, z->path, e->name,
                          e->header_at);
    uint64_t data_at = e->header_at + LOCAL_BYTES + u16_at(local + 26) + u16_at(local + 28);
    if (data_at > z->size || e->size > z->size - data_at)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: entry %s of %" PRIu64 " bytes at byte %" PRIu64
                          " lies after the end of the file",
                          z->path, e->name, e->size, data_at);
    *at = data_at;
    return 0;
}
