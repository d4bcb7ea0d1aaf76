/* SPDX-License-Identifier: Apache-2.0
 * Checks of keys that are valid alone but contradict each other. */
#include "base/parse.h"
#include "train/config.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int config_clash(const struct job_config *c, const char *key, const char *other, struct cairn_error *err,
                 const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const char *place = config_place(c, key);
    if (!place)
        place = config_place(c, other);
    if (!place)
        place = c->file;
    return cairn_fail(err, CAIRN_EUSAGE, "%s%s%s", place ? place : "", place ? ": " : "", text);
}

static bool is_device(const char *name)
{
    uint64_t index;
    if (!strcmp(name, "auto") || !strcmp(name, "cpu"))
        return true;
    const char *colon = strchr(name, ':');
    return (str_starts(name, "hip:") || str_starts(name, "cuda:")) && cairn_parse_u64(colon + 1, &index) &&
           index < 1000;
}

static int check_train(const struct job_config *c, struct cairn_error *err)
{
    const struct config_train *t = &c->train;
    if (config_is_set(c, "train.warmup") && t->warmup > t->steps)
        return config_clash(c, "train.warmup", "train.steps", err,
                            "train.warmup is %" PRId64 ", more than train.steps, %" PRId64, t->warmup,
                            t->steps);
    if (t->master == CONFIG_MASTER_STOCHASTIC && t->dtype == CONFIG_DTYPE_F32)
        return config_clash(c, "train.master", "train.dtype", err,
                            "train.master is stochastic, which needs 16-bit weights, but train.dtype is f32");
    return 0;
}

static int check_device(const struct job_config *c, struct cairn_error *err)
{
    if (is_device(c->train.device))
        return 0;
    CLEANUP(str_release) struct str shown = { 0 };
    str_add_clean(&shown, c->train.device, strlen(c->train.device));
    return config_clash(c, "train.device", "train.device", err,
                        "train.device is \"%.60s\"; it must be auto, cpu, hip:N or cuda:N",
                        shown.s ? shown.s : "");
}

static int check_extras(const struct job_config *c, struct cairn_error *err)
{
    bool has_lora = c->lora.rank || c->lora.path[0];
    if (c->lora.plus != 1 && !has_lora)
        return config_clash(c, "lora.plus", "lora.rank", err,
                            "lora.plus is %g, but lora.rank is 0: there is no LoRA", c->lora.plus);
    if (c->model.quantize != CONFIG_QUANTIZE_NONE && !has_lora)
        return config_clash(
            c, "model.quantize", "lora.rank", err,
            "model.quantize is %s, but quantized weights cannot be trained: set lora.rank, or set model.quantize to none",
            c->model.quantize == CONFIG_QUANTIZE_INT8 ? "int8" : "fp8");
    if (c->train.patience && !c->eval.every)
        return config_clash(c, "train.patience", "eval.every", err,
                            "train.patience is %" PRId64 ", but eval.every is 0: there are no evaluations",
                            c->train.patience);
    return 0;
}

int config_check(const struct job_config *c, struct cairn_error *err)
{
    if (c->schema->check && c->schema->check(c, err))
        return -1;
    return check_train(c, err) || check_device(c, err) || check_extras(c, err) ? -1 : 0;
}

int config_fill(struct job_config *c, struct cairn_error *err)
{
    struct config_train *t = &c->train;
    if (c->lora.alpha <= 0)
        c->lora.alpha = (double)c->lora.rank;
    double lr = optim_methods[t->optimizer]->default_lr;
    if (!config_is_set(c, "train.lr") && lr > 0)
        t->lr = lr;
    if (!config_is_set(c, "train.warmup") && t->warmup > t->steps / 10)
        t->warmup = t->steps / 10;
    return c->schema->fill ? c->schema->fill(c, err) : 0;
}
