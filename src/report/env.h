/* SPDX-License-Identifier: Apache-2.0
 * The planned environment, and explanations of variables: the keys of `cairn env --json`. */
#ifndef CAIRN_REPORT_ENV_H
#define CAIRN_REPORT_ENV_H

#include "base/json.h"
#include "host/facts.h"
#include "rules/env_names.h"
#include "rules/plan.h"

/* The caller frees what the report_ functions return. */
struct json *report_env(const struct plan *p);

/* What cairn knows about one variable, and what the plan does with it. */
struct env_explanation {
    const char *name;
    const struct env_name *row; /* NULL: unknown */
    const char *near[3];        /* similar names, if it is unknown */
    size_t n_near;
    const char *action; /* "set", "unset", "keep", or NULL */
    const struct plan_var *var;
    const struct plan_var *instead_of; /* the user's value that the one to set replaces; or NULL */
    const char *value;                 /* the user's value; or NULL */
};
struct env_explanation env_explain(const char *name, const struct facts *f, const struct plan *p);
struct json *report_env_name(const struct env_explanation *e);
struct json *report_env_names(void); /* all known variables */

#endif
