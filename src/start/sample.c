/* SPDX-License-Identifier: Apache-2.0 */
#include "start/sample.h"

#include "start/open_device.h"
#include "start/own_env.h"
#include "start/watch_calls.h"

int start_sample_open(struct loaded_model *t, const struct start_sample_options *o, struct cairn_error *err)
{
    if (loaded_model_find(t, &o->model, err) || start_change_config(&o->changes, &t->config, err) ||
        (o->adjust && o->adjust(o->ctx, &t->config, err)))
        return -1;
    own_env_apply(o->messages);
    return watch_calls(o->hang_after_s, NULL, o->messages, err) ||
                   start_open_device(&t->config, &t->arena, &t->options, err) || loaded_model_open(t, err)
               ? -1
               : 0;
}

void start_sample_close(struct loaded_model *t)
{
    struct gpu *g = t->options.g;
    loaded_model_close(t);
    gpu_close(g);
}
