/* SPDX-License-Identifier: Apache-2.0
 * What benches use to take the library out of a process's way: bench/bypass.c, built beside the library. */
#include "trial.h"

static void calls_go_past_the_library_and_through_it(void)
{
    char *bypass = text("%.*s/libcairn-bypass.so", (int)(strrchr(library, '/') - library), library);
    char *program = text("%s/bypassed", folder);
    struct outcome o = TRY(bypass, "record,stage", .program = program);
    CHECK_INT(o.status, 0);
    CHECK_HAS(o.out, "-1 -1\n");
    CHECK_HAS(o.out, "libsteps-lazy.so 4\n");
    CHECK_HAS(o.out, "libsteps-now.so 4\n");
    CHECK_HAS(o.out, "\n0 0 pinned 0\n0 0 pinned 2\n0 0 pinned 2\n0 0 pinned 4\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r),
              1 + 2 * (1 + 1) + 2 * (100 + 1)); /* the 10 and 1000 launches are not there */
    CHECK_INT(r->counts.staged, 4);
    free(program);
    free(bypass);
}

int main(int argc, char **argv)
{
    if (!trial_begin(argc, argv))
        return 2;
    RUN(calls_go_past_the_library_and_through_it);
    return trial_done();
}
