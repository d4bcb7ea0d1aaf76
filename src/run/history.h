/* SPDX-License-Identifier: Apache-2.0
 * The supervised runs, which have a journal, newest first. */
#ifndef CAIRN_RUN_HISTORY_H
#define CAIRN_RUN_HISTORY_H

#include "base/arena.h"
#include "base/error.h"
#include "record/runs.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Damaged journals are listed with what could be read. */
size_t history_read(const char *state, struct arena *a, struct run_entry **out);
/* The same in two steps: which there are, with kind, id and dir; and the rest of some of them. */
size_t history_list(const char *state, struct arena *a, struct run_entry **out);
void history_read_runs(struct run_entry *runs, size_t n, struct arena *a);

/* "last", "#2" or "2" (1 is the newest), or the name of a folder. */
bool history_is_name(const char *word);
/* Its folder; NULL: no such run. */
const char *history_find(const char *state, const char *name, struct arena *a);

/* The same in the state folder that this process's environment names; NULL if `name` is no such name.
 * Fails where there is no such run. */
int history_dir(const char *name, struct arena *a, const char **dir, struct cairn_error *err);

#endif
