/* SPDX-License-Identifier: Apache-2.0
 * How to start a trainer again without losing what it has done: a table of the known trainers.
 *
 * Only a state that was written to its end counts: the file that its trainer writes last must be there,
 * and none of the ones looked for may be empty. */
#ifndef CAIRN_RUN_RESUME_H
#define CAIRN_RUN_RESUME_H

#include "base/arena.h"
#include <stdbool.h>

enum resume_way {
    RESUME_UNKNOWN, /* starting again would begin from nothing */
    RESUME_ITSELF,  /* the same command finds its own state */
    RESUME_STATE,   /* argv names the newest state */
    RESUME_COMMAND, /* --resume-cmd */
};

struct resume {
    enum resume_way way;
    const char *trainer; /* as --trainer knows it; NULL: not known */
    char *const *argv;   /* to start with; NULL when unknown */
    const char *from;    /* the folder of the state; NULL when there is none */
    const char *why;     /* a sentence */
};

/* The trainer that a command line starts, as --trainer knows it; NULL if it is none that we know. */
const char *resume_trainer(char *const *argv);
/* The same, or the name of a script that we do not know; NULL for what is no Python script either. */
const char *resume_name(char *const *argv);
/* The value of "--name value" or "--name=value" in a command line; NULL if it is not there. */
const char *resume_option(char *const *argv, const char *name);
/* argv with the value of an option replaced, or the option added at the end. */
char **resume_with_option(char *const *argv, const char *name, const char *value, struct arena *a);

/* trainer and command may be NULL. */
void resume_find(char *const *argv, const char *trainer, const char *command, struct arena *a,
                 struct resume *out);

#endif
