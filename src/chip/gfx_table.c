/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/gfx_table.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "chip/gfxname.h"
#include <stdio.h>
#include <string.h>

/* kind: where the kernel sets its own APU flag.
 * mach: llvm/include/llvm/BinaryFormat/ELF.h of https://github.com/llvm/llvm-project.
 * gc: the kernel's amdgpu_discovery.c and kfd_device.c.
 * ids: libhsakmt's gfxip_lookup_table, for kernels without gfx_target_version, and pci.ids for newer parts.
 * wheel: PYTORCH_ROCM_ARCH in .ci/docker/manywheel/build.sh of the release branches of
 * https://github.com/pytorch/pytorch, and its pull request 167299.
 * aotriton: gpu_targets.py of https://github.com/ROCm/aotriton at each tag. */
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
#define DESKTOP_QUEUES                                                                                        \
    "reports 100 % busy and draws power when idle while a process holds several queues: GPU_MAX_HW_QUEUES=1 " \
    "or newer firmware (" ROCM_ISSUE "2625)"
#define CARVE_OUT "total memory may be reported as half of RAM until ttm.pages_limit is raised"

/* clang-format off */
static const struct gfx_chip chips[] = {
    { .gfx = "gfx701", .codename = "Hawaii", .products = "R9 290/390, FirePro W9100",
      .kind = GPU_DISCRETE, .mach = 0x23, .ids = { { 0x67a0, 0x67be } },
      .family = GFX_GCN, .wave = 64, .vgpr_kib = 256, .bf16 = "none",
      .support = "dropped long ago",
      .source = LLVM },
    { .gfx = "gfx801", .codename = "Carrizo, Bristol Ridge", .products = "A10/A12 APUs",
      .kind = GPU_INTEGRATED, .mach = 0x28, .ids = { { 0x9870, 0x9877 } },
      .family = GFX_GCN, .wave = 64, .vgpr_kib = 256, .bf16 = "none",
      .support = "dropped long ago",
      .source = LLVM },
    { .gfx = "gfx802", .codename = "Tonga, Iceland", .products = "R9 285/380",
      .kind = GPU_DISCRETE, .mach = 0x29, .ids = { { 0x6920, 0x6939 } },
      .family = GFX_GCN, .wave = 64, .vgpr_kib = 256, .bf16 = "none",
      .support = "dropped long ago",
      .source = LLVM },
    { .gfx = "gfx803", .codename = "Polaris, Fiji", .products = "RX 470-590, Fury, MI6/MI8",
      .kind = GPU_DISCRETE, .mach = 0x2a,
      .ids = { { 0x7300, 0x730f }, { 0x67c0, 0x67df }, { 0x67e0, 0x67ff }, { 0x6980, 0x699f }, { 0x694c, 0x694f }, { 0x6fdf, 0x6fdf } },
      .family = GFX_GCN, .wave = 64, .vgpr_kib = 256, .bf16 = "none",
      .support = "dropped in ROCm 4 or 5",
      .problems = "no current wheel has code for it and no override helps",
      .source = ARCH_SPECS },
    { .gfx = "gfx900", .codename = "Vega 10", .products = "RX Vega 56/64, MI25",
      .kind = GPU_DISCRETE, .mach = 0x2c, .gc = { { 9, 0, 1 } }, .ids = { { 0x6860, 0x687f } },
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none",
      IN_OLD_WHEELS, .therock = "build", .support = "dropped around ROCm 5",
      .problems = "libraries drop it over time: rocBLAS may lack it",
      .source = WHEELS },
    { .gfx = "gfx902", .codename = "Raven", .products = "Ryzen 2000G/3000G APUs",
      .kind = GPU_INTEGRATED, .mach = 0x2d, .gc = { { 9, 1, 0 }, { 9, 2, 2 } },
      .ids = { { 0x15dd, 0x15dd }, { 0x15d8, 0x15d8 } },
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none",
      .support = "never",
      .source = ARCH_SPECS },
    { .gfx = "gfx904", .codename = "Vega 12", .products = "Radeon Pro Vega 16/20",
      .kind = GPU_DISCRETE, .mach = 0x2e, .gc = { { 9, 2, 1 } },
      .ids = { { 0x69a0, 0x69a3 }, { 0x69af, 0x69af } },
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none",
      .support = "never",
      .source = ARCH_SPECS },
    { .gfx = "gfx906", .codename = "Vega 20", .products = "Radeon VII, Pro VII, MI50/60",
      .kind = GPU_DISCRETE, .mach = 0x2f, .gc = { { 9, 4, 0 } },
      .ids = { { 0x66a0, 0x66a7 }, { 0x66af, 0x66af } },
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "emulated",
      .fp16_dot = true,
      IN_OLD_WHEELS, .therock = "build", .support = "deprecated in ROCm 5.7, then dropped",
      .problems = "libraries drop it over time: rocBLAS may lack it",
      .source = WHEELS },
    { .gfx = "gfx908", .codename = "Arcturus", .products = "MI100",
      .kind = GPU_DISCRETE, .mach = 0x30, .gc = { { 9, 4, 1 } },
      .ids = { { 0x7388, 0x7388 }, { 0x738c, 0x738c }, { 0x738e, 0x738e }, { 0x7390, 0x7390 } },
      .family = GFX_CDNA, .wave = 64, .vgpr_kib = 512, .bf16 = "native", .fp16_dot = true,
      .matrix_core = "MFMA",
      IN_OLD_WHEELS, .therock = "build", .support = "yes",
      .problems = "bf16 runs at half the fp16 rate",
      .source = ARCH_SPECS },
    { .gfx = "gfx909", .codename = "Raven 2", .products = "Athlon 3000G class APUs",
      .kind = GPU_INTEGRATED, .mach = 0x31,
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none",
      .support = "never",
      .source = LLVM },
    { .gfx = "gfx90a", .codename = "Aldebaran", .products = "MI210, MI250, MI250X",
      .kind = GPU_DISCRETE, .mach = 0x3f, .gc = { { 9, 4, 2 } },
      .ids = { { 0x7408, 0x7408 }, { 0x740c, 0x740c }, { 0x740f, 0x7410 } },
      .family = GFX_CDNA2, .wave = 64, .vgpr_kib = 512, .bf16 = "native", .fp16_dot = true,
      .matrix_core = "MFMA",
      IN_OLD_WHEELS, .therock = "build", .support = "yes", .aotriton = { 0, 4, 0 },
      .aotriton_stable = { 0, 4, 0 },
      .source = ARCH_SPECS },
    { .gfx = "gfx90c", .codename = "Renoir, Cezanne, Barcelo", .products = "Ryzen 4000-5000 APUs",
      .kind = GPU_INTEGRATED, .mach = 0x32, .gc = { { 9, 3, 0 } },
      .ids = { { 0x15e7, 0x15e7 }, { 0x1636, 0x1636 }, { 0x1638, 0x1638 }, { 0x164c, 0x164c } },
      .family = GFX_VEGA, .wave = 64, .vgpr_kib = 256, .generic = "gfx9-generic", .bf16 = "none",
      .therock = "build", .support = "never",
      .problems = "copies hang before ROCm 6.1 (5700G): HSA_ENABLE_SDMA=0 (" ROCM_ISSUE "2781)",
      .source = THEROCK },
    { .gfx = "gfx942", .codename = "Aqua Vanjaram", .products = "MI300X, MI325X, MI308X, MI300A",
      .apu_id = 0x74a0, .mach = 0x4c, .gc = { { 9, 4, 3 }, { 9, 4, 4 } },
      .ids = { { 0x74a0, 0x74a2 }, { 0x74a5, 0x74a5 }, { 0x74a8, 0x74a9 }, { 0x74b5, 0x74b6 }, { 0x74b9, 0x74b9 }, { 0x74bd, 0x74bd } },
      .family = GFX_CDNA3, .wave = 64, .vgpr_kib = 512, .generic = "gfx9-4-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "MFMA", .fp8 = "FNUZ",
      .wheel = "2.5", .wheel_major = 2, .wheel_minor = 5, .therock = "ready", .rocm_major = 6,
      .support = "since ROCm 6.0", .aotriton = { 0, 4, 0 }, .aotriton_stable = { 0, 4, 0 }, .one_pool = true,
      .source = ARCH_SPECS },
    { .gfx = "gfx950", .codename = "CDNA 4", .products = "MI350X, MI355X",
      .kind = GPU_DISCRETE, .mach = 0x4f, .gc = { { 9, 5, 0 } },
      .ids = { { 0x75a0, 0x75a0 }, { 0x75a3, 0x75a3 } },
      .family = GFX_CDNA4, .wave = 64, .vgpr_kib = 512, .generic = "gfx9-4-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "MFMA", .fp8 = "OCP",
      IN_ROCM7_WHEELS, .therock = "build", .rocm_major = 7, .support = "since ROCm 7.0",
      .aotriton = { 0, 9, 0 }, .aotriton_stable = { 0, 13, 0 },
      .source = ARCH_SPECS },
    { .gfx = "gfx1010", .codename = "Navi 10", .products = "RX 5600/5700",
      .kind = GPU_DISCRETE, .mach = 0x33, .gc = { { 10, 1, 10 } }, .ids = { { 0x7310, 0x731f } },
      .family = GFX_RDNA1, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none",
      .therock = "ready", .support = "never",
      .problems = "no bf16 arithmetic, no fused attention, no hipBLASLt; only TheRock wheels support it",
      .source = THEROCK },
    { .gfx = "gfx1011", .codename = "Navi 12", .products = "Radeon Pro V520",
      .kind = GPU_DISCRETE, .mach = 0x34, .gc = { { 10, 1, 2 } },
      .ids = { { 0x7360, 0x7360 }, { 0x7362, 0x7362 } },
      .family = GFX_RDNA1, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none",
      .fp16_dot = true,
      .therock = "ready", .support = "never",
      .problems = "no bf16 arithmetic, no fused attention, no hipBLASLt; only TheRock wheels support it",
      .source = THEROCK },
    { .gfx = "gfx1012", .codename = "Navi 14", .products = "RX 5500, W5500",
      .kind = GPU_DISCRETE, .mach = 0x35, .gc = { { 10, 1, 1 } },
      .ids = { { 0x7340, 0x7341 }, { 0x7347, 0x7347 }, { 0x734f, 0x734f } },
      .family = GFX_RDNA1, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none",
      .fp16_dot = true,
      .therock = "ready", .support = "never",
      .problems = "no bf16 arithmetic, no fused attention, no hipBLASLt; only TheRock wheels support it",
      .source = THEROCK },
    { .gfx = "gfx1013", .codename = "Cyan Skillfish", .products = "BC-250",
      .kind = GPU_INTEGRATED, .mach = 0x42, .gc = { { 10, 1, 3 }, { 10, 1, 4 } },
      .ids = { { 0x13f9, 0x13fe }, { 0x143f, 0x143f } },
      .family = GFX_RDNA1, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-1-generic", .bf16 = "none",
      .support = "never",
      .problems = "SDMA queues do not work and rocBLAS has no code: not for training",
      .source = ARCH_SPECS },
    { .gfx = "gfx1030", .codename = "Navi 21", .products = "RX 6800/6900/6950, W6800, V620",
      .kind = GPU_DISCRETE, .mach = 0x36, .gc = { { 10, 3, 0 } }, .ids = { { 0x73a0, 0x73bf } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      IN_OLD_WHEELS, .therock = "ready", .support = "yes",
      .problems = RDNA2_LIMITS,
      .source = ARCH_SPECS },
    { .gfx = "gfx1031", .codename = "Navi 22", .products = "RX 6700/6700 XT/6750 XT, 6800M",
      .kind = GPU_DISCRETE, .mach = 0x37, .gc = { { 10, 3, 2 } }, .ids = { { 0x73c0, 0x73df } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      .therock = "ready", .support = "no",
      .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL,
      .source = THEROCK },
    { .gfx = "gfx1032", .codename = "Navi 23", .products = "RX 6600/6650, W6600",
      .kind = GPU_DISCRETE, .mach = 0x38, .gc = { { 10, 3, 4 } },
      .ids = { { 0x73e0, 0x73ef }, { 0x73f1, 0x73ff } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      .therock = "ready", .support = "no",
      .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL,
      .source = THEROCK },
    { .gfx = "gfx1033", .codename = "Van Gogh", .products = "Steam Deck",
      .kind = GPU_INTEGRATED, .mach = 0x39, .gc = { { 10, 3, 1 } },
      .ids = { { 0x163f, 0x163f }, { 0x1435, 0x1435 } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      .therock = "ready", .support = "no",
      .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL,
      .source = THEROCK },
    { .gfx = "gfx1034", .codename = "Navi 24", .products = "RX 6400/6500 XT",
      .kind = GPU_DISCRETE, .mach = 0x3e, .gc = { { 10, 3, 5 } }, .ids = { { 0x7420, 0x743f } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      .therock = "ready", .support = "no",
      .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL,
      .source = THEROCK },
    { .gfx = "gfx1035", .codename = "Rembrandt", .products = "Radeon 680M/660M",
      .kind = GPU_INTEGRATED, .mach = 0x3d, .gc = { { 10, 3, 3 } },
      .ids = { { 0x164d, 0x164d }, { 0x1681, 0x1681 } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      .therock = "ready", .support = "no",
      .problems = RDNA2_LIMITS NO_UPSTREAM_WHEEL,
      .source = THEROCK },
    { .gfx = "gfx1036", .codename = "Raphael, Granite Ridge, Mendocino", .products = "desktop iGPU with 2 CUs",
      .kind = GPU_INTEGRATED, .mach = 0x45, .gc = { { 10, 3, 6 }, { 10, 3, 7 } },
      .ids = { { 0x164e, 0x164e }, { 0x13c0, 0x13c0 }, { 0x1506, 0x1506 } },
      .family = GFX_RDNA2, .wave = 32, .vgpr_kib = 256, .generic = "gfx10-3-generic", .bf16 = "none",
      .fp16_dot = true, .train_f16 = true,
      .therock = "ready", .support = "no", .desktop_igpu = true,
      .problems = "beside a discrete card: crashes, wrong default device, hipBLASLt disabled for all GPUs; "
                  "hide it",
      .source = "https://github.com/unslothai/unsloth/issues/7307" },
    { .gfx = "gfx1100", .codename = "Navi 31", .products = "RX 7900 XTX/XT/GRE, W7900, W7800",
      .kind = GPU_DISCRETE, .mach = 0x41, .gc = { { 11, 0, 0 } }, .ids = { { 0x7440, 0x745f } },
      .family = GFX_RDNA3, .wave = 32, .vgpr_kib = 384, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      IN_OLD_WHEELS, .therock = "ready", .rocm_major = 5, .rocm_minor = 7, .support = "since ROCm 5.7/6.0",
      .aotriton = { 0, 6, 0 }, .aotriton_stable = { 0, 8, 0 }, .slow_mapped = true,
      .problems = "AOTriton 0.11b (torch 2.9) loses accuracy or produces NaN; " DESKTOP_QUEUES,
      .source = "https://github.com/ROCm/TheRock/issues/1315" },
    { .gfx = "gfx1101", .codename = "Navi 32", .products = "RX 7800 XT/7700 XT, W7700, V710",
      .kind = GPU_DISCRETE, .mach = 0x46, .gc = { { 11, 0, 3 } }, .ids = { { 0x7460, 0x747f } },
      .family = GFX_RDNA3, .wave = 32, .vgpr_kib = 384, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      .wheel = "2.6", .wheel_major = 2, .wheel_minor = 6, .therock = "ready", .support = "later ROCm 6.x",
      .aotriton = { 0, 10, 0 },
      .problems = DESKTOP_QUEUES,
      .source = WHEELS },
    { .gfx = "gfx1102", .codename = "Navi 33", .products = "RX 7600, 7600S/7700S, W7600",
      .kind = GPU_DISCRETE, .mach = 0x47, .gc = { { 11, 0, 2 } },
      .ids = { { 0x73f0, 0x73f0 }, { 0x7480, 0x749f } },
      .family = GFX_RDNA3, .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      .wheel = "2.7", .wheel_major = 2, .wheel_minor = 7, .therock = "ready", .support = "no statement found",
      .aotriton = { 0, 11, 0 },
      .problems = "override 11.0.0 runs kernels that need more registers than exist (" ROCM_ISSUE "4557); "
                  DESKTOP_QUEUES,
      .source = WHEELS },
    { .gfx = "gfx1103", .codename = "Phoenix, Hawk Point", .products = "Radeon 780M/760M/740M",
      .kind = GPU_INTEGRATED, .mach = 0x44, .gc = { { 11, 0, 1 }, { 11, 0, 4 } },
      .ids = { { 0x15bf, 0x15bf }, { 0x15c8, 0x15c8 }, { 0x1900, 0x1901 } },
      .family = GFX_RDNA3, .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      .wheel = "a change of April 2026 adds it; not verified in a release", .therock = "ready", .support = "no",
      .aotriton = { 0, 11, 1 }, .no_rccl = true,
      .problems = "override 11.0.0 runs kernels that need more registers than exist (" ROCM_ISSUE
                  "4557); no RCCL in TheRock",
      .source = "https://github.com/pytorch/pytorch/pull/179653" },
    { .gfx = "gfx1150", .codename = "Strix Point", .products = "Radeon 890M/880M",
      .kind = GPU_INTEGRATED, .mach = 0x43, .gc = { { 11, 5, 0 } }, .ids = { { 0x150e, 0x150e } },
      .family = GFX_RDNA35, .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      IN_ROCM7_WHEELS, .therock = "ready", .rocm_major = 7, .support = "ROCm 7.x", .aotriton = { 0, 10, 0 },
      .no_rccl = true,
      .problems = CARVE_OUT "; no RCCL in TheRock",
      .source = WHEELS },
    { .gfx = "gfx1151", .codename = "Strix Halo", .products = "Radeon 8060S/8050S/8040S",
      .kind = GPU_INTEGRATED, .mach = 0x4a, .gc = { { 11, 5, 1 } }, .ids = { { 0x1586, 0x1586 } },
      .family = GFX_RDNA35, .wave = 32, .vgpr_kib = 384, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      IN_ROCM7_WHEELS, .therock = "ready", .rocm_major = 6, .rocm_minor = 4, .rocm_patch = 4,
      .support = "preview from ROCm 6.4.4/7.0.2, regular in 7.x", .aotriton = { 0, 10, 0 },
      .aotriton_stable = { 0, 13, 0 }, .slow_lt_gradients = true, .slow_mapped = true,
      .problems = "hangs under compute without the larger context-save area (kernel 6.18.4 and ROCm 7.2.1, "
                  "or amdgpu.cwsr_enable=0); MES firmware 0x83 is broken; torch.compile crashed the system "
                  "on ROCm 7.0.2; ROCm 7.10 wheels crash on kernel 7.2; " CARVE_OUT,
      .source = "https://github.com/ROCm/TheRock/issues/2151" },
    { .gfx = "gfx1152", .codename = "Krackan", .products = "Radeon 860M/840M",
      .kind = GPU_INTEGRATED, .mach = 0x55, .gc = { { 11, 5, 2 } },
      .ids = { { 0x1114, 0x1114 }, { 0x1902, 0x1902 } },
      .family = GFX_RDNA35, .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      .therock = "ready", .rocm_major = 7, .support = "ROCm 7.x", .aotriton = { 0, 11, 2 }, .no_rccl = true,
      .problems = "hangs with MES firmware 0x82 before kernel 6.19.10 (" ROCM_ISSUE "5844); " CARVE_OUT
                  "; no RCCL in TheRock",
      .source = THEROCK },
    { .gfx = "gfx1153", .codename = "Krackan 2", .products = "Radeon 820M",
      .kind = GPU_INTEGRATED, .mach = 0x58, .gc = { { 11, 5, 3 } },
      .family = GFX_RDNA35, .wave = 32, .vgpr_kib = 256, .generic = "gfx11-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA",
      .therock = "build", .support = "not known", .aotriton = { 0, 11, 2 }, .no_rccl = true,
      .problems = CARVE_OUT "; no RCCL in TheRock",
      .source = THEROCK },
    { .gfx = "gfx1200", .codename = "Navi 44", .products = "RX 9060, RX 9060 XT",
      .kind = GPU_DISCRETE, .mach = 0x48, .gc = { { 12, 0, 0 } }, .ids = { { 0x7590, 0x759f } },
      .family = GFX_RDNA4, .wave = 32, .vgpr_kib = 384, .generic = "gfx12-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA", .fp8 = "OCP",
      .wheel = "2.7", .wheel_major = 2, .wheel_minor = 7, .therock = "ready", .rocm_major = 6, .rocm_minor = 4,
      .support = "ROCm 6.4.x", .aotriton = { 0, 10, 0 }, .slow_mapped = true,
      .problems = DESKTOP_QUEUES,
      .source = WHEELS },
    { .gfx = "gfx1201", .codename = "Navi 48", .products = "RX 9070, 9070 XT, 9070 GRE, R9700",
      .kind = GPU_DISCRETE, .mach = 0x4e, .gc = { { 12, 0, 1 } }, .ids = { { 0x7550, 0x755f } },
      .family = GFX_RDNA4, .wave = 32, .vgpr_kib = 384, .generic = "gfx12-generic", .bf16 = "native",
      .fp16_dot = true, .matrix_core = "WMMA", .fp8 = "OCP",
      .wheel = "2.7", .wheel_major = 2, .wheel_minor = 7, .therock = "ready", .rocm_major = 6, .rocm_minor = 4,
      .support = "ROCm 6.4.x", .aotriton = { 0, 9, 0 }, .aotriton_stable = { 0, 13, 0 }, .slow_mapped = true,
      .problems = DESKTOP_QUEUES,
      .source = WHEELS },
    { .gfx = NULL },
};

/* Targets of which little more than the number is known: they are recognised, and nothing else is stated. */
static const struct gfx_chip others[] = {
    { .gfx = "gfx600", .mach = 0x20 },
    { .gfx = "gfx601", .mach = 0x21 },
    { .gfx = "gfx700", .kind = GPU_INTEGRATED, .mach = 0x22, .ids = { { 0x1304, 0x131d } } },
    { .gfx = "gfx702", .mach = 0x24 },
    { .gfx = "gfx703", .mach = 0x25 },
    { .gfx = "gfx704", .mach = 0x26 },
    { .gfx = "gfx810", .mach = 0x2b },
    { .gfx = "gfx602", .mach = 0x3a },
    { .gfx = "gfx705", .mach = 0x3b },
    { .gfx = "gfx805", .mach = 0x3c },
    { .gfx = "gfx940", .mach = 0x40 },
    { .gfx = "gfx1250", .mach = 0x49, .matrix_core = "WMMA" },
    { .gfx = "gfx941", .mach = 0x4b },
    { .gfx = "gfx1310", .mach = 0x50 },
    { .gfx = "gfx9-generic", .mach = 0x51 },
    { .gfx = "gfx10-1-generic", .mach = 0x52 },
    { .gfx = "gfx10-3-generic", .mach = 0x53 },
    { .gfx = "gfx11-generic", .mach = 0x54 },
    { .gfx = "gfx1154", .mach = 0x57, .matrix_core = "WMMA" },
    { .gfx = "gfx12-generic", .mach = 0x59 },
    { .gfx = "gfx1251", .mach = 0x5a, .matrix_core = "WMMA" },
    { .gfx = "gfx12-5-generic", .mach = 0x5b },
    { .gfx = "gfx1172", .mach = 0x5c, .matrix_core = "WMMA" },
    { .gfx = "gfx1170", .mach = 0x5d, .matrix_core = "WMMA" },
    { .gfx = "gfx1171", .mach = 0x5e, .matrix_core = "WMMA" },
    { .gfx = "gfx9-4-generic", .mach = 0x5f },
    { .gfx = "gfx11-7-generic", .mach = 0x62 },
    { .gfx = "gfx13-generic", .mach = 0x63 },
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

const char *gpu_kind_name(enum gpu_kind k)
{
    return k == GPU_DISCRETE ? "discrete" : k == GPU_INTEGRATED ? "integrated" : NULL;
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

/* The row that `fits`, of all that have a number. */
static const struct gfx_chip *find_any(bool (*fits)(const struct gfx_chip *c, const void *key),
                                       const void *key)
{
    static const struct gfx_chip *const tables[] = { chips, others };
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        for (const struct gfx_chip *c = tables[i]; c->gfx; c++)
            if (fits(c, key))
                return c;
    return NULL;
}

static const char *name_of(const struct gfx_chip *c)
{
    return c ? c->gfx : NULL;
}

static bool has_name(const struct gfx_chip *c, const void *key)
{
    const char *arch = key;
    size_t n = strlen(c->gfx);
    return !strncmp(arch, c->gfx, n) && (!arch[n] || arch[n] == ':');
}

const struct gfx_chip *gfx_find_arch(const char *arch)
{
    return find_any(has_name, arch);
}

static bool has_mach(const struct gfx_chip *c, const void *key)
{
    return c->mach == *(const unsigned *)key;
}

const char *gfx_from_mach(unsigned mach)
{
    return mach ? name_of(find_any(has_mach, &mach)) : NULL;
}

static bool has_gc(const struct gfx_chip *c, const void *key)
{
    const int *v = key;
    for (size_t i = 0; i < ARRAY_LEN(c->gc) && c->gc[i].major; i++)
        if (c->gc[i].major == v[0] && c->gc[i].minor == v[1] && c->gc[i].revision == v[2])
            return true;
    return false;
}

const char *gfx_from_gc(int major, int minor, int revision)
{
    const int v[] = { major, minor, revision };
    return name_of(find_any(has_gc, v));
}

static bool has_id(const struct gfx_chip *c, const void *key)
{
    uint64_t id = *(const uint64_t *)key;
    for (size_t i = 0; i < ARRAY_LEN(c->ids) && c->ids[i].first; i++)
        if (id >= c->ids[i].first && id <= c->ids[i].last)
            return true;
    return false;
}

const char *gfx_from_device_id(uint64_t device_id)
{
    return name_of(find_any(has_id, &device_id));
}

enum gpu_kind gfx_kind(const char *gfx, uint64_t device_id)
{
    const struct gfx_chip *c = gfx_find_arch(gfx);
    if (!c)
        return GPU_KIND_UNKNOWN;
    if (!c->apu_id || !device_id)
        return c->kind;
    return device_id == c->apu_id ? GPU_INTEGRATED : GPU_DISCRETE;
}

bool gfx_in_wheel(const struct gfx_chip *c, struct version torch, int rocm)
{
    bool rocm7 = !c->wheel_rocm7 || rocm >= 7 || version_at_least(torch, 2, 10, 0);
    return c->wheel_major && version_at_least(torch, c->wheel_major, c->wheel_minor, 0) && rocm7;
}

bool gfx_in_aotriton(const struct gfx_chip *c, struct version aotriton)
{
    const int *v = c->aotriton;
    return v[1] && (!aotriton.n || version_at_least(aotriton, v[0], v[1], v[2]));
}

bool gfx_is_experimental(const struct gfx_chip *c, struct version aotriton)
{
    const int *v = c->aotriton_stable;
    return aotriton.n && gfx_in_aotriton(c, aotriton) && (!v[1] || version_below(aotriton, v[0], v[1], v[2]));
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

/* A higher minor version within a generation has instructions that a lower one lacks: RDNA3.5 computes floats
 * in its scalar unit, RDNA3 does not (LLVM's AMDGPU.td, FeatureISAVersion11_5_Common). */
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
