/* SPDX-License-Identifier: Apache-2.0
 * The process between us and the trainer, so that nothing of a run outlives it.
 *
 * It is the trainer's parent and the subreaper of everything below, so what the trainer leaves behind becomes its
 * child and is still known.  It ends the whole tree when it is told to, and also when we die in any way at all,
 * SIGKILL included: it sees its socket close.  It then also gives the terminal back.  Should it be killed itself,
 * the kernel kills the trainer (PR_SET_PDEATHSIG) and the rest falls to us, the next subreaper.
 *
 * Where the trainer has a terminal of its own the guardian leads the session: when the leader ends, the terminal is hung up,
 * and what the trainer left running would not get the time to finish.  The trainer is a group in front there, like a shell's
 * job.
 *
 * Signals reach the trainer through it, since it alone knows whether the number still means the trainer. */
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
    bool session;                    /* out is a terminal of its own, for a session of its own */
    bool detached;                   /* the trainer may outlive us */
    sigset_t mask;                   /* the trainer's signal mask */
    const struct terminal *terminal; /* to give back when we die; may be NULL */
    pid_t group;                     /* ours, which gets it */
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
/* To the trainer's process group; to everything below the guardian. */
void guardian_signal(const struct guardian *g, int sig);
void guardian_signal_all(const struct guardian *g, int sig);
/* Gives the trainer the terminal, its own one or else the user's, and continues it.  The signals that are typed at the
 * user's are reported, since we do not get them. */
void guardian_bring_to_front(const struct guardian *g);
/* Kills what is left and the guardian; true if nothing of the run is left.  Accepts a zeroed one. */
bool guardian_end(struct guardian *g);

#endif
