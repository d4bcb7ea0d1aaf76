/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/gfx_table.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "chip/gfxname.h"
#include <stdio.h>
#include <string.h>

#define ARCH_SPECS "https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html"
#define THEROCK "https://github.com/ROCm/TheRock SUPPORTED_GPUS.md"
#define WHEELS "https://github.com/pytorch/pytorch .ci/docker/manywheel/build.sh"
#define LLVM "https://llvm.org/docs/AMDGPUUsage.html"
#define ROCM_ISSUE "https://github.com/ROCm/legacy-rocm-build/issues/"

#define IN_OLD_WHEELS .wheel = "2.5 or earlier", .wheel_major = 2, .wheel_minor = 5
#define IN_ROCM7_WHEELS                                                                             \
    .wheel = "2.9 when built with ROCm 7.0 or newer, every ROCm wheel from 2.10", .wheel_major = 2, \
    .wheel_minor = 9, .wheel_rocm7 = true

#define RDNA2_LIMITS "no bf16 arithmetic (train in fp16 with loss scaling), no fused attention, no hipBLASLt"
#define NO_UPSTREAM_WHEEL                                                                            \
    "; pytorch.org wheels have no code for it (\"invalid device function\"): override with 10.3.0, " \
    "or use a TheRock wheel"
#define DESKTOP_QUEUES                                                                    \
    "shown 100 % busy and drawing power when idle while a process holds several queues: " \
    "GPU_MAX_HW_QUEUES=1 or newer firmware (" ROCM_ISSUE "2625)"
#define CARVE_OUT "memory total may be reported as half of the RAM until ttm.pages_limit is raised"

/* clang-format off */
static const struct gfx_chip chips[] = {
    { .gfx = "gfx701", .codename = "Hawaii", .products = "R9 290/390, FirePro W9100", .family = GFX_GCN,
      .wave = 64,
      .vgpr_kib = 256, .bf16 = "none", .support = "dropped long ago", .source = LLVM },
    { .gfx = "gfx801", .codename = "Carrizo, Bristol Ridge", .products = "A10/A12 APUs", .family = GFX_GCN,
      .wave = 64, .vgpr_kib = 256, .bf16 = "none", .support = "dropped long ago", .source = LLVM },
    { .gfx = "gfx802", .codename = "Tonga, Iceland", .products = "R9 285/380", .family = GFX_GCN, .wave = 64,
      .vgpr_kib = 256, .bf16 = "none", .support = "dropped long ago", .source = LLVM },
    { .gfx = "gfx803", .codename = "Polaris, Fiji", .products = "RX 470-590, Fury, MI6/MI8",
      .family = GFX_GCN,
      .wave = 64, .vgpr_kib = 256, .bf16 = "none", .support = "dropped in ROCm 4 or 5",
      .problems = "no current wheel carries code for it and no override helps", .source = ARCH_SPECS },
    { .gfx = "gfx900", .codename = "Vega 10", .products = "RX Vega 56/64, MI25", .family = GFX_VEGA,
      .wave = 64,
      .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none", IN_OLD_WHEELS, .therock = "build",
      .support = "dropped about ROCm 5", .problems = "libraries drop it over time: rocBLAS may lack it",
      .source = WHEELS },
    { .gfx = "gfx902", .codename = "Raven", .products = "Ryzen 2000G/3000G APUs", .family = GFX_VEGA,
      .wave = 64,
      .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none", .support = "never", .source = ARCH_SPECS },
    { .gfx = "gfx904", .codename = "Vega 12", .products = "Radeon Pro Vega 16/20", .family = GFX_VEGA,
      .wave = 64,
      .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none", .support = "never", .source = ARCH_SPECS },
    { .gfx = "gfx906", .codename = "Vega 20", .products = "Radeon VII, Pro VII, MI50/60", .family = GFX_VEGA,
      .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "emulated",
      .fp16_dot = true, IN_OLD_WHEELS,
      .therock = "build", .support = "deprecated in ROCm 5.7, then dropped",
      .problems = "libraries drop it over time: rocBLAS may lack it", .source = WHEELS },
    { .gfx = "gfx908", .codename = "Arcturus", .products = "MI100", .family = GFX_CDNA, .wave = 64,
      .vgpr_kib = 512,
      .bf16 = "native", .fp16_dot = true, .matrix_core = "MFMA", IN_OLD_WHEELS, .therock = "build",
      .support = "yes", .problems = "bf16 runs at half the fp16 rate", .source = ARCH_SPECS },
    { .gfx = "gfx909", .codename = "Raven 2", .products = "Athlon 3000G class APUs", .family = GFX_VEGA,
      .wave = 64,
      .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none", .support = "never", .source = LLVM },
    { .gfx = "gfx90a", .codename = "Aldebaran", .products = "MI210, MI250, MI250X", .family = GFX_CDNA2,
      .wave = 64,
      .vgpr_kib = 512, .bf16 = "native", .fp16_dot = true, .matrix_core = "MFMA", IN_OLD_WHEELS,
      .therock = "build", .support = "yes", .source = ARCH_SPECS },
    { .gfx = "gfx90c", .codename = "Renoir, Cezanne, Barcelo", .products = "Ryzen 4000-5000 APUs",
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none",
      .therock = "build", .support = "never",
      .problems = "copies hang before ROCm 6.1 (5700G): HSA_ENABLE_SDMA=0 (" ROCM_ISSUE "2781)",
      .source = THEROCK },
    { .gfx = "gfx942", .codename = "Aqua Vanjaram", .products = "MI300X, MI325X, MI308X, MI300A",
      .family = GFX_CDNA3, .wave = 64, .vgpr_kib = 512, .generic = "gfx9-4-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "MFMA", .fp8 = "FNUZ", .wheel = "2.5", .wheel_major = 2,
      .wheel_minor = 5,
      .therock = "ready", .rocm_major = 6, .support = "since ROCm 6.0", .source = ARCH_SPECS },
    { .gfx = "gfx950", .codename = "CDNA 4", .products = "MI350X, MI355X", .family = GFX_CDNA4, .wave = 64,
      .vgpr_kib = 512, .generic = "gfx9-4-generic", .bf16 = "native", .fp16_dot = true, .matrix_core = "MFMA",
      .fp8 = "OCP", IN_ROCM7_WHEELS, .therock = "build", .rocm_major = 7, .support = "since ROCm 7.0",
      .source = ARCH_SPECS },
    { .gfx = "gfx1010", .codename = "Navi 10", .products = "RX 5600/5700", .family = GFX_RDNA1, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none", .therock = "ready", .support = "never",
      .problems = "no bf16 arithmetic, no fused attention, no hipBLASLt; only TheRock wheels carry it",
      .source = THEROCK },
    { .gfx = "gfx1011", .codename = "Navi 12", .products = "Radeon Pro V520", .family = GFX_RDNA1, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none", .fp16_dot = true, .therock = "ready",
      .support = "never",
      .problems = "no bf16 arithmetic, no fused attention, no hipBLASLt; only TheRock wheels carry it",
      .source = THEROCK },
    { .gfx = "gfx1012", .codename = "Navi 14", .products = "RX 5500, W5500", .family = GFX_RDNA1, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none", .fp16_dot = true, .therock = "ready",
      .support = "never",
      .problems = "no bf16 arithmetic, no fused attention, no hipBLASLt; only TheRock wheels carry it",
      .source = THEROCK },
    { .gfx = "gfx1013", .codename = "Cyan Skillfish", .products = "BC-250", .family = GFX_RDNA1, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none", .support = "never",
      .problems = "DMA queues do not work and rocBLAS has no code: not for training", .source = ARCH_SPECS },
    { .gfx = "gfx1030", .codename = "Navi 21", .products = "RX 6800/6900/6950, W6800, V620",
      .family = GFX_RDNA2,
      .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, IN_OLD_WHEELS,
      .therock = "ready", .support = "yes", .problems = RDNA2_LIMITS, .source = ARCH_SPECS },
    { .gfx = "gfx1031", .codename = "Navi 22", .products = "RX 6700/6700 XT/6750 XT, 6800M",
      .family = GFX_RDNA2,
      .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none", .fp16_dot = true,
      .therock = "ready", .support = "no", .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL, .source = THEROCK },
    { .gfx = "gfx1032", .codename = "Navi 23", .products = "RX 6600/6650, W6600", .family = GFX_RDNA2,
      .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none", .fp16_dot = true, .therock = "ready",
      .support = "no", .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL, .source = THEROCK },
    { .gfx = "gfx1033", .codename = "Van Gogh", .products = "Steam Deck", .family = GFX_RDNA2, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none", .fp16_dot = true, .therock = "ready",
      .support = "no", .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL, .source = THEROCK },
    { .gfx = "gfx1034", .codename = "Navi 24", .products = "RX 6400/6500 XT", .family = GFX_RDNA2, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none", .fp16_dot = true, .therock = "ready",
      .support = "no", .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL, .source = THEROCK },
    { .gfx = "gfx1035", .codename = "Rembrandt", .products = "Radeon 680M/660M", .family = GFX_RDNA2,
      .wave = 32,
      .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none", .fp16_dot = true, .therock = "ready",
      .support = "no", .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL, .source = THEROCK },
    { .gfx = "gfx1036", .codename = "Raphael, Granite Ridge, Mendocino",
      .products = "desktop iGPU with 2 CUs",
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .therock = "ready", .support = "no",
      .problems = "beside a discrete card: crashes, wrong default device, hipBLASLt switched off for all; hide it",
      .source = "https://github.com/unslothai/unsloth/issues/7307" },
    { .gfx = "gfx1100", .codename = "Navi 31", .products = "RX 7900 XTX/XT/GRE, W7900, W7800",
      .family = GFX_RDNA3,
      .wave = 32, .vgpr_kib = 384, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true,
      .matrix_core = "WMMA", IN_OLD_WHEELS, .therock = "ready", .rocm_major = 5, .rocm_minor = 7,
      .support = "since ROCm 5.7/6.0",
      .problems = "AOTriton 0.11b (torch 2.9) loses accuracy or gives NaN; " DESKTOP_QUEUES,
      .source = "https://github.com/ROCm/TheRock/issues/1315" },
    { .gfx = "gfx1101", .codename = "Navi 32", .products = "RX 7800 XT/7700 XT, W7700, V710",
      .family = GFX_RDNA3,
      .wave = 32, .vgpr_kib = 384, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true,
      .matrix_core = "WMMA", .wheel = "2.6", .wheel_major = 2, .wheel_minor = 6, .therock = "ready",
      .support = "later ROCm 6.x", .problems = DESKTOP_QUEUES, .source = WHEELS },
    { .gfx = "gfx1102", .codename = "Navi 33", .products = "RX 7600, 7600S/7700S, W7600", .family = GFX_RDNA3,
      .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true,
      .matrix_core = "WMMA", .wheel = "2.7", .wheel_major = 2, .wheel_minor = 7, .therock = "ready",
      .support = "no statement found",
      .problems = "override 11.0.0 runs kernels that need more registers than exist (" ROCM_ISSUE "4557); "
                  DESKTOP_QUEUES,
      .source = WHEELS },
    { .gfx = "gfx1103", .codename = "Phoenix, Hawk Point", .products = "Radeon 780M/760M/740M",
      .family = GFX_RDNA3, .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      .wheel = "a change of April 2026 adds it; not verified in a release",
      .therock = "ready", .support = "no",
      .problems = "override 11.0.0 runs kernels that need more registers than exist (" ROCM_ISSUE
                  "4557); no RCCL in TheRock",
      .source = "https://github.com/pytorch/pytorch/pull/179653" },
    { .gfx = "gfx1150", .codename = "Strix Point", .products = "Radeon 890M/880M", .family = GFX_RDNA35,
      .wave = 32,
      .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true, .matrix_core = "WMMA",
      IN_ROCM7_WHEELS, .therock = "ready", .rocm_major = 7, .support = "ROCm 7.x",
      .problems = CARVE_OUT "; no RCCL in TheRock", .source = WHEELS },
    { .gfx = "gfx1151", .codename = "Strix Halo", .products = "Radeon 8060S/8050S/8040S",
      .family = GFX_RDNA35,
      .wave = 32, .vgpr_kib = 384, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true,
      .matrix_core = "WMMA", IN_ROCM7_WHEELS, .therock = "ready", .rocm_major = 6, .rocm_minor = 4,
      .rocm_patch = 4, .support = "preview from ROCm 6.4.4/7.0.2, regular in 7.x",
      .problems = "hangs under compute without the larger context-save area (kernel 6.18.4 and ROCm 7.2.1, or "
                  "amdgpu.cwsr_enable=0); MES firmware 0x83 is broken; torch.compile took the system down on ROCm "
                  "7.0.2; ROCm 7.10 wheels crash on kernel 7.2; " CARVE_OUT,
      .source = "https://github.com/ROCm/TheRock/issues/2151" },
    { .gfx = "gfx1152", .codename = "Krackan", .products = "Radeon 860M/840M", .family = GFX_RDNA35,
      .wave = 32,
      .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true, .matrix_core = "WMMA",
      .therock = "ready", .rocm_major = 7, .support = "ROCm 7.x",
      .problems = "hangs with MES firmware 0x82 before kernel 6.19.10 (" ROCM_ISSUE "5844); " CARVE_OUT
                  "; no RCCL in TheRock",
      .source = THEROCK },
    { .gfx = "gfx1153", .codename = "Krackan 2", .products = "Radeon 820M", .family = GFX_RDNA35, .wave = 32,
      .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native", .fp16_dot = true, .matrix_core = "WMMA",
      .therock = "build", .support = "not known", .problems = CARVE_OUT "; no RCCL in TheRock",
      .source = THEROCK },
    { .gfx = "gfx1200", .codename = "Navi 44", .products = "RX 9060, RX 9060 XT", .family = GFX_RDNA4,
      .wave = 32,
      .vgpr_kib = 384, .generic = "gfx12-generic", .bf16 = "native", .fp16_dot = true, .matrix_core = "WMMA",
      .fp8 = "OCP", .wheel = "2.7", .wheel_major = 2, .wheel_minor = 7, .therock = "ready", .rocm_major = 6,
      .rocm_minor = 4, .support = "ROCm 6.4.x", .problems = DESKTOP_QUEUES, .source = WHEELS },
    { .gfx = "gfx1201", .codename = "Navi 48", .products = "RX 9070, 9070 XT, 9070 GRE, R9700",
      .family = GFX_RDNA4,
      .wave = 32, .vgpr_kib = 384, .generic = "gfx12-generic", .bf16 = "native", .fp16_dot = true,
      .matrix_core = "WMMA", .fp8 = "OCP", .wheel = "2.7", .wheel_major = 2, .wheel_minor = 7,
      .therock = "ready",
      .rocm_major = 6, .rocm_minor = 4, .support = "ROCm 6.4.x", .problems = DESKTOP_QUEUES,
      .source = WHEELS },
    { .gfx = NULL },
};
/* clang-format on */

const char *gfx_family_name(enum gfx_family f)
{
    static const char *const names[] = {
        [GFX_GCN] = "GCN",     [GFX_VEGA] = "Vega",      [GFX_CDNA] = "CDNA",   [GFX_CDNA2] = "CDNA2",
        [GFX_CDNA3] = "CDNA3", [GFX_CDNA4] = "CDNA4",    [GFX_RDNA1] = "RDNA1", [GFX_RDNA2] = "RDNA2",
        [GFX_RDNA3] = "RDNA3", [GFX_RDNA35] = "RDNA3.5", [GFX_RDNA4] = "RDNA4",
    };
    return (size_t)f < ARRAY_LEN(names) ? names[f] : NULL;
}

const struct gfx_chip *gfx_table(void)
{
    return chips;
}

const struct gfx_chip *gfx_find(const char *gfx)
{
    for (const struct gfx_chip *c = chips; c->gfx; c++)
        if (str_eq(c->gfx, gfx))
            return c;
    return NULL;
}

bool gfx_code_runs(const char *code, const char *gfx)
{
    if (!code || !gfx)
        return false;
    size_t len = strcspn(code, ":");
    if (strstr(code + len, "xnack+")) /* runs only in a process that asked for page-fault retry */
        return false;
    if (len == strlen(gfx) && !strncmp(code, gfx, len))
        return true;
    const struct gfx_chip *c = gfx_find(gfx);
    return c && c->generic && len == strlen(c->generic) && !strncmp(code, c->generic, len);
}

bool gfx_override_value(const char *gfx, char *out)
{
    int major, minor, stepping;
    if (!gfxname_split(gfx, &major, &minor, &stepping))
        return false;
    snprintf(out, 16, "%u.%u.%u", major & 0xffu, minor & 0xffu, stepping & 0xffu);
    return true;
}

/* Exactly three decimal numbers with dots, as libhsakmt's sscanf with a trailing %c insists. */
static bool split_override(const char *value, int part[3])
{
    for (int i = 0; i < 3; i++) {
        size_t n = strspn(value, "0123456789");
        if (!n || n > 3)
            return false;
        part[i] = 0;
        for (size_t k = 0; k < n; k++)
            part[i] = part[i] * 10 + (value[k] - '0');
        value += n;
        if (*value != (i < 2 ? '.' : '\0'))
            return false;
        value += i < 2;
    }
    return part[0] <= 63 && part[1] <= 255 && part[2] <= 255;
}

bool gfx_override_is_valid(const char *value)
{
    int part[3];
    return split_override(value, part);
}

const struct gfx_chip *gfx_find_override(const char *value)
{
    int part[3], major, minor, stepping;
    if (!split_override(value, part))
        return NULL;
    for (const struct gfx_chip *c = chips; c->gfx; c++)
        if (gfxname_split(c->gfx, &major, &minor, &stepping) && major == part[0] && minor == part[1] &&
            stepping == part[2])
            return c;
    return NULL;
}

/* A higher minor version within a generation has instructions that a lower one lacks: RDNA3.5 computes floats in its
 * scalar unit, RDNA3 does not (LLVM's AMDGPU.td, FeatureISAVersion11_5_Common). */
static bool has_more_instructions(const char *code, const char *real)
{
    int major, minor, stepping, real_minor;
    return gfxname_split(code, &major, &minor, &stepping) &&
           gfxname_split(real, &major, &real_minor, &stepping) && minor > real_minor;
}

/* The same fp8 instruction means another format on gfx942 than on gfx950. */
bool gfx_is_safe_relative(const struct gfx_chip *code, const struct gfx_chip *real)
{
    return code->generic && str_eq(code->generic, real->generic) && code->vgpr_kib <= real->vgpr_kib &&
           !has_more_instructions(code->gfx, real->gfx) && (!code->fp16_dot || real->fp16_dot) &&
           (!code->fp8 || str_eq(code->fp8, real->fp8));
}

/* Nearest first: of the same minor version, then the lowest. */
static int relative_rank(const char *code, const char *real)
{
    int major, minor, stepping, rmajor, rminor, rstepping;
    if (!gfxname_split(code, &major, &minor, &stepping) || !gfxname_split(real, &rmajor, &rminor, &rstepping))
        return 1 << 20;
    return (minor == rminor ? 0 : 1 << 16) + minor * 256 + stepping;
}

const struct gfx_chip *gfx_stand_in(const struct gfx_chip *real,
                                    bool (*serves)(const void *data, const struct gfx_chip *c),
                                    const void *data)
{
    const struct gfx_chip *best = NULL;
    for (const struct gfx_chip *c = chips; c->gfx; c++)
        if (c != real && gfx_is_safe_relative(c, real) && serves(data, c) &&
            (!best || relative_rank(c->gfx, real->gfx) < relative_rank(best->gfx, real->gfx)))
            best = c;
    return best;
}
