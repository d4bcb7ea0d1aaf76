/* SPDX-License-Identifier: Apache-2.0
 * The runs that have a journal, newest first. */
#ifndef CAIRN_RUN_HISTORY_H
#define CAIRN_RUN_HISTORY_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_run {
    const char *dir, *name; /* name: the folder's */
    const char *started;    /* "2026-11-15T06:05:35Z"; NULL: its journal does not say */
    const char *command;    /* in one line; NULL: not known */
    const char *class_id;   /* of its last diagnosis; NULL: none */
    const char *change;     /* of its last attempt; NULL: none */
    bool ended;             /* it has a verdict */
    bool running;           /* its process is there */
    int64_t code, attempts;
    double seconds; /* all attempts together */
};

/* What is damaged is listed with what could be read. */
size_t history_read(const char *state, struct arena *a, struct history_run **out);

/* "last", "#2" or "2" (1 is the newest), or the name of a folder. */
bool history_is_name(const char *word);
/* Its folder; NULL: there is no such run. */
const char *history_find(const char *state, const char *name, struct arena *a);

#endif
