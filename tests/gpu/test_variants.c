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

/* A kernel that no check launches is a kernel that nobody knows to be right. */
static void look_at_launched(const struct gpu *g)
{
    for (size_t i = 0; i < n_kernel_rows; i++) {
        const struct kernel_row *row = &kernel_rows[i];
        bool launched = row->text->chip || (row->mma && variant != KERNEL_PLAIN);
        for (int s = 0; s < GPU_STORAGES; s++) {
            const struct gpu_kernel *k = g->kernels[i * GPU_STORAGES + (size_t)s];
            launched |= k != NULL;
            if (k && k->handle != (void *)row->host[s][variant])
                CHECK_FAIL_("%s was run in another version", row->name);
        }
        if (!launched)
            CHECK_FAIL_("no check launches %s", row->name);
    }
}

/* Kernels for matrix cores have a plain version only. */
static bool has_version(const struct check_case *row)
{
    const struct kernel_row *kernel = kernel_find(row->kernel);
    return variant == KERNEL_PLAIN || !kernel || !kernel->mma;
}

static void all_kernels_are_right(void)
{
    struct gpu *g;
    struct cairn_error err = { 0 };
    struct check_result result;
    const struct check_case *row;
    REQUIRE(!gpu_open("cpu", &g, &err) && gpu_host_set_variant(g, variant));
    for (size_t i = 0; (row = check_nth(i)); i++)
        for (int s = 0; s < GPU_STORAGES; s++)
            if (has_version(row) && check_run(g, row, (enum gpu_storage)s, &result) && !result.ok)
                CHECK_FAIL_("%s: %s", result.kernel, result.why);
    look_at_launched(g);
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
