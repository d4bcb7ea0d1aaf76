/* SPDX-License-Identifier: Apache-2.0
 * What stands for a step of training: as many launches, and one copy to the device.  Built twice, with slots that are
 * filled at the first call, and with such that are filled at once and cannot be written then. */
#include "fake_runtime.h"

int hipLaunchKernel(const void *f, struct size3 grid, struct size3 block, void **a, size_t shared,
                    void *stream);
int hipMemcpyWithStream(void *to, const void *from, size_t n, int kind, void *stream);
int hipMalloc(void **p, size_t n);
int hipStreamSynchronize(void *stream);
int steps(int n, void *to, const void *from, size_t bytes);
int take(void **p, size_t n);
int rest(void);

int take(void **p, size_t n)
{
    return hipMalloc(p, n);
}

int rest(void)
{
    return hipStreamSynchronize(0);
}

int steps(int n, void *to, const void *from, size_t bytes)
{
    static const struct fake_kernel k = { "step", 0, 0 };
    const struct size3 one = { 1, 1, 1 };
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad |= hipLaunchKernel(&k, one, one, 0, 0, 0);
    return bad | hipMemcpyWithStream(to, from, bytes, H2D, &bad);
}
