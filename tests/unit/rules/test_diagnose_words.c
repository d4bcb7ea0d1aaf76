/* SPDX-License-Identifier: Apache-2.0
 * What is said in other words: silence, capitals, other languages, and the noise of healthy runs. */
#include "rules/diagnose.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "check.h"

struct row {
    const char *log;
    int64_t exit_code;               /* -1: not known */
    const char *gfx, *want, *second; /* second NULL: whatever it is */
    bool hung;
};

static void check_row(const struct row *r)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct diagnosis out;
    struct diagnoser *d = NULL;
    if (diagnoser_new(&d, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    const struct diagnose_context ctx = { .gfx = r->gfx, .exit_code = r->exit_code, .hung = r->hung };
    diagnoser_feed(d, r->log, strlen(r->log));
    diagnoser_finish(d, &ctx, &a, &out);
    diagnoser_free(d);
    if (!str_eq(out.class_id, r->want))
        CHECK_FAIL_("\"%.70s\": %s, not %s", r->log, out.class_id, r->want);
    if (r->second && (!out.n_also || !str_eq(out.also[0].class_id, r->second)))
        CHECK_FAIL_("\"%.70s\": not %s, but in second place %s", r->log, r->second,
                    out.n_also ? out.also[0].class_id : "nothing");
    CHECK(out.severity == DIAGNOSE_NONE || !str_eq(out.class_id, "no-failure"));
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
        { "got prompt\nRequested to load AutoencoderKL\n", -1, NULL, "unknown", "hang", false },
        { "Loading checkpoint shards:   0%|          | 0/4 [00:00<?, ?it/s]", -1, "gfx1151", "unknown",
          "hang", false },
        { "100%|####| 20/20 [00:41<00:00,  2.07s/it]\nRequested to load AutoencodingEngine\n", -1, NULL,
          "unknown", "hang", false },
        { "Compiling the model with torch.compile\n", -1, NULL, "unknown", "hang", false },
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
        FINE("      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
             "     1/1000      6.73G      1.081     0.4706      1.084         10        640\n"),
        FINE("got prompt\nRequested to load Flux\nPrompt executed in 18.14 seconds\n"),
        FINE("loading model\nmodel saved to out/last.safetensors\n"),
        FINE("{'train_runtime': 91.2, 'train_loss': 1.75}\n"),
        FINE("Test Error: \n Accuracy: 37.4%, Avg loss: 2.171335 \n\nDone!\n"),
        FINE("kernel: kfd kfd: amdgpu: added device 1002:744c\nkernel: [drm] Initialized amdgpu 3.64.0\n"),
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

int main(void)
{
    RUN(silence_is_not_success);
    RUN(a_log_that_ends_in_loading_may_be_a_hang);
    RUN(steps_and_ends_speak_for_a_run);
    RUN(case_does_not_count);
    RUN(an_override_that_cannot_work_is_named);
    return check_done();
}
