/* SPDX-License-Identifier: Apache-2.0
 * The planned environment, and what is known of a variable: the keys of `cairn env --json`. */
#ifndef CAIRN_REPORT_ENV_H
#define CAIRN_REPORT_ENV_H

#include "base/json.h"
#include "host/facts.h"
#include "rules/env_names.h"
#include "rules/plan.h"

/* The caller frees what the report_ functions return. */
struct json *report_env(const struct plan *p);

/* All that is known of one variable, and what the plan does with it here. */
struct env_explanation {
    const char *name;
    const struct env_name *row; /* NULL: not known */
    const char *near[3];        /* names that look like it, where it is not known */
    size_t n_near;
    const char *action; /* "set", "unset", "keep", or NULL */
    const struct plan_var *var;
    const struct plan_var *instead_of; /* the user's value that the one to set replaces; or NULL */
    const char *value;                 /* what the user has, whatever the plan says of it; or NULL */
};
struct env_explanation env_explain(const char *name, const struct facts *f, const struct plan *p);
struct json *report_env_name(const struct env_explanation *e);
struct json *report_env_names(void); /* every variable that is known */

#endif
