/* SPDX-License-Identifier: Apache-2.0
 * The keys of an ai-toolkit job for Wan, but for those of its datasets (media/dataset_toolkit.c). */
#ifndef CAIRN_TRAIN_FOREIGN_TOOLKIT_KEYS_H
#define CAIRN_TRAIN_FOREIGN_TOOLKIT_KEYS_H

#include "base/yaml.h"
#include "train/foreign.h"

enum toolkit_type {
    TOOLKIT_TEXT,
    TOOLKIT_TEXTS,  /* a list of texts */
    TOOLKIT_PROMPT, /* any scalar: false, a number and nothing are texts, too */
    TOOLKIT_COUNT,  /* whole, at least 1 */
    TOOLKIT_INDEX,  /* whole, at least 0 */
    TOOLKIT_REAL,
    TOOLKIT_BOOL,
    TOOLKIT_MAP,
    TOOLKIT_LIST,
    TOOLKIT_ANY,
};

enum toolkit_use {
    TOOLKIT_READ,    /* foreign_toolkit.c reads it */
    TOOLKIT_IGNORED, /* of no consequence for the result: noted */
    TOOLKIT_REFUSED, /* cairn cannot do it: an error, unless it has its neutral value */
};

struct toolkit_key {
    const char *name; /* "train.lr": below config.process[0] */
    enum toolkit_type type;
    enum toolkit_use use;
    const char *to; /* TOOLKIT_READ: our key that gets the value as it is; NULL: it is more than that */
    const char
        *harmless; /* TOOLKIT_REFUSED: a value without effect, besides null, false, 0 and empty; NULL: none */
    const char *remedy; /* TOOLKIT_REFUSED */
};
extern const struct toolkit_key toolkit_keys[];
extern const size_t n_toolkit_keys;

struct toolkit {
    const char *path;
    const struct yaml_node *process;
    const char *name; /* of the job */
    struct foreign_job *job;
    struct arena *a;
    struct cairn_error *err;
};

/* Checks all keys of the process: their names, their types and that cairn can do what they ask.  Adds those with a
 * key of ours, and notes the others that are of no consequence. */
int toolkit_check_keys(const struct toolkit *t);

/* The value of a key by its dotted name; NULL: not set, or null. */
const struct yaml_node *toolkit_get(const struct toolkit *t, const char *name);
/* Below another map. */
const struct yaml_node *toolkit_get_in(const struct yaml_node *map, const char *name);
/* Expanded text: [name] and ${VARIABLE} are replaced. */
const char *toolkit_text(const struct toolkit *t, const char *name, const char *preset);
const char *toolkit_expand(const struct toolkit *t, const char *text);
double toolkit_real(const struct toolkit *t, const char *name, double preset);
bool toolkit_bool(const struct toolkit *t, const char *name, bool preset);
const char *toolkit_place(const struct toolkit *t, const struct yaml_node *n);
/* Adds one of our keys with the place of a key of the job; if the job does not have that key, as ai-toolkit's
 * default. */
void toolkit_add(const struct toolkit *t, const char *key, const char *value, const char *from);
/* An error at a key, with the remedy: the job is wrong, or cairn cannot do what it asks. */
int toolkit_fail(const struct toolkit *t, const char *name, const char *remedy, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
int toolkit_refuse(const struct toolkit *t, const char *name, const char *remedy, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

#endif
