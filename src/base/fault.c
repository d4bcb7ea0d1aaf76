/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <errno.h>

static int countdown; /* 0: not armed; <0: has fired */
static int fault_errno;

void fault_arm(int nth, int error)
{
    countdown = nth;
    fault_errno = error;
}

bool fault_disarm(void)
{
    bool fired = countdown < 0;
    countdown = 0;
    return fired;
}

bool fault_hit(void)
{
    if (countdown <= 0 || --countdown > 0)
        return false;
    countdown = -1;
    errno = fault_errno;
    return true;
}
