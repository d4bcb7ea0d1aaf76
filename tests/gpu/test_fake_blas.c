/* SPDX-License-Identifier: Apache-2.0
 * rocBLAS and hipBLASLt that are not (fake_rocblas.c, fake_hipblaslt.c): what is passed to them, which of them is taken, and
 * that one which ends the process is found out in a child, once. */
#include "check.h"
#include "gpu/blas.h"
#include "tree.h"

enum { SIZE = 96 };
static struct tree cache;

struct set {
    struct gpu *g;
    struct blas *blas;
    void *a, *b, *c;
};

static void set_close(struct set *s)
{
    blas_close(s->blas);
    if (s->g) {
        gpu_free(s->g, GPU_MEM_DEVICE, s->a);
        gpu_free(s->g, GPU_MEM_DEVICE, s->b);
        gpu_free(s->g, GPU_MEM_DEVICE, s->c);
    }
    gpu_close(s->g);
}

static void fresh_cache(void)
{
    tree_remove(&cache);
    tree_make(&cache);
    setenv("XDG_CACHE_HOME", cache.dir, 1);
}

static int set_open(struct set *s, const char *chip, const char *words, struct cairn_error *err)
{
    size_t n = SIZE * SIZE * sizeof(float);
    setenv("FAKE_GFX", chip, 1);
    setenv("CAIRN_FAKE_HIP", words, 1);
    return gpu_open("hip:0", &s->g, err) || gpu_alloc(s->g, GPU_MEM_DEVICE, n, &s->a, err) ||
           gpu_alloc(s->g, GPU_MEM_DEVICE, n, &s->b, err) || gpu_alloc(s->g, GPU_MEM_DEVICE, n, &s->c, err) ||
           gpu_clear(s->g, NULL, s->a, n, err) || gpu_clear(s->g, NULL, s->b, n, err) ||
           blas_open(s->g, &s->blas, err);
}

static const char *way_for(struct set *s, bool a_transposed, bool b_transposed)
{
    struct cairn_error err = { 0 };
    struct gemm_args args = {
        .c = s->c,
        .a = s->a,
        .b = s->b,
        .m = SIZE,
        .n = SIZE,
        .k = SIZE,
        .a_stride = SIZE,
        .b_stride = SIZE,
        .c_stride = SIZE,
        .alpha = 1,
        .a_transposed = a_transposed,
        .b_transposed = b_transposed,
    };
    if (blas_gemm(s->blas, NULL, GPU_BF16, &args, 1, &err))
        CHECK_FAIL_("%s", err.msg);
    return blas_last(s->blas);
}

static const char *why_not(const struct set *s, const char *name)
{
    const char *why, *way;
    for (size_t i = 0; (way = blas_way(s->blas, i, &why)); i++)
        if (!strcmp(way, name))
            return why;
    return "there is no such way";
}

/* The gradient of a weight is xᵀ dy: a is transposed, b is not. */
static void weight_gradients_on_gfx1151_are_not_for_hipblaslt(void)
{
    static const char *const chips[] = { "gfx1100", "gfx1151" };
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(set_close) struct set s = { 0 };
        struct cairn_error err = { 0 };
        fresh_cache();
        REQUIRE(!set_open(&s, chips[i], "hipblaslt=fast,rocblas=slow", &err));
        CHECK_STR(way_for(&s, false, false), "hipblaslt");
        CHECK_STR(way_for(&s, false, true), "hipblaslt");
        CHECK_STR(way_for(&s, true, true), "hipblaslt");
        CHECK_STR(way_for(&s, true, false), i ? "rocblas" : "hipblaslt");
        /* Also when it is the only one asked for. */
        REQUIRE(!blas_force(s.blas, "hipblaslt", &err));
        CHECK(!strcmp(way_for(&s, true, false), "hipblaslt") == !i);
    }
}

/* A library that does not fuse the residual must not write over it first.  The product is zeros. */
static void a_residual_may_be_the_result(void)
{
    static const char *const ways[] = { "rocblas", "hipblaslt", "gemm" };
    float numbers[SIZE * SIZE];
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        CLEANUP(set_close) struct set s = { 0 };
        struct cairn_error err = { 0 };
        fresh_cache();
        REQUIRE(!set_open(&s, "gfx1100", "hipblaslt=fast,rocblas=slow", &err));
        REQUIRE(!blas_force(s.blas, ways[i], &err));
        struct gemm_args args = { .c = s.c,
                                  .residual = s.c,
                                  .a = s.a,
                                  .b = s.b,
                                  .m = SIZE,
                                  .n = SIZE,
                                  .k = SIZE,
                                  .a_stride = SIZE,
                                  .b_stride = SIZE,
                                  .c_stride = SIZE,
                                  .alpha = 1 };
        for (size_t k = 0; k < SIZE * SIZE; k++)
            numbers[k] = (float)k;
        REQUIRE(!gpu_upload(s.g, NULL, s.c, numbers, sizeof(numbers), &err));
        REQUIRE(!blas_gemm(s.blas, NULL, GPU_F32, &args, 1, &err));
        REQUIRE(!gpu_download(s.g, NULL, numbers, s.c, sizeof(numbers), &err) && !gpu_wait(s.g, NULL, &err));
        CHECK_STR(blas_last(s.blas), ways[i]);
        for (size_t k = 0; k < SIZE * SIZE; k++)
            if (numbers[k] != (float)k) {
                CHECK_FAIL_("%s: number %zu is %g", ways[i], k, (double)numbers[k]);
                break;
            }
    }
}

static void a_library_that_ends_the_process_is_left_out(void)
{
    CLEANUP(set_close) struct set s = { 0 };
    struct cairn_error err = { 0 };
    fresh_cache();
    REQUIRE(!set_open(&s, "gfx1032", "rocblas=abort,hipblaslt=abort", &err));
    CHECK_STR(why_not(&s, "rocblas"), "rocblas: aborts the process on gfx1032 (signal 6)");
    CHECK_STR(why_not(&s, "hipblaslt"), "hipblaslt: aborts the process on gfx1032 (signal 6)");
    CHECK_STR(way_for(&s, false, false), "gemm");
}

/* With no compiler there is no child: only what was kept can answer. */
static void what_a_child_found_is_kept(void)
{
    static const char *const words[] = { "rocblas=slow,hipblaslt=slow", "rocblas=abort,hipblaslt=error" };
    const char *kc = getenv("CAIRN_KC");
    char before[512];
    snprintf(before, sizeof(before), "%s", kc ? kc : "");
    for (size_t i = 0; i < 2; i++) {
        struct cairn_error err = { 0 };
        struct set first = { 0 }, second = { 0 }, newer = { 0 };
        char said[256], other[128];
        fresh_cache();
        REQUIRE(!set_open(&first, "gfx1032", words[i], &err));
        snprintf(said, sizeof(said), "%s", why_not(&first, "rocblas"));
        CHECK(!said[0] == !i);
        set_close(&first);
        setenv("CAIRN_KC", "/nonexistent", 1);
        REQUIRE(!set_open(&second, "gfx1032", words[i], &err));
        CHECK_STR(why_not(&second, "rocblas"), said);
        CHECK(!strstr(why_not(&second, "hipblaslt"), "nonexistent"));
        set_close(&second);
        /* Another driver: what was found says nothing. */
        snprintf(other, sizeof(other), "%s,version=60443484", words[i]);
        REQUIRE(!set_open(&newer, "gfx1032", other, &err));
        CHECK_HAS(why_not(&newer, "rocblas"), "/nonexistent");
        set_close(&newer);
        setenv("CAIRN_KC", before, 1);
    }
}

static void rocm_5_has_another_hipblaslt(void)
{
    CLEANUP(set_close) struct set s = { 0 };
    struct cairn_error err = { 0 };
    fresh_cache();
    REQUIRE(!set_open(&s, "gfx1030", "rocblas=slow,version=50221153", &err));
    CHECK_STR(why_not(&s, "hipblaslt"), "hipblaslt: needs ROCm 6.0 or newer");
    CHECK_STR(why_not(&s, "rocblas"), "");
}

int main(void)
{
    tree_make(&cache);
    RUN(weight_gradients_on_gfx1151_are_not_for_hipblaslt);
    RUN(a_residual_may_be_the_result);
    RUN(a_library_that_ends_the_process_is_left_out);
    RUN(what_a_child_found_is_kept);
    RUN(rocm_5_has_another_hipblaslt);
    tree_remove(&cache);
    return check_done();
}
