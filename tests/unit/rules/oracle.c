/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include "base/str.h"
#include "rules/env_names.h"
#include "chip/gfx_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The environment that the plan leaves. */
struct result {
    const char *name[96], *value[96];
    size_t n;
};

static const char *result_get(const struct result *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->name[i], name))
            return r->value[i];
    return NULL;
}

static void result_put(struct result *r, const char *name, const char *value)
{
    size_t i = 0;
    while (i < r->n && strcmp(r->name[i], name))
        i++;
    r->name[i] = name;
    r->value[i] = value;
    r->n += i == r->n;
}

static void result_make(struct planning *p, struct result *r)
{
    r->n = 0;
    for (size_t i = 0; i < p->n_env; i++) {
        size_t n = strcspn(p->env[i], "=");
        const char *name = arena_strndup(&p->arena, p->env[i], n);
        if (!planning_unset(p, name))
            result_put(r, name, p->env[i] + n + 1);
    }
    for (size_t i = 0; i < p->plan.n_set; i++)
        result_put(r, p->plan.set[i].name, p->plan.set[i].value);
}

/* What is wrong; NULL: nothing. */
typedef const char *(*look)(struct planning *p, const struct result *r);

/* Reads a list as the runtimes do and narrows `list`, which holds indices of usable GPUs. */
static size_t narrow(const char *text, bool trims, int *list, size_t n)
{
    int out[16];
    size_t found = 0;
    for (const char *p = text; *p && found < 16;) {
        char *end;
        if (trims)
            p += strspn(p, " ");
        if (*p < '0' || *p > '9')
            break;
        long index = strtol(p, &end, 10);
        if (trims)
            end += strspn(end, " ");
        if ((*end && *end != ',') || index >= (long)n)
            break;
        out[found++] = list[index];
        p = *end ? end + 1 : end;
    }
    memcpy(list, out, found * sizeof(*out));
    return found;
}

static size_t seen_gpus(struct planning *p, const struct result *r, int *list)
{
    size_t n = 0;
    for (size_t i = 0; i < p->facts.n_gpus; i++)
        if (p->facts.gpus[i].rocm_capable && p->facts.gpus[i].hip_index >= 0)
            list[n++] = (int)i;
    const char *rocr = result_get(r, "ROCR_VISIBLE_DEVICES"), *hip = result_get(r, "HIP_VISIBLE_DEVICES");
    hip = hip && *hip ? hip : result_get(r, "CUDA_VISIBLE_DEVICES");
    if (rocr)
        n = narrow(rocr, true, list, n);
    return hip ? narrow(hip, false, list, n) : n;
}

static bool sees(const struct planning *p, const int *list, size_t n, const struct gpu_facts *g)
{
    for (size_t i = 0; i < n; i++)
        if (&p->facts.gpus[list[i]] == g)
            return true;
    return false;
}

static const char *devices(struct planning *p, const struct result *r)
{
    int list[16];
    const char *rocr = result_get(r, "ROCR_VISIBLE_DEVICES"), *hip = result_get(r, "HIP_VISIBLE_DEVICES");
    const char *cuda = result_get(r, "CUDA_VISIBLE_DEVICES");
    if (hip && cuda && strcmp(hip, cuda))
        return "HIP_ and CUDA_VISIBLE_DEVICES disagree";
    if (rocr && (hip || cuda) && strcmp(rocr, hip ? hip : cuda))
        return "ROCR_ and HIP_VISIBLE_DEVICES disagree";
    if ((rocr && !*rocr) || (hip && !*hip) || (cuda && !*cuda))
        return "an empty selection";
    if (p->options.windows || !p->plan.gpu)
        return NULL;
    size_t n = seen_gpus(p, r, list);
    if (!sees(p, list, n, p->plan.gpu))
        return "the GPU planned for is hidden";
    if (p->options.gpu >= 0 && (n != 1 || p->plan.gpu->hip_index != p->options.gpu))
        return "--gpu is not what is shown";
    return NULL;
}

static bool carried(const struct planning *p, const char *gfx)
{
    for (size_t i = 0; i < p->torch.compiled.n; i++)
        if (gfx_code_runs(p->torch.compiled.name[i], gfx))
            return true;
    return false;
}

static const char *override_of(struct planning *p, const struct gpu_facts *g, const char *value)
{
    int major, minor, stepping;
    char end, text[16];
    if (sscanf(value, "%d.%d.%d%c", &major, &minor, &stepping, &end) != 3 || strpbrk(value, " +-"))
        return "a malformed override";
    const struct gfx_chip *as = NULL, *real = g->gfx.s ? gfx_find(g->gfx.s) : NULL;
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (gfx_override_value(c->gfx, text) && !strcmp(text, value))
            as = c;
    if (!as)
        return "an override to no chip";
    if (!real)
        return NULL;
    if (as == real)
        return "an override to the chip itself";
    if (!str_eq(as->generic, real->generic) || as->vgpr_kib > real->vgpr_kib)
        return "an override to a chip whose code cannot run";
    if (p->torch.compiled.from && (!carried(p, as->gfx) || carried(p, real->gfx)))
        return "an override that this wheel does not want";
    return NULL;
}

static const char *overrides(struct planning *p, const struct result *r)
{
    int list[16];
    size_t n = p->plan.gpu ? seen_gpus(p, r, list) : 0;
    const char *plain = result_get(r, "HSA_OVERRIDE_GFX_VERSION");
    for (size_t i = 0; i < n; i++) {
        const struct gpu_facts *g = &p->facts.gpus[list[i]];
        const char *own =
            result_get(r, arena_printf(&p->arena, "HSA_OVERRIDE_GFX_VERSION_%lld", (long long)g->kfd_node.v));
        const char *flaw = own || plain ? override_of(p, g, own ? own : plain) : NULL;
        if (flaw)
            return flaw;
        if (!own && !plain && p->torch.compiled.from && g == p->plan.gpu && !carried(p, g->gfx.s) &&
            !planning_warns(p, "has no code for") && !planning_warns(p, "from 6.3") && !p->options.windows)
            return "a chip without code, without override and without a warning";
    }
    for (size_t i = 0; i < r->n; i++) {
        bool node = str_starts(r->name[i], "HSA_OVERRIDE_GFX_VERSION_"), shown = false;
        for (size_t k = 0; node && k < n; k++)
            shown |=
                p->facts.gpus[list[k]].kfd_node.v == atoi(r->name[i] + strlen("HSA_OVERRIDE_GFX_VERSION_"));
        if (node && p->plan.gpu && !shown)
            return "an override of a GPU that is hidden or not there";
    }
    return NULL;
}

static const char *allocator(struct planning *p, const struct result *r)
{
    static const char *const names[] = { "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                         "PYTORCH_ALLOC_CONF" };
    const char *text = NULL;
    bool read = false, known = p->torch.build == TORCH_ROCM && p->facts.n_torches;
    int minor = p->torch.parsed.part[1];
    for (int i = 0; i < 3; i++) {
        const char *v = result_get(r, names[i]);
        if (!v)
            continue;
        if (text && strcmp(text, v))
            return "two allocator variables that differ";
        text = v;
        read |= i == 0 || (i == 1 && minor >= 8) || (i == 2 && minor >= 12);
    }
    if (text && known && !read)
        return "allocator options under a name that this torch does not read";
    if (text &&
        (strstr(text, "backend:malloc") || strstr(text, "split_size_mb:8") || strstr(text, "threshold:2")))
        return "an allocator option that stops torch";
    return NULL;
}

static const char *debugging(struct planning *p, const struct result *r)
{
    const char *kernel = result_get(r, "AMD_SERIALIZE_KERNEL"), *copy = result_get(r, "AMD_SERIALIZE_COPY");
    const char *blocking = result_get(r, "HIP_LAUNCH_BLOCKING"),
               *hip = result_get(r, "PYTORCH_NO_HIP_MEMORY_CACHING");
    bool on = (kernel && atoi(kernel)) || (copy && atoi(copy)) || (blocking && atoi(blocking));
    if (on && !p->options.debug)
        return "debugging that was not asked for";
    if (p->options.debug && p->plan.gpu && !(kernel && atoi(kernel) && copy && atoi(copy)))
        return "debugging that was asked for is missing";
    if (p->options.debug && on && blocking && !atoi(blocking))
        return "debugging on and off";
    if (!p->options.debug && hip && atoi(hip))
        return "no caching allocator";
    return NULL;
}

static const char *the_rest(struct planning *p, const struct result *r)
{
    const struct gfx_chip *chip = p->plan.gpu && p->plan.gpu->gfx.s ? gfx_find(p->plan.gpu->gfx.s) : NULL;
    const char *path = result_get(r, "LD_LIBRARY_PATH"), *preload = result_get(r, "LD_PRELOAD");
    for (size_t i = 0; i < r->n; i++) {
        const struct env_name *row = env_name_find(r->name[i]);
        if (p->options.windows && row && row->linux_only)
            return "a variable that Windows does not read";
        if (row && row->verdict == ENV_UNREAD)
            return "a variable that nobody reads";
        if (row && row->syntax == ENV_FLAG && strcmp(r->value[i], "0") && strcmp(r->value[i], "1"))
            return "a flag that is neither 0 nor 1";
    }
    if ((path && strstr(path, "/opt/rocm")) || (preload && strstr(preload, "libamdhip64")))
        return "a second runtime";
    if (chip && chip->family >= GFX_RDNA2 && result_get(r, "HSA_XNACK"))
        return "page-fault retry on a chip that has none";
    return NULL;
}

static bool is_whole(const struct plan_var *v, size_t n, bool source)
{
    for (size_t i = 0; i < n; i++)
        if (!v[i].name || !v[i].value || !v[i].why || !*v[i].why ||
            (source && (!v[i].source || !*v[i].source)) || plan_find(v, n, v[i].name) != &v[i])
            return false;
    return true;
}

static const char *shape(struct planning *p, const struct result *r)
{
    (void)r;
    const struct plan *plan = &p->plan;
    if (!is_whole(plan->set, plan->n_set, true) || !is_whole(plan->unset, plan->n_unset, true) ||
        !is_whole(plan->keep, plan->n_keep, false))
        return "an entry without reason or source, or twice";
    for (size_t i = 0; i < plan->n_keep; i++)
        if (planning_set(p, plan->keep[i].name) || planning_unset(p, plan->keep[i].name))
            return "a variable both kept and changed";
    for (size_t i = 0; i < p->n_env; i++) {
        const char *name = arena_strndup(&p->arena, p->env[i], strcspn(p->env[i], "="));
        if (!planning_keep(p, name) && !planning_unset(p, name))
            return arena_printf(&p->arena, "no verdict on %s", name);
    }
    return !plan->gpu && plan->n_set > 0 && !planning_set(p, "LD_LIBRARY_PATH") && !p->n_env
               ? "something to set without a GPU"
               : NULL;
}

/* In the environment that the plan made, a second plan changes nothing. */
static const char *again(struct planning *p, const struct result *r)
{
    p->n_env = 0;
    memset(p->env, 0, sizeof(p->env));
    for (size_t i = 0; i < r->n; i++)
        planning_env(p, arena_printf(&p->arena, "%s=%s", r->name[i], r->value[i]));
    struct cairn_error err = { 0 };
    if (planning_run(p, &err))
        return "the second plan fails";
    if (p->plan.n_unset)
        return "the second plan removes something";
    return p->plan.n_set ? "the second plan sets something" : NULL;
}

const char *oracle_flaw(struct planning *p)
{
    static const look looks[] = { devices, overrides, allocator, debugging, the_rest, shape };
    struct result r;
    const char *flaw = NULL;
    result_make(p, &r);
    for (size_t i = 0; i < ARRAY_LEN(looks) && !flaw; i++)
        flaw = looks[i](p, &r);
    return flaw ? flaw : again(p, &r);
}
