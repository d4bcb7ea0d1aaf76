/* SPDX-License-Identifier: Apache-2.0 */
#include "trials.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "host/gpus.h"
#include "chip/gfx_table.h"
#include "rules/override.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "own": also the chip's own target; "alone": nothing but that; "near": only what could stand in for it; "far": nothing
 * that runs on it. */
static const struct {
    const char *version, *code;
    bool therock, kpack, flash;
} torches[] = {
    { NULL, NULL, false, false, false },
    { "2.9.1+cpu", NULL, false, false, false },
    { "2.9.1+cu128", NULL, false, false, false },
    { "2.5.1+rocm6.2", "wheel", false, false, false },
    { "2.9.1+rocm6.4", "wheel", false, false, true },
    { "2.10.0+rocm7.0", "own", false, false, false },
    { "2.12.0+rocm7.2", "own", false, false, true },
    { "2.12.0+rocm7.2", "near", false, false, false },
    { "2.11.0+rocm7.14", "alone", true, false, false },
    { "2.11.0+rocm7.14", "near", true, true, false },
    { "2.11.0+rocm7.14", "alone", true, true, false },
    { "2.9.1+rocm6.4", "far", false, false, false },
    { "2.9.1+rocm6.4", "unknown", false, false, false },
};

#define ENV(...)          \
    {                     \
        __VA_ARGS__, NULL \
    }
static const char *const environments[][8] = {
    { NULL },
    ENV("@halo-start-script.env"),
    ENV("@halo-windows.env"),
    ENV("@rx6750xt-by-hand.env"),
    ENV("@rx6750xt-debugging.env"),
    ENV("@rx6750xt-wrapper.env"),
    ENV("HSA_OVERRIDE_GFX_VERSION=10.3.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.0.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.5.1"),
    ENV("HSA_OVERRIDE_GFX_VERSION=9.0.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=gfx1030"),
    ENV("HSA_OVERRIDE_GFX_VERSION_1=10.3.0", "HSA_OVERRIDE_GFX_VERSION_2=11.0.0"),
    ENV("ROCR_VISIBLE_DEVICES=0"),
    ENV("ROCR_VISIBLE_DEVICES=1", "HSA_OVERRIDE_GFX_VERSION=10.3.0"),
    ENV("HIP_VISIBLE_DEVICES=0,1"),
    ENV("HIP_VISIBLE_DEVICES=1"),
    ENV("HIP_VISIBLE_DEVICES=7"),
    ENV("CUDA_VISIBLE_DEVICES=0, 1"),
    ENV("HIP_VISIBLE_DEVICES="),
    ENV("ROCR_VISIBLE_DEVICES=1,0", "HIP_VISIBLE_DEVICES=1"),
    ENV("LD_LIBRARY_PATH=/opt/rocm/lib:/usr/local/lib", "LD_PRELOAD=/opt/rocm/lib/librocblas.so.4"),
    ENV("PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:8", "PYTORCH_NO_HIP_MEMORY_CACHING=1"),
    ENV("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,garbage_collection_threshold:0.7"),
    ENV("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=0", "FLASH_ATTENTION_TRITON_AMD_ENABLE=true"),
    ENV("FLASH_ATTENTION_TRITON_AMD_ENABLE=0", "MIOPEN_FIND_MODE=QUICK", "HSA_XNACK=1"),
    ENV("ROCBLAS_USE_HIPBLASLT=1", "AMD_SERIALIZE_KERNEL=3", "HIP_LAUNCH_BLOCKING=1"),
};

void trial_tell(const struct trial *t)
{
    for (size_t i = 0; i < t->p.facts.n_gpus; i++)
        printf("#   GPU %d %s, node %d, %s%s\n", t->p.facts.gpus[i].hip_index, t->p.facts.gpus[i].gfx.s,
               (int)t->p.facts.gpus[i].kfd_node.v,
               t->p.facts.gpus[i].kind == GPU_INTEGRATED ? "integrated" : "discrete",
               (int)i == t->p.facts.default_gpu ? ", default" : "");
    const struct override_wheel wheel = override_wheel_of(facts_torch(&t->p.facts));
    for (size_t i = 0; i < wheel.code.n; i++)
        printf("%s%s%s", i ? " " : "#   code for ", wheel.code.name[i], i + 1 < wheel.code.n ? "" : "\n");
    for (size_t i = 0; i < t->p.n_env; i++)
        printf("#   user %s\n", t->p.env[i]);
    for (size_t i = 0; i < t->p.plan.n_set; i++)
        printf("#   set %s=%s\n", t->p.plan.set[i].name, t->p.plan.set[i].value);
    for (size_t i = 0; i < t->p.plan.n_unset; i++)
        printf("#   unset %s: %s\n", t->p.plan.unset[i].name, t->p.plan.unset[i].why);
}

static void need(bool there, const char *what)
{
    if (there)
        return;
    printf("Bail out! cannot read %s\n", what);
    exit(1);
}

static void fill_targets(struct trial *t, const char *code)
{
    struct planning *p = &t->p;
    const char *gfx = p->facts.default_gpu >= 0 ? p->facts.gpus[p->facts.default_gpu].gfx.s : NULL;
    const struct gfx_chip *chip = gfx ? gfx_find(gfx) : NULL;
    const char *near = "gfx900";
    for (const struct gfx_chip *c = gfx_table(); c->gfx && chip; c++)
        if (c != chip && gfx_is_safe_relative(c, chip))
            near = c->gfx;
    if (str_eq(code, "own"))
        planning_targets(
            p, arena_printf(&p->arena, "gfx906 gfx1030 gfx1100 gfx1101 gfx1201 %s", gfx ? gfx : ""));
    else if (str_eq(code, "alone"))
        planning_targets(p, gfx ? gfx : "gfx1030");
    else if (str_eq(code, "near"))
        planning_targets(p, near);
    else if (str_eq(code, "far"))
        planning_targets(p, gfx && str_starts(gfx, "gfx9") ? "gfx1201" : "gfx906");
    else if (str_eq(code, "unknown"))
        p->torch.compiled = (struct targets){ 0 };
}

static void put_torch(struct trial *t, size_t i)
{
    struct planning *p = &t->p;
    planning_torch(p, torches[i].version);
    if (!torches[i].code)
        return;
    fill_targets(t, torches[i].code);
    /* Its libraries: those of AMD's own wheels have all that PyTorch has; others lack MIOpen's database, and one of them
     * rocBLAS' kernels too. */
    p->torch.rocblas = p->torch.hipblaslt = p->torch.aotriton = p->torch.miopen = p->torch.compiled;
    if (!torches[i].therock)
        p->torch.miopen = (struct targets){ .from = "test" };
    if (torches[i].flash)
        p->torch.rocblas = (struct targets){ .from = "test" };
    p->torch.therock = torches[i].therock;
    p->torch.kpack = torches[i].kpack;
    if (torches[i].kpack)
        p->torch.device_wheels = p->torch.compiled;
    if (torches[i].flash)
        p->torch.flash_attn = (struct package_facts){ .version = { "2.8.3", "test" }, .fits = TRI_YES };
}

static void put_env(struct trial *t, size_t e)
{
    struct planning *p = &t->p;
    p->n_env = 0;
    memset(p->env, 0, sizeof(p->env));
    for (size_t i = 0; environments[e][i]; i++)
        if (environments[e][i][0] == '@')
            need(planning_env_file(p, environments[e][i] + 1), environments[e][i] + 1);
        else
            planning_env(p, environments[e][i]);
}

struct course {
    bool (*try)(struct trial *t);
    bool on;
    uint32_t seed;
};

static size_t sweep(struct course *c, const char *where)
{
    struct trial t = { .where = where };
    size_t n = 0;
    need(planning_open(&t.p, where), where);
    for (size_t i = 0; i < ARRAY_LEN(torches); i++)
        for (size_t e = 0; e < ARRAY_LEN(environments) && c->on; e++) {
            t.torch = torches[i].version;
            t.code = torches[i].code;
            t.env = e;
            put_torch(&t, i);
            put_env(&t, e);
            c->on = c->try(&t);
            arena_release(&t.p.arena);
            n++;
        }
    planning_release(&t.p);
    return n;
}

/* Values that nobody thought of: any override, any selection, and a wheel of any targets. */
static const char *some_assignment(struct trial *t, uint32_t r)
{
    static const char *const others[] = {
        "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128",
        "PYTORCH_ALLOC_CONF=backend:malloc",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "TORCH_BLAS_PREFER_HIPBLASLT=yes",
        "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
        "FLASH_ATTENTION_TRITON_AMD_ENABLE=1",
        "ROCBLAS_USE_HIPBLASLT=1",
        "ROCBLAS_TENSILE_LIBPATH=/opt/rocm/lib/rocblas/library",
        "LD_LIBRARY_PATH=/opt/rocm-6.4.0/lib:",
        "LD_PRELOAD=libamdhip64.so",
        "AMD_SERIALIZE_KERNEL=0",
        "HSA_XNACK=true",
        "HSA_ENABLE_SDMA=0",
        "MIOPEN_FIND_MODE=FAST",
        "HIP_LAUNCH_BLOCKING=yes",
        "GPU_MAX_HW_QUEUES=two",
    };
    static const char *const lists[] = {
        "0", "1", "0,1", "1,0", "0, 1", "", "9", "-1", "GPU-0123456789abcdef"
    };
    size_t chips = 0;
    char value[16] = "10.3";
    while (gfx_table()[chips].gfx)
        chips++;
    uint32_t pick = r >> 3;
    switch (r & 7) {
    case 0:
    case 1:
        gfx_override_value(gfx_table()[pick % chips].gfx, value);
        return arena_printf(&t->p.arena, "HSA_OVERRIDE_GFX_VERSION%s=%s",
                            r & 1        ? ""
                            : pick & 256 ? "_1"
                                         : "_2",
                            value);
    case 2:
        return arena_printf(&t->p.arena, "ROCR_VISIBLE_DEVICES=%s", lists[pick % ARRAY_LEN(lists)]);
    case 3:
        return arena_printf(&t->p.arena, "HIP_VISIBLE_DEVICES=%s", lists[pick % ARRAY_LEN(lists)]);
    case 4:
        return arena_printf(&t->p.arena, "CUDA_VISIBLE_DEVICES=%s", lists[pick % ARRAY_LEN(lists)]);
    default:
        return others[pick % ARRAY_LEN(others)];
    }
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static const char *some_targets(struct trial *t, uint32_t *seed)
{
    const char *list = "";
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (next_random(seed) % 4 == 0)
            list = arena_printf(&t->p.arena, "%s%s ", list, c->gfx);
    return list;
}

static void put_random(struct trial *t, uint32_t *seed)
{
    struct planning *p = &t->p;
    put_torch(t, next_random(seed) % ARRAY_LEN(torches));
    if (p->torch.compiled.from && next_random(seed) % 2) {
        planning_targets(p, some_targets(t, seed));
        p->torch.rocblas = p->torch.compiled;
        p->torch.device_wheels = p->torch.kpack ? p->torch.compiled : p->torch.device_wheels;
    }
    if (p->torch.compiled.from && next_random(seed) % 4 == 0) {
        struct targets code = p->torch.compiled;
        planning_targets(p, some_targets(t, seed));
        p->torch.rocblas = p->torch.compiled;
        p->torch.compiled = code;
    }
    p->n_env = 0;
    memset(p->env, 0, sizeof(p->env));
    for (uint32_t n = next_random(seed) % 5; n > 0; n--) {
        const char *one = some_assignment(t, next_random(seed));
        size_t len = strcspn(one, "="), k = 0;
        while (k < p->n_env && strncmp(p->env[k], one, len + 1))
            k++;
        if (k == p->n_env)
            planning_env(p, one);
    }
}

/* The capture's own, and up to three more of any chip. */
static void put_gpus(struct trial *t, const struct facts *captured, uint32_t *seed)
{
    struct facts *f = &t->p.facts;
    size_t chips = 0, more = captured->default_gpu >= 0 ? next_random(seed) % 4 : 0;
    while (gfx_table()[chips].gfx)
        chips++;
    f->gpus = NULL;
    f->n_gpus = 0;
    int index = 0;
    for (size_t i = 0; i < captured->n_gpus; i++) {
        *ARENA_PUSH(&t->p.arena, f->gpus, f->n_gpus) = captured->gpus[i];
        index = captured->gpus[i].hip_index >= index ? captured->gpus[i].hip_index + 1 : index;
    }
    for (size_t i = 0; i < more; i++, index++) {
        struct gpu_facts g = captured->gpus[captured->default_gpu];
        g.gfx.s = gfx_table()[next_random(seed) % chips].gfx;
        g.kind = gfx_kind(g.gfx.s, 0);
        g.hip_index = index;
        g.kfd_node = (struct num){ index + 1, "test" };
        g.uuid = (struct text){ 0 };
        g.usable_bytes.v += (int64_t)(next_random(seed) % 3) - 1;
        *ARENA_PUSH(&t->p.arena, f->gpus, f->n_gpus) = g;
    }
    gpus_choose_default(f);
}

static size_t sweep_at_random(struct course *c, const char *where)
{
    struct trial t = { .where = where, .code = "at random" };
    size_t n = 0;
    need(planning_open(&t.p, where), where);
    const struct facts captured = t.p.facts;
    for (; n < 400 && c->on; n++) {
        put_gpus(&t, &captured, &c->seed);
        put_random(&t, &c->seed);
        t.torch = t.p.facts.n_torches ? t.p.torch.version.s : NULL;
        t.env = n;
        c->on = c->try(&t);
        arena_release(&t.p.arena);
    }
    planning_release(&t.p);
    return n;
}

static size_t sweep_capture(const char *capture, void *context)
{
    size_t n = sweep(context, capture);
    return n + sweep_at_random(context, capture);
}

size_t trials_run(bool (*try)(struct trial *t))
{
    struct course c = { .try = try, .on = true, .seed = 1 };
    return planning_captures(sweep_capture, &c);
}
