/* SPDX-License-Identifier: Apache-2.0 */
#include "start/sample.h"

#include "start/open_device.h"
#include "start/own_env.h"
#include "start/watch_calls.h"
#include "train/run_folder.h"
#include "train/task_wan.h"

/* Without LoRA files, samples are those that the job would make before its first step. */
static void begin_with_loras(struct loaded_model *t)
{
    const char *paths[] = { t->config.lora.path, wan_keys(&t->config)->lora.high_noise_path };
    const char **loras = ARENA_NEW(&t->arena, const char *, ARRAY_LEN(paths));
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (paths[i][0])
            loras[n++] = paths[i];
    t->place.loras = loras;
    t->place.n_loras = n;
}

/* That of a run was read when the run was found. */
static int read_config(struct loaded_model *t, const struct start_sample_options *o, struct cairn_error *err)
{
    const char *file = t->place.config;
    if (file && start_parse_config(file, &t->config, o->messages, err))
        return -1;
    if (start_change_config(&o->changes, &t->config, err) ||
        (o->adjust && o->adjust(o->ctx, &t->config, err)))
        return -1;
    if (!file)
        return 0;
    if (task_of(&t->config) != &task_wan) {
        cairn_fail(err, CAIRN_EUSAGE, "%s: a %s model is sampled from a run or from its own files", file,
                   t->config.schema->kind);
        return cairn_hint(err, "cairn tensor merge adds a LoRA to a model, which cairn sample takes");
    }
    if (!t->place.n_loras)
        begin_with_loras(t);
    return t->config.model.path[0] ? 0 : start_check_weights(&t->config, err);
}

int start_sample_open(struct loaded_model *t, const struct start_sample_options *o, struct cairn_error *err)
{
    if (loaded_model_find(t, &o->model, err) || read_config(t, o, err))
        return -1;
    own_env_apply(o->messages);
    if (watch_calls(o->hang_after_s, NULL, o->messages, err) ||
        start_open_device(&t->config, &t->arena, &t->options, err))
        return -1;
    int r = loaded_model_open(t, err);
    if (r)
        run_folder_hint(&t->config, err);
    return r;
}

void start_sample_close(struct loaded_model *t)
{
    struct gpu *g = t->options.g;
    loaded_model_close(t);
    gpu_close(g);
}
