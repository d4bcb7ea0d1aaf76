/* SPDX-License-Identifier: Apache-2.0 */
#include "host/codeobj.h"

#include "os/fault.h"
#include "base/str.h"
#include "check.h"
#include "host/bundle.h"
#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* Files are built in memory and read through a memfd. */

static void add64(struct str *t, uint64_t v)
{
    str_addn(t, (const char *)&v, 8);
}

static void add32(struct str *t, uint32_t v)
{
    str_addn(t, (const char *)&v, 4);
}

static void add16(struct str *t, uint16_t v)
{
    str_addn(t, (const char *)&v, 2);
}

static void pad_to(struct str *t, size_t n)
{
    while (t->len % n)
        str_addn(t, "", 1);
}

/* A plain bundle; names are separated by commas and taken as they are.  Each part has `part` bytes. */
static struct str plain_bundle(const char *names, size_t part)
{
    struct str t = { 0 };
    uint64_t count = 1;
    for (const char *p = names; *p; p++)
        count += *p == ',';
    str_add(&t, "__CLANG_OFFLOAD_BUNDLE__");
    add64(&t, count);
    uint64_t at = 4096;
    for (const char *p = names; count; count--, at += part) {
        size_t n = strcspn(p, ",");
        add64(&t, at);
        add64(&t, part);
        add64(&t, n);
        str_addn(&t, p, n);
        p += n + (p[n] == ',');
    }
    pad_to(&t, 4096);
    while (t.len < at)
        str_addn(&t, "\x7f", 1);
    return t;
}

enum { ZLIB, ZSTD };

static struct str packed_bundle(const char *names, int version, int method)
{
    CLEANUP(str_release) struct str plain = plain_bundle(names, 3000);
    char body[64 * 1024];
    uLongf zn = sizeof(body);
    size_t n = method == ZSTD ? ZSTD_compress(body, sizeof(body), plain.s, plain.len, 3)
                              : (compress((Bytef *)body, &zn, (Bytef *)plain.s, plain.len), zn);
    struct str t = { 0 };
    str_add(&t, "CCOB");
    add16(&t, (uint16_t)version);
    add16(&t, (uint16_t)method);
    if (version == 2)
        add32(&t, (uint32_t)(24 + n));
    if (version == 3)
        add64(&t, 32 + n);
    if (version == 3)
        add64(&t, plain.len);
    else
        add32(&t, (uint32_t)plain.len);
    add64(&t, 0x1234);
    str_addn(&t, body, n);
    return t;
}

struct part {
    const char *name;
    struct str *data;
};

/* An ELF library with these sections. */
static struct str library(const struct part *parts, size_t n, uint16_t machine, uint32_t flags)
{
    struct str t = { 0 }, names = { 0 };
    Elf64_Shdr sh[8] = { 0 };
    Elf64_Ehdr h = {
        .e_machine = machine, .e_flags = flags, .e_shentsize = sizeof(sh[0]), .e_ehsize = sizeof(h)
    };
    memcpy(h.e_ident, ELFMAG "\x02\x01\x01", 7);
    str_addn(&t, (const char *)&h, sizeof(h));
    str_addn(&names, "", 1);
    for (size_t i = 0; i < n; i++) {
        pad_to(&t, 64);
        sh[i + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)names.len,
                                  .sh_type = SHT_PROGBITS,
                                  .sh_offset = t.len,
                                  .sh_size = parts[i].data->len };
        str_addn(&names, parts[i].name, strlen(parts[i].name) + 1);
        str_addn(&t, parts[i].data->s, parts[i].data->len);
    }
    sh[n + 1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = t.len, .sh_size = names.len };
    str_addn(&t, names.s, names.len);
    pad_to(&t, 8);
    h.e_shoff = t.len;
    h.e_shnum = (Elf64_Half)(n + 2);
    h.e_shstrndx = (Elf64_Half)(n + 1);
    memcpy(t.s, &h, sizeof(h));
    str_addn(&t, (const char *)sh, (n + 2) * sizeof(sh[0]));
    str_release(&names);
    return t;
}

static struct str fat_library(struct str *fatbin)
{
    return library(&(struct part){ ".hip_fatbin", fatbin }, 1, EM_X86_64, 0);
}

struct result {
    int r;
    struct codeobj c;
    struct arena arena;
    struct cairn_error err;
};

static void result_release(struct result *r)
{
    arena_release(&r->arena);
}

static int file_of(const struct str *bytes, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes->s, n) != (ssize_t)n)
        abort();
    return fd;
}

static struct result read_bytes(const struct str *bytes)
{
    CLEANUP(fd_close) int fd = file_of(bytes, bytes->len);
    struct result out = { 0 };
    out.r = codeobj_read(fd, "lib.so", &out.arena, &out.c, &out.err);
    return out;
}

/* "gfx900 gfx906" */
static const char *names_of(const struct targets *t)
{
    static char buf[4096];
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < t->n; i++)
        at += (size_t)snprintf(buf + at, sizeof(buf) - at, "%s%s", i ? " " : "", t->name[i]);
    return buf;
}

#define IDS                                                                                   \
    "host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx1100,"                        \
    "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-,hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+," \
    "hip-amdgcn-amd-amdhsa-unknown-gfx11-generic"

static void every_kind_of_bundle(void)
{
    static const struct {
        int version, method;
    } kinds[] = { { 0, 0 }, { 1, ZSTD }, { 2, ZSTD }, { 3, ZSTD }, { 1, ZLIB }, { 2, ZLIB }, { 3, ZLIB } };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        CLEANUP(str_release)
        struct str one =
            kinds[i].version ? packed_bundle(IDS, kinds[i].version, kinds[i].method) : plain_bundle(IDS, 100);
        CLEANUP(str_release) struct str so = fat_library(&one);
        CLEANUP(result_release) struct result r = read_bytes(&one), inside = read_bytes(&so);
        CHECK_INT(r.r, 0);
        CHECK_STR(r.err.msg, "");
        CHECK_INT(r.c.kind, CODEOBJ_BUNDLE);
        CHECK_STR(names_of(&r.c.targets), "gfx1100 gfx90a gfx11-generic");
        CHECK_STR(r.c.targets.from, "lib.so");
        CHECK_INT(inside.r, 0);
        CHECK_INT(inside.c.kind, CODEOBJ_FAT);
        CHECK_STR(names_of(&inside.c.targets), "gfx1100 gfx90a gfx11-generic");
        CHECK_INT(inside.c.n_bundles, 1);
        CHECK_INT(inside.c.n_read, 1);
        CHECK(inside.c.all_found);
    }
}

/* Bundles of all kinds one after the other, with padding; each adds a target. */
static void union_of_all_bundles(void)
{
    static const char *const ids[] = { "hipv4-amdgcn-amd-amdhsa--gfx900", "hipv4-amdgcn-amd-amdhsa--gfx906",
                                       "hipv4-amdgcn-amd-amdhsa--gfx908", "hipv4-amdgcn-amd-amdhsa--gfx942" };
    CLEANUP(str_release) struct str all = { 0 };
    for (int i = 0; i < 4; i++) {
        CLEANUP(str_release) struct str one = i ? packed_bundle(ids[i], i, ZSTD) : plain_bundle(ids[i], 5000);
        str_addn(&all, one.s, one.len);
        pad_to(&all, i == 3 ? 1 : 4096);
    }
    CLEANUP(str_release) struct str so = fat_library(&all);
    CLEANUP(result_release) struct result r = read_bytes(&so);
    CHECK_INT(r.r, 0);
    CHECK_INT(r.c.n_bundles, 4);
    CHECK_INT(r.c.n_read, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK(targets_has(&r.c.targets, ids[i] + strlen("hipv4-amdgcn-amd-amdhsa--")));
}

static void stops_when_nothing_new_comes(void)
{
    CLEANUP(str_release) struct str one = packed_bundle("hipv4-amdgcn-amd-amdhsa--gfx900", 3, ZSTD);
    CLEANUP(str_release) struct str other = packed_bundle("hipv4-amdgcn-amd-amdhsa--gfx1201", 3, ZSTD);
    CLEANUP(str_release) struct str all = { 0 };
    for (int i = 0; i < 300; i++) {
        const struct str *b = i >= 100 && i < 200 ? &other : &one;
        str_addn(&all, b->s, b->len);
        pad_to(&all, 4096);
    }
    CLEANUP(str_release) struct str so = fat_library(&all);
    CLEANUP(result_release) struct result r = read_bytes(&so);
    CHECK_INT(r.r, 0);
    CHECK_INT(r.c.n_bundles, 300);
    CHECK(r.c.n_read < 60 && r.c.n_read >= BUNDLE_QUIET);
    /* The order spreads over the region, so targets that start in the middle are seen. */
    CHECK_STR(names_of(&r.c.targets), "gfx900 gfx1201");
}

static void portable_code_is_told(void)
{
    CLEANUP(str_release) struct str one = plain_bundle("hip-spirv64-amd-amdhsa--amdgcnspirv", 10);
    CLEANUP(result_release) struct result r = read_bytes(&one);
    CHECK_INT(r.r, 0);
    CHECK(r.c.spirv);
    CHECK_INT(r.c.targets.n, 0);
}

static void single_code_objects(void)
{
    static const struct {
        uint32_t flags;
        const char *gfx;
    } rows[] = {
        { 0x41, "gfx1100" },         { 0x4a, "gfx1151" },
        { 0x53f, "gfx90a" },         { 0x01000054, "gfx11-generic" },
        { 0x53, "gfx10-3-generic" }, { 0x5f, "gfx9-4-generic" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(str_release) struct str co = library(NULL, 0, 224, rows[i].flags);
        CLEANUP(result_release) struct result r = read_bytes(&co);
        CHECK_INT(r.r, 0);
        CHECK_INT(r.c.kind, CODEOBJ_SINGLE);
        CHECK_STR(names_of(&r.c.targets), rows[i].gfx);
    }
    CLEANUP(str_release) struct str co = library(NULL, 0, 224, 0xff);
    CLEANUP(result_release) struct result r = read_bytes(&co);
    CHECK_INT(r.r, -1);
    CHECK_HAS(r.err.msg, "lib.so");
    CHECK_HAS(r.err.msg, "0xff");
}

static void libraries_without_device_code(void)
{
    CLEANUP(str_release) struct str data = { 0 }, zeros = { 0 };
    str_add(&data, "some text");
    CLEANUP(str_release) struct str so = library(&(struct part){ ".rodata", &data }, 1, EM_X86_64, 0);
    CLEANUP(result_release) struct result r = read_bytes(&so);
    CHECK_INT(r.r, 0);
    CHECK_INT(r.c.kind, CODEOBJ_NONE);
    CHECK(!r.c.targets.from);
    /* A section of zeros that no marker explains is a mistake, not an empty list. */
    pad_to(&zeros, 1);
    for (int i = 0; i < 5000; i++)
        str_addn(&zeros, "", 1);
    CLEANUP(str_release) struct str bad = fat_library(&zeros);
    CLEANUP(result_release) struct result rz = read_bytes(&bad);
    CHECK_INT(rz.r, -1);
    CHECK_HAS(rz.err.msg, "no offload bundle");
}

static void split_libraries(void)
{
    CLEANUP(str_release) struct str zeros = { 0 }, wrapper = { 0 }, ref = { 0 };
    for (int i = 0; i < 5000; i++)
        str_addn(&zeros, "", 1);
    add32(&wrapper, 0x4b504948);
    pad_to(&wrapper, 24);
    str_add(&ref, "\x80");
    struct part by_wrapper[] = { { ".hipFatBinSegment", &wrapper }, { ".hip_fatbin", &zeros } };
    struct part by_section[] = { { ".rocm_kpack_ref", &ref }, { ".hip_fatbin", &zeros } };
    CLEANUP(str_release)
    struct str a = library(by_wrapper, 2, EM_X86_64, 0), b = library(by_section, 2, EM_X86_64, 0);
    CLEANUP(result_release) struct result ra = read_bytes(&a), rb = read_bytes(&b);
    CHECK_INT(ra.r, 0);
    CHECK_INT(ra.c.kind, CODEOBJ_SPLIT);
    CHECK_INT(rb.r, 0);
    CHECK_INT(rb.c.kind, CODEOBJ_SPLIT);
    CHECK(!rb.c.targets.from);
}

static struct str kpack_archive(const char *toc, size_t n)
{
    struct str t = { 0 };
    str_add(&t, "KPAK");
    add32(&t, 1);
    add64(&t, 64);
    pad_to(&t, 64);
    str_addn(&t, toc, n);
    return t;
}

static void kpack_archives(void)
{
    /* {"blobs": [{"offset": 64}, "x"], 7: nil, "gfx_arches": ["gfx1151", "gfx90a:xnack+"]} */
    static const char toc[] = "\x83\xa5"
                              "blobs"
                              "\x92\x81\xa6"
                              "offset"
                              "\x40\xa1x"
                              "\x07\xc0"
                              "\xaa"
                              "gfx_arches"
                              "\x92\xa7"
                              "gfx1151"
                              "\xad"
                              "gfx90a:xnack+";
    CLEANUP(str_release) struct str k = kpack_archive(toc, sizeof(toc) - 1);
    CLEANUP(result_release) struct result r = read_bytes(&k);
    CHECK_INT(r.r, 0);
    CHECK_STR(r.err.msg, "");
    CHECK_INT(r.c.kind, CODEOBJ_KPACK);
    CHECK_STR(names_of(&r.c.targets), "gfx1151 gfx90a");
    for (size_t cut = 1; cut < k.len; cut++) {
        CLEANUP(fd_close) int fd = file_of(&k, cut);
        CLEANUP(arena_release) struct arena a = { 0 };
        struct codeobj c;
        struct cairn_error err = { 0 };
        CHECK_INT(codeobj_read(fd, "lib.so", &a, &c, &err), -1);
        CHECK_HAS(err.msg, "lib.so");
    }
    static const char none[] = "\x81\xa1x\xdf\xff\xff\xff\xff";
    CLEANUP(str_release) struct str hostile = kpack_archive(none, sizeof(none) - 1);
    CLEANUP(result_release) struct result rh = read_bytes(&hostile);
    CHECK_INT(rh.r, -1);
}

/* No prefix of a good file crashes the reader, and none gives a list that the whole file does not have. */
static void truncated_at_every_byte(void)
{
    CLEANUP(str_release) struct str packed = packed_bundle(IDS, 3, ZSTD), plain = plain_bundle(IDS, 40);
    CLEANUP(str_release) struct str both = { 0 };
    str_addn(&both, packed.s, packed.len);
    str_addn(&both, plain.s, plain.len);
    CLEANUP(str_release) struct str so = fat_library(&both);
    const struct str *files[] = { &packed, &plain, &so };
    for (size_t f = 0; f < ARRAY_LEN(files); f++)
        for (size_t cut = 0; cut < files[f]->len; cut++) {
            CLEANUP(fd_close) int fd = file_of(files[f], cut);
            CLEANUP(arena_release) struct arena a = { 0 };
            struct codeobj c;
            struct cairn_error err = { 0 };
            int r = codeobj_read(fd, "lib.so", &a, &c, &err);
            if (r == 0 || err.code != CAIRN_EFORMAT || !strstr(err.msg, "lib.so"))
                CHECK_FAIL_("file %zu cut at %zu: r %d, \"%s\"", f, cut, r, err.msg);
        }
}

static void poke64(struct str *t, size_t at, uint64_t v)
{
    memcpy(t->s + at, &v, 8);
}

static void hostile_numbers(void)
{
    static const uint64_t values[] = { 0x7fffffffffffffff, 0x8000000000000000, UINT64_MAX,
                                       UINT64_MAX - 23,    1u << 20,           0xffffffff };
    static const size_t at[] = { 24 /* count */, 32 /* offset */, 40 /* size */, 48 /* length of the id */ };
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        for (size_t k = 0; k < ARRAY_LEN(values); k++) {
            CLEANUP(str_release) struct str b = plain_bundle(IDS, 40);
            poke64(&b, at[i], values[k]);
            CLEANUP(result_release) struct result r = read_bytes(&b);
            CHECK_INT(r.r, -1);
            CHECK_INT(r.err.code, CAIRN_EFORMAT);
        }
    for (size_t k = 0; k < ARRAY_LEN(values); k++) {
        CLEANUP(str_release) struct str b = packed_bundle(IDS, 3, ZSTD);
        poke64(&b, 8, values[k]);
        CLEANUP(result_release) struct result r = read_bytes(&b);
        CHECK_INT(r.r, -1);
        CLEANUP(str_release) struct str none = { 0 };
        CLEANUP(str_release) struct str so = fat_library(&none);
        poke64(&so, offsetof(Elf64_Ehdr, e_shoff), values[k]);
        CLEANUP(result_release) struct result rs = read_bytes(&so);
        CHECK_INT(rs.r, -1);
    }
    CLEANUP(str_release) struct str version = packed_bundle(IDS, 3, ZSTD);
    version.s[4] = 9;
    CLEANUP(result_release) struct result rv = read_bytes(&version);
    CHECK_INT(rv.r, -1);
    CHECK_HAS(rv.err.msg, "unknown");
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void huge_file_that_is_nothing(void)
{
    CLEANUP(fd_close) int fd = memfd_create("test", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && !ftruncate(fd, (off_t)10 << 30));
    CLEANUP(arena_release) struct arena a = { 0 };
    struct codeobj c;
    struct targets t = { 0 };
    struct cairn_error err = { 0 };
    double start = now_ms();
    CHECK_INT(codeobj_read(fd, "torch/lib/libtorch_hip.so", &a, &c, &err), -1);
    CHECK(now_ms() - start < 50);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, "torch/lib/libtorch_hip.so");
    CHECK_HAS(err.msg, "not an ELF file");
    CHECK_INT(codeobj_arch_list(fd, "x.so", &a, &t, &err), -1);
    CHECK_HAS(err.msg, "not an ELF file");
    CHECK(!t.from);
}

static struct targets arch_list(struct arena *a, const char *text, size_t n, int *r)
{
    CLEANUP(str_release) struct str data = { 0 };
    str_addn(&data, text, n);
    CLEANUP(str_release) struct str so = library(&(struct part){ ".rodata", &data }, 1, EM_X86_64, 0);
    CLEANUP(fd_close) int fd = file_of(&so, so.len);
    struct targets t = { 0 };
    struct cairn_error err = { 0 };
    *r = codeobj_arch_list(fd, "libtorch_python.so", a, &t, &err);
    return t;
}

/* A hole of a gigabyte that says to be read-only data is not read to its end. */
static void the_search_for_the_list_ends(void)
{
    CLEANUP(str_release) struct str data = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    const uint64_t gib = (uint64_t)1 << 30;
    str_add(&data, "some text");
    CLEANUP(str_release) struct str so = library(&(struct part){ ".rodata", &data }, 1, EM_X86_64, 0);
    Elf64_Ehdr h;
    Elf64_Shdr rodata;
    memcpy(&h, so.s, sizeof(h));
    memcpy(&rodata, so.s + h.e_shoff + sizeof(rodata), sizeof(rodata));
    rodata.sh_size = gib - rodata.sh_offset;
    memcpy(so.s + h.e_shoff + sizeof(rodata), &rodata, sizeof(rodata));
    CLEANUP(fd_close) int fd = file_of(&so, so.len);
    static const char list[] = "\0gfx900 gfx906";
    REQUIRE(!ftruncate(fd, (off_t)gib) && pwrite(fd, list, sizeof(list), (off_t)(gib / 10 * 9)) > 0);
    struct targets t = { 0 };
    struct cairn_error err = { 0 };
    CHECK_INT(codeobj_arch_list(fd, "libtorch_python.so", &a, &t, &err), 0);
    CHECK(!t.from);
}

static void arch_list_in_read_only_data(void)
{
    static const struct {
        const char *text;
        size_t n;
        const char *want;
    } rows[] = {
#define ROW(text, want) { text, sizeof(text) - 1, want }
        ROW("\0gfx900 gfx906 gfx90a gfx1100 gfx1201\0more", "gfx900 gfx906 gfx90a gfx1100 gfx1201"),
        ROW("gfx90a:xnack-;gfx90a:xnack+;gfx942", "gfx90a gfx942"),
        ROW("only for gfx90a gfx942 gfx950 now\0gfx1100 gfx1101\0", "gfx1100 gfx1101"),
        ROW("\0gfx942\0gfx950\0", ""),
        ROW("gfx900  gfx906, gfx90a", ""),
        ROW("\0gfx11-generic gfx12-generic\0", "gfx11-generic gfx12-generic"),
        ROW("xgfx900 gfx906x gfx", ""),
#undef ROW
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(arena_release) struct arena a = { 0 };
        int r;
        struct targets t = arch_list(&a, rows[i].text, rows[i].n, &r);
        CHECK_INT(r, 0);
        CHECK_STR(names_of(&t), rows[i].want);
        CHECK_STR(t.from, *rows[i].want ? "libtorch_python.so" : NULL);
    }
}

/* The list may lie across the border between two reads, wherever that is. */
static void arch_list_at_any_place(void)
{
    for (size_t at = 128 * 1024 - 2100; at < 128 * 1024 + 40; at += 7) {
        CLEANUP(arena_release) struct arena a = { 0 };
        CLEANUP(str_release) struct str text = { 0 };
        while (text.len < at)
            str_addn(&text, "g", 1);
        str_addn(&text, "\0gfx900 gfx906 gfx90a", 22);
        while (text.len < at + 140 * 1024)
            str_addn(&text, "f", 1);
        int r;
        struct targets t = arch_list(&a, text.s, text.len, &r);
        CHECK_INT(r, 0);
        if (t.n != 3)
            CHECK_FAIL_("list at %zu: \"%s\"", at, names_of(&t));
    }
}

static void every_outside_call_may_fail(void)
{
    CLEANUP(str_release) struct str packed = packed_bundle(IDS, 2, ZSTD);
    CLEANUP(str_release) struct str so = fat_library(&packed);
    CLEANUP(fd_close) int fd = file_of(&so, so.len);
    for (int nth = 1;; nth++) {
        CLEANUP(arena_release) struct arena a = { 0 };
        struct codeobj c;
        struct cairn_error err = { 0 };
        fault_arm(nth, EIO);
        int r = codeobj_read(fd, "lib.so", &a, &c, &err);
        if (!fault_disarm()) {
            CHECK_INT(r, 0);
            break;
        }
        CHECK_INT(r, -1);
        CHECK_HAS(err.msg, "lib.so");
        REQUIRE(nth < 100);
    }
}

int main(void)
{
    RUN(every_kind_of_bundle);
    RUN(union_of_all_bundles);
    RUN(stops_when_nothing_new_comes);
    RUN(portable_code_is_told);
    RUN(single_code_objects);
    RUN(libraries_without_device_code);
    RUN(split_libraries);
    RUN(kpack_archives);
    RUN(truncated_at_every_byte);
    RUN(hostile_numbers);
    RUN(huge_file_that_is_nothing);
    RUN(arch_list_in_read_only_data);
    RUN(the_search_for_the_list_ends);
    RUN(arch_list_at_any_place);
    RUN(every_outside_call_may_fail);
    return check_done();
}
