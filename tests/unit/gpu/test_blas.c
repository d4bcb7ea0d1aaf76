/* SPDX-License-Identifier: Apache-2.0
 * The choice between ways to multiply matrices, on the CPU; the products themselves are checked by gpu/check.h. */
#include "gpu/blas.h"

#include "check.h"
#include "gpu/backend.h"
#include "gpu/gemm_cpu.h"
#include "tree.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static struct tree tree;
static float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 0, 0, 1, 1, 1 }, c[4];
static const float product[4] = { 4, 5, 10, 11 };

static int multiply(struct blas *blas, struct cairn_error *err)
{
    struct gemm_args args = { .c = c,
                              .a = a,
                              .b = b,
                              .m = 2,
                              .n = 2,
                              .k = 3,
                              .a_stride = 3,
                              .b_stride = 2,
                              .c_stride = 2,
                              .alpha = 1 };
    memset(c, 0, sizeof(c));
    return blas_gemm(blas, NULL, GPU_F32, &args, 1, err);
}

/* The one file of choices there is. */
static void choices_path(char *out, size_t size)
{
    char folder[300];
    snprintf(folder, sizeof(folder), "%s/cairn/gemm", tree.dir);
    DIR *d = opendir(folder);
    out[0] = '\0';
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            snprintf(out, size, "%s/%s", folder, e->d_name);
    if (d)
        closedir(d);
}

static int read_choices(char *out, size_t size)
{
    char path[600];
    int lines = 0;
    choices_path(path, sizeof(path));
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        lines += out[i] == '\n';
    if (f)
        fclose(f);
    return lines;
}

/* Opens, multiplies, closes; how many choices the file then has, -1 where the product is wrong. */
static int choices_after_a_product(char *text, size_t size)
{
    struct cairn_error err = { 0 };
    struct gpu *g;
    struct blas *blas;
    if (gpu_open("cpu", &g, &err) || blas_open(g, &blas, &err))
        return -1;
    int bad = multiply(blas, &err) || memcmp(c, product, sizeof(c)) != 0;
    blas_close(blas);
    gpu_close(g);
    return bad ? -1 : read_choices(text, size);
}

static void a_choice_is_made_once(void)
{
    char first[1000], again[1000];
    CHECK_INT(choices_after_a_product(first, sizeof(first)), 1);
    CHECK_HAS(first, "f32nn-2x2x3-b1");
    CHECK_INT(choices_after_a_product(again, sizeof(again)), 1);
    CHECK_STR(again, first);
}

static void a_choice_that_is_no_longer_there_is_made_anew(void)
{
    static const char *const picks[] = { "cpu 7", "cpu -1", "rocblas 0", "frob 0", "cpu", "" };
    char path[600], text[1000], shape[200];
    choices_path(path, sizeof(path));
    REQUIRE(read_choices(text, sizeof(text)) == 1 && sscanf(text, "%199s", shape) == 1);
    for (size_t i = 0; i < ARRAY_LEN(picks); i++) {
        FILE *f = fopen(path, "w");
        REQUIRE(f != NULL);
        fprintf(f, "%s %s\n", shape, picks[i]);
        fclose(f);
        if (choices_after_a_product(text, sizeof(text)) != 2)
            CHECK_FAIL_("\"%s\" was taken for a choice: %s", picks[i], text);
    }
}

static void a_way_can_be_asked_for(void)
{
    struct cairn_error err = { 0 };
    struct gpu *g;
    struct blas *blas;
    REQUIRE(!gpu_open("cpu", &g, &err) && !blas_open(g, &blas, &err));
    CHECK(blas_last(blas) == NULL);
    REQUIRE(!blas_force(blas, "gemm", &err) && !multiply(blas, &err));
    CHECK_STR(blas_last(blas), "gemm");
    CHECK(!memcmp(c, product, sizeof(c)));
    REQUIRE(!blas_force(blas, "cpu", &err) && !multiply(blas, &err));
    CHECK_STR(blas_last(blas), "cpu");
    CHECK_INT(gpu_host_scratch_size(g), gemm_cpu_scratch(g, 2, 2, 3));
    CHECK_INT(blas_force(blas, "frob", &err), -1);
    blas_close(blas);
    gpu_close(g);
}

int main(void)
{
    tree_make(&tree);
    setenv("XDG_CACHE_HOME", tree.dir, 1);
    RUN(a_choice_is_made_once);
    RUN(a_choice_that_is_no_longer_there_is_made_anew);
    RUN(a_way_can_be_asked_for);
    tree_remove(&tree);
    return check_done();
}
