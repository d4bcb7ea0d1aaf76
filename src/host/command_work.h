/* SPDX-License-Identifier: Apache-2.0
 * The way from a command to the Python behind it; private to command.c, environments.c and script.c.
 *
 * A walk carries what a shell would: the working directory and the variables, as they change on the
 * way.  It is copied where a shell would start a process. */
#ifndef CAIRN_HOST_COMMAND_WORK_H
#define CAIRN_HOST_COMMAND_WORK_H

#include "host/command.h"
#include <stdbool.h>

enum { WALK_DEPTH = 8, WALK_STEPS = 16000, WALK_STEP_BYTES = 256 };

/* A list that only grows at its front, so that copies of a walk share it.  The first of a name counts. */
struct walk_var {
    const char *name, *value; /* value NULL: taken out, or not known */
    bool unknown;
    const struct walk_var *next;
};

/* Of a shell script; a list likewise. */
struct walk_function {
    const char *name, *body;
    const struct walk_function *next;
};

struct walk {
    const struct root *root;
    struct arena *a;
    const char *const *env;
    const char *cwd; /* NULL: not known */
    const struct walk_var *vars;
    const struct walk_function *functions;
    const char *prefix, *prefix_how; /* the environment that was activated, and by whom */
    const char *script;              /* the shell script that is read; NULL: none */
    bool maybe;                      /* what is being followed may not happen */
    int depth;
    int *steps; /* left, for the whole way */
    struct command_python *out;
};

/* Takes the steps for so many bytes. False: there are none left, and the way ends here. A script can ask for
 * more than any machine has: a variable that doubles itself, a function that calls itself twice. */
bool walk_spend(const struct walk *w, size_t bytes);
/* root_read, for the steps that its length takes. */
const char *walk_read(const struct walk *w, const char *path);
/* A variable, or NULL; its value, or NULL. */
const struct walk_var *walk_var(const struct walk *w, const char *name);
const char *walk_get(const struct walk *w, const char *name);
/* unknown: it has a value, but which one cannot be determined. */
void walk_set(struct walk *w, const char *name, const char *value, bool unknown);
/* Absolute, without "." and ".."; NULL for a relative path if the working directory is unknown. */
const char *walk_path(const struct walk *w, const char *path);
/* As execvp looks for it; NULL: there is none. */
const char *walk_program(const struct walk *w, const char *name);
/* What activating an environment does.  False, and nothing is done, if there is none at the prefix. */
bool walk_activate(struct walk *w, const char *prefix, const char *how);
/* The python in an environment; NULL: it has none. */
const char *walk_prefix_exe(const struct walk *w, const char *prefix);

/* Follow a command. True: the Python is known, and in *w->out; else its `how` says where the search ended. */
bool walk_command(struct walk *w, const char *const *argv);
bool walk_found(struct walk *w, const char *exe);
bool walk_lost(struct walk *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Is it "python", "python3.11", "pypy3"? */
bool walk_is_python_name(const char *name);
/* Is the option in a list separated by spaces? */
bool walk_option_is(const char *list, const char *option);
/* Where the options end: the first word that is none, with those skipped that take a value. */
size_t walk_skip_options(const char *const *argv, size_t at, const char *with_value);

/* environments.c: runs `uv run`, `conda run` and the like; false also if argv[0] is none of them
 * (*is_one). */
bool environments_run(struct walk *w, const char *const *argv, bool *is_one);
/* The prefix of a conda environment by its name or path; NULL: not found. */
const char *environments_conda(struct walk *w, const char *name);
/* conda's own installation; NULL: not found. */
const char *environments_conda_root(struct walk *w);

/* script.c: the text of a shell script or of `sh -c`; name is its $0, args what follows that. */
bool script_follow(struct walk *w, const char *text, const char *name, const char *const *args);

#endif
