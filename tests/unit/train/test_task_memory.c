/* SPDX-License-Identifier: Apache-2.0
 * A second kind of task plans its memory, and trains where there is little of it. */
#include "os/fault.h"
#include "toy_jobs.h"
#include <errno.h>

static const char *const memory_jobs[][6] = {
    { "lora.experts=shared", "model.width=64" },
    { "lora.experts=each", "model.width=64", "train.dtype=bf16" },
    { "lora.experts=each", "model.width=64", "model.quantize=int8", "train.optimizer=lion" },
    { "lora.experts=each", "model.width=64", "memory.low_vram=true", "lora.dropout=0.1" },
};

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

/* Each part by itself, and that their sum is all there is. */
static void the_parts_of_the_plan_are_what_is_taken(void)
{
    for (size_t i = 0; i < ARRAY_LEN(memory_jobs); i++) {
        struct setup s;
        bool opened = open_job(&s, memory_jobs[i]);
        const struct job_memory *m = &s.j.memory;
        for (int part = 0; part < MEMORY_PARTS && opened; part++)
            if (m->used_bytes[part])
                check_near(memory_part_names[part], (double)m->plan.device[part],
                           (double)m->used_bytes[part]);
        if (opened)
            check_near("all", (double)memory_plan_sum(m->plan.device), (double)gpu_allocated(s.o.g).bytes);
        close_setup(&s);
    }
}

/* With samples, whose helper network counts. */
static void the_plan_is_the_peak(void)
{
    for (size_t i = 0; i < ARRAY_LEN(memory_jobs); i++) {
        const char *pairs[9] = { "sample.every=2", "eval.every=2", "train.steps=2" };
        memcpy(pairs + 3, memory_jobs[i], sizeof(memory_jobs[i]));
        struct train_plan p = plan(0, pairs);
        uint64_t sum = 0;
        bool samples = false;
        for (size_t k = 0; k < p.n_parts; k++) {
            sum += p.parts[k].device_bytes;
            samples = samples || (!strcmp(p.parts[k].name, "samples") && p.parts[k].device_bytes);
        }
        CHECK(samples && sum == p.device_bytes && !p.lack.code);
        check_near(pairs[3], (double)p.device_bytes, last_logged(train(pairs), "mem_peak_bytes"));
    }
}

/* The memory of a step serves the sample too: the peak is the larger of both, whichever it is. */
static void samples_alone_take_turns_with_steps(void)
{
    static const char *const kinds[][5] = {
        { "train.batch=4", "data.large=16", "model.width=32" }, /* the step is larger */
        { "train.batch=1", "data.large=2", "data.small=1", "data.channels=4000" },
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *pairs[9] = { "sample.every=1", "eval.every=1", "train.steps=2", "sample.alone=false" };
        memcpy(pairs + 4, kinds[i], sizeof(kinds[i]));
        struct train_plan both = plan(0, pairs);
        const char *beside = train(pairs);
        pairs[3] = "sample.alone=true";
        struct train_plan p = plan(0, pairs);
        CHECK(p.device_bytes < both.device_bytes);
        const char *dir = train(pairs);
        if (on_gpu() || !i) /* the CPU packs less for so few rows than is planned */
            check_near(kinds[i][0], (double)p.device_bytes, last_logged(dir, "mem_peak_bytes"));
        check_same_run(dir, beside, 2);
        CHECK(same_file(in(dir, "samples/step-2-0.raw"), in(beside, "samples/step-2-0.raw")));
    }
}

/* Less and less memory: the layouts that are found, each of which is tried. */
static void less_memory_makes_the_same_losses(void)
{
    const char *const *pairs = KEYS("lora.experts=each", "lora.rank=64", "model.layers=5", "model.width=32",
                                    "model.ffn=64", "data.large=16", "train.batch=4", "train.steps=2");
    struct train_plan p = plan(0, pairs), before = p;
    const char *whole = train(pairs);
    bool blocks = false, optim = false, recompute = false, micro = false;
    uint64_t budget = (p.device_bytes + (on_gpu() ? 0 : p.host_bytes)) * 103 / 100;
    for (; !p.lack.code; budget -= budget / 40, before = p) {
        p = plan(budget, pairs);
        if (p.lack.code || (p.micro == before.micro && p.n_fallbacks == before.n_fallbacks))
            continue;
        const char *dir = new_dir();
        if (try_to_train(dir, false, budget, pairs))
            CHECK_FAIL_("%s", err.msg);
        if (!(far(dir, whole) < 1e-3))
            CHECK_FAIL_("%s: losses differ by %g", p.fallbacks[p.n_fallbacks - 1], far(dir, whole));
        CHECK(!on_gpu() || last_logged(dir, "mem_peak_bytes") <= (double)budget);
        blocks = blocks || p.streamed;
        optim = optim || p.optim_on_host;
        recompute = recompute || p.recompute;
        micro = micro || p.micro < 4;
    }
    CHECK_INT(p.lack.code, CAIRN_ENOMEM);
    CHECK(recompute && micro);
    CHECK_INT(blocks, on_gpu());
    CHECK_INT(optim, on_gpu());
    CHECK_INT(try_to_train(new_dir(), false, budget, pairs), -1);
    CHECK_INT(err.code, CAIRN_ENOMEM);
}

static void what_is_offloaded_changes_no_bit(void)
{
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    const char *one = train(KEYS("lora.experts=shared", "model.quantize=int8"));
    check_same_run(train(KEYS("lora.experts=shared", "model.quantize=int8", "memory.low_vram=true")), one, 4);
    const char *two = train(KEYS("lora.experts=each"));
    check_same_run(train(KEYS("lora.experts=each", "memory.blocks=host")), two, 4);
    check_same_run(train(KEYS("lora.experts=each", "memory.optimizer=host")), two, 4);
}

/* Whichever it is, something gives way.  Only the data cannot be prepared with less. */
static void every_allocation_may_fail(void)
{
    const char *const *pairs = KEYS("lora.experts=each", "train.steps=2", "checkpoint.every=1",
                                    "eval.every=1", "sample.every=1", "model.layers=2");
    int noticed = 0, refused = 0, quiet = 0;
    if (!on_gpu())
        SKIP("the fake HIP fails when told");
    const char *whole = train(pairs);
    setenv("CAIRN_POOL", "direct", 1);
    for (int n = 1; n < 200 && quiet < 3; n += 1 + n / 8) {
        char told[64];
        const char *dir = new_dir();
        snprintf(told, sizeof(told), "fail=hipMalloc:%d:2", n);
        setenv("CAIRN_FAKE_HIP", told, 1);
        int r = try_to_train(dir, false, 0, pairs);
        unsetenv("CAIRN_FAKE_HIP");
        size_t size;
        char *log = read_all(in(dir, "log.jsonl"), &size);
        bool oom = strstr(log, "\"oom\"");
        free(log);
        noticed += oom;
        refused += r != 0;
        quiet = r || oom ? 0 : quiet + 1;
        if (r)
            CHECK_INT(err.code, CAIRN_ENOMEM);
        else if (!(far(dir, whole) < 1e-3))
            CHECK_FAIL_("allocation %d: losses differ by %g", n, far(dir, whole));
    }
    unsetenv("CAIRN_POOL");
    printf("# %d noticed, %d refused\n", noticed, refused);
    CHECK(noticed >= 5 && refused <= 5);
}

/* ---- what moves ---- */

static const char *const large_sets[] = { "lora.experts=each",
                                          "lora.rank=64",
                                          "model.layers=5",
                                          "model.width=32",
                                          "model.ffn=64",
                                          "train.steps=2",
                                          NULL };

static int optimizers_on_host(const struct job *j)
{
    return optim_is_on_host(j->optim[0]) + optim_is_on_host(j->optim[1]);
}

static int bases_on_host(const struct job *j)
{
    const struct model_base *b = j->task->model->bases;
    return (b[0].weights->offloaded != NULL) + (b[1].weights->offloaded != NULL);
}

static int run_out_of_memory(struct job *j)
{
    struct cairn_error why = { 0 };
    cairn_fail(&why, CAIRN_ENOMEM, "a test");
    return job_fallback(j, &why, &err);
}

static void both_sets_move_and_come_back(void)
{
    struct setup s;
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    for (int blocks = 0; blocks < 2; blocks++) {
        const char *pairs[8] = { blocks ? "memory.optimizer=device" : "memory.blocks=device" };
        memcpy(pairs + 1, large_sets, sizeof(large_sets));
        if (open_job(&s, pairs)) {
            struct job *j = &s.j;
            CHECK(!run_out_of_memory(j));
            CHECK_INT(optimizers_on_host(j), blocks ? 0 : 2);
            CHECK_INT(bases_on_host(j), blocks ? 2 : 0);
            CHECK(j->state.layout.optim_on_host == !blocks && !j->state.layout.weights.streamed == !blocks);
            check_near("offloaded", (double)memory_plan_sum(j->memory.plan.device),
                       (double)gpu_allocated(s.o.g).bytes);
            CHECK(!job_restore(j, &err));
            CHECK_INT(optimizers_on_host(j) + bases_on_host(j), 0);
            CHECK(!j->state.layout.optim_on_host && !j->state.layout.weights.streamed);
            check_near("back", (double)memory_plan_sum(j->memory.plan.device),
                       (double)gpu_allocated(s.o.g).bytes);
        }
        close_setup(&s);
    }
}

/* One set may have come back when the device has no memory for the other: it goes to the host again, and both come back
 * later. */
static void half_a_return_is_taken_back(void)
{
    struct setup s;
    bool failed = false;
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    setenv("CAIRN_POOL", "direct", 1);
    for (int blocks = 0; blocks < 2; blocks++)
        for (int n = 1; n <= 5; n++) {
            const char *pairs[8] = { blocks ? "memory.optimizer=device" : "memory.blocks=device" };
            char told[64];
            memcpy(pairs + 1, large_sets, sizeof(large_sets));
            snprintf(told, sizeof(told), "fail=hipMalloc:%d:2", n);
            if (open_job(&s, pairs)) {
                struct job *j = &s.j;
                CHECK(!run_out_of_memory(j));
                setenv("CAIRN_FAKE_HIP", told, 1);
                CHECK(!job_restore(j, &err));
                unsetenv("CAIRN_FAKE_HIP");
                int moved = optimizers_on_host(j) + bases_on_host(j);
                failed = failed || moved;
                CHECK(moved == 0 || moved == 2);
                CHECK_INT(j->state.layout.optim_on_host || j->state.layout.weights.streamed, moved == 2);
                CHECK(!job_restore(j, &err));
                CHECK_INT(optimizers_on_host(j) + bases_on_host(j), 0);
            }
            close_setup(&s);
        }
    unsetenv("CAIRN_POOL");
    CHECK(failed);
}

/* The host has no memory for one of the two: neither stays there. */
static void a_host_without_memory_gets_neither(void)
{
    struct setup s;
    int refused = 0;
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    setenv("CAIRN_FAKE_HIP", "pinned=1", 1);
    for (int blocks = 0; blocks < 2; blocks++)
        for (int n = 12; n <= 33; n++) { /* the calls in which memory is taken are among these */
            const char *pairs[8] = { blocks ? "memory.optimizer=device" : "memory.blocks=device" };
            memcpy(pairs + 1, large_sets, sizeof(large_sets));
            if (open_job(&s, pairs)) {
                struct job *j = &s.j;
                fault_arm(n, ENOMEM);
                int r = run_out_of_memory(j);
                fault_disarm();
                int moved = optimizers_on_host(j) + bases_on_host(j);
                bool pinned = blocks ? j->memory.blocks_pinned : j->memory.optim_pinned;
                CHECK(pinned ? moved == 0 : moved == 2);
                refused += pinned && !r; /* else the device failed, which ends a run */
            }
            close_setup(&s);
        }
    unsetenv("CAIRN_FAKE_HIP");
    CHECK(refused >= 2);
}

/* Offloaded from the start, where the host turns out to have no memory: all of it stays on the device. */
static void a_start_without_host_memory_stays_on_the_device(void)
{
    int refused = 0;
    if (!on_gpu())
        SKIP("the CPU has nowhere to offload to");
    const char *pairs[8] = { "memory.optimizer=host", "memory.blocks=host" };
    memcpy(pairs + 2, large_sets, 5 * sizeof(*large_sets));
    setenv("CAIRN_FAKE_HIP", "pinned=1", 1);
    for (int n = 10; n <= 70; n++) { /* the two bases, then the two optimizers */
        struct setup s;
        open_setup(&s, new_dir(), pairs);
        struct job *j = &s.j;
        job_set_start(j);
        CHECK(!job_resolve(j, &err) && !job_open_task(j, &err) && !job_fit(j, &err));
        fault_arm(n, ENOMEM);
        int r = job_load(j, NULL, &err);
        fault_disarm();
        if (!r) {
            int moved = optimizers_on_host(j) + bases_on_host(j);
            CHECK(moved == 4 || (moved == 0 && j->memory.optim_pinned && j->memory.blocks_pinned));
            refused += moved == 0;
        }
        close_setup(&s);
    }
    unsetenv("CAIRN_FAKE_HIP");
    CHECK(refused >= 4);
}

static void run_all(void)
{
    RUN(the_parts_of_the_plan_are_what_is_taken);
    RUN(the_plan_is_the_peak);
    RUN(samples_alone_take_turns_with_steps);
    RUN(less_memory_makes_the_same_losses);
    RUN(what_is_offloaded_changes_no_bit);
    RUN(both_sets_move_and_come_back);
    RUN(half_a_return_is_taken_back);
    RUN(a_host_without_memory_gets_neither);
    RUN(a_start_without_host_memory_stays_on_the_device);
    RUN(every_allocation_may_fail);
}

int main(int argc, char **argv)
{
    return run_in_folder(argc, argv, run_all);
}
