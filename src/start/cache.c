/* SPDX-License-Identifier: Apache-2.0 */
#include "start/cache.h"

#include "os/info.h"
#include "os/list.h"
#include "run/job_file.h"
#include "start/device_memory.h"
#include "start/open_device.h"
#include "start/own_env.h"
#include "start/restart.h"
#include "start/watch_calls.h"
#include "train/foreign_toolkit.h"
#include "train/wan_cache.h"
#include <string.h>
#include <unistd.h>

/* ---- configuration ---- */

/* A dataset without a configuration: its file or folder is data.path. */
static bool is_dataset(const char *file, struct arena *a)
{
    struct job_file f;
    struct yaml_node *root;
    struct cairn_error ignored = { 0 };
    if (os_is_folder(file))
        return true;
    bool is_job = !yaml_read(file, a, &root, &ignored) && foreign_is_toolkit(root) && foreign_has_model(root);
    return !is_job && job_file_read(file, a, &f);
}

static int read_dataset(struct job_config *c, const char *file, struct cairn_error *err)
{
    static const char text[] = "model: {kind: wan}\n";
    return config_read_text(c, "the defaults", text, strlen(text), err) ||
                   config_set(c, "the argument", "data.path", file, err)
               ? -1
               : 0;
}

static int read_config(struct start_cache *s, const struct start_cache_options *o, struct arena *a,
                       struct cairn_error *err)
{
    const struct {
        const char *option, *key, *value;
    } rows[] = {
        { "--vae", "model.vae_path", o->vae },
        { "--text-encoder", "model.text_encoder_path", o->text_encoder },
        { "--tokenizer", "model.tokenizer_path", o->tokenizer },
        { "--dir", "cache.dir", o->dir },
    };
    struct job_config *c = &s->config;
    config_init(c, a);
    if ((is_dataset(o->file, a) ? read_dataset(c, o->file, err)
                                : start_parse_config(o->file, c, o->messages, err)) ||
        start_change_config(&o->changes, c, err))
        return -1;
    if (task_of(c) != &task_wan) {
        cairn_fail(err, CAIRN_EUSAGE, "%s: `cairn cache` is for video models, but model.kind is %s", o->file,
                   task_of(c)->schema->kind);
        return cairn_hint(err, "cairn train prepares text by itself");
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].value && config_set(c, rows[i].option, rows[i].key, rows[i].value, err))
            return -1;
    return wan_cache_assume_task(c, &s->assumed_task, err) || config_check(c, err) ? -1 : 0;
}

/* ---- the dataset ---- */

static void show_probed(void *context, size_t done, size_t total)
{
    FILE *talk = context;
    if (talk && isatty(fileno(talk)))
        fprintf(talk, done < total ? "\rfile %zu of %zu" : "\r\033[K", done, total);
}

static int need_media(const struct start_cache *s, struct cairn_error *err)
{
    if (wan_cache_has_media(&s->config))
        return 0;
    const char *first = wan_keys(&s->config)->data.path.item[0];
    CLEANUP(os_list_close) struct os_list *readable = os_list_open(first, 0);
    if (readable)
        cairn_fail(err, CAIRN_EUSAGE, "%s has no images or clips", first);
    else
        cairn_fail_errno(err, "read the folder %s", first);
    return config_wrap(&s->config, "data.path", "it takes folders of images and clips, or a dataset file",
                       err);
}

int start_cache_list(struct start_cache *s, const struct start_cache_options *o, struct arena *a,
                     struct cairn_error *err)
{
    struct dataset_progress progress = { show_probed, o->talk };
    *s = (struct start_cache){ 0 };
    return read_config(s, o, a, err) || need_media(s, err) ||
                   wan_cache_dataset(&s->config, &progress, o->decode, &s->dataset, err)
               ? -1
               : 0;
}

/* ---- the job ---- */

/* Called by the watchdog thread: the new process skips what is done. */
static void restart_hung(const struct cairn_error *why)
{
    restart_now(why, false);
}

static int open_device(struct start_cache *s, const struct start_cache_options *o, struct arena *a,
                       uint64_t *budget, struct cairn_error *err)
{
    struct train_options t = { .config = &s->config };
    own_env_apply(o->messages);
    restart_prepare(o->argc, o->argv, true, NULL, o->messages, a);
    restart_apply();
    if (restart_wants_cpu() && config_set(&s->config, "the workaround", "train.device", "cpu", err))
        return -1;
    if (restart_set_encoders(&s->config, err))
        return -1;
    restart_set_device(GPU_API_HIP, true); /* until it is open */
    if (watch_calls(o->hang_after_s, restart_hung, o->messages, err) ||
        start_open_device(&s->config, a, &t, err))
        return -1;
    s->g = t.g;
    *budget = t.budget_bytes;
    restart_set_device(gpu_info(s->g)->api, true);
    return 0;
}

int start_cache_run(struct start_cache *s, const struct start_cache_options *o, struct arena *a,
                    struct cairn_error *err)
{
    struct cache_job job;
    uint64_t budget;
    const struct wan_keys *k = wan_keys(&s->config);
    if ((!k->model.vae_path[0] || !k->model.text_encoder_path[0]) && start_check_weights(&s->config, err))
        return -1;
    if (wan_cache_check_clip(&s->config, err) || dataset_check(s->dataset, err) ||
        open_device(s, o, a, &budget, err) || wan_cache_job(&s->config, s->dataset, s->g, a, &job, err))
        return -1;
    if (s->assumed_task)
        message_say(o->messages,
                    "model.path and model.task are not set: the caches are for text-to-video models");
    job.budget = budget;
    job.host_budget = device_memory_host();
    job.again = o->again;
    job.talk = o->talk;
    job.sink = *o->messages;
    job.stop = o->stop;
    if (cache_job_run(&job, &s->result, err))
        return -1;
    if (!o->prune) {
        struct cairn_error ignored;
        cache_stale_list(&job, a, &s->stale, &ignored);
        return 0;
    }
    return cache_stale_list(&job, a, &s->stale, err) || cache_stale_remove(&s->stale, err) ? -1 : 0;
}

void start_cache_close(struct start_cache *s)
{
    cache_result_release(&s->result);
    dataset_close(s->dataset);
    gpu_close(s->g);
}
