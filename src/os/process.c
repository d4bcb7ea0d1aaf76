/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include "os/fault.h"
#include "os/file.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int os_spawn(const char *path, const char *const *argv, const int files[3], pid_t *pid)
{
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        posix_spawn_file_actions_adddup2(&fa, files[fd], fd);
    int r = fault_hit() ? errno : posix_spawn(pid, path, &fa, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    errno = r;
    return r ? -1 : 0;
}

int os_wait(pid_t pid, int limit_s, struct os_end *end)
{
    struct timespec begin, now, nap = { 0, 1000000 };
    int status;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        pid_t r = waitpid(pid, &status, WNOHANG);
        if (r == pid)
            break;
        if (r < 0 && errno != EINTR)
            return -1;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec >= limit_s) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < 16000000 ? nap.tv_nsec * 2 : nap.tv_nsec;
    }
    *end = (struct os_end){ WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                            WIFSIGNALED(status) ? WTERMSIG(status) : 0 };
    return 0;
}

int os_follow_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    return getppid() == parent ? 0 : -1;
}

int os_start_again(char *const *argv, char *const *env)
{
    sigset_t none, before;
    sigemptyset(&none); /* the new program would inherit blocked signals */
    pthread_sigmask(SIG_SETMASK, &none, &before);
    execve("/proc/self/exe", argv, env);
    int why = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return -1;
}

bool os_is_alive(pid_t pid)
{
    return !kill(pid, 0) || errno != ESRCH;
}

/* Field 22 of its stat file counts ticks since the machine's start; the name in field 2 may hold spaces and
 * brackets. */
int64_t os_process_start(int64_t pid)
{
    char path[64], text[1024];
    unsigned long long ticks = 0;
    struct timespec real, boot;
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    os_read_start(path, text, sizeof(text));
    const char *after = strrchr(text, ')');
    if (!after ||
        sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return 0;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (int64_t)real.tv_sec - (int64_t)boot.tv_sec +
           (int64_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
}
