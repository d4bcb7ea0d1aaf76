/* SPDX-License-Identifier: Apache-2.0 */
#include "run/stale.h"

#include "base/str.h"
#include "check.h"
#include "scratch.h"

static void moves_caches_and_keeps_them(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "HOME=%s", scratch("home")), NULL };
    struct stale_move *moved;
    const char *trouble;
    scratch_file("home/.keep", "");
    CHECK(!stale_exists(env));
    scratch_file("home/.cache/miopen/3.4.0/kernel", "bytes");
    scratch_file("home/.triton/cache/x", "bytes");
    scratch_file("home/.cache/other", "bytes");
    CHECK(stale_exists(env));
    CHECK_INT(stale_move(env, &a, &moved, &trouble), 2);
    CHECK(trouble == NULL);
    CHECK(access(scratch("home/.cache/miopen"), F_OK));
    CHECK(!access(scratch("home/.cache/other"), F_OK));
    CHECK_STR(scratch_read(arena_printf(&a, "%s/3.4.0/kernel", moved[0].to)), "bytes");
    CHECK(str_starts(moved[0].to, scratch("home/.cache/miopen.cairn-backup-")));
    CHECK(!stale_exists(env));
    arena_release(&a);
}

static void a_variable_says_where(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "MIOPEN_CUSTOM_CACHE_DIR=%s/", scratch("own")), NULL };
    struct stale_move *moved;
    const char *trouble;
    scratch_file("own/x", "bytes");
    CHECK_INT(stale_move(env, &a, &moved, &trouble), 1);
    CHECK(access(scratch("own"), F_OK));
    arena_release(&a);
}

static void links_are_left_alone(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "TRITON_CACHE_DIR=%s", scratch("link")), NULL };
    scratch_file("somebody/else", "bytes");
    CHECK(!symlink(scratch("somebody"), scratch("link")));
    CHECK(!stale_exists(env));
    arena_release(&a);
}

int main(void)
{
    RUN(moves_caches_and_keeps_them);
    RUN(a_variable_says_where);
    RUN(links_are_left_alone);
    return check_done();
}
