/* SPDX-License-Identifier: Apache-2.0 */
#include "host/codeobj.h"

#include "chip/gfx_table.h"
#include "chip/gfxname.h"
#include "host/bundle.h"
#include "host/elffile.h"
#include "host/kpack.h"
#include <string.h>

static int read_single(const struct binary *b, struct arena *a, const struct elf *e, struct codeobj *out,
                       struct cairn_error *err)
{
    unsigned mach = e->flags & 0xff; /* EF_AMDGPU_MACH */
    const char *gfx = gfx_from_mach(mach);
    if (!gfx)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: code object for an unknown target (0x%02x)", b->path,
                          mach);
    out->kind = CODEOBJ_SINGLE;
    out->targets.from = b->path;
    targets_add(&out->targets, a, gfx, strlen(gfx));
    return 0;
}

static int read_bundles(const struct binary *b, uint64_t at, uint64_t size, struct arena *a,
                        struct codeobj *out, struct cairn_error *err)
{
    struct bundle_set set;
    if (bundle_scan(b, at, size, a, &set, err))
        return -1;
    out->targets = set.targets;
    out->spirv = set.spirv;
    out->n_bundles = set.n_bundles;
    out->n_read = set.n_read;
    out->all_found = set.all_found;
    return 0;
}

/* The wrapper that the runtime registers starts with "HIPF" for code in the library, "HIPK" for code
 * elsewhere. */
static int is_split(const struct binary *b, const struct elf *e, bool *out, struct cairn_error *err)
{
    static const uint32_t hipk = 0x4b504948;
    const struct elf_section *wrapper = elf_section(e, ".hipFatBinSegment");
    unsigned char magic[4];
    *out = elf_section(e, ".rocm_kpack_ref") != NULL;
    if (*out || !wrapper || wrapper->size < sizeof(magic))
        return 0;
    if (binary_read(b, wrapper->at, magic, sizeof(magic), err))
        return -1;
    *out = le32(magic) == hipk;
    return 0;
}

static int read_library(const struct binary *b, struct arena *a, bool whole, struct codeobj *out,
                        struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena scratch = { 0 };
    struct elf e;
    bool split;
    if (elf_read(b, &scratch, &e, err) || elf_needs(b, &e, &scratch, "libamdhip64", &out->needs_hip, err) ||
        is_split(b, &e, &split, err))
        return -1;
    const struct elf_section *fat = elf_section(&e, ".hip_fatbin");
    if (split) {
        out->kind = CODEOBJ_SPLIT;
        return 0;
    }
    if (!fat || !fat->size)
        return 0;
    out->kind = CODEOBJ_FAT;
    return whole ? read_bundles(b, fat->at, fat->size, a, out, err) : 0;
}

static int read_elf(const struct binary *b, struct arena *a, bool whole, struct codeobj *out,
                    struct cairn_error *err)
{
    struct elf e;
    if (elf_read_header(b, &e, err))
        return -1;
    if (e.machine == ELF_MACHINE_AMDGPU)
        return read_single(b, a, &e, out, err);
    return read_library(b, a, whole, out, err);
}

static int read_any(const struct binary *b, struct arena *a, bool whole, struct codeobj *out,
                    struct cairn_error *err)
{
    char start[24];
    size_t n;
    if (elf_is(b))
        return read_elf(b, a, whole, out, err);
    if (binary_read_some(b, 0, b->size, start, sizeof(start), &n, err))
        return -1;
    if (bundle_is(start, n)) {
        out->kind = CODEOBJ_BUNDLE;
        return whole ? read_bundles(b, 0, b->size, a, out, err) : 0;
    }
    if (kpack_is(start, n)) {
        out->kind = CODEOBJ_KPACK;
        return whole ? kpack_read(b, a, &out->targets, err) : 0;
    }
    return cairn_fail(err, CAIRN_EFORMAT, "%s: not an ELF file, an offload bundle or a kpack archive",
                      b->path);
}

static int read_file(int fd, const char *path, struct arena *a, bool whole, struct codeobj *out,
                     struct cairn_error *err)
{
    struct binary b;
    struct codeobj c = { .all_found = true };
    if (binary_init(&b, fd, path, err) || read_any(&b, a, whole, &c, err))
        return -1;
    *out = c;
    return 0;
}

int codeobj_read(int fd, const char *path, struct arena *a, struct codeobj *out, struct cairn_error *err)
{
    return read_file(fd, path, a, true, out, err);
}

int codeobj_inspect(int fd, const char *path, struct arena *a, struct codeobj *out, struct cairn_error *err)
{
    return read_file(fd, path, a, false, out, err);
}

enum {
    TEXT_CHUNK = 128 * 1024,
    RUN_MAX = 2048,                 /* longer than any list of targets */
    NOT_ELF_MAX = 8 * 1024 * 1024,  /* how much of something else is searched */
    RODATA_MAX = 256 * 1024 * 1024, /* real ones have some 10 MiB */
};

static size_t features_span(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && s[i] == ':') {
        size_t k = i + 1;
        while (k < n && s[k] >= 'a' && s[k] <= 'z')
            k++;
        if (k == n || (s[k] != '+' && s[k] != '-'))
            break;
        i = k + 1;
    }
    return i;
}

/* The run of target names that starts at s: how many, and its length in bytes. */
static size_t run_span(const char *s, size_t n, size_t *count)
{
    size_t at = 0;
    *count = 0;
    for (;;) {
        size_t len = gfxname_span(s + at, n - at);
        if (!len)
            return at; /* a separator with nothing after it is ignored */
        at += len + features_span(s + at + len, n - at - len);
        ++*count;
        if (at >= n || (s[at] != ' ' && s[at] != ';'))
            return at;
        at++;
    }
}

/* The best run so far: one that is a whole string beats one inside prose, then the longer one wins. */
struct best {
    size_t count;
    bool whole;
    struct targets targets;
};

static void take_run(struct best *best, struct arena *a, const char *s, size_t n, size_t count, bool whole)
{
    if (count < 2 || whole < best->whole || (whole == best->whole && count <= best->count))
        return;
    *best = (struct best){ .count = count, .whole = whole };
    for (size_t at = 0; at < n;) {
        size_t len = gfxname_span(s + at, n - at);
        if (!len)
            break;
        targets_add(&best->targets, a, s + at, len);
        at += len + features_span(s + at + len, n - at - len) + 1;
    }
}

/* memmem for "gfx", led by the letter that is the rarest of the three: ten times as fast on real data. */
static const char *find_stem(const char *p, size_t n)
{
    const char *end = p + n;
    for (const char *x = p; (x = memchr(x, 'x', (size_t)(end - x))) != NULL; x++)
        if (x - p >= 2 && x[-1] == 'f' && x[-2] == 'g')
            return x - 2;
    return NULL;
}

/* Examines runs that start in the first `starts` of the n bytes; returns where to continue. */
static size_t search_chunk(struct best *best, struct arena *a, const char *p, size_t starts, size_t n)
{
    size_t at = 0;
    while (at < starts) {
        const char *hit = find_stem(p + at, n - at);
        if (!hit)
            return starts;
        size_t i = (size_t)(hit - p), count;
        if (i >= starts)
            return i;
        size_t len = run_span(hit, n - i, &count);
        bool whole = (i == 0 || p[i - 1] == '\0') && (i + len == n || p[i + len] == '\0');
        take_run(best, a, hit, len, count, whole);
        at = i + (len ? len : 3);
    }
    return at;
}

static int search_region(const struct binary *b, uint64_t at, uint64_t size, struct arena *a,
                         struct best *best, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena scratch = { 0 };
    char *chunk = arena_alloc(&scratch, TEXT_CHUNK);
    for (uint64_t end = at + size; at < end;) {
        size_t n;
        if (binary_read_some(b, at, end, chunk, TEXT_CHUNK, &n, err))
            return -1;
        if (!n)
            return 0;
        bool last = at + n >= end;
        at += search_chunk(best, a, chunk, last ? n : n - RUN_MAX, n);
    }
    return 0;
}

int codeobj_arch_list(int fd, const char *path, struct arena *a, struct targets *out, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena scratch = { 0 };
    struct binary b;
    struct elf e;
    struct best best = { 0 };
    struct cairn_error not_elf = { 0 };
    if (binary_init(&b, fd, path, err))
        return -1;
    bool elf = !elf_read(&b, &scratch, &e, &not_elf);
    const struct elf_section *data = elf ? elf_section(&e, ".rodata") : NULL;
    uint64_t at = data ? data->at : 0, size = data ? data->size : b.size;
    uint64_t most = data ? RODATA_MAX : NOT_ELF_MAX;
    size = size < most ? size : most;
    if (search_region(&b, at, size, a, &best, err))
        return -1;
    if (!best.count && !elf) {
        *err = not_elf;
        return -1;
    }
    if (best.count)
        best.targets.from = path;
    *out = best.targets;
    return 0;
}
