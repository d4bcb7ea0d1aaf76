/* SPDX-License-Identifier: Apache-2.0
 * Another library that stands before the runtime. */
#include <dlfcn.h>
#include <stddef.h>

int hipMalloc(void **p, size_t n);
int hipGetLastError(void);

int hipMalloc(void **p, size_t n)
{
    int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "hipMalloc");
    return next ? next(p, n) : 100;
}

int hipGetLastError(void)
{
    return 0;
}
