/* SPDX-License-Identifier: Apache-2.0
 * The variables that a job runs with.
 *
 * A job keeps those of the shell that added it, so that it does not matter who starts its supervisor: another
 * shell, the supervisor of the job before, or a server.  Left out is what belongs to a session (terminal,
 * display, agents), and what chooses a GPU, which the queue does.  Of the supervisor's own variables a job
 * gets only those that say who the user is and where things are, and only where it has none itself.
 *
 * As a text, the variables are a JSON object of strings; null keeps a variable from being inherited. */
#ifndef CAIRN_JOB_ENVIRONMENT_H
#define CAIRN_JOB_ENVIRONMENT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

/* The variables of a shell that a job keeps.  One that is not UTF-8 is left out: *skipped (or NULL) names it. */
struct json *environment_take(const char *const *shell, const char **skipped);
/* Fails unless the text is such an object. */
int environment_check(const char *text, struct cairn_error *err);
/* What the job runs with, as an array that ends with NULL. */
int environment_make(const char *text, const char *const *own, const char *cwd, struct arena *a, char ***out,
                     struct cairn_error *err);
/* Whether people should not see the value, in a bug report for instance: a token, a password. */
bool environment_is_secret(const char *name);

#endif
