/* SPDX-License-Identifier: Apache-2.0
 * The record of a run, in its own folder <state>/runs/<time>-<pid>/ with
 *     log            the trainer's output (see run/recorder.h)
 *     events.jsonl   one object per line: start, attempt, memory, hang, verdict, change, end
 *     env            the variables that cairn changed, as lines for a shell
 *     facts.json     the machine
 *     context.json   input of the diagnosis (see run/context.h)
 *     verdict.json   how it ended and why
 * A journal that cannot be written does not stop a training: the reason is reported once. */
#ifndef CAIRN_RUN_JOURNAL_H
#define CAIRN_RUN_JOURNAL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include <stdbool.h>
#include <stdio.h>

struct journal {
    char *dir;           /* NULL: no folder */
    int fd;              /* of dir */
    FILE *events, *copy; /* copy: --json-events */
    struct cairn_error trouble;
    bool trouble_said;
};

/* state NULL: no folder, events go to the copy only.  If the folder cannot be made, see journal_trouble;
 * if the copy cannot be opened, this fails, since the user named it. */
int journal_open(struct journal *j, const char *state, const char *copy, struct cairn_error *err);
/* The same in an empty folder of the caller's, which must not be pruned. */
struct own_dir;
int journal_open_in(struct journal *j, const struct own_dir *dir, const char *copy, struct cairn_error *err);
void journal_close(struct journal *j);
/* A path in the folder, on the heap; NULL if there is no folder. */
char *journal_path(const struct journal *j, const char *name);

/* Starts an event; the caller adds to it and passes it to journal_add, which frees it. */
struct json *journal_event(const char *name);
void journal_add(struct journal *j, struct json *event);
/* Adds this process to the start event, with its start time, since a pid may be reused. */
void journal_add_process(struct json *start);
/* Whether the process of a start event still runs. */
bool journal_is_running(const struct json *start);
/* Replaces a file in the folder atomically. */
void journal_write_text(struct journal *j, const char *name, const char *text);
void journal_write(struct journal *j, const char *name, const struct json *v);
/* A nested run leaves a mark in the outer run's folder, which CAIRN_RUN names. */
void journal_tell_outer(const struct journal *j, const char *outer);
bool journal_has_inner(const struct journal *j);
/* Native training under `cairn run` names its folder in the journal that CAIRN_RUN names. */
void journal_tell_training(const char *outer, const char *run_dir);
/* That folder, the last one if there were several; NULL: none was named. */
const char *journal_training(const char *dir, struct arena *a);
/* Why the journal is incomplete; NULL: it is complete, or the reason was already returned. */
const struct cairn_error *journal_trouble(struct journal *j);

/* Removes all but the newest JOURNAL_KEEP runs; never one that is less than a day old or still running. */
enum { JOURNAL_KEEP = 50 };
void journal_prune(const char *state);

#endif
