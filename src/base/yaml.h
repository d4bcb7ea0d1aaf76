/* SPDX-License-Identifier: Apache-2.0
 * Parses YAML into a tree.  The only module that uses the YAML library.
 *
 * A file holds one document.  Every node has its line and column; members of a map keep their order.  The
 * caller interprets scalars (a number, true).
 *
 * Errors, with the position: keys that are duplicate or not scalars, anchors and aliases, merge keys (<<),
 * tags, a second document, strings with a NUL, and more than the limits below.  Nodes live in the caller's
 * arena. */
#ifndef CAIRN_BASE_YAML_H
#define CAIRN_BASE_YAML_H

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>

enum { YAML_MOST_BYTES = FILE_SETTINGS_MOST, YAML_MOST_NODES = 20000, YAML_MOST_DEPTH = 32 };

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };
enum yaml_style { YAML_PLAIN, YAML_QUOTED, YAML_BLOCK }; /* x; "x" or 'x'; | or > */

struct yaml_node {
    enum yaml_kind kind;
    enum yaml_style style;          /* of a scalar */
    const char *text;               /* of a scalar; valid UTF-8 */
    int line, column;               /* from 1, in characters */
    const struct yaml_node *key;    /* of a member of a map: a scalar */
    struct yaml_node *first, *next; /* first child of a list or map; next sibling */
};

/* Messages begin with "PATH:LINE:COLUMN: ".  An empty document is a plain scalar without text. */
int yaml_read(const char *path, struct arena *arena, struct yaml_node **out, struct cairn_error *err);
/* The same for text in memory; messages call it `name`. */
int yaml_parse(const char *name, const char *text, size_t len, struct arena *arena, struct yaml_node **out,
               struct cairn_error *err);

/* Whether it is empty, ~ or null, without quotes. */
bool yaml_is_null(const struct yaml_node *n);
/* Adds text as a scalar in double quotes.  The text must be UTF-8. */
void yaml_add_quoted(struct str *out, const char *text);

#endif
