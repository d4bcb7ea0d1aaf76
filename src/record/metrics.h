/* SPDX-License-Identifier: Apache-2.0
 * What a training run writes down, step by step, into its folder: log.jsonl, a line a step (measure.h), and
 * events.out.tfevents.*, the same for TensorBoard.
 *
 * Training is not stopped by a disk that is full: what could not be written waits in memory and is written when there
 * is room again.  One thread at a time. */
#ifndef CAIRN_RECORD_METRICS_H
#define CAIRN_RECORD_METRICS_H

#include "record/measure.h"

struct metrics;

/* first is the first step that will be added: 1 for a new run, 121 after a checkpoint of step 120.  Lines of this step and
 * later ones are taken from an existing log, and so is a torn last line; TensorBoard is told to forget them.  Fails also
 * when another process writes to this folder. */
int metrics_open(const char *dir, uint64_t first, struct metrics **out, struct cairn_error *err);
/* Fails when another process does now: its checkpoints come and go. */
int metrics_check(const char *dir, struct cairn_error *err);
/* Lines with an event are written at once, others at most a second later, if steps go on.  Before work that takes long,
 * call metrics_flush. */
void metrics_add(struct metrics *m, const struct measure *step);
/* A text for TensorBoard, such as a sample; it is shown as Markdown. */
void metrics_add_text(struct metrics *m, uint64_t step, const char *tag, const char *text);
void metrics_flush(struct metrics *m);
/* Why nothing can be written: once when it begins, NULL afterwards and when all is well. */
const struct cairn_error *metrics_trouble(struct metrics *m);
/* Writes what is left.  Fails if something was lost. */
int metrics_close(struct metrics *m, struct cairn_error *err);

#endif
