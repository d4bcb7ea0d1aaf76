/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/issue_rules.h"

const struct issue_class issue_classes[N_ISSUES] = {
    [ISSUE_NO_KERNEL_IMAGE] = {
        .id = "no-kernel-image",
        .about = "PyTorch, or an extension of it, carries no code for this GPU",
        .cause = "[{no_code}][ The code of {as} runs on this chip, so an override can stand in until a wheel with "
                 "{gfx} is installed.]",
    },
    [ISSUE_TENSILE_MISSING] = {
        .id = "tensile-missing",
        .about = "rocBLAS has no matrix kernels for this GPU",
        .cause = "rocBLAS has no library of matrix kernels for[ {gfx},] the GPU it was asked to use.[ Code "
                 "for {as} runs on this chip.]",
    },
    [ISSUE_OVERRIDE_BAD] = {
        .id = "hsa-override-bad",
        .about = "HSA_OVERRIDE_GFX_VERSION is malformed, stale or of another chip",
        .cause = "{override_name}[ is \"{override_value}\", which] does not fit here:[ "
                 "{override_flaw}].",
    },
    [ISSUE_INVALID_ARGUMENT] = {
        .id = "hip-invalid-argument",
        .about = "HIP refused a copy or a query, mostly of mapped or pinned host memory",
        .cause = "HIP refused the arguments of a call. Nearly always it is a copy from mapped or pinned "
                 "host memory to the GPU, or a query that the driver is too old for; the line of Python "
                 "that is named only triggered it.",
    },
    [ISSUE_NO_DEVICE] = {
        .id = "no-device",
        .about = "ROCm finds no GPU: driver, container or slot",
        .cause = "[{no_device}]",
    },
    [ISSUE_PERMISSION] = {
        .id = "device-permission",
        .about = "the user or container may not open /dev/kfd or /dev/dri",
        .cause = "The GPU is there, but[ {user},] the user or the container may not open its device nodes[ "
                 "(they belong to the group {group})].",
    },
    [ISSUE_TORCH_NOT_ROCM] = {
        .id = "torch-not-rocm",
        .about = "PyTorch, or a package beside it, is a CUDA or CPU build",
        .cause = "The PyTorch in use[ ({torch})], or a package beside it, is a CUDA or CPU build, which "
                 "cannot use an AMD GPU. Mostly pip replaced the ROCm build while it installed something "
                 "else.",
    },
    [ISSUE_OOM_VRAM] = {
        .id = "oom-vram",
        .about = "the GPU's memory is full",
        .cause = "The GPU's memory is full[: {want} more were asked for, {free} of {total} were free].[ {others}][ "
                 "{no_fragments}]",
    },
    [ISSUE_OOM_FRAGMENTATION] = {
        .id = "oom-fragmentation",
        .about = "enough GPU memory is free, but in pieces that are too small",
        .cause = "GPU memory is left, but in pieces[: {want} were asked for, {unused} were reserved and "
                 "unused, {free} free]. PyTorch's allocator had split its blocks and could not make one of "
                 "that size.",
    },
    [ISSUE_OOM_UNIFIED] = {
        .id = "oom-unified-limit",
        .about = "an APU reached the kernel's limit of memory that the GPU may map, or what the host has to keep",
        .cause = "CPU and GPU share memory here[ ({gfx})], and the GPU reached what the kernel lets it "
                 "map, or what the CPU side had left[: {want} were asked for, the total was {total}]. By "
                 "default the limit is half of RAM, and weights that are mapped from a file count twice.",
        .cause_guard = "CPU and GPU share memory here[ ({gfx})], and cairn's own guard[ refused {refused}]: the "
                       "host would have been left less than its reserve, and such machines then freeze.",
    },
    [ISSUE_HOST_OOM] = {
        .id = "host-oom",
        .about = "the host's memory ran out, and the process was ended",
        .cause = "[{out_of_ram}] GPU memory is not to blame[ (on {shared} it is the same memory)].[ {kill_unsure}]",
        .cause_guard = "cairn stopped the trainer: CPU and GPU share memory here[ ({gfx})], the host had next to "
                       "none left, and such machines then freeze. What other programs take counts, too.",
        .any_machine = true,
    },
    [ISSUE_HANG] = {
        .id = "hang",
        .about = "the process waits for the GPU and does not go on",
        .cause = "The process waits for the GPU for ever, without an error: a completion signal was lost, "
                 "or a call of the driver does not return.[ {loading}][ {expandable}]",
        .cause_watch = "The process stood still: it printed nothing and used no CPU time. No process of the run "
                       "had the GPU or a HIP runtime open, so the GPU is not to blame. It waited for something "
                       "else: a file, the network, a lock, or another process.",
        .cause_may = "The log ends while something loads or compiles, without an error. If the process still "
                     "stands there, it hangs.[ {loading}][ {expandable}]",
    },
    [ISSUE_GPU_RESET] = {
        .id = "gpu-reset",
        .about = "the GPU stopped answering, and the driver reset it",
        .cause = "The GPU stopped answering and the driver reset it; all that ran on it is lost. It is a "
                 "fault of firmware, driver or power, or of memory that is overfull beside a desktop, and "
                 "not of the training script.",
    },
    [ISSUE_MEMORY_FAULT] = {
        .id = "gpu-memory-fault",
        .about = "a GPU kernel touched memory that is not mapped",
        .cause = "A kernel on the GPU touched memory that is not mapped: a bug of a library for this chip[ "
                 "({gfx})], of the runtime, or of code that was made for another chip.",
    },
    [ISSUE_NATIVE_CRASH] = {
        .id = "native-crash",
        .about = "native code crashed without an error of HIP",
        .cause = "Native code crashed[ {crash_in}], which Python cannot catch.[ The stack ends at {stack}.] Usual "
                 "causes: an operation without a kernel for this chip (fp8 and other quantised weights), graph "
                 "capture, or libraries and driver that do not fit together.",
    },
    [ISSUE_MIOPEN] = {
        .id = "miopen-failure",
        .about = "MIOpen could not build or find a convolution kernel",
        .cause = "MIOpen, which compiles convolution kernels while the program runs, failed to build or to find one[: "
                 "the C++ header {cxx_header} is missing][: {miopen_guess}].",
        .often_caught = true,
    },
    [ISSUE_HIPBLASLT] = {
        .id = "hipblaslt-unsupported",
        .about = "hipBLASLt has no kernels for this GPU, or failed",
        .cause = "hipBLASLt has no kernels for this GPU[ ({gfx})], or one of them failed. As a warning it "
                 "is harmless: PyTorch goes on with hipBLAS.",
        .often_caught = true,
    },
    [ISSUE_ATTENTION] = {
        .id = "attention-experimental",
        .about = "fused attention is missing or kept off on this GPU",
        .cause = "[{no_attention_package}][{slow_attention}]",
    },
    [ISSUE_BITSANDBYTES] = {
        .id = "bitsandbytes-no-rocm",
        .about = "bitsandbytes has no library that fits this ROCm",
        .cause = "bitsandbytes {bnb_flaw}[ ({torch})], so its 8-bit "
                 "and 4-bit functions fail. Runs that do not use them go on.",
        .often_caught = true,
    },
    [ISSUE_NAN] = {
        .id = "numerics-nan",
        .about = "the loss is NaN, or exactly zero",
        .cause = "The numbers are wrong: the loss is NaN, or loss and gradients are exactly zero. On this "
                 "hardware the usual causes are fused attention in 16 bit, an fp16 overflow in the VAE, or "
                 "copies that arrive damaged; a learning rate that is too high looks the same.",
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
        .cause = "A library could not be loaded: it is not installed, or two versions of ROCm (or of the "
                 "C++ library) meet in one process.",
    },
    [ISSUE_RCCL] = {
        .id = "rccl-error",
        .about = "GPUs could not talk to each other",
        .cause = "RCCL, through which several GPUs talk, failed. Consumer cards mostly have no working "
                 "PCIe peer access; too little shared memory, or ranks on the wrong GPUs, show in the same "
                 "way.",
    },
    [ISSUE_WRONG_GPU] = {
        .id = "wrong-gpu",
        .about = "the program picked the integrated GPU",
        .cause = "The program ran on the integrated GPU[ ({igpu})] and not on the card: [{card_hidden}][{both_listed}]",
    },
    [ISSUE_VISIBLE_DEVICES] = {
        .id = "visible-devices",
        .about = "the variables that choose GPUs hide the one that was asked for",
        .cause = "The variables that choose GPUs[ ({visible})] leave none, or not the one that was asked "
                 "for: ROCR_VISIBLE_DEVICES filters first, and the HIP and CUDA ones count within what is "
                 "left.",
    },
    [ISSUE_DRIVER_OLD] = {
        .id = "driver-too-old",
        .about = "kernel driver, firmware and ROCm do not fit together",
        .cause = "The driver or firmware and this ROCm do not fit together; mostly the driver is older than the GPU[ "
                 "({gfx})] or the ROCm.[ {driver_alike}]",
    },
    [ISSUE_SDMA] = {
        .id = "sdma",
        .about = "the GPU's copy engine failed",
        .cause = "The GPU's copy engine (SDMA) did not finish a copy: its firmware, the driver, or the "
                 "PCIe path is at fault, while computing works.",
    },
    [ISSUE_SAFETENSORS] = {
        .id = "safetensors-file",
        .about = "a model or checkpoint file is damaged",
        .cause = "A model or checkpoint file is damaged or is no such file at all: a download that was cut "
                 "short, a page or an LFS pointer in its place, or a checkpoint whose writing was "
                 "interrupted.",
        .any_machine = true,
    },
    [ISSUE_DISK_FULL] = {
        .id = "disk-full",
        .about = "the disk or quota is full",
        .cause = "A file could not be written: the disk or the quota is full. The newest checkpoint has to "
                 "be taken for damaged.",
        .any_machine = true,
    },
    [ISSUE_NOT_ROCM] = {
        .id = "not-rocm",
        .about = "the failure has nothing to do with ROCm",
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
        .about = "nothing that is known explains it",
        .cause = "Nothing that is known explains this[ ({reason})].",
        .cause_watch = "Somebody or something else killed the process (SIGKILL). Memory was not short[: "
                       "{memory_seen}]. A person, the time limit of a batch system, or the end of a container "
                       "kills like that.",
        .any_machine = true,
    },
};
