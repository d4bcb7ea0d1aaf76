/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include "os/fault.h"
#include "os/file.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

/* In the grandchild, between fork and exec: async-signal-safe calls only.  A shell script ignores SIGINT for
 * what it starts in the background, and may have files open, with locks on them: neither is inherited. */
static void become(const char *path, const char *const *argv, const int files[3])
{
    sigset_t none;
    sigemptyset(&none);
    /* The C library refuses to touch the two signals that it keeps for itself, which may be ignored as well. */
    const struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } usual = { 0 };
    for (int sig = 1; sig < NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, &usual, NULL, sizeof(usual.mask));
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(files[fd], fd) < 0)
            return;
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC)) /* Linux before 5.11 */
        for (int fd = STDERR_FILENO + 1; fd < FD_SETSIZE; fd++)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(path, (char *const *)argv);
}

int os_spawn_apart(const char *path, const char *const *argv, const int files[3])
{
    int pipes[2], why = 0;
    if (fault_hit() || pipe2(pipes, O_CLOEXEC))
        return -1;
    pid_t pid = fault_hit() ? -1 : fork();
    if (pid == 0) {
        setsid();
        pid_t child = fork();
        if (child == 0)
            become(path, argv, files);
        if (child <= 0) {
            why = errno;
            (void)!write(pipes[1], &why, sizeof(why));
        }
        _exit(0);
    }
    why = pid < 0 ? errno : 0;
    close(pipes[1]);
    if (pid > 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        while (read(pipes[0], &why, sizeof(why)) < 0 && errno == EINTR)
            ;
    }
    close(pipes[0]);
    errno = why;
    return why ? -1 : 0;
}

static struct os_end end_of(int status)
{
    return (struct os_end){ WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                            WIFSIGNALED(status) ? WTERMSIG(status) : 0 };
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
    *end = end_of(status);
    return 0;
}

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
enum { SANITIZED = __has_feature(address_sanitizer) };
#else
enum { SANITIZED = 0 };
#endif

static void limit_other(pid_t pid, int what, uint64_t value)
{
    struct rlimit both = { value, value };
    if (value)
        prlimit(pid, (__rlimit_resource_t)what, &both, NULL);
}

int os_child_start(const struct os_child *c, pid_t *pid)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE); /* what we ignore it would ignore, too */
    sigaddset(&usual, SIGXFSZ);
    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    if (c->folder)
        posix_spawn_file_actions_addchdir_np(&fa, c->folder);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        posix_spawn_file_actions_adddup2(&fa, c->files[fd], fd);
    int r =
        fault_hit() ? errno : posix_spawn(pid, c->path, &fa, &attributes, (char *const *)c->argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attributes);
    errno = r;
    if (r)
        return -1;
    limit_other(*pid, RLIMIT_AS, SANITIZED ? 0 : c->memory);
    limit_other(*pid, RLIMIT_DATA, SANITIZED ? 0 : c->data);
    limit_other(*pid, RLIMIT_CPU, c->cpu_s);
    return 0;
}

int os_child_end(pid_t pid, struct os_end *end)
{
    int status;
    pid_t r;
    do {
        r = waitpid(pid, &status, WNOHANG);
    } while (r < 0 && errno == EINTR);
    if (r != pid)
        return r ? -1 : 1;
    *end = end_of(status);
    return 0;
}

void os_child_kill(pid_t pid)
{
    if (kill(-pid, SIGKILL)) /* its group is made by the child itself, a moment after its start */
        kill(pid, SIGKILL);
}

static int limit(int what, rlim_t value)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now))
        return -1;
    now.rlim_cur = now.rlim_max = value < now.rlim_max ? value : now.rlim_max;
    return setrlimit((__rlimit_resource_t)what, &now);
}

/* Before Linux 5.9 one after the other. */
static void close_inherited(void)
{
    struct rlimit files;
    if (!syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) || getrlimit(RLIMIT_NOFILE, &files))
        return;
    int end = files.rlim_cur < (1 << 16) ? (int)files.rlim_cur : 1 << 16;
    for (int fd = STDERR_FILENO + 1; fd < end; fd++)
        close(fd);
}

int os_limit_self(const struct os_limits *limits)
{
    close_inherited();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || limit(RLIMIT_CORE, 0) ||
        (limits->memory && !SANITIZED && limit(RLIMIT_AS, limits->memory)) ||
        (!limits->writes && limit(RLIMIT_FSIZE, 0)) ||
        (limits->open_files && limit(RLIMIT_NOFILE, limits->open_files)))
        return -1;
    return 0;
}

void os_limit_time(unsigned seconds, unsigned threads)
{
    struct rusage use;
    struct rlimit cpu;
    alarm(seconds);
    if (getrusage(RUSAGE_SELF, &use) || getrlimit(RLIMIT_CPU, &cpu))
        return;
    rlim_t used = (rlim_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1;
    cpu.rlim_cur = seconds ? used + (rlim_t)seconds * threads : cpu.rlim_max;
    if (cpu.rlim_cur > cpu.rlim_max)
        cpu.rlim_cur = cpu.rlim_max;
    setrlimit(RLIMIT_CPU, &cpu);
}

int os_follow_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CORE, 0);
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

/* Field 22 of its stat file counts ticks since boot; the name in field 2 may contain spaces and brackets.  A
 * process that has ended and waits for its parent does not count. */
static bool start_ticks(int64_t pid, unsigned long long *ticks)
{
    char path[64], text[1024], state;
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    os_read_start(path, text, sizeof(text));
    const char *after = strrchr(text, ')');
    return after &&
           sscanf(after, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &state, ticks) == 2 &&
           state != 'Z' && state != 'X';
}

int64_t os_process_start(int64_t pid)
{
    unsigned long long ticks = 0;
    struct timespec real, boot;
    if (!start_ticks(pid, &ticks))
        return 0;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (int64_t)real.tv_sec - (int64_t)boot.tv_sec +
           (int64_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
}

void os_set_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

bool os_process_id(pid_t pid, struct os_process_id *out)
{
    unsigned long long ticks;
    struct os_process_id id = { .pid = pid };
    os_read_start("/proc/sys/kernel/random/boot_id", id.boot, sizeof(id.boot));
    id.boot[strcspn(id.boot, "\n")] = '\0';
    if (!id.boot[0] || !start_ticks(pid, &ticks))
        return false;
    id.start = ticks;
    *out = id;
    return true;
}

int os_signal(const struct os_process_id *id, int sig)
{
    struct os_process_id now;
    int fd = (int)syscall(SYS_pidfd_open, id->pid, 0);
    if (fd < 0 && errno == ESRCH)
        return -1;
    /* The descriptor holds the process that has the PID now; if it is ours, it stays ours. */
    bool same = os_process_id(id->pid, &now) && now.start == id->start && !strcmp(now.boot, id->boot);
    int r = !same ? -1 : fd < 0 ? kill(id->pid, sig) : (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
    int why = same ? errno : ESRCH;
    if (fd >= 0)
        close(fd);
    errno = why;
    return r;
}
