/* SPDX-License-Identifier: Apache-2.0
 * The processes below one process, as /proc shows them.
 *
 * A trainer is seldom one process: launchers start workers, loaders fork, servers start jobs.  What is
 * asked here holds for all of them.  Orphans count as long as the process asked about is their subreaper. */
#ifndef CAIRN_RUN_TREE_H
#define CAIRN_RUN_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_process {
    pid_t pid, parent;
    char state;     /* as in /proc/PID/stat: R, S, D, T, Z … */
    uint64_t ticks; /* of CPU time, with those of children it has waited for */
    char name[32];
};

struct tree {
    struct tree_process *process; /* without the root itself */
    size_t n;
};

/* Everything below root; false (and an empty tree) if proc, normally "/proc", cannot be listed. */
bool tree_read(struct tree *t, const char *proc, pid_t root);
void tree_release(struct tree *t);

uint64_t tree_ticks(const struct tree *t);
/* Bytes that the processes have read and written, files and pipes; those of ended ones are gone. */
uint64_t tree_io_bytes(const struct tree *t, const char *proc);
/* Some process is stopped (Ctrl-Z, a debugger), so that standing still means nothing. */
bool tree_is_stopped(const struct tree *t);
/* One that has not ended (zombies have). */
bool tree_is_alive(const struct tree *t);
/* Some process waits for a line from the terminal. */
bool tree_waits_for_input(const struct tree *t, const char *proc);
/* Some process accepts TCP connections at a port that somebody chose: a server, which may stand still for
 * days.  Those that talk among themselves take any port. */
bool tree_serves(const struct tree *t, const char *proc);
bool tree_has_name(const struct tree *t, const char *name);
/* The program is a Python, whatever it is called: torchrun and accelerate are scripts of one. */
bool tree_is_python(const struct tree_process *p, const char *proc);
/* Some process was started with this variable. */
bool tree_has_variable(const struct tree *t, const char *proc, const char *name);

/* SIGKILL for everything below root until nothing is left that could run, or wait_ms are over; the dead
 * are left to their parents.  True if nothing is left, or nobody can tell. */
bool tree_kill(pid_t root, const char *proc, int wait_ms);

#endif
