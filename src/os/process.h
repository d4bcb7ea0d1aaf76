/* SPDX-License-Identifier: Apache-2.0
 * Other processes: one that is started and waited for, and those that others have started. */
#ifndef CAIRN_OS_PROCESS_H
#define CAIRN_OS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a process came to its end. */
struct os_end {
    int code;   /* what it gave back; counts if signal is 0 */
    int signal; /* what ended it */
};

/* Starts a program, by its path, with these files as its standard input, output and error.  -1 with errno. */
int os_spawn(const char *path, const char *const *argv, const int files[3], pid_t *pid);
/* Waits for it; -1: it had not ended after limit_s seconds, and was killed. */
int os_wait(pid_t pid, int limit_s, struct os_end *end);

/* For a helper that its parent has started: ends with the parent, and leaves no core file behind.  -1: the parent has ended
 * already. */
int os_follow_parent(pid_t parent);
/* The running program once more, in its place, with no signal blocked.  Returns only if that fails: -1 with errno. */
int os_start_again(char *const *argv, char *const *env);

/* False only if there is surely none of this number. */
bool os_is_alive(pid_t pid);
/* When a process began, in seconds since 1970; 0: unknown. */
int64_t os_process_start(int64_t pid);

#endif
