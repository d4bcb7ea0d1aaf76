/* SPDX-License-Identifier: Apache-2.0
 * The loss on the validation data. */
#include "train/job.h"
#include <math.h>
#include <stdlib.h>

uint64_t job_val_samples(const struct job *j)
{
    const struct task_ops *ops = j->task->ops;
    return ops->val_samples ? ops->val_samples(j->task) : 0;
}

/* The losses of the batches that use a base: sum, units for each.  Rank r computes batches r, r + ranks, … */
static int evaluate_base(struct job *j, size_t base, double (*parts)[2], uint64_t batches,
                         struct cairn_error *err)
{
    struct task *t = j->task;
    uint64_t micro = j->state.layout.micro;
    for (uint64_t i = 0; i < batches; i++) {
        struct model_pass p = job_pass(j, 0, false);
        p.stream = i; /* evaluations are alike, at whatever step */
        if (i % (uint64_t)comm_size(j->o->comm) != (uint64_t)comm_rank(j->o->comm) ||
            (t->ops->base_of_val && t->ops->base_of_val(t, i, micro) != base))
            continue;
        if ((t->ops->base_of_val && job_use_base(j, base, err)) ||
            t->ops->put_val(t, j->work, i, micro, err) || t->model->ops->run(j->work, &p, NULL, err) ||
            t->model->ops->loss(j->work, 0, &parts[i][0], &parts[i][1], err))
            return -1;
    }
    return 0;
}

/* Of one quarter of the timesteps, or of all. */
static double mean_of(const double (*parts)[2], uint64_t batches, uint64_t per_quarter, uint64_t quarter)
{
    double sum = 0, n = 0;
    for (uint64_t i = 0; i < batches; i++) { /* in this order, whatever the bases */
        if (quarter < EVALUATION_QUARTERS && i / per_quarter % EVALUATION_QUARTERS != quarter)
            continue;
        sum += parts[i][0];
        n += parts[i][1];
    }
    return sum / n;
}

static int evaluate_bases(struct job *j, double (*parts)[2], uint64_t batches, struct cairn_error *err)
{
    const struct task *t = j->task;
    size_t bases = t->ops->base_of_val ? t->model->n_bases : 1;
    for (size_t i = 0; i < bases; i++)
        if (evaluate_base(j, i, parts, batches, err))
            return -1;
    return 0;
}

/* Of an evaluation; at least one. */
static uint64_t val_batches(const struct job *j, uint64_t micro)
{
    uint64_t batches = job_val_samples(j) / micro;
    uint64_t most = (uint64_t)(j->c->eval.batches * j->c->train.batch) / micro;
    batches = batches > most ? most : batches;
    return batches ? batches : 1;
}

int job_evaluate(struct job *j, void *to, struct cairn_error *err)
{
    struct evaluation *out = to;
    struct task *t = j->task;
    bool again;
    CLEANUP(mem_free) double(*parts)[2] = NULL;
    uint64_t micro, batches;
    do {
        struct cairn_error ignored;
        micro = j->state.layout.micro;
        batches = val_batches(j, micro);
        free(parts);
        parts = calloc(batches, sizeof(*parts));
        if (!parts)
            return cairn_fail(err, CAIRN_EIO, "no memory for an evaluation");
        int r = evaluate_bases(j, parts, batches, err);
        if (r && err->code != CAIRN_ENOMEM)
            return -1;
        if (job_vote(j, r, &again, r ? &ignored : err) || r)
            return -1;
    } while (again);
    if (job_merge(j, parts[0], 2 * batches, err))
        return -1;
    uint64_t per_quarter = (uint64_t)j->c->train.batch / micro;
    out->loss = mean_of(parts, batches, per_quarter, EVALUATION_QUARTERS);
    for (uint64_t q = 0; q < EVALUATION_QUARTERS; q++)
        out->quarter[q] = t->has_quarters ? mean_of(parts, batches, per_quarter, q) : (double)NAN;
    return 0;
}
