/* SPDX-License-Identifier: Apache-2.0
 * What is said in other words: silence, capitals, other languages, and the noise of healthy runs. */
#include "asking.h"
#include "base/str.h"

struct row {
    const char *log;
    int64_t exit_code;               /* -1: not known */
    const char *gfx, *want, *second; /* second NULL: whatever it is */
    bool hung;
};

static void check_row(const struct row *r)
{
    ANSWER a =
        ask(r->log, (struct diagnose_context){ .gfx = r->gfx, .exit_code = r->exit_code, .hung = r->hung });
    const struct diagnosis *d = &a.d;
    if (!str_eq(d->class_id, r->want))
        CHECK_FAIL_("\"%.70s\": %s, not %s", r->log, d->class_id, r->want);
    if (r->second && (!d->n_also || !str_eq(d->also[0].class_id, r->second)))
        CHECK_FAIL_("\"%.70s\": not %s, but in second place %s", r->log, r->second,
                    d->n_also ? d->also[0].class_id : "nothing");
    CHECK(d->severity == DIAGNOSE_NONE || !str_eq(d->class_id, "no-failure"));
}

#define CHECK_ROWS(rows)                         \
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) \
    check_row(&rows[i])

#define UNKNOWN(log)                          \
    {                                         \
        log, -1, NULL, "unknown", NULL, false \
    }
#define FINE(log)                                \
    {                                            \
        log, -1, NULL, "no-failure", NULL, false \
    }
#define ENDED(log)                              \
    {                                           \
        log, 0, NULL, "no-failure", NULL, false \
    }

static void silence_is_not_success(void)
{
    static const struct row rows[] = {
        UNKNOWN("hello there\n"),
        UNKNOWN("Namespace(lr=1e-4, epochs=3)\n"),
        UNKNOWN("max_train_steps = 2680\nGradient accumulation steps: 1\n"),
        { "", -1, NULL, "unknown", NULL, false },
        { "Python 3.12\nTotal VRAM 24560 MB\nDevice: cuda:0 AMD Radeon RX 7900 XTX : native\n", -1, NULL,
          "unknown", NULL, false },
    };
    CHECK_ROWS(rows);
}

static void a_log_that_ends_in_loading_may_be_a_hang(void)
{
    static const struct row rows[] = {
        { "got prompt\nRequested to load AutoencoderKL\n", -1, NULL, "hang", NULL, false },
        { "Loading checkpoint shards:   0%|          | 0/4 [00:00<?, ?it/s]", -1, "gfx1151", "hang", NULL,
          false },
        { "100%|####| 20/20 [00:41<00:00,  2.07s/it]\nRequested to load AutoencodingEngine\n", -1, NULL,
          "hang", NULL, false },
        { "Compiling the model with torch.compile\n", -1, NULL, "hang", NULL, false },
        { "Running on local URL:  http://127.0.0.1:7865\nPreparing the text ...\n", -1, NULL, "hang", NULL,
          false },
        { "Loading safetensors checkpoint shards:  37% Completed | 15/41 [00:16<00:28,  1.09s/it]\n", -1,
          NULL, "hang", NULL, false },
        { "Using attention for VAE\nPress any key to continue . . .\n", -1, NULL, "unknown", "native-crash",
          false },
        { "got prompt\nRequested to load AutoencoderKL\n", -1, NULL, "hang", NULL, true },
        { "steps:  34%|#    | 680/2000 [00:34<10:00,  3.1s/it, avr_loss=0.134]\n", -1, "gfx1100", "hang",
          NULL, true },
        { "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n", -1, "gfx1100",
          "oom-vram", NULL, true },
    };
    CHECK_ROWS(rows);
}

static void steps_and_ends_speak_for_a_run(void)
{
    static const struct row rows[] = {
        FINE("steps:  34%|#    | 680/2000 [00:34<10:00,  3.1s/it, avr_loss=0.134]\n"),
        FINE("Epoch: [1 | 300] LR: 0.1\n10 Loss: 2.30\n"),
        FINE("[Rank 0] step=510, skipped=8, lr=[0.0001]\n"),
        FINE("Epoch 3/100 - 12s\n"),
        FINE(
            "100%|####| 20/20 [00:27<00:00,  1.36s/it]\nTotal progress:  65%|###  | 26/40 [02:02<02:58, 12.7s/it]"),
        FINE("Process:0.05s (6.4ms/T = 156.86T/s), Generate:0.59s (20.2ms/T = 49.49T/s)\n"),
        FINE("      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
             "     1/1000      6.73G      1.081     0.4706      1.084         10        640\n"),
        FINE("got prompt\nRequested to load Flux\nPrompt executed in 18.14 seconds\n"),
        FINE("loading model\nmodel saved to out/last.safetensors\n"),
        FINE("{'train_runtime': 91.2, 'train_loss': 1.75}\n"),
        FINE("Test Error: \n Accuracy: 37.4%, Avg loss: 2.171335 \n\nDone!\n"),
        FINE("kernel: kfd kfd: amdgpu: added device 1002:744c\nkernel: [drm] Initialized amdgpu 3.64.0\n"),
        FINE(
            "got prompt\n!!! Exception during processing !!! nothing known\nPrompt executed in 0.02 seconds\n"
            "got prompt\nRequested to load Flux\nPrompt executed in 18.14 seconds\n"),
        UNKNOWN(
            "got prompt\n!!! Exception during processing !!! the GPU said no\nPrompt executed in 4.65 seconds\n"),
        { "got prompt\n!!! Exception during processing !!! nothing known\nPrompt executed in 4.65 seconds\n",
          -1, "gfx1100", "not-rocm", NULL, false },
        { "got prompt\n!!! Exception during processing !!! No module named 'flash_attn'\n"
          "Prompt executed in 4.65 seconds\n",
          -1, "gfx1100", "attention-experimental", NULL, false },
        FINE("epoch 1 loss_a=0.1 loss_b=0.0\nepoch 2 loss/val=nan\nsaved x\n"),
        { "Train Epoch: 1 [0%]\nloss_disc=nan, loss_gen=nan, loss_kl=nan\n", -1, "gfx1100", "numerics-nan",
          NULL, false },
        ENDED("Requested to load AutoencoderKL\n"),
        ENDED("Loading pipeline components...: 100%|####| 7/7 [00:01<00:00,  5.1it/s]\n"),
        ENDED("hello there\n"),
    };
    CHECK_ROWS(rows);
}

static void case_does_not_count(void)
{
    static const struct row rows[] = {
        { "runtimeerror: hip ERROR: INVALID DEVICE FUNCTION\n", 1, "gfx1031", "no-kernel-image", NULL,
          false },
        { "hip OUT OF MEMORY. tried to allocate 2 gib\n", 1, "gfx1100", "oom-vram", NULL, false },
        { "NO SPACE LEFT ON DEVICE\n", 1, NULL, "disk-full", NULL, false },
        { "MEMORY ACCESS FAULT BY GPU NODE-1 on address 0x7f51. reason: page not present\n", 134, NULL,
          "gpu-memory-fault", NULL, false },
        { "/lib/libstdc++.so.6: version \xe2\x80\x98GLIBCXX_3.4.32\xe2\x80\x99 not found\n", 1, NULL,
          "lib-load", NULL, false },
        { "/lib/libstdc++.so.6: version 'GLIBCXX_3.4.32' not found\n", 1, NULL, "lib-load", NULL, false },
    };
    CHECK_ROWS(rows);
}

static void hip_errors_are_known_by_name_and_by_words(void)
{
    static const struct {
        const char *name, *words, *want;
    } rows[] = {
        { "hipErrorECCNotCorrectable", "uncorrectable ECC error encountered", "gpu-reset" },
        { "hipErrorContextIsDestroyed", "context is destroyed", "gpu-reset" },
        { "hipErrorUnknown", "unknown error", "gpu-reset" },
        { "hipErrorNotInitialized", "initialization error", "driver-too-old" },
        { "hipErrorInvalidKernelFile", "invalid kernel file", "no-kernel-image" },
        { "hipErrorFileNotFound", "file not found", "no-kernel-image" },
        { "hipErrorMapFailed", "mapping of buffer object failed", "oom-vram" },
        { "hipErrorLaunchOutOfResources", "too many resources requested for launch", "hip-invalid-argument" },
        { "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing",
          "hip-invalid-argument" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char log[256];
        snprintf(log, sizeof(log), "RuntimeError: HIP error: %s\n", rows[i].words);
        check_row(&(struct row){ log, 1, "gfx1100", rows[i].want, NULL, false });
        snprintf(log, sizeof(log), "call returned %s\n", rows[i].name);
        check_row(&(struct row){ log, 1, "gfx1100", rows[i].want, NULL, false });
    }
}

/* With such a value no program runs, whatever came of it. */
static void an_override_that_cannot_work_is_named(void)
{
    static const struct row rows[] = {
        { "HSA_OVERRIDE_GFX_VERSION = \"no such chip\"\n", -1, "gfx1151", "hsa-override-bad", NULL, false },
        { "export HSA_OVERRIDE_GFX_VERSION=gfx1103\nstarting\n", -1, "gfx1103", "hsa-override-bad", NULL,
          false },
        { "$ HSA_OVERRIDE_GFX_VERSION=12.0.1 python main.py\n", -1, "gfx1151", "hsa-override-bad", NULL,
          false },
        { "env HSA_OVERRIDE_GFX_VERSION=\\\"10.3.0\\\"\n", -1, "gfx1031", "unknown", "hsa-override-bad",
          false },
    };
    CHECK_ROWS(rows);
}

#define SAYS(log, code, want)              \
    {                                      \
        log, code, NULL, want, NULL, false \
    }
#define OF(log, code, gfx, want)          \
    {                                     \
        log, code, gfx, want, NULL, false \
    }

/* Names, numbers and codes are the same in every language. */
static void other_languages_are_understood(void)
{
    static const struct row rows[] = {
        SAYS("ImportError: libamdhip64.so.6: Kann die Shared-Object-Datei nicht \xc3\xb6"
             "ffnen\n",
             1, "lib-load"),
        SAYS("OSError: librocblas.so.4: \xe6\x97\xa0\xe6\xb3\x95\xe6\x89\x93\xe5\xbc\x80\n", 1, "lib-load"),
        SAYS("OSError: libMIOpen.so.1: impossible d'ouvrir le fichier d'objet partag\xc3\xa9\n", 1,
             "lib-load"),
        SAYS("ImportError: libcudart.so.12: no se puede abrir el archivo del objeto compartido\n", 1,
             "torch-not-rocm"),
        SAYS("OSError: [WinError 126] Das angegebene Modul wurde nicht gefunden\n", 1, "lib-load"),
        SAYS("OSError: [WinError 1455] Die Auslagerungsdatei ist zu klein\n", 1, "host-oom"),
        SAYS("OSError: [Errno 28] Auf dem Ger\xc3\xa4t ist kein Speicherplatz mehr verf\xc3\xbcgbar\n", 1,
             "disk-full"),
        SAYS("OSError: [Errno 28] \xe8\xae\xbe\xe5\xa4\x87\n", 1, "disk-full"),
        SAYS("FileNotFoundError: [Errno 2] Datei oder Verzeichnis nicht gefunden: 'x.toml'\n", 1, "not-rocm"),
        SAYS("open /dev/kfd: Keine Berechtigung\n", 1, "device-permission"),
        SAYS("/dev/kfd: Aucun fichier ou dossier de ce type\n", 1, "no-device"),
        SAYS("./train.sh: Zeile 3: 4711 Speicherzugriffsfehler (Speicherabzug geschrieben)\n", -1,
             "native-crash"),
        SAYS("exit code -1073741819\n", -1, "native-crash"),
        SAYS("process exited with 0xc0000135\n", -1, "lib-load"),
    };
    CHECK_ROWS(rows);
}

static void what_has_nothing_to_do_with_rocm(void)
{
    static const struct row rows[] = {
        SAYS("ERROR: torch-2.6.0+rocm6.4.2-cp312-cp312-linux_x86_64.whl is not a supported wheel on this "
             "platform.\n",
             1, "not-rocm"),
        SAYS("  x No solution found when resolving dependencies:\n", 1, "not-rocm"),
        SAYS("error: externally-managed-environment\n", 1, "not-rocm"),
        SAYS("PackagesNotFoundError: The following packages are not available\n", 1, "not-rocm"),
        SAYS("E: Unable to locate package rocm-hip-sdk\n", 100, "not-rocm"),
        SAYS("prepare dataset\nNo data found. Please verify arguments\n", -1, "not-rocm"),
        SAYS("No data found. Please verify arguments\n", 0, "not-rocm"),
        SAYS("ValueError: num_samples should be a positive integer value, but got num_samples=0\n", 1,
             "not-rocm"),
        SAYS("PIL.UnidentifiedImageError: cannot identify image file 'a.png'\n", 1, "not-rocm"),
        SAYS("RuntimeError: stack expects each tensor to be equal size, but got [3, 512] and [3, 640]\n", 1,
             "not-rocm"),
        SAYS("torch.cuda.is_available()\nNVIDIA GeForce RTX 3090\nloading\n", -1, "not-rocm"),
    };
    CHECK_ROWS(rows);
}

static void the_kernel_has_many_words(void)
{
    static const struct row rows[] = {
        SAYS("amdgpu 0000:03:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0x6bfbb000]\n",
             -1, "gpu-memory-fault"),
        SAYS("amdgpu: Failed to quiesce KFD\namdgpu: Suspending all queues failed\n", -1, "gpu-reset"),
        SAYS("kfd kfd: amdgpu: device 1002:15d8 NOT added due to errors\n", -1, "no-device"),
        SAYS("amdgpu: sched_policy has invalid value\n", -1, "no-device"),
        SAYS("modprobe: ERROR: could not insert 'amdgpu': Key was rejected by service\n", 1,
             "driver-too-old"),
        SAYS("kernel BUG at /var/lib/dkms/amdgpu/3.8.0-19/build/amd/amdkcl/kcl_common.h:24!\n", -1,
             "driver-too-old"),
        SAYS("[TTM] Failed to find memory space for buffer 0x00 eviction\n", -1, "oom-vram"),
    };
    CHECK_ROWS(rows);
}

static void launchers_tell_how_a_rank_ended(void)
{
    static const struct row rows[] = {
        SAYS("ChildFailedError:\n  exitcode  : -9 (pid: 41217)\n", 1, "host-oom"),
        SAYS("api.py:869] failed (exitcode: -9) local_rank: 5 (pid: 2630)\n", 1, "host-oom"),
        SAYS("ChildFailedError:\n  exitcode  : -11 (pid: 5277) (SIGSEGV)\n", 1, "native-crash"),
        SAYS("api.py:916] Unable to shutdown process 412854 via Signals.SIGINT, forcefully exiting via "
             "Signals.SIGKILL\n",
             -1, "hang"),
        SAYS("ChildFailedError:\n  exitcode  : 1 (pid: 1622990)\n  error_file: <N/A>\n", 1, "unknown"),
        SAYS(
            "CalledProcessError: Command '['gcc', '/tmp/x/__triton_launcher.c']' returned non-zero exit status "
            "1.\n",
            1, "triton-compile"),
    };
    CHECK_ROWS(rows);
}

/* The deciding fact stands elsewhere than the loudest symptom. */
static void facts_beat_symptoms(void)
{
    static const struct row rows[] = {
        OF("$ rocminfo\nhsa api call failure at: rocminfo.cc:1102\n$ sudo rocminfo\nROCk module is loaded\n"
           "HSA System Attributes\n",
           1, NULL, "device-permission"),
        OF("$ sudo rocminfo\nHSA System Attributes\n$ rocminfo\nhsa api call failure at: rocminfo.cc:1102\n",
           1, NULL, "device-permission"),
        OF("$ rocminfo\nhsa api call failure at: rocminfo.cc:1102\n$ sudo rocminfo\n"
           "hsa api call failure at: rocminfo.cc:1102\n",
           1, NULL, "driver-too-old"),
        OF("  Device 0: AMD Radeon RX 6500M, compute capability 10.3\n"
           "  Device 1: AMD Radeon Graphics, compute capability 10.3\n"
           "CUDA error: out of memory\n  current device: 1, in function x\n  hipMalloc((void **) &ptr, size)\n",
           134, NULL, "wrong-gpu"),
        OF("  Device 0: AMD Radeon RX 6500M, compute capability 10.3\n"
           "  Device 1: AMD Radeon Graphics, compute capability 10.3\n"
           "CUDA error: out of memory\n  current device: 0, in function x\n  hipMalloc((void **) &ptr, size)\n",
           134, NULL, "oom-vram"),
        OF("libhsa-amd-aqlprofile64.so: cannot open shared object file: No such file or directory\n"
           "hipErrorNoBinaryForGpu: Unable to find code object\n",
           134, NULL, "no-kernel-image"),
        OF("libroctx64.so: cannot open shared object file: No such file or directory\n"
           "HIP out of memory. Tried to allocate 2.00 GiB.\n",
           1, "gfx1100", "oom-vram"),
        OF("env HSA_OVERRIDE_GFX_VERSION=gfx1103\nCUDA error: invalid device ordinal\n", 1, "gfx1103",
           "hsa-override-bad"),
        OF("E: Unable to locate package linux-modules-extra\nRuntimeError: No HIP GPUs are available\n", 1,
           NULL, "no-device"),
        OF("[InvokeAI]::INFO --> GPU device = cpu\n", -1, "gfx906", "no-device"),
        OF("RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'\n", 1, "gfx1100", "no-device"),
        OF("AttributeError: module 'torch._C' has no attribute '_CudaDeviceProperties'\n", 1, "gfx1201",
           "torch-not-rocm"),
        OF("env=\"map[HIP_VISIBLE_DEVICES: HSA_OVERRIDE_GFX_VERSION:10.3.0 OLLAMA_DEBUG:1]\"\n"
           "Memory access fault by GPU node-1 on address 0x7f. Reason: Unknown.\n",
           134, "gfx906", "hsa-override-bad"),
        OF("env=\"map[HIP_VISIBLE_DEVICES: HSA_OVERRIDE_GFX_VERSION: OLLAMA_DEBUG:false]\"\n"
           "llama runner process has terminated: exit status 0xc0000005\n",
           -1, "gfx1103", "native-crash"),
        OF("torch 2.4.1+cu121\nusing the CPU\n", -1, "gfx1030", "torch-not-rocm"),
        OF("RuntimeError: NCCL error in: NCCLUtils.hpp:219, unhandled cuda error\n", 1, "gfx1100",
           "rccl-error"),
        OF("ImportError: FlashAttention2 has been toggled on, but the package flash_attn seems to be not "
           "installed.\n",
           1, NULL, "attention-experimental"),
        { "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of "
          "memory\n",
          1, NULL, "oom-vram", NULL, false },
        { "Device 0: NVIDIA GeForce RTX 3060, compute capability 8.6\nggml_backend_cuda_buffer_type_alloc_buffer: "
          "allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory\n",
          1, NULL, "not-rocm", NULL, false },
    };
    CHECK_ROWS(rows);
}

/* Warnings galore, and the run goes on. */
static void noise_is_no_failure(void)
{
    static const struct row rows[] = {
        FINE("/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n"
             "UserWarning: Can't initialize NVML\nfailed to load image Python extension\n"
             "step 10 | loss 3.1\nstep 20 | loss 2.9\nstep 30 | loss 2.7\nstep 40 | loss 2.6\n"),
        FINE(
            "E-001h rocSHMEM Could not open libnuma. Returning\n"
            "Warning: Attempting to use CK on an unsupported architecture!\n"
            "{'loss': 1.8211, 'grad_norm': 0.91}\n{'loss': 1.7, 'grad_norm': 0.9}\n{'train_runtime': 91.2}\n"),
        FINE("Could not detect ROCm GPU architecture: [Errno 2] No such file or directory: 'rocminfo'\n"
             "Application startup complete.\n"),
        FINE("comfy-aimdo failed to load: Could not find module 'aimdo.dll' (or one of its dependencies)\n"
             "Starting server\nTo see the GUI go to: http://127.0.0.1:8188\n"),
        FINE(
            "patchmatch: ERROR - patchmatch failed to load or compile\nUvicorn running on http://127.0.0.1:9090\n"),
        ENDED("no module 'xformers'. Processing without...\nresource_tracker: There appear to be 1 leaked "
              "semaphore objects\n"),
        ENDED("librccl-net.so: cannot open shared object file: No such file or directory\n"),
        ENDED("Using device: cpu\nresult saved\n"),
        ENDED("VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16\n"),
    };
    CHECK_ROWS(rows);
}

/* Figures that no machine has are left out, and not turned into others. */
static void sizes_without_sense_are_not_told(void)
{
    ANSWER a = ask(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 99999999999999999999 GiB. GPU 0 has "
        "a total capacity of 99999999999999999999999 GiB of which 0 bytes is free.\n",
        (struct diagnose_context){ .exit_code = 1 });
    CHECK_STR(a.d.class_id, "oom-vram");
    CHECK(!strchr(a.d.cause, '-'));
}

/* What is to be pasted into PowerShell runs pip, whatever the log calls its Python. */
static void a_path_of_the_log_runs_nothing(void)
{
    static const struct {
        const char *folder, *want;
    } cases[] = {
        { "C:\\a", "\nC:\\a\\Scripts\\python.exe -m pip" },
        { "C:\\a b", "\n& 'C:\\a b\\Scripts\\python.exe' -m pip" },
        { "C:\\a;calc;b", "\n& 'C:\\a;calc;b\\Scripts\\python.exe' -m pip" },
        { "C:\\a $(calc)", "\n& 'C:\\a $(calc)\\Scripts\\python.exe' -m pip" },
        { "C:\\a\xe2\x80\x9a;calc;\xe2\x80\x9a", "\npython -m pip" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char log[400];
        bool found = false;
        snprintf(log, sizeof(log),
                 "  File \"%s\\Lib\\site-packages\\torch\\x.py\", line 5, in f\n"
                 "RuntimeError: HIP error: invalid device function\n",
                 cases[i].folder);
        ANSWER a = ask(log, (struct diagnose_context){ .gfx = "gfx1201", .exit_code = 1 });
        CHECK(a.d.windows);
        for (size_t f = 0; f < a.d.n_fixes; f++)
            found |= strstr(a.d.fixes[f].text, cases[i].want) != NULL;
        if (!found)
            CHECK_FAIL_("%s: no \"%s\"", cases[i].folder, cases[i].want);
    }
}

int main(void)
{
    RUN(silence_is_not_success);
    RUN(a_log_that_ends_in_loading_may_be_a_hang);
    RUN(steps_and_ends_speak_for_a_run);
    RUN(case_does_not_count);
    RUN(hip_errors_are_known_by_name_and_by_words);
    RUN(an_override_that_cannot_work_is_named);
    RUN(other_languages_are_understood);
    RUN(what_has_nothing_to_do_with_rocm);
    RUN(the_kernel_has_many_words);
    RUN(launchers_tell_how_a_rank_ended);
    RUN(facts_beat_symptoms);
    RUN(noise_is_no_failure);
    RUN(a_path_of_the_log_runs_nothing);
    RUN(sizes_without_sense_are_not_told);
    return check_done();
}
