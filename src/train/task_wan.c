/* SPDX-License-Identifier: Apache-2.0 */
#include "train/task_wan.h"
#include "base/clock.h"
#include "base/str.h"
#include "nn/wan_file.h"
#include "nn/wan_lora_file.h"
#include "os/info.h"
#include "tensor/fp8_scaled.h"
#include "train/task_wan_inside.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct wan_job *wan_job_of(const struct task *t)
{
    return (struct wan_job *)t;
}

static const struct job_config *config_of(const struct wan_job *t)
{
    return t->task.env.config;
}

/* ---- the model's files ---- */

static struct wan_request request_of(const struct job_config *c)
{
    const struct wan_keys *k = wan_keys(c);
    return (struct wan_request){
        .path = c->model.path,
        .high_noise_path = k->model.high_noise_path,
        .task = k->model.task,
        .expert = wan_experts_words[k->model.expert],
        .heads = (size_t)k->model.heads,
    };
}

static bool is_missing(const char *path)
{
    struct os_info info;
    return *path && os_info(path, &info) && errno == ENOENT;
}

/* A plan can do without them, if model.task says what they would be. */
static int find_files(const struct job_config *c, const struct task_env *e, struct wan_files *out,
                      struct cairn_error *err)
{
    struct wan_request r = request_of(c);
    bool none = !*r.path && !*r.high_noise_path;
    if (e->only_plan && *r.task && (none || is_missing(r.path) || is_missing(r.high_noise_path)))
        return wan_assume(&r, out, err);
    if (!wan_find(&r, out, err))
        return 0;
    if (e->only_plan && !*r.task && is_missing(r.path))
        cairn_hint(err, "to plan without the model's file, set model.task");
    bool high =
        *r.high_noise_path && strstr(err->msg, r.high_noise_path) && !(*r.path && strstr(err->msg, r.path));
    return config_wrap(c, high ? "model.high_noise_path" : "model.path",
                       "it takes a Wan transformer: a .safetensors or .pth file, or a folder", err);
}

/* A file in fp8 stays in fp8, unless the configuration says otherwise: nothing would be won by more bits. */
static int resolve(struct job_config *c, const struct task_env *e, struct cairn_error *err)
{
    struct wan_files files = { 0 };
    struct wan_keys *k = c->own;
    int r = find_files(c, e, &files, err);
    if (k->save.files == LORA_FILES_MUSUBI && !config_is_set(c, "save.format"))
        k->save.format = WAN_SAVE_MUSUBI;
    if (!r && !config_is_set(c, "model.quantize") && fp8_is(files.bases[0].info.dtype))
        c->model.quantize = CONFIG_QUANTIZE_FP8;
    wan_files_release(&files);
    return r ? -1 : config_fill(c, err);
}

/* ---- times ---- */

/* Those that people train with: the models' own for sampling, but for Wan 2.1, where less is usual. */
static double shift_of(const struct wan_job *t)
{
    static const double shifts[WAN_TASKS] = {
        [WAN_T2V_1_3B] = 3,  [WAN_T2V_14B] = 3,  [WAN_I2V_14B] = 3,
        [WAN_T2V_A14B] = 12, [WAN_I2V_A14B] = 5, [WAN_TI2V_5B] = 5,
    };
    return t->keys.train.shift > 0 ? t->keys.train.shift : shifts[t->kind];
}

/* ai-toolkit uses 0.875 for I2V too. */
static double boundary_of(const struct wan_job *t)
{
    double own = wan_task_info(t->kind)->boundary;
    if (t->keys.model.boundary > 0)
        return t->keys.model.boundary;
    return own > 0 && t->recipe == FLOW_MUSUBI ? own : 0.875;
}

static int set_flow(struct wan_job *t, struct cairn_error *err)
{
    const struct job_config *c = config_of(t);
    const struct wan_keys *k = &t->keys;
    const char *name = *k->train.timesteps        ? k->train.timesteps
                       : t->recipe == FLOW_MUSUBI ? "shift"
                                                  : "linear";
    enum flow_sampling sampling;
    struct flow_options *o = &t->flow;
    if (flow_sampling_parse(t->recipe, name, &sampling, err))
        return -1;
    *o = flow_options_default(sampling);
    o->shift = shift_of(t);
    o->boundary = boundary_of(t);
    o->sigmoid_scale = k->train.sigmoid_scale;
    o->logit_mean = k->train.logit_mean;
    o->logit_std = k->train.logit_std;
    o->mode_scale = k->train.mode_scale;
    o->preserve_shape = k->train.preserve_distribution_shape;
    o->buckets = (size_t)k->train.timestep_buckets;
    if (config_is_set(c, "train.min_timestep"))
        o->min_timestep = k->train.min_timestep;
    if (config_is_set(c, "train.max_timestep"))
        o->max_timestep = k->train.max_timestep;
    return flow_weighting_parse(k->train.weighting, &o->weighting, err) ||
                   flow_bias_parse(k->train.content_or_style, &o->bias, err) || flow_options_check(o, err)
               ? -1
               : 0;
}

/* ---- opening ---- */

static void close_task(struct task *task)
{
    struct wan_job *t = wan_job_of(task);
    if (!t)
        return;
    if (t->wan)
        model_close(&t->wan->model);
    batches_close(t->batches);
    batches_close(t->regularisation);
    video_cache_close(t->cache);
    wan_job_free_batch(&t->host);
    wan_samples_close(t);
    wan_files_release(&t->files);
    free(t);
}

/* An expert that is trained on the other's times learns nothing of use. */
static int set_experts(struct wan_job *t, struct cairn_error *err)
{
    const struct wan_base_file *first = &t->files.bases[0];
    const struct wan_task_info *info = wan_task_info(first->kind.task);
    enum wan_expert only = first->kind.expert;
    t->both = t->files.n > 1;
    t->kind = t->files.bases[0].kind.task;
    t->side = t->both || only == WAN_EXPERT_NONE ? FLOW_ANY : only == WAN_EXPERT_HIGH ? FLOW_HIGH : FLOW_LOW;
    if (t->keys.train.clean_first_frame && t->kind != WAN_TI2V_5B)
        return config_clash(config_of(t), "train.clean_first_frame", "model.path", err,
                            "train.clean_first_frame is true, but the model is %s: only ti2v-5B is given a "
                            "clean first frame",
                            info->title);
    if (t->both || only != WAN_EXPERT_NONE || info->boundary <= 0 || !first->path)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s: its name does not say which expert of %s it is", first->path,
               info->title);
    return cairn_hint(err, "set model.expert to low or high");
}

static int new_task(const struct task_env *e, struct wan_job **out, struct cairn_error *err)
{
    const struct job_config *c = e->config;
    struct wan_job *t = calloc(1, sizeof(*t));
    if (!t)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    t->keys = *wan_keys(c);
    t->recipe = t->keys.train.recipe;
    t->task = (struct task){
        .ops = &task_wan,
        .env = *e,
        .step_units = (double)(c->train.batch * c->train.accumulate),
        .speed = TASK_S_PER_IT,
        .has_quarters = true,
    };
    *out = t;
    if (find_files(c, e, &t->files, err))
        return -1;
    t->shape = t->files.bases[0].info.shape;
    t->task.hidden_size = t->shape.width;
    for (size_t i = 0; i < t->files.n_warnings; i++)
        message_say(&e->sink, "warning: %s", t->files.warnings[i]);
    wan_keys_warn(c, &e->sink);
    return set_experts(t, err);
}

static int open_task(const struct task_env *e, struct task **out, struct cairn_error *err)
{
    struct wan_job *t = NULL;
    if (new_task(e, &t, err) || set_flow(t, err) || wan_job_open_data(t, err) || wan_samples_open(t, err)) {
        close_task((struct task *)t);
        return -1;
    }
    *out = &t->task;
    return 0;
}

static int open_saved(const struct task_env *e, const struct task_saved *s, struct task **out,
                      struct cairn_error *err)
{
    struct wan_job *t = NULL;
    if (!s->is_run && !s->is_config)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is not a run or a checkpoint of one", s->dir);
    int r = new_task(e, &t, err);
    if (t)
        t->base_alone = s->is_config;
    if (r || wan_samples_open_saved(t, s, err)) {
        close_task((struct task *)t);
        return -1;
    }
    *out = &t->task;
    return 0;
}

/* ---- the model ---- */

static const enum lora_dialect dialects[] = {
    [WAN_SAVE_COMFY] = LORA_COMFY,
    [WAN_SAVE_MUSUBI] = LORA_MUSUBI,
    [WAN_SAVE_DIFFUSERS] = LORA_DIFFUSERS,
};
static const enum dtype save_dtypes[] = {
    [WAN_SAVE_BF16] = DTYPE_BF16,
    [WAN_SAVE_F16] = DTYPE_F16,
    [WAN_SAVE_F32] = DTYPE_F32,
};

static int new_model(struct task *task, struct cairn_error *err)
{
    struct wan_job *t = wan_job_of(task);
    const struct job_config *c = config_of(t);
    struct lora_options lora = {
        .rank = (size_t)c->lora.rank,
        .alpha = (float)c->lora.alpha,
        .dropout = (float)c->lora.dropout,
        .targets = c->lora.targets.item,
        .n_targets = c->lora.targets.n,
    };
    struct wan_options o = {
        .experts = t->both ? WAN_EXPERTS : 1,
        .quantize = c->model.quantize != CONFIG_QUANTIZE_NONE,
        .format = c->model.quantize == CONFIG_QUANTIZE_FP8 ? WEIGHTS_FP8 : WEIGHTS_INT8,
        .lora = t->base_alone ? NULL : &lora,
        .lora_per_expert = t->both && t->keys.lora.experts == WAN_LORA_TWO,
    };
    if (!t->base_alone && t->keys.lora.high_noise_path[0] && !o.lora_per_expert)
        return cairn_fail(err, CAIRN_EUSAGE, "lora.high_noise_path is set, but the job trains one LoRA");
    if (wan_new(task->env.nn, &t->shape, &o, &t->wan, err))
        return -1;
    t->started = (int64_t)time(NULL);
    t->wan->save = (struct wan_save){
        .dialect = dialects[t->keys.save.format],
        .dtype = save_dtypes[t->keys.save.dtype],
        .joined = !t->keys.save.split,
        .no_alpha = t->keys.save.files == LORA_FILES_AI_TOOLKIT,
        .describe = wan_job_describe,
        .to = t,
    };
    const char *note = t->base_alone ? NULL : wan_lora_note(t->wan, 0, t->wan->save.dialect);
    if (note)
        message_say(&task->env.sink, "warning: %s", note);
    task->model = &t->wan->model;
    return 0;
}

static int reload_base(struct task *task, size_t base, struct cairn_error *err)
{
    struct wan_job *t = wan_job_of(task);
    struct param_report report = { 0 };
    int r = wan_file_load(t->wan, base, t->files.bases[base].path, &report, err);
    param_report_release(&report);
    return r;
}

static int load_base(struct wan_job *t, size_t base, struct cairn_error *err)
{
    const struct wan_base_file *f = &t->files.bases[base];
    CLEANUP(str_release) struct str said = { 0 };
    double begin = clock_s();
    if (reload_base(&t->task, base, err))
        return -1;
    wan_kind_say(&f->kind, &f->info, &said);
    message_say(&t->task.env.sink, "%s: %s; loaded in %.1f s", f->path, said.s, clock_s() - begin);
    return 0;
}

/* What the run began with; 0: it begins now. */
static int64_t switch_every_before(const struct wan_job *t)
{
    const struct task_env *e = &t->task.env;
    struct job_config then;
    struct cairn_error ignored = { 0 };
    const char *path = arena_printf(e->arena, "%s/config.yaml", e->dir);
    if (!e->dir[0] || access(path, F_OK))
        return 0;
    config_init(&then, e->arena);
    if (config_read(&then, path, &ignored) || then.schema != &wan_schema)
        return 0;
    return wan_keys(&then)->train.switch_every;
}

/* Where the experts take turns in memory, a change reads the weights of one: not at every step.  A resumed run keeps its
 * order, even if its experts take turns only since memory ran out. */
static void set_switch_every(struct wan_job *t)
{
    enum { TURN = 20 };
    struct wan_keys *k = t->task.env.config->own;
    if (!k->train.switch_every)
        k->train.switch_every = switch_every_before(t);
    if (!k->train.switch_every)
        k->train.switch_every = t->wan->model.layout.idle == MODEL_IDLE_DEVICE ? 1 : TURN;
    t->keys.train.switch_every = k->train.switch_every;
}

static int fill_model(struct task *task, struct cairn_error *err)
{
    struct wan_job *t = wan_job_of(task);
    set_switch_every(t);
    struct wan_request r = request_of(config_of(t));
    if (!t->files.bases[0].path && !*r.path && !*r.high_noise_path)
        return wan_lacks_files(&r, err);
    if (!t->files.bases[0].path) {
        bool high = is_missing(r.high_noise_path);
        cairn_fail(err, CAIRN_EIO, "%s does not exist", high ? r.high_noise_path : r.path);
        return config_wrap(config_of(t), high ? "model.high_noise_path" : "model.path",
                           "set it to a Wan transformer; `cairn plan` does without", err);
    }
    if (wan_init_lora(t->wan, (uint64_t)config_of(t)->train.seed, err))
        return -1;
    for (size_t i = 0; i < t->files.n; i++)
        if (load_base(t, i, err))
            return -1;
    return 0;
}

static const char *lora_path(const struct task *task, size_t set)
{
    const struct wan_job *t = wan_job_of(task);
    const char *high = t->keys.lora.high_noise_path;
    return set && high[0] ? high : config_of(t)->lora.path;
}

static size_t set_of_step(const struct task *task, uint64_t step)
{
    const struct wan_job *t = wan_job_of(task);
    return wan_lora_of(t->wan, wan_job_expert(t, step));
}

static size_t base_of_step(const struct task *task, uint64_t step)
{
    return wan_job_expert(wan_job_of(task), step);
}

static size_t base_of_val(const struct task *task, uint64_t index, size_t n)
{
    return wan_job_val_expert(wan_job_of(task), index, n);
}

/* ---- validation; samples keep no memory ---- */

static uint64_t val_samples(const struct task *task)
{
    return (uint64_t)wan_job_of(task)->n_val * WAN_QUARTERS * (uint64_t)task->env.config->train.batch;
}

static void sample_close(struct task *task)
{
    (void)task;
}

static bool sample_is_open(const struct task *task)
{
    (void)task;
    return false;
}

/* ---- output ---- */

static const char *base_name(const struct task *task, size_t base)
{
    const struct wan_job *t = wan_job_of(task);
    return t->both || t->side != FLOW_ANY ? wan_expert_name(t->files.bases[base].kind.expert) : "base model";
}

static const char *label(const struct task *task, struct arena *a)
{
    const struct wan_shape *s = &wan_job_of(task)->shape;
    return arena_printf(a, "wan %zux%zu", s->layers, s->width);
}

static void say_data(const struct wan_job *t)
{
    const struct message_sink *sink = &t->task.env.sink;
    if (!t->cache) {
        message_say(sink, "data      not read; planned for %zux%zux%zu, %zu tokens", t->largest.width,
                    t->largest.height, t->largest.frames, t->task.extent);
        return;
    }
    size_t sizes = batches_sizes(t->batches);
    message_say(sink, "data      %zu clip%s, %zu image%s, %zu held out; %zu size%s, up to %zu tokens",
                t->clips, t->clips == 1 ? "" : "s", t->images, t->images == 1 ? "" : "s", t->n_val, sizes,
                sizes == 1 ? "" : "s", t->task.extent);
}

static void say_times(const struct wan_job *t)
{
    const struct flow_options *o = &t->flow;
    bool shifted = o->sampling == FLOW_SHIFT || o->sampling == FLOW_TABLE_SHIFT;
    const char *shift = shifted ? arena_printf(t->task.env.arena, " by %g", o->shift) : "";
    message_say(&t->task.env.sink, "times     %s%s, as in %s", flow_sampling_name(o->sampling), shift,
                t->recipe == FLOW_MUSUBI ? "musubi-tuner" : "ai-toolkit");
}

static void summary(const struct task *task)
{
    const struct wan_job *t = wan_job_of(task);
    const struct wan_shape *s = &t->shape;
    const struct lora *l = &t->wan->loras[0];
    const char *experts = t->both                ? ", both experts"
                          : t->side == FLOW_HIGH ? ", high-noise expert"
                          : t->side == FLOW_LOW  ? ", low-noise expert"
                                                 : "";
    message_say(&task->env.sink, "model     %s, %zu blocks, hidden size %zu, %s parameters%s",
                wan_task_info(t->kind)->title, s->layers, s->width,
                task_count_text(task->env.arena, params_count(&t->wan->params[0])), experts);
    message_say(&task->env.sink, "lora      rank %zu, alpha %g, %s parameters in %zu linear layers%s",
                l->rank, config_of(t)->lora.alpha, task_count_text(task->env.arena, params_count(&l->params)),
                l->params.n / 2, task->model->n_loras > 1 ? ", one LoRA for each expert" : "");
    say_data(t);
    say_times(t);
}

/* Names and sizes: the caches of two machines need not be alike in the last bits. */
static void add_data(const struct task *task, struct hash *h)
{
    const struct wan_job *t = (const struct wan_job *)task;
    for (size_t i = 0; i < video_cache_count(t->cache); i++) {
        const struct video_item *item = video_cache_item(t->cache, i);
        hash_add_text(h, item->name);
        for (int part = 0; part < VIDEO_PARTS; part++)
            hash_add_u64(h, item->parts[part].values);
    }
}

const struct task_ops task_wan = {
    .schema = &wan_schema,
    .resolve = resolve,
    .open = open_task,
    .open_saved = open_saved,
    .close = close_task,
    .new_model = new_model,
    .fill_model = fill_model,
    .lora_path = lora_path,
    .set_of_step = set_of_step,
    .base_of_step = base_of_step,
    .base_of_val = base_of_val,
    .reload_base = reload_base,
    .step_cost = wan_job_step_cost,
    .put = wan_job_put,
    .val_samples = val_samples,
    .put_val = wan_job_put_val,
    .add_data = add_data,
    .sample_bytes = wan_job_sample_bytes,
    .sample = wan_job_sample,
    .sample_close = sample_close,
    .sample_is_open = sample_is_open,
    .label = label,
    .summary = summary,
    .base_name = base_name,
    .pictures = wan_job_pictures,
    .is_save_due = wan_job_is_save_due,
    .publish = wan_job_publish,
    .use = wan_job_use,
    .try_command = "cairn sample",
    .shrink_hint = "smaller or shorter clips, model.quantize: fp8, a lower lora.rank, or "
                   "train.optimizer: adamw8",
    .sample_shrink_hint = "a smaller --size, fewer frames, or --set model.quantize=fp8",
};
