/* SPDX-License-Identifier: Apache-2.0
 * Samples of a Wan model, as latents: from noise, step by step, with classifier-free guidance (CFG).
 *
 * The model's passes are forward alone.  Nothing of a job that trains changes: its weights, LoRAs and random numbers
 * are afterwards what they were, and the workspace is freed.  The same seed gives the same bits on the same device,
 * wherever the weights live.  The prompt and the negative prompt of a small sample go through the model in one batch,
 * those of a large one after the other; the two ways differ in their last bits. */
#ifndef CAIRN_TRAIN_WAN_GENERATE_H
#define CAIRN_TRAIN_WAN_GENERATE_H

#include "nn/wan_work.h"
#include "train/task.h"
#include "video/solver.h"
#include <signal.h>

/* One sample. */
struct wan_clip {
    struct wan_size size; /* of the latents */
    const float *text,
        *negative; /* text_rows x text_width each, zeros behind the caption; negative: NULL with cfg 1 */
    /* I2V: the model's further input channels [in - out, frames, h, w].  TI2V: the latents [out, 1, h, w] of a clean
     * first frame.  NULL: none. */
    const float *image;
    const float *clip; /* CLIP features where the model takes them */
    size_t steps;
    double cfg, cfg_high; /* cfg_high: of the expert for much noise; 0: cfg */
    double shift;
    double
        boundary; /* timesteps from 1000 boundary on belong to the expert for much noise, where there are two */
    enum solver_kind solver;
    uint64_t seed;
    double lora_scale;                                     /* 1: as trained, 0: off */
    bool one_by_one;                                       /* never both prompts in one batch */
    void (*progress)(void *to, size_t step, size_t steps); /* after each step; NULL: none */
    void *to;
    const volatile sig_atomic_t *stop; /* Ctrl-C; may be NULL */
};

/* Into latents [out, frames, h, w], of a task whose model is a Wan.  It calls task_use_base itself.  A value that is
 * not finite is an error that names the step. */
int wan_generate(struct task *t, const struct wan_clip *c, float *latents, struct cairn_error *err);
/* Its workspace.  guided: with CFG. */
struct work_bytes wan_generate_bytes(const struct wan *m, struct wan_size size, bool guided, bool one_by_one);

/* Applies the LoRAs of files, of any dialect, to the samples that follow.  A file whose name says high or low noise is for that
 * expert alone, where the model has both; one with the LoRAs of both gives each its own.  Drop them before the next
 * training step: then the weights are exactly what they were. */
int wan_generate_use_loras(struct task *t, const char *const *files, const double *strengths, size_t n,
                           struct cairn_error *err);
int wan_generate_drop_loras(struct task *t, struct cairn_error *err);

#endif
