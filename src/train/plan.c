/* SPDX-License-Identifier: Apache-2.0
 * What a job would take, without taking it. */
#include "train/job.h"
#include <string.h>

_Static_assert(ARRAY_LEN(((struct train_plan *)0)->parts) >= JOB_PARTS, "a plan has room for each part");
_Static_assert(sizeof(((struct train_plan *)0)->given_way) == sizeof(((struct job *)0)->given_way),
               "a plan tells all that a job gave way");

static void report_plan(const struct job *j, struct train_plan *out)
{
    for (int i = 0; i < JOB_PARTS; i++)
        if (j->plan.device[i] || j->plan.host[i]) {
            out->parts[out->n_parts].name = job_part_names[i];
            out->parts[out->n_parts].device_bytes = j->plan.device[i];
            out->parts[out->n_parts++].host_bytes = j->plan.host[i];
        }
    out->device_bytes = job_plan_sum(j->plan.device);
    out->host_bytes = job_plan_sum(j->plan.host);
    out->budget_bytes = j->o->budget_bytes;
    out->parameters = params_count(&j->m->params);
    out->trained = params_count(gpt_trained(j->m));
    out->micro = j->state.micro;
    out->micros = job_micros(j);
    out->recompute = j->state.recompute;
    out->optim_on_host = j->state.optim_on_host;
    out->blocks_on_host = j->state.blocks_on_host;
    out->storage = gpu_storage_name(j->nn.storage);
    out->n_given_way = j->n_given_way;
    memcpy(out->given_way, j->given_way, sizeof(out->given_way));
}

int train_plan(const struct train_options *o, struct train_plan *out, struct cairn_error *err)
{
    struct job j = { .o = o, .c = o->config, .quiet = true };
    *out = (struct train_plan){ 0 };
    int r = job_read_shape(&j, err);
    job_set_start(&j);
    if (!r && !(r = job_open_data(&j, err)) && !(r = job_new_network(&j, err))) {
        if (job_fit(&j, &out->lack) && out->lack.code != CAIRN_ENOMEM)
            *err = out->lack, r = -1;
        report_plan(&j, out);
    }
    job_close(&j);
    return r;
}
