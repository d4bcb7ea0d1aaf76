/* SPDX-License-Identifier: Apache-2.0 */
#include "run/context.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "rules/env_names.h"
#include <string.h>

#define FROM "the journal"

/* Texts and flags go out and come back by these names. */
static const char *const kinds[] = {
    [GPU_DISCRETE] = "discrete",
    [GPU_INTEGRATED] = "integrated",
};
static const char *const builds[] = {
    [TORCH_ROCM] = "rocm",
    [TORCH_CUDA] = "cuda",
    [TORCH_CPU] = "cpu",
    [TORCH_XPU] = "xpu",
};

static int find_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] && str_eq(names[i], name))
            return (int)i;
    return 0;
}

/* Writing. */

static void add_num(struct json *o, const char *key, struct num v)
{
    if (v.from)
        json_add_int(o, key, v.v);
}

static void add_targets(struct json *o, const char *key, const struct targets *t)
{
    if (!t->from)
        return;
    struct json *list = json_add_array(o, key);
    for (size_t i = 0; i < t->n; i++)
        json_add_text(list, NULL, t->name[i]);
}

static void add_gpu(struct json *list, const struct gpu_facts *g)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "gfx", g->gfx.s);
    json_add_text(o, "name", g->name.s);
    json_add_text(o, "uuid", g->uuid.s);
    json_add_text(o, "kind", (size_t)g->kind < ARRAY_LEN(kinds) ? kinds[g->kind] : NULL);
    json_add_int(o, "index", g->hip_index);
    add_num(o, "kfd_node", g->kfd_node);
    json_add_bool(o, "rocm_capable", g->rocm_capable);
    add_num(o, "gtt_total_bytes", g->gtt_total_bytes);
    add_num(o, "vram_total_bytes", g->vram_total_bytes);
}

static void add_torch(struct json *o, const struct torch_facts *t)
{
    json_add_text(o, "version", t->version.s);
    json_add_text(o, "hip", t->hip.s);
    json_add_text(o, "build", (size_t)t->build < ARRAY_LEN(builds) ? builds[t->build] : NULL);
    json_add_text(o, "site", t->site);
    json_add_text(o, "python", t->python);
    json_add_text(o, "hip_library", t->hip_library.s);
    json_add_text(o, "bitsandbytes", t->bitsandbytes.version.s);
    json_add_text(o, "bnb_rocm", t->bnb_rocm);
    json_add_bool(o, "therock", t->therock);
    json_add_bool(o, "kpack", t->kpack);
    json_add_bool(o, "guess", t->guess);
    add_targets(o, "compiled", &t->compiled);
    add_targets(o, "device_wheels", &t->device_wheels);
    add_targets(o, "rocblas", &t->rocblas);
}

static void add_host(struct json *o, const struct host_facts *h)
{
    json_add_text(o, "kernel", h->kernel.s);
    json_add_text(o, "os_id", h->os_id.s);
    json_add_text(o, "os_like", h->os_like.s);
    json_add_text(o, "os_name", h->os_name.s);
    json_add_text(o, "container", h->container.s);
    json_add_text(o, "user", h->user);
    json_add_bool(o, "kfd_denied", h->kfd_node.access == NODE_DENIED);
    json_add_text(o, "kfd_group", h->kfd_node.group);
    add_num(o, "memory_total_bytes", h->memory_total_bytes);
}

static void add_env(struct json *o, const char *const *env)
{
    for (; env && *env; env++) {
        CLEANUP(str_release) struct str name = { 0 };
        size_t n = strcspn(*env, "=");
        str_addn(&name, *env, n);
        bool known = name.len && (env_name_find(name.s) || str_starts(name.s, "CAIRN_PRELOAD"));
        if (known && (*env)[n])
            json_add_text(o, name.s, *env + n + 1);
    }
}

struct json *context_json(const struct diagnose_context *ctx)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "gfx", ctx->gfx);
    json_add_bool(top, "own_torch", ctx->own_torch);
    json_add_bool(top, "in_copy", ctx->in_copy);
    if (ctx->env)
        add_env(json_add_object(top, "env"), ctx->env);
    if (!ctx->facts)
        return top;
    struct json *gpus = json_add_array(top, "gpus");
    for (size_t i = 0; i < ctx->facts->n_gpus; i++)
        add_gpu(gpus, &ctx->facts->gpus[i]);
    json_add_int(top, "default_gpu", ctx->facts->default_gpu);
    if (facts_torch(ctx->facts))
        add_torch(json_add_object(top, "torch"), facts_torch(ctx->facts));
    add_host(json_add_object(top, "host"), &ctx->facts->host);
    return top;
}

/* Reading. */

static const char *copied(const struct json *o, const char *key, struct arena *a)
{
    const char *s = json_text(json_get(o, key));
    return s ? arena_strdup(a, s) : NULL;
}

static struct text text_of(const struct json *o, const char *key, struct arena *a)
{
    const char *s = copied(o, key, a);
    return (struct text){ s, s ? FROM : NULL };
}

static struct num num_of(const struct json *o, const char *key)
{
    int64_t v = json_int(json_get(o, key), -1);
    return (struct num){ v, v >= 0 ? FROM : NULL };
}

static struct targets targets_of(const struct json *o, const char *key, struct arena *a)
{
    const struct json *list = json_get(o, key);
    struct targets t = { .from = json_is_array(list) ? FROM : NULL };
    for (size_t i = 0; i < json_length(list); i++)
        if (json_text(json_at(list, i)))
            *ARENA_PUSH(a, t.name, t.n) = arena_strdup(a, json_text(json_at(list, i)));
    return t;
}

static void take_gpus(const struct json *list, struct arena *a, struct facts *f)
{
    f->gpus = NULL;
    f->n_gpus = 0;
    for (size_t i = 0; i < json_length(list); i++) {
        const struct json *o = json_at(list, i);
        *ARENA_PUSH(a, f->gpus, f->n_gpus) = (struct gpu_facts){
            .gfx = text_of(o, "gfx", a),
            .name = text_of(o, "name", a),
            .uuid = text_of(o, "uuid", a),
            .kind = (enum gpu_kind)find_name(kinds, ARRAY_LEN(kinds), json_text(json_get(o, "kind"))),
            .hip_index = (int)json_int(json_get(o, "index"), -1),
            .kfd_node = num_of(o, "kfd_node"),
            .rocm_capable = json_bool(json_get(o, "rocm_capable"), false),
            .gtt_total_bytes = num_of(o, "gtt_total_bytes"),
            .vram_total_bytes = num_of(o, "vram_total_bytes"),
            .render = { .gid = -1 },
        };
    }
}

static void take_torch(const struct json *o, struct arena *a, struct facts *f)
{
    f->torches = NULL;
    f->n_torches = 0;
    if (!json_is_object(o))
        return;
    struct torch_facts *t = ARENA_PUSH(a, f->torches, f->n_torches);
    *t = (struct torch_facts){
        .version = text_of(o, "version", a),
        .hip = text_of(o, "hip", a),
        .build = (enum torch_build)find_name(builds, ARRAY_LEN(builds), json_text(json_get(o, "build"))),
        .site = copied(o, "site", a),
        .python = copied(o, "python", a),
        .hip_library = text_of(o, "hip_library", a),
        .bitsandbytes = { .version = text_of(o, "bitsandbytes", a) },
        .bnb_rocm = copied(o, "bnb_rocm", a),
        .therock = json_bool(json_get(o, "therock"), false),
        .kpack = json_bool(json_get(o, "kpack"), false),
        .guess = json_bool(json_get(o, "guess"), false),
        .compiled = targets_of(o, "compiled", a),
        .device_wheels = targets_of(o, "device_wheels", a),
        .rocblas = targets_of(o, "rocblas", a),
    };
    t->site = t->site ? t->site : "";
    if (t->version.s)
        version_parse(t->version.s, &t->parsed);
    if (t->hip.s)
        version_parse(t->hip.s, &t->hip_parsed);
    if (t->bitsandbytes.version.s)
        version_parse(t->bitsandbytes.version.s, &t->bitsandbytes.parsed);
}

static void take_host(const struct json *o, struct arena *a, struct host_facts *h)
{
    h->kernel = text_of(o, "kernel", a);
    h->os_id = text_of(o, "os_id", a);
    h->os_like = text_of(o, "os_like", a);
    h->os_name = text_of(o, "os_name", a);
    h->container = text_of(o, "container", a);
    h->user = copied(o, "user", a);
    h->kfd_node.access = json_bool(json_get(o, "kfd_denied"), false) ? NODE_DENIED : NODE_UNKNOWN;
    h->kfd_node.group = copied(o, "kfd_group", a);
    h->memory_total_bytes = num_of(o, "memory_total_bytes");
}

static const char *const *take_env(const struct json *o, struct arena *a)
{
    const char **env = NULL;
    size_t n = 0;
    if (!json_is_object(o))
        return NULL;
    for (struct json_member m = json_first(o); m.key; m = json_next(o, m))
        if (json_text(m.value))
            *ARENA_PUSH(a, env, n) = arena_printf(a, "%s=%s", m.key, json_text(m.value));
    *ARENA_PUSH(a, env, n) = NULL;
    return env;
}

bool context_take(const struct json *v, struct arena *a, struct facts *f, struct diagnose_context *ctx)
{
    const struct json *gpus = json_get(v, "gpus");
    if (!json_is_array(gpus) || json_int(json_get(v, "schema"), 0) != 1)
        return false;
    take_gpus(gpus, a, f);
    int64_t chosen = json_int(json_get(v, "default_gpu"), -1);
    f->default_gpu = chosen >= 0 && (size_t)chosen < f->n_gpus ? (int)chosen : -1;
    take_torch(json_get(v, "torch"), a, f);
    take_host(json_get(v, "host"), a, &f->host);
    ctx->facts = f;
    ctx->gfx = ctx->gfx ? ctx->gfx : copied(v, "gfx", a);
    ctx->own_torch = json_bool(json_get(v, "own_torch"), false);
    ctx->in_copy = json_bool(json_get(v, "in_copy"), false);
    ctx->env = take_env(json_get(v, "env"), a);
    return true;
}
