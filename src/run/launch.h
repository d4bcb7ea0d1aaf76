/* SPDX-License-Identifier: Apache-2.0
 * A trainer that runs, with its strings attached: its guardian, its terminal or pipes, and the user's terminal.
 *
 * When our stdout is a terminal the trainer gets a terminal of its own, so that progress bars look as they should,
 * and what is typed goes there.  Otherwise it gets pipes, and the user's terminal when it wants to read from it: one pipe
 * where our stdout and stderr are the same file, so that the order of what it writes to them stays, else two. */
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
    bool detached; /* no input, no terminal, and it may outlive us */
};

struct launch {
    struct guardian guardian;
    struct terminal screen; /* behind our stdout */
    struct terminal keys;   /* behind our stdin; without a terminal for the trainer any that there is */
    int master;             /* of the trainer's terminal; -1: it has none */
    int out, err;           /* to read from; err is -1 when it goes the same way as out */
    pid_t trainer;          /* 0 until it has started */
};

/* The trainer's start, or its refusal, is the guardian's first report. */
int launch_start(struct launch *l, const struct launch_options *o, struct cairn_error *err);
/* The key that was typed belongs to the trainer. */
void launch_type(const struct launch *l, const char *keys, size_t n);
/* The trainer has the user's terminal, and what is typed there makes signals for it alone. */
bool launch_is_in_front(const struct launch *l);
/* Also ends the raw mode. */
void launch_take_terminal(struct launch *l);
/* Ends everything and gives the terminal back; true if nothing of the run is left. */
bool launch_end(struct launch *l);

#endif
