/* SPDX-License-Identifier: Apache-2.0
 * Where the frozen weights of a job are: some of the blocks on the host, only one of the two experts on the device.  And
 * where the inputs of the blocks wait for the backward pass. */
#include "gpu/transfer.h"
#include "os/fault.h"
#include "toy_jobs.h"
#include <errno.h>

#define FIVE "lora.experts=each", "model.layers=5"

static uint64_t device_bytes(const char *key, const char *value)
{
    char pair[64];
    snprintf(pair, sizeof(pair), "%s=%s", key, value);
    struct train_plan p = plan(0, KEYS("lora.experts=each", "model.layers=12", "model.width=32", pair));
    return p.device_bytes;
}

/* ---- some of the blocks ---- */

static void some_blocks_on_the_host_change_no_bit(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    const char *all = train(KEYS(FIVE, "eval.every=2", "sample.every=2"));
    check_same_run(train(KEYS(FIVE, "eval.every=2", "sample.every=2", "memory.blocks=2")), all, 4);
    check_same_run(train(KEYS(FIVE, "memory.blocks=4", "train.recompute=blocks")),
                   train(KEYS(FIVE, "train.recompute=blocks")), 4);
    check_same_run(train(KEYS(FIVE, "memory.blocks=3", "model.quantize=int8")),
                   train(KEYS(FIVE, "model.quantize=int8")), 4);
}

static void more_blocks_on_the_host_need_less(void)
{
    uint64_t before = device_bytes("memory.blocks", "0");
    CHECK_INT(device_bytes("memory.blocks", "device"), before);
    if (!on_gpu()) {
        CHECK_INT(device_bytes("memory.blocks", "5"), before); /* it says so, and keeps them */
        return;
    }
    for (int i = 1; i <= 12; i++) {
        char n[8];
        snprintf(n, sizeof(n), "%d", i);
        uint64_t now = device_bytes("memory.blocks", n);
        CHECK(i < 3 || i == 7 ? now <= before : now < before); /* two windows; from the seventh on three */
        before = now;
    }
    CHECK_INT(device_bytes("memory.blocks", "host"), before);
}

/* Each budget gets as few as it needs, and keeps to it. */
static void only_as_many_blocks_as_needed(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    static const char *const pairs[] = { "lora.experts=each", "model.layers=12", "model.width=32",
                                         "train.steps=1",     "train.batch=1",   NULL };
    struct train_plan whole = plan(0, pairs);
    int found = 0;
    for (uint64_t budget = whole.device_bytes; budget > whole.device_bytes / 2; budget -= budget / 16) {
        struct train_plan p = plan(budget, pairs);
        if (p.lack.code || !p.streamed || p.streamed == p.blocks)
            continue;
        const char *fixed[8];
        char fewer[32];
        memcpy(fixed, pairs, sizeof(pairs));
        snprintf(fewer, sizeof(fewer), "memory.blocks=%d", (int)p.streamed - 1);
        fixed[5] = fewer;
        fixed[6] = p.recompute ? "train.recompute=blocks" : NULL;
        fixed[7] = NULL;
        CHECK(p.optim_on_host || plan(0, fixed).device_bytes + budget / 50 > budget);
        CHECK(p.device_bytes <= budget);
        const char *dir = new_dir();
        if (++found % 2 && try_to_train(dir, false, budget, pairs))
            CHECK_FAIL_("%s", err.msg);
        CHECK(!(found % 2) || last_logged(dir, "mem_peak_bytes") <= (double)budget);
    }
    CHECK(found >= 2);
}

static void too_many_blocks_are_refused(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    CHECK_INT(try_to_train(new_dir(), false, 0, KEYS("memory.blocks=4")), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK(strstr(err.msg, "memory.blocks"));
}

/* ---- one of the two experts ---- */

static bool log_has(const char *dir, const char *word)
{
    size_t size;
    char *log = read_all(in(dir, "log.jsonl"), &size);
    bool found = strstr(log, word) != NULL;
    free(log);
    return found;
}

static const char *const places[] = { "memory.idle=host", "memory.idle=file" };

static void experts_that_take_turns_change_no_bit(void)
{
    static const char *const jobs[][5] = {
        { FIVE, "eval.every=2", "sample.every=2" },
        { "lora.experts=shared", "model.quantize=int8", "model.switch_every=2", "eval.every=1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        const char *both = train(jobs[i]);
        CHECK(!log_has(both, "expert-switch"));
        for (size_t k = on_gpu() ? 0 : 1; k < ARRAY_LEN(places); k++) {
            const char *pairs[6] = { places[k] };
            memcpy(pairs + 1, jobs[i], sizeof(jobs[i]));
            const char *dir = train(pairs);
            check_same_run(dir, both, 4);
            double a[MOST_STEPS], b[MOST_STEPS];
            size_t n = logged(dir, "val_loss", a);
            CHECK(n && n == logged(both, "val_loss", b) && !memcmp(a, b, n * sizeof(*a)));
            CHECK(log_has(dir, "expert-switch"));
        }
    }
}

static void streamed_and_idle_go_together(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    const char *both = train(KEYS(FIVE));
    check_same_run(train(KEYS(FIVE, "memory.idle=host", "memory.blocks=2")), both, 4);
    check_same_run(train(KEYS(FIVE, "memory.idle=file", "memory.blocks=2")), both, 4);
    check_same_run(train(KEYS(FIVE, "memory.idle=host", "memory.blocks=host")), both, 4);
}

/* Resumed in the middle of one expert's steps. */
static void a_run_that_takes_turns_resumes(void)
{
    const char *const *pairs = KEYS(FIVE, "model.switch_every=3", "train.steps=6", "memory.idle=file");
    const char *const *half = KEYS(FIVE, "model.switch_every=3", "train.steps=4", "memory.idle=file");
    const char *whole = train(KEYS(FIVE, "model.switch_every=3", "train.steps=6")), *dir = new_dir();
    CHECK(!try_to_train(dir, false, 0, half));
    CHECK(!try_to_train(dir, true, 0, pairs));
    check_same_run(dir, whole, 6);
}

static void the_plan_counts_one_expert(void)
{
    for (size_t k = on_gpu() ? 0 : 1; k < ARRAY_LEN(places); k++) {
        const char *pairs[] = { "model.layers=6", "model.width=64", places[k],       "train.steps=2",
                                "train.batch=1",  "sample.every=2", "model.ffn=256", NULL };
        struct train_plan p = plan(0, pairs), both;
        pairs[2] = "memory.idle=device";
        both = plan(0, pairs);
        CHECK(p.device_bytes < both.device_bytes * 7 / 10);
        CHECK(k ? p.host_bytes == both.host_bytes : p.host_bytes > both.host_bytes);
        CHECK_STR(p.idle, k ? "file" : "host");
        pairs[2] = places[k];
        check_near(places[k], (double)p.device_bytes, last_logged(train(pairs), "mem_peak_bytes"));
    }
}

/* If an expert has many steps in a row, it is brought for them; if not, the blocks are streamed. */
static void the_cheaper_way_is_chosen(void)
{
    const char *pairs[] = { "model.layers=12",
                            "model.width=64",
                            "model.ffn=256",
                            "train.batch=1",
                            "train.steps=1",
                            "model.switch_every=100",
                            NULL };
    struct train_plan p = plan(0, pairs);
    uint64_t budget = (p.device_bytes + (on_gpu() ? 0 : p.host_bytes)) * 7 / 10;
    p = plan(budget, pairs);
    CHECK(!p.lack.code && !p.streamed);
    CHECK_STR(p.idle, on_gpu() ? "host" : "file");
    const char *dir = new_dir();
    if (try_to_train(dir, false, budget, pairs))
        CHECK_FAIL_("%s", err.msg);
    pairs[5] = "model.switch_every=1";
    p = plan(budget, pairs);
    CHECK(!p.lack.code);
    CHECK_STR(p.idle, on_gpu() ? "device" : "file"); /* the CPU has no other way */
    CHECK_INT(p.streamed > 0, on_gpu());
}

/* Up to the first step. */
static bool open_job(struct setup *s, const char *const *pairs)
{
    open_setup(s, new_dir(), pairs);
    job_set_start(&s->j);
    bool opened = !job_resolve(&s->j, &err) && !job_open_task(&s->j, &err) && !job_fit(&s->j, &err) &&
                  !job_load(&s->j, NULL, &err) && !job_open_work(&s->j, &err);
    if (!opened)
        CHECK_FAIL_("%s", err.msg);
    return opened;
}

static int run_out_of_memory(struct job *j)
{
    struct cairn_error why = { 0 };
    cairn_fail(&why, CAIRN_ENOMEM, "a test");
    return job_fallback(j, &why, &err);
}

/* In the middle of a run, with and without host memory for the copies. */
static void memory_that_runs_out_sends_the_idle_one_away(void)
{
    struct setup s;
    for (int n = 0; n <= (on_gpu() ? 24 : 0); n++) {
        setenv("CAIRN_FAKE_HIP", "pinned=1", 1);
        if (open_job(&s, KEYS(FIVE, "model.switch_every=100", "train.recompute=blocks"))) {
            struct job *j = &s.j;
            const struct model *m = j->task->model;
            double seconds;
            if (n)
                fault_arm(n, ENOMEM);
            int r = run_out_of_memory(j);
            fault_disarm();
            if (!r && m->layout.idle != MODEL_IDLE_DEVICE) {
                CHECK_INT(m->layout.idle, on_gpu() ? MODEL_IDLE_HOST : MODEL_IDLE_FILE);
                CHECK(!m->bases[1].weights->block_memory[0] && m->bases[0].weights->block_memory[0]);
                check_near("one expert", (double)j->memory.plan.device[MEMORY_WEIGHTS],
                           (double)j->memory.used_bytes[MEMORY_WEIGHTS]);
                CHECK(!task_use_base(j->task, 1, &seconds, &err));
                CHECK(m->bases[1].weights->block_memory[0] && !m->bases[0].weights->block_memory[0]);
                CHECK(!task_use_base(j->task, 0, &seconds, &err));
            } else {
                CHECK(n);
                CHECK(j->memory.blocks_pinned || r);
                CHECK(m->bases[1].weights->block_memory[0] && m->bases[0].weights->block_memory[0]);
                CHECK_INT(j->state.layout.weights.idle, MODEL_IDLE_DEVICE);
            }
        }
        close_setup(&s);
        unsetenv("CAIRN_FAKE_HIP");
    }
}

/* An expert that could not be brought is brought again; what was half copied is never used. */
static void a_failed_switch_is_done_again(void)
{
    struct setup s;
    const volatile sig_atomic_t stop = 1;
    if (!on_gpu())
        SKIP("the fake HIP fails when told");
    if (open_job(&s, KEYS(FIVE, "memory.idle=host"))) {
        const struct model *m = s.j.task->model;
        size_t bytes = m->bases[1].blocks->numbers * sizeof(float);
        float *got = malloc(bytes), *want = malloc(bytes);
        double seconds;
        CHECK(!task_use_base(s.j.task, 0, &seconds, &err) && seconds > 0);
        CHECK(!task_use_base(s.j.task, 0, &seconds, &err) && seconds <= 0);
        transfer_watch(gpu_transfer(s.o.g), NULL, NULL, &stop);
        CHECK_INT(task_use_base(s.j.task, 1, &seconds, &err), -1);
        transfer_watch(gpu_transfer(s.o.g), NULL, NULL, NULL);
        setenv("CAIRN_FAKE_HIP", "fail=hipMemcpyHtoDAsync:1:1", 1); /* a copy that fails is repeated */
        CHECK(!task_use_base(s.j.task, 1, &seconds, &err) && seconds > 0);
        unsetenv("CAIRN_FAKE_HIP");
        for (size_t i = 0; i < m->bases[1].blocks->pieces; i++) {
            CHECK(!gpu_download(s.o.g, NULL, got, m->bases[1].weights->block_memory[i], bytes, &err));
            CHECK(!gpu_wait(s.o.g, NULL, &err));
            const struct param *first = &m->bases[1].params->list[i * TOY_LINEARS];
            CHECK(!weights_get(m->bases[1].weights, first, want, &err));
            CHECK(!memcmp(got, want, first->rows * first->columns * sizeof(*want)));
        }
        free(got);
        free(want);
    }
    close_setup(&s);
}

static void low_vram_keeps_one_expert(void)
{
    struct train_plan p = plan(0, KEYS(FIVE, "memory.low_vram=true"));
    CHECK_STR(p.idle, on_gpu() ? "device" : "file"); /* on a GPU all blocks are streamed */
    CHECK_INT(p.streamed, on_gpu() ? 5 : 0);
    CHECK_INT(p.inputs_on_host, on_gpu());
    p = plan(0, KEYS(FIVE, "memory.low_vram=true", "memory.idle=device"));
    CHECK_STR(p.idle, "device");
}

/* More blocks go to the host while it runs; those that the configuration wants there stay when the others are back. */
static void some_blocks_come_back(void)
{
    struct setup s;
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    if (open_job(
            &s, KEYS("lora.experts=each", "model.layers=12", "memory.blocks=3", "memory.optimizer=device"))) {
        struct job *j = &s.j;
        const struct job_layout *l = &j->state.layout;
        CHECK_INT(l->weights.streamed, 3);
        CHECK(!run_out_of_memory(j));
        CHECK(l->weights.streamed > 3 && l->weights.streamed < 12);
        CHECK(!run_out_of_memory(j));
        check_near("more on the host", (double)memory_plan_sum(j->memory.plan.device),
                   (double)gpu_allocated(s.o.g).bytes);
        CHECK_INT(j->memory.evicted.times, 1);
        CHECK(!job_restore(j, &err));
        CHECK_INT(l->weights.streamed, 3);
        check_near("back", (double)memory_plan_sum(j->memory.plan.device),
                   (double)gpu_allocated(s.o.g).bytes);
    }
    close_setup(&s);
}

/* ---- the inputs of the blocks ---- */

static void inputs_on_the_host_change_no_bit(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    static const char *const jobs[][6] = {
        { FIVE, "eval.every=2", "train.accumulate=2" },
        { FIVE, "train.recompute=blocks", "lora.dropout=0.1", "memory.blocks=2" },
        { "lora.experts=shared", "model.layers=1", "train.batch=1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        const char *pairs[7] = { "memory.inputs=host" };
        memcpy(pairs + 1, jobs[i], sizeof(jobs[i]));
        const char *dir = train(pairs), *near = train(jobs[i]);
        check_same_run(dir, near, 4);
        CHECK(last_logged(dir, "mem_host_bytes") > 0);
        double a[MOST_STEPS], b[MOST_STEPS];
        size_t n = logged(dir, "val_loss", a);
        CHECK(n == logged(near, "val_loss", b) && !memcmp(a, b, n * sizeof(*a)));
    }
}

static void inputs_give_way_after_the_blocks(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    const char *const pairs[] = { "model.layers=12", "data.large=64",          "train.batch=1",
                                  "train.steps=1",   "train.recompute=blocks", NULL };
    struct train_plan p = plan(0, pairs);
    bool tried = false;
    for (uint64_t budget = p.device_bytes; !p.lack.code && !tried; budget -= budget / 20) {
        p = plan(budget, pairs);
        if (!p.inputs_on_host || p.lack.code)
            continue;
        tried = true;
        const char *dir = new_dir();
        if (try_to_train(dir, false, budget, pairs))
            CHECK_FAIL_("%s", err.msg);
        CHECK(last_logged(dir, "mem_peak_bytes") <= (double)budget);
        check_near("with inputs on the host", (double)p.device_bytes, last_logged(dir, "mem_peak_bytes"));
    }
    CHECK(tried);
}

/* The workspace is opened without them; the copies that fail are told or repeated. */
static void inputs_without_host_memory_stay(void)
{
    int refused = 0;
    struct setup s;
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    setenv("CAIRN_FAKE_HIP", "pinned=1", 1);
    for (int n = 1; n <= 40; n++) {
        if (open_job(&s, KEYS(FIVE, "memory.inputs=host"))) {
            struct job *j = &s.j;
            CHECK(j->state.layout.inputs_on_host && !j->memory.inputs_pinned);
            fault_arm(n, ENOMEM);
            int r = job_open_work(j, &err);
            fault_disarm();
            CHECK(r || j->memory.inputs_pinned != j->state.layout.inputs_on_host);
            refused += !r && j->memory.inputs_pinned;
            if (!r)
                check_near("activations", (double)j->memory.plan.device[MEMORY_ACTIVATIONS],
                           (double)j->memory.used_bytes[MEMORY_ACTIVATIONS]);
        }
        close_setup(&s);
    }
    unsetenv("CAIRN_FAKE_HIP");
    CHECK(refused >= 4);
}

static void a_copy_of_inputs_that_fails_is_repeated(void)
{
    const char *const *pairs = KEYS("memory.inputs=host", "train.steps=2");
    if (!on_gpu())
        SKIP("the fake HIP fails when told");
    const char *whole = train(pairs);
    for (int up = 0; up < 2; up++)
        for (int n = 1; n < 30; n += 7) {
            char told[80];
            const char *dir = new_dir();
            snprintf(told, sizeof(told), "fail=hipMemcpy%sAsync:%d:1,after=gelu:1", up ? "HtoD" : "DtoH", n);
            setenv("CAIRN_FAKE_HIP", told, 1);
            int r = try_to_train(dir, false, 0, pairs);
            unsetenv("CAIRN_FAKE_HIP");
            if (r)
                CHECK_INT(err.code, CAIRN_EDEVICE); /* a copy outside of this */
            else
                check_same_run(dir, whole, 2);
        }
}

static void run_all(void)
{
    RUN(some_blocks_on_the_host_change_no_bit);
    RUN(more_blocks_on_the_host_need_less);
    RUN(only_as_many_blocks_as_needed);
    RUN(too_many_blocks_are_refused);
    RUN(experts_that_take_turns_change_no_bit);
    RUN(streamed_and_idle_go_together);
    RUN(a_run_that_takes_turns_resumes);
    RUN(the_plan_counts_one_expert);
    RUN(the_cheaper_way_is_chosen);
    RUN(memory_that_runs_out_sends_the_idle_one_away);
    RUN(a_failed_switch_is_done_again);
    RUN(low_vram_keeps_one_expert);
    RUN(some_blocks_come_back);
    RUN(inputs_on_the_host_change_no_bit);
    RUN(inputs_give_way_after_the_blocks);
    RUN(inputs_without_host_memory_stay);
    RUN(a_copy_of_inputs_that_fails_is_repeated);
}

int main(int argc, char **argv)
{
    return run_in_folder(argc, argv, run_all);
}
