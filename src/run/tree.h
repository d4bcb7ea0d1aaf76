/* SPDX-License-Identifier: Apache-2.0
 * The descendants of a process, from /proc.
 *
 * A trainer is seldom one process: launchers start workers, loaders fork, servers start jobs.  These
 * functions cover all of them.  Orphans count as long as the root is their subreaper.  A process named
 * TREE_APART does not count, nor do its descendants: it is the supervisor of a job that the trainer put into
 * the queue (job/exec.h), and lives on. */
#ifndef CAIRN_RUN_TREE_H
#define CAIRN_RUN_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TREE_APART "cairn-job"

struct tree_process {
    pid_t pid, parent;
    char state;     /* as in /proc/PID/stat: R, S, D, T, Z … */
    uint64_t ticks; /* CPU time, including reaped children */
    char name[32];
};

struct tree {
    struct tree_process *process; /* without the root */
    size_t n;
};

/* All descendants of root; false (and an empty tree) if proc, normally "/proc", cannot be listed. */
bool tree_read(struct tree *t, const char *proc, pid_t root);
void tree_release(struct tree *t);

uint64_t tree_ticks(const struct tree *t);
/* Bytes that the living processes have read and written, files and pipes. */
uint64_t tree_io_bytes(const struct tree *t, const char *proc);
/* Some process is stopped (Ctrl-Z, a debugger), so that being idle means nothing. */
bool tree_is_stopped(const struct tree *t);
/* Has not ended; a zombie has. */
bool tree_is_alive(const struct tree *t);
/* Some process waits for a line from the terminal. */
bool tree_waits_for_input(const struct tree *t, const char *proc);
/* Some process accepts TCP connections at a chosen port: a server, which may be idle for days.  Ranks that
 * talk to each other use an ephemeral port. */
bool tree_serves(const struct tree *t, const char *proc);
bool tree_has_name(const struct tree *t, const char *name);
/* The program is Python, whatever its name: torchrun and accelerate are Python scripts. */
bool tree_is_python(const struct tree_process *p, const char *proc);
/* Some process was started with this variable. */
bool tree_has_variable(const struct tree *t, const char *proc, const char *name);

/* Sends SIGKILL to all descendants of root until none can run, or wait_ms are over; does not reap them.
 * True if none is left, or that is unknown. */
bool tree_kill(pid_t root, const char *proc, int wait_ms);

#endif
