/* SPDX-License-Identifier: Apache-2.0
 * Sources of the knowledge about variables. */
#ifndef CAIRN_RULES_ENV_SOURCES_H
#define CAIRN_RULES_ENV_SOURCES_H

#define SRC_TORCH "https://github.com/pytorch/pytorch "
#define SRC_TORCH_ENV SRC_TORCH "c10/util/env.cpp"
#define SRC_TORCH_CONTEXT SRC_TORCH "aten/src/ATen/Context.cpp"
#define SRC_TORCH_TUNABLE SRC_TORCH "aten/src/ATen/cuda/tunable/README.md"
#define SRC_TORCH_DSA SRC_TORCH "c10/cuda/CUDADeviceAssertionHost.cpp, torch/utils/hipify"
#define SRC_TORCH_CMAKE SRC_TORCH "cmake/public/LoadHIP.cmake, torch/utils/cpp_extension.py"
#define SRC_TORCH_ATEN SRC_TORCH "aten/src/ATen"
#define SRC_TORCH_HIP_NOTES "https://docs.pytorch.org/docs/stable/notes/hip.html"
#define SRC_HSA_FLAGS "https://github.com/ROCm/rocm-systems ROCr core/util/flag.h"
#define SRC_HSAKMT "https://github.com/ROCm/ROCR-Runtime libhsakmt/src/topology.c"
#define SRC_HSA_ISA "https://github.com/ROCm/rocm-systems ROCr isa.cpp"
#define SRC_HIP_FLAGS "https://github.com/ROCm/clr rocclr/utils/flags.hpp"
#define SRC_KPACK "https://github.com/ROCm/TheRock docs/packaging/python_packaging.md"
#define SRC_ROCBLAS "https://github.com/ROCm/rocm-libraries rocBLAS handle.cpp, tensile_host.cpp"
#define SRC_HIPBLASLT "https://github.com/ROCm/rocm-libraries hipBLASLt tensile_host.cpp"
#define SRC_MIOPEN "https://rocm.docs.amd.com/projects/MIOpen"
#define SRC_AOTRITON "https://github.com/ROCm/aotriton README, v3src/util.cc"
#define SRC_TRITON "https://github.com/triton-lang/triton python/triton/knobs.py"
#define SRC_FLASH "https://github.com/Dao-AILab/flash-attention README"
#define SRC_RCCL "https://github.com/ROCm/rccl src/init.cc"
#define SRC_ACCELERATE "https://github.com/huggingface/accelerate src/accelerate"
#define SRC_BNB "https://github.com/bitsandbytes-foundation/bitsandbytes cextension.py, cuda_specs.py"
#define SRC_COMFY "https://github.com/comfyanonymous/ComfyUI comfy/model_management.py"
#define SRC_LEGACY "https://github.com/ROCm/legacy-rocm-build/issues/"
#define SRC_WINDOWS "https://github.com/ggml-org/llama.cpp/pull/21331"

#define DOC_OVERRIDE "docs/rules/override.md"
#define DOC_VISIBLE "docs/rules/visible-devices.md"
#define DOC_ALLOCATOR "docs/rules/allocator.md"
#define DOC_UNIFIED "docs/rules/unified-memory.md"
#define DOC_AOTRITON "docs/rules/aotriton.md"
#define DOC_HIPBLASLT "docs/rules/hipblaslt.md"
#define DOC_RUNTIMES "docs/rules/runtimes.md"
#define DOC_DEBUGGING "docs/rules/debugging.md"

#endif
