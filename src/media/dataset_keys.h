/* SPDX-License-Identifier: Apache-2.0
 * Reads a map of settings into a struct by a table of its keys. */
#ifndef CAIRN_MEDIA_DATASET_KEYS_H
#define CAIRN_MEDIA_DATASET_KEYS_H

#include "base/yaml.h"
#include <stdint.h>

enum setting_type {
    SETTING_TEXT,   /* const char * */
    SETTING_COUNT,  /* size_t, at least 1 */
    SETTING_REAL,   /* double */
    SETTING_BOOL,   /* bool */
    SETTING_SIZE,   /* struct bucket_size: a number, or a list of two */
    SETTING_COUNTS, /* struct setting_counts: a list, or a number */
    SETTING_INDEX,  /* whole, at least 0; never stored, as the next ones */
    SETTING_LIST,
    SETTING_ANY,
    SETTING_REFUSED, /* cairn cannot do it: an error, unless it is false, null, 0 or empty */
};

struct setting_counts {
    size_t *item;
    size_t n;
};

struct setting {
    const char *name;
    enum setting_type type;
    unsigned where; /* bits of the maps that may have it */
    size_t at;      /* offset in the struct; SETTING_UNUSED: of no consequence here, it is not stored */
};
#define SETTING_UNUSED SIZE_MAX

struct settings {
    const char *path; /* for messages */
    const struct setting *row;
    size_t n;
    struct arena *arena;
};

/* Keys that no row has are errors.  Values that are null stay unset. */
int settings_read(const struct settings *s, const struct yaml_node *map, unsigned where, void *into,
                  struct cairn_error *err);
/* The member of a map; NULL: none, or it is no map. */
const struct yaml_node *settings_get(const struct yaml_node *map, const char *key);
/* Whether it is true or yes (1), false or no (0), or neither (-1). */
int settings_bool(const struct yaml_node *n);
/* [name] becomes the job's name, ${VARIABLE} its value; an unset variable stays.  NULL gives NULL. */
const char *settings_expand(const char *text, const char *job, struct arena *a);

#endif
