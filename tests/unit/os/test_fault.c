/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fault.h"

#include "check.h"
#include <errno.h>

static void unarmed_never_fires(void)
{
    errno = 0;
    for (int i = 0; i < 1000; i++)
        CHECK(!fault_hit());
    CHECK_INT(errno, 0);
    CHECK(!fault_disarm());
}

static void fires_once_at_the_nth_call(void)
{
    for (int nth = 1; nth <= 5; nth++) {
        fault_arm(nth, EIO);
        for (int call = 1; call <= 10; call++) {
            errno = 0;
            bool hit = fault_hit();
            CHECK_INT(hit, call == nth);
            CHECK_INT(errno, hit ? EIO : 0);
        }
        CHECK(fault_disarm());
    }
}

static void disarm_tells_that_it_was_not_reached(void)
{
    fault_arm(3, EIO);
    fault_hit();
    fault_hit();
    CHECK(!fault_disarm());
    CHECK(!fault_hit()); /* and the third call no longer fails */
}

int main(void)
{
    RUN(unarmed_never_fires);
    RUN(fires_once_at_the_nth_call);
    RUN(disarm_tells_that_it_was_not_reached);
    return check_done();
}
