/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state.h"

#include "check.h"
#include "scratch.h"

static void follows_the_xdg_rules(void)
{
    static const char *const both[] = { "HOME=/home/a", "XDG_STATE_HOME=/state", NULL };
    static const char *const relative[] = { "HOME=/home/a", "XDG_STATE_HOME=state", NULL };
    static const char *const none[] = { "PATH=/bin", NULL };
    struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *dir = NULL;
    CHECK(!state_dir(both, &a, &dir, &err));
    CHECK_STR(dir, "/state/cairn");
    CHECK(!state_dir(relative, &a, &dir, &err));
    CHECK_STR(dir, "/home/a/.local/state/cairn");
    CHECK(state_dir(none, &a, &dir, &err) == -1);
    CHECK_HAS(err.msg, "HOME");
    arena_release(&a);
}

static void makes_folders_once_and_again(void)
{
    struct cairn_error err = { 0 };
    CHECK(!state_make_dir(scratch("a/b/c"), &err));
    CHECK(!state_make_dir(scratch("a/b/c"), &err));
    struct stat st;
    CHECK(!stat(scratch("a/b/c"), &st) && (st.st_mode & 0777) == 0700);
    scratch_file("file", "");
    CHECK(state_make_dir(scratch("file/below"), &err) == -1);
    CHECK_HAS(err.msg, "file/below");
    CHECK(state_make_dir(scratch("file"), &err) == -1);
}

int main(void)
{
    RUN(follows_the_xdg_rules);
    RUN(makes_folders_once_and_again);
    return check_done();
}
