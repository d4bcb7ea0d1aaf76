/* SPDX-License-Identifier: Apache-2.0
 * All that a training job has open: data, model, optimizer, files. */
#ifndef CAIRN_TRAIN_JOB_H
#define CAIRN_TRAIN_JOB_H

#include "nn/gpt_room.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/metrics.h"
#include "train/optim.h"
#include "train/sample.h"
#include "train/schedule.h"
#include "train/slow.h"
#include "train/ticker.h"
#include "train/train.h"

/* Of the device's memory. */
enum job_part { JOB_WEIGHTS, JOB_OPTIMIZER, JOB_ACTIVATIONS, JOB_SAMPLER, JOB_PARTS };

struct job {
    const struct train_options *o;
    struct train_config *c;
    struct arena arena;
    struct nn nn;
    struct tokenizer *tokenizer;
    struct data *data;
    struct gpt *m;
    struct lora_options lora; /* rank 0: none */
    struct optim *optim;
    struct gpt_room *room;
    struct sampler *sampler;
    struct metrics *metrics;
    struct checkpoints *checkpoints;
    struct checkpoint_state state; /* as of the last step that is done */
    struct schedule schedule;
    struct ticker ticker;
    struct slow slow;
    char config_hash[33];
    const char *event; /* to be told in the next step's line, with the note; NULL: none */
    char note[512];
    bool told_help; /* that the host widens weights */
    const char *why_storage;
    uint64_t planned_bytes[JOB_PARTS], taken_bytes[JOB_PARTS];
    int32_t *ids, *targets; /* of a micro-batch */
};

/* In this order.  job_close accepts a half-open one. */
int job_read_shape(struct job *j, struct cairn_error *err);
int job_open_data(struct job *j, struct cairn_error *err);
int job_open_model(struct job *j, struct cairn_error *err);
/* Parts of that: the network without its numbers; these, from model.path or new. */
int job_open_network(struct job *j, struct cairn_error *err);
int job_fill_model(struct job *j, struct cairn_error *err);
/* Room for the passes of a step: smaller ones are tried when memory is short, and what was done is said. */
int job_open_room(struct job *j, struct cairn_error *err);
int job_open_sampler(struct job *j, struct cairn_error *err); /* where it is not open yet */
void job_close(struct job *j);

/* One rung down: recompute, then micro-batches of half the size.  CAIRN_ENOMEM with `why` when there is none left. */
int job_step_down(struct job *j, const struct cairn_error *why, struct cairn_error *err);
size_t job_micros(const struct job *j); /* micro-batches of a step */
/* A tokenizer that was learned or read is kept with the run, so that it does not change under it. */
int job_keep_tokenizer(struct job *j, struct cairn_error *err);
struct checkpoint_model job_checkpoint_model(struct job *j);
void job_say(struct job *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A line to log.jsonl and to --json-events. */
void job_log(struct job *j, const struct measure *m);
/* What the process or the device holds now. */
uint64_t job_memory(const struct job *j);
void job_summary(struct job *j);
/* At the end: what was planned, and what was taken. */
void job_say_taken(struct job *j);

#endif
