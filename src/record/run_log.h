/* SPDX-License-Identifier: Apache-2.0
 * What a training run writes down, step by step, into its folder: log.jsonl, a line a step (measure.h), and
 * events.out.tfevents.*, the same for TensorBoard.
 *
 * Training is not stopped by a disk that is full: what could not be written waits in memory and is written when there
 * is room again.  One thread at a time. */
#ifndef CAIRN_RECORD_RUN_LOG_H
#define CAIRN_RECORD_RUN_LOG_H

#include "record/step_record.h"

struct run_log;

/* first is the first step that will be added: 1 for a new run, 121 after a checkpoint of step 120.  Lines of this step and
 * later ones are taken from an existing log, and so is a torn last line; TensorBoard is told to forget them.  Fails also
 * when another process writes to this folder. */
int run_log_open(const char *dir, uint64_t first, struct run_log **out, struct cairn_error *err);
/* Fails when another process does now: its checkpoints come and go. */
int run_log_check(const char *dir, struct cairn_error *err);
/* Lines with an event are written at once, others at most a second later, if steps go on.  Before work that takes long,
 * call run_log_flush. */
void run_log_add(struct run_log *m, const struct step_record *step);
/* A text for TensorBoard, such as a sample; it is shown as Markdown. */
void run_log_add_text(struct run_log *m, uint64_t step, const char *tag, const char *text);
void run_log_flush(struct run_log *m);
/* Why nothing can be written: once when it begins, NULL afterwards and when all is well. */
const struct cairn_error *run_log_trouble(struct run_log *m);
/* Writes what is left.  Fails if something was lost. */
int run_log_close(struct run_log *m, struct cairn_error *err);

#endif
