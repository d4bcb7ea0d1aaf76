/* SPDX-License-Identifier: Apache-2.0
 * The process between cairn and the trainer, so that no process of a run outlives it.
 *
 * It is the trainer's parent and the subreaper of all descendants, so orphans of the trainer become its
 * children.  It kills the whole tree on request, and also when cairn dies in any way, even by SIGKILL: it
 * sees its socket close.  It then also gives the terminal back.  If the guardian itself is killed, the
 * kernel kills the trainer (PR_SET_PDEATHSIG), and cairn, the next subreaper, gets the rest.
 *
 * If the trainer has its own terminal, the guardian leads the session.  When a session leader ends, the
 * kernel hangs up the terminal, and processes that the trainer left running would get no time to finish.
 * The trainer is a foreground process group there, like a shell's job.
 *
 * Signals reach the trainer through the guardian, since it alone knows whether the pid is still the
 * trainer's. */
#ifndef CAIRN_RUN_GUARDIAN_H
#define CAIRN_RUN_GUARDIAN_H

#include "base/error.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct terminal;

#define GUARDIAN_NAME "cairn-guardian" /* of the process */

struct guardian_spec {
    char *const *argv;               /* argv[0] is looked up in PATH */
    const char *const *env;          /* NULL-terminated */
    int in, out, err;                /* the trainer's */
    bool session;                    /* out is the trainer's own terminal, for its own session */
    bool detached;                   /* the trainer may outlive cairn */
    int lock;                        /* a file that guardian and trainer keep open; 0: none */
    sigset_t mask;                   /* the trainer's signal mask */
    const struct terminal *terminal; /* to give back when cairn dies; may be NULL */
    pid_t group;                     /* the process group that gets it back */
};

struct guardian {
    pid_t pid;
    int fd; /* poll it for reports; -1: none */
};

enum guardian_event {
    GUARDIAN_NOTHING, /* no report is waiting */
    GUARDIAN_STARTED, /* value is the trainer's pid, which is also its process group */
    GUARDIAN_REFUSED, /* it could not be executed: value is errno */
    GUARDIAN_STOPPED, /* value is the signal: Ctrl-Z, or reading from the terminal in the background */
    GUARDIAN_HEARD,   /* value is the terminal's signal: SIGINT, SIGQUIT or SIGHUP; the trainer has it too */
    GUARDIAN_ENDED,   /* value is the status of waitpid */
    GUARDIAN_GONE,    /* the guardian itself died */
};
struct guardian_report {
    enum guardian_event event;
    int value;
};

/* Forks: no other thread may be running. */
int guardian_start(const struct guardian_spec *s, struct guardian *out, struct cairn_error *err);
/* Does not wait. */
struct guardian_report guardian_read(const struct guardian *g);
/* Sends a signal to the trainer's process group; to all descendants of the guardian. */
void guardian_signal(const struct guardian *g, int sig);
void guardian_signal_all(const struct guardian *g, int sig);
/* Gives the trainer its own or the user's terminal, and continues it.  Signals typed at the user's
 * terminal are reported, since cairn does not get them. */
void guardian_bring_to_front(const struct guardian *g);
/* Kills the remaining processes and the guardian; true if none is left.  Accepts a zeroed one. */
bool guardian_end(struct guardian *g);

#endif
