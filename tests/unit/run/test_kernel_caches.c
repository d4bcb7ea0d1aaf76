/* SPDX-License-Identifier: Apache-2.0 */
#include "run/kernel_caches.h"

#include "base/str.h"
#include "check.h"
#include "scratch.h"

#define HASH "7JFFCWSEPYQ2OTFF7N2NYRQBZ37K5DAMBH7HV7ZMUVVQMZCYDFXA"
#define MD5 "0123456789abcdef0123456789abcdef"

static void moves_caches_and_keeps_them(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "HOME=%s", scratch("home")), NULL };
    struct cache_move *moved;
    const char *trouble;
    scratch_file("home/.keep", "");
    CHECK(!kernel_caches_exist(env));
    scratch_file("home/.cache/miopen/3.4.0.a85ca8a54/gfx1030_20.ukdb", "bytes");
    scratch_file("home/.triton/cache/" HASH "/kernel.hsaco", "bytes");
    scratch_file("home/.cache/other", "bytes");
    CHECK(kernel_caches_exist(env));
    CHECK_INT(kernel_caches_move(env, &a, &moved, &trouble), 2);
    CHECK(trouble == NULL);
    CHECK(access(scratch("home/.cache/miopen"), F_OK));
    CHECK(!access(scratch("home/.cache/other"), F_OK));
    CHECK_STR(scratch_read(arena_printf(&a, "%s/3.4.0.a85ca8a54/gfx1030_20.ukdb", moved[0].to)), "bytes");
    CHECK(str_starts(moved[0].to, scratch("home/.cache/miopen.cairn-backup-")));
    CHECK(!kernel_caches_exist(env));
    arena_release(&a);
}

static void a_variable_says_where(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "MIOPEN_CUSTOM_CACHE_DIR=%s/", scratch("own")), NULL };
    struct cache_move *moved;
    const char *trouble;
    scratch_file("own/" MD5 "/conv.o", "bytes");
    scratch_file("own/gfx906_60.ukdb-wal", "bytes");
    CHECK_INT(kernel_caches_move(env, &a, &moved, &trouble), 1);
    CHECK(access(scratch("own"), F_OK));
    arena_release(&a);
}

/* A variable may name any folder: the user's home, a project, a disk. */
static void what_is_not_the_librarys_stays(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "HOME=%s", scratch("me")),
                          arena_printf(&a, "MIOPEN_USER_DB_PATH=%s", scratch("me")),
                          arena_printf(&a, "TRITON_CACHE_DIR=%s", scratch("disk")), NULL };
    struct cache_move *moved;
    const char *trouble;
    scratch_file("me/thesis/1.0/chapter.txt", "words");
    scratch_file("disk/data/x", "bytes");
    scratch_file("disk/3.4.0/mine", "bytes");
    CHECK(!kernel_caches_exist(env));
    CHECK_INT(kernel_caches_move(env, &a, &moved, &trouble), 0);
    scratch_file("me/gfx1030_20.HIP.3_4_0_.ufdb.txt", "bytes");
    scratch_file("disk/" HASH "/k.hsaco", "bytes");
    CHECK(kernel_caches_exist(env));
    REQUIRE(kernel_caches_move(env, &a, &moved, &trouble) == 2);
    CHECK(trouble == NULL);
    CHECK(!access(scratch("me/thesis/1.0/chapter.txt"), F_OK) && !access(scratch("disk/data/x"), F_OK));
    CHECK(!access(scratch("disk/3.4.0/mine"), F_OK));
    CHECK(access(scratch("me/gfx1030_20.HIP.3_4_0_.ufdb.txt"), F_OK));
    CHECK_STR(scratch_read(arena_printf(&a, "%s/" HASH "/k.hsaco", moved[1].to)), "bytes");
    CHECK(!kernel_caches_exist(env));
    arena_release(&a);
}

/* Even where there is nothing else in it. */
static void the_working_folder_stays(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "TRITON_CACHE_DIR=%s", scratch("work")), NULL };
    struct cache_move *moved;
    const char *trouble;
    scratch_file("work/" HASH "/k.hsaco", "bytes");
    REQUIRE(!chdir(scratch("work/" HASH)));
    CHECK_INT(kernel_caches_move(env, &a, &moved, &trouble), 1);
    CHECK(!access(scratch("work"), F_OK));
    CHECK(!chdir("/"));
    arena_release(&a);
}

static void links_are_left_alone(void)
{
    struct arena a = { 0 };
    const char *env[] = { arena_printf(&a, "TRITON_CACHE_DIR=%s", scratch("link")), NULL };
    scratch_file("somebody/else", "bytes");
    CHECK(!symlink(scratch("somebody"), scratch("link")));
    CHECK(!kernel_caches_exist(env));
    arena_release(&a);
}

int main(void)
{
    RUN(moves_caches_and_keeps_them);
    RUN(a_variable_says_where);
    RUN(what_is_not_the_librarys_stays);
    RUN(the_working_folder_stays);
    RUN(links_are_left_alone);
    return check_done();
}
