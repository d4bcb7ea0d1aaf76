/* SPDX-License-Identifier: Apache-2.0
 * Computes the memory a job needs, without allocating it. */
#include "train/job.h"
#include <string.h>

_Static_assert(ARRAY_LEN(((struct train_plan *)0)->parts) >= MEMORY_PARTS,
               "a plan has an entry for each part");
_Static_assert(sizeof(((struct train_plan *)0)->fallbacks) == sizeof(((struct job_memory *)0)->fallbacks),
               "a plan has an entry for each fallback");

static void report_plan(const struct job *j, struct train_plan *out)
{
    const struct memory_plan *p = &j->memory.plan;
    const struct job_layout *l = &j->state.layout;
    for (int i = 0; i < MEMORY_PARTS; i++)
        if (p->device[i] || p->host[i]) {
            out->parts[out->n_parts].name = memory_part_names[i];
            out->parts[out->n_parts].device_bytes = p->device[i];
            out->parts[out->n_parts++].host_bytes = p->host[i];
        }
    out->device_bytes = memory_plan_sum(p->device);
    out->host_bytes = memory_plan_sum(p->host);
    out->budget_bytes = j->o->budget_bytes;
    out->parameters = model_parameters(j->task->model);
    out->trained = model_trained_parameters(j->task->model);
    out->micro = l->micro;
    out->micros = job_micros(j);
    out->recompute = l->recompute;
    out->optim_on_host = l->optim_on_host;
    out->inputs_on_host = l->inputs_on_host;
    out->blocks = model_blocks(j->task->model);
    out->streamed = l->weights.streamed;
    out->idle = memory_idle_names[l->weights.idle];
    out->storage = gpu_storage_name(j->nn.storage);
    out->n_fallbacks = j->memory.n_fallbacks;
    memcpy(out->fallbacks, j->memory.fallbacks, sizeof(out->fallbacks));
}

int train_plan(const struct train_options *o, struct train_plan *out, struct cairn_error *err)
{
    struct job j = { .o = o, .c = o->config, .quiet = true, .only_plan = true };
    *out = (struct train_plan){ 0 };
    int r = job_resolve(&j, err);
    job_set_start(&j);
    if (!r && !(r = job_open_task(&j, err))) {
        if (job_fit(&j, &out->lack) && out->lack.code != CAIRN_ENOMEM)
            *err = out->lack, r = -1;
        report_plan(&j, out);
    }
    job_close(&j);
    return r;
}
