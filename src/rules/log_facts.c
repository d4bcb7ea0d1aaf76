/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_facts.h"

#include "base/cleanup.h"
#include "base/match.h"
#include "rules/log_guess.h"
#include "rules/log_see.h"
#include "rules/log_windows.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct log_find nothing;

static struct log_find see_bar(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_progress_bar(&f->progress, s, n, at);
    return nothing;
}

static struct log_find see_step(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_progress_count(&f->progress, s, n, at + strlen("step"));
    return nothing;
}

/* Many programs announce the first epoch before its first step. */
static struct log_find see_epoch(struct log_facts *f, const char *s, size_t n, size_t at)
{
    size_t i = at + strlen("epoch");
    while (i < n && strchr(" :=#[(", s[i]))
        i++;
    bool first = i < n && s[i] == '1' && (i + 1 == n || !isdigit((unsigned char)s[i + 1]));
    if (!first)
        log_progress_count(&f->progress, s, n, at + strlen("epoch"));
    return nothing;
}

static struct log_find see_busy(struct log_facts *f, const char *s, size_t n, size_t at)
{
    /* A remark behind a bar, which says more; and what has ended. */
    if (match_any(s, at, "it/s|s/it") || match_any(s, n, " took "))
        return nothing;
    f->loading =
        match_any(s, n, "load") && !match_any(s, n, "100%") &&
        match_any(s, n, "shards|weights|state dict|safetensors|components|model|transformer|checkpoint");
    log_progress_stage(&f->progress, LOG_STAGE_BUSY);
    return nothing;
}

static struct log_find see_done(struct log_facts *f, const char *s, size_t n, size_t at)
{
    /* "not saved", "nothing saved", "failed before it finished" */
    if (!match_any(s, n, "not |fail|error|nothing |will be |if |% complete"))
        log_progress_stage(&f->progress, LOG_STAGE_DONE);
    (void)at;
    return nothing;
}

/* The GPU is there, or a part of the program is up: it got so far without a complaint. */
static struct log_find see_ready(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)at;
    if (match_any(s, n, "not |no |fail|unable"))
        return nothing;
    f->ready = true;
    if (f->progress.stage == LOG_STAGE_BUSY) /* what took long has ended */
        log_progress_stage(&f->progress, LOG_STAGE_NONE);
    return nothing;
}

/* ComfyUI says how long a prompt took, also when it failed. */
static struct log_find see_prompt(struct log_facts *f, const char *s, size_t n, size_t at)
{
    f->prompt_failed = false;
    return see_busy(f, s, n, at);
}

static struct log_find see_prompt_failed(struct log_facts *f, const char *s, size_t n, size_t at)
{
    static const char words[] = "exception during processing !!!";
    f->prompt_failed = true;
    log_progress_stage(&f->progress, LOG_STAGE_NONE);
    if (n - at > strlen(words) && !strncasecmp(s + at, words, strlen(words))) {
        struct log_find message = log_trace_message(s, n, at + strlen(words));
        if (message.score)
            return message;
    }
    return log_trace_word(s, n, at);
}

static struct log_find see_prompt_done(struct log_facts *f, const char *s, size_t n, size_t at)
{
    return f->prompt_failed ? nothing : see_done(f, s, n, at);
}

static struct log_find see_loss(struct log_facts *f, const char *s, size_t n, size_t at)
{
    return log_progress_loss(&f->progress, s, n, at);
}

static struct log_find see_grad_norm(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)f;
    return log_progress_grad_norm(s, n, at);
}

static struct log_find see_nan_count(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)f;
    return log_progress_nan_count(s, n, at);
}

static struct log_find see_windows(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)s, (void)n, (void)at;
    f->windows = true;
    return nothing;
}

static struct log_find see_status(struct log_facts *f, const char *s, size_t n, size_t at)
{
    f->windows |= log_windows_has_status(s, n, at);
    return nothing;
}

static struct log_find see_drive(struct log_facts *f, const char *s, size_t n, size_t at)
{
    f->windows |= log_windows_has_path(s, n, at + strlen(" C"));
    return nothing;
}

static struct log_find see_zluda(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)s, (void)n, (void)at;
    f->zluda = true;
    return nothing;
}

static struct log_find see_wsl(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)s, (void)n, (void)at;
    f->wsl = true;
    return nothing;
}

/* The texts are found in any case; where the case tells, it is looked at here. */
static bool stands_at(const char *s, size_t n, size_t at, const char *text)
{
    return n - at >= strlen(text) && !memcmp(s + at, text, strlen(text));
}

static struct log_find see_traceback(struct log_facts *f, const char *s, size_t n, size_t at)
{
    if (stands_at(s, n, at, "Traceback") || stands_at(s, n, at, "  File \""))
        log_trace_begin(&f->trace, s, at);
    return nothing;
}

/* clang's "fatal error: 'type_traits' file not found", gcc's "fatal error: Python.h: No such file or directory". */
static struct log_find see_header(struct log_facts *f, const char *s, size_t n, size_t at)
{
    at += strlen("fatal error: ");
    at += at < n && strchr("'\"", s[at]);
    size_t len = 0;
    while (at + len < n && !strchr("'\": ", s[at + len]))
        len++;
    if (f->header[0] || !len || len >= sizeof(f->header) || !match_any(s, n, "file not found|No such file"))
        return nothing;
    memcpy(f->header, s + at, len);
    f->header[len] = '\0';
    return nothing;
}

static struct log_find see_accelerate(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)s, (void)n, (void)at;
    f->accelerate = true;
    return nothing;
}

static struct log_find see_stack(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)at;
    log_stack_begin(&f->stack, s, n);
    return nothing;
}

static struct log_find see_frame(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_stack_frame(&f->stack, s, n, at);
    return nothing;
}

static struct log_find see_call(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_stack_see_call(&f->stack, s, n, at);
    return nothing;
}

static struct log_find see_exception(struct log_facts *f, const char *s, size_t n, size_t at)
{
    /* Names of classes are not written in capitals. */
    return at + 1 < n && islower((unsigned char)s[at + 1]) ? log_trace_exception(&f->trace, s, n, at)
                                                           : nothing;
}

/* "- **Exception Type:** KeyError", "- **Exception Message:** 'x'", as ComfyUI reports them. */
static struct log_find see_type(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)f;
    return log_trace_type(s, n, at);
}

static struct log_find see_message(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)f;
    return log_trace_message(s, n, at + strlen("exception message:"));
}

static struct log_find see_error(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)f;
    return log_trace_word(s, n, at);
}

/* "error" in the middle of a sentence is often a quantity: "mean error", "error rate". */
static struct log_find see_loud_error(struct log_facts *f, const char *s, size_t n, size_t at)
{
    return stands_at(s, n, at, "ERROR") || stands_at(s, n, at, "Error ") ? see_error(f, s, n, at) : nothing;
}

static struct log_find see_guess(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)f;
    return log_guess(s, n, at);
}

static struct log_find see_killed(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_killed_see(&f->killed, s, n, at);
    return nothing;
}

static struct log_find see_pid(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_killed_tell(&f->killed, s, n, at);
    return nothing;
}

static struct log_find see_packages(struct log_facts *f, const char *s, size_t n, size_t at)
{
    log_python_see(&f->python, s, n, at);
    return nothing;
}

/* Each variable leads to one function, which finds out which it is. */
static const struct {
    const char *text;
    struct log_find (*see)(struct log_facts *f, const char *s, size_t n, size_t at);
} extractors[] = {
    { "gfx1", log_see_gfx },
    { "gfx9", log_see_gfx },
    { "gfx8", log_see_gfx },
    { "gfx7", log_see_gfx },
    { "Marketing Name:", log_see_marketing },
    { "Board name:", log_see_board },
    { "AMD Radeon", log_see_product },
    { "Radeon RX", log_see_product },
    { "AMD Instinct", log_see_product },
    { "site-packages", see_packages },
    { "dist-packages", see_packages },
    { "+rocm", log_see_torch },
    { "+cu1", log_see_torch },
    { "+cpu", log_see_torch },
    { "HSA_OVERRIDE_GFX_VERSION", log_see_variable },
    { "ROCR_VISIBLE_DEVICES", log_see_variable },
    { "HIP_VISIBLE_DEVICES", log_see_variable },
    { "CUDA_VISIBLE_DEVICES", log_see_variable },
    { "PYTORCH_HIP_ALLOC_CONF", log_see_variable },
    { "PYTORCH_CUDA_ALLOC_CONF", log_see_variable },
    { "PYTORCH_ALLOC_CONF", log_see_variable },
    { "PYTORCH_NO_HIP_MEMORY_CACHING", log_see_variable },
    { "PYTORCH_NO_CUDA_MEMORY_CACHING", log_see_variable },
    { "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", log_see_variable },
    { "HSA_ENABLE_", log_see_variable },
    { "LD_LIBRARY_PATH", log_see_variable },
    { "TORCH_BLAS_PREFER_HIPBLASLT", log_see_variable },
    { "NCCL_P2P_DISABLE", log_see_variable },
    { "ut of memory. Tried to allocate", log_see_oom },
    { "it/s", see_bar },
    { "s/it", see_bar },
    { "loss", see_loss },
    { "grad_norm", see_grad_norm },
    { "nan: ", see_nan_count },
    { "nans: ", see_nan_count },
    { "step", see_step },
    { "epoch", see_epoch },
    { "requested to load", see_busy },
    { "got prompt", see_prompt },
    { "exception during processing", see_prompt_failed },
    { "loading", see_busy },
    { "load request=", see_busy },
    { "proc(s) to start", see_busy },
    { "waiting for server to become available", see_busy },
    { "load model", see_busy },
    { "compiling", see_busy },
    { "warming up", see_busy },
    { "warmup", see_busy },
    { "warm-up", see_busy },
    { "autotun", see_busy },
    { "auto-tun", see_busy },
    { "capturing", see_busy },
    { "initializing", see_busy },
    { "caching latents", see_busy },
    { "running training", see_busy },
    { "starting training", see_busy },
    { "prompt executed in", see_prompt_done },
    { "saved", see_done },
    { "train_runtime", see_done },
    { "raining complete", see_done },
    { "finished", see_done },
    { "completed", see_done },
    { "epoch complete", see_done },
    { "done!", see_done },
    { "done.", see_done },
    { "done ***", see_done },
    { "successfully installed", see_done },
    { "starting server", see_done },
    { "to see the gui go to", see_done },
    { "running on local url", see_done },
    { "running on http", see_done },
    { "listening on", see_done },
    { "runner started in", see_done },
    { "server is listening", see_done },
    { "application startup complete", see_done },
    { "http://127.0.0.1", see_done },
    { "http://localhost", see_done },
    { "http://0.0.0.0", see_done },
    { "tok/s", see_done },
    { "tokens/s", see_done },
    { "T/s)", see_done },
    { "eval time =", see_done },
    { "tokens per second", see_done },
    { " passed", see_done },
    { "final estimate: ", see_done },
    { "out of bounds values : 0", see_done },
    { "[100%] built target", see_done },
    { "is_available(): true", see_done },
    { "already the newest version", see_done },
    { "test result: ok", see_done },
    { "initialized amdgpu", see_done },
    { "added device", see_done },
    { "found device 0 with properties", see_ready },
    { "adding visible gpu devices", see_ready },
    { "started server process", see_ready },
    { "linking cxx executable", see_ready },
    { "linking hip", see_ready },
    { "HSA System Attributes", see_ready },
    { "end of rocm smi log", see_ready },
    { "amdgpu is supported", see_ready },
    { "inference compute", see_ready },
    { "board name:", see_ready },
    { "marketing name:", see_ready },
    { "loaded completely", see_ready },
    { "model loaded in", see_ready },
    { "loaded the model in", see_ready },
    { "init engine (", see_ready },
    { "host active wait for signal", see_busy },
    { "current device: ", log_see_current },
    { "by GPU node-", log_see_node },
    { "ROCm1 ", log_see_second },
    { "Killed process ", see_killed },
    { "Kill process ", see_killed },
    { "reaped process ", see_killed },
    { "pid ", see_pid },
    { "pid=", see_pid },
    { "pid:", see_pid },
    { "pid(s)", see_pid },
    { "subprocess ", see_pid },
    { "Device ", log_see_device },
    { "rocminfo", log_see_rocminfo },
    { "hsa api call failure", log_see_hsa_failed },
    { "HSA_STATUS_ERROR_OUT_OF_RESOURCES", log_see_hsa_failed },
    { "HSA System Attributes", log_see_hsa_fine },
    { "/dev/kfd", log_see_kfd_owner },
    { "groups=", log_see_groups },
    { "render:x:", log_see_render_gid },
    { "--group-add", log_see_group_add },
    { "with sudo", log_see_root_told },
    { "using sudo", log_see_root_told },
    { "as root", log_see_root_told },
    { "is_available()", log_see_question },
    { "device_count()", log_see_question },
    { "WinError", see_windows },
    { "\\site-packages", see_windows },
    { "Windows fatal", see_windows },
    { ".dll", see_windows },
    { "Windows 1", see_windows },
    { "Windows-1", see_windows },
    { " C:\\", see_drive },
    { " D:\\", see_drive },
    { " E:\\", see_drive },
    { "\\Users\\", see_windows },
    { "\\Lib\\", see_windows },
    { "\\venv\\", see_windows },
    { "\\Scripts\\", see_windows },
    { "python.exe", see_windows },
    { "$env:", see_windows },
    { "0xC0", see_status },
    { "-10737", see_status },
    { "-10665", see_status },
    { "32212", see_status },
    { "32283", see_status },
    { "microsoft-standard-WSL", see_wsl },
    { "WSL2", see_wsl },
    { "ZLUDA", see_zluda },
    { "WSL environment detected", see_wsl },
    { "Traceback (most recent call last)", see_traceback },
    { "  File \"", see_traceback },
    { "accelerate/accelerator.py", see_accelerate },
    { "fatal error: ", see_header },
    { "(most recent call first)", see_stack },
    { "  File \"", see_frame },
    { "rocblas_create_handle", see_call },
    { "rocblas_initialize", see_call },
    { "hipblasCreate", see_call },
    { "hipblasLtCreate", see_call },
    { "miopenCreate", see_call },
    { "hipsolverDnCreate", see_call },
    { "rocsparse_create_handle", see_call },
    { "rocfft_setup", see_call },
    { "Error:", see_exception },
    { "Exception:", see_exception },
    { "exception type:", see_type },
    { "exception message:", see_message },
    { "NotImplementedError", see_exception },
    { "StopIteration", see_exception },
    { "error:", see_error },
    { "Exception:", see_error },
    { "error", see_loud_error },
    { "error code", see_error },
    { "failed", see_error },
    { "fatal", see_error },
    { "error", see_guess },
    { "fail", see_guess },
    { "cannot ", see_guess },
    { "could not ", see_guess },
    { "unable to", see_guess },
    { "not found", see_guess },
    { "not support", see_guess },
    { "unsupported", see_guess },
    { "only support", see_guess },
    { "not available", see_guess },
    { "not compatible", see_guess },
    { "incompatible", see_guess },
    { "mismatch", see_guess },
    { "insufficient", see_guess },
    { "not enough", see_guess },
    { "exceed", see_guess },
    { "missing", see_guess },
    { "invalid", see_guess },
    { "timed out", see_guess },
    { "does not exist", see_guess },
    { "only compatible", see_guess },
    { "panic", see_guess },
    { "null pointer", see_guess },
    { "*ERROR*", see_guess },
};

const char *log_facts_text(size_t i)
{
    return i < ARRAY_LEN(extractors) ? extractors[i].text : NULL;
}

bool log_facts_spans_lines(size_t i)
{
    return extractors[i].see == log_see_oom || extractors[i].see == log_see_gfx;
}

struct log_find log_facts_see(struct log_facts *f, size_t i, const char *s, size_t n, size_t at)
{
    return extractors[i].see(f, s, n, at);
}
