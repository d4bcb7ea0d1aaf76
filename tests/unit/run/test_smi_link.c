/* SPDX-License-Identifier: Apache-2.0 */
#include "run/smi_link.h"

#include "os/fault.h"
#include "base/str.h"
#include "check.h"
#include "run/journal.h"
#include "scratch.h"
#include <errno.h>
#include <fcntl.h>

static struct arena arena;

static void link_reads(const char *path, const char *want)
{
    char to[512];
    ssize_t n = readlink(path, to, sizeof(to) - 1);
    to[n > 0 ? n : 0] = '\0';
    CHECK_STR(to, want);
}

static void comes_first_in_path_and_goes_again(void)
{
    const char *env[] = { "A=1", "PATH=/usr/bin:/bin", NULL }, *const * out;
    const struct root live = { .fd = -1, .live = true, .path = "/" };
    struct cairn_error err = { 0 };
    char self[512], path[600];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    REQUIRE(n > 0);
    self[n] = '\0';
    scratch_file("run/log", "");
    REQUIRE(!smi_link_make(scratch("run"), &live, env, &arena, &out, &err));
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", scratch("run/bin"));
    CHECK_STR(str_env(out, "PATH"), path);
    CHECK_STR(str_env(out, "A"), "1");
    CHECK(!str_env(out, "CAIRN_SMI_ROOT"));
    link_reads(scratch("run/bin/nvidia-smi"), self);
    smi_link_remove(scratch("run"));
    CHECK(access(scratch("run/bin"), F_OK));
    CHECK(!access(scratch("run/log"), F_OK));
    smi_link_remove(scratch("run"));
    smi_link_remove(NULL);
}

static void a_tree_goes_with_it(void)
{
    const char *env[] = { "A=1", NULL }, *const * out;
    const struct root tree = { .fd = -1, .path = scratch("run") };
    struct cairn_error err = { 0 };
    REQUIRE(!smi_link_make(scratch("run"), &tree, env, &arena, &out, &err));
    CHECK_STR(str_env(out, "PATH"), scratch("run/bin"));
    CHECK_STR(str_env(out, "CAIRN_SMI_ROOT"), scratch("run"));
    CHECK(smi_link_make(scratch("run"), &tree, env, &arena, &out, &err) == -1); /* it is there already */
    CHECK_HAS(err.msg, "bin/nvidia-smi");
    smi_link_remove(scratch("run"));
}

static void a_failure_says_what_failed(void)
{
    const char *env[] = { NULL }, *const *out = NULL;
    const struct root live = { .fd = -1, .live = true, .path = "/" };
    int failures = 0;
    for (int nth = 1;; nth++) {
        struct cairn_error err = { 0 };
        fault_arm(nth, ENOSPC);
        int r = smi_link_make(scratch("run"), &live, env, &arena, &out, &err);
        bool hit = fault_disarm();
        smi_link_remove(scratch("run"));
        if (!hit) {
            CHECK(r == 0 && out);
            break;
        }
        failures += r != 0; /* a folder above that is there already need not be made */
        CHECK(!r || strstr(err.msg, "No space left"));
        out = NULL;
    }
    CHECK_INT(failures, 3);
}

/* What a killed run left goes with its folder; somebody's link in its place is not followed. */
static void goes_with_the_run(void)
{
    char name[64];
    for (int i = 0; i < JOURNAL_KEEP + 2; i++) {
        snprintf(name, sizeof(name), "old/runs/20260101T0000%02dZ-99999999/log", i);
        scratch_file(name, "x");
    }
    scratch_file("mine/nvidia-smi", "somebody's");
    const char *killed = scratch("old/runs/20260101T000000Z-99999999"),
               *odd = scratch("old/runs/20260101T000001Z-99999999");
    scratch_file("old/runs/20260101T000000Z-99999999/bin/nvidia-smi", "");
    CHECK(!symlink(scratch("mine"), scratch("old/runs/20260101T000001Z-99999999/bin")));
    const struct timespec long_ago[2] = { { 0 }, { 0 } };
    utimensat(AT_FDCWD, killed, long_ago, 0);
    utimensat(AT_FDCWD, odd, long_ago, 0);
    journal_prune(scratch("old"));
    CHECK(access(killed, F_OK));
    CHECK(access(odd, F_OK));
    CHECK(!access(scratch("mine/nvidia-smi"), F_OK));
}

int main(void)
{
    RUN(comes_first_in_path_and_goes_again);
    RUN(a_tree_goes_with_it);
    RUN(a_failure_says_what_failed);
    RUN(goes_with_the_run);
    arena_release(&arena);
    return check_done();
}
