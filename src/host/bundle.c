/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle.h"

#include "chip/gfxname.h"
#include "host/unpack.h"
#include <inttypes.h>
#include <string.h>

static const char plain_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
static const char packed_magic[] = "CCOB";

enum {
    PLAIN_MAGIC = sizeof(plain_magic) - 1,
    PACKED_MAGIC = sizeof(packed_magic) - 1,
    PACKED_HEADER_MAX = 32,
    PAGE = 4096,
    CHUNK = 32 * 1024,
    HEAD_FIRST = PAGE, /* fits a table of some 40 targets */
    HEAD_MAX = 64 * 1024,
    /* How much of a region may be searched for the start of a bundle that no size leads to. */
    SEARCH_MAX = 8 * 1024 * 1024,
    BUNDLES_MAX = 65536,
};

/* A compressed bundle: where its data is, and its stated unpacked size. */
struct packed {
    enum unpack_method method;
    uint64_t at, end, unpacked;
};

struct scan {
    const struct binary *b;
    struct arena *a; /* the caller's: for what is handed out */
    struct arena scratch;
    uint64_t start, end; /* of the region */
    uint64_t searched;
    struct packed *packed;
    size_t n_packed;
    struct unpack unpack;
    unsigned char *chunk, *head;
    struct bundle_set set;
};

static void scan_release(struct scan *s)
{
    unpack_release(&s->unpack);
    arena_release(&s->scratch);
}

static int damaged(const struct scan *s, uint64_t at, const char *what, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: offload bundle at offset %" PRIu64 " %s", s->b->path, at,
                      what);
}

/* "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"; the triple may have "unknown" between the hyphens. */
static void take_id(struct scan *s, const char *id, size_t len)
{
    static const char host[] = "host-";
    if (len >= sizeof(host) - 1 && !memcmp(id, host, sizeof(host) - 1))
        return;
    size_t name_len;
    const char *name = gfxname_find(id, len, &name_len);
    if (name)
        targets_add(&s->set.targets, s->a, name, name_len);
    else if (memmem(id, len, "spirv", 5))
        s->set.spirv = true;
}

enum parsed { PARSED, PARSE_MORE, PARSE_BAD };

/* Reads the table of a plain bundle of which the first n bytes are at p.  No part of the bundle may lie
 * beyond `limit`; *end is where its last part ends. */
static enum parsed parse_table(struct scan *s, const unsigned char *p, size_t n, uint64_t limit,
                               uint64_t *end)
{
    enum { ENTRY = 24 };
    if (n < PLAIN_MAGIC + 8)
        return PARSE_MORE;
    if (memcmp(p, plain_magic, PLAIN_MAGIC))
        return PARSE_BAD;
    uint64_t count = le64(p + PLAIN_MAGIC);
    size_t at = PLAIN_MAGIC + 8;
    *end = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (n - at < ENTRY)
            return PARSE_MORE;
        uint64_t part = le64(p + at), size = le64(p + at + 8), id = le64(p + at + 16);
        at += ENTRY;
        if (part > limit || size > limit - part || id > HEAD_MAX)
            return PARSE_BAD;
        if (n - at < id)
            return PARSE_MORE;
        take_id(s, (const char *)p + at, (size_t)id);
        at += (size_t)id;
        if (part + size > *end)
            *end = part + size;
    }
    if (at > *end)
        *end = at;
    return PARSED;
}

/* A plain bundle: its table is read first, because only the table states its size. */
static int read_plain(struct scan *s, uint64_t at, uint64_t *next, struct cairn_error *err)
{
    uint64_t end = 0;
    for (size_t want = HEAD_FIRST; want <= HEAD_MAX; want *= 4) {
        size_t got;
        if (binary_read_some(s->b, at, s->end, s->head, want, &got, err))
            return -1;
        enum parsed r = parse_table(s, s->head, got, s->end - at, &end);
        if (r == PARSED) {
            *next = at + end;
            s->set.n_bundles++;
            s->set.n_read++;
            return 0;
        }
        if (r == PARSE_BAD || got < want)
            return damaged(s, at, r == PARSE_BAD ? "is damaged" : "is truncated", err);
    }
    return damaged(s, at, "has a table of targets of more than 64 KiB", err);
}

/* Versions of the compressed header: https://github.com/llvm/llvm-project, CompressedOffloadBundle. */
static int read_packed(struct scan *s, uint64_t at, uint64_t *next, struct cairn_error *err)
{
    static const size_t header[] = { 0, 20, 24, 32 };
    unsigned char h[PACKED_HEADER_MAX];
    size_t got;
    if (binary_read_some(s->b, at, s->end, h, sizeof(h), &got, err))
        return -1;
    unsigned version = got >= 8 ? le16(h + 4) : 0, method = got >= 8 ? le16(h + 6) : 0;
    if (version < 1 || version > 3 || got < header[version])
        return damaged(s, at, got < 8 ? "is truncated" : "has an unknown compression header", err);
    if (method > UNPACK_ZSTD)
        return damaged(s, at, "uses an unknown compression method", err);
    uint64_t total = version == 1 ? 0 : version == 2 ? le32(h + 8) : le64(h + 8);
    if (version > 1 && (total < header[version] || total > s->end - at))
        return damaged(s, at, "states a size beyond the end of the file", err);
    *ARENA_PUSH(&s->scratch, s->packed, s->n_packed) = (struct packed){
        .method = (enum unpack_method)method,
        .at = at + header[version],
        .end = version == 1 ? s->end : at + total,
        .unpacked = version == 3 ? le64(h + 16) : le32(h + (version == 1 ? 8 : 12)),
    };
    s->set.n_bundles++;
    *next = version == 1 ? at + header[1] : at + total;
    return 0;
}

bool bundle_is(const void *p, size_t n)
{
    return (n >= PLAIN_MAGIC && !memcmp(p, plain_magic, PLAIN_MAGIC)) ||
           (n >= PACKED_MAGIC && !memcmp(p, packed_magic, PACKED_MAGIC));
}

/* A start among other bytes: a version 1 bundle does not state its size, and its compressed data may contain
 * either magic as text. So a start that no size leads to must begin a page, as bundles do, and the fields of
 * a compressed one must be plausible. */
static bool is_likely(const struct scan *s, uint64_t at, const unsigned char *p, size_t n)
{
    if ((at - s->start) % PAGE)
        return false;
    if (n >= PLAIN_MAGIC && !memcmp(p, plain_magic, PLAIN_MAGIC))
        return true;
    return n >= 8 && !memcmp(p, packed_magic, PACKED_MAGIC) && le16(p + 4) >= 1 && le16(p + 4) <= 3 &&
           le16(p + 6) <= UNPACK_ZSTD;
}

/* Where the first bundle starts among the first `starts` of the n bytes at p, which are the region's from
 * `at` on; `starts` if none does.  *zeros: there has been nothing but padding so far. */
static size_t find_start(const struct scan *s, uint64_t at, const unsigned char *p, size_t starts, size_t n,
                         bool *zeros)
{
    for (size_t i = 0; i < starts; i++) {
        if (!p[i])
            continue;
        if (*zeros && bundle_is(p + i, n - i))
            return i;
        *zeros = false;
        if (is_likely(s, at + i, p + i, n - i))
            return i;
    }
    return starts;
}

/* Moves *at to the next bundle; *first is its first byte, or 0 at the end of the region or of our
 * patience. */
static int next_start(struct scan *s, uint64_t *at, char *first, struct cairn_error *err)
{
    bool zeros = true;
    size_t want = HEAD_FIRST + PLAIN_MAGIC; /* the padding before the next bundle is less than a page */
    *first = 0;
    while (*at < s->end && s->searched < SEARCH_MAX) {
        size_t n;
        if (binary_read_some(s->b, *at, s->end, s->chunk, want, &n, err))
            return -1;
        /* A start that the end of the chunk may cut is left for the next round. */
        size_t starts = *at + n == s->end ? n : n - (PLAIN_MAGIC - 1);
        size_t i = find_start(s, *at, s->chunk, starts, n, &zeros);
        *at += i;
        if (i < starts) {
            *first = (char)s->chunk[i];
            return 0;
        }
        s->searched += i;
        want = CHUNK;
    }
    s->set.all_found = *at >= s->end;
    return 0;
}

static int find_bundles(struct scan *s, uint64_t at, struct cairn_error *err)
{
    while (s->set.n_bundles < BUNDLES_MAX) {
        char first;
        if (next_start(s, &at, &first, err))
            return -1;
        if (!first)
            return 0;
        if (first == packed_magic[0] ? read_packed(s, at, &at, err) : read_plain(s, at, &at, err))
            return -1;
    }
    return 0;
}

static int read_targets(struct scan *s, const struct packed *p, struct cairn_error *err)
{
    const struct unpack_block block = { p->method, s->b, p->at, p->end };
    for (size_t want = HEAD_FIRST; want <= HEAD_MAX; want *= 4) {
        size_t got = 0;
        uint64_t end;
        if (unpack_start(&s->unpack, &block, s->head, want, &got, err))
            return -1;
        enum parsed r = parse_table(s, s->head, got, p->unpacked, &end);
        if (r == PARSED) {
            s->set.n_read++;
            return 0;
        }
        if (r == PARSE_BAD || got < want)
            return damaged(s, p->at, r == PARSE_BAD ? "is damaged" : "is truncated", err);
    }
    return damaged(s, p->at, "has a table of targets of more than 64 KiB", err);
}

/* i with its lowest `bits` bits in reverse: 0, n/2, n/4, 3n/4 …, an even spread from the first few on. */
static size_t reverse_bits(size_t i, unsigned bits)
{
    size_t r = 0;
    for (unsigned k = 0; k < bits; k++)
        r |= (i >> k & 1) << (bits - 1 - k);
    return r;
}

static int visit_packed(struct scan *s, struct cairn_error *err)
{
    unsigned bits = 0;
    while ((size_t)1 << bits < s->n_packed)
        bits++;
    int quiet = 0;
    for (size_t i = 0; i < (size_t)1 << bits && quiet < BUNDLE_QUIET; i++) {
        size_t k = reverse_bits(i, bits), before = s->set.targets.n;
        if (k >= s->n_packed)
            continue;
        if (read_targets(s, &s->packed[k], err))
            return -1;
        quiet = s->set.targets.n > before ? 0 : quiet + 1;
    }
    return 0;
}

int bundle_scan(const struct binary *b, uint64_t at, uint64_t size, struct arena *a, struct bundle_set *out,
                struct cairn_error *err)
{
    if (!binary_has(b, at, size))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: offload bundles run past the end of the file", b->path);
    CLEANUP(scan_release) struct scan s = { .b = b, .a = a, .start = at, .end = at + size };
    s.chunk = arena_alloc(&s.scratch, CHUNK);
    s.head = arena_alloc(&s.scratch, HEAD_MAX);
    if (find_bundles(&s, at, err) || visit_packed(&s, err))
        return -1;
    if (!s.set.n_bundles)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: no offload bundle at the expected offset", b->path);
    s.set.targets.from = b->path;
    *out = s.set;
    return 0;
}
