/* SPDX-License-Identifier: Apache-2.0
 * Every kernel, and the products of the CPU, in each version that this CPU can run.  (The debug version: test_debug.c.) */
#include "check.h"
#include "gpu/backend.h"
#include "gpu/check.h"

static enum kernel_variant variant;

static bool is_here(void)
{
    struct gpu *g;
    struct cairn_error err = { 0 };
    bool is = !gpu_open("cpu", &g, &err) && gpu_host_set_variant(g, variant);
    gpu_close(g);
    return is;
}

static void all_kernels_are_right(void)
{
    struct gpu *g;
    struct cairn_error err = { 0 };
    struct check_result *results;
    size_t n;
    REQUIRE(!gpu_open("cpu", &g, &err) && gpu_host_set_variant(g, variant));
    REQUIRE(!check_all(g, NULL, NULL, &results, &n, &err));
    for (size_t i = 0; i < n; i++)
        if (!results[i].ok)
            CHECK_FAIL_("%s: %s", results[i].kernel, results[i].why);
    for (size_t i = 0; i < n_kernel_rows * GPU_STORAGES; i++) {
        const struct gpu_kernel *k = g->kernels[i];
        if (k && k->handle != (void *)k->row->host[k->storage][variant])
            CHECK_FAIL_("%s was run in another version", k->row->name);
    }
    CHECK(n > 100);
    free(results);
    gpu_close(g);
}

int main(void)
{
    static const char *const names[] = { "debug", "plain", "avx2", "avx512" };
    for (variant = KERNEL_PLAIN; variant < KERNEL_VARIANTS; variant++) {
        if (is_here()) {
            printf("# %s\n", names[variant]);
            RUN(all_kernels_are_right);
        } else {
            printf("ok %d - %s # SKIP this CPU or build lacks it\n", ++check_count, names[variant]);
        }
    }
    return check_done();
}
