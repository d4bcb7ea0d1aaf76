/* SPDX-License-Identifier: Apache-2.0 */
#include "run/context.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "check.h"
#include "rules/env_names.h"
#include "rules/log_facts.h"

static const char *targets[] = { "gfx1030", "gfx1100" };

static void goes_there_and_back(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    static const char *const env[] = { "HSA_OVERRIDE_GFX_VERSION=9.0.0", "SECRET=x", "CAIRN_PRELOAD=record",
                                       NULL };
    struct gpu_facts gpus[] = {
        { .gfx = { "gfx1032", "kfd" },
          .kind = GPU_DISCRETE,
          .hip_index = 0,
          .rocm_capable = true,
          .kfd_node = { 1, "kfd" } },
        { .gfx = { "gfx1036", "kfd" }, .kind = GPU_INTEGRATED, .hip_index = 1, .rocm_capable = true },
    };
    struct torch_facts torch = {
        .version = { "2.9.1+rocm6.4", "version.py" },
        .build = TORCH_ROCM,
        .site = "/venv",
        .compiled = { targets, 2, "code" },
    };
    struct facts f = { .gpus = gpus, .n_gpus = 2, .default_gpu = 0, .torches = &torch, .n_torches = 1 };
    f.host.kfd_node.access = NODE_DENIED;
    const struct diagnose_context ctx = { .facts = &f, .own_torch = true, .in_copy = true, .env = env };
    CLEANUP(json_cleanup) struct json *v = context_json(&ctx);
    struct facts back = { 0 };
    struct diagnose_context read = { .exit_code = 1 };
    CHECK(context_take(v, &a, &back, &read));
    CHECK(read.facts == &back && read.own_torch && read.in_copy && read.exit_code == 1 && !read.gfx);
    CHECK_STR(str_env(read.env, "HSA_OVERRIDE_GFX_VERSION"), "9.0.0");
    CHECK_STR(str_env(read.env, "CAIRN_PRELOAD"), "record");
    CHECK(!str_env(read.env, "SECRET"));
    CHECK(back.n_gpus == 2 && back.default_gpu == 0 && back.gpus[1].kind == GPU_INTEGRATED &&
          back.gpus[1].hip_index == 1 && back.gpus[0].rocm_capable);
    CHECK(back.gpus[0].kfd_node.from && back.gpus[0].kfd_node.v == 1 && !back.gpus[1].kfd_node.from);
    CHECK_STR(back.gpus[0].gfx.s, "gfx1032");
    CHECK(back.host.kfd_node.access == NODE_DENIED && !back.host.memory_total_bytes.from);
    const struct torch_facts *t = facts_torch(&back);
    CHECK(t && t->build == TORCH_ROCM && t->compiled.n == 2 && t->compiled.from && !t->rocblas.from &&
          t->parsed.part[0] == 2);
}

static void other_files_are_none(void)
{
    static const char *const texts[] = { "{}", "{\"schema\":2,\"gpus\":[]}", "{\"schema\":1,\"gpus\":{}}",
                                         "[]" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(arena_release) struct arena a = { 0 };
        CLEANUP(json_cleanup) struct json *v = NULL;
        struct cairn_error err = { 0 };
        struct facts f = { .n_gpus = 7 };
        struct diagnose_context ctx = { 0 };
        CHECK(!json_parse(texts[i], strlen(texts[i]), &v, &err));
        CHECK(!context_take(v, &a, &f, &ctx) && f.n_gpus == 7 && !ctx.facts);
    }
}

static void odd_values_do_no_harm(void)
{
    static const char text[] =
        "{\"schema\":1,\"gpus\":[{\"gfx\":7,\"kind\":\"?\",\"index\":\"x\"},3],\"default_gpu\":9,"
        "\"torch\":{\"compiled\":[1,\"gfx1100\"]},\"env\":{\"A\":1}}";
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err = { 0 };
    struct facts f = { 0 };
    struct diagnose_context ctx = { 0 };
    CHECK(!json_parse(text, strlen(text), &v, &err));
    CHECK(context_take(v, &a, &f, &ctx) && f.n_gpus == 2 && !f.gpus[0].gfx.s && f.default_gpu == -1 &&
          facts_torch(&f)->compiled.n == 1 && !ctx.env[0]);
}

/* Those that the diagnosis asks for are among those that are kept. */
static void no_variable_is_lost(void)
{
    for (int v = 0; v < LOG_N_VARS; v++)
        if (!env_name_find(log_var_name((enum log_var)v)))
            CHECK_FAIL_("%s is not kept", log_var_name((enum log_var)v));
}

int main(void)
{
    RUN(goes_there_and_back);
    RUN(other_files_are_none);
    RUN(odd_values_do_no_harm);
    RUN(no_variable_is_lost);
    return check_done();
}
