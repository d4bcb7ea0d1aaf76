/* SPDX-License-Identifier: Apache-2.0
 * What other programs show of a LoRA: the metadata of its file, under musubi-tuner's names.  Nothing here
 * depends on time, host or path, so that a resumed run writes the same bytes. */
#include "train/task_wan_inside.h"

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

static void add_training(struct metadata *m, const struct job_config *c)
{
    static const char *const schedules[] = {
        [CONFIG_SCHEDULE_COSINE] = "cosine",
        [CONFIG_SCHEDULE_LINEAR] = "linear",
        [CONFIG_SCHEDULE_CONSTANT] = "constant",
        [CONFIG_SCHEDULE_RESTARTS] = "cosine_with_restarts",
        [CONFIG_SCHEDULE_POLYNOMIAL] = "polynomial",
        [CONFIG_SCHEDULE_REX] = "rex",
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

void wan_job_set_metadata(struct wan_job *t)
{
    static const char *const precisions[] = { [GPU_F32] = "no", [GPU_F16] = "fp16", [GPU_BF16] = "bf16" };
    struct metadata m = { .arena = t->task.env.arena };
    add_training(&m, t->task.env.config);
    add(&m, "ss_mixed_precision", precisions[t->task.env.nn->storage]);
    add_times(&m, &t->flow);
    t->wan->save.meta = m.list;
    t->wan->save.n_meta = m.n;
}
