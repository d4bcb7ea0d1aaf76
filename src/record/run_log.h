/* SPDX-License-Identifier: Apache-2.0
 * The log of a training run, in its folder: log.jsonl, one line per step (step_record.h), and
 * events.out.tfevents.*, the same for TensorBoard.
 *
 * A full disk does not stop training: lines wait in memory until there is space again.  One thread at a
 * time. */
#ifndef CAIRN_RECORD_RUN_LOG_H
#define CAIRN_RECORD_RUN_LOG_H

#include "record/step_record.h"

struct run_log;

/* first is the first step that will be added: 1 for a new run, 121 after a checkpoint of step 120.  Lines of
 * this step and later ones are removed from an existing log, and so is an incomplete last line; TensorBoard
 * drops them too.  Fails if another process writes to this folder. */
int run_log_open(const char *dir, uint64_t first, struct run_log **out, struct cairn_error *err);
/* Fails if another process writes to this folder now: its checkpoints come and go. */
int run_log_check(const char *dir, struct cairn_error *err);
/* Lines with an event are written at once, others at most a second later if further steps follow.  Call
 * run_log_flush before long work. */
void run_log_add(struct run_log *m, const struct step_record *step);
/* Adds a text for TensorBoard, such as a sample; it is shown as Markdown. */
void run_log_add_text(struct run_log *m, uint64_t step, const char *tag, const char *text);
void run_log_flush(struct run_log *m);
/* The write error, once when it starts; NULL afterwards and if there is none. */
const struct cairn_error *run_log_trouble(struct run_log *m);
/* Writes the rest.  Fails if anything was lost. */
int run_log_close(struct run_log *m, struct cairn_error *err);

#endif
