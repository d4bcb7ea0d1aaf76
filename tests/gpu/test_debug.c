/* SPDX-License-Identifier: Apache-2.0
 * The debug build of the kernels finds bad indices and numbers that are not finite, and says where.
 *
 *     test_debug DEVICE [quick]      quick: without the checks of all kernels */
#include "check.h"
#include "gpu/check.h"
#include "gpu/gpu.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/move.h"
#include "gpu/kernels/reduce.h"
#include "tree.h"
#include <math.h>

enum { N = 6000, ODD = 5001 /* in the second group */ };
static const char *device;

struct fixture {
    struct gpu *g;
    float *x, *y; /* of the device */
    struct cairn_error err;
};

static void fixture_close(struct fixture *f)
{
    if (f->g) {
        gpu_free(f->g, GPU_MEM_DEVICE, f->x);
        gpu_free(f->g, GPU_MEM_DEVICE, f->y);
    }
    gpu_close(f->g);
}

/* x holds ones, and `odd` at ODD. */
static int fixture_open(struct fixture *f, float odd)
{
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = i == ODD ? odd : 1;
    return gpu_open(device, &f->g, &f->err) || gpu_set_debug(f->g, &f->err) ||
           gpu_alloc(f->g, GPU_MEM_DEVICE, sizeof(x), (void **)&f->x, &f->err) ||
           gpu_alloc(f->g, GPU_MEM_DEVICE, sizeof(x), (void **)&f->y, &f->err) ||
           gpu_upload(f->g, NULL, f->x, x, sizeof(x), &f->err) || gpu_wait(f->g, NULL, &f->err);
}

static int launch(struct fixture *f, const char *name, enum gpu_storage s, const void *args, size_t size)
{
    const struct gpu_kernel *k;
    f->err = (struct cairn_error){ 0 };
    return gpu_kernel(f->g, name, s, &k, &f->err) ||
           gpu_launch(f->g, NULL, k, (struct gpu_grid){ .x = K_GROUPS(N) }, args, size, &f->err);
}

/* Which fault, and that the message names kernel, number and group. */
static void check_fault(const struct fixture *f, unsigned kind, const char *kernel, const char *words)
{
    printf("# %s\n", f->err.msg);
    CHECK_INT(gpu_fault(f->g)->kind, kind);
    CHECK_HAS(f->err.msg, kernel);
    CHECK_HAS(f->err.msg, words);
    CHECK_HAS(f->err.msg, "element 5001 of the array; group 1, 0, 0, item ");
}

static int scale(struct fixture *f, float factor)
{
    struct combine_args args = { .y = f->y, .x = f->x, .n = N, .factor = factor };
    return launch(f, "scale", GPU_F32, &args, sizeof(args));
}

static void a_number_that_became_infinite_is_told(void)
{
    CLEANUP(fixture_close) struct fixture f = { 0 };
    REQUIRE(!fixture_open(&f, 1e30f));
    CHECK(!scale(&f, 2));
    CHECK(scale(&f, 1e30f));
    check_fault(&f, K_FAULT_MADE, "kernel scale (elementwise.k:", "Inf");
    CHECK(!scale(&f, 2)); /* the next launch begins anew */
}

static void what_is_too_large_for_the_format_is_told(void)
{
    CLEANUP(fixture_close) struct fixture f = { 0 };
    REQUIRE(!fixture_open(&f, 1e5f));
    struct narrow_args args = { .y = f.y, .x = f.x, .n = N };
    CHECK(!launch(&f, "narrow", GPU_BF16, &args, sizeof(args)));
    CHECK(launch(&f, "narrow", GPU_F16, &args, sizeof(args)));
    check_fault(&f, K_FAULT_MADE, "kernel narrow (elementwise.k:", "Inf");
}

static void infinite_numbers_may_pass_but_not_become_nan(void)
{
    CLEANUP(fixture_close) struct fixture f = { 0 };
    REQUIRE(!fixture_open(&f, -INFINITY));
    CHECK(!scale(&f, 2));
    CHECK(scale(&f, 0));
    check_fault(&f, K_FAULT_MADE, "kernel scale (elementwise.k:", "NaN");
}

static void a_nan_that_was_there_is_not_blamed_on_the_reader(void)
{
    CLEANUP(fixture_close) struct fixture f = { 0 };
    REQUIRE(!fixture_open(&f, NAN));
    CHECK(scale(&f, 1));
    check_fault(&f, K_FAULT_READ, "kernel scale (elementwise.k:", "NaN");
}

static void who_is_there_for_odd_numbers_is_left_alone(void)
{
    CLEANUP(fixture_close) struct fixture f = { 0 };
    struct k_stats *parts;
    REQUIRE(!fixture_open(&f, NAN));
    REQUIRE(!gpu_alloc(f.g, GPU_MEM_DEVICE, K_GROUPS(N) * sizeof(*parts), (void **)&parts, &f.err));
    struct fill_args fill = { .y = f.y, .n = N, .value = -INFINITY };
    struct map_args copy = { .y = f.y, .x = f.x, .n = N };
    struct stats_args stats = { .parts = parts, .x = f.x, .n = N };
    CHECK(!launch(&f, "fill", GPU_F32, &fill, sizeof(fill)));
    CHECK(!launch(&f, "copy", GPU_F32, &copy, sizeof(copy)));
    CHECK(!launch(&f, "stats", GPU_F32, &stats, sizeof(stats)));
    gpu_free(f.g, GPU_MEM_DEVICE, parts);
}

static void a_bad_index_is_told_and_not_used(void)
{
    CLEANUP(fixture_close) struct fixture f = { 0 };
    static const int index[3] = { 0, 1 << 30, 2 };
    void *on_device;
    REQUIRE(!fixture_open(&f, 1));
    REQUIRE(!gpu_alloc(f.g, GPU_MEM_DEVICE, sizeof(index), &on_device, &f.err));
    REQUIRE(!gpu_upload(f.g, NULL, on_device, index, sizeof(index), &f.err) && !gpu_wait(f.g, NULL, &f.err));
    struct index_rows_args args = {
        .y = f.y, .x = f.x, .index = on_device, .rows = 3, .columns = 10, .limit = 5
    };
    CHECK(launch(&f, "gather_rows", GPU_F32, &args, sizeof(args)));
    CHECK_INT(gpu_fault(f.g)->kind, K_FAULT_INDEX);
    CHECK_HAS(f.err.msg, "kernel gather_rows (move.k:");
    CHECK_HAS(f.err.msg, "index 1073741824 is out of range (0 to 4); group 0, 0, 0, item ");
    gpu_free(f.g, GPU_MEM_DEVICE, on_device);
}

/* What is right is right here too, and nobody finds a fault in it but where one was put. */
static void the_checks_of_all_kernels_find_nothing(void)
{
    struct cairn_error err = { 0 };
    struct check_result *results;
    struct gpu *g;
    size_t n;
    REQUIRE(!gpu_open(device, &g, &err) && !gpu_set_debug(g, &err));
    REQUIRE(!check_all(g, NULL, NULL, &results, &n, &err));
    for (size_t i = 0; i < n; i++)
        if (!results[i].ok)
            CHECK_FAIL_("%s: %s", results[i].kernel, results[i].why);
    CHECK(n > 100);
    free(results);
    gpu_close(g);
}

int main(int argc, char **argv)
{
    struct tree cache;
    tree_make(&cache);
    setenv("XDG_CACHE_HOME", cache.dir, 1);
    device = argc > 1 ? argv[1] : "cpu";
    RUN(a_number_that_became_infinite_is_told);
    RUN(what_is_too_large_for_the_format_is_told);
    RUN(infinite_numbers_may_pass_but_not_become_nan);
    RUN(a_nan_that_was_there_is_not_blamed_on_the_reader);
    RUN(who_is_there_for_odd_numbers_is_left_alone);
    RUN(a_bad_index_is_told_and_not_used);
    if (argc < 3)
        RUN(the_checks_of_all_kernels_find_nothing);
    tree_remove(&cache);
    return check_done();
}
