/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/issue_rules.h"

const struct issue_class issue_classes[N_ISSUES] = {
    [ISSUE_NO_KERNEL_IMAGE] = {
        .id = "no-kernel-image",
        .about = "PyTorch, or one of its extensions, has no code for this GPU",
        .cause = "[{no_code}][ Code for {as} runs on this chip, so an override works until you install a "
                 "wheel with {gfx}.]",
    },
    [ISSUE_TENSILE_MISSING] = {
        .id = "tensile-missing",
        .about = "rocBLAS has no matrix kernels for this GPU",
        .cause = "rocBLAS has no library of matrix kernels for[ {gfx},] the GPU in use.[ Code for {as} runs "
                 "on this chip.]",
    },
    [ISSUE_OVERRIDE_BAD] = {
        .id = "hsa-override-bad",
        .about = "HSA_OVERRIDE_GFX_VERSION is malformed, stale or for another chip",
        .cause = "{override_name}[ is \"{override_value}\", which] does not fit here:[ "
                 "{override_flaw}].",
    },
    [ISSUE_INVALID_ARGUMENT] = {
        .id = "hip-invalid-argument",
        .about = "HIP rejected a copy or a query, usually of mapped or pinned host memory",
        .cause = "HIP rejected the arguments of a call. Nearly always it is a copy from mapped or pinned "
                 "host memory to the GPU, or a query that the driver is too old for. The line of Python in "
                 "the traceback only triggered it.",
    },
    [ISSUE_NO_DEVICE] = {
        .id = "no-device",
        .about = "ROCm finds no GPU: driver, container or slot",
        .cause = "[{no_device}]",
    },
    [ISSUE_PERMISSION] = {
        .id = "device-permission",
        .about = "the user or container has no permission to open /dev/kfd or /dev/dri",
        .cause = "The GPU exists, but[ {user},] the user or the container has no permission to open its "
                 "device nodes[ (they belong to the group {group})].",
    },
    [ISSUE_TORCH_NOT_ROCM] = {
        .id = "torch-not-rocm",
        .about = "PyTorch, or a package beside it, is a CUDA or CPU build",
        .cause = "The PyTorch in use[ ({torch})], or a package beside it, is a CUDA or CPU build, which "
                 "cannot use an AMD GPU. Usually pip replaced the ROCm build when it installed another "
                 "package.",
    },
    [ISSUE_OOM_VRAM] = {
        .id = "oom-vram",
        .about = "out of GPU memory (OOM)",
        .cause = "Out of GPU memory[: tried to allocate {want}, {free} of {total} were free].[ {others}][ "
                 "{no_fragments}]",
    },
    [ISSUE_OOM_FRAGMENTATION] = {
        .id = "oom-fragmentation",
        .about = "out of GPU memory (OOM) through fragmentation: enough is free, but in blocks that are too "
                 "small",
        .cause = "GPU memory is fragmented[: tried to allocate {want}, {unused} were reserved but unused, "
                 "{free} free]. PyTorch's allocator has split its blocks and has none of that size.",
    },
    [ISSUE_OOM_UNIFIED] = {
        .id = "oom-unified-limit",
        .about = "out of memory (OOM) on an APU: the GPU reached the kernel's GTT limit, or used up the "
                 "host's RAM",
        .cause = "CPU and GPU share memory here[ ({gfx})]. The GPU reached the limit of what the kernel lets "
                 "it map (GTT), or the host ran out of RAM[: tried to allocate {want}, the total was "
                 "{total}]. By default the limit is half of RAM, and weights mapped from a file count twice.",
        .cause_guard = "CPU and GPU share memory here[ ({gfx})], and cairn's memory guard[ refused "
                       "{refused}]. The allocation would have cut into the host's reserve, and such machines "
                       "then freeze.",
    },
    [ISSUE_HOST_OOM] = {
        .id = "host-oom",
        .about = "the host ran out of memory (OOM), and the process was killed",
        .cause = "[{out_of_ram}] GPU memory is not the cause[ (on {shared} it is the same memory)].[ "
                 "{kill_unsure}]",
        .cause_guard = "cairn stopped the trainer. CPU and GPU share memory here[ ({gfx})], the host had "
                       "almost none left, and such machines then freeze. Memory of other programs counts too.",
        .any_machine = true,
    },
    [ISSUE_HANG] = {
        .id = "hang",
        .about = "hang: the process waits for the GPU and makes no progress",
        .cause = "The process waits for the GPU forever, without an error: a completion signal was lost, or "
                 "a driver call does not return.[ {loading}][ {expandable}]",
        .cause_watch = "The process hung: it printed nothing and used no CPU time. No process of the run had "
                       "the GPU or a HIP runtime open, so the GPU is not the cause. The process waited for "
                       "something else: a file, the network, a lock, or another process.",
        .cause_may = "The log ends while the program loads or compiles something, without an error. If the "
                     "process is still there, it hangs.[ {loading}][ {expandable}]",
    },
    [ISSUE_GPU_RESET] = {
        .id = "gpu-reset",
        .about = "GPU reset: the GPU stopped responding, and the driver reset it",
        .cause = "The GPU stopped responding and the driver reset it; everything that ran on it is lost. The "
                 "cause is firmware, driver, power, or overcommitted memory beside a desktop, not the "
                 "training script.",
    },
    [ISSUE_MEMORY_FAULT] = {
        .id = "gpu-memory-fault",
        .about = "page fault: a GPU kernel accessed memory that is not mapped",
        .cause = "A GPU kernel accessed memory that is not mapped. The bug is in a library for this chip[ "
                 "({gfx})], in the runtime, or in code built for another chip.",
    },
    [ISSUE_NATIVE_CRASH] = {
        .id = "native-crash",
        .about = "native code crashed without a HIP error",
        .cause = "Native code crashed[ {crash_in}], which Python cannot catch.[ The stack ends at {stack}.] Usual "
                 "causes: an operation without a kernel for this chip (fp8 and other quantised weights), graph "
                 "capture, or libraries and driver that do not fit together.",
    },
    [ISSUE_MIOPEN] = {
        .id = "miopen-failure",
        .about = "MIOpen could not build or find a convolution kernel",
        .cause = "MIOpen, which compiles convolution kernels at run time, failed to build or find one[: the "
                 "C++ header {cxx_header} is missing][: {miopen_guess}].",
        .often_caught = true,
    },
    [ISSUE_HIPBLASLT] = {
        .id = "hipblaslt-unsupported",
        .about = "hipBLASLt has no kernels for this GPU, or failed",
        .cause = "hipBLASLt has no kernels for this GPU[ ({gfx})], or one of them failed. As a warning it is "
                 "harmless: PyTorch falls back to hipBLAS.",
        .often_caught = true,
    },
    [ISSUE_ATTENTION] = {
        .id = "attention-experimental",
        .about = "fused attention is missing or disabled on this GPU",
        .cause = "[{no_attention_package}][{slow_attention}]",
    },
    [ISSUE_BITSANDBYTES] = {
        .id = "bitsandbytes-no-rocm",
        .about = "bitsandbytes has no library that fits this ROCm",
        .cause = "bitsandbytes {bnb_flaw}[ ({torch})], so its 8-bit and 4-bit functions fail. Runs that do "
                 "not use them are not affected.",
        .often_caught = true,
    },
    [ISSUE_NAN] = {
        .id = "numerics-nan",
        .about = "the loss is NaN, or exactly zero",
        .cause = "The loss is NaN, or loss and gradients are exactly zero. On this hardware the usual causes "
                 "are fused attention in 16 bit, an fp16 overflow in the VAE, or corrupted copies. A "
                 "learning rate that is too high looks the same.",
    },
    [ISSUE_TRITON] = {
        .id = "triton-compile",
        .about = "a Triton kernel or torch.compile could not be built",
        .cause = "A Triton kernel could not be built for this GPU[: the C compiler did not find {c_header}][: "
                 "{triton_guess}].",
    },
    [ISSUE_LIB_LOAD] = {
        .id = "lib-load",
        .about = "a library is missing, or two versions of ROCm are mixed",
        .cause = "A library could not be loaded: it is not installed, or the process mixes two versions of "
                 "ROCm (or of the C++ library).",
    },
    [ISSUE_RCCL] = {
        .id = "rccl-error",
        .about = "RCCL failed: the GPUs could not communicate",
        .cause = "RCCL, the library for communication between GPUs, failed. Most consumer cards have no "
                 "working PCIe peer access. Too little shared memory, or ranks on the wrong GPUs, look the "
                 "same.",
    },
    [ISSUE_WRONG_GPU] = {
        .id = "wrong-gpu",
        .about = "the program picked the integrated GPU",
        .cause = "The program ran on the integrated GPU[ ({igpu})], not on the discrete card: "
                 "[{card_hidden}][{both_listed}]",
    },
    [ISSUE_VISIBLE_DEVICES] = {
        .id = "visible-devices",
        .about = "the variables that select GPUs hide the requested one",
        .cause = "The variables that select GPUs[ ({visible})] leave none, or not the requested one. "
                 "ROCR_VISIBLE_DEVICES filters first; the HIP and CUDA variables count within what remains.",
    },
    [ISSUE_DRIVER_OLD] = {
        .id = "driver-too-old",
        .about = "kernel driver, firmware and ROCm do not match",
        .cause = "The driver or firmware does not match this ROCm; usually the driver is older than the GPU[ "
                 "({gfx})] or the ROCm.[ {driver_alike}]",
    },
    [ISSUE_SDMA] = {
        .id = "sdma",
        .about = "SDMA, the GPU's copy engine, failed",
        .cause = "The GPU's copy engine (SDMA) did not finish a copy. Its firmware, the driver, or the PCIe "
                 "path is at fault; compute works.",
    },
    [ISSUE_SAFETENSORS] = {
        .id = "safetensors-file",
        .about = "a model or checkpoint file is damaged",
        .cause = "A model or checkpoint file is damaged, or is not such a file: an incomplete download, a "
                 "web page or an LFS pointer in its place, or a checkpoint whose writing was interrupted.",
        .any_machine = true,
    },
    [ISSUE_DISK_FULL] = {
        .id = "disk-full",
        .about = "the disk or quota is full",
        .cause = "A file could not be written: the disk or the quota is full. Treat the newest checkpoint as "
                 "damaged.",
        .any_machine = true,
    },
    [ISSUE_NOT_ROCM] = {
        .id = "not-rocm",
        .about = "the failure is not related to ROCm",
        .cause = "[{not_rocm}][ {stopped}]",
        .any_machine = true,
    },
    [ISSUE_NO_FAILURE] = {
        .id = "no-failure",
        .about = "nothing failed",
        .cause = "Nothing in the log says that the run failed.[ {progress}]",
        .any_machine = true,
    },
    [ISSUE_UNKNOWN] = {
        .id = "unknown",
        .about = "no known cause matches",
        .cause = "No known cause matches[ ({reason})].",
        .cause_watch = "The process was killed from outside (SIGKILL). Memory was not short[: "
                       "{memory_seen}]. Likely senders are a person, the time limit of a batch system, or "
                       "the end of a container.",
        .any_machine = true,
    },
};
