/* SPDX-License-Identifier: Apache-2.0
 * A running trainer with its guardian, its terminal or pipes, and the user's terminal.
 *
 * If cairn's stdout is a terminal, the trainer gets its own terminal, so that progress bars work, and
 * typed keys go there.  Otherwise it gets pipes, and the user's terminal when it reads from it: one pipe
 * if cairn's stdout and stderr are the same file, to keep the order of the output, else two. */
#ifndef CAIRN_RUN_LAUNCH_H
#define CAIRN_RUN_LAUNCH_H

#include "base/error.h"
#include "run/guardian.h"
#include "run/terminal.h"
#include <stdbool.h>

struct launch_options {
    char *const *argv;
    const char *const *env;
    sigset_t mask;
    int lock;      /* see run_job.h */
    bool detached; /* no input, no terminal, and it may outlive cairn */
};

struct launch {
    struct guardian guardian;
    struct terminal screen; /* on cairn's stdout */
    struct terminal keys;   /* on cairn's stdin; if the trainer has no terminal, any available one */
    int master;             /* of the trainer's terminal; -1: it has none */
    int out, err;           /* to read from; err is -1 if it is merged into out */
    pid_t trainer;          /* 0 until it has started */
};

/* The guardian's first report says whether the trainer started. */
int launch_start(struct launch *l, const struct launch_options *o, struct cairn_error *err);
/* Passes a typed key to the trainer. */
void launch_type(const struct launch *l, const char *keys, size_t n);
/* The trainer has the user's terminal, so typed signals reach only the trainer. */
bool launch_is_in_front(const struct launch *l);
/* Also ends the raw mode. */
void launch_take_terminal(struct launch *l);
/* Ends all processes and gives the terminal back; true if none is left. */
bool launch_end(struct launch *l);

#endif
