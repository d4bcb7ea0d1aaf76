/* SPDX-License-Identifier: Apache-2.0
 * How to resume a trainer from its saved state: a table of the known trainers.
 *
 * Only a complete state counts: the file that the trainer writes last must exist, and no required file may be
 * empty. */
#ifndef CAIRN_RUN_RESUME_H
#define CAIRN_RUN_RESUME_H

#include "base/arena.h"
#include <stdbool.h>

enum resume_way {
    RESUME_UNKNOWN, /* a restart would begin from the start */
    RESUME_ITSELF,  /* the same command finds its own state */
    RESUME_STATE,   /* argv names the newest state */
    RESUME_COMMAND, /* --resume-cmd */
};

struct resume {
    enum resume_way way;
    const char *trainer; /* name for --trainer; NULL: unknown */
    char *const *argv;   /* the command that resumes; NULL: unknown */
    const char *from;    /* the folder of the state; NULL: none */
    const char *why;     /* a sentence */
};

/* The trainer that a command line starts, as named by --trainer; NULL: unknown. */
const char *resume_trainer(char *const *argv);
/* The same, or the name of an unknown script; NULL if the command is no Python script. */
const char *resume_name(char *const *argv);
/* The value of "--name value" or "--name=value" in a command line, or NULL. */
const char *resume_option(char *const *argv, const char *name);
/* argv with the value of an option replaced, or the option added at the end. */
char **resume_with_option(char *const *argv, const char *name, const char *value, struct arena *a);

/* trainer and command may be NULL. */
void resume_find(char *const *argv, const char *trainer, const char *command, struct arena *a,
                 struct resume *out);

#endif
