/* SPDX-License-Identifier: Apache-2.0
 * The preload library (docs/preload.md): where it is, which of its features this run uses, and the
 * environment variables that configure it. */
#ifndef CAIRN_RUN_PRELOAD_H
#define CAIRN_RUN_PRELOAD_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "rules/plan.h"
#include <stdbool.h>

enum preload_way {
    PRELOAD_AUTO, /* the recorder, features that a rule needs, and those that the user added with + */
    PRELOAD_OFF,
    PRELOAD_LIST, /* only the features that the user named */
};
struct preload_choice {
    enum preload_way way;
    unsigned switches; /* features that the user named: bits of preload/record.h */
};
/* "auto", "off" (or "none"), "all", or names of features separated by commas; a leading + adds them to
 * auto.  NULL is auto. */
int preload_parse(const char *text, struct preload_choice *out, struct cairn_error *err);

struct preload {
    const char *file;       /* prefix of the recorder's files; NULL: no recording */
    int held;               /* the folder of these files, locked while the run lives */
    const char *list;       /* the features, for messages; NULL: the library is not used */
    const char *why;        /* a rule added a feature; NULL: none did */
    const char *trouble;    /* why the library or a feature is not used; NULL: no problem */
    const char *const *env; /* with the library */
};
/* Everything in the result is in the arena.  CAIRN_PRELOAD in env has the features that an earlier run
 * needed. */
void preload_prepare(const struct preload_choice *c, const struct facts *f, const struct plan *p,
                     const char *const *env, struct arena *a, struct preload *out);
/* Removes the recorder's folder. */
void preload_finish(struct preload *p);

#endif
