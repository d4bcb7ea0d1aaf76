/* SPDX-License-Identifier: Apache-2.0 */
#include "os/random.h"

#include "os/fault.h"
#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

int os_random(void *out, size_t n)
{
    char *at = out;
    while (n) {
        ssize_t got = fault_hit() ? -1 : getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}
