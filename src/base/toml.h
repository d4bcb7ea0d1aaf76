/* SPDX-License-Identifier: Apache-2.0
 * Parses TOML into the nodes of yaml.h, so that one reader serves job files of both formats.
 *
 * Supports tables, arrays of tables, dotted keys, all four kinds of strings, arrays and inline tables.
 * Numbers, dates and booleans are plain scalars, which the caller interprets.  Errors, with the position:
 * duplicate keys, invalid UTF-8, and more than the limits of yaml.h.  Nodes live in the caller's arena. */
#ifndef CAIRN_BASE_TOML_H
#define CAIRN_BASE_TOML_H

#include "base/yaml.h"

/* The root is a map.  Messages begin with "PATH:LINE:COLUMN: ". */
int toml_read(const char *path, struct arena *arena, struct yaml_node **out, struct cairn_error *err);
int toml_parse(const char *name, const char *text, size_t len, struct arena *arena, struct yaml_node **out,
               struct cairn_error *err);

#endif
