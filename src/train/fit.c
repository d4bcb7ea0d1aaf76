/* SPDX-License-Identifier: Apache-2.0 */
#include "train/fit.h"
#include "os/file.h"

struct choice {
    const char *quantize, *recompute, *idle; /* NULL: as it is */
    bool offloads;                           /* parts of the job may go to the host */
    const char *what;
};
static const struct choice choices[] = {
    { NULL, "none", NULL, false, "weights as in the file, no gradient checkpointing" },
    { NULL, "blocks", NULL, false, "weights as in the file, with gradient checkpointing" },
    { "fp8", "none", NULL, false, "weights in fp8, no gradient checkpointing" },
    { "fp8", "blocks", NULL, false, "weights in fp8, with gradient checkpointing" },
    { "fp8", "blocks", NULL, true, "weights in fp8, with gradient checkpointing and offloading" },
    { "fp8", "blocks", "file", true, "the same, with one expert in memory at a time" },
};
static const char *const keys[] = { "model.quantize", "train.recompute", "memory.idle" };

static const char *value_of(const struct choice *k, size_t key)
{
    return key == 0 ? k->quantize : key == 1 ? k->recompute : k->idle;
}

static int apply(struct job_config *c, const struct job_config *asked, const struct choice *k,
                 struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (value_of(k, i) && !config_is_set(asked, keys[i]) &&
            config_set(c, "--fit", keys[i], value_of(k, i), err))
            return -1;
    return 0;
}

static int plan(const struct train_options *o, const struct choice *k, uint64_t budget,
                struct train_plan *out, struct cairn_error *err)
{
    struct job_config c;
    struct train_options of = *o;
    config_copy(&c, o->config);
    of.config = &c;
    of.budget_bytes = budget;
    if (apply(&c, o->config, k, err))
        return -1;
    return train_plan(&of, out, err);
}

static bool fits(const struct choice *k, const struct train_plan *p)
{
    return !p->lack.code && (k->offloads || !p->n_fallbacks);
}

static void say(struct train_fit *f, struct arena *a, const char *line)
{
    *ARENA_PUSH(a, f->lines, f->n_lines) = line;
}

static void say_rejected(const struct train_options *o, struct train_fit *f, const struct choice *k,
                         uint64_t needs)
{
    char need[24], there[24];
    struct arena *a = o->config->arena;
    say(f, a,
        arena_printf(a, "no   %s: %s needed, %s available", k->what, bytes_text((int64_t)needs, need),
                     bytes_text((int64_t)o->budget_bytes, there)));
}

static void say_chosen(const struct train_options *o, struct train_fit *f, const struct choice *k)
{
    struct arena *a = o->config->arena;
    const struct train_plan_frames *most = &f->plan.frames;
    say(f, a, arena_printf(a, "%s%s", f->plan.lack.code ? "no   " : "yes  ", k->what));
    for (size_t i = 0; i < f->plan.n_fallbacks && !f->plan.lack.code; i++)
        say(f, a, arena_printf(a, "     by %s", f->plan.fallbacks[i]));
    if (most->most)
        say(f, a,
            arena_printf(a, "     %zux%zu fits with up to %zu frames", most->width, most->height,
                         most->most));
}

static bool is_usable(const struct job_config *c, const struct choice *k)
{
    return !k->quantize || c->lora.rank || c->lora.path[0]; /* quantized weights cannot be trained */
}

static int choose(const struct train_options *o, struct train_fit *out, struct cairn_error *err)
{
    const struct choice *last = NULL;
    struct job_config asked;
    config_copy(&asked, o->config);
    for (size_t i = 0; i < ARRAY_LEN(choices) && !(last && fits(last, &out->plan)); i++) {
        struct train_plan unlimited;
        if (!is_usable(&asked, &choices[i]))
            continue;
        if (last && plan(o, last, 0, &unlimited, err))
            return -1;
        if (last)
            say_rejected(o, out, last, last->offloads ? out->plan.peak_bytes : unlimited.peak_bytes);
        last = &choices[i];
        if (plan(o, last, o->budget_bytes, &out->plan, err))
            return -1;
    }
    say_chosen(o, out, last);
    return apply(o->config, &asked, last, err);
}

int train_fit(const struct train_options *o, struct train_fit *out, struct cairn_error *err)
{
    struct train_options quiet = *o;
    *out = (struct train_fit){ 0 };
    if (!o->budget_bytes)
        return cairn_fail(err, CAIRN_ELACK, "--fit: the memory of the device is not known");
    quiet.talk = os_stream("/dev/null", OS_WRITE); /* warnings are for the run itself */
    if (!quiet.talk)
        return cairn_fail_errno(err, "open /dev/null");
    int r = choose(&quiet, out, err);
    fclose(quiet.talk);
    return r;
}

static const char *word_of(const struct job_config *c, const char *key)
{
    for (size_t i = 0; i < n_config_keys; i++)
        if (str_eq(config_keys[i].name, key))
            return config_keys[i].words[*(const int *)config_value(c, &config_keys[i])];
    return NULL;
}

int train_fit_as(struct job_config *c, const char *earlier, struct cairn_error *err)
{
    struct job_config then;
    config_init(&then, c->arena);
    if (config_read(&then, earlier, err))
        return -1;
    struct choice k = { .quantize = word_of(&then, keys[0]),
                        .recompute = word_of(&then, keys[1]),
                        .idle = word_of(&then, keys[2]) };
    return apply(c, c, &k, err);
}
