/* SPDX-License-Identifier: Apache-2.0
 * What happened in a run, in a folder of its own: <state>/runs/<time>-<pid>/ with
 *     log            what the trainer printed (see run/recorder.h)
 *     events.jsonl   one object a line: start, attempt, memory, hang, verdict, change, end
 *     env            the environment that cairn changed, as lines for a shell
 *     facts.json     the machine
 *     context.json   what the diagnosis goes by (see run/context.h)
 *     verdict.json   how it ended and why
 * A journal that cannot be written is no reason to stop a training: it falls silent, and says why once. */
#ifndef CAIRN_RUN_JOURNAL_H
#define CAIRN_RUN_JOURNAL_H

#include "base/error.h"
#include "base/json.h"
#include <stdbool.h>
#include <stdio.h>

struct journal {
    char *dir;           /* NULL: there is none */
    int fd;              /* of dir */
    FILE *events, *copy; /* copy: --json-events */
    struct cairn_error trouble;
    bool trouble_said;
};

/* state NULL: no folder, events go to the copy alone.  A folder that cannot be made is trouble, not a failure; a
 * copy that cannot be opened is a failure, since the user named it. */
int journal_open(struct journal *j, const char *state, const char *copy, struct cairn_error *err);
void journal_close(struct journal *j);
/* A path in the folder, on the heap; NULL when there is none. */
char *journal_path(const struct journal *j, const char *name);

/* Starts an event; the caller adds to it and hands it to journal_add, which frees it. */
struct json *journal_event(const char *name);
void journal_add(struct journal *j, struct json *event);
/* Adds to the start event which process this is; the number alone will be another's one day. */
void journal_add_process(struct json *start);
/* Whether the process of a start event is still there. */
bool journal_is_running(const struct json *start);
/* A whole file in the folder, replaced at once. */
void journal_write_text(struct journal *j, const char *name, const char *text);
void journal_write(struct journal *j, const char *name, const struct json *v);
/* A run inside of another says so in the other's folder, which CAIRN_RUN names in its environment. */
void journal_tell_outer(const struct journal *j, const char *outer);
bool journal_has_inner(const struct journal *j);
/* Why the journal is not complete; NULL: it is, or it was said already. */
const struct cairn_error *journal_trouble(struct journal *j);

/* Removes the oldest runs beyond the newest JOURNAL_KEEP; never one that is younger than a day, or still running. */
enum { JOURNAL_KEEP = 50 };
void journal_prune(const char *state);

#endif
