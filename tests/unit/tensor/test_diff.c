/* SPDX-License-Identifier: Apache-2.0
 * Files that differ in known places. */
#include "base/cleanup.h"
#include "os/fault.h"
#include "check.h"
#include "tensor/diff.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

/* One tensor "x" of n elements. */
static void write_one(const struct tree *t, const char *file, enum dtype type, const void *values, uint64_t n)
{
    struct cairn_error err = { 0 };
    struct st_writer w;
    struct st_tensor x = { .name = "x",
                           .dtype = type,
                           .dtype_text = type ? dtype_safetensors(type) : "F8_E8M0",
                           .shape = &n,
                           .rank = 1,
                           .elements = n,
                           .bytes = n * (type ? dtype_size(type) : 1) };
    if (st_writer_open(&w, tree_path(t, file),
                       &(struct st_contents){ .tensors = &x, .n = 1, .order = ST_ORDER_GIVEN }, true, &err) ||
        st_writer_put(&w, 0, 0, values, x.bytes, &err) || st_writer_commit(&w, &err))
        CHECK_FAIL_("%s", err.msg);
    st_writer_close(&w);
}

static struct diff_pair compare(const struct tree *t, double rtol, double atol, int threads)
{
    struct cairn_error err = { 0 };
    CLEANUP(source_close) struct tensor_source a = { 0 };
    CLEANUP(source_close) struct tensor_source b = { 0 };
    struct diff_pair p = { 0 };
    CHECK(!source_open(&a, tree_path(t, "a"), &err) && !source_open(&b, tree_path(t, "b"), &err));
    p.a = &a.tensors[0];
    p.b = &b.tensors[0];
    struct diff_options o = { .rtol = rtol, .atol = atol, .threads = threads };
    CHECK(!diff_pairs(&a, &b, &p, 1, &o, &err));
    return p;
}

static void equal_is_more_than_the_same_bits(void)
{
    struct tree t;
    tree_make(&t);
    write_one(&t, "a", DTYPE_F32, (float[]){ 0, NAN, INFINITY, 1 }, 4);
    write_one(&t, "b", DTYPE_F32, (float[]){ -0.0f, -NAN, INFINITY, 1 }, 4);
    CHECK_INT(compare(&t, 0, 0, 1).result.differing, 0);
    write_one(&t, "b", DTYPE_F64, (double[]){ 0, NAN, INFINITY, 1 }, 4);
    struct diff_pair p = compare(&t, 0, 0, 1);
    CHECK(p.compared && p.result.differing == 0);
    tree_remove(&t);
}

static void nan_and_inf_differ_by_infinity(void)
{
    struct tree t;
    tree_make(&t);
    write_one(&t, "a", DTYPE_F32, (float[]){ 1, 2, NAN, INFINITY }, 4);
    write_one(&t, "b", DTYPE_F32, (float[]){ 1, 2.5f, 3, -INFINITY }, 4);
    struct diff_result r = compare(&t, 0.1, 100, 1).result;
    CHECK_INT(r.differing, 2);
    CHECK_INT(r.first.index, 2);
    CHECK(isinf(r.worst.by));
    r = compare(&t, 0, 0.5, 1).result;
    CHECK_INT(r.differing, 2); /* 2 and 2.5 are within it, exactly */
    CHECK_INT(compare(&t, 0, 0.49, 1).result.first.index, 1);
    tree_remove(&t);
}

static void first_and_worst_on_any_number_of_threads(void)
{
    enum { COUNT = 3000000 };
    struct tree t;
    CLEANUP(mem_free) float *v = calloc(COUNT, sizeof(float));
    tree_make(&t);
    for (size_t i = 0; i < COUNT; i++)
        v[i] = (float)(i % 1000);
    write_one(&t, "a", DTYPE_F32, v, COUNT);
    v[1500001] += 0.5f;
    v[2500002] -= 7;
    v[2900003] += 7;
    write_one(&t, "b", DTYPE_F32, v, COUNT);
    for (int threads = 1; threads <= 4; threads++) {
        struct diff_result r = compare(&t, 0, 0, threads).result;
        CHECK_INT(r.differing, 3);
        CHECK_INT(r.first.index, 1500001);
        CHECK(r.first.by == 0.5);
        CHECK_INT(r.worst.index, 2500002);
        CHECK(r.worst.a - r.worst.b == 7);
    }
    tree_remove(&t);
}

static void whole_numbers_beyond_f64(void)
{
    struct tree t;
    tree_make(&t);
    write_one(&t, "a", DTYPE_I64, (int64_t[]){ INT64_MAX, 5 }, 2);
    write_one(&t, "b", DTYPE_I64, (int64_t[]){ INT64_MAX - 1, 5 }, 2);
    struct diff_result r = compare(&t, 0, 0, 1).result;
    CHECK(r.differing == 1 && r.first.index == 0 && r.first.by == 1);
    tree_remove(&t);
}

static void unknown_dtypes_by_bytes(void)
{
    struct tree t;
    tree_make(&t);
    write_one(&t, "a", DTYPE_OTHER, "abcd", 4);
    write_one(&t, "b", DTYPE_OTHER, "abxd", 4);
    struct diff_pair p = compare(&t, 0, 0, 1);
    CHECK(p.compared && p.result.differing == 1 && p.result.first.index == 2);
    write_one(&t, "b", DTYPE_U8, "abcd", 4);
    CHECK(!compare(&t, 0, 0, 1).compared);
    write_one(&t, "b", DTYPE_OTHER, "abcde", 5);
    CHECK(!compare(&t, 0, 0, 1).compared);
    tree_remove(&t);
}

static void every_outside_call_may_fail(void)
{
    struct tree t;
    tree_make(&t);
    write_one(&t, "a", DTYPE_F32, (float[]){ 1, 2 }, 2);
    write_one(&t, "b", DTYPE_F32, (float[]){ 1, 3 }, 2);
    int nth = 1;
    for (;; nth++) {
        CLEANUP(source_close) struct tensor_source a = { 0 };
        CLEANUP(source_close) struct tensor_source b = { 0 };
        struct cairn_error err = { 0 };
        struct diff_pair p = { 0 };
        fault_arm(nth, EIO);
        int r =
            source_open(&a, tree_path(&t, "a"), &err) || source_open(&b, tree_path(&t, "b"), &err) ? -1 : 0;
        if (!r) {
            p.a = &a.tensors[0], p.b = &b.tensors[0];
            r = diff_pairs(&a, &b, &p, 1, &(struct diff_options){ .threads = 1 }, &err);
        }
        if (!fault_disarm()) {
            CHECK(r == 0 && p.result.differing == 1);
            break;
        }
        CHECK(r == -1);
        CHECK_HAS(err.msg, "Input/output error");
    }
    CHECK(nth > 12);
    tree_remove(&t);
}

int main(void)
{
    RUN(equal_is_more_than_the_same_bits);
    RUN(nan_and_inf_differ_by_infinity);
    RUN(first_and_worst_on_any_number_of_threads);
    RUN(whole_numbers_beyond_f64);
    RUN(unknown_dtypes_by_bytes);
    RUN(every_outside_call_may_fail);
    return check_done();
}
