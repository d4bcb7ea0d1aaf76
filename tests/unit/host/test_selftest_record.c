/* SPDX-License-Identifier: Apache-2.0
 * What a selftest found is read back for the same chip, and for no other. */
#include "host/selftest_record.h"

#include "check.h"
#include "tree.h"
#include <stdlib.h>

extern char **environ;

static void what_is_written_is_read(void)
{
    struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct selftest_record r = { "1.2.3", "/opt/rocm/lib/libamdhip64.so", "2026-11-16", true }, got;
    struct tree t;
    tree_make(&t);
    REQUIRE(!setenv("XDG_STATE_HOME", t.dir, 1));
    const char *const *env = (const char *const *)environ;
    CHECK(!selftest_record_read("gfx1151", env, &a, &got));
    CHECK(!selftest_record_write("gfx1151:sramecc-", &r, &err));
    REQUIRE(selftest_record_read("gfx1151", env, &a, &got));
    CHECK_STR(got.version, "1.2.3");
    CHECK_STR(got.date, "2026-11-16");
    CHECK(got.passed);
    CHECK(!selftest_record_read("gfx1100", env, &a, &got));
    r.passed = false;
    CHECK(!selftest_record_write("gfx1151", &r, &err));
    CHECK(selftest_record_read("gfx1151", env, &a, &got) && !got.passed);
    tree_remove(&t);
    arena_release(&a);
}

int main(void)
{
    RUN(what_is_written_is_read);
    return check_done();
}
