/* SPDX-License-Identifier: Apache-2.0
 * Every kernel on the CPU against its definition, in the way that this program was linked with: as fibers, or in the
 * order that its argument names. */
#include "gpu/check.h"
#include "gpu/kernel_rows.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef FIBER
#include "fiber.h"
#else
#include "order.h"
#endif

static int check_once(struct gpu *g, const char *title, size_t *count)
{
    const struct check_case *row;
    struct check_result r;
    int bad = 0;
    for (size_t i = 0; (row = check_nth(i)); i++)
        for (int s = 0; s < GPU_STORAGES; s++) {
            if (!check_run(g, row, (enum gpu_storage)s, &r))
                continue;
            if (!r.ok)
                printf("# %s\n", r.why);
            printf("%sok %zu - %s %s%s\n", r.ok ? "" : "not ", ++*count, r.kernel,
                   gpu_storage_name(r.storage), title);
            fflush(stdout);
            bad |= !r.ok;
        }
    return bad;
}

/* With the program's own table the faster kernels would be run instead. */
static bool is_way(void)
{
    for (size_t i = 0; i < n_kernel_rows; i++)
        for (int s = 0; s < GPU_STORAGES; s++)
            if (kernel_rows[i].host[s][KERNEL_AVX2] || kernel_rows[i].host[s][KERNEL_AVX512])
                return false;
    return true;
}

/* False: it is not known. */
static bool set_order(int argc, char **argv)
{
#ifdef FIBER
    return argc == 1 && argv;
#else
    return argc == 2 && k_order_set(argv[1]);
#endif
}

int main(int argc, char **argv)
{
    struct cairn_error err = { 0 };
    struct gpu *g;
    size_t count = 0;
    if (!set_order(argc, argv)) {
        printf("Bail out! no such order\n");
        return 1;
    }
    if (gpu_open("cpu", &g, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    printf("%sok %zu - the kernels are those of this way\n", is_way() ? "" : "not ", ++count);
    int bad = check_once(g, "", &count) || !is_way();
#ifdef FIBER
    k_fiber_set_reversed(true);
    bad |= check_once(g, ", last work-item first", &count);
#endif
    gpu_close(g);
    printf("1..%zu\n", count);
    return bad;
}
