/* SPDX-License-Identifier: Apache-2.0
 * TOML as a tree, in the nodes of yaml.h: one reader of a job file serves both formats.
 *
 * Tables, arrays of tables, dotted keys, strings of all four kinds, arrays and inline tables are understood.  Numbers,
 * dates and booleans are plain scalars, whose meaning is for the reader of the tree to say.  Refused, with the place: a
 * key that comes twice, what is not UTF-8, and more than the limits of yaml.h.  Nodes live in the caller's arena. */
#ifndef CAIRN_BASE_TOML_H
#define CAIRN_BASE_TOML_H

#include "base/yaml.h"

/* The root is a map.  Messages begin with "PATH:LINE:COLUMN: ". */
int toml_read(const char *path, struct arena *arena, struct yaml_node **out, struct cairn_error *err);
int toml_parse(const char *name, const char *text, size_t len, struct arena *arena, struct yaml_node **out,
               struct cairn_error *err);

#endif
