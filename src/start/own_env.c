/* SPDX-License-Identifier: Apache-2.0 */
#include "start/own_env.h"

#include "base/own.h"
#include "base/str.h"
#include "gpu/libraries.h"
#include "host/runtimes.h"
#include "rules/plan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

extern char **environ;

/* The user may name any GPU, so none is hidden. */
static bool selects_gpus(const char *name)
{
    for (int i = 0; i < PLAN_N_SELECTORS; i++)
        if (str_eq(plan_selectors[i], name))
            return true;
    return false;
}

/* The loader has already read these; the child that compiles kernels must find the same libraries. */
static bool is_for_the_loader(const char *name)
{
    return str_starts(name, "LD_");
}

/* The ROCm installations of this machine, including those in PyTorch wheels: a wheel may be the only one. */
static void offer_runtimes(void)
{
    static struct arena kept; /* what is offered lives as long as the process */
    const struct facts_options fo = { .env = (const char *const *)environ, .parts = FACTS_SOFTWARE };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    if (facts_read(&f, &fo, &err))
        return; /* the loader searches by itself */
    size_t n = f.n_runtimes;
    struct library_set *sets = ARENA_NEW(&kept, struct library_set, n);
    for (size_t i = 0; i < n; i++) {
        const struct rocm_files *files = &f.runtimes[i].files;
        const char *const file[] = { [LIBRARY_HIP] = f.runtimes[i].hip,
                                     [LIBRARY_HIPRTC] = files->hiprtc,
                                     [LIBRARY_HIPBLASLT] = files->hipblaslt,
                                     [LIBRARY_ROCBLAS] = files->rocblas };
        sets[i].what = runtime_text(&f.runtimes[i], &kept);
        for (size_t k = 0; k < ARRAY_LEN(file); k++)
            sets[i].file[k] = file[k] ? arena_strdup(&kept, file[k]) : NULL;
    }
    library_offer(sets, n);
}

/* The cache holds compiled kernels, tuning results and tokens.  A folder that others can write to is not
 * used. */
static void say_cache_trouble(const struct message_sink *messages)
{
    static const char *const folders[] = { NULL, "kernels", "probe", "gemm", "tokens" };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *root = NULL;
    int r = own_path(PLACE_CACHE, (const char *const *)environ, &a, &root, &err);
    for (size_t i = 0; i < ARRAY_LEN(folders) && !r; i++) {
        CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
        r = own_dir_open(&d, PLACE_CACHE, root, folders[i], !folders[i], &err);
        if (r && folders[i] && errno == ENOENT)
            r = 0;
    }
    if (!r)
        return;
    cairn_wrap(&err, "the cache is not used");
    message_error(messages, &err);
}

/* PyTorch does not matter here: cairn has its own kernels, and does not pretend to be another chip. */
void own_env_apply(const struct message_sink *messages)
{
    const struct facts_options fo = { .env = (const char *const *)environ, .parts = FACTS_HARDWARE };
    const struct plan_options po = { .gpu = -1 };
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(facts_release) struct facts f;
    struct plan plan;
    say_cache_trouble(messages);
    if (facts_read(&f, &fo, &err) || plan_build(&f, &po, &a, &plan, &err))
        plan = (struct plan){ 0 }; /* without facts, the environment stays unchanged */
    for (size_t i = 0; i < plan.n_unset; i++) {
        const struct plan_var *v = &plan.unset[i];
        if (is_for_the_loader(v->name))
            continue;
        message_say(messages, "ignoring %s=%s: %s", v->name, v->value, v->why);
        unsetenv(v->name);
    }
    for (size_t i = 0; i < plan.n_set; i++)
        if (!selects_gpus(plan.set[i].name) && !is_for_the_loader(plan.set[i].name))
            setenv(plan.set[i].name, plan.set[i].value, 1);
    offer_runtimes();
}
