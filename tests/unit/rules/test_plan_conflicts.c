/* SPDX-License-Identifier: Apache-2.0
 * No plan contradicts itself: every capture, many versions of PyTorch and ROCm, many environments. */
#include "oracle.h"

#include "base/str.h"
#include "check.h"

static const char *const torches[] = {
    NULL,
    "2.9.1+cpu",
    "2.9.1+cu128",
    "2.4.0+rocm6.0",
    "2.5.1+rocm6.2",
    "2.6.0+rocm6.2",
    "2.7.1+rocm6.3",
    "2.8.0+rocm6.4",
    "2.9.1+rocm6.4",
    "2.9.1+rocm7.0",
    "2.10.0+rocm7.0",
    "2.11.0+rocm7.2",
    "2.12.0+rocm7.2",
    "2.12.0+rocm7.14",
    "2.13.0+rocm7.2",
    "2.14.0.dev20260901+rocm10.0",
    "therock 2.9.1+rocm7.10",
    "therock 2.11.0+rocm7.14",
};

#define ENV(...)          \
    {                     \
        __VA_ARGS__, NULL \
    }
static const char *const environments[][10] = {
    { NULL },
    ENV("HSA_OVERRIDE_GFX_VERSION=gfx1031", "HIP_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=0",
        "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"),
    ENV("HSA_OVERRIDE_GFX_VERSION=10.3.1", "HIP_VISIBLE_DEVICES=0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.0.0", "PYTORCH_MAX_SPLIT_SIZE_MB=512", "PYTORCH_NO_HIP_MEMORY_CACHING=1",
        "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.0.0", "ROCBLAS_USE_HIPBLASLT=1",
        "LD_LIBRARY_PATH=/opt/rocm/lib:", "DEVICE_LIB_PATH=/opt/rocm/llvm/amdgcn/bitcode",
        "AMD_SERIALIZE_KERNEL=3", "TORCH_USE_HIP_DSA=1", "HIP_LAUNCH_BLOCKING=0", "HIP_VISIBLE_DEVICES=0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=10.3.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=9.0.0", "HSA_OVERRIDE_GFX_VERSION_1=10.3.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.0.2"),
    ENV("HSA_OVERRIDE_GFX_VERSION="),
    ENV("HSA_OVERRIDE_GFX_VERSION_0=10.3.0", "HSA_OVERRIDE_GFX_VERSION_1=11.0.0",
        "HSA_OVERRIDE_GFX_VERSION_2=10.3.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION_1=10.3.0", "ROCR_VISIBLE_DEVICES=1"),
    ENV("HIP_VISIBLE_DEVICES=0, 1"),
    ENV("HIP_VISIBLE_DEVICES="),
    ENV("ROCR_VISIBLE_DEVICES="),
    ENV("CUDA_VISIBLE_DEVICES=-1"),
    ENV("HIP_VISIBLE_DEVICES=9"),
    ENV("ROCR_VISIBLE_DEVICES=0, 1"),
    ENV("ROCR_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES=1"),
    ENV("ROCR_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES=0"),
    ENV("ROCR_VISIBLE_DEVICES=1,0", "HIP_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=1"),
    ENV("ROCR_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=0"),
    ENV("ROCR_VISIBLE_DEVICES=GPU-0123456789abcdef"),
    ENV("HIP_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1"),
    ENV("HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=0"),
    ENV("HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES="),
    ENV("HIP_VISIBLE_DEVICES=1", "HSA_OVERRIDE_GFX_VERSION=10.3.0"),
    ENV("CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7"),
    ENV("CUDA_VISIBLE_DEVICES=all"),
    ENV("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:256",
        "PYTORCH_ALLOC_CONF=max_split_size_mb:512"),
    ENV("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:8"),
    ENV("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"),
    ENV("PYTORCH_ALLOC_CONF=max_split_size_mb:128"),
    ENV("PYTORCH_ALLOC_CONF=expandable_segments:True", "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"),
    ENV("PYTORCH_ALLOC_CONF=backend:malloc,max_split_size_mb:64", "PYTORCH_CUDA_ALLOC_CONF=backend:malloc"),
    ENV("PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:2,expandable_segments:True"),
    ENV("PYTORCH_NO_CUDA_MEMORY_CACHING=0", "PYTORCH_NO_HIP_MEMORY_CACHING=0"),
    ENV("AMD_SERIALIZE_KERNEL=3", "HIP_LAUNCH_BLOCKING=1", "AMD_SERIALIZE_COPY=3", "AMD_LOG_LEVEL=4"),
    ENV("AMD_SERIALIZE_KERNEL=0", "HIP_LAUNCH_BLOCKING=0", "AMD_LOG_LEVEL=0", "HSAKMT_DEBUG_LEVEL=7"),
    ENV("HSA_XNACK=1", "HSA_ENABLE_SDMA=0", "HSA_ENABLE_INTERRUPT=0", "HSA_UNALIGNED_ACCESS_MODE=1"),
    ENV("HSA_XNACK=true", "TORCH_BLAS_PREFER_HIPBLASLT=yes", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=on",
        "FLASH_ATTENTION_TRITON_AMD_ENABLE=true", "MIOPEN_FIND_MODE=QUICK", "GPU_MAX_HW_QUEUES=two"),
    ENV("LD_LIBRARY_PATH=/opt/rocm/lib:/opt/rocm-6.4.0/lib:/usr/local/lib",
        "LD_PRELOAD=/opt/rocm/lib/libamdhip64.so.6", "ROCBLAS_TENSILE_LIBPATH=/opt/rocm/lib/rocblas/library",
        "ROCM_PATH=/opt/rocm"),
    ENV("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=0", "TORCH_BLAS_PREFER_HIPBLASLT=0",
        "ROCBLAS_USE_HIPBLASLT=0"),
    ENV("HIP_VISIBLE_DEVICES=0, 1", "ROCR_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=0 ",
        "HSA_OVERRIDE_GFX_VERSION=10.3"),
};

struct mode {
    const char *name;
    int gpu;
    bool debug, windows;
};
static const struct mode modes[] = {
    { "plain", -1, false, false },  { "--gpu 0", 0, false, false },      { "--gpu 1", 1, false, false },
    { "--debug", -1, true, false }, { "--os windows", -1, false, true },
};

static void say(const struct planning *p, const char *where, const char *torch, const struct mode *m,
                const char *what)
{
    CHECK_FAIL_("%s, torch %s, %s: %s", where, torch ? torch : "none", m->name, what);
    for (size_t i = 0; i < p->n_env; i++)
        printf("#   user %s\n", p->env[i]);
    for (size_t i = 0; i < p->plan.n_set; i++)
        printf("#   set %s=%s\n", p->plan.set[i].name, p->plan.set[i].value);
    for (size_t i = 0; i < p->plan.n_unset; i++)
        printf("#   unset %s: %s\n", p->plan.unset[i].name, p->plan.unset[i].why);
}

static bool plan_one(struct planning *p, const char *where, const char *torch, const char *const *env,
                     const struct mode *m)
{
    struct cairn_error err = { 0 };
    p->n_env = 0;
    memset(p->env, 0, sizeof(p->env));
    for (size_t i = 0; env[i]; i++)
        planning_env(p, env[i]);
    p->options = (struct plan_options){ .gpu = m->gpu, .debug = m->debug, .windows = m->windows };
    if (planning_run(p, &err))
        return false; /* --gpu 1 where there is only one */
    struct planning before = *p;
    const char *flaw = oracle_flaw(p);
    if (flaw)
        say(&before, where, torch, m, flaw);
    return true;
}

static void put_torch(struct planning *p, const char *version)
{
    bool therock = version && str_starts(version, "therock ");
    planning_torch(p, therock ? version + strlen("therock ") : version);
    p->torch.therock = therock;
    if (therock) /* AMD's wheels have code for what is in the machine */
        planning_targets(p, p->facts.n_gpus && p->facts.gpus[0].gfx.s ? p->facts.gpus[0].gfx.s : "gfx1030");
}

static size_t sweep(const char *where)
{
    struct planning p;
    size_t n = 0;
    if (!planning_open(&p, where)) {
        CHECK_FAIL_("cannot read %s", where);
        return 0;
    }
    for (size_t t = 0; t < ARRAY_LEN(torches); t++) {
        for (size_t e = 0; e < ARRAY_LEN(environments); e++)
            for (size_t m = 0; m < ARRAY_LEN(modes); m++) {
                put_torch(&p, torches[t]);
                n += plan_one(&p, where, torches[t], environments[e], &modes[m]);
                arena_release(&p.arena);
            }
    }
    planning_release(&p);
    return n;
}

/* Values that only a slip of the hand makes, besides all those above. */
static const char *const odd_values[] = {
    "HSA_OVERRIDE_GFX_VERSION=10.3.0.",
    "HSA_OVERRIDE_GFX_VERSION=64.0.0",
    "HSA_OVERRIDE_GFX_VERSION=11.5.1",
    "HSA_OVERRIDE_GFX_VERSION=99999999999.1.1",
    "HSA_OVERRIDE_GFX_VERSION_99999999999999999999=10.3.0",
    "HIP_VISIBLE_DEVICES=,",
    "HIP_VISIBLE_DEVICES=0,",
    "HIP_VISIBLE_DEVICES=,0",
    "HIP_VISIBLE_DEVICES=00",
    "ROCR_VISIBLE_DEVICES=0,,1",
    "ROCR_VISIBLE_DEVICES=1, 0",
    "ROCR_VISIBLE_DEVICES=99999999999999999999",
    "ROCR_VISIBLE_DEVICES=GPU-",
    "CUDA_VISIBLE_DEVICES=1,0",
    "CUDA_VISIBLE_DEVICES=NoDevFiles",
    "PYTORCH_ALLOC_CONF=",
    "PYTORCH_ALLOC_CONF=,",
    "PYTORCH_ALLOC_CONF=[",
    "PYTORCH_HIP_ALLOC_CONF=a:]],b:[[",
    "PYTORCH_HIP_ALLOC_CONF=expandable_segments:maybe",
    "PYTORCH_CUDA_ALLOC_CONF=:",
    "LD_LIBRARY_PATH=:::",
    "LD_PRELOAD=libamdhip64.so",
    "AMD_SERIALIZE_KERNEL=-1",
    "AMD_SERIALIZE_COPY=",
    "HIP_LAUNCH_BLOCKING=",
    "TORCH_BLAS_PREFER_HIPBLASLT=",
    "MIOPEN_FIND_MODE=",
    "MIOPEN_FIND_MODE=|",
    "HSA_XNACK=",
    "AMD_LOG_LEVEL=x",
};

static const char *some_assignment(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    uint32_t pick = *seed >> 8;
    if (pick % 3 == 0)
        return odd_values[pick / 3 % ARRAY_LEN(odd_values)];
    const char *const *env = environments[pick / 3 % ARRAY_LEN(environments)];
    size_t n = 0;
    while (env[n])
        n++;
    return n ? env[pick / 512 % n] : odd_values[0];
}

/* Up to six variables at random; a name counts once. */
static void mix(uint32_t *seed, const char *out[10])
{
    size_t n = 0;
    for (int i = 0; i < 6; i++) {
        const char *one = some_assignment(seed);
        size_t len = strcspn(one, "="), k = 0;
        while (k < n && strncmp(out[k], one, len + 1))
            k++;
        if (k == n)
            out[n++] = one;
    }
    out[n] = NULL;
}

static size_t sweep_at_random(const char *where, uint32_t *seed)
{
    struct planning p;
    size_t n = 0;
    if (!planning_open(&p, where))
        return 0;
    for (int i = 0; i < 1500; i++) {
        const char *env[10];
        const char *torch = torches[(size_t)i % ARRAY_LEN(torches)];
        mix(seed, env);
        put_torch(&p, torch);
        n += plan_one(&p, where, torch, env, &modes[(size_t)i % ARRAY_LEN(modes)]);
        arena_release(&p.arena);
    }
    planning_release(&p);
    return n;
}

static size_t sweep_capture(const char *capture, void *seed)
{
    return check_bad_here < 20 ? sweep(capture) + sweep_at_random(capture, seed) : 0;
}

static void no_plan_contradicts_itself(void)
{
    uint32_t seed = 1;
    CHECK(planning_captures(sweep_capture, &seed) > 20000 || check_bad_here);
}

int main(void)
{
    RUN(no_plan_contradicts_itself);
    return check_done();
}
