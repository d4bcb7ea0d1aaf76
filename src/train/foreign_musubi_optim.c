/* SPDX-License-Identifier: Apache-2.0
 * Optimizers and schedules of musubi-tuner. */
#include "base/suggest.h"
#include "train/foreign_musubi_inside.h"
#include "train/optim_methods.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ADAM = 1 << OPTIM_ADAMW | 1 << OPTIM_ADAMW8, ANY = (1 << OPTIM_KINDS) - 1 };

/* Classes, without the path of their module; letter case does not count. */
static const struct {
    const char *name;
    enum optim_kind kind;
} classes[] = {
    { "AdamW", OPTIM_ADAMW },      { "PagedAdamW", OPTIM_ADAMW },      { "PagedAdamW32bit", OPTIM_ADAMW },
    { "AdamW8bit", OPTIM_ADAMW8 }, { "PagedAdamW8bit", OPTIM_ADAMW8 }, { "Adafactor", OPTIM_ADAFACTOR },
    { "Lion", OPTIM_LION },        { "Prodigy", OPTIM_PRODIGY },
};

/* What a class has if nothing is said, where our own defaults differ. */
static const struct {
    enum optim_kind kind;
    const char *key, *value;
} presets[] = {
    { OPTIM_LION, "train.weight_decay", "0" },
    { OPTIM_LION, "train.beta2", "0.99" },
    { OPTIM_ADAFACTOR, "train.weight_decay", "0" },
    { OPTIM_ADAFACTOR, "train.relative_step", "true" },
    { OPTIM_ADAFACTOR, "train.scale_parameter", "true" },
    { OPTIM_PRODIGY, "train.weight_decay", "0" },
};

/* Arguments of the classes.  Without a key, only one value is possible; without either, any. */
static const struct optim_arg {
    unsigned kinds;
    const char *name, *key, *only;
} args[] = {
    { ANY, "weight_decay", "train.weight_decay", NULL },
    { ADAM | 1 << OPTIM_LION | 1 << OPTIM_PRODIGY, "betas", "train.beta1", NULL },
    { ADAM | 1 << OPTIM_PRODIGY, "eps", "train.eps", NULL },
    { ADAM, "amsgrad", NULL, "False" },
    { ADAM, "maximize", NULL, "False" },
    { ADAM, "fused", NULL, NULL },
    { ADAM, "foreach", NULL, NULL },
    { ADAM, "is_paged", NULL, NULL },
    { ADAM, "block_wise", NULL, "True" },
    { ADAM, "percentile_clipping", NULL, "100" },
    { ADAM, "min_8bit_size", NULL, "4096" },
    { 1 << OPTIM_ADAFACTOR, "relative_step", "train.relative_step", NULL },
    { 1 << OPTIM_ADAFACTOR, "scale_parameter", "train.scale_parameter", NULL },
    { 1 << OPTIM_ADAFACTOR, "warmup_init", NULL, "False" },
    { 1 << OPTIM_ADAFACTOR, "clip_threshold", NULL, "1" },
    { 1 << OPTIM_ADAFACTOR, "decay_rate", NULL, "-0.8" },
    { 1 << OPTIM_ADAFACTOR, "beta1", NULL, "None" },
    { 1 << OPTIM_PRODIGY, "d0", "train.d0", NULL },
    { 1 << OPTIM_PRODIGY, "d_coef", "train.d_coef", NULL },
    { 1 << OPTIM_PRODIGY, "growth_rate", "train.growth_rate", NULL },
    { 1 << OPTIM_PRODIGY, "safeguard_warmup", "train.safeguard_warmup", NULL },
    { 1 << OPTIM_PRODIGY, "use_bias_correction", "train.bias_correction", NULL },
    { 1 << OPTIM_PRODIGY, "decouple", NULL, "True" },
    { 1 << OPTIM_PRODIGY, "beta3", NULL, "None" },
    { 1 << OPTIM_PRODIGY, "slice_p", NULL, "1" },
};

static int find_kind(struct musubi_job *j, enum optim_kind *out)
{
    const char *type = musubi_text(j, "optimizer_type"), *name = type ? strrchr(type, '.') : NULL;
    name = name ? name + 1 : type ? type : "AdamW";
    struct suggestion near = { .word = name };
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        suggest_try(&near, classes[i].name);
        if (!strcasecmp(classes[i].name, name)) {
            *out = classes[i].kind;
            return 0;
        }
    }
    musubi_refuse(j, "optimizer_type",
                  near.best ? arena_printf(j->a, "did you mean %s?", near.best)
                            : "use AdamW, AdamW8bit, Adafactor, Lion or Prodigy",
                  "cairn has no optimizer \"%.60s\"", type);
    return -1;
}

static bool same_value(const char *a, const char *b)
{
    double x, y;
    if (musubi_parse_real(a, &x) && musubi_parse_real(b, &y))
        return x == y;
    return !strcasecmp(a, b);
}

/* "0.9,0.99", with or without brackets; Prodigy's may have a third. */
static int add_betas(struct musubi_job *j, const char *text)
{
    double first, second;
    int end = 0;
    const char *p = text + strspn(text, "([ ");
    if (sscanf(p, "%lf , %lf%n", &first, &second, &end) != 2 || p[end + (int)strspn(p + end, ")] ")])
        return musubi_refuse(j, "optimizer_args", "such as betas=0.9,0.99", "betas: expected two numbers");
    musubi_add(j, "optimizer_args", "train.beta1", "%g", first);
    musubi_add(j, "optimizer_args", "train.beta2", "%g", second);
    return 0;
}

static int add_value(struct musubi_job *j, const struct optim_arg *arg, const char *value)
{
    double v;
    if (!strcmp(arg->name, "betas"))
        return add_betas(j, value);
    if (!arg->key && (!arg->only || same_value(value, arg->only)))
        return 0;
    if (!arg->key)
        return musubi_refuse(j, "optimizer_args",
                             arena_printf(j->a, "remove it: the value can only be %s", arg->only),
                             "cairn cannot do %s=%.60s", arg->name, value);
    bool is_bool = !strcasecmp(value, "true") || !strcasecmp(value, "false");
    if (!strcmp(arg->name, "growth_rate") && strstr(value, "inf"))
        value = "0";
    else if (is_bool)
        value = strcasecmp(value, "true") ? "false" : "true";
    else if (!musubi_parse_real(value, &v))
        return musubi_refuse(j, "optimizer_args", MUSUBI_CORRECT, "%s: \"%.60s\" is not a number", arg->name,
                             value);
    musubi_add(j, "optimizer_args", arg->key, "%s", value);
    return 0;
}

static int add_arg(struct musubi_job *j, enum optim_kind kind, const char *text)
{
    const char *name, *value;
    if (!musubi_pair(j, text, &name, &value))
        return musubi_refuse(j, "optimizer_args", "such as weight_decay=0.01", "\"%.60s\" is not NAME=VALUE",
                             text);
    struct suggestion near = { .word = name };
    for (size_t i = 0; i < ARRAY_LEN(args); i++) {
        if (!(args[i].kinds & 1u << kind))
            continue;
        if (!strcmp(args[i].name, name))
            return add_value(j, &args[i], value);
        suggest_try(&near, args[i].name);
    }
    return musubi_refuse(j, "optimizer_args",
                         near.best ? arena_printf(j->a, "did you mean %s?", near.best) : "remove it",
                         "cairn's %s has no argument \"%.60s\"", optim_names[kind], name);
}

int musubi_make_optimizer(struct musubi_job *j)
{
    const struct musubi_setting *list = musubi_find(j, "optimizer_args");
    const char *rate = musubi_text(j, "learning_rate");
    enum optim_kind kind;
    if (find_kind(j, &kind))
        return -1;
    musubi_add(j, "optimizer_type", "train.optimizer", "%s", optim_names[kind]);
    musubi_add(j, "learning_rate", "train.lr", "%s", rate ? rate : "2e-6");
    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        if (presets[i].kind == kind)
            musubi_add(j, "optimizer_type", presets[i].key, "%s", presets[i].value);
    for (size_t i = 0; list && i < list->n; i++)
        if (add_arg(j, kind, list->value[i]))
            return -1;
    return 0;
}

/* ---- schedules ---- */

static const struct {
    const char *name, *ours;
    bool warms_up;
    double min_lr; /* if --lr_scheduler_min_lr_ratio is not given */
    bool has_min;  /* that option counts */
} schedules[] = {
    { "constant", "constant", false, 0, false },
    { "constant_with_warmup", "constant", true, 0, false },
    { "linear", "linear", true, 0, false },
    { "cosine", "cosine", true, 0, false },
    { "cosine_with_restarts", "restarts", true, 0, false },
    { "cosine_with_min_lr", "cosine", true, 0, true },
    { "polynomial", "polynomial", true, 0, false },
    { "rex", "rex", true, 0.01, true },
};

static int wrong_schedule(struct musubi_job *j, const char *name)
{
    static const char *const others[] = { "inverse_sqrt", "warmup_stable_decay", "adafactor",
                                          "piecewise_constant" };
    struct suggestion near = { .word = name };
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        known = known || !strcmp(name, others[i]);
    for (size_t i = 0; i < ARRAY_LEN(schedules); i++)
        suggest_try(&near, schedules[i].name);
    const char *remedy = near.best && !known ? arena_printf(j->a, "did you mean %s?", near.best)
                                             : "use constant, constant_with_warmup, linear, cosine, "
                                               "cosine_with_restarts, cosine_with_min_lr, polynomial or rex";
    return musubi_refuse(j, "lr_scheduler", remedy,
                         known ? "cairn has no schedule %.60s" : "there is no schedule \"%.60s\"", name);
}

/* Adafactor with relative_step has a schedule of its own. */
static bool is_relative(const struct musubi_job *j)
{
    const char *kind = foreign_value(j->out, "train.optimizer"),
               *relative = foreign_value(j->out, "train.relative_step");
    return str_eq(kind, "adafactor") && str_eq(relative, "true");
}

int musubi_make_schedule(struct musubi_job *j, int64_t steps)
{
    static const char *const unused[] = { "lr_decay_steps", "lr_scheduler_timescale" };
    const char *name = musubi_text(j, "lr_scheduler");
    size_t i = 0;
    name = is_relative(j) ? "constant" : name ? name : "constant";
    while (i < ARRAY_LEN(schedules) && strcmp(schedules[i].name, name))
        i++;
    if (i == ARRAY_LEN(schedules))
        return wrong_schedule(j, name);
    for (size_t k = 0; k < ARRAY_LEN(unused); k++)
        if (musubi_real(j, unused[k], 0) != 0)
            foreign_note(j->out, j->a, "--%s has no effect on the schedule %s", unused[k], name);
    int64_t warmup = schedules[i].warms_up ? musubi_share(j, "lr_warmup_steps", steps) : 0;
    musubi_add(j, "lr_scheduler", "train.schedule", "%s", schedules[i].ours);
    musubi_add(j, "lr_warmup_steps", "train.warmup", "%lld", (long long)warmup);
    if (!strcmp(schedules[i].ours, "constant"))
        return 0;
    if (!strcmp(name, "polynomial")) { /* ends at 1e-7 */
        double lr = musubi_real(j, "learning_rate", 2e-6);
        musubi_add(j, "lr_scheduler_power", "train.power", "%g", musubi_real(j, "lr_scheduler_power", 1));
        musubi_add(j, "lr_scheduler", "train.min_lr", "%g", lr > 1e-7 ? 1e-7 / lr : 1);
        return 0;
    }
    if (!strcmp(name, "cosine_with_restarts"))
        musubi_add(j, "lr_scheduler_num_cycles", "train.cycles", "%lld",
                   (long long)musubi_int(j, "lr_scheduler_num_cycles", 1));
    double least = schedules[i].min_lr;
    if (schedules[i].has_min)
        least = musubi_real(j, "lr_scheduler_min_lr_ratio", least);
    musubi_add(j, schedules[i].has_min ? "lr_scheduler_min_lr_ratio" : "lr_scheduler", "train.min_lr", "%g",
               least);
    return 0;
}
