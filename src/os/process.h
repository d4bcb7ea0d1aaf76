/* SPDX-License-Identifier: Apache-2.0
 * Processes: starting one and waiting for it, and information about others. */
#ifndef CAIRN_OS_PROCESS_H
#define CAIRN_OS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a process ended. */
struct os_end {
    int code;   /* exit status; valid if signal is 0 */
    int signal; /* the signal that ended it, or 0 */
};

/* Starts a program, by its path, with these files as its standard input, output and error.  -1 with errno. */
int os_spawn(const char *path, const char *const *argv, const int files[3], pid_t *pid);
/* The same in a session of its own, as a child of init: it outlives the caller, and no signal of the
 * caller's terminal reaches it.  It inherits neither ignored signals nor other files.  Returns when the
 * program runs. */
int os_spawn_apart(const char *path, const char *const *argv, const int files[3]);
/* Waits for it; -1: it did not end within limit_s seconds and was killed. */
int os_wait(pid_t pid, int limit_s, struct os_end *end);

/* A program in a process group of its own, with no signal blocked and with limits.  The limits are set from
 * outside, right after its start. */
struct os_child {
    const char *path;
    const char *const *argv;
    const char *folder; /* its working folder; NULL: ours */
    int files[3];
    uint64_t memory; /* bytes of address space, 0: no limit.  Not set under a sanitizer, which needs more */
    uint64_t
        data; /* bytes of private writable memory, likewise: for programs that reserve much address space */
    unsigned cpu_s; /* CPU time in seconds, 0: no limit; then it is killed */
};
int os_child_start(const struct os_child *c, pid_t *pid);
/* 0: it ended; 1: it still runs; -1 with errno. */
int os_child_end(pid_t pid, struct os_end *end);
/* Kills its whole process group; wait for it afterwards. */
void os_child_kill(pid_t pid);

/* For a helper process: makes it end with its parent and write no core file.  -1: the parent has already
 * ended. */
int os_follow_parent(pid_t parent);
/* Limits on what a helper process may do; it also writes no core file, gains no privileges,
 * and keeps no descriptor that it inherited but the standard ones. */
struct os_limits {
    uint64_t memory; /* address space in bytes; 0: no limit.  Not set under a sanitizer, which needs more */
    bool writes;     /* may it write to files? */
    unsigned open_files; /* descriptors below this number; 0: no limit */
};
int os_limit_self(const struct os_limits *limits);
/* From now on the process may take this many seconds, and as much CPU time on each of `threads` threads; then
 * SIGALRM or SIGXCPU ends it.  0: no limit until the next call. */
void os_limit_time(unsigned seconds, unsigned threads);
/* Re-executes the running program, with no signal blocked.  Returns only on failure: -1 with errno. */
int os_start_again(char *const *argv, char *const *env);

/* False only if there is certainly no process with this PID. */
bool os_is_alive(pid_t pid);
/* What the system's lists call this process; 15 characters. */
void os_set_name(const char *name);
/* A PID is reused; together with the start time and the boot it names one process for ever. */
struct os_process_id {
    pid_t pid;
    uint64_t start; /* in ticks since boot */
    char boot[40];
};
/* False: there is no such process, it has ended and waits for its parent, or /proc cannot be read. */
bool os_process_id(pid_t pid, struct os_process_id *out);
/* Sends a signal to that process, never to another one that has its PID now.  Signal 0 only asks.  -1 with
 * errno: ESRCH if it has ended. */
int os_signal(const struct os_process_id *id, int sig);
/* Start time of a process, in seconds since 1970; 0: unknown. */
int64_t os_process_start(int64_t pid);

#endif
