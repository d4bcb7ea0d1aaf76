/* SPDX-License-Identifier: Apache-2.0
 * What is known about each environment variable that people set for training on AMD GPUs: what reads it,
 * since when, what it does, and what cairn does with it.  `cairn env --explain` prints this table.
 *
 * Myths have a row too, so that a name that nothing reads gets that answer. */
#ifndef CAIRN_RULES_ENV_NAMES_H
#define CAIRN_RULES_ENV_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum env_verdict {
    ENV_SETS,    /* cairn sets it where a rule requires it */
    ENV_DEBUGS,  /* set with --debug; harmful or useless otherwise */
    ENV_REFUSES, /* removed where found, except with --debug if it is for debugging */
    ENV_LEAVES,  /* the user decides */
    ENV_BUILDS,  /* read by compilers and builds only */
    ENV_UNREAD,  /* nothing reads it */
};
const char *env_verdict_name(enum env_verdict v); /* "sets" */
const char *env_verdict_text(enum env_verdict v); /* "sets it where it is needed" */

/* How the reader parses the value; anything else is ignored or worse. */
enum env_syntax {
    ENV_TEXT,     /* any text */
    ENV_FLAG,     /* exactly 0 or 1 */
    ENV_HIP_FLAG, /* a number or the word true */
    ENV_TRUE,     /* exactly TRUE */
    ENV_NUMBER,   /* an integer */
    ENV_WORD,     /* one of the words of `values` */
};

struct env_name {
    const char *name; /* may end in '*' (any rest) or "<n>" (a number) */
    enum env_verdict verdict;
    enum env_syntax syntax;
    bool linux_only;
    const char *reader;
    const char *since;  /* NULL: unknown */
    const char *values; /* for ENV_WORD: words separated by '|' */
    const char *effect;
    const char *advice; /* when to use it, or what to do instead; NULL: nothing to add */
    const char *source;
};

/* The row of a variable, exact names before patterns; NULL if unknown. */
const struct env_name *env_name_find(const char *name);
/* Row i of the whole table; NULL after the last. */
const struct env_name *env_name_at(size_t i);

/* The known names nearest to an unknown one; fills up to n and returns how many are near at all. */
size_t env_name_nearest(const char *name, const char **out, size_t n);
/* Edit distance: how many letters to change, drop or add to turn one into the other. */
size_t env_name_distance(const char *a, const char *b);

/* The parts of the table, each ending with a row whose name is NULL. */
extern const struct env_name env_names_device[];
extern const struct env_name env_names_torch[];
extern const struct env_name env_names_library[];

#endif
