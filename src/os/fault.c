/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fault.h"

#include <errno.h>

static int countdown; /* calls until the one that fails; 0: not armed, or over */
static int fault_errno;
static bool fired;

void fault_arm(int nth, int error)
{
    fault_errno = error;
    fired = false;
    __atomic_store_n(&countdown, nth, __ATOMIC_RELEASE);
}

bool fault_disarm(void)
{
    __atomic_store_n(&countdown, 0, __ATOMIC_RELEASE);
    return fired;
}

bool fault_hit(void)
{
    if (__atomic_load_n(&countdown, __ATOMIC_RELAXED) <= 0 ||
        __atomic_sub_fetch(&countdown, 1, __ATOMIC_ACQ_REL) != 0)
        return false;
    fired = true;
    errno = fault_errno;
    return true;
}
