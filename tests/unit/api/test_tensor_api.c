/* SPDX-License-Identifier: Apache-2.0
 * The public interface as a caller uses it; the fault seam comes from inside. */
#include <cairn/tensor.h>

#include "os/fault.h"
#include "check.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

static struct tree tmp;
static struct cairn_tensor_error err;

static const uint64_t shape_a[] = { 2, 3 }, shape_b[] = { 5 };
static const struct cairn_tensor_info two[] = {
    { .name = "b", .dtype = "bf16", .shape = shape_b, .rank = 1 },
    { .name = "a", .dtype = "F32", .shape = shape_a, .rank = 2 },
};
static const char *const meta[] = { "format", "pt", "who", "w\xc3\xa4r" };
static const float six[] = { 1, -2, 3.5f, 1e-40f, INFINITY, 65504 };
static const uint16_t five[] = { 0x3f80, 0xbf80, 0x0001, 0x7f80, 0x4000 };

static int write_two(const char *path, unsigned flags)
{
    struct cairn_tensor_writer *w;
    if (cairn_tensor_writer_open(path, two, 2, meta, 2, flags, &w, &err))
        return -1;
    int r = cairn_tensor_writer_put(w, 1, 0, six, 12, &err) ||
            cairn_tensor_writer_put(w, 1, 12, six + 3, 12, &err) ||
            cairn_tensor_writer_put(w, 0, 0, five, sizeof(five), &err) || cairn_tensor_writer_commit(w, &err);
    cairn_tensor_writer_close(w);
    return r ? -1 : 0;
}

static void reads_back_what_it_wrote(void)
{
    struct cairn_tensor_file *f;
    struct cairn_tensor_info t;
    const char *path = tree_path(&tmp, "two.safetensors"), *key, *value;
    float a[6];
    uint16_t b[5];
    REQUIRE(!write_two(path, 0) && !cairn_tensor_open(path, &f, &err));
    CHECK_INT(cairn_tensor_count(f), 2);
    CHECK_INT(cairn_tensor_meta_count(f), 2);
    CHECK(!cairn_tensor_meta_get(f, 1, &key, &value));
    CHECK_STR(value, "w\xc3\xa4r");
    CHECK(cairn_tensor_meta_get(f, 2, &key, &value));
    /* Larger elements first, as the reference writer has it. */
    CHECK_INT(cairn_tensor_find(f, "a"), 0);
    CHECK(cairn_tensor_find(f, "c") == SIZE_MAX);
    REQUIRE(!cairn_tensor_get(f, 0, &t));
    CHECK_STR(t.dtype, "F32");
    CHECK(t.rank == 2 && t.shape[0] == 2 && t.shape[1] == 3 && t.elements == 6 && t.bytes == 24);
    CHECK_STR(t.file, path);
    CHECK(t.offset % 8 == 0);
    CHECK(cairn_tensor_get(f, 2, &t));
    CHECK(!cairn_tensor_read(f, 0, 0, 6, NULL, 0, a, sizeof(a), &err) && !memcmp(a, six, sizeof(a)));
    CHECK(!cairn_tensor_read(f, 1, 0, 5, NULL, 1, b, sizeof(b), &err) && !memcmp(b, five, sizeof(b)));
    cairn_tensor_close(f);
}

static void keeps_the_order_it_was_given(void)
{
    struct cairn_tensor_file *f;
    const char *path = tree_path(&tmp, "order.safetensors");
    REQUIRE(!write_two(path, CAIRN_TENSOR_KEEP_ORDER) && !cairn_tensor_open(path, &f, &err));
    CHECK_INT(cairn_tensor_find(f, "b"), 0);
    cairn_tensor_close(f);
}

static void converts_while_it_reads(void)
{
    struct cairn_tensor_file *f;
    const char *path = tree_path(&tmp, "as.safetensors");
    float wide[5];
    uint16_t half[3];
    REQUIRE(!write_two(path, 0) && !cairn_tensor_open(path, &f, &err));
    CHECK(!cairn_tensor_read(f, 1, 0, 5, "float32", 0, wide, sizeof(wide), &err));
    CHECK(wide[0] == 1 && wide[1] == -1 && wide[2] > 0 && isinf(wide[3]) && wide[4] == 2);
    CHECK(!cairn_tensor_read(f, 0, 0, 3, "f16", 0, half, sizeof(half), &err));
    CHECK(half[0] == 0x3c00 && half[1] == 0xc000 && half[2] == 0x4300);
    cairn_tensor_close(f);
}

/* Enough for several pieces, and threads that meet. */
static void reads_a_large_tensor_in_pieces(void)
{
    enum { N = 3000001 };
    struct cairn_tensor_file *f;
    struct cairn_tensor_writer *w;
    const uint64_t shape[] = { N };
    const struct cairn_tensor_info info = { .name = "x", .dtype = "F32", .shape = shape, .rank = 1 };
    const char *path = tree_path(&tmp, "large.safetensors");
    float *x = malloc(N * sizeof(*x));
    double *y = malloc(N * sizeof(*y));
    REQUIRE(x && y && !cairn_tensor_writer_open(path, &info, 1, NULL, 0, 0, &w, &err));
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    CHECK(!cairn_tensor_writer_put(w, 0, 0, x, N * sizeof(*x), &err) && !cairn_tensor_writer_commit(w, &err));
    cairn_tensor_writer_close(w);
    for (unsigned flags = 0; flags <= CAIRN_TENSOR_DIRECT; flags++) {
        REQUIRE(!cairn_tensor_open_with(path, flags, &f, &err));
        CHECK(flags || !cairn_tensor_is_direct(f));
        memset(y, 0, N * sizeof(*y));
        CHECK(!cairn_tensor_read(f, 0, 7, N - 7, "f64", 3, y, N * sizeof(*y), &err));
        int wrong = 0;
        for (int i = 7; i < N; i++)
            wrong += y[i - 7] != i;
        CHECK_INT(wrong, 0);
        cairn_tensor_close(f);
    }
    free(x);
    free(y);
}

static void refuses(int result, int code, const char *why)
{
    CHECK_INT(result, -1);
    CHECK_INT(err.code, code);
    CHECK_HAS(err.message, why);
    err = (struct cairn_tensor_error){ 0 };
}

static void refuses_to_read_what_is_not_there(void)
{
    struct cairn_tensor_file *f;
    const char *path = tree_path(&tmp, "refuse.safetensors");
    char into[64];
    refuses(cairn_tensor_open("/nonexistent/file", &f, &err), CAIRN_TENSOR_EIO, "/nonexistent/file");
    refuses(cairn_tensor_open(tmp.dir, &f, &err), CAIRN_TENSOR_EFORMAT, "directory");
    CHECK_INT(cairn_tensor_open("/nonexistent/file", &f, NULL), -1);
    refuses(cairn_tensor_open_with(path, 8, &f, &err), CAIRN_TENSOR_EUSAGE, "flags 8");
    REQUIRE(!write_two(path, 0) && !cairn_tensor_open(path, &f, &err));
    refuses(cairn_tensor_read(f, 9, 0, 1, NULL, 0, into, 64, &err), CAIRN_TENSOR_EUSAGE, "index 9");
    refuses(cairn_tensor_read(f, 0, 4, 3, NULL, 0, into, 64, &err), CAIRN_TENSOR_EUSAGE,
            "no elements 4 to 7");
    refuses(cairn_tensor_read(f, 0, 0, 6, NULL, 0, into, 23, &err), CAIRN_TENSOR_EUSAGE, "too small");
    refuses(cairn_tensor_read(f, 0, 0, 6, "f64", 0, into, 40, &err), CAIRN_TENSOR_EUSAGE, "too small");
    refuses(cairn_tensor_read(f, 0, 0, 6, "f7", 0, into, 64, &err), CAIRN_TENSOR_EUSAGE, "\"f7\"");
    refuses(cairn_tensor_read(f, 0, 0, 6, "i32", 0, into, 64, &err), CAIRN_TENSOR_EUSAGE, "tensor a is F32");
    cairn_tensor_close(f);
    cairn_tensor_close(NULL);
}

static int open_writer(const struct cairn_tensor_info *tensors, size_t n, const char *const *pairs,
                       size_t n_pairs)
{
    struct cairn_tensor_writer *w;
    int r = cairn_tensor_writer_open(tree_path(&tmp, "never.safetensors"), tensors, n, pairs, n_pairs, 0, &w,
                                     &err);
    if (!r)
        cairn_tensor_writer_close(w);
    CHECK(access(tree_path(&tmp, "never.safetensors"), F_OK));
    return r;
}

static void refuses_to_write_what_could_not_be_read(void)
{
    const uint64_t huge[] = { UINT64_C(1) << 40, UINT64_C(1) << 40 };
    const struct cairn_tensor_info twice[] = { two[0], two[0] };
    const struct cairn_tensor_info odd = { .name = "x", .dtype = "F7", .shape = shape_b, .rank = 1 };
    const struct cairn_tensor_info big = { .name = "x", .dtype = "F32", .shape = huge, .rank = 2 };
    const struct cairn_tensor_info bad = { .name = "\xff", .dtype = "F32", .shape = shape_b, .rank = 1 };
    const struct cairn_tensor_info reserved = {
        .name = "__metadata__", .dtype = "F32", .shape = shape_b, .rank = 1
    };
    const struct cairn_tensor_info deep = { .name = "x", .dtype = "F32", .shape = huge, .rank = 1000 };
    static const char *const same_keys[] = { "k", "1", "k", "2" };
    static const char *const bad_value[] = { "k", "\xff" };
    refuses(open_writer(twice, 2, NULL, 0), CAIRN_TENSOR_EUSAGE, "tensor b");
    refuses(open_writer(&odd, 1, NULL, 0), CAIRN_TENSOR_EUSAGE, "\"F7\"");
    refuses(open_writer(&big, 1, NULL, 0), CAIRN_TENSOR_EUSAGE, "overflows");
    refuses(open_writer(&bad, 1, NULL, 0), CAIRN_TENSOR_EUSAGE, "not UTF-8");
    refuses(open_writer(&reserved, 1, NULL, 0), CAIRN_TENSOR_EUSAGE, "__metadata__");
    refuses(open_writer(&deep, 1, NULL, 0), CAIRN_TENSOR_EUSAGE, "dimensions");
    refuses(open_writer(two, 2, same_keys, 2), CAIRN_TENSOR_EUSAGE, "metadata key k");
    refuses(open_writer(two, 2, bad_value, 1), CAIRN_TENSOR_EUSAGE, "not UTF-8");
}

static void replaces_only_when_asked_and_only_when_whole(void)
{
    struct cairn_tensor_writer *w;
    const char *path = tree_path(&tmp, "there.safetensors");
    tree_put(&tmp, "there.safetensors", "old");
    refuses(write_two(path, 0), CAIRN_TENSOR_EUSAGE, "exists");
    REQUIRE(!cairn_tensor_writer_open(path, two, 2, NULL, 0, CAIRN_TENSOR_REPLACE, &w, &err));
    refuses(cairn_tensor_writer_put(w, 2, 0, six, 4, &err), CAIRN_TENSOR_EUSAGE, "index 2");
    refuses(cairn_tensor_writer_put(w, 0, 8, six, 4, &err), CAIRN_TENSOR_EUSAGE,
            "tensor b has no bytes 8 to 12");
    CHECK(!cairn_tensor_writer_put(w, 1, 0, six, 24, &err));
    refuses(cairn_tensor_writer_commit(w, &err), CAIRN_TENSOR_EUSAGE, "only 24 of 34 bytes");
    cairn_tensor_writer_close(w);
    cairn_tensor_writer_close(NULL);
    CHECK(!write_two(path, CAIRN_TENSOR_REPLACE));
}

static bool is_old(const char *path)
{
    char text[8] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, 7, f) : 0;
    if (f)
        fclose(f);
    return n == 3 && !strcmp(text, "old");
}

static int count_files(void)
{
    char command[128];
    int n = -1;
    snprintf(command, sizeof(command), "ls %s/faults | wc -l", tmp.dir);
    FILE *p = popen(command, "r");
    if (!p || fscanf(p, "%d", &n) != 1)
        n = -1;
    if (p)
        pclose(p);
    return n;
}

static void leaves_the_old_file_when_a_call_fails(void)
{
    for (int nth = 1;; nth++) {
        char path[128];
        tree_put(&tmp, "faults/x.safetensors", "old");
        snprintf(path, sizeof(path), "%s/faults/x.safetensors", tmp.dir);
        err = (struct cairn_tensor_error){ 0 };
        fault_arm(nth, ENOSPC);
        int r = write_two(path, CAIRN_TENSOR_REPLACE);
        bool reached = fault_disarm();
        CHECK_INT(count_files(), 1);
        if (!reached) {
            CHECK_INT(r, 0);
            break;
        }
        CHECK(r == -1 && err.message[0] && err.code == CAIRN_TENSOR_EIO);
        /* Once the name is taken, only the flush of the directory is left to fail. */
        if (!is_old(path) && !strstr(err.message, "the file is written"))
            CHECK_FAIL_("call %d: the old file is gone: %s", nth, err.message);
        REQUIRE(nth < 100);
    }
}

int main(void)
{
    tree_make(&tmp);
    RUN(reads_back_what_it_wrote);
    RUN(keeps_the_order_it_was_given);
    RUN(converts_while_it_reads);
    RUN(reads_a_large_tensor_in_pieces);
    RUN(refuses_to_read_what_is_not_there);
    RUN(refuses_to_write_what_could_not_be_read);
    RUN(replaces_only_when_asked_and_only_when_whole);
    RUN(leaves_the_old_file_when_a_call_fails);
    tree_remove(&tmp);
    return check_done();
}
