/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_guess.h"

#include "base/cleanup.h"
#include "base/match.h"
#include "rules/log_trace.h"

/* The program helps itself, or its parent only tells that it ended, or the kernel tells of it. */
#define NO_CAUSE                                                                                               \
    "falling back|fallback|fall back|instead|skipping|skipped|ignor|optional|disabl|warning|deprecat|proceed|" \
    "retry|will use|CalledProcessError|ChildFailedError|non-zero exit|exit status|exited with|root cause|"     \
    "segfault at|Killed process|Fatal Python"
#define LACKS                                                                                                      \
    "not found|no such|not available|not detected|could not|couldn't|cannot|can't|unable|not initialized|not set|" \
    "does not exist|not loaded|none found|missing|not installed|not present|unavailable"
#define REFUSES                                                                                                   \
    "not supported|unsupported|does not support|doesn't support|not compatible|incompatible|only support|at most" \
    "|invalid|not compiled|not built|not valid|no kernel|unknown|unrecognized|not implemented"
#define FAILS "fail|error|abort|exception|fatal|crash|assert|wrong|mismatch|corrupt"
#define ANY FAILS "|" LACKS "|" REFUSES

/* The first row that fits counts, so what is special stands before what is general. */
static const struct {
    const char *of, *says;
    enum issue issue;
    uint8_t score;
    uint16_t flags;
} rows[] = {
    { "bitsandbytes|8bit|8-bit", ANY, ISSUE_BITSANDBYTES, 62, RULE_CUDA },
    { "flash attention|flash_attn|flash-attn|flashattention|xformers|scaled_dot_product|head dim|head_dim|"
      "head size|aotriton|aot_triton|memory efficient|sageattention|attention backend|AttentionBackend|AttentionForward",
      ANY, ISSUE_ATTENTION, 62, RULE_CUDA },
    { "triton|inductor|torch.compile|dynamo|ptxas|fp8 conversion", ANY, ISSUE_TRITON, 62, RULE_CUDA },
    { "miopen|rocmlir|hiprtc|find-db|convolution algorithm", ANY, ISSUE_MIOPEN, 62, 0 },
    { "hipblaslt|rocblaslt", ANY, ISSUE_HIPBLASLT, 62, 0 },
    { "rocblas|tensile|hipblas", ANY, ISSUE_TENSILE_MISSING, 58, 0 },
    { "rccl|nccl|allreduce|all_reduce|peer access|ipc_memory|collective", ANY "|timed out|timeout",
      ISSUE_RCCL, 58, RULE_CUDA },
    { "sdma|copy engine", ANY "|timeout|timed out", ISSUE_SDMA, 58, 0 },
    { "/dev/kfd|/dev/dri|renderd|render group|video group", "permission|denied|not permitted|access",
      ISSUE_PERMISSION, 66, 0 },
    { "firmware|dkms|ucode|drm version|kfd version|kfd ioctl|/usr/src/amdgpu|amdkfdamdgpu",
      ANY "|not match|too old|outdated|exceeds", ISSUE_DRIVER_OLD, 58, 0 },
    { "driver|kernel version|adrenalin",
      "too old|outdated|mismatch|not compatible|incompatible|only compatible|update|upgrade|newer|insufficient",
      ISSUE_DRIVER_OLD, 56, RULE_CUDA },
    { "gfx", REFUSES "|" LACKS, ISSUE_NO_KERNEL_IMAGE, 58, 0 },
    { "radeon|amd gpu|this gpu|your gpu|gpu architecture",
      "not supported|unsupported|not compatible|incompatible|does not support|not compiled",
      ISSUE_NO_KERNEL_IMAGE, 56, RULE_CUDA },
    { "rocm_path|rocm_home|hip_path|/opt/rocm|rocm_sdk|rocm-sdk|hipcc|hipconfig|find rocm", LACKS,
      ISSUE_LIB_LOAD, 58, 0 },
    { "vram|gpu memory|device memory|kv cache|gpu ram",
      "fail|out of|exceed|insufficient|not enough|unable|too large|cannot", ISSUE_OOM_VRAM, 54, RULE_CUDA },
    { "system memory|host memory|cpu memory|physical memory|paging file|virtual memory|system ram|committed mem",
      "fail|out of|exceed|insufficient|not enough|unable|too small|low|cannot", ISSUE_HOST_OOM, 54, 0 },
    { "disk|storage|quota", "full|space|exceed|not enough|insufficient", ISSUE_DISK_FULL, 56, 0 },
    { "safetensors|checkpoint|gguf|weights|model file|.ckpt|.pth|archive|tokenizer.model",
      "corrupt|truncated|unexpected eof|incomplete|malformed|read error|failed to read|damaged|bad magic",
      ISSUE_SAFETENSORS, 54, 0 },
    { "memory|buffer",
      "out of memory|failed to allocate|allocation failed|unable to allocate|cannot allocate", ISSUE_OOM_VRAM,
      46, RULE_CUDA },
    { "buffer allocation|allocation of", FAILS, ISSUE_OOM_VRAM, 46, RULE_CUDA },
    { "shared object|shared library|dynamic library|.dll|.so:|.so.|symbol", ANY "|undefined", ISSUE_LIB_LOAD,
      54, 0 },
    { "gpu|amdgpu|driver", "reset|lost|hung|fallen off|wedged|driver crash|gpu crash", ISSUE_GPU_RESET, 52,
      RULE_CUDA },
    { "amdgpu", "panic|null pointer|oops|BUG:|killed entity|pcie error", ISSUE_GPU_RESET, 56, 0 },
    { "page fault|protection fault|access fault|illegal address", ANY, ISSUE_MEMORY_FAULT, 52, 0 },
    { "rocm|hip device|hip runtime|hip platform|amdgpu|kfd", LACKS, ISSUE_NO_DEVICE, 50, 0 },
    { "no gpu|gpu devices|gpu device|any gpu|accelerator", LACKS "|no ", ISSUE_NO_DEVICE, 48, RULE_CUDA },
    { "timed out|timeout|not responding|no response|no output| stall|lockup|deadlock",
      "gpu|kernel|queue|engine|worker|process|watchdog|rank|recv|send|wait", ISSUE_HANG, 50, 0 },
    { "segfault|segmentation|access violation|core dump|stack overflow", ANY, ISSUE_NATIVE_CRASH, 48, 0 },
    { "http|url|download|connection|network|proxy|certificate|socket|address|repository|package|argument|option|"
      "config|json|yaml|tokenizer|prompt|dataset|template|syntax|script|index out of range|linker|"
      "collect2|cmake|target '|recipe",
      ANY, ISSUE_NOT_ROCM, 46, RULE_VAGUE },
};

struct log_find log_guess(const char *s, size_t n, size_t at)
{
    enum { LONGEST = 400 }; /* in more than a sentence, subject and verb need not belong together */
    if (n > LONGEST || !log_trace_word(s, n, at).score || match_any(s, n, NO_CAUSE))
        return (struct log_find){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (match_any(s, n, rows[i].of) && match_any(s, n, rows[i].says))
            return (struct log_find){ rows[i].issue, rows[i].score, rows[i].flags | RULE_SOFT | RULE_GUESS };
    return (struct log_find){ 0 };
}
