/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/env_rules.h"

#include "base/str.h"
#include "rules/env_sources.h"
#include <string.h>

#define AOTRITON "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"
#define AOTRITON_WHY                                                                                       \
    "PyTorch ships fused attention for this chip but disables it, because the bundled AOTriton calls the " \
    "chip experimental; without it attention is slow and needs far more memory"
#define ALLOCATOR_WHY                                                                                     \
    "CPU and GPU share memory, so torch's cache takes memory from the system; above this fraction torch " \
    "frees old cached blocks (once the trainer sets a memory fraction)"

/* clang-format off */
static const struct env_rule rules[] = {
    { .name = "ROCR_VISIBLE_DEVICES", .computed = ENV_VALUE_VISIBLE, .when = { .os = ENV_OS_LINUX },
      .why = "a second visible GPU crashes libraries and disables hipBLASLt for all GPUs",
      .source = DOC_VISIBLE },
    { .name = "HIP_VISIBLE_DEVICES", .computed = ENV_VALUE_VISIBLE, .when = { .os = ENV_OS_WINDOWS },
      .why = "Windows has no ROCR_VISIBLE_DEVICES", .source = DOC_VISIBLE },

    { .name = "HSA_OVERRIDE_GFX_VERSION", .computed = ENV_VALUE_OVERRIDE, .when = { .os = ENV_OS_LINUX },
      .why = "this PyTorch has no code for the chip, but has code for a related chip that runs on it",
      .source = DOC_OVERRIDE },
    { .name = "HSA_OVERRIDE_GFX_VERSION_<n>", .computed = ENV_VALUE_NODES,
      .when = { .os = ENV_OS_LINUX, .rocm_from = "6.3" },
      .why = "this PyTorch has no code for this GPU; the plain form would rename the other GPUs too",
      .source = DOC_OVERRIDE },

    /* AOTriton 0.11 lists gfx1100 too, because its kernels lose accuracy there: see the note below. */
    { .name = AOTRITON, .value = "1", .why = AOTRITON_WHY, .source = DOC_AOTRITON,
      .when = { .experimental = true, .library = ENV_LIBRARY_AOTRITON } },

    { .name = "FLASH_ATTENTION_TRITON_AMD_ENABLE", .value = "TRUE",
      .when = { .family = "RDNA2 RDNA3 RDNA3.5 RDNA4", .os = ENV_OS_LINUX, .flash_attn = true },
      .why = "flash-attn is installed, and Radeon GPUs need its Triton kernels; the others are for CDNA",
      .source = SRC_FLASH },

    { .name = "TORCH_BLAS_PREFER_HIPBLASLT", .value = "1",
      .when = { .gfx = "gfx1100", .torch_from = "2.6", .torch_below = "2.10", .library = ENV_LIBRARY_HIPBLASLT },
      .why = "hipBLASLt has tuned kernels for gfx1100, and this PyTorch does not yet choose it by default",
      .source = DOC_HIPBLASLT },

    { .name = "PYTORCH_HIP_ALLOC_CONF", .computed = ENV_VALUE_ALLOCATOR, .when = { .torch_below = "2.12" },
      .why = ALLOCATOR_WHY, .source = DOC_UNIFIED },
    { .name = "PYTORCH_ALLOC_CONF", .computed = ENV_VALUE_ALLOCATOR, .when = { .torch_from = "2.12" },
      .why = ALLOCATOR_WHY, .source = DOC_UNIFIED },

    { .name = "HSA_FORCE_FINE_GRAIN_PCIE", .value = "1",
      .when = { .family = "RDNA3 RDNA4", .os = ENV_OS_LINUX, .gpus = ENV_GPUS_SEVERAL, .unified = TRI_NO },
      .why = "several cards without XGMI links: RCCL needs fine-grained memory over PCIe", .source = SRC_RCCL },
    { .name = "HSA_ENABLE_SDMA", .value = "0",
      .when = { .gfx = "gfx90c", .rocm_below = "6.1", .os = ENV_OS_LINUX },
      .why = "SDMA copies hang on this chip before ROCm 6.1", .source = SRC_LEGACY "2781" },
    { .name = "PATH", .computed = ENV_VALUE_PATH, .when = { .os = ENV_OS_LINUX },
      .why = "bitsandbytes is installed and runs rocminfo to find the chip, but rocminfo is not on PATH",
      .source = SRC_BNB },

    { .name = "AMD_SERIALIZE_KERNEL", .value = "3", .when = { .debug = true },
      .why = "waits around every kernel, so that an error names the kernel that caused it",
      .source = DOC_DEBUGGING },
    { .name = "AMD_SERIALIZE_COPY", .value = "3", .when = { .debug = true },
      .why = "waits around every copy", .source = DOC_DEBUGGING },
    { .name = "AMD_LOG_LEVEL", .value = "1", .when = { .debug = true },
      .why = "logs HIP's errors, such as missing code objects", .source = DOC_DEBUGGING },
    { .name = "HSAKMT_DEBUG_LEVEL", .value = "3", .when = { .debug = true, .os = ENV_OS_LINUX },
      .why = "logs the errors of the driver library, which is silent by default", .source = DOC_DEBUGGING },
    { .name = NULL },
};

static const struct env_note notes[] = {
    { .when = { .family = "GCN Vega RDNA1 RDNA2" }, .source = "https://github.com/unslothai/unsloth/pull/7682",
      .text = "this chip has no bf16 arithmetic, although torch.cuda.is_bf16_supported() returns True: train "
              "in fp16 with loss scaling, or in fp32" },
    { .when = { .family = "RDNA1 RDNA2" }, .source = SRC_AOTRITON,
      .text = "fused attention is not available for this chip: attention memory grows with the square of the "
              "sequence length, so use sliced attention" },
    { .when = { .gfx = "gfx1100", .aotriton_from = "0.11", .aotriton_below = "0.11.1" },
      .source = "https://github.com/ROCm/TheRock/issues/1315",
      .text = "fused attention stays off with AOTriton 0.11b (torch 2.9), whose gfx1100 kernels lose "
              "accuracy or produce NaN; torch 2.8 and 2.10 have good ones (to try it anyway: --with " AOTRITON "=1)" },
    { .when = { .gfx = "gfx1151", .rocm_from = "7.0", .rocm_below = "7.1" }, .source = SRC_LEGACY "5572",
      .text = "torch.compile crashed the whole system on this chip with ROCm 7.0.2: use a newer ROCm, or "
              "--with TORCH_COMPILE_DISABLE=1" },
    { .when = { .gfx = "gfx1151", .rocm_from = "7.10", .rocm_below = "7.13", .kernel_from = "7.2" },
      .source = "https://github.com/ROCm/TheRock",
      .text = "ROCm 7.10 wheels crash in the HSA runtime on this chip with kernel 7.2: use ROCm 7.13 or newer" },
    { .when = { .debug = true, .rocm_below = "6.2" }, .source = DOC_DEBUGGING,
      .text = "AMD_SERIALIZE_KERNEL=3 could hang before ROCm 6.2.1: use 2 if the run stalls" },
    { .text = NULL },
};
/* clang-format on */

const struct env_rule *env_rules(void)
{
    return rules;
}

const struct env_note *env_notes(void)
{
    return notes;
}

static bool in_range(struct version v, const char *from, const char *below)
{
    struct version limit = { 0 };
    if (!from && !below)
        return true;
    if (!v.n)
        return false;
    if (from && version_parse(from, &limit) && version_compare(v, limit) < 0)
        return false;
    return !below || !version_parse(below, &limit) || version_compare(v, limit) < 0;
}

enum tri env_targets_cover(const struct targets *t, const char *gfx)
{
    if (!t->from || !gfx)
        return TRI_UNKNOWN;
    for (size_t i = 0; i < t->n; i++)
        if (gfx_code_runs(t->name[i], gfx))
            return TRI_YES;
    return TRI_NO;
}

static bool library_may_run(enum env_library l, const struct situation *s)
{
    if (l == ENV_LIBRARY_ANY || !s->lists)
        return true;
    const struct targets *t = l == ENV_LIBRARY_HIPBLASLT ? &s->lists->hipblaslt : &s->lists->aotriton;
    return env_targets_cover(t, s->gfx) != TRI_NO;
}

static bool os_fits(enum env_os os, bool windows)
{
    return os == ENV_OS_ANY || (os == ENV_OS_WINDOWS) == windows;
}

bool env_when_met(const struct env_when *w, const struct situation *s)
{
    const char *family = s->chip ? gfx_family_name(s->chip->family) : NULL;
    if (w->gfx && !str_eq(w->gfx, s->gfx))
        return false;
    if (w->family && !(family && str_list_has(w->family, ' ', family)))
        return false;
    if (w->experimental && !(s->chip && gfx_is_experimental(s->chip, s->aotriton)))
        return false;
    if (w->unified && w->unified != s->unified)
        return false;
    if (!in_range(s->torch, w->torch_from, w->torch_below) ||
        !in_range(s->rocm, w->rocm_from, w->rocm_below) ||
        !in_range(s->aotriton, w->aotriton_from, w->aotriton_below) ||
        !in_range(s->kernel, w->kernel_from, w->kernel_below))
        return false;
    if (!os_fits(w->os, s->windows) || (w->gpus == ENV_GPUS_SEVERAL && s->n_visible < 2))
        return false;
    if (w->flash_attn && !(s->lists && s->lists->flash_attn.version.s))
        return false;
    if ((w->debug && !s->debug) || (w->trainer && !str_eq(w->trainer, s->trainer)))
        return false;
    return library_may_run(w->library, s);
}
