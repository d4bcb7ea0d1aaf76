/* SPDX-License-Identifier: Apache-2.0
 * The ladders.  Rungs of one class stand in the order in which they are to be tried; each changes one
 * thing. */
#include "rules/issue_rules.h"

#define PERSON DIAGNOSE_ACT_NONE
#define RESTART DIAGNOSE_ACT_RESTART
#define RESUME DIAGNOSE_ACT_RESUME
#define CACHES DIAGNOSE_ACT_CLEAR_CACHES
#define OTHER DIAGNOSE_ACT_OTHER_GPU
#define CPU DIAGNOSE_ACT_CPU
#define OPTIMIZER DIAGNOSE_ACT_OPTIMIZER

#define ON_CPU "run on the CPU: slow, but it shows whether the GPU is the cause"
#define DROP_OVERRIDE "remove {overrides}: code of another chip is the first suspect"
#define NO_EXPANDABLE "disable expandable segments: they are known to hang on ROCm"
#define NO_SDMA "copy without the SDMA engines; it costs bandwidth"
#define FAST_FIND "let MIOpen pick kernels without trying them all, which skips the solver that fails"
#define CACHING_ON \
    "turn PyTorch's caching allocator back on: without it memory fragments, and every allocation waits"
#define NO_AOTRITON "disable experimental attention"
#define OVERRIDE_WORKAROUND                                                                                     \
    "as a workaround, until you install a PyTorch with native code: make the runtime treat {taken_for}, whose " \
    "code it runs[, although {foreign_code} can hang or fault]"
#define OVERRIDE_FITTING                                                                                       \
    "as a workaround: set the override to the value that fits, which makes the runtime treat {taken_for}; it " \
    "must be three numbers with dots, and exported"
#define INSTEAD_OF_OVERRIDE                                                                              \
    "install a PyTorch with native code for {gfx}: the code of another chip, as used now, is the first " \
    "suspect:\n{cmd_torch}"
#define OWN_WHEEL "install a PyTorch with native code for {gfx}, and run without an override:\n{cmd_torch}"
#define NO_WHEEL                                                                                           \
    "no current PyTorch wheel has code for {wheelless}, and no override helps: build PyTorch for it from " \
    "source, or use another GPU (these have wheels):\ncairn gpu --chips"
#define MOVE_CACHES "move the kernel caches of MIOpen and Triton aside:\n{cmd_caches}"
#define NO_DIRECT \
    "disable MIOpen's direct convolutions, which fail at random on Strix Halo; the others are slower"
#define NEW_DRIVER "install the newest AMD Software: Adrenalin Edition"
#define NAME_CHIP \
    "name the GPU (cairn gpu --chips lists the products of each chip):\ncairn diagnose --gfx gfxNNNN LOG"
#define STAGE "CAIRN_PRELOAD={preload_stage}"
#define STAGE_WHY "copy weights through pinned memory, because pinning a mapped file fails or takes forever"
#define STAGE_BY_HAND STAGE_WHY ":\ncairn run --preload=+stage -- COMMAND"
#define OTHER_GPU "use the card with the most memory and hide the integrated GPU"

/* clang-format off */
#define ADVISE(issue, text) { issue, PERSON, FIX_ALWAYS, NULL, NULL, text, FIX_ON_ANY }
#define ADVISE_WHEN(issue, when, text) { issue, PERSON, when, NULL, NULL, text, FIX_ON_ANY }
#define ON_LINUX(issue, text) { issue, PERSON, FIX_ALWAYS, NULL, NULL, text, FIX_ON_LINUX }
#define ON_LINUX_WHEN(issue, when, text) { issue, PERSON, when, NULL, NULL, text, FIX_ON_LINUX }
#define ON_WINDOWS(issue, text) { issue, PERSON, FIX_ALWAYS, NULL, NULL, text, FIX_ON_WINDOWS }
#define ON_WINDOWS_WHEN(issue, when, text) { issue, PERSON, when, NULL, NULL, text, FIX_ON_WINDOWS }
#define DO(issue, action, text) { issue, action, FIX_ALWAYS, NULL, NULL, text, FIX_ON_ANY }
#define SET(issue, when, variable, text) { issue, DIAGNOSE_ACT_ENV, when, variable, NULL, text, FIX_ON_ANY }
#define SET_WINDOWS(issue, variable, text) { issue, DIAGNOSE_ACT_ENV, FIX_ALWAYS, variable, NULL, text, FIX_ON_WINDOWS }
#define HIDE(issue, when) { issue, OTHER, when, "{visible_name}={best_gpu}", "{visible_others}", OTHER_GPU, FIX_ON_ANY }
/* Before the wheel with the chip's own code an override is second best, so that it stands behind it in every
 * ladder. */
#define WHEEL(issue, when, text) { issue, PERSON, when, NULL, NULL, text "[\nunset {overrides}]", FIX_ON_ANY }
#define OVERRIDE(issue, when, text) { issue, DIAGNOSE_ACT_ENV, when, FIX_OVERRIDE, NULL, text, FIX_ON_LINUX }
#define NO_OVERRIDE(issue, when, text) { issue, DIAGNOSE_ACT_ENV, when, NULL, "{overrides}", text, FIX_ON_LINUX }
#define UNSET(issue, when, names, text) { issue, DIAGNOSE_ACT_ENV, when, NULL, names, text, FIX_ON_ANY }
/* clang-format on */

const struct issue_fix issue_fixes[] = {
    HIDE(ISSUE_NO_KERNEL_IMAGE, FIX_HIDE_FIRST),
    WHEEL(ISSUE_NO_KERNEL_IMAGE, FIX_NOT_CARRIED, "install a PyTorch with code for {gfx}:\n{cmd_torch}"),
    NO_OVERRIDE(ISSUE_NO_KERNEL_IMAGE, FIX_OVERRIDE_FLAWED, DROP_OVERRIDE),
    OVERRIDE(ISSUE_NO_KERNEL_IMAGE, FIX_ALWAYS, OVERRIDE_WORKAROUND),
    HIDE(ISSUE_NO_KERNEL_IMAGE, FIX_HIDE_LATER),
    NO_OVERRIDE(ISSUE_NO_KERNEL_IMAGE, FIX_OVERRIDE_SET, DROP_OVERRIDE),
    ON_LINUX_WHEN(ISSUE_NO_KERNEL_IMAGE, FIX_CARRIED_ELSEWHERE,
                  "make sure that HSA_OVERRIDE_GFX_VERSION is not set on that machine: it would hide that "
                  "code:\nenv | grep HSA_OVERRIDE"),
    WHEEL(ISSUE_NO_KERNEL_IMAGE, FIX_NOT_CARRIED, NO_WHEEL),
    ADVISE_WHEN(ISSUE_NO_KERNEL_IMAGE, FIX_NO_CHIP, NAME_CHIP),
    ON_LINUX_WHEN(
        ISSUE_NO_KERNEL_IMAGE, FIX_NO_CHIP,
        "then install a PyTorch with code for it (cairn gpu --chips lists which wheels have which chips); or "
        "set HSA_OVERRIDE_GFX_VERSION to a related chip that PyTorch has code for, such as 10.3.0 for "
        "gfx1031 to gfx1036"),
    ON_WINDOWS_WHEN(
        ISSUE_NO_KERNEL_IMAGE, FIX_NO_CHIP,
        "then install a PyTorch with code for it: AMD's wheels have one package per chip (cairn gpu --chips)"),
    ADVISE(
        ISSUE_NO_KERNEL_IMAGE,
        "if only one operation fails, rebuild that extension (bitsandbytes, flash-attn) for the GPU, or do "
        "not use it"),
    DO(ISSUE_NO_KERNEL_IMAGE, CPU, ON_CPU),

    HIDE(ISSUE_TENSILE_MISSING, FIX_HIDE_FIRST),
    WHEEL(ISSUE_TENSILE_MISSING, FIX_NOT_CARRIED,
          "install a PyTorch whose rocBLAS supports "
          "{gfx}:\n{cmd_torch}"),
    OVERRIDE(ISSUE_TENSILE_MISSING, FIX_ALWAYS, OVERRIDE_WORKAROUND),
    HIDE(ISSUE_TENSILE_MISSING, FIX_HIDE_LATER),
    UNSET(ISSUE_TENSILE_MISSING, FIX_ALWAYS, "ROCBLAS_TENSILE_LIBPATH",
          "remove ROCBLAS_TENSILE_LIBPATH, if it is set: a value from an old guide points rocBLAS to missing "
          "files"),
    UNSET(ISSUE_TENSILE_MISSING, FIX_SECOND_ROCM, "LD_LIBRARY_PATH",
          "remove LD_LIBRARY_PATH: it may put the rocBLAS of another ROCm before PyTorch's own"),
    ADVISE_WHEN(ISSUE_TENSILE_MISSING, FIX_NO_CHIP, NAME_CHIP),
    ADVISE(ISSUE_TENSILE_MISSING, "otherwise, install a newer ROCm, or a rocBLAS built for the GPU"),
    DO(ISSUE_TENSILE_MISSING, CPU, ON_CPU),

    WHEEL(ISSUE_OVERRIDE_BAD, FIX_LACKS_CODE, OWN_WHEEL),
    OVERRIDE(ISSUE_OVERRIDE_BAD, FIX_NEEDS_OVERRIDE, OVERRIDE_FITTING),
    NO_OVERRIDE(ISSUE_OVERRIDE_BAD, FIX_MAY_NEED_NONE, "run without {overrides}"),
    OVERRIDE(ISSUE_OVERRIDE_BAD, FIX_ALWAYS, OVERRIDE_FITTING),
    ON_LINUX(
        ISSUE_OVERRIDE_BAD,
        "look for it in shell profiles, /etc/environment, environment.d, service and compose files; an empty "
        "value counts as set"),
    WHEEL(ISSUE_OVERRIDE_BAD, FIX_NOT_CARRIED, OWN_WHEEL),
    WHEEL(ISSUE_OVERRIDE_BAD, FIX_NOT_CARRIED, NO_WHEEL),

    SET(ISSUE_INVALID_ARGUMENT, FIX_IN_COPY, STAGE, STAGE_WHY),
    SET(ISSUE_INVALID_ARGUMENT, FIX_PRELOAD, STAGE, STAGE_WHY),
    ADVISE_WHEN(ISSUE_INVALID_ARGUMENT, FIX_STAGE, STAGE_BY_HAND),
    UNSET(ISSUE_INVALID_ARGUMENT, FIX_SECOND_ROCM, "LD_LIBRARY_PATH",
          "remove LD_LIBRARY_PATH: it mixes a second ROCm into the process, and the two reject each other's "
          "memory"),
    SET(ISSUE_INVALID_ARGUMENT, FIX_SDMA_ON, "HSA_ENABLE_SDMA=0", NO_SDMA),
    SET_WINDOWS(ISSUE_INVALID_ARGUMENT, "PAL_DISABLE_SDMA=1", NO_SDMA),
    UNSET(ISSUE_INVALID_ARGUMENT, FIX_EXPANDABLE, "{alloc_names}", NO_EXPANDABLE),
    ADVISE(ISSUE_INVALID_ARGUMENT,
           "load weights without mmap, and disable pinned memory and asynchronous offload in the trainer's "
           "options"),
    ADVISE_WHEN(ISSUE_INVALID_ARGUMENT, FIX_ACCELERATE,
                "do not change Accelerate's settings: prepare() only makes the copy that fails, and "
                "device_placement=False moves the failure to the next one"),
    ADVISE(ISSUE_INVALID_ARGUMENT, "set HIP_LAUNCH_BLOCKING=1 for one run, to find the failing call"),
    ADVISE(ISSUE_INVALID_ARGUMENT, "install a newer PyTorch and driver"),
    DO(ISSUE_INVALID_ARGUMENT, CPU, ON_CPU),

    NO_OVERRIDE(ISSUE_NO_DEVICE, FIX_OVERRIDE_SET, "remove {overrides}: a bad value hides every GPU"),
    ON_LINUX(ISSUE_NO_DEVICE,
             "check driver, device nodes, groups, and whether PyTorch is a ROCm build:\ncairn doctor"),
    ADVISE_WHEN(ISSUE_NO_DEVICE, FIX_CPU_BUILD, "install the ROCm build of PyTorch:\n{cmd_torch}"),
    ON_LINUX_WHEN(ISSUE_NO_DEVICE, FIX_NOT_IN_CONTAINER,
                  "usually the user is not in the group that owns /dev/kfd: join it, and log in again:\nsudo "
                  "usermod -aG render,video $USER"),
    ON_LINUX_WHEN(ISSUE_NO_DEVICE, FIX_MAYBE_CONTAINER,
                  "in a container, start it with the GPU:\n{cmd_container}"),
    ON_LINUX(ISSUE_NO_DEVICE,
             "check the device nodes, rocminfo and the kernel log:\nls -l /dev/kfd /dev/dri; rocminfo; sudo "
             "dmesg | grep -e kfd -e amdgpu"),
    ON_LINUX(ISSUE_NO_DEVICE, "if dmesg says that PCI rejects atomics, move the card to a slot that is wired "
                              "to the CPU"),
    ON_WINDOWS(ISSUE_NO_DEVICE, NEW_DRIVER ", and restart"),
    ON_WINDOWS(ISSUE_NO_DEVICE,
               "use AMD's build of PyTorch for this chip (torch.version.hip is not None)[:\n{cmd_torch}]"),
    DO(ISSUE_NO_DEVICE, CPU, ON_CPU),

    ON_LINUX(ISSUE_PERMISSION, "get access to the device nodes:\n{cmd_node}"),
    ON_LINUX(ISSUE_PERMISSION,
             "find the group that owns the nodes, join it (usually with the second line), and log in "
             "again:\nstat -c '%G %g' /dev/kfd /dev/dri/renderD*\nsudo usermod -aG render,video $USER"),
    ON_LINUX(ISSUE_PERMISSION, "in a container:\n{cmd_container}"),
    DO(ISSUE_PERMISSION, CPU, ON_CPU),

    ADVISE(ISSUE_TORCH_NOT_ROCM, "install the ROCm build:\n{cmd_torch}"),
    ON_LINUX(ISSUE_TORCH_NOT_ROCM,
             "uninstall torch, torchvision and torchaudio, install all three from one ROCm index "
             "(https://pytorch.org/get-started/locally/), and pin them with a constraints file"),
    ON_WINDOWS(
        ISSUE_TORCH_NOT_ROCM,
        "uninstall torch, torchvision and torchaudio first; on Windows, AMD's index has ROCm builds and "
        "pytorch.org has none"),

    UNSET(ISSUE_OOM_VRAM, FIX_NO_CACHING, "PYTORCH_NO_HIP_MEMORY_CACHING PYTORCH_NO_CUDA_MEMORY_CACHING",
          CACHING_ON),
    SET(ISSUE_OOM_VRAM, FIX_AOTRITON_OFF, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
        "enable fused attention: math attention needs memory that grows with the square of the sequence "
        "length"),
    SET(ISSUE_OOM_VRAM, FIX_ALWAYS, "{alloc}=garbage_collection_threshold:0.8,max_split_size_mb:512",
        "let the allocator release what it does not use, and split no block above 512 MB"),
    ADVISE(ISSUE_OOM_VRAM,
           "end other processes on the card ({gpu_lister} lists them), or move the desktop to another GPU"),
    ADVISE(
        ISSUE_OOM_VRAM,
        "use a smaller batch with more gradient accumulation, gradient checkpointing, a smaller resolution "
        "or sequence length, or offload"),
    DO(ISSUE_OOM_VRAM, CPU, ON_CPU),

    UNSET(ISSUE_OOM_FRAGMENTATION, FIX_NO_CACHING,
          "PYTORCH_NO_HIP_MEMORY_CACHING PYTORCH_NO_CUDA_MEMORY_CACHING", CACHING_ON),
    UNSET(ISSUE_OOM_FRAGMENTATION, FIX_EXPANDABLE, "{alloc_names}",
          "disable expandable segments: this platform does not support them, or they fail"),
    SET(ISSUE_OOM_FRAGMENTATION, FIX_ALWAYS, "{alloc}=garbage_collection_threshold:0.8,max_split_size_mb:512",
        "split no block above 512 MB"),
    SET(ISSUE_OOM_FRAGMENTATION, FIX_ALWAYS, "{alloc}=garbage_collection_threshold:0.8,max_split_size_mb:256",
        "split no block above 256 MB"),
    SET(ISSUE_OOM_FRAGMENTATION, FIX_ALWAYS, "{alloc}=garbage_collection_threshold:0.8,max_split_size_mb:128",
        "split no block above 128 MB"),
    ADVISE(ISSUE_OOM_FRAGMENTATION,
           "empty the cache between phases (torch.cuda.empty_cache), and tile the VAE"),
    DO(ISSUE_OOM_FRAGMENTATION, CPU, ON_CPU),

    UNSET(ISSUE_OOM_UNIFIED, FIX_NO_CACHING, "PYTORCH_NO_HIP_MEMORY_CACHING PYTORCH_NO_CUDA_MEMORY_CACHING",
          CACHING_ON),
    ADVISE_WHEN(ISSUE_OOM_UNIFIED, FIX_LIMIT_LOW,
                "let the GPU map {limit} of the {ram} (ttm.pages_limit={pages}):\n{cmd_pages}"),
    ADVISE_WHEN(
        ISSUE_OOM_UNIFIED, FIX_LIMIT_UNKNOWN,
        "let the GPU map more than half of RAM with the kernel parameter ttm.pages_limit (in pages: 29360128 "
        "pages are 112 GiB of 128); on that machine, this prints the command for its boot loader:\ncairn "
        "doctor"),
    ON_WINDOWS(
        ISSUE_OOM_UNIFIED,
        "assign more memory to the GPU (AMD Software: Adrenalin Edition, Performance, Tuning, Variable "
        "Graphics Memory), and let Windows manage the size of the paging file"),
    SET(ISSUE_OOM_UNIFIED, FIX_ALWAYS, "{alloc}=garbage_collection_threshold:0.8,max_split_size_mb:512",
        "let the allocator release what it does not use: it is the system's memory"),
    SET(ISSUE_OOM_UNIFIED, FIX_PRELOAD_SHARED, "CAIRN_PRELOAD={preload_memory}",
        "report the memory that the GPU can really use to the trainer, which plans by it"),
    ADVISE_WHEN(ISSUE_OOM_UNIFIED, FIX_BY_GUARD,
                "end other programs that use memory on this machine: the guard watches what all programs "
                "leave"),
    ADVISE_WHEN(
        ISSUE_OOM_UNIFIED, FIX_LIMIT_LOW,
        "keep the BIOS carve-out small (512 MB): it does not add to the GTT limit; and amdgpu.gttsize is not "
        "needed"),
    ADVISE(ISSUE_OOM_UNIFIED,
           "load weights without mmap, shard by shard: a mapped file counts in addition to its copy"),
    ADVISE(ISSUE_OOM_UNIFIED,
           "run a smaller job: batch, sequence length, resolution, gradient checkpointing"),
    ADVISE_WHEN(ISSUE_OOM_UNIFIED, FIX_BY_GUARD,
                "run without the guard (cairn run --preload=record), at the risk that the machine freezes"),
    DO(ISSUE_OOM_UNIFIED, CPU, ON_CPU),

    ON_WINDOWS(
        ISSUE_HOST_OOM,
        "let Windows manage the size of the paging file, or give it 32 GB or more (Advanced, Virtual memory), and "
        "restart:\nSystemPropertiesPerformance.exe"),
    DO(ISSUE_HOST_OOM, RESUME, "resume from the last checkpoint: what used the memory may be gone"),
    ADVISE(ISSUE_HOST_OOM,
           "use fewer data loader workers and low_cpu_mem_usage, and keep no second copy of the model in "
           "host RAM"),
    ADVISE_WHEN(ISSUE_HOST_OOM, FIX_BY_GUARD,
                "run a smaller job (batch, sequence length, resolution, gradient checkpointing), or fewer "
                "other programs"),
    ADVISE_WHEN(ISSUE_HOST_OOM, FIX_BY_GUARD,
                "read memory-guard.txt in the journal: it lists the memory of each process of the run"),
    ON_WINDOWS(ISSUE_HOST_OOM,
               "close other programs, and leave some of the GPU's shared memory free: it counts too"),
    ON_LINUX_WHEN(ISSUE_HOST_OOM, FIX_NOT_BY_GUARD,
                  "add swap, or raise the container's memory limit (and /dev/shm)"),
    ON_LINUX_WHEN(
        ISSUE_HOST_OOM, FIX_NOT_BY_GUARD,
        "find the process that the kernel killed:\nsudo dmesg | grep -i -e 'killed process' -e oom"),

    ADVISE_WHEN(ISSUE_HANG, FIX_MAY_HANG,
                "tell cairn how the run ended:\ncairn diagnose --hung LOG\ncairn diagnose --exit CODE LOG"),
    SET(ISSUE_HANG, FIX_IN_COPY, STAGE, STAGE_WHY),
    SET(ISSUE_HANG, FIX_LOADING, STAGE, STAGE_WHY),
    ADVISE_WHEN(ISSUE_HANG, FIX_LOADING_STAGE, STAGE_BY_HAND),
    ADVISE_WHEN(
        ISSUE_HANG, FIX_LOADING_STAGE,
        "load weights without mmap, with the trainer's own option (ComfyUI: --disable-mmap, musubi-tuner: "
        "--disable_numpy_memmap)"),
    UNSET(ISSUE_HANG, FIX_NO_CACHING, "PYTORCH_NO_HIP_MEMORY_CACHING PYTORCH_NO_CUDA_MEMORY_CACHING",
          CACHING_ON),
    UNSET(ISSUE_HANG, FIX_EXPANDABLE, "{alloc_names}", NO_EXPANDABLE),
    SET(ISSUE_HANG, FIX_INTERRUPT_ON, "HSA_ENABLE_INTERRUPT=0",
        "wait for the GPU by polling: a lost interrupt then does no harm; polling keeps a core busy"),
    SET(ISSUE_HANG, FIX_SDMA_ON, "HSA_ENABLE_SDMA=0", NO_SDMA),
    SET_WINDOWS(ISSUE_HANG, "PAL_DISABLE_SDMA=1", NO_SDMA),
    NO_OVERRIDE(ISSUE_HANG, FIX_OVERRIDE_SET, DROP_OVERRIDE),
    WHEEL(ISSUE_HANG, FIX_OVERRIDDEN, INSTEAD_OF_OVERRIDE),
    SET(ISSUE_HANG, FIX_ALWAYS, "MIOPEN_FIND_MODE=FAST",
        "let MIOpen search less: a long search on the first step looks like a hang"),
    DO(ISSUE_HANG, CACHES, MOVE_CACHES),
    ADVISE(ISSUE_HANG, "read where each process was waiting:\nless {hang_file}"),
    ADVISE_WHEN(ISSUE_HANG, FIX_NO_DUMP, "find where it waits:\npy-spy dump --native --pid PID"),
    ADVISE(ISSUE_HANG, "install newer firmware:\n{cmd_firmware}"),
    ADVISE(ISSUE_HANG, "install a newer kernel:\n{cmd_kernel}"),
    DO(ISSUE_HANG, CPU, ON_CPU),
    ADVISE_WHEN(ISSUE_HANG, FIX_BY_WATCH, "read where each process was waiting:\nless {hang_file}"),
    ADVISE_WHEN(ISSUE_HANG, FIX_BY_WATCH,
                "raise the time limit if the process was only slow: cairn run --hang-after SECONDS"),

    DO(ISSUE_GPU_RESET, RESTART, "wait until the GPU responds again, and resume from the last checkpoint"),
    NO_OVERRIDE(ISSUE_GPU_RESET, FIX_OVERRIDE_SET, DROP_OVERRIDE),
    WHEEL(ISSUE_GPU_RESET, FIX_OVERRIDDEN, INSTEAD_OF_OVERRIDE),
    SET(ISSUE_GPU_RESET, FIX_STRIX_HALO, "MIOPEN_DEBUG_CONV_DIRECT=0", NO_DIRECT),
    SET(ISSUE_GPU_RESET, FIX_SDMA_ON, "HSA_ENABLE_SDMA=0", NO_SDMA),
    ADVISE(ISSUE_GPU_RESET, "leave VRAM free on the card, and let another GPU drive the desktop"),
    ADVISE(ISSUE_GPU_RESET, "install the newest firmware:\n{cmd_firmware}"),
    ADVISE(ISSUE_GPU_RESET, "install the newest kernel:\n{cmd_kernel}"),
    ON_LINUX(ISSUE_GPU_RESET,
             "install the newest linux-firmware and kernel; if the reset recurs, set the kernel parameter "
             "amdgpu.cwsr_enable=0"),
    ON_WINDOWS(ISSUE_GPU_RESET, NEW_DRIVER),
    ON_WINDOWS(
        ISSUE_GPU_RESET,
        "raise the driver's timeout before it resets the GPU (TDR), as administrator, and restart; close "
        "games and browsers:\nreg add HKLM\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers /v TdrDelay "
        "/t REG_DWORD /d 60 /f"),
    DO(ISSUE_GPU_RESET, CPU, ON_CPU),

    NO_OVERRIDE(ISSUE_MEMORY_FAULT, FIX_OVERRIDE_SET, DROP_OVERRIDE),
    WHEEL(ISSUE_MEMORY_FAULT, FIX_OVERRIDDEN, INSTEAD_OF_OVERRIDE),
    UNSET(ISSUE_MEMORY_FAULT, FIX_AOTRITON_ON, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", NO_AOTRITON),
    SET(ISSUE_MEMORY_FAULT, FIX_ALWAYS, "MIOPEN_FIND_MODE=FAST", FAST_FIND),
    DO(ISSUE_MEMORY_FAULT, CACHES,
       "move the kernel caches of MIOpen and Triton aside: they may contain code of another "
       "version:\n{cmd_caches}"),
    SET(ISSUE_MEMORY_FAULT, FIX_HIPBLASLT_ON, "TORCH_BLAS_PREFER_HIPBLASLT=0",
        "run matmuls without hipBLASLt"),
    SET(ISSUE_MEMORY_FAULT, FIX_SDMA_ON, "HSA_ENABLE_SDMA=0", NO_SDMA),
    SET(ISSUE_MEMORY_FAULT, FIX_STRIX_HALO, "MIOPEN_DEBUG_CONV_DIRECT=0", NO_DIRECT),
    DO(ISSUE_MEMORY_FAULT, RESTART, "resume from the last checkpoint"),
    ADVISE(ISSUE_MEMORY_FAULT,
           "if it recurs at the same step, set AMD_SERIALIZE_KERNEL=3 to find the kernel"),
    ON_LINUX(ISSUE_MEMORY_FAULT, "try another ROCm version of PyTorch, or another kernel"),
    ON_WINDOWS(ISSUE_MEMORY_FAULT, "try another ROCm version of PyTorch, or another driver"),
    DO(ISSUE_MEMORY_FAULT, CPU, ON_CPU),

    UNSET(ISSUE_NATIVE_CRASH, FIX_NO_CACHING, "PYTORCH_NO_HIP_MEMORY_CACHING PYTORCH_NO_CUDA_MEMORY_CACHING",
          "keep PyTorch's caching allocator on: without it, rocBLAS and MIOpen have crashed at startup"),
    NO_OVERRIDE(ISSUE_NATIVE_CRASH, FIX_OVERRIDE_SET, DROP_OVERRIDE),
    WHEEL(ISSUE_NATIVE_CRASH, FIX_OVERRIDDEN, INSTEAD_OF_OVERRIDE),
    SET(ISSUE_NATIVE_CRASH, FIX_NO_STACK, "PYTHONFAULTHANDLER=1",
        "run again and let Python print the line that crashes"),
    OVERRIDE(ISSUE_NATIVE_CRASH, FIX_NEEDS_OVERRIDE, OVERRIDE_WORKAROUND),
    UNSET(ISSUE_NATIVE_CRASH, FIX_SECOND_ROCM, "LD_LIBRARY_PATH",
          "remove LD_LIBRARY_PATH: it mixes a second ROCm into the process"),
    SET(ISSUE_NATIVE_CRASH, FIX_NOT_STARTING, "TORCHDYNAMO_DISABLE=1",
        "run without torch.compile and graphs"),
    DO(ISSUE_NATIVE_CRASH, CACHES, MOVE_CACHES),
    ADVISE(
        ISSUE_NATIVE_CRASH,
        "use the unquantised model: bf16 or fp16 weights instead of fp8, 8 bit, 4 bit or GGUF; and no graph "
        "capture"),
    ADVISE(ISSUE_NATIVE_CRASH,
           "install a PyTorch built with ROCm {rocm_floor} or newer, the first that supports {gfx} (this one "
           "has {rocm}):\n{cmd_torch}"),
    ON_WINDOWS(ISSUE_NATIVE_CRASH, NEW_DRIVER ": its runtime must match PyTorch's"),
    ADVISE(ISSUE_NATIVE_CRASH,
           "install matching versions of driver, firmware and PyTorch[ (here: {versions})][:\n{cmd_doctor}]"),
    DO(ISSUE_NATIVE_CRASH, CPU, ON_CPU),

    ADVISE(ISSUE_MIOPEN,
           "install the headers of the C++ library, which MIOpen needs to compile:\n{cmd_cxx_headers}"),
    DO(ISSUE_MIOPEN, CACHES,
       "move MIOpen's caches aside, so that it starts with empty ones:\n{cmd_miopen_caches}"),
    SET(ISSUE_MIOPEN, FIX_ALWAYS, "MIOPEN_FIND_MODE=FAST", FAST_FIND),
    SET(ISSUE_MIOPEN, FIX_STRIX_HALO, "MIOPEN_DEBUG_CONV_DIRECT=0", NO_DIRECT),
    SET(ISSUE_MIOPEN, FIX_ALWAYS, "MIOPEN_DEBUG_CONV_IMPLICIT_GEMM=0",
        "disable the family of solvers that fails most often"),
    ADVISE(ISSUE_MIOPEN, "set torch.backends.cudnn.enabled = False in the script: convolutions then run "
                         "without MIOpen"),
    ADVISE(ISSUE_MIOPEN, "set MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR to a writable folder"),
    ADVISE(ISSUE_MIOPEN, "install a newer PyTorch:\n{cmd_torch}"),
    DO(ISSUE_MIOPEN, CPU, ON_CPU),

    SET(ISSUE_HIPBLASLT, FIX_ALWAYS, "TORCH_BLAS_PREFER_HIPBLASLT=0", "run matmuls without hipBLASLt"),
    SET(ISSUE_HIPBLASLT, FIX_ALWAYS, "ROCBLAS_USE_HIPBLASLT=0", "also keep rocBLAS from calling hipBLASLt"),
    HIDE(ISSUE_HIPBLASLT, FIX_SEVERAL_GPUS),
    ADVISE(ISSUE_HIPBLASLT, "install a newer PyTorch"),
    DO(ISSUE_HIPBLASLT, CPU, ON_CPU),

    ADVISE_WHEN(
        ISSUE_ATTENTION, FIX_ATTENTION_PACKAGE,
        "use PyTorch's own attention: attn_implementation=\"sdpa\" in from_pretrained, or the trainer's "
        "option for it (sdpa, pytorch; kohya's scripts: --sdpa instead of --xformers)"),
    ON_LINUX_WHEN(
        ISSUE_ATTENTION, FIX_FLASH,
        "or build flash-attn with its Triton kernels for AMD; the variable must be set for the build and for "
        "every run:\nFLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE {python} -m pip install --no-build-isolation "
        "flash-attn"),
    SET(ISSUE_ATTENTION, FIX_AOTRITON_OFF, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
        "enable the fused kernels of this chip"),
    ADVISE_WHEN(
        ISSUE_ATTENTION, FIX_ATTENTION_OWN,
        "do not force a single attention backend; or choose eager or xformers attention in the trainer's "
        "options"),
    ADVISE_WHEN(ISSUE_ATTENTION, FIX_ATTENTION_OWN,
                "install a newer PyTorch: its AOTriton supports more "
                "chips"),

    SET(ISSUE_BITSANDBYTES, FIX_ALWAYS, "BNB_ROCM_VERSION={bnb}",
        "let bitsandbytes load the library that it has"),
    DO(ISSUE_BITSANDBYTES, OPTIMIZER,
       "use an optimizer without bitsandbytes, such as AdamW or Adafactor instead of AdamW8bit; its state "
       "takes more memory"),
    ADVISE(ISSUE_BITSANDBYTES, "install a bitsandbytes with ROCm libraries (0.50 or newer):\n{cmd_bnb}"),

    UNSET(ISSUE_NAN, FIX_AOTRITON_ON, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL",
          NO_AOTRITON ": it is known to produce NaN on some chips"),
    SET(ISSUE_NAN, FIX_SDMA_ON, "HSA_ENABLE_SDMA=0",
        "copy without the SDMA engines, as a test: if the results are then right, copies are corrupted"),
    SET(ISSUE_NAN, FIX_HIPBLASLT_ON, "TORCH_BLAS_PREFER_HIPBLASLT=0", "run matmuls without hipBLASLt"),
    ADVISE(ISSUE_NAN,
           "stop, and go back to the last checkpoint with finite values (cairn tensor check FILE)"),
    ADVISE(
        ISSUE_NAN,
        "use eager or math attention; fp32 for the VAE and the norms; bf16 instead of fp16, or the reverse"),
    ADVISE(
        ISSUE_NAN,
        "run the same first step on the CPU in fp32: if it is NaN there too, check the learning rate and the "
        "data"),

    ADVISE(ISSUE_TRITON, "install Python's headers, which Triton needs to compile:\n{cmd_python_headers}"),
    ADVISE_WHEN(ISSUE_TRITON, FIX_NO_TRITON,
                "install Triton, which is part of PyTorch's ROCm wheel[:\n{cmd_torch}]"),
    SET(ISSUE_TRITON, FIX_ALWAYS, "TORCHDYNAMO_DISABLE=1", "run without torch.compile"),
    DO(ISSUE_TRITON, CACHES, "move Triton's cache aside:\n{cmd_triton_cache}"),
    ON_LINUX_WHEN(
        ISSUE_TRITON, FIX_TRITON_THERE,
        "if a linker is missing, set TRITON_HIP_LLD_PATH=/path/to/ld.lld; if a C compiler is missing, "
        "install gcc"),
    ADVISE_WHEN(
        ISSUE_TRITON, FIX_TRITON_THERE,
        "use smaller blocks or fewer num_stages in the kernel that the log names; install the Triton that "
        "belongs to this PyTorch"),

    UNSET(ISSUE_LIB_LOAD, FIX_LIBRARY_PATH, "LD_LIBRARY_PATH",
          "remove LD_LIBRARY_PATH: the wheel bundles its own ROCm"),
    UNSET(ISSUE_LIB_LOAD, FIX_ALWAYS, "ROCBLAS_TENSILE_LIBPATH",
          "remove ROCBLAS_TENSILE_LIBPATH, if it is set"),
    ON_WINDOWS(ISSUE_LIB_LOAD, "install the newest Microsoft Visual C++ runtime, which PyTorch's DLLs need:\n"
                               "winget install Microsoft.VCRedist.2015+.x64"),
    ON_WINDOWS(ISSUE_LIB_LOAD, NEW_DRIVER ": it installs the HIP runtime"),
    ADVISE(ISSUE_LIB_LOAD,
           "install the runtime that the message names, in the version given by its file name"),
    ADVISE(
        ISSUE_LIB_LOAD,
        "use one version of ROCm everywhere: torch, its companions and compiled extensions from one index"),

    SET(ISSUE_RCCL, FIX_P2P_ON, "NCCL_P2P_DISABLE=1",
        "let the GPUs communicate through host memory; it costs bandwidth"),
    SET(ISSUE_RCCL, FIX_ALWAYS, "NCCL_DEBUG=INFO", "run again with RCCL's log: the first WARN is the cause"),
    ON_LINUX(ISSUE_RCCL, "in a container, use --ipc=host or a larger --shm-size"),
    ON_LINUX(ISSUE_RCCL, "set the kernel parameter iommu=pt, and enable resizable BAR in the BIOS"),
    ON_WINDOWS(ISSUE_RCCL, "there is no RCCL for Windows: train on one GPU, or with the gloo backend"),

    HIDE(ISSUE_WRONG_GPU, FIX_ALWAYS),
    OVERRIDE(ISSUE_WRONG_GPU, FIX_NEEDS_OVERRIDE, OVERRIDE_WORKAROUND),
    ON_LINUX(
        ISSUE_WRONG_GPU,
        "set HIP_VISIBLE_DEVICES to the index of the card (cairn gpu), or ROCR_VISIBLE_DEVICES to its UUID"),
    ON_WINDOWS(
        ISSUE_WRONG_GPU,
        "set HIP_VISIBLE_DEVICES to the index of the card, which can differ from the Task Manager's: try 0 "
        "and 1"),
    ADVISE(ISSUE_WRONG_GPU, "disable the integrated GPU in the BIOS"),

    UNSET(ISSUE_VISIBLE_DEVICES, FIX_ALWAYS, "ROCR_VISIBLE_DEVICES",
          "unset ROCR_VISIBLE_DEVICES, and let HIP_VISIBLE_DEVICES alone select"),
    UNSET(ISSUE_VISIBLE_DEVICES, FIX_ALWAYS, "HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES",
          "unset the HIP and CUDA variables, so that every GPU is visible"),
    ON_LINUX(
        ISSUE_VISIBLE_DEVICES,
        "keep exactly one of these variables; after ROCR_VISIBLE_DEVICES, indices start at 0 again. Ray: "
        "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES=1"),

    ON_LINUX(ISSUE_DRIVER_OLD,
             "rule out permissions and an empty HSA_OVERRIDE_GFX_VERSION first: cairn doctor"),
    ON_LINUX(ISSUE_DRIVER_OLD, "install a newer kernel:\n{cmd_kernel}"),
    ON_LINUX(ISSUE_DRIVER_OLD, "install newer firmware:\n{cmd_firmware}"),
    ON_LINUX(
        ISSUE_DRIVER_OLD,
        "install a kernel or amdgpu-dkms (state \"installed\", not \"added\") that matches this ROCm; or an "
        "older ROCm"),
    ON_WINDOWS(ISSUE_DRIVER_OLD, NEW_DRIVER),
    ON_WINDOWS(ISSUE_DRIVER_OLD, "install a PyTorch that matches the driver[:\n{cmd_torch}]"),
    DO(ISSUE_DRIVER_OLD, CPU, ON_CPU),

    SET(ISSUE_SDMA, FIX_SDMA_ON, "HSA_ENABLE_SDMA=0", NO_SDMA),
    SET_WINDOWS(ISSUE_SDMA, "PAL_DISABLE_SDMA=1", NO_SDMA),
    DO(ISSUE_SDMA, RESTART, "resume from the last checkpoint"),
    ADVISE(ISSUE_SDMA, "install newer firmware:\n{cmd_firmware}"),
    ON_WINDOWS(ISSUE_SDMA, NEW_DRIVER "; use a slot that is wired to the CPU"),
    ON_LINUX(ISSUE_SDMA, "install a newer kernel and firmware; use a slot that is wired to the CPU"),
    DO(ISSUE_SDMA, CPU, ON_CPU),

    DO(ISSUE_SAFETENSORS, RESTART, "resume from the checkpoint before it, the newest one that is complete"),
    ADVISE(ISSUE_SAFETENSORS,
           "check the file (cairn tensor check FILE; a file of a few hundred bytes is an LFS pointer), and "
           "download it again"),

    ON_LINUX(ISSUE_DISK_FULL, "free disk space: df -h, quota; keep fewer checkpoints"),
    ON_WINDOWS(ISSUE_DISK_FULL, "free space on the drive, or keep fewer checkpoints"),
    ADVISE(ISSUE_DISK_FULL, "resume from the last complete checkpoint (cairn tensor check FILE)"),

    ADVISE_WHEN(ISSUE_NOT_ROCM, FIX_VENDOR_UNSURE,
                "if it is an AMD GPU, name the chip (cairn gpu --chips lists the products of each):\ncairn "
                "diagnose --gfx gfxNNNN LOG"),
    ON_LINUX_WHEN(
        ISSUE_NOT_ROCM, FIX_GLOO,
        "set the network interface that gloo uses to reach the other ranks (lo on one machine; the first "
        "command lists them):\nip -br address\nexport GLOO_SOCKET_IFNAME=eth0"),
    ADVISE_WHEN(
        ISSUE_NOT_ROCM, FIX_GLOO,
        "make sure that this host's name and MASTER_ADDR resolve to an address that the other ranks can reach"),
    ADVISE_WHEN(ISSUE_UNKNOWN, FIX_END_UNKNOWN,
                "tell cairn how the run ended, by its exit status or as a hang:\ncairn diagnose --exit CODE "
                "LOG\ncairn diagnose --hung LOG"),
    ON_LINUX_WHEN(ISSUE_UNKNOWN, FIX_END_UNKNOWN,
                  "add the kernel log, which records kills, resets and faults:\nsudo dmesg | cairn diagnose "
                  "LOG -"),
    ON_WINDOWS(
        ISSUE_UNKNOWN,
        "run again with AMD_LOG_LEVEL=1 and PYTHONFAULTHANDLER=1, and give cairn diagnose the whole log"),
    ON_LINUX(
        ISSUE_UNKNOWN,
        "run again with AMD_LOG_LEVEL=1 HSAKMT_DEBUG_LEVEL=3 PYTHONFAULTHANDLER=1, and give cairn diagnose "
        "the whole log and the output of dmesg"),
    ADVISE_WHEN(
        ISSUE_UNKNOWN, FIX_BY_WATCH,
        "check who can kill processes here: other users, the batch system (its time limit), the container"),
    ADVISE_WHEN(ISSUE_UNKNOWN, FIX_BY_WATCH,
                "search the journal of kernel and systemd:\nsudo journalctl --since -1h | grep -i kill"),
    ON_LINUX(ISSUE_UNKNOWN, "run cairn doctor to check the machine itself"),
    ON_WINDOWS_WHEN(
        ISSUE_NO_FAILURE, FIX_END_UNKNOWN,
        "if it died or hung after this, say so:\ncairn diagnose --exit CODE LOG\ncairn diagnose --hung LOG"),
    ON_LINUX_WHEN(
        ISSUE_NO_FAILURE, FIX_END_UNKNOWN,
        "if it died or hung after this, say so:\ncairn diagnose --exit CODE LOG\ncairn diagnose --hung "
        "LOG\nsudo dmesg | cairn diagnose LOG -"),
    { ISSUE_UNKNOWN, PERSON, FIX_ALWAYS, NULL, NULL, NULL, FIX_ON_ANY },
};
