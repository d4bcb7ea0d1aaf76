/* SPDX-License-Identifier: Apache-2.0
 * The training of an ai-toolkit job: optimizer, learning rate, timesteps. */
#include "train/foreign_toolkit_parts.h"
#include "video/flow_time.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- optimizer ---- */

/* ai-toolkit's names, and the defaults of the libraries that it takes them from. */
static const struct method {
    const char *theirs, *ours;
    const char *decay, *eps, *beta2; /* eps NULL: it has none, or not that of train.eps */
    bool no_decay;                   /* its weight decay is another */
    const char *note;
} methods[] = {
    { "adamw", "adamw", "0.01", "1e-6", "0.999", false, NULL },
    { "adamw8bit", "adamw8", "0.01", "1e-6", "0.999", false, NULL },
    { "adamw8", "adamw8", "0.01", "1e-6", "0.999", false, "the 8-bit state is that of adamw8bit" },
    { "adam", "adamw", "0", "1e-6", "0.999", true, NULL },
    { "adam8bit", "adamw8", "0", "1e-6", "0.999", true, NULL },
    { "adam8", "adamw8", "0", "1e-6", "0.999", true, "the 8-bit state is that of adam8bit" },
    { "lion", "lion", "0", NULL, "0.99", false, NULL },
    { "lion8bit", "lion", "0", NULL, "0.99", false, "the state is not 8-bit" },
    { "adafactor", "adafactor", "0", NULL, "0.999", false, NULL },
    { "prodigy", "prodigy", "0", "1e-6", "0.999", false, NULL },
    { "prodigy8bit", "prodigy", "0", "1e-6", "0.999", false, "the state is not 8-bit" },
};

static int add_betas(const struct toolkit *t)
{
    static const char key[] = "train.optimizer_params.betas";
    const struct yaml_node *list = toolkit_get(t, key), *one = list ? list->first : NULL;
    const struct yaml_node *two = one ? one->next : NULL;
    if (!list)
        return 0;
    if (!two || two->next || one->kind != YAML_SCALAR || two->kind != YAML_SCALAR)
        return toolkit_fail(t, key, "write betas: [0.9, 0.999]", "it is not a list of two numbers");
    toolkit_add(t, "train.beta1", one->text, key);
    toolkit_add(t, "train.beta2", two->text, key);
    return 0;
}

static int add_optimizer(const struct toolkit *t, const struct method **out)
{
    const char *name = toolkit_text(t, "train.optimizer", "adamw");
    const struct method *m = NULL;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (!strcasecmp(methods[i].theirs, name))
            m = &methods[i];
    if (!m)
        return toolkit_refuse(t, "train.optimizer", "use adamw, adamw8bit, adafactor, prodigy or lion",
                              "cairn does not have %.100s", name);
    if (m->no_decay && toolkit_real(t, "train.optimizer_params.weight_decay", 0) != 0)
        return toolkit_refuse(t, "train.optimizer_params.weight_decay",
                              "use adamw or adamw8bit, or set it to 0",
                              "cairn's weight decay is that of AdamW, not that of %s", m->theirs);
    toolkit_add(t, "train.optimizer", m->ours, "train.optimizer");
    if (!toolkit_get(t, "train.optimizer_params.weight_decay"))
        toolkit_add(t, "train.weight_decay", m->decay, NULL);
    if (m->eps && !toolkit_get(t, "train.optimizer_params.eps"))
        toolkit_add(t, "train.eps", m->eps, NULL);
    toolkit_add(t, "train.beta2", m->beta2, NULL);
    if (m->note)
        foreign_note(t->job, t->a, "train.optimizer: %s: %s", m->theirs, m->note);
    *out = m;
    return add_betas(t);
}

/* ---- learning rate ---- */

static void add_rate(const struct toolkit *t, const struct method *m)
{
    const char *from = toolkit_get(t, "train.unet_lr") ? "train.unet_lr" : "train.lr";
    /* ai-toolkit takes a rate for Adam as a mistake. */
    if (!strcmp(m->ours, "prodigy") && toolkit_real(t, from, 0) < 0.1)
        toolkit_add(t, "train.lr", "1", from);
    else
        toolkit_add(t, "train.lr", toolkit_text(t, from, "1e-6"), from);
}

static double parameter(const struct toolkit *t, const char *name, double preset)
{
    return toolkit_real(t, arena_printf(t->a, "train.lr_scheduler_params.%s", name), preset);
}

static int add_linear(const struct toolkit *t, double steps)
{
    double start = parameter(t, "start_factor", 1.0 / 3), end = parameter(t, "end_factor", 1);
    if (start != 1 || parameter(t, "total_iters", steps) != steps)
        return toolkit_refuse(
            t, "train.lr_scheduler",
            "set lr_scheduler_params: {start_factor: 1.0, end_factor: 0.0}, or use constant or cosine",
            "ai-toolkit's linear rises from start_factor (1/3) to end_factor; cairn's falls");
    toolkit_add(t, "train.schedule", "linear", "train.lr_scheduler");
    toolkit_add(t, "train.min_lr", arena_printf(t->a, "%.17g", end), "train.lr_scheduler");
    return 0;
}

static int add_cosine(const struct toolkit *t, const char *period, double steps)
{
    double lr = strtod(foreign_value(t->job, "train.lr"), NULL), least = parameter(t, "eta_min", 0);
    double length = parameter(t, period, parameter(t, "total_iters", steps));
    if (length != steps)
        return toolkit_refuse(t, "train.lr_scheduler", "leave its length out: it is that of the training",
                              "cairn's cosine has the length of the training");
    if (least < 0 || least > lr)
        return toolkit_fail(t, "train.lr_scheduler_params.eta_min", "set it to 0 ... lr",
                            "it is not between 0 and the learning rate");
    toolkit_add(t, "train.schedule", "cosine", "train.lr_scheduler");
    toolkit_add(t, "train.min_lr", arena_printf(t->a, "%.17g", least / lr), "train.lr_scheduler");
    return 0;
}

static int add_constant(const struct toolkit *t, bool warmup)
{
    if (!warmup && parameter(t, "factor", 1) != 1)
        return toolkit_refuse(t, "train.lr_scheduler_params.factor", "multiply lr by it",
                              "cairn's constant schedule has no factor");
    toolkit_add(t, "train.schedule", "constant", "train.lr_scheduler");
    if (warmup)
        toolkit_add(t, "train.warmup", arena_printf(t->a, "%.0f", parameter(t, "num_warmup_steps", 1000)),
                    "train.lr_scheduler");
    return 0;
}

static int add_schedule(const struct toolkit *t)
{
    const char *name = toolkit_text(t, "train.lr_scheduler", "constant");
    double steps = toolkit_real(t, "train.steps", 1000);
    toolkit_add(t, "train.warmup", "0", NULL);
    if (!strcmp(name, "constant") || !strcmp(name, "constant_with_warmup"))
        return add_constant(t, strcmp(name, "constant") != 0);
    if (!strcmp(name, "cosine"))
        return add_cosine(t, "T_max", steps);
    if (!strcmp(name, "cosine_with_restarts"))
        return add_cosine(t, "T_0", steps);
    if (!strcmp(name, "linear"))
        return add_linear(t, steps);
    return toolkit_refuse(t, "train.lr_scheduler", "use constant, constant_with_warmup or cosine",
                          "cairn does not have %.100s", name);
}

/* ---- timesteps ---- */

const char *toolkit_shift(const struct toolkit_model *m)
{
    return m->experts || !strcmp(m->task, "ti2v-5B") ? "5" : "3";
}

static int add_timesteps(const struct toolkit *t, const struct toolkit_model *m)
{
    const char *type = toolkit_text(t, "train.timestep_type", "sigmoid");
    const char *bias = toolkit_text(t, "train.content_or_style", "balanced");
    enum flow_sampling sampling;
    enum flow_bias parsed;
    struct cairn_error why = { 0 };
    /* Wan's scheduler has one shift, whatever the size. */
    const char *ours = !strcmp(type, "flux_shift") || !strcmp(type, "lumina2_shift") ? "shift" : type;
    if (flow_sampling_parse(FLOW_AI_TOOLKIT, ours, &sampling, &why))
        return toolkit_refuse(t, "train.timestep_type",
                              why.hint[0] ? why.hint : "use linear, sigmoid, weighted or shift",
                              "cairn does not have %.100s", type);
    if (flow_bias_parse(bias, &parsed, &why))
        return toolkit_refuse(t, "train.content_or_style", "use balanced, content or style",
                              "cairn does not have %.100s", bias);
    if (toolkit_real(t, "train.min_denoising_steps", 0) >= toolkit_real(t, "train.max_denoising_steps", 999))
        return toolkit_get(t, "train.min_denoising_steps")
                   ? toolkit_fail(t, "train.min_denoising_steps", "set it below max_denoising_steps",
                                  "no timestep is left")
                   : toolkit_fail(t, "train.max_denoising_steps", "set it above min_denoising_steps",
                                  "no timestep is left");
    if (m->experts && str_ends(type, "_step"))
        return toolkit_refuse(t, "train.timestep_type", "use linear, sigmoid, weighted or shift",
                              "%s has no timesteps of both experts", type);
    toolkit_add(t, "train.recipe", "ai-toolkit", NULL);
    toolkit_add(t, "train.timesteps", ours, "train.timestep_type");
    toolkit_add(t, "train.shift", toolkit_shift(m), NULL);
    toolkit_add(t, "train.content_or_style", bias, "train.content_or_style");
    if (m->experts && m->high && m->low)
        toolkit_add(t, "train.switch_every",
                    arena_printf(t->a, "%.0f", toolkit_real(t, "train.switch_boundary_every", 1)),
                    "train.switch_boundary_every");
    return 0;
}

/* ---- number formats and batches ---- */

static int add_dtype(const struct toolkit *t)
{
    static const struct {
        const char *theirs, *ours;
    } dtypes[] = { { "bf16", "bf16" },   { "bfloat16", "bf16" }, { "fp16", "f16" }, { "float16", "f16" },
                   { "float32", "f32" }, { "fp32", "f32" },      { "float", "f32" } };
    const char *dtype = toolkit_text(t, "train.dtype", NULL);
    for (size_t i = 0; dtype && i < ARRAY_LEN(dtypes); i++)
        if (!strcmp(dtypes[i].theirs, dtype)) {
            toolkit_add(t, "train.dtype", dtypes[i].ours, "train.dtype");
            return 0;
        }
    return dtype ? toolkit_refuse(t, "train.dtype", "use bf16, fp16 or fp32",
                                  "cairn does not compute in %.100s", dtype)
                 : 0;
}

static void add_ema(const struct toolkit *t)
{
    if (toolkit_bool(t, "train.ema_config.use_ema", false))
        toolkit_add(t, "train.ema", toolkit_text(t, "train.ema_config.ema_decay", "0.999"),
                    toolkit_get(t, "train.ema_config.ema_decay") ? "train.ema_config.ema_decay"
                                                                 : "train.ema_config.use_ema");
}

int toolkit_add_train(const struct toolkit *t, const struct toolkit_model *m)
{
    const struct method *method = NULL;
    double accumulate = toolkit_real(t, "train.gradient_accumulation", 1) *
                        toolkit_real(t, "train.gradient_accumulation_steps", 1);
    if (!toolkit_get(t, "train.steps"))
        toolkit_add(t, "train.steps", "1000", NULL);
    toolkit_add(t, "train.accumulate", arena_printf(t->a, "%.0f", accumulate),
                toolkit_get(t, "train.gradient_accumulation") ? "train.gradient_accumulation"
                                                              : "train.gradient_accumulation_steps");
    toolkit_add(t, "train.recompute",
                toolkit_bool(t, "train.gradient_checkpointing", true) ? "blocks" : "none",
                "train.gradient_checkpointing");
    if (add_optimizer(t, &method))
        return -1;
    add_rate(t, method);
    add_ema(t);
    return add_schedule(t) || add_timesteps(t, m) || add_dtype(t) ? -1 : 0;
}
