/* SPDX-License-Identifier: Apache-2.0 */
#include "train/wan_sample.h"
#include "train/task_wan_inside.h"

static int shrink(void *to, struct cairn_error *why)
{
    const struct cairn_error oom = *why;
    return job_fallback(to, &oom, why);
}

int wan_sample_saved(struct loaded_model *model, const char *dir, const struct sample_file **made,
                     size_t *n_made, size_t *n_asked, struct cairn_error *err)
{
    struct wan_job *t = (struct wan_job *)model->job.task;
    t->samples.shrink = shrink;
    t->samples.shrink_to = &model->job;
    if (wan_samples_make(t, dir, model->step, err))
        return -1;
    *made = t->samples.made;
    *n_made = t->samples.n_made;
    *n_asked = t->samples.n;
    return 0;
}
