/* SPDX-License-Identifier: Apache-2.0
 * Whom the kernel killed for want of memory, and whether the log knows that process.
 *
 * Fixed size: of many numbers the last ones are kept. */
#ifndef CAIRN_RULES_LOG_KILLED_H
#define CAIRN_RULES_LOG_KILLED_H

#include <stdbool.h>
#include <stddef.h>

enum { LOG_PIDS = 64 };

struct log_pids {
    long pid[LOG_PIDS];
    size_t n; /* ever added */
};

struct log_killed {
    struct log_pids killed, told; /* by the kernel; what the program said is one of its own */
    bool trainer;                 /* one that was killed is called as trainers are */
};

/* "process 4242 (python3)" in a line of the kernel, behind the place. */
void log_killed_see(struct log_killed *k, const char *s, size_t n, size_t at);
/* "pid 4242" in any line, at the place; the kernel's lines are left out. */
void log_killed_tell(struct log_killed *k, const char *s, size_t n, size_t at);
/* Is one of the killed among those that the program told of? */
bool log_killed_told(const struct log_killed *k);

#endif
