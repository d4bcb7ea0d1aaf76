/* SPDX-License-Identifier: Apache-2.0
 * How much memory a job needs, and which layout fits: pure functions of the model, the layout and the limits.
 *
 * A layout says how a step is split and where the parts of a job live.  When memory is short, fallbacks are
 * applied, the cheapest first.  Nothing here allocates, prints or queries the machine, so several processes
 * with the same arguments reach the same result. */
#ifndef CAIRN_TRAIN_MEMORY_PLAN_H
#define CAIRN_TRAIN_MEMORY_PLAN_H

#include "train/optim.h"
#include "train/task.h"

struct job_layout {
    uint64_t micro; /* samples per micro-batch */
    bool recompute; /* gradient checkpointing */
    bool optim_on_host, inputs_on_host;
    struct model_layout weights;
};

/* The parts of a job that need memory. */
enum memory_part {
    MEMORY_WEIGHTS,
    MEMORY_GRADIENTS,
    MEMORY_OPTIMIZER,
    MEMORY_ACTIVATIONS,
    MEMORY_SAMPLER,
    MEMORY_WORK,       /* workspace of matmuls and reductions */
    MEMORY_CHECKPOINT, /* the copy that is being written */
    MEMORY_PARTS,
};
extern const char *const memory_part_names[MEMORY_PARTS];
extern const char *const memory_idle_names[]; /* of enum model_idle */
struct memory_plan {
    uint64_t device[MEMORY_PARTS], host[MEMORY_PARTS];
};

/* What a plan depends on besides the layout. */
struct memory_job {
    const struct task *task; /* with its model */
    struct optim_options optim;
    uint64_t step_samples;      /* batch * accumulate, of this rank */
    size_t ranks;               /* that train together; 0 counts as 1 */
    bool exact;                 /* gradients are summed in a tree (grad_tree.h) */
    uint64_t fixed_bytes;       /* allocated by libraries and the task's data before the model */
    struct work_bytes reserved; /* reduction buffers and packed operands that exist already */
    bool samples;               /* the job makes samples */
    bool only_samples;          /* it does nothing else: no gradients, no optimizer, no step */
    bool is_cpu;                /* device memory is the host's */
    bool is_unified;            /* the device shares memory with the host */
};

/* Available memory, and parts that must stay where they are. */
struct memory_limits {
    uint64_t device_bytes, host_bytes; /* 0: not known */
    enum config_place optimizer, inputs, idle;
    bool blocks_on_device;                           /* the configuration wants all of them there */
    uint64_t streamed_least;                         /* it wants so many blocks on the host */
    bool optim_pinned, blocks_pinned, inputs_pinned; /* the host refused them before */
    bool is_allocated; /* host_bytes does not count what the job has on the host already */
};

void memory_plan(const struct memory_job *m, const struct job_layout *l, struct memory_plan *out);
uint64_t memory_plan_sum(const uint64_t bytes[MEMORY_PARTS]);
/* The bytes that count against the device's limit; includes the host's part where memory is shared. */
uint64_t memory_plan_bound(const struct memory_job *m, const struct memory_plan *p);
struct work_options memory_work_options(const struct memory_job *m, const struct job_layout *l);
/* Micro-batches per step, of this rank. */
size_t memory_micros(const struct memory_job *m, const struct job_layout *l);

/* Can parts of this job live on the host at all? */
bool memory_can_offload_optimizer(const struct memory_job *m);
bool memory_can_offload_blocks(const struct memory_job *m);
bool memory_can_save_inputs(const struct memory_job *m);
/* Can only the base in use be on the device?  from_file: without copies on the host. */
bool memory_can_take_turns(const struct memory_job *m, bool from_file);

/* Applies the next fallback and describes it in `text`.  false: none is left. */
enum { FALLBACK_TEXT = 160 };
bool memory_fallback(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                     char text[FALLBACK_TEXT]);

/* After fallbacks: moves blocks back to the device for which there is memory after all.  false: none. */
bool memory_relax(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                  char text[FALLBACK_TEXT]);

/* What was offloaded while the job ran, because memory was short. */
struct memory_evicted {
    bool optimizer, blocks;
    uint64_t streamed; /* blocks that were on the host before */
    int times;
};
/* The layout with these parts back on the device, if they fit into free_bytes.  false: they stay. */
bool memory_restore(const struct memory_job *m, const struct job_layout *l, const struct memory_evicted *e,
                    uint64_t free_bytes, struct job_layout *out);

/* Whether the plan is within the limits, with some reserve.  When no fallback is left, the reserve may be
 * used up. */
bool memory_fits(const struct memory_job *m, const struct memory_limits *limits, const struct memory_plan *p,
                 bool with_reserve);

#endif
