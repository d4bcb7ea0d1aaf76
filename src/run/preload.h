/* SPDX-License-Identifier: Apache-2.0
 * The library that lives inside a trainer (docs/preload.md): where it is, which of its behaviours this run
 * gets, and the variables that tell it. */
#ifndef CAIRN_RUN_PRELOAD_H
#define CAIRN_RUN_PRELOAD_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "rules/plan.h"
#include <stdbool.h>

enum preload_way {
    PRELOAD_AUTO, /* the recorder, what a rule asks for, and the user's words behind a + */
    PRELOAD_OFF,
    PRELOAD_LIST, /* the user's words; nothing is added */
};
struct preload_choice {
    enum preload_way way;
    unsigned switches; /* the user's words: bits as in preload/record.h */
};
/* "auto", "off" (or "none"), "all", or names of behaviours separated by commas, which a + before them adds
 * to what auto is; NULL is auto. */
int preload_parse(const char *text, struct preload_choice *out, struct cairn_error *err);

struct preload {
    const char *file;       /* what the recorder's files begin with; NULL: nothing is recorded */
    int held;               /* the folder of these files, locked while the run lives */
    const char *list;       /* the behaviours, for people; NULL: the library is not used */
    const char *why;        /* that a rule added one; NULL: none did */
    const char *trouble;    /* why it is not used, or not wholly; NULL: all is well, or nobody asked */
    const char *const *env; /* with the library */
};
/* Everything in the result is in the arena.  env has what an earlier run found out, under the library's
 * own name. */
void preload_prepare(const struct preload_choice *c, const struct facts *f, const struct plan *p,
                     const char *const *env, struct arena *a, struct preload *out);
/* Removes the recorder's folder. */
void preload_finish(struct preload *p);

#endif
