/* SPDX-License-Identifier: Apache-2.0
 * Files that torch itself wrote (tests/tools/mktorch.py), each beside a safetensors file with the same tensors; and
 * the same files damaged. */
#include "tensor/torchfile.h"

#include "os/fault.h"
#include "base/str.h"
#include "check.h"
#include "tensor/crc32.h"
#include "tensor/scan.h"
#include "tensor/source.h"
#include "tree.h"
#include <errno.h>

static struct tree tmp;

static const char *data(const char *name, const char *end)
{
    char path[256];
    snprintf(path, sizeof(path), "torch/%s.%s", name, end);
    return check_data(path);
}

static void compare_tensor(const struct torch_file *f, const struct st_tensor *t, const struct st_file *twin,
                           const struct st_tensor *want)
{
    struct cairn_error err = { 0 };
    CHECK_STR(t->dtype_text, want->dtype_text);
    CHECK_INT(t->dtype, want->dtype);
    CHECK_INT(t->bytes, want->bytes);
    REQUIRE(t->rank == want->rank && t->bytes == want->bytes);
    for (int i = 0; i < t->rank; i++)
        CHECK_INT(t->shape[i], want->shape[i]);
    /* Every range of elements, so that every way of reading meets every start and end. */
    size_t size = dtype_size(t->dtype);
    char *a = malloc(t->bytes + 1), *b = malloc(t->bytes + 1);
    uint64_t step = 1 + t->elements / 60;
    for (uint64_t first = 0; first <= t->elements; first += step) {
        for (uint64_t n = 0; n <= t->elements - first; n += step) {
            if (torch_file_read(f, t, first, n, a, &err) || st_read(twin, want, first, n, b, &err) ||
                memcmp(a, b, n * size)) {
                CHECK_FAIL_("%s %d+%d: %s", t->name, (int)first, (int)n, err.msg);
                first = n = t->elements;
            }
        }
    }
    free(a);
    free(b);
}

static void check_pair(const char *name, const char *twin_name)
{
    struct cairn_error err = { 0 };
    struct torch_file f;
    struct st_file twin;
    if (torch_file_open(&f, data(name, "pth"), &err))
        CHECK_FAIL_("%s", err.msg);
    REQUIRE(!err.msg[0] && !st_open(&twin, data(twin_name, "safetensors"), &err));
    CHECK_INT(f.n_tensors, twin.n_tensors);
    CHECK(f.n_tensors > 0);
    for (size_t i = 0; i < f.n_tensors; i++) {
        const struct st_tensor *want = st_find(&twin, f.tensors[i].name);
        if (want)
            compare_tensor(&f, &f.tensors[i], &twin, want);
        else
            CHECK_FAIL_("%s: %s is not in the twin", name, f.tensors[i].name);
    }
    torch_file_close(&f);
    st_close(&twin);
}

static void check_twins(const char *name)
{
    check_pair(name, name);
}

static void reads_every_dtype(void)
{
    check_twins("dtypes");
}

static void reads_a_state_dict(void)
{
    check_twins("model");
}

static void reads_a_checkpoint_of_nested_containers(void)
{
    check_twins("checkpoint");
}

static void reads_views_slices_and_tied_weights(void)
{
    check_twins("views");
}

static void reads_protocols_4_and_5(void)
{
    check_twins("protocol4");
    check_twins("protocol5");
}

static void reads_wide_rows_one_by_one(void)
{
    check_twins("wide");
}

static void reads_an_archive_with_64_bit_offsets(void)
{
    check_pair("zip64", "views");
}

static void names_a_lone_tensor(void)
{
    check_twins("single");
}

static void tells_the_place_of_what_lies_in_one_piece(void)
{
    struct cairn_error err = { 0 };
    struct torch_file f;
    REQUIRE(!torch_file_open(&f, data("views", "pth"), &err));
    for (size_t i = 0; i < f.n_tensors; i++) {
        const char *name = f.tensors[i].name;
        bool scattered = !strcmp(name, "transposed") || !strcmp(name, "every_third") ||
                         !strcmp(name, "expanded") || !strcmp(name, "permuted");
        CHECK(scattered == !f.tensors[i].at);
        float direct[60], read[60];
        if (!scattered && f.tensors[i].dtype == DTYPE_F32) {
            CHECK(!file_read_at(f.fd, f.path, direct, f.tensors[i].bytes, f.tensors[i].at, &err));
            CHECK(!torch_file_read(&f, &f.tensors[i], 0, f.tensors[i].elements, read, &err));
            CHECK(!memcmp(direct, read, f.tensors[i].bytes));
        }
    }
    torch_file_close(&f);
}

static void lists_complex_numbers_and_copies_their_bytes(void)
{
    struct cairn_error err = { 0 };
    struct torch_file f;
    REQUIRE(!torch_file_open(&f, data("complex", "pth"), &err));
    char bytes[16], zero[16] = "";
    CHECK_INT(f.n_tensors, 1);
    CHECK_STR(f.tensors[0].dtype_text, "C64");
    CHECK_INT(f.tensors[0].dtype, DTYPE_OTHER);
    CHECK(!torch_file_read_bytes(&f, &f.tensors[0], 0, 16, bytes, &err) && !memcmp(bytes, zero, 16));
    CHECK(torch_file_read(&f, &f.tensors[0], 0, 2, bytes, &err));
    CHECK_HAS(err.msg, "tensor c (C64)");
    torch_file_close(&f);
}

static void is_a_source_like_any_other(void)
{
    struct cairn_error err = { 0 };
    struct tensor_source s;
    REQUIRE(!source_open(&s, data("views", "pth"), &err));
    const struct st_tensor *t = source_find(&s, "transposed");
    uint64_t at;
    int fd;
    float v[12];
    CHECK_STR(s.format, "torch");
    REQUIRE(t && !source_read_as(&s, t, 0, 12, DTYPE_F32, v, &err));
    CHECK(v[0] == 0 && v[1] == 4 && v[2] == 8 && v[3] == 1 && v[11] == 11);
    CHECK(!source_place(&s, t, &fd, &at));
    CHECK(source_place(&s, source_find(&s, "slice"), &fd, &at));
    source_close(&s);
}

static void refused(const char *path, const char *why)
{
    struct cairn_error err = { 0 };
    struct torch_file f;
    if (!torch_file_open(&f, path, &err)) {
        CHECK_FAIL_("%s opens", path);
        torch_file_close(&f);
    }
    CHECK_HAS(err.msg, path);
    CHECK_HAS(err.msg, why);
}

static void refuses_by_name_what_is_no_tensor(void)
{
    refused(data("function", "pth"), " load posix.system");
    refused(data("module", "pth"), " load torch.nn.modules.container.Sequential");
    refused(data("sparse", "pth"), " load torch._utils._rebuild_sparse_tensor");
    refused(data("legacy", "pth"), "before 1.6");
}

static void refuses_other_files(void)
{
    tree_put(&tmp, "empty.pth", "");
    refused(tree_path(&tmp, "empty.pth"), "not a torch file");
    tree_put(&tmp, "text.pth", "version https://git-lfs.github.com/spec/v1\n");
    refused(tree_path(&tmp, "text.pth"), "not a torch file");
    tree_put_bytes(&tmp, "bare.pth", "PK\003\004", 4);
    refused(tree_path(&tmp, "bare.pth"), "no zip directory");
    refused(tmp.dir, "directory");
}

/* A copy of a file in memory, to be damaged. */
struct copy {
    unsigned char bytes[16384];
    size_t n;
};

static void load(struct copy *c, const char *name)
{
    FILE *f = fopen(data(name, "pth"), "r");
    c->n = f ? fread(c->bytes, 1, sizeof(c->bytes), f) : 0;
    if (f)
        fclose(f);
}

static unsigned char *find(struct copy *c, const char *what, size_t n)
{
    return memmem(c->bytes, c->n, what, n);
}

static void refuses_damaged(struct copy *c, const char *why)
{
    tree_put_bytes(&tmp, "damaged.pth", c->bytes, c->n);
    refused(tree_path(&tmp, "damaged.pth"), why);
}

static void refuses_a_compressed_entry_by_name(void)
{
    struct copy c;
    load(&c, "single");
    unsigned char *central = find(&c, "PK\001\002", 4);
    REQUIRE(central);
    central[10] = 8;
    refuses_damaged(&c, "/data.pkl is compressed (method 8)");
    central[10] = 0;
    central[8] |= 1;
    refuses_damaged(&c, "/data.pkl is encrypted");
}

static void refuses_another_byte_order(void)
{
    struct copy c;
    load(&c, "single");
    unsigned char *p = find(&c, "little", 6);
    REQUIRE(p);
    memcpy(p, "bigbig", 6);
    refuses_damaged(&c, "byte order");
}

/* The 6 in "storage of 6 elements, shape (2, 3)": the view grows beyond its storage. */
static void refuses_a_tensor_larger_than_its_storage(void)
{
    struct copy c;
    load(&c, "single");
    unsigned char *p = find(&c, "K\002K\003\206", 5);
    REQUIRE(p);
    p[1] = 3;
    refuses_damaged(&c, "tensor tensor reaches 36 bytes into");
    p[0] = 'N', p[1] = '0'; /* None, dropped again: the shape is (3,) without its first number */
    refuses_damaged(&c, "byte ");
}

static void refuses_a_missing_storage(void)
{
    struct copy c;
    load(&c, "single");
    unsigned char *p = find(&c, "X\001\0\0\0000", 6);
    REQUIRE(p);
    p[5] = '7';
    refuses_damaged(&c, "tensor tensor: no entry");
}

/* A new file each time: writing over one makes some file systems wait for the disk. */
static const char *put_new(const char *name, const struct copy *c)
{
    unlink(tree_path(&tmp, name));
    tree_put_bytes(&tmp, name, c->bytes, c->n);
    return tree_path(&tmp, name);
}

/* No prefix of a file opens, and none crashes. */
static void refuses_every_cut(void)
{
    struct copy c;
    load(&c, "views");
    size_t whole = c.n;
    REQUIRE(whole > 1000);
    for (c.n = 0; c.n < whole; c.n += 1 + c.n % 7) {
        struct cairn_error err = { 0 };
        struct torch_file f;
        if (!torch_file_open(&f, put_new("cut.pth", &c), &err)) {
            CHECK_FAIL_("opens when cut to %zu bytes", c.n);
            torch_file_close(&f);
        }
        CHECK(err.msg[0]);
    }
}

/* One byte changed: refused, or still a file whose tensors can all be read. */
static void survives_every_changed_byte(void)
{
    struct copy c;
    load(&c, "single");
    for (size_t i = 0; i < c.n; i++) {
        struct cairn_error err = { 0 };
        struct torch_file f;
        unsigned char was = c.bytes[i], into[4096];
        c.bytes[i] ^= (unsigned char)(1 << i % 8 | 0x80);
        const char *path = put_new("bit.pth", &c);
        c.bytes[i] = was;
        if (torch_file_open(&f, path, &err)) {
            CHECK(err.msg[0]);
            continue;
        }
        for (size_t k = 0; k < f.n_tensors; k++)
            if (f.tensors[k].bytes <= sizeof(into))
                CHECK(!torch_file_read_bytes(&f, &f.tensors[k], 0, f.tensors[k].bytes, into, &err));
        torch_file_close(&f);
    }
}

static uint64_t read_all(const char *path, struct cairn_error *err)
{
    struct torch_file f;
    char into[256];
    uint64_t sum = 0;
    if (torch_file_open(&f, path, err))
        return 0;
    for (size_t i = 0; i < f.n_tensors; i++)
        if (!torch_file_read(&f, &f.tensors[i], 0, f.tensors[i].elements, into, err))
            sum += f.tensors[i].bytes;
    torch_file_close(&f);
    return sum;
}

static void tells_every_outside_failure(void)
{
    struct cairn_error err = { 0 };
    uint64_t whole = read_all(data("views", "pth"), &err);
    CHECK(whole > 0);
    for (int nth = 1;; nth++) {
        err = (struct cairn_error){ 0 };
        fault_arm(nth, EIO);
        uint64_t sum = read_all(data("views", "pth"), &err);
        if (!fault_disarm()) {
            CHECK_INT(sum, whole);
            break;
        }
        CHECK(sum < whole && strstr(err.msg, "views.pth"));
        REQUIRE(nth < 1000);
    }
}

static void says_when_the_file_shrinks_while_it_is_read(void)
{
    struct cairn_error err = { 0 };
    struct torch_file f;
    struct copy c;
    float into[6];
    load(&c, "single");
    tree_put_bytes(&tmp, "shrinks.pth", c.bytes, c.n);
    const char *path = tree_path(&tmp, "shrinks.pth");
    REQUIRE(!torch_file_open(&f, path, &err));
    CHECK(!truncate(path, 100));
    CHECK(torch_file_read(&f, &f.tensors[0], 0, 6, into, &err));
    CHECK_HAS(err.msg, "truncated");
    torch_file_close(&f);
}

/* ---- files of our own ---- */

/* A .pth with stored entries, in memory. */
struct archive {
    struct str bytes, directory;
    int n;
};

static void add_number(struct str *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        str_addn(to, &(char){ (char)(v & 0xff) }, 1);
}

/* at: of its local header; UINT64_MAX: it follows those before. */
static void add_entry(struct archive *a, const char *name, const char *data, size_t n, uint64_t at)
{
    uint64_t here = at == UINT64_MAX ? a->bytes.len : at;
    uint32_t crc = crc32_add(0, data, n);
    for (int central = 0; central < 2; central++) {
        struct str *to = central ? &a->directory : &a->bytes;
        if (!central && at != UINT64_MAX)
            continue;
        str_addn(to, central ? "PK\1\2\0\0" : "PK\3\4", central ? 6 : 4);
        add_number(to, 0, 12); /* version, flags, method, time, date; then the sum */
        to->len -= 2;
        add_number(to, crc, 4);
        add_number(to, n, 4);
        add_number(to, n, 4);
        add_number(to, strlen(name), 2);
        add_number(to, 0, central ? 14 - 2 : 2);
        if (central)
            add_number(to, here, 4);
        str_add(to, name);
    }
    if (at == UINT64_MAX)
        str_addn(&a->bytes, data, n);
    a->n++;
}

static const char *put_archive(struct archive *a, const char *name)
{
    uint64_t at = a->bytes.len;
    str_addn(&a->bytes, a->directory.s, a->directory.len);
    str_addn(&a->bytes, "PK\5\6\0\0\0\0", 8);
    add_number(&a->bytes, (uint64_t)a->n, 2);
    add_number(&a->bytes, (uint64_t)a->n, 2);
    add_number(&a->bytes, a->directory.len, 4);
    add_number(&a->bytes, at, 4);
    add_number(&a->bytes, 0, 2);
    tree_put_bytes(&tmp, name, a->bytes.s, a->bytes.len);
    str_release(&a->bytes);
    str_release(&a->directory);
    return tree_path(&tmp, name);
}

/* One tensor of the pickle: of f32, over data/KEY, which says it has `claims` elements. */
static void add_tensor(struct str *p, int name, int key, uint32_t claims, const uint32_t shape[3],
                       const uint32_t stride[3])
{
    char text[32];
    snprintf(text, sizeof(text), "t%06d", name);
    str_addn(p, "X\7\0\0\0", 5);
    str_add(p, text);
    str_add(p, "ctorch._utils\n_rebuild_tensor_v2\n((");
    str_addn(p, "X\7\0\0\0storage", 12);
    str_add(p, "ctorch\nFloatStorage\n");
    str_addn(p, "X\1\0\0\0", 5);
    str_addn(p, &(char){ (char)('0' + key) }, 1);
    str_addn(p, "X\3\0\0\0cpuJ", 9);
    add_number(p, claims, 4);
    str_addn(p, "tQK\0(", 5);
    for (int i = 0; i < 3; i++) {
        str_add(p, "J");
        add_number(p, shape[i], 4);
    }
    str_add(p, "t(");
    for (int i = 0; i < 3; i++) {
        str_add(p, "J");
        add_number(p, stride[i], 4);
    }
    str_add(p, "t\x89"
               "ccollections\nOrderedDict\n)RtRs");
}

/* `n` such tensors over one storage of so many numbers: 0, 1, 2 … */
static const char *put_tensors(const char *name, int n, uint32_t numbers, uint32_t claims,
                               const uint32_t shape[3], const uint32_t stride[3])
{
    struct archive a = { 0 };
    CLEANUP(str_release) struct str pickle = { 0 };
    CLEANUP(mem_free) float *storage = malloc((size_t)numbers * sizeof(float));
    for (uint32_t i = 0; i < numbers; i++)
        storage[i] = (float)i;
    str_addn(&pickle, "\x80\2}", 3);
    for (int i = 0; i < n; i++)
        add_tensor(&pickle, i, 0, claims, shape, stride);
    str_add(&pickle, ".");
    add_entry(&a, "archive/data.pkl", pickle.s, pickle.len, UINT64_MAX);
    add_entry(&a, "archive/data/0", (const char *)storage, (size_t)numbers * sizeof(float), UINT64_MAX);
    return put_archive(&a, name);
}

/* Bytes that this process has read so far; 0: the kernel does not count them. */
static uint64_t bytes_read(void)
{
    FILE *f = fopen("/proc/self/io", "r");
    unsigned long long n = 0;
    if (f && fscanf(f, "rchar: %llu", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

/* Elements in any order cost about the bytes of the file, not those of the file for each piece. */
static void scattered_elements_are_read_once(void)
{
    static const struct {
        uint32_t shape[3], stride[3];
    } cases[] = {
        { { 1, 2048, 1500 }, { 1, 1, 2048 } },       /* a transposed matrix */
        { { 3, 1000, 1024 }, { 1, 3072, 3 } },       /* channels last */
        { { 1024, 3, 1000 }, { 1, 1024000, 1024 } }, /* the first dimension innermost */
        { { 30, 100, 1024 }, { 102400, 1, 100 } },   /* many small matrices, each transposed */
        { { 1, 1500, 1024 }, { 1, 2048, 2 } },       /* every second column */
        { { 2, 1500, 1024 }, { 0, 1024, 1 } },       /* one matrix, twice */
    };
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        const uint32_t *shape = cases[c].shape, *stride = cases[c].stride;
        enum { NUMBERS = 2048 * 1500 };
        struct tensor_source src;
        struct scan_stats stats;
        struct cairn_error err = { 0 };
        REQUIRE(!source_open(&src, put_tensors("scattered.pth", 1, NUMBERS, NUMBERS, shape, stride), &err));
        uint64_t n = src.tensors[0].elements, before = bytes_read();
        CHECK(!scan_source(&src, 1, &stats, NULL, &err));
        uint64_t most = (src.tensors[0].bytes + 2 * NUMBERS * sizeof(float)) * 2;
        if (before && bytes_read() - before > most)
            CHECK_FAIL_("case %zu: %llu bytes were read of %llu", c,
                        (unsigned long long)(bytes_read() - before),
                        (unsigned long long)src.tensors[0].bytes);
        CLEANUP(mem_free) float *v = malloc(n * sizeof(float));
        /* Pieces that begin and end anywhere. */
        for (uint64_t at = 0, m; at < n; at += m) {
            m = n - at < 700001 ? n - at : 700001;
            CHECK(!source_read(&src, &src.tensors[0], at, m, v + at, &err));
        }
        uint64_t i = 0, bad = 0;
        for (uint32_t x = 0; x < shape[0]; x++)
            for (uint32_t y = 0; y < shape[1]; y++)
                for (uint32_t z = 0; z < shape[2]; z++)
                    bad += v[i++] != (float)(x * stride[0] + y * stride[1] + z * stride[2]);
        CHECK_INT(bad, 0);
        source_close(&src);
    }
}

static void refuses_what_repeats_without_end(void)
{
    static const uint32_t huge[3] = { 1, 1 << 14, 1 << 14 }, none[3] = { 0, 0, 0 };
    refused(put_tensors("repeats.pth", 1000, 4, 4, huge, none), "repeat");
    static const uint32_t small[3] = { 1, 16, 16 };
    struct torch_file f;
    struct cairn_error err = { 0 };
    CHECK(!torch_file_open(&f, put_tensors("repeats.pth", 1000, 4, 4, small, none), &err));
    torch_file_close(&f);
}

static void refuses_a_view_beyond_what_the_storage_claims(void)
{
    static const uint32_t shape[3] = { 1, 1, 4 }, stride[3] = { 4, 4, 1 };
    refused(put_tensors("claims.pth", 1, 4, 1, shape, stride), "storage");
}

static void refuses_entries_that_overlap(void)
{
    static const uint32_t shape[3] = { 1, 1, 4 }, stride[3] = { 4, 4, 1 };
    struct archive a = { 0 };
    CLEANUP(str_release) struct str pickle = { 0 };
    float storage[4] = { 0 };
    str_addn(&pickle, "\x80\2}", 3);
    add_tensor(&pickle, 0, 0, 4, shape, stride);
    add_tensor(&pickle, 1, 1, 4, shape, stride);
    str_add(&pickle, ".");
    add_entry(&a, "archive/data.pkl", pickle.s, pickle.len, UINT64_MAX);
    uint64_t at = a.bytes.len;
    add_entry(&a, "archive/data/0", (const char *)storage, sizeof(storage), UINT64_MAX);
    add_entry(&a, "archive/data/1", (const char *)storage, sizeof(storage), at);
    refused(put_archive(&a, "overlap.pth"), "overlap");
}

int main(void)
{
    tree_make(&tmp);
    RUN(reads_every_dtype);
    RUN(reads_a_state_dict);
    RUN(reads_a_checkpoint_of_nested_containers);
    RUN(reads_views_slices_and_tied_weights);
    RUN(reads_protocols_4_and_5);
    RUN(reads_wide_rows_one_by_one);
    RUN(reads_an_archive_with_64_bit_offsets);
    RUN(names_a_lone_tensor);
    RUN(tells_the_place_of_what_lies_in_one_piece);
    RUN(lists_complex_numbers_and_copies_their_bytes);
    RUN(is_a_source_like_any_other);
    RUN(refuses_by_name_what_is_no_tensor);
    RUN(refuses_other_files);
    RUN(refuses_a_compressed_entry_by_name);
    RUN(refuses_another_byte_order);
    RUN(refuses_a_tensor_larger_than_its_storage);
    RUN(refuses_a_missing_storage);
    RUN(refuses_every_cut);
    RUN(survives_every_changed_byte);
    RUN(tells_every_outside_failure);
    RUN(says_when_the_file_shrinks_while_it_is_read);
    RUN(scattered_elements_are_read_once);
    RUN(refuses_what_repeats_without_end);
    RUN(refuses_a_view_beyond_what_the_storage_claims);
    RUN(refuses_entries_that_overlap);
    tree_remove(&tmp);
    return check_done();
}
