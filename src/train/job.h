/* SPDX-License-Identifier: Apache-2.0
 * All that a training job has open: data, model, optimizer, files. */
#ifndef CAIRN_TRAIN_JOB_H
#define CAIRN_TRAIN_JOB_H

#include "nn/gpt_work.h"
#include "train/checkpoint.h"
#include "text/data.h"
#include "record/run_log.h"
#include "train/optim.h"
#include "train/sample.h"
#include "train/schedule.h"
#include "train/slow.h"
#include "record/ticker.h"
#include "train/train.h"

/* What memory is for. */
enum job_part {
    JOB_WEIGHTS,
    JOB_GRADIENTS,
    JOB_OPTIMIZER,
    JOB_ACTIVATIONS,
    JOB_SAMPLER,
    JOB_WORK,       /* of products and sums */
    JOB_CHECKPOINT, /* what is being written */
    JOB_PARTS,
};
enum { JOB_RUNGS_MOST = 8 };
struct job_plan {
    uint64_t device[JOB_PARTS], host[JOB_PARTS];
};

struct job {
    const struct train_options *o;
    struct job_config *c;
    struct arena arena;
    struct nn nn;
    struct tokenizer *tokenizer;
    struct data *data;
    struct gpt *m;
    struct lora_options lora; /* rank 0: none */
    struct optim *optim;
    struct gpt_work *room;
    struct sampler *sampler;
    struct run_log *metrics;
    struct checkpoints *checkpoints;
    struct checkpoint_state state; /* as of the last step that is done */
    struct schedule schedule;
    struct ticker ticker;
    struct slow slow;
    char config_hash[33];
    const char *event; /* to be told in the next step's line, with the note; NULL: none */
    char note[512];
    uint64_t saved_step; /* of the last checkpoint, whether it could be written or not */
    bool unsaved;        /* the next one is worth a try at the same step */
    bool data_failed;    /* a file of tokens cannot be read any more */
    bool torn;           /* memory ran out when some of a step's weights had moved */
    bool told_help;      /* that the host widens weights */
    const char *why_storage;
    struct job_plan plan;
    bool quiet; /* what gives way is told by somebody else */
    uint64_t taken_bytes[JOB_PARTS];
    uint64_t work_bytes;                /* that was taken before the network was */
    bool optim_stays, blocks_stay;      /* there is no room on the host */
    bool optim_by_need, blocks_by_need; /* went there in the middle of a run */
    int falls;                          /* how often something went there so */
    bool told_holes, told_stays, host_was_short;
    uint64_t host_most;                  /* of its memory, that was available */
    double looked_s;                     /* at the host's memory, last */
    char given_way[JOB_RUNGS_MOST][160]; /* what was done for want of memory, in order */
    size_t n_given_way;
    int32_t *ids, *targets; /* of a micro-batch */
};

/* In this order.  job_close accepts a half-open one. */
int job_read_shape(struct job *j, struct cairn_error *err);
void job_set_start(struct job *j); /* at step 0, laid out as the configuration says */
int job_open_data(struct job *j, struct cairn_error *err);
int job_new_network(struct job *j, struct cairn_error *err); /* without memory */
int job_fit(struct job *j, struct cairn_error *err);
int job_fit_again(struct job *j, struct cairn_error *err); /* from how it is laid out now */
void job_warm(struct job *j);
/* The model and its optimizer, with the numbers of a checkpoint (NULL: of model.path, or new). */
int job_load(struct job *j, const char *from, struct cairn_error *err);
/* Parts of that: the network's memory; its numbers, from model.path or new. */
int job_take_network(struct job *j, struct cairn_error *err);
int job_fill_model(struct job *j, struct cairn_error *err);
/* Room for the passes of a step: smaller ones are tried when memory is short, and what was done is said. */
int job_open_work(struct job *j, struct cairn_error *err);
int job_open_sampler(struct job *j, struct cairn_error *err); /* where it is not open yet */
/* Text from the configuration's prompts: said, and kept with the run.  `to` is not used. */
int job_sample(struct job *j, void *to, struct cairn_error *err);
void job_close(struct job *j);

/* ---- memory: job_memory.c ---- */

/* What the job takes as it is laid out now. */
void job_plan(const struct job *j, struct job_plan *out);
uint64_t job_plan_sum(const uint64_t bytes[JOB_PARTS]);
/* Whether memory is the device's or the host's: for the CPU all is one. */
uint64_t job_plan_bound(const struct job *j, const struct job_plan *p);
extern const char *const job_part_names[JOB_PARTS];

/* One rung down, and what is open is moved; the room must be opened again.  CAIRN_ENOMEM with `why` when there is none
 * left. */
int job_step_down(struct job *j, const struct cairn_error *why, struct cairn_error *err);
/* Transfers that the device did not take so far. */
uint64_t job_refused(const struct job *j);
/* After one more at the start: the next part that can live on the host does so, until a checkpoint finds that it can come over.
 * false: there is none. */
bool job_leave_on_host(struct job *j, const struct cairn_error *why);
/* After an error at the start: the host has no room for parts that should live there, so they stay.  false: another error. */
bool job_keep_near(struct job *j, const struct cairn_error *why);
/* What went to the host in the middle of the run comes back where there is room again. */
int job_step_up(struct job *j, struct cairn_error *err);
/* Warns once of memory that is free in small holes only. */
void job_tell_holes(struct job *j);
/* Once each time the host has next to no memory left: somebody may be ended for it. */
bool job_host_is_short(struct job *j);
/* Does it, and again with less memory while there is too little and something can give way. */
int job_with_less(struct job *j, int (*fn)(struct job *j, void *to, struct cairn_error *err), void *to,
                  struct cairn_error *err);
struct optim_options job_optim_options(const struct job *j);
struct gpt_work_options job_work_options(const struct job *j);
size_t job_micros(const struct job *j); /* micro-batches of a step */
/* A tokenizer that was learned or read is kept with the run, so that it does not change under it. */
int job_keep_tokenizer(struct job *j, struct cairn_error *err);
struct checkpoint_model job_checkpoint_model(struct job *j);
void job_say(struct job *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A line to log.jsonl and to --json-events. */
void job_log(struct job *j, const struct step_record *m);
/* The pool's figures, and the copies that went another way. */
void job_measure_memory(const struct job *j, struct step_record *m);
/* What the process or the device holds now. */
uint64_t job_memory(const struct job *j);
void job_summary(struct job *j);
/* What is planned; and, at the end, what was taken. */
void job_say_plan(struct job *j);
void job_say_taken(struct job *j);

#endif
