/* SPDX-License-Identifier: Apache-2.0
 * Which of several explanations comes first: warnings and errors, faults and resets, whose GPU it is, and what a log without
 * an error says. */
#include "asking.h"
#include "base/str.h"

struct row {
    const char *log;
    int64_t exit_code; /* -1: not known */
    const char *gfx, *want, *second;
};

static void check_row(const struct row *r)
{
    ANSWER a = ask(r->log, (struct diagnose_context){ .gfx = r->gfx, .exit_code = r->exit_code });
    const char *second = a.d.n_also ? a.d.also[0].class_id : "nothing";
    if (!str_eq(a.d.class_id, r->want))
        CHECK_FAIL_("\"%.70s\": %s, not %s", r->log, a.d.class_id, r->want);
    if (r->second && !str_eq(second, r->second))
        CHECK_FAIL_("\"%.70s\": in second place %s, not %s", r->log, second, r->second);
}

#define CHECK_ROWS(rows)                         \
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) \
    check_row(&rows[i])

/* A line that tells of something long is the end only if nothing else followed it. */
static void a_program_that_went_on_does_not_hang(void)
{
    static const struct row rows[] = {
        { "Loading tokenizer...\nvocabulary: 32000\nthreads: 8\nattention: sdpa\n", -1, "gfx1100",
          "no-failure", "unknown" },
        { "vocabulary: 32000\nthreads: 8\nLoading tokenizer...\n", -1, "gfx1100", "hang", NULL },
        { "Capturing graphs: 100%|####| 35/35 [00:09<00:00, 3.7it/s]\ninit engine (profile, warmup) took 31 s\n"
          "scheduler: fcfs\nqueue: 2\n",
          -1, "gfx942", "no-failure", "unknown" },
        { "steps:   3%|3  | 60/2000 [10:00<5:00:00, 9.3s/it, avr_loss=0.1]INFO: warm-up, the next is faster\n",
          -1, NULL, "no-failure", NULL },
        { "running training\nsteps:   0%|   | 0/900 [00:00<?, ?it/s]\nepoch 1/3\n", -1, "gfx1100", "hang",
          NULL },
        { ":3:hip_memory.cpp :2461: hipMemset ( 0x7f, 0, 64 )\n"
          ":3:rocvirtual.hpp :62  : 1 us: [pid:7] Host active wait for Signal = (0x7f6) for -1 ns\n",
          -1, "gfx90a", "hang", NULL },
    };
    CHECK_ROWS(rows);
}

static void a_tool_that_lists_the_gpu_works(void)
{
    static const struct row rows[] = {
        { "Number of platforms: 1\n  Board name: AMD Radeon PRO W7900\n", -1, NULL, "no-failure", "unknown" },
        { "INFO: Started server process [311]\nINFO: Waiting for application startup.\n", -1, NULL,
          "no-failure", "unknown" },
        { "GPU  Temp  VRAM%  GPU%\n0  41.0c  3%  0%\n==== End of ROCm SMI Log ====\n", -1, NULL, "no-failure",
          "unknown" },
        { "hello\n", -1, NULL, "unknown", NULL },
    };
    CHECK_ROWS(rows);
}

static void people_say_hang_in_many_ways(void)
{
    static const struct row rows[] = {
        { "hipStreamSynchronize never returns on the second card\n", -1, "gfx1100", "hang", NULL },
        { "training stuck at step 0 with 100 % load\n", -1, "gfx1151", "hang", NULL },
        { "Any HIP program hangs\n", -1, "gfx1151", "hang", NULL },
        { "step 4 loss 0.2\nNothing is stuck in the queue\nstep 5 loss 0.2\nstep 6 loss 0.1\nstep 7 loss 0.1\n",
          -1, "gfx1151", "no-failure", NULL },
    };
    CHECK_ROWS(rows);
}

static void a_warning_ranks_below_an_error(void)
{
    static const struct row rows[] = {
        { "ops.py:90: UserWarning: cublaslt error: HIPBLAS_STATUS_NOT_SUPPORTED when calling hipblasLtMatmul, "
          "using hipblas\nRuntimeError: HIP error: invalid argument\n",
          1, "gfx1201", "hip-invalid-argument", "hipblaslt-unsupported" },
        { "RuntimeError: HIPBLAS_STATUS_NOT_SUPPORTED when calling hipblasLtMatmul\n", 1, "gfx1201",
          "hipblaslt-unsupported", NULL },
    };
    CHECK_ROWS(rows);
}

static void a_ring_that_recovered_softly_was_not_reset(void)
{
#define PAGE_FAULT "[ 10.1] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:40 vmid:6)\n"
    static const struct row rows[] = {
        { PAGE_FAULT "[ 10.2] [drm:amdgpu_job_timedout] *ERROR* ring gfx timeout, but soft recovered\n", -1,
          NULL, "gpu-memory-fault", "gpu-reset" },
        { PAGE_FAULT "[ 10.2] [drm:amdgpu_job_timedout] *ERROR* ring gfx timeout, signaled seq=1\n"
                     "[ 10.3] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n",
          -1, NULL, "gpu-reset", "gpu-memory-fault" },
    };
    CHECK_ROWS(rows);
}

static void nccl_alone_is_rather_nvidias(void)
{
    static const struct row rows[] = {
        { "RuntimeError: NCCL Error 1: unhandled cuda error\n", 1, NULL, "not-rocm", "rccl-error" },
        { "RuntimeError: NCCL Error 1: unhandled cuda error\n", 1, "gfx1100", "rccl-error", NULL },
        { "RCCL version 2.21.5\nRuntimeError: NCCL Error 1: unhandled cuda error\n", 1, NULL, "rccl-error",
          NULL },
    };
    CHECK_ROWS(rows);
}

/* What identifies a vendor beside the message. */
static void signs_tell_whose_gpu_it_is(void)
{
#define ILLEGAL "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    static const struct row rows[] = {
        { "card: RX 7800\n" ILLEGAL, 1, NULL, "gpu-memory-fault", NULL },
        { "node with 8 MI325X\n" ILLEGAL, 1, NULL, "gpu-memory-fault", NULL },
        { "0: A100-SXM4-40GB\n" ILLEGAL, 1, NULL, "not-rocm", NULL },
        { "INFO Automatically detected platform cuda.\n" ILLEGAL, 1, NULL, "not-rocm", NULL },
        { "x:1:1 [0] NCCL INFO cudaDriverVersion 12040\nx:1:1 [0] NCCL WARN Call to bind failed\n", 1, NULL,
          "not-rocm", NULL },
        { "x:1:1 [0] NCCL INFO ROCr version 1.14\nx:1:1 [0] NCCL WARN Call to bind failed\n", 1, NULL,
          "rccl-error", NULL },
        { "Could not find the bitsandbytes CUDA binary at PosixPath('/x/libbitsandbytes_cuda118.so')\n", 1,
          NULL, "not-rocm", NULL },
        { "Could not find the bitsandbytes ROCm binary at PosixPath('/x/libbitsandbytes_rocm70.so')\n", 1,
          NULL, "bitsandbytes-no-rocm", NULL },
        { "ValueError: ownership failure of the record\n", 1, NULL, "not-rocm", NULL },
    };
    CHECK_ROWS(rows);
}

static void an_abort_without_a_message_is_unknown(void)
{
    static const struct row rows[] = {
        { "#7  0x55 in main ()\nAborted (core dumped)\n", 134, "gfx1100", "unknown", "native-crash" },
        { "Memory access fault by GPU node-1 on address 0x7f. Reason: Page not present\n"
          "Aborted (core dumped)\n",
          134, "gfx1100", "gpu-memory-fault", NULL },
    };
    CHECK_ROWS(rows);
}

static void a_web_ui_without_a_gpu_has_another_build(void)
{
#define NO_USE "RuntimeError: Torch is not able to use GPU; add --skip-torch-cuda-test\n"
    static const struct row rows[] = {
        { NO_USE, 1, "gfx1030", "torch-not-rocm", "no-device" },
        { "torch 2.7.1+rocm6.3\n" NO_USE, 1, "gfx1030", "no-device", NULL },
    };
    CHECK_ROWS(rows);
}

/* If nothing else is known, the one thing that cannot be right. */
static void an_override_that_cannot_work_explains_silence(void)
{
    static const struct row rows[] = {
        { "export HSA_OVERRIDE_GFX_VERSION=10.3.0\nEpoch 0\n", -1, "gfx1012", "hsa-override-bad", NULL },
        { "export HSA_OVERRIDE_GFX_VERSION=10.3.0\nEpoch 0\n", -1, "gfx1032", "unknown", NULL },
        { "  environment:\n    - HSA_OVERRIDE_GFX_VERSION=\"10.3.0\"\nfailed: exit status 2\n", 1, "gfx1032",
          "hsa-override-bad", NULL },
        { "  environment:\n    - HSA_OVERRIDE_GFX_VERSION=10.3.0\nfailed: exit status 2\n", 1, "gfx1032",
          "unknown", NULL },
    };
    CHECK_ROWS(rows);
}

/* The first line is often lost when a log is cut. */
static void what_follows_an_error_tells_of_it(void)
{
    static const struct row rows[] = {
        { " List of available TensileLibrary Files : \n\"/opt/rocm/lib/rocblas/library/"
          "TensileLibrary_lazy_gfx90a.dat\"\nAborted (core dumped)\n",
          134, "gfx1103", "tensile-missing", NULL },
        { "If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=x:1\n", 1,
          "gfx1100", "oom-vram", NULL },
    };
    CHECK_ROWS(rows);
}

/* What pip finds and takes away is not what is used later. */
static void pip_may_take_the_build_away(void)
{
    static const struct row rows[] = {
        { "  Attempting uninstall: torch\n    Found existing installation: torch 2.8.0+rocm6.4\n"
          "    Uninstalling torch-2.8.0+rocm6.4:\nSuccessfully installed torch-2.8.0\n",
          0, "gfx90a", "torch-not-rocm", "no-failure" },
        { "    Found existing installation: torch 2.8.0+rocm6.4\n    Uninstalling torch-2.8.0+rocm6.4:\n"
          "Successfully installed torch-2.9.0+rocm6.4\n",
          0, "gfx90a", "no-failure", NULL },
    };
    CHECK_ROWS(rows);
}

static void a_load_that_ended_is_no_hang(void)
{
    static const struct row rows[] = {
        { "Requested to load Flux\nloaded completely 9000.0 True\n", -1, "gfx1100", "no-failure", "unknown" },
        { "loaded completely 9000.0 True\nRequested to load Flux\n", -1, "gfx1100", "hang", NULL },
    };
    CHECK_ROWS(rows);
}

static void zluda_runs_a_build_for_cuda(void)
{
    static const struct row rows[] = {
        { "torch 2.3.1+cu118\nGPU: AMD Radeon RX 6800 [ZLUDA]\nloading\n", -1, NULL, "hang", NULL },
        { "torch 2.3.1+cu118\nGPU: AMD Radeon RX 6800\nloading\n", -1, NULL, "torch-not-rocm", NULL },
    };
    CHECK_ROWS(rows);
}

/* What the runtime prints between question and answer is neither. */
static void the_answer_may_come_late(void)
{
#define TRACE ":3:hip_device_runtime.cpp :651 : 05 us: [pid:8 tid:0x7] hipGetDeviceCount ( 0x7ff )\n"
    static const struct row rows[] = {
        { "$ python3 -c 'import torch; print(torch.cuda.is_available())'\n" TRACE TRACE TRACE TRACE TRACE
          "False\n",
          0, "gfx1100", "no-device", NULL },
        { "$ python3 -c 'import torch; print(torch.cuda.is_available())'\n" TRACE TRACE TRACE TRACE TRACE
          "True\n",
          0, "gfx1100", "no-failure", NULL },
    };
    CHECK_ROWS(rows);
}

#define OOM(want, free, unused)                                                                           \
    "HIP out of memory. Tried to allocate " want " GiB. GPU 0 has a total capacity of 200.00 GiB of "     \
    "which " free " GiB is free. Of the allocated memory 100.00 GiB is allocated by PyTorch, and " unused \
    " GiB is reserved by PyTorch but unallocated.\n"

static void how_much_is_fragmented(void)
{
    static const struct row rows[] = {
        { OOM("7.00", "3.00", "8.00"), 1, "gfx942", "oom-fragmentation", NULL }, /* 4 %, but enough */
        { OOM("0.10", "0.05", "1.00"), 1, "gfx942", "oom-vram", NULL },
        { OOM("0.10", "20.00", "1.00"), 1, "gfx942", "oom-vram", NULL },
        { OOM("0.10", "90.00", "1.00"), 1, "gfx942", "oom-fragmentation", NULL },
    };
    CHECK_ROWS(rows);
}

int main(void)
{
    RUN(a_program_that_went_on_does_not_hang);
    RUN(a_tool_that_lists_the_gpu_works);
    RUN(people_say_hang_in_many_ways);
    RUN(a_warning_ranks_below_an_error);
    RUN(a_ring_that_recovered_softly_was_not_reset);
    RUN(nccl_alone_is_rather_nvidias);
    RUN(signs_tell_whose_gpu_it_is);
    RUN(an_abort_without_a_message_is_unknown);
    RUN(a_web_ui_without_a_gpu_has_another_build);
    RUN(an_override_that_cannot_work_explains_silence);
    RUN(what_follows_an_error_tells_of_it);
    RUN(pip_may_take_the_build_away);
    RUN(a_load_that_ended_is_no_hang);
    RUN(zluda_runs_a_build_for_cuda);
    RUN(the_answer_may_come_late);
    RUN(how_much_is_fragmented);
    return check_done();
}
