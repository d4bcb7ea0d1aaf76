/* SPDX-License-Identifier: Apache-2.0
 * Every kernel on the CPU against its definition, in the way that this program was linked with. */
#include "gpu/check.h"
#include "gpu/compile.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef FIBER
#include "fiber.h"
#endif

static int check_once(struct gpu *g, const char *title, size_t *count)
{
    struct cairn_error err = { 0 };
    struct check_result *results;
    size_t n;
    int bad = 0;
    if (check_all(g, NULL, NULL, &results, &n, &err)) {
        printf("# %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        const struct check_result *r = &results[i];
        if (!r->ok)
            printf("# %s\n", r->why);
        printf("%sok %zu - %s %s%s\n", r->ok ? "" : "not ", ++*count, r->kernel,
               compile_storage_name(r->storage), title);
        bad |= !r->ok;
    }
    free(results);
    return bad || !n;
}

int main(void)
{
    struct cairn_error err = { 0 };
    struct gpu *g;
    size_t count = 0;
    if (gpu_open("cpu", &g, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    int bad = check_once(g, "", &count);
#ifdef FIBER
    k_fiber_set_reversed(true);
    bad |= check_once(g, ", last work-item first", &count);
#endif
    gpu_close(g);
    printf("1..%zu\n", count);
    return bad;
}
