/* SPDX-License-Identifier: Apache-2.0
 * The diagnosis beside its accuracy: context, ladders, traps, and the tables themselves. */
#include "rules/diagnose.h"

#include "base/cleanup.h"
#include "base/match.h"
#include "base/str.h"
#include "asking.h"
#include "check.h"
#include "machine.h"
#include "rules/issue_rules.h"

static const struct diagnose_context nothing = { .exit_code = -1 };

/* The set that holds name, or NULL. */
static const char *set_by(const struct diagnosis *d, const char *name, size_t *rung)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        for (size_t k = 0; k < d->fixes[i].n_set; k++)
            if (str_eq(d->fixes[i].set[k].name, name)) {
                *rung = i;
                return d->fixes[i].set[k].value;
            }
    return NULL;
}

static bool has_unset(const struct diagnosis *d, const char *name)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        for (size_t k = 0; k < d->fixes[i].n_unset; k++)
            if (str_eq(d->fixes[i].unset[k], name))
                return true;
    return false;
}

#define FAULT \
    "Memory access fault by GPU node-1 on address 0x1e4000. Reason: Page not present or supervisor privilege.\n"
#define OOM(want, total, free, used, unused)                                                                \
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate " want                                    \
    " GiB. GPU 0 has a total capacity of " total " GiB of which " free                                      \
    " GiB is free. Of the allocated memory " used " GiB is allocated by PyTorch, and " unused               \
    " GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting " \
    "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"

static void the_supervisor_knows_more(void)
{
    check_class("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 143, .hung = true }, "hang");
    check_class("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 137, .memory_guard = true },
                "host-oom");
    check_class("GPU reset begin!\n", (struct diagnose_context){ .exit_code = 143, .hung = true },
                "gpu-reset");
    check_class("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 130 }, "no-failure");
}

static void the_environment_beats_the_message(void)
{
    static const char *const bad[] = { "HSA_OVERRIDE_GFX_VERSION=gfx1031", NULL };
    static const char *const right[] = { "HSA_OVERRIDE_GFX_VERSION=10.3.0", NULL };
    check_class(FAULT, (struct diagnose_context){ .exit_code = 134, .gfx = "gfx1031", .env = bad },
                "hsa-override-bad");
    check_class(FAULT, (struct diagnose_context){ .exit_code = 134, .gfx = "gfx1031", .env = right },
                "gpu-memory-fault");
    check_class(FAULT, (struct diagnose_context){ .exit_code = 134, .gfx = "gfx1100", .env = right },
                "hsa-override-bad");
}

static void root_gets_another_answer(void)
{
    check_class("torch 2.9.1+rocm6.4\n$ python -c 'print(torch.cuda.is_available())'\nFalse\n", nothing,
                "no-device");
    check_class("torch 2.9.1+rocm6.4\n$ python -c 'print(torch.cuda.is_available())'\nFalse\n"
                "$ sudo python -c 'print(torch.cuda.is_available())'\nTrue\n",
                nothing, "device-permission");
}

static void frames_of_a_stack_tell_whose_gpu_it_is(void)
{
    static const struct {
        const char *frame, *want;
    } rows[] = {
        { "/usr/lib/libcuda.so.1(+0x2a5c4b)[0x7f0e2c2a5c4b]\n", "not-rocm" },
        { "#0  0x0000148ff604fff7 in ?? () from /lib64/libcuda.so.1\n", "not-rocm" },
        { "frame #1: f() + 0xa0 (0x7f8d3a in /opt/torch/lib/libc10_cuda.so)\n", "not-rocm" },
        { "frame #1: f() + 0xa0 (0x7f8d3a in /opt/torch/lib/libc10_hip.so)\n", "native-crash" },
        { "libcuda.so.1: cannot open shared object file\n", "torch-not-rocm" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char log[256];
        snprintf(log, sizeof(log),
                 "Fatal Python error: Segmentation fault\n%sSegmentation fault (core dumped)\n",
                 rows[i].frame);
        check_class(log, (struct diagnose_context){ .exit_code = 139 }, rows[i].want);
    }
}

static void out_of_memory_is_in_the_figures(void)
{
    check_class(OOM("2.00", "24.00", "0.50", "23.00", "0.20"), nothing, "oom-vram");
    check_class(OOM("2.00", "24.00", "0.50", "15.00", "8.00"), nothing, "oom-fragmentation");
    check_class(OOM("2.00", "62.00", "0.50", "60.00", "0.20"),
                (struct diagnose_context){ .exit_code = 1, .gfx = "gfx1151" }, "oom-unified-limit");
    check_class(OOM("0.10", "0.50", "0.05", "0.30", "0.01"),
                (struct diagnose_context){ .exit_code = 1, .gfx = "gfx1100+gfx1036" }, "wrong-gpu");
    ANSWER a = ask(OOM("1.00", "24.00", "0.00", "4.00", "0.00"), nothing);
    CHECK_HAS(a.d.cause, "20 GiB of it");
}

static bool has_text(const struct diagnosis *d, const char *text)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        if (strstr(d->fixes[i].text, text))
            return true;
    return strstr(d->cause, text) != NULL;
}

/* What cairn did itself is not the kernel's doing. */
static void cairns_own_guards_are_named(void)
{
    struct diagnose_context ctx = { .exit_code = 1, .gfx = "gfx1151" };
    const char *log = OOM("2.00", "62.00", "0.50", "60.00", "0.20");
    ANSWER limit = ask(log, ctx);
    CHECK(has_text(&limit.d, "lets it map") && has_text(&limit.d, "pages_limit") &&
          !has_text(&limit.d, "guard"));
    ctx.refused = 2;
    ctx.refused_bytes = (uint64_t)4 << 30;
    ANSWER refused = ask(log, ctx);
    CHECK_STR(refused.d.class_id, "oom-unified-limit");
    CHECK_HAS(refused.d.cause, "guard refused 2 allocations (4 GiB in all)");
    CHECK(has_text(&refused.d, "--preload=record") && !has_text(&refused.d, "pages_limit"));
    ctx.gfx = NULL;
    check_class(OOM("2.00", "24.00", "0.50", "23.00", "0.20"), ctx, "oom-unified-limit");
    check_class(FAULT, ctx, "gpu-memory-fault");

    ANSWER killed = ask("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 137, .refused = 1 });
    CHECK(has_text(&killed.d, "OOM") && has_text(&killed.d, "dmesg"));
    ANSWER stopped =
        ask("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 137, .memory_guard = true });
    CHECK_HAS(stopped.d.cause, "cairn stopped the trainer");
    CHECK(!has_text(&stopped.d, "dmesg") && !has_text(&stopped.d, "swap"));
}

static void fragmentation_has_a_ladder(void)
{
    ANSWER a = ask("torch 2.12.0+rocm7.2\n" OOM("2.00", "24.00", "0.50", "15.00", "8.00"), nothing);
    static const char *const want[] = { "512", "256", "128" };
    size_t k = 0;
    for (size_t i = 0; i < a.d.n_fixes; i++)
        if (a.d.fixes[i].n_set) {
            CHECK_STR(a.d.fixes[i].set[0].name, "PYTORCH_ALLOC_CONF");
            REQUIRE(k < 3);
            CHECK_HAS(a.d.fixes[i].set[0].value, want[k++]);
            CHECK(a.d.fixes[i].automatic && a.d.fixes[i].action == DIAGNOSE_ACT_ENV);
        }
    CHECK_INT(k, 3);
    CHECK_INT(a.d.fixes[a.d.n_fixes - 1].action, DIAGNOSE_ACT_CPU);
}

static void a_hang_is_tried_step_by_step(void)
{
    static const char *const env[] = { "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True", NULL };
    ANSWER a = ask("", (struct diagnose_context){ .exit_code = 143, .hung = true, .env = env });
    size_t interrupt = 0, sdma = 0;
    CHECK_STR(a.d.class_id, "hang");
    CHECK(has_unset(&a.d, "PYTORCH_HIP_ALLOC_CONF"));
    CHECK_STR(set_by(&a.d, "HSA_ENABLE_INTERRUPT", &interrupt), "0");
    CHECK_STR(set_by(&a.d, "HSA_ENABLE_SDMA", &sdma), "0");
    CHECK(interrupt < sdma);
}

/* HSA variables do not exist there. */
static void windows_gets_no_override(void)
{
    ANSWER a =
        ask("C:\\venv\\Lib\\site-packages\\torch\\lib\nRuntimeError: HIP error: invalid device function\r\n",
            (struct diagnose_context){ .exit_code = 1, .gfx = "gfx1031" });
    size_t rung = 0;
    CHECK_STR(a.d.class_id, "no-kernel-image");
    CHECK(!set_by(&a.d, "HSA_OVERRIDE_GFX_VERSION", &rung));
}

static void the_first_error_of_nested_ones_counts(void)
{
    check_class(
        "Traceback (most recent call last):\nRuntimeError: HIP error: invalid argument\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\nValueError: x\nsubprocess.CalledProcessError: died\nAborted (core dumped)\n",
        nothing, "hip-invalid-argument");
}

static void what_training_survives_is_no_failure(void)
{
    static const char log[] =
        "HIP out of memory, batch skipped\nstep 1 loss 0.5\nstep 2 loss 0.4\nstep 3 loss 0.4\nstep 4 loss 0.3\n";
    check_class(log, nothing, "no-failure");
    check_class(log, (struct diagnose_context){ .exit_code = 0 }, "no-failure");
}

static void steps_are_told_from_loading(void)
{
    static const struct {
        const char *line;
        bool step;
    } lines[] = {
        { "steps:   6%|6   | 356/5820 [1:12:10<18:27:50, 12.17s/it, avr_loss=0.0629]\n", true },
        { "  1%|#        | 10/1856 [04:16<13:02:24, 25.43s/it]\n", true },
        { "{'loss': 1.25, 'grad_norm': 0.4}\n", true },
        { "Epoch 1: loss: 0.25\n", true },
        { "  0%|         | 0/1856 [00:00<?, ?it/s]\n", false },
        { "Loading checkpoint shards: 100%|####| 2/2 [02:07<00:00, 63.63s/it]\n", false },
        { "Fetching 5 files: 100%|####| 5/5 [00:01<00:00,  4.10it/s]\n", false },
        { "loss function: mse\n", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        ANSWER a = ask(lines[i].line, nothing);
        if (a.saw_step != lines[i].step)
            CHECK_FAIL_("%s", lines[i].line);
    }
}

static void this_machine_fills_the_texts(void)
{
    struct machine m;
    machine_halo(&m);
    m.params[0].value = "16384000"; /* ttm.pages_limit: half of RAM */
    ANSWER a = ask(OOM("8.00", "62.00", "1.00", "60.00", "0.10"),
                   (struct diagnose_context){ .exit_code = 1, .facts = &m.facts, .plan = &m.plan });
    CHECK_STR(a.d.class_id, "oom-unified-limit");
    bool told = false;
    for (size_t i = 0; i < a.d.n_fixes; i++)
        told |= strstr(a.d.fixes[i].text, "ttm.pages_limit=") && strstr(a.d.fixes[i].text, "grubby");
    CHECK(told);
    ANSWER b = ask("Device 0: gfx1031\nHIP error: invalid device function\n",
                   (struct diagnose_context){ .exit_code = 1, .facts = &m.facts });
    CHECK_STR(b.d.class_id, "no-kernel-image");
    CHECK_HAS(b.d.facts_used[b.d.n_facts_used - 1], "gfx1031, which this machine does not have");
    machine_release(&m);
}

static void a_limit_that_is_wide_enough_is_left_alone(void)
{
    struct machine m;
    machine_halo(&m); /* 112 of 125 GiB */
    ANSWER a = ask(OOM("40.00", "112.00", "20.00", "90.10", "0.20"),
                   (struct diagnose_context){ .exit_code = 1, .facts = &m.facts, .plan = &m.plan });
    CHECK_STR(a.d.class_id, "oom-unified-limit");
    CHECK(!has_text(&a.d, "pages_limit") && has_text(&a.d, "without mmap"));
    machine_release(&m);
}

/* Only where it is. */
static void host_memory_is_the_gpus_on_an_apu(void)
{
    ANSWER card = ask("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 137, .gfx = "gfx1100" });
    CHECK_STR(card.d.class_id, "host-oom");
    CHECK(!has_text(&card.d, "the same memory"));
    ANSWER apu = ask("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 137, .gfx = "gfx1151" });
    CHECK_HAS(apu.d.cause, "on gfx1151 it is the same memory");
}

static void a_line_is_promised_only_where_there_is_one(void)
{
    ANSWER none = ask("/bin/sh: 1: nosuch: not found\n", (struct diagnose_context){ .exit_code = 127 });
    CHECK_STR(none.d.class_id, "not-rocm");
    CHECK(!none.d.n_evidence && !strstr(none.d.cause, "below"));
    CHECK_HAS(none.d.cause, "command");
    ANSWER one = ask("KeyError: 'lr'\n", (struct diagnose_context){ .exit_code = 1 });
    CHECK_STR(one.d.class_id, "not-rocm");
    CHECK(one.d.n_evidence == 1 && strstr(one.d.cause, "line below"));
    /* What the program printed before is not what the shell stumbled over. */
    ANSWER other = ask("UserWarning: Attempting to use hipBLASLt on an unsupported architecture!\n",
                       (struct diagnose_context){ .exit_code = 127 });
    CHECK_STR(other.d.class_id, "not-rocm");
    CHECK(!other.d.n_evidence && !strstr(other.d.cause, "below"));
    /* Of an NVIDIA GPU, and nothing else is known. */
    ANSWER foreign = ask("NVIDIA GeForce RTX 3090\nsomething\n", (struct diagnose_context){ .exit_code = 1 });
    CHECK_STR(foreign.d.class_id, "not-rocm");
    CHECK(!foreign.d.n_evidence && !strstr(foreign.d.cause, "below"));
}

static void advice_is_no_setting(void)
{
    ANSWER a = ask(OOM("2.00", "24.00", "0.50", "23.00", "0.20"), nothing);
    CHECK(!has_unset(&a.d, "PYTORCH_HIP_ALLOC_CONF"));
}

static void evidence_is_clean(void)
{
    ANSWER a = ask("\377\033[31mHIP error: invalid argument\001\n", nothing);
    REQUIRE(a.d.n_evidence == 1);
    CHECK_STR(a.d.evidence[0].text, "?HIP error: invalid argument?");
    CHECK_INT(a.d.evidence[0].line, 1);
}

static void files_are_told_apart(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct diagnoser *d = NULL;
    struct diagnosis out;
    REQUIRE(!diagnoser_new(&d, &err));
    diagnoser_mark_file(d, "train.log");
    diagnoser_feed(d, FAULT, strlen(FAULT));
    diagnoser_mark_file(d, "dmesg");
    diagnoser_feed(d, "x\namdgpu: GPU reset begin!", 27);
    diagnoser_finish(d, &nothing, &arena, &out);
    CHECK_STR(out.class_id, "gpu-reset");
    CHECK_STR(out.evidence[0].file, "dmesg");
    CHECK_INT(out.evidence[0].line, 2);
    diagnoser_free(d);
    diagnoser_free(NULL);
}

/* A log beside dmesg. */
struct beside {
    const char *log;
    int64_t exit_code;
    const char *want, *also;
};

static void check_beside(const struct beside *r)
{
    ANSWER a = ask(r->log, (struct diagnose_context){ .exit_code = r->exit_code });
    bool also = !r->also;
    CHECK(!str_eq(a.d.class_id, "not-rocm") || a.d.n_evidence == 1);
    for (size_t k = 0; k < a.d.n_also; k++)
        also |= str_eq(a.d.also[k].class_id, r->also);
    if (!str_eq(a.d.class_id, r->want) || !also)
        CHECK_FAIL_("exit %d: %s, want %s and also %s, of\n%s", (int)r->exit_code, a.d.class_id, r->want,
                    r->also ? r->also : "nothing", r->log);
}

/* dmesg tells of all programs, since the machine started. */
#define OWN_END \
    "torch 2.9.1+rocm6.4\nTraceback (most recent call last):\n  File \"train.py\"\nKeyError: 'lr'\n"
#define QUIET "torch 2.9.1+rocm6.4\nstep 1 loss 0.5\n"
#define KILL "[ 1.0] Out of memory: Killed process 4242 (firefox) total-vm:1kB, anon-rss:1kB\n"
#define CRASH \
    "[ 1.0] firefox[4242]: segfault at 8 ip 000055 sp 00007ff error 4 in libxul.so[6a51,55add0+94000]\n"
#define RESET "[ 1.0] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"

static void the_kernel_speaks_of_other_programs_too(void)
{
    static const struct beside rows[] = {
        { OWN_END KILL, 1, "not-rocm", "host-oom" },
        { KILL OWN_END, 1, "not-rocm", "host-oom" },
        { OWN_END KILL, -1, "not-rocm", "host-oom" },
        { QUIET KILL, 0, "no-failure", NULL },
        { QUIET KILL, 1, "unknown", "host-oom" },
        { QUIET KILL, 130, "no-failure", NULL },
        { QUIET KILL, -1, "host-oom", NULL },
        { QUIET KILL, 137, "host-oom", NULL },
        { QUIET "Killed\n" KILL, 1, "host-oom", NULL },
        { OWN_END CRASH, 1, "not-rocm", "native-crash" },
        { OWN_END CRASH, -1, "not-rocm", "native-crash" },
        { QUIET CRASH, 0, "no-failure", NULL },
        { QUIET CRASH, 139, "native-crash", NULL },
        { QUIET CRASH, -1, "native-crash", NULL },
        { QUIET CRASH "Segmentation fault (core dumped)\n", 1, "native-crash", NULL },
        { OWN_END RESET, 1, "not-rocm", "gpu-reset" },
        { OWN_END RESET, -1, "not-rocm", "gpu-reset" },
        { QUIET "RuntimeError: HIP error: invalid device function\n" RESET, 1, "no-kernel-image",
          "gpu-reset" },
        { QUIET RESET, 0, "no-failure", NULL },
        { QUIET RESET, 1, "gpu-reset", NULL },
        { QUIET RESET, -1, "gpu-reset", NULL },
        { OWN_END RESET, 134, "gpu-reset", NULL },
        { QUIET FAULT OWN_END RESET, 1, "gpu-reset", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_beside(&rows[i]);
}

#define TRACE "Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n"
#define KILLED(name) "[ 1.0] Out of memory: Killed process 4242 (" name ") total-vm:1kB, anon-rss:1kB\n"
#define BROKEN_POOL                                                                                     \
    TRACE "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated " \
          "abruptly while the future was running or pending.\n"
#define LOKY(codes)                                                                                     \
    TRACE                                                                                               \
    "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the "    \
    "executor was unexpectedly terminated. This could be caused by a segmentation fault while calling " \
    "the function or by an excessive memory usage causing the Operating System to kill the worker.\n"   \
    "The exit codes of the workers are {" codes "}\n"
#define MAP_DIED                                                                                       \
    TRACE "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the " \
          "error, disable multiprocessing.\n"
#define RAY_TASK                                                                                               \
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exit "  \
    "detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential " \
    "root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop "  \
    "--force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n"
#define RAY_CRASHED                                                                                     \
    TRACE "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task. " \
          "Check python-core-worker-*.log files for more information.\n"
#define RAY_ACTOR                                                                                            \
    TRACE "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"         \
          "\tpid: 4242\nThe actor is dead because its worker process has died. Some common causes include: " \
          "(1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force was " \
          "called, or (3) the worker crashed unexpectedly due to SIGSEGV or another unexpected error.\n"
#define LOADER_GONE TRACE "RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly\n"
#define DEEPSPEED(code)                                                                                      \
    "[ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', 'main.py'] exits with return code = " code \
    "\n"
#define SPAWN(signal) \
    TRACE "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal " signal "\n"

/* The parent ends with a status of its own, and its words for the end of a child differ. */
static void a_child_that_was_killed_is_found(void)
{
    static const struct beside rows[] = {
        { QUIET DEEPSPEED("-9") KILLED("python3"), 1, "host-oom", NULL },
        { QUIET SPAWN("SIGKILL") KILLED("python3"), 1, "host-oom", NULL },
        { QUIET BROKEN_POOL KILLED("python3"), 1, "host-oom", NULL },
        { QUIET LOKY("SIGKILL(-9)") KILLED("python3"), 1, "host-oom", NULL },
        { QUIET MAP_DIED KILLED("python3"), 1, "host-oom", NULL },
        { QUIET RAY_TASK KILLED("ray::IDLE"), 1, "host-oom", NULL },
        { QUIET RAY_CRASHED KILLED("ray::train"), 1, "host-oom", NULL },
        { QUIET RAY_ACTOR KILLED("ray::train"), 1, "host-oom", NULL },
        { QUIET LOADER_GONE KILLED("pt_data_worker"), 1, "host-oom", NULL },
        { KILLED("python3") QUIET BROKEN_POOL, 1, "host-oom", NULL },
        /* A signal is told: whose name it was does not matter. */
        { QUIET DEEPSPEED("-9"), 1, "host-oom", NULL },
        { QUIET SPAWN("SIGKILL"), 1, "host-oom", NULL },
        { QUIET LOKY("SIGKILL(-9)"), 1, "host-oom", NULL },
        /* It may have been anything. */
        { QUIET BROKEN_POOL, 1, "unknown", NULL },
        { QUIET RAY_TASK, 1, "unknown", NULL },
        { QUIET DEEPSPEED("-11"), 1, "native-crash", NULL },
        { QUIET LOKY("SIGSEGV(-11)"), 1, "native-crash", NULL },
        { QUIET BROKEN_POOL RESET, 1, "gpu-reset", NULL },
        { QUIET BROKEN_POOL CRASH, 1, "native-crash", NULL },
        { QUIET RAY_TASK CRASH, 1, "native-crash", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_beside(&rows[i]);
}

/* Whom the kernel killed: by name or by number it may be the trainer. */
static void the_killed_process_may_be_the_trainer(void)
{
    static const struct beside rows[] = {
        { QUIET KILLED("python3.12"), 1, "host-oom", NULL },
        { QUIET KILLED("pt_main_thread"), 1, "host-oom", NULL },
        { QUIET KILLED("accelerate"), 1, "host-oom", NULL },
        { QUIET KILLED("ray::IDLE"), 247, "host-oom", NULL },
        { QUIET "[ 1.0] Memory cgroup out of memory: Killed process 7 (python) total-vm:1kB\n", 1, "host-oom",
          NULL },
        { KILLED("firefox") QUIET KILLED("python3"), 1, "host-oom", NULL },
        { QUIET TRACE "EOFError: connection closed\n" KILLED("python3"), 1, "host-oom", NULL },
        { QUIET KILLED("gnome-python"), 1, "unknown", "host-oom" },
        { OWN_END KILLED("python3"), 1, "not-rocm", "host-oom" },
        { OWN_END KILLED("python3"), -1, "not-rocm", "host-oom" },
        { QUIET KILLED("python3"), 0, "no-failure", NULL },
        { QUIET KILLED("python3"), 130, "no-failure", NULL },
        { QUIET CRASH KILLED("python3"), 139, "native-crash", NULL },
        /* Numbers. */
        { QUIET "started trainer (pid 4242)\n" KILL, 1, "host-oom", NULL },
        { KILL QUIET "[INFO] [launch.py:428:sigkill_handler] Killing subprocess 4242\n", 1, "host-oom",
          NULL },
        { QUIET "(WorkerDict pid=4242) ready\n" OWN_END KILL, 1, "host-oom", NULL },
        { QUIET "started trainer (pid 42420)\n" KILL, 1, "unknown", "host-oom" },
        { QUIET "loaded 4242 samples\n" KILL, 1, "unknown", "host-oom" },
        { QUIET TRACE "RuntimeError: bad data\n" KILL, -1, "not-rocm", "host-oom" },
        { QUIET "[ 1.0] oom-kill:constraint=CONSTRAINT_NONE,task=firefox,pid=4242,uid=1000\n" KILL, 1,
          "unknown", "host-oom" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_beside(&rows[i]);
}

/* What a program says whose GPU was reset is not always about the GPU. */
static void a_reset_has_many_symptoms(void)
{
#define HIP_TRACE "torch 2.9.1+rocm6.4\n" TRACE
    static const struct beside rows[] = {
        { HIP_TRACE
          "RuntimeError: CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasSgemm`\n" RESET,
          1, "gpu-reset", NULL },
        { HIP_TRACE "RuntimeError: CUDA error: HIPBLAS_STATUS_EXECUTION_FAILED\n" RESET, 1, "gpu-reset",
          NULL },
        { HIP_TRACE "RuntimeError: rocBLAS error: failure\n" RESET, 1, "gpu-reset", NULL },
        { HIP_TRACE "RuntimeError: HIP error: invalid device ordinal\n" RESET, 1, "gpu-reset", NULL },
        { RESET HIP_TRACE "RuntimeError: HIP error: invalid device ordinal\n", 1, "gpu-reset", NULL },
        { HIP_TRACE "hipErrorInvalidDevice\n" RESET, 1, "gpu-reset", NULL },
        { QUIET LOADER_GONE RESET, 1, "gpu-reset", NULL },
        { QUIET TRACE "TimeoutError\n" RESET, 1, "gpu-reset", NULL },
        { QUIET TRACE "TimeoutError\n" RESET, -1, "gpu-reset", NULL },
        /* These are not. */
        { HIP_TRACE "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n" RESET, 1, "not-rocm",
          "gpu-reset" },
        { HIP_TRACE "AssertionError: 3 != 4\n" RESET, 1, "not-rocm", "gpu-reset" },
        { QUIET "rocBLAS error: Cannot read /opt/rocm/lib/TensileLibrary.dat: No such file\n" RESET, 1,
          "tensile-missing", "gpu-reset" },
        { QUIET "RuntimeError: Please use HIP_VISIBLE_DEVICES instead of ROCR_VISIBLE_DEVICES\n" RESET, 1,
          "visible-devices", "gpu-reset" },
        { QUIET TRACE "TimeoutError\n", 1, "not-rocm", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_beside(&rows[i]);
}

/* The tables. */

static const struct issue_rule *const tables[] = { issue_rules_device, issue_rules_fault,
                                                   issue_rules_memory, issue_rules_library,
                                                   issue_rules_other,  issue_rules_not_rocm };

static void check_rule(const struct issue_rule *r)
{
    CLEANUP(str_release) struct str line = { 0 };
    str_addf(&line, "+rocm6.4 AMD Radeon HIP error\n%s%s%.*s\n", r->text, r->flags & RULE_WORD ? "" : " ",
             r->with ? (int)strcspn(r->with, "|") : 0, r->with ? r->with : "");
    ANSWER a = ask(line.s, (struct diagnose_context){ .exit_code = r->flags & RULE_WARN ? 0 : 1 });
    bool named = str_eq(a.d.class_id, issue_classes[r->issue].id);
    for (size_t i = 0; i < a.d.n_also; i++)
        named |= str_eq(a.d.also[i].class_id, issue_classes[r->issue].id);
    if (!named && r->score >= 50)
        CHECK_FAIL_("\"%s\": %s, want %s", r->text, a.d.class_id, issue_classes[r->issue].id);
}

static void every_rule_can_be_met(void)
{
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct issue_rule *r = tables[t]; r->text; r++) {
            CHECK(r->source && *r->source && r->score > 0 && r->score <= 100);
            check_rule(r);
        }
}

/* A package goes into the environment that failed, never into a new one. */
static void commands_name_the_environment_of_the_log(void)
{
    static const char lost[] =
        "RuntimeError: Configured ROCm binary not found at %s/bitsandbytes/libbitsandbytes_rocm62.so\n";
    char log[512];
    snprintf(log, sizeof(log), lost, "/home/me/kohya_ss/venv/lib/python3.10/site-packages");
    ANSWER named = ask(log, nothing);
    CHECK_STR(named.d.class_id, "bitsandbytes-no-rocm");
    CHECK(has_text(&named.d, "/home/me/kohya_ss/venv/bin/python -m pip install"));
    ANSWER flash = ask(
        "  File \"/v/lib/python3.11/site-packages/transformers/utils.py\", line 2\n"
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the "
        "package flash_attn seems to be not installed.\n",
        nothing);
    CHECK(has_text(&flash.d, "/v/bin/python -m pip install"));
    snprintf(log, sizeof(log), lost, "/x");
    ANSWER unnamed = ask(log, nothing);
    CHECK(has_text(&unnamed.d, "python3 -m pip install"));
    CHECK(!has_text(&unnamed.d, "-m venv") && !has_text(&named.d, "-m venv"));
}

int main(void)
{
    RUN(the_supervisor_knows_more);
    RUN(the_environment_beats_the_message);
    RUN(root_gets_another_answer);
    RUN(frames_of_a_stack_tell_whose_gpu_it_is);
    RUN(out_of_memory_is_in_the_figures);
    RUN(cairns_own_guards_are_named);
    RUN(fragmentation_has_a_ladder);
    RUN(a_hang_is_tried_step_by_step);
    RUN(windows_gets_no_override);
    RUN(the_first_error_of_nested_ones_counts);
    RUN(what_training_survives_is_no_failure);
    RUN(steps_are_told_from_loading);
    RUN(this_machine_fills_the_texts);
    RUN(a_limit_that_is_wide_enough_is_left_alone);
    RUN(host_memory_is_the_gpus_on_an_apu);
    RUN(a_line_is_promised_only_where_there_is_one);
    RUN(advice_is_no_setting);
    RUN(evidence_is_clean);
    RUN(files_are_told_apart);
    RUN(the_kernel_speaks_of_other_programs_too);
    RUN(a_child_that_was_killed_is_found);
    RUN(the_killed_process_may_be_the_trainer);
    RUN(a_reset_has_many_symptoms);
    RUN(every_rule_can_be_met);
    RUN(commands_name_the_environment_of_the_log);
    return check_done();
}
