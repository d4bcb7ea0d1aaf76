/* SPDX-License-Identifier: Apache-2.0
 * What other programs show of a LoRA: the metadata of its file, under the names of musubi-tuner or, with save.files:
 * ai-toolkit, of that.  What is not known is left out.
 *
 * Times, names of files and of the run are there only if save.files asks for the files of a program: else nothing depends
 * on time, host or path, so that a resumed run writes the same bytes. */
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "os/path.h"
#include "train/task_wan_inside.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct metadata {
    struct arena *arena;
    struct st_meta *list;
    size_t n;
};

static void add(struct metadata *m, const char *key, const char *value)
{
    *ARENA_PUSH(m->arena, m->list, m->n) = (struct st_meta){ key, value };
}

static void add_real(struct metadata *m, const char *key, double value)
{
    add(m, key, arena_printf(m->arena, "%.9g", value));
}

static void add_int(struct metadata *m, const char *key, int64_t value)
{
    add(m, key, arena_printf(m->arena, "%lld", (long long)value));
}

/* As Python writes it. */
static void add_bool(struct metadata *m, const char *key, bool value)
{
    add(m, key, value ? "True" : "False");
}

/* ---- what cairn and musubi-tuner write ---- */

static void add_training(struct metadata *m, const struct job_config *c)
{
    static const char *const schedules[] = {
        [CONFIG_SCHEDULE_COSINE] = "cosine",         [CONFIG_SCHEDULE_LINEAR] = "linear",
        [CONFIG_SCHEDULE_CONSTANT] = "constant",     [CONFIG_SCHEDULE_RESTARTS] = "cosine_with_restarts",
        [CONFIG_SCHEDULE_POLYNOMIAL] = "polynomial", [CONFIG_SCHEDULE_REX] = "rex",
    };
    add_real(m, "ss_learning_rate", c->train.lr);
    add(m, "ss_lr_scheduler", schedules[c->train.schedule]);
    add_int(m, "ss_lr_warmup_steps", c->train.warmup);
    add(m, "ss_optimizer", optim_names[c->train.optimizer]);
    add_real(m, "ss_max_grad_norm", c->train.clip);
    add_int(m, "ss_seed", c->train.seed);
    add_int(m, "ss_max_train_steps", c->train.steps);
    add_int(m, "ss_gradient_accumulation_steps", c->train.accumulate);
    add_bool(m, "ss_gradient_checkpointing", c->train.recompute != CONFIG_RECOMPUTE_NONE);
    add_bool(m, "ss_fp8_base", c->model.quantize == CONFIG_QUANTIZE_FP8);
    if (c->lora.dropout > 0)
        add_real(m, "ss_network_dropout", c->lora.dropout);
    if (c->lora.plus != 1)
        add(m, "ss_network_args", arena_printf(m->arena, "{\"loraplus_lr_ratio\": \"%.9g\"}", c->lora.plus));
}

static void add_times(struct metadata *m, const struct flow_options *f)
{
    add(m, "ss_timestep_sampling", flow_sampling_name(f->sampling));
    add_real(m, "ss_discrete_flow_shift", f->shift);
    add_real(m, "ss_sigmoid_scale", f->sigmoid_scale);
    add(m, "ss_weighting_scheme", flow_weighting_name(f->weighting));
    add_real(m, "ss_logit_mean", f->logit_mean);
    add_real(m, "ss_logit_std", f->logit_std);
    add_real(m, "ss_mode_scale", f->mode_scale);
    if (f->min_timestep > 0 || f->max_timestep < 1000)
        add(m, "modelspec.timestep_range", arena_printf(m->arena, "%g,%g", f->min_timestep, f->max_timestep));
}

static void add_data(struct metadata *m, const struct wan_job *t, uint64_t step)
{
    const struct job_config *c = t->task.env.config;
    uint64_t batches = t->batches ? batches_per_epoch(t->batches) : 0;
    add_int(m, "ss_steps", (int64_t)step);
    if (!batches)
        return;
    uint64_t all = (uint64_t)(c->train.steps * c->train.accumulate);
    add_int(m, "ss_epoch", (int64_t)wan_job_epochs(t, step));
    add_int(m, "ss_num_epochs", (int64_t)((all + batches - 1) / batches));
    add_int(m, "ss_num_batches_per_epoch", (int64_t)batches);
    add_int(m, "ss_num_train_items", (int64_t)(t->clips + t->images - t->n_val));
}

/* A time as Python prints it: a number of seconds, and without a zone. */
static void add_dates(struct metadata *m, int64_t started)
{
    time_t now = time(NULL);
    struct tm tm;
    char text[32] = "";
    add(m, "ss_training_started_at", arena_printf(m->arena, "%lld.0", (long long)started));
    add(m, "ss_training_finished_at", arena_printf(m->arena, "%lld.0", (long long)now));
    if (localtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
        add(m, "modelspec.date", arena_strdup(m->arena, text));
}

/* Names of files alone, as musubi-tuner has them. */
static void add_musubi(struct metadata *m, const struct wan_job *t)
{
    const char *base = t->files.bases[0].path, *vae = t->keys.model.vae_path;
    const int64_t session[] = { t->started, (int64_t)getpid() };
    add_int(m, "ss_session_id", (int64_t)(uint32_t)hash_bytes(session, sizeof(session)));
    add_dates(m, t->started);
    add(m, "ss_output_name", wan_job_file_name(t));
    add(m, "modelspec.title", wan_job_file_name(t));
    add(m, "modelspec.resolution", arena_printf(m->arena, "%zux%zu", t->largest.width, t->largest.height));
    add_bool(m, "ss_full_fp16", false);
    add_bool(m, "ss_full_bf16", false);
    if (base && *path_name(base))
        add(m, "ss_sd_model_name", path_name(base));
    if (*path_name(vae))
        add(m, "ss_vae_name", path_name(vae));
}

/* ---- what ai-toolkit writes: values that are not text are JSON ---- */

static void add_json(struct metadata *m, const char *key, const struct json *v)
{
    CLEANUP(mem_free) char *text = json_to_string(v);
    add(m, key, arena_strdup(m->arena, text));
}

static void add_software(struct metadata *m, const char *version)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_text(v, "name", "cairn");
    if (version)
        json_add_text(v, "version", version);
    add_json(m, "software", v);
}

static void add_info(struct metadata *m, uint64_t step, uint64_t epoch)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "step", (int64_t)step);
    json_add_int(v, "epoch", (int64_t)epoch);
    add_json(m, "training_info", v);
}

/* So that programs which show the words of captions show the trigger. */
static void add_trigger(struct metadata *m, const char *trigger)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    struct json *tags = json_add_object(v, arena_printf(m->arena, "1_%s", trigger));
    json_add_int(tags, trigger, 1);
    add_json(m, "ss_tag_frequency", v);
}

static void add_toolkit(struct metadata *m, const struct wan_job *t, uint64_t step)
{
    static const char *const versions[WAN_TASKS] = {
        [WAN_T2V_1_3B] = "wan_2.1",     [WAN_T2V_14B] = "wan_2.1",      [WAN_I2V_14B] = "wan_2.1",
        [WAN_T2V_A14B] = "wan_2.2_14b", [WAN_I2V_A14B] = "wan_2.2_14b", [WAN_TI2V_5B] = "wan_2.2_5b",
    };
    add(m, "name", wan_job_file_name(t));
    add_software(m, t->task.env.version);
    add_info(m, step, wan_job_epochs(t, step));
    add(m, "ss_base_model_version", versions[t->kind]);
    add(m, "ss_output_name", wan_job_file_name(t));
    if (t->keys.data.trigger[0])
        add_trigger(m, t->keys.data.trigger);
}

/* ---- */

/* The user's come first and so count. */
static void add_own(struct metadata *m, const struct config_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        size_t key = strcspn(list->item[i], "=");
        add(m, arena_strndup(m->arena, list->item[i], key), list->item[i] + key + 1);
    }
}

void wan_job_describe(const void *job, uint64_t step, struct arena *a, struct wan_save_meta *out)
{
    static const char *const precisions[] = { [GPU_F32] = "no", [GPU_F16] = "fp16", [GPU_BF16] = "bf16" };
    const struct wan_job *t = job;
    struct metadata m = { .arena = a };
    bool toolkit = t->keys.save.files == LORA_FILES_AI_TOOLKIT;
    add_own(&m, &t->keys.save.meta);
    if (toolkit) {
        add_toolkit(&m, t, step);
    } else {
        add_data(&m, t, step);
        add_training(&m, t->task.env.config);
        add(&m, "ss_mixed_precision", precisions[t->task.env.nn->storage]);
        add_times(&m, &t->flow);
    }
    if (t->keys.save.files == LORA_FILES_MUSUBI)
        add_musubi(&m, t);
    *out = (struct wan_save_meta){ m.list, m.n, toolkit };
}
