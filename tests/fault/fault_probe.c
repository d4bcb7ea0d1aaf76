/* SPDX-License-Identifier: Apache-2.0
 * The probe while the machine misbehaves: each outside call (pipe, signalfd, spawn) fails once, in turn.
 *
 * However it goes: an error with a message or a finding, no descriptor and no child left over, and the
 * signals as they were. */
#include "os/fault.h"
#include "check.h"
#include "run/probe.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static int count_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static bool signals_are_open(void)
{
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    return !sigismember(&now, SIGINT) && !sigismember(&now, SIGCHLD) && !sigismember(&now, SIGTERM);
}

static bool a_child_is_left(void)
{
    return !(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void every_call_may_fail(void)
{
    /* Python finds its library by looking for itself on PATH: it must be the one that started it. */
    char path[4096];
    snprintf(path, sizeof(path), "PATH=%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    const char *const env[] = { path, "FAKE_TORCH=fine", NULL };
    const struct probe_options o = { "python3", check_data("fake_torch"), env, 60 };
    int before = count_descriptors(), nth = 1;
    for (bool reached = true; reached; nth++) {
        struct arena a = { 0 };
        struct probe p = { 0 };
        struct cairn_error err = { 0 };
        fault_arm(nth, EMFILE);
        int r = probe_run(&o, &a, &p, &err);
        reached = fault_disarm();
        if (reached)
            CHECK(r == -1 ? err.msg[0] != '\0' : p.end == PROBE_NO_PYTHON && p.code == EMFILE);
        else
            CHECK(r == 0 && p.end == PROBE_ANSWERED);
        CHECK_INT(count_descriptors(), before);
        CHECK(signals_are_open());
        CHECK(!a_child_is_left());
        probe_release(&p);
        arena_release(&a);
    }
    CHECK(nth > 4); /* two pipes, the signals, the child, and a healthy run */
}

int main(void)
{
    RUN(every_call_may_fail);
    return check_done();
}
