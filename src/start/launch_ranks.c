/* SPDX-License-Identifier: Apache-2.0 */
#include "start/launch_ranks.h"
#include "base/arena.h"
#include "os/path.h"
#include "os/process.h"
#include "os/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char variable[] = "CAIRN_RANKS_LAUNCHED";

/* ---- the ranks ---- */

bool start_is_launched(void)
{
    return getenv(variable) != NULL;
}

static void *read_launcher(void *arg)
{
    void (*fn)(void);
    char byte;
    memcpy(&fn, &arg, sizeof(fn));
    for (;;) {
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR)
            continue;
        fn();
        if (n <= 0)
            return NULL;
    }
}

int start_watch_launcher(void (*fn)(void), struct cairn_error *err)
{
    pthread_t thread;
    void *arg;
    memcpy(&arg, &fn, sizeof(arg));
    int r = os_thread_start(&thread, read_launcher, arg);
    if (!r)
        return 0;
    errno = r;
    return cairn_fail_errno(err, "start a thread");
}

/* ---- the launcher ---- */

/* The first of these on the PATH. */
static const char *find_program(const char *const *names, struct arena *a)
{
    const char *path = getenv("PATH");
    for (size_t i = 0; names[i]; i++)
        for (const char *at = path; at && *at; at += strcspn(at, ":"), at += *at == ':') {
            const char *file = arena_printf(a, "%.*s/%s", (int)strcspn(at, ":"), at, names[i]);
            if (!access(file, X_OK))
                return file;
        }
    return NULL;
}

/* What `mpirun --version` says: MPICH's starter knows none of Open MPI's options. */
static bool is_open_mpi(const char *mpirun)
{
    enum { LIMIT_S = 30 };
    char text[4096];
    int ends[2];
    struct os_end end;
    pid_t pid;
    if (pipe(ends))
        return false;
    const char *const argv[] = { mpirun, "--version", NULL };
    int r = os_spawn(mpirun, argv, (const int[]){ STDIN_FILENO, ends[1], ends[1] }, &pid);
    close(ends[1]);
    ssize_t n, len = 0;
    while (!r && (n = read(ends[0], text + len, sizeof(text) - 1 - (size_t)len)) > 0)
        len += n;
    close(ends[0]);
    text[len] = '\0';
    if (!r)
        os_wait(pid, LIMIT_S, &end);
    return strstr(text, "Open MPI") || strstr(text, "OpenRTE");
}

/* Cores are divided by the ranks themselves: a rank that is bound to one core would have but that one. */
static const char **command(const struct launch_ranks *l, const char *mpirun, struct arena *a)
{
    static const char *const open_mpi[] = { "--oversubscribe", "--bind-to", "none", NULL };
    char self[PATH_MAX];
    const char **argv = arena_alloc(a, sizeof(*argv) * (size_t)(l->argc + 12));
    size_t n = 0;
    argv[n++] = mpirun;
    const char *const *options = is_open_mpi(mpirun) ? open_mpi : NULL;
    while (options && *options)
        argv[n++] = *options++;
    argv[n++] = "-n";
    argv[n++] = arena_printf(a, "%d", l->ranks);
    argv[n++] = path_program(self, sizeof(self)) ? "cairn" : arena_printf(a, "%s", self);
    for (int i = 0; i < l->argc; i++)
        argv[n++] = l->argv[i];
    argv[n] = NULL;
    return argv;
}

/* Open MPI wants to be told that root means it. */
static void set_environment(void)
{
    setenv(variable, "1", 1);
    if (geteuid())
        return;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

/* Passes on requests to stop until the job has ended. */
static int wait_for_job(const struct launch_ranks *l, pid_t pid, int to_ranks, struct os_end *end,
                        struct cairn_error *err)
{
    const struct timespec moment = { .tv_nsec = 20 * 1000000 };
    int said = 0, r;
    while ((r = os_child_end(pid, end)) > 0) {
        int signals = l->signals();
        if (signals > 1)
            os_child_kill(pid);
        else if (signals > said && write(to_ranks, "s", 1) == 1)
            said = signals;
        nanosleep(&moment, NULL);
    }
    return r ? cairn_fail_errno(err, "wait for mpirun") : 0;
}

static int run(const struct launch_ranks *l, const char *mpirun, struct arena *a, struct os_end *end,
               struct cairn_error *err)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC))
        return cairn_fail_errno(err, "make a pipe");
    struct os_child child = { .path = mpirun,
                              .argv = command(l, mpirun, a),
                              .files = { ends[0], STDOUT_FILENO, STDERR_FILENO } };
    set_environment();
    int r = os_child_start(&child, &pid) ? cairn_fail_errno(err, "start %s", mpirun) : 0;
    close(ends[0]);
    r = r ? r : wait_for_job(l, pid, ends[1], end, err);
    close(ends[1]);
    return r;
}

int start_launch_ranks(const struct launch_ranks *l, int *exit_code, struct cairn_error *err)
{
    static const char *const names[] = { "mpirun", "mpiexec", "mpiexec.hydra", NULL };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct os_end end;
    const char *mpirun = find_program(names, &a);
    if (!mpirun) {
        cairn_fail(err, CAIRN_ELACK, "--ranks %d: there is no mpirun on the PATH", l->ranks);
        return cairn_hint(err, "install Open MPI (Debian, Ubuntu: openmpi-bin) or MPICH");
    }
    if (run(l, mpirun, &a, &end, err))
        return -1;
    *exit_code = end.signal ? 128 + end.signal : end.code;
    /* An order of control.json, or a signal to rank 0, stops a run as Ctrl-C does. */
    bool stopped = *exit_code == 128 + SIGINT || *exit_code == 128 + SIGTERM || *exit_code == 128 + SIGHUP;
    if (l->signals() || *exit_code < 128 || stopped)
        return 0;
    cairn_fail(err, CAIRN_EIO, "a rank was killed by signal %d (%s), and the others ended", *exit_code - 128,
               strsignal(*exit_code - 128));
    return cairn_hint(err, "--resume continues from the last checkpoint");
}
