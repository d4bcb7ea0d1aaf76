/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state_dir.h"

#include "check.h"

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

int main(void)
{
    RUN(follows_the_xdg_rules);
    return check_done();
}
