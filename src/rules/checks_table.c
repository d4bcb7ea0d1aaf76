/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/checks.h"

#include "base/str.h"
#include "rules/check_ctx.h"

#define KERNEL_SRC "https://github.com/torvalds/linux drivers/gpu/drm/amd/"
#define KERNEL_PARAMS "https://kernel.org/doc/html/latest/gpu/amdgpu/module-parameters.html"
#define ROCR_SRC "https://github.com/ROCm/rocm-systems projects/rocr-runtime/"
#define LEGACY_ISSUE "https://github.com/ROCm/legacy-rocm-build/issues/"
#define TORCH_SRC "https://github.com/pytorch/pytorch "
#define INSTALL_DOC "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/prerequisites.html"
#define MUSUBI "https://github.com/kohya-ss/musubi-tuner README.md"
#define MIOPEN_CACHE "https://rocm.docs.amd.com/projects/MIOpen/en/latest/conceptual/cache.html"
#define THEROCK "https://github.com/ROCm/TheRock "
#define BNB "https://github.com/bitsandbytes-foundation/bitsandbytes bitsandbytes/"

/* In the order of dependency; the rows of a group are adjacent. */
/* clang-format off */
static const struct check table[] = {
    { "gpu-present", "hardware", "an AMD GPU is in the machine",
      KERNEL_SRC "amdkfd/kfd_topology.c", CHECK_NEEDED, check_gpu_present },
    { "gpu-driver", "hardware", "amdgpu is bound to the GPU, not radeon or vfio-pci",
      "https://docs.kernel.org/driver-api/vfio.html", 0, check_gpu_driver },
    { "gpu-target", "hardware", "the gfx target is known and in cairn's tables",
      "https://llvm.org/docs/AMDGPUUsage.html", CHECK_NEEDED, check_gpu_target },
    { "gpu-support", "hardware", "some PyTorch wheel contains code for the chip",
      THEROCK "SUPPORTED_GPUS.md", 0, check_gpu_support },
    { "gpu-integrated", "hardware", "no integrated GPU is visible beside the discrete one",
      "https://github.com/unslothai/unsloth/issues/7307", CHECK_HANGS, check_gpu_integrated },
    { "gpu-bf16", "hardware", "the chip computes bf16",
      "https://github.com/unslothai/unsloth/pull/7682", CHECK_ADVICE, check_gpu_bf16 },
    { "gpu-attention", "hardware", "the chip has the matrix cores that fused attention needs",
      "https://github.com/ROCm/aotriton python/gpu_targets.py", CHECK_ADVICE, check_gpu_attention },
    { "gpu-asleep", "hardware", "the GPU is awake, so that its sensors can be read",
      "https://docs.kernel.org/power/runtime_pm.html", CHECK_ADVICE, check_gpu_asleep },
    { "pcie-atomics", "hardware", "PCIe atomics reach a discrete GPU",
      KERNEL_SRC "amdkfd/kfd_device.c", 0, check_pcie_atomics },
    { "pcie-link", "hardware", "the PCIe link is as wide as the card",
      "https://docs.kernel.org/admin-guide/abi-testing.html (current_link_width)", CHECK_ADVICE,
      check_pcie_link },
    { "resizable-bar", "hardware", "the CPU can address all of a discrete GPU's memory",
      KERNEL_SRC "amdgpu/amdgpu_vram_mgr.c", CHECK_ADVICE, check_resizable_bar },

    { "wsl", "kernel", "this is Linux on the machine itself, not WSL",
      "https://github.com/ROCm/librocdxg", 0, check_wsl },
    { "amdgpu-module", "kernel", "the amdgpu module is loaded",
      KERNEL_SRC "amdgpu/amdgpu_drv.c", 0, check_amdgpu_module },
    { "kfd", "kernel", "the kernel has KFD",
      KERNEL_SRC "amdkfd/Kconfig", 0, check_kfd_topology },
    { "gpu-in-kfd", "kernel", "KFD, the kernel's compute driver, has a node of known target for a GPU",
      ROCR_SRC "libhsakmt/src/topology.c", CHECK_NEEDED, check_gpu_in_kfd },
    { "kernel-chip", "kernel", "the kernel is new enough for the chip",
      LEGACY_ISSUE "5844", CHECK_HANGS, check_kernel_chip },
    { "kernel-unified", "kernel", "the kernel lets ROCm use the shared memory of an integrated GPU",
      KERNEL_SRC "amdkfd/kfd_topology.c", 0, check_kernel_unified },
    { "cwsr", "kernel", "the context-save area is large enough for gfx1151's registers",
      "https://github.com/ROCm/TheRock/issues/2151", CHECK_HANGS, check_cwsr_kernel },
    { "mes-firmware", "kernel", "the MES firmware is not a release known to hang",
      LEGACY_ISSUE "5724", CHECK_HANGS, check_mes_firmware },
    { "gttsize", "kernel", "the deprecated amdgpu.gttsize is not set",
      LEGACY_ISSUE "6004", 0, check_gttsize },
    { "page-pool", "kernel", "ttm.page_pool_size does not pin most of RAM",
      "https://github.com/torvalds/linux drivers/gpu/drm/ttm/ttm_pool.c", CHECK_ADVICE, check_page_pool },
    { "system-mem-limit", "kernel", "KFD's cap on pinned system memory is active",
      KERNEL_PARAMS, CHECK_ADVICE, check_system_mem_limit },
    { "vram-limits", "kernel", "no leftover parameter hides VRAM",
      KERNEL_PARAMS, 0, check_vram_limits },
    { "iommu-off", "kernel", "the IOMMU is not disabled",
      "https://docs.kernel.org/admin-guide/kernel-parameters.html (amd_iommu)", CHECK_ADVICE, check_iommu_off },
    { "iommu-pt", "kernel", "with several GPUs, iommu=pt is set",
      "https://github.com/ROCm/rccl src/init.cc", CHECK_HANGS, check_iommu_pt },

    { "kfd-access", "permissions", "this user can open /dev/kfd",
      INSTALL_DOC, 0, check_kfd_access },
    { "render-access", "permissions",
      "this user can open every GPU's render node; one denied node hides all GPUs",
      ROCR_SRC "libhsakmt/src/topology.c", 0, check_render_access },
    { "seat-acl", "permissions", "access does not depend on a desktop login",
      "https://github.com/systemd/systemd rules.d/50-udev-default.rules.in", CHECK_ADVICE, check_seat_acl },
    { "container", "permissions", "a container has the GPUs it should have",
      "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html", 0, check_container },

    { "carve-out", "memory", "the BIOS carve-out takes no large part of RAM for an integrated GPU",
      KERNEL_SRC "amdkfd/kfd_topology.c", 0, check_carve_out },
    { "ttm-limit", "memory", "an integrated GPU may map most of RAM (ttm.pages_limit)",
      LEGACY_ISSUE "5595", 0, check_ttm_limit },
    { "gtt-over-ttm", "memory", "GTT reports no more than the TTM limit allows",
      LEGACY_ISSUE "6004", 0, check_gtt_over_ttm },
    { "gtt-over-ram", "memory", "GTT is not larger than RAM",
      "https://github.com/Hal0ai/hal0", 0, check_gtt_over_ram },
    { "gpu-memory", "memory", "the GPU has enough memory to train",
      MUSUBI, 0, check_gpu_memory },
    { "vram-in-use", "memory", "the desktop does not use up the VRAM of a discrete GPU",
      "https://github.com/ggml-org/llama.cpp/issues/24906", CHECK_ADVICE, check_vram_in_use },
    { "gpu-processes", "memory", "no other compute process holds memory on the GPU",
      KERNEL_SRC "amdkfd/kfd_process.c", CHECK_ADVICE, check_gpu_processes },
    { "memory-available", "memory", "enough RAM is available now",
      "https://docs.kernel.org/filesystems/proc.html (MemAvailable)", CHECK_ADVICE, check_memory_available },
    { "cgroup-limit", "memory", "no cgroup limit is far below the machine's RAM",
      "https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max)", 0, check_cgroup_limit },
    { "swap", "memory", "RAM and swap can load a model of the size this GPU can train",
      "https://github.com/tdrussell/diffusion-pipe/issues/149; " MUSUBI, CHECK_ADVICE, check_swap },
    { "huge-pages", "memory", "transparent huge pages are on",
      "https://docs.kernel.org/admin-guide/mm/transhuge.html", CHECK_ADVICE, check_huge_pages },

    { "rocm-present", "rocm", "PyTorch has a ROCm to use, bundled or installed",
      THEROCK "RELEASES.md", CHECK_ADVICE, check_rocm_present },
    { "rocm-loaded", "rocm", "PyTorch loads a HIP runtime of the major version it was built for",
      TORCH_SRC "torch/__init__.py", 0, check_rocm_loaded },
    { "native-runtime", "rocm", "cairn's own training finds a HIP runtime and its compiler",
      "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_rtc.html", CHECK_ADVICE, check_native_runtime },
    { "rocm-floor", "rocm", "ROCm is not older than the first release that supports the chip",
      "https://rocm.docs.amd.com/en/latest/compatibility/compatibility-matrix.html", 0, check_rocm_floor },
    { "rocm-cwsr", "rocm", "the runtime has its part of gfx1151's context-save fix",
      "https://github.com/ROCm/rocm-systems/pull/2200", CHECK_HANGS, check_rocm_cwsr },
    { "rocm-known-bad", "rocm", "this ROCm release has no known bug on this chip",
      LEGACY_ISSUE "5572; " LEGACY_ISSUE "2781; https://github.com/Niko1221/Strata", CHECK_HANGS, check_rocm_known_bad },
    { "mapped-weights", "rocm", "no slow loading of memory-mapped weights is known",
      LEGACY_ISSUE "6523; " LEGACY_ISSUE "6358; " LEGACY_ISSUE "6606; " LEGACY_ISSUE "6582", CHECK_ADVICE,
      check_mapped_weights },
    { "hip-memory", "rocm", "HIP reports an integrated GPU's memory correctly", LEGACY_ISSUE "6004", CHECK_ADVICE,
      check_hip_memory },

    { "torch-present", "pytorch", "PyTorch is installed",
      "https://pytorch.org/get-started/locally/", CHECK_NEEDED, check_torch_present },
    { "torch-build", "pytorch", "it is a ROCm build",
      TORCH_SRC "tools/generate_torch_version.py", CHECK_NEEDED, check_torch_build },
    { "torch-several", "pytorch", "there is one PyTorch, or all copies are the same",
      "https://docs.python.org/3/library/site.html", CHECK_ADVICE, check_torch_several },
    { "torch-target", "pytorch", "it has code for this GPU, or an override selects compatible code",
      TORCH_SRC ".ci/docker/manywheel/build.sh", CHECK_NEEDED | CHECK_HANGS, check_torch_target },
    { "torch-device-wheels", "pytorch", "where wheels split off device code, this GPU's device wheel is "
                                        "installed",
      THEROCK "RELEASES.md", 0, check_torch_device_wheels },
    { "torch-files", "pytorch", "its files are readable and consistent",
      TORCH_SRC "tools/generate_torch_version.py", 0, check_torch_files },
    { "torch-known-bad", "pytorch", "this PyTorch release has no known bug on this chip",
      "https://github.com/ROCm/TheRock/issues/1315", 0, check_torch_known_bad },

    { "rocblas", "libraries", "rocBLAS has kernels for the GPU (without them it aborts)",
      "https://github.com/ROCm/rocm-libraries projects/rocblas/library/src/tensile_host.cpp", 0, check_rocblas },
    { "hipblaslt", "libraries", "hipBLASLt has kernels for the GPU",
      "https://github.com/ROCm/rocm-libraries projects/hipblaslt", 0, check_hipblaslt },
    { "aotriton", "libraries", "fused attention is available for the GPU, and enabled",
      "https://github.com/ROCm/aotriton v3src/util.cc", 0, check_aotriton },
    { "miopen-db", "libraries", "MIOpen has tuned convolutions for the GPU, or is set not to search",
      "https://rocm.docs.amd.com/projects/MIOpen/en/latest/how-to/find-and-immediate.html", CHECK_ADVICE,
      check_miopen_db },
    { "miopen-version", "libraries", "which MIOpen gfx1151 gets (a claim about 3.5.1 is unconfirmed)",
      "https://github.com/ROCm/rocm-libraries projects/miopen", CHECK_ADVICE, check_miopen_version },
    { "miopen-cache", "libraries", "MIOpen's cache was written by the MIOpen in use",
      LEGACY_ISSUE "6034", CHECK_ADVICE, check_miopen_cache },
    { "triton", "libraries", "Triton is installed and fits this PyTorch",
      "https://github.com/triton-lang/triton", 0, check_triton },
    { "accelerate", "libraries", "accelerate is installed",
      "https://huggingface.co/docs/accelerate", CHECK_ADVICE, check_accelerate },
    { "bitsandbytes", "libraries", "bitsandbytes, if installed, has a library for this ROCm and this GPU",
      BNB "cuda_specs.py", CHECK_ADVICE, check_bitsandbytes },
    { "rocminfo", "libraries", "rocminfo is installed if bitsandbytes needs it",
      BNB "cuda_specs.py", CHECK_ADVICE, check_rocminfo },
    { "flash-attn", "libraries", "flash-attn, if installed, fits and uses the kernels made for the chip",
      "https://github.com/Dao-AILab/flash-attention README.md", CHECK_ADVICE, check_flash_attn },
    { "rccl", "libraries", "with several GPUs, RCCL is built for them",
      THEROCK "cmake/therock_amdgpu_targets.cmake", 0, check_rccl },

    { "override", "environment",
      "HSA_OVERRIDE_GFX_VERSION is unset, or well formed and right for the chip and the wheel",
      ROCR_SRC "libhsakmt/src/topology.c", 0, check_override },
    { "visible-devices", "environment", "the variables that select GPUs name existing ones",
      "https://github.com/ROCm/clr rocclr/device/rocm/rocdevice.cpp", 0, check_visible_devices },
    { "env-harmful", "environment", "no harmful or useless variable is set",
      "https://github.com/ROCm/clr rocclr/utils/flags.hpp", 0, check_env_harmful },
    { "env-planned", "environment", "the variables that training on this GPU needs are set",
      "https://docs.pytorch.org/docs/stable/notes/hip.html", 0, check_env_planned },
    { "env-warnings", "environment", "the environment raises no warning",
      "https://docs.pytorch.org/docs/stable/notes/hip.html", CHECK_ADVICE, check_env_warnings },
    { "ld-library-path", "environment", "LD_LIBRARY_PATH puts no second ROCm before PyTorch's",
      "https://man7.org/linux/man-pages/man8/ld.so.8.html", CHECK_HANGS, check_ld_library_path },
    { "ld-preload", "environment", "LD_PRELOAD forces no ROCm library into PyTorch",
      "https://man7.org/linux/man-pages/man8/ld.so.8.html", CHECK_HANGS, check_ld_preload },

    { "disk-cache", "disk", "enough disk space for kernel caches and downloads",
      MIOPEN_CACHE, CHECK_ADVICE, check_disk_cache },
    { "disk-work", "disk", "enough disk space for checkpoints in the working directory",
      MUSUBI, CHECK_ADVICE, check_disk_work },
};
/* clang-format on */

const struct check *checks_table(size_t *n)
{
    *n = ARRAY_LEN(table);
    return table;
}

bool checks_has_group(const char *group)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (str_eq(table[i].group, group))
            return true;
    return false;
}
