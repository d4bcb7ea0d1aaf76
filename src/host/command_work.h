/* SPDX-License-Identifier: Apache-2.0
 * The way from a command to the Python behind it; private to command.c, environments.c and script.c.
 *
 * A walk carries what a shell would: the working directory and the variables, as they change on the way.  It is copied
 * where a shell would start a process. */
#ifndef CAIRN_HOST_COMMAND_WORK_H
#define CAIRN_HOST_COMMAND_WORK_H

#include "host/command.h"
#include <stdbool.h>

enum { WALK_DEPTH = 8, WALK_STEPS = 4000 };

struct walk_var {
    const char *name, *value; /* value NULL: taken out, or not known */
    bool unknown;
};

/* Of a shell script. */
struct walk_function {
    const char *name, *body;
};

struct walk {
    const struct root *root;
    struct arena *a;
    const char *const *env;
    const char *cwd; /* NULL: not known */
    struct walk_var *vars;
    size_t n_vars;
    struct walk_function *functions;
    size_t n_functions;
    const char *prefix, *prefix_how; /* the environment that was activated, and by whom */
    const char *script;              /* the shell script that is read; NULL: none */
    bool maybe;                      /* what is being followed may not happen */
    int depth;
    int *steps; /* left, for the whole way */
    struct command_python *out;
};

/* A variable's value, or NULL. */
const char *walk_get(const struct walk *w, const char *name);
void walk_set(struct walk *w, const char *name, const char *value);
/* Absolute, without "." and ".."; NULL for a relative path where the working directory is not known. */
const char *walk_path(const struct walk *w, const char *path);
/* As execvp looks for it; NULL: there is none. */
const char *walk_program(const struct walk *w, const char *name);
/* What activating an environment does.  False, and nothing is done, if there is none at the prefix. */
bool walk_activate(struct walk *w, const char *prefix, const char *how);
/* The python in an environment; NULL: it has none. */
const char *walk_prefix_exe(const struct walk *w, const char *prefix);

/* Follow a command.  True: the Python is known, and in *w->out; else its `how` says where the way ended. */
bool walk_command(struct walk *w, const char *const *argv);
bool walk_found(struct walk *w, const char *exe);
bool walk_lost(struct walk *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Is it "python", "python3.11", "pypy3"? */
bool walk_is_python_name(const char *name);
/* Is the option one of a list with spaces between? */
bool walk_option_is(const char *list, const char *option);
/* Where the options end: the first word that is none, with those skipped that take a value. */
size_t walk_skip_options(const char *const *argv, size_t at, const char *with_value);

/* environments.c: runs `uv run`, `conda run` and the like; false also if argv[0] is none of them (*is_one). */
bool environments_run(struct walk *w, const char *const *argv, bool *is_one);
/* The prefix of a conda environment by its name or path; NULL: not found. */
const char *environments_conda(struct walk *w, const char *name);
/* conda's own installation; NULL: not found. */
const char *environments_conda_root(struct walk *w);

/* script.c: the text of a shell script or of `sh -c`; name is its $0, args what follows that. */
bool script_follow(struct walk *w, const char *text, const char *name, const char *const *args);

#endif
