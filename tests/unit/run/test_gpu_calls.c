/* SPDX-License-Identifier: Apache-2.0 */
#include "run/gpu_calls.h"

#include "base/clock.h"
#include "check.h"
#include "preload/record.h"
#include "scratch.h"
#include <sys/stat.h>
#include <unistd.h>

static struct arena arena;

static struct record *new_record(int pid)
{
    struct record *r = calloc(1, sizeof(*r));
    memcpy(r->magic, RECORD_MAGIC, sizeof(r->magic));
    r->version = RECORD_VERSION;
    r->pid = (uint32_t)pid;
    strcpy(r->function[0], "hipMemcpyWithStream");
    strcpy(r->function[1], "hipLaunchKernel");
    strcpy(r->function[2], "hipStreamSynchronize");
    strcpy(r->function[3], "hipMemcpyDtoHAsync");
    strcpy(r->function[4], "hipMalloc");
    strcpy(r->function[5], "hipHostMalloc");
    strcpy(r->function[6], "hipMemcpy2DAsync");
    r->kernel[1].number = 1;
    strcpy(r->kernel[1].name, "_ZN2at6native13reduce_kernelILi512EEEvT_");
    strcpy(r->library, "/opt/libamdhip64.so.6");
    return r;
}

static void add(struct record *r, unsigned function, int code, bool returned, double ago_s)
{
    uint64_t nth = record_n_calls(r) + 1;
    struct record_call *e = &r->call[nth % RECORD_CALLS];
    e->nth = nth;
    e->start = (uint64_t)((clock_s() - ago_s) * 1e9);
    e->took = 1500;
    e->size = function ? 64 : 3 << 20;
    e->code = code;
    e->thread = 7;
    e->function = (uint16_t)function;
    e->kernel = function <= 1; /* a copy to the device, a launch of the first kernel */
    e->returned = returned;
}

static void keep(struct record *r, const char *name)
{
    FILE *f = fopen(scratch(name), "wb");
    fwrite(r, sizeof(*r), 1, f);
    fclose(f);
    free(r);
}

static struct gpu_calls read_all(void)
{
    struct gpu_calls c;
    gpu_calls_read(scratch("calls"), &arena, &c);
    return c;
}

static void tells_where_a_process_is(void)
{
    struct record *r = new_record(41);
    add(r, 0, 0, false, 61); /* inside, while another thread goes on */
    for (int i = 0; i < 100; i++)
        add(r, 1, 0, true, 1);
    keep(r, "calls.41");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    CHECK_INT(c.process[0].n, GPU_CALLS_MOST + 1);
    CHECK_INT(c.process[0].n_calls, 101);
    const struct gpu_call *culprit = gpu_calls_culprit(&c, true);
    REQUIRE(culprit);
    CHECK(gpu_calls_is_copy(culprit));
    CHECK_STR(gpu_calls_say(culprit, &arena),
              "hipMemcpyWithStream of 3.0 MiB, never returned, called 61.0 s ago");
    const struct gpu_call *kernel = gpu_calls_last_kernel(&c, NULL);
    REQUIRE(kernel);
    CHECK_STR(gpu_calls_say(kernel, &arena),
              "hipLaunchKernel at::native::reduce_kernel of 64 threads, took 1.5 us");
}

static void tells_what_failed(void)
{
    struct record *r = new_record(42);
    add(r, 0, 1, true, 5);
    add(r, 1, 719, true, 4);
    add(r, 1, 12345, true, 3);
    add(r, 1, 0, true, 2);
    keep(r, "calls.42");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    const struct gpu_call *culprit = gpu_calls_culprit(&c, true);
    REQUIRE(culprit);
    CHECK_STR(gpu_calls_say(culprit, &arena),
              "hipLaunchKernel at::native::reduce_kernel of 64 threads: error 12345, took 1.5 us");
    CHECK_STR(
        gpu_calls_say(&c.process[0].call[1], &arena),
        "hipLaunchKernel at::native::reduce_kernel of 64 threads: hipErrorLaunchFailure (719), took 1.5 us");
    CLEANUP(str_release) struct str text = { 0 };
    gpu_calls_text(&c, &text);
    CHECK_HAS(text.s, "of process 42, 4 in total (/opt/libamdhip64.so.6)");
    CHECK_HAS(text.s, "hipMemcpyWithStream of 3.0 MiB: hipErrorInvalidValue (1)");
}

static void tells_a_wait_from_a_cause(void)
{
    struct record *r = new_record(51);
    add(r, 1, 719, true, 5);
    add(r, 2, 0, false, 4);
    keep(r, "calls.51");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    CHECK_INT(gpu_calls_culprit(&c, true)->code, 719); /* a wait loses */
    CHECK_INT(gpu_calls_culprit(&c, false)->code, 719);
    r = new_record(51);
    add(r, 0, 0, false, 6);
    add(r, 1, 719, true, 5);
    add(r, 2, 0, false, 4);
    keep(r, "calls.51");
    c = read_all();
    REQUIRE(c.n == 1);
    CHECK(gpu_calls_is_copy(gpu_calls_culprit(&c, true)));
    CHECK_INT(gpu_calls_culprit(&c, false)->code, 719); /* it ended by itself */
    r = new_record(51);
    add(r, 2, 0, false, 4);
    keep(r, "calls.51");
    c = read_all();
    REQUIRE(c.n == 1);
    CHECK_STR(gpu_calls_culprit(&c, false)->function, "hipStreamSynchronize"); /* all there is */
}

static bool stands_in_a_copy(unsigned function, uint64_t size, unsigned kind)
{
    struct record *r = new_record(52);
    add(r, function, 0, false, 60);
    r->call[1].size = size;
    r->call[1].kind = (uint16_t)kind;
    keep(r, "calls.52");
    struct gpu_calls c = read_all();
    const struct gpu_call *culprit = gpu_calls_culprit(&c, true);
    return culprit && gpu_calls_is_copy(culprit);
}

/* loss.item() waits for every kernel before it. */
static void tells_a_copy_from_a_wait(void)
{
    enum { TO_DEVICE = 1, TO_HOST, ON_DEVICE, DEFAULT };
    CHECK(stands_in_a_copy(0, 64 << 10, TO_DEVICE));
    CHECK(!stands_in_a_copy(0, 64 << 10, DEFAULT)); /* it may as well be a fetch */
    CHECK(!stands_in_a_copy(6, 1 << 30, 0));
    CHECK(!stands_in_a_copy(0, 4, TO_HOST));
    CHECK(!stands_in_a_copy(0, 4, TO_DEVICE));
    CHECK(!stands_in_a_copy(0, 1 << 30, TO_HOST));
    CHECK(!stands_in_a_copy(0, 1 << 30, ON_DEVICE));
    CHECK(!stands_in_a_copy(3, 1 << 30, 0));
    struct record *r = new_record(52);
    add(r, 1, 719, true, 5);
    add(r, 0, 0, false, 4);
    r->call[2].size = 4;
    keep(r, "calls.52");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    CHECK_INT(gpu_calls_culprit(&c, true)->code, 719); /* as any other wait, it loses */
}

static void an_older_kernel_is_not_the_last(void)
{
    struct record *r = new_record(53);
    add(r, 1, 0, true, 5);
    add(r, 1, 719, true, 4);
    r->call[2].kernel = 1 + RECORD_KERNELS; /* the same place, and not the same kernel */
    keep(r, "calls.53");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    CHECK(!gpu_calls_last_kernel(&c, NULL));
    CHECK_STR(gpu_calls_say(&c.process[0].call[1], &arena),
              "hipLaunchKernel of 64 threads: hipErrorLaunchFailure (719), took 1.5 us");
}

static void one_of_many_is_found(void)
{
    char name[32];
    for (int i = 0; i < 20; i++) {
        struct record *r = new_record(100 + i);
        add(r, 1, i == 7 ? 719 : 0, true, i == 7 ? 50 : i == 8 ? 40 : 30);
        r->kernel[1].name[0] = i == 7 ? 'k' : '_';
        if (i != 7 && i != 8)
            add(r, 2, 0, false, 1); /* the others wait for it */
        r->counts.refused = 1;
        r->counts.refused_bytes = 100;
        snprintf(name, sizeof(name), "calls.%d", 100 + i);
        keep(r, name);
    }
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 20);
    CHECK_INT(c.process[0].pid, 107);
    CHECK_INT(c.process[19].pid, 108);
    CHECK_INT(c.refused, 20);
    CHECK_INT(c.refused_bytes, 2000);
    const struct gpu_call *culprit = gpu_calls_culprit(&c, true);
    REQUIRE(culprit);
    CHECK_INT(culprit->code, 719);
    CHECK_HAS(gpu_calls_last_kernel(&c, culprit)->kernel, "kZN2at");
    CHECK_HAS(gpu_calls_last_kernel(&c, &c.process[3].call[0])->kernel, "_ZN2at");
    CLEANUP(str_release) struct str text = { 0 };
    gpu_calls_text(&c, &text);
    CHECK_HAS(text.s, "of process 107,");
    CHECK(!strstr(text.s, "of process 108,")); /* no more than 8 */
}

/* Guarded and freed and done with: what failed at last the runtime had not got. */
static void the_guard_is_blamed_for_the_last_refusal_only(void)
{
    for (int by_guard = 0; by_guard < 2; by_guard++) {
        struct record *r = new_record(54);
        add(r, 4, 2, true, 9);
        r->call[1].kind = by_guard ? 0 : RECORD_REFUSED;
        add(r, 4, 2, true, 2);
        r->call[2].kind = by_guard ? RECORD_REFUSED : 0;
        add(r, 5, 2, true, 1); /* pinned memory, which is not guarded */
        r->counts.refused = 1;
        r->counts.refused_bytes = 64;
        keep(r, "calls.54");
        struct gpu_calls c = read_all();
        REQUIRE(c.n == 1);
        CHECK_INT(c.refused, by_guard);
        CHECK_INT(c.refused_bytes, 64 * by_guard);
        CHECK_INT(c.process[0].refused, 1);
        CHECK_STR(gpu_calls_say(&c.process[0].call[by_guard], &arena),
                  "hipMalloc of 64 bytes: hipErrorOutOfMemory (2) by the guard, took 1.5 us");
        CHECK_STR(gpu_calls_say(&c.process[0].call[!by_guard], &arena),
                  "hipMalloc of 64 bytes: hipErrorOutOfMemory (2), took 1.5 us");
    }
}

/* No process has so high a number. */
static void files_of_the_dead_do_not_pile_up(void)
{
    char name[32];
    for (int i = 0; i < 20; i++) {
        struct record *r = new_record(4194305 + i);
        add(r, 0, i == 3 ? 1 : 0, true, 1);
        snprintf(name, sizeof(name), "calls.%d", 4194305 + i);
        keep(r, name);
    }
    struct record *alive = new_record(getpid());
    add(alive, 0, 0, true, 1);
    snprintf(name, sizeof(name), "calls.%d", getpid());
    keep(alive, name);
    gpu_calls_tidy(scratch("calls"));
    CHECK_INT(access(scratch("calls.4194305"), F_OK), -1);
    CHECK_INT(access(scratch("calls.4194308"), F_OK), 0); /* it has something to tell */
    CHECK_INT(access(scratch(name), F_OK), 0);
}

static void the_process_that_called_last_comes_first(void)
{
    struct record *old = new_record(43), *recent = new_record(44), *silent = new_record(45);
    add(old, 0, 0, true, 50);
    add(recent, 1, 0, true, 1);
    keep(old, "calls.43");
    keep(recent, "calls.44");
    keep(silent, "calls.45");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 2);
    CHECK_INT(c.process[0].pid, 44);
    CHECK_INT(c.process[1].pid, 43);
    CHECK(!gpu_calls_culprit(&c, true));
}

static void a_ring_that_went_round(void)
{
    struct record *r = new_record(46);
    for (int i = 0; i < RECORD_CALLS + 10; i++)
        add(r, 0, i == 0 ? 1 : 0, true, 1);             /* the first is gone */
    r->call[(RECORD_CALLS + 9) % RECORD_CALLS].nth = 0; /* being written */
    keep(r, "calls.46");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    CHECK_INT(c.process[0].n, GPU_CALLS_MOST - 1);
    CHECK(!gpu_calls_culprit(&c, true));
}

#ifdef __x86_64__
static void ticks_are_time(void)
{
    struct record *r = new_record(53);
    double begin_s = clock_s();
    uint64_t begin = record_ticks();
    usleep(100000);
    uint64_t took = record_ticks() - begin;
    double took_s = clock_s() - begin_s;
    add(r, 0, 0, true, 0);
    r->clock = RECORD_TICKS;
    r->call[1].start = begin;
    r->call[1].took = took;
    keep(r, "calls.53");
    struct gpu_calls c = read_all();
    REQUIRE(c.n == 1);
    const struct gpu_call *call = &c.process[0].call[0];
    CHECK(call->took_s > 0.8 * took_s && call->took_s < 1.2 * took_s);
    CHECK(call->begun_s >= call->took_s && call->begun_s < 1.2 * (clock_s() - begin_s));
}
#endif

static void believes_nothing(void)
{
    struct record *bad = new_record(47), *version = new_record(48), *odd = new_record(49);
    add(bad, 0, 0, true, 1);
    bad->magic[0] = 'x';
    keep(bad, "calls.47");
    add(version, 0, 0, true, 1);
    version->version++;
    keep(version, "calls.48");
    scratch_file("calls.50", "cairnrec");
    scratch_file("calls.51", "");
    CHECK_INT(mkfifo(scratch("calls.52"), 0600), 0); /* nobody will ever write there */
    CHECK_INT(read_all().n, 0);
    add(odd, 1, 0, true, 1);
    odd->call[1].function = 65535;
    odd->call[1].kernel = 65535;
    odd->call[2].nth = UINT64_MAX;
    memset(odd->library, 'x', sizeof(odd->library));
    keep(odd, "calls.49");
    read_all();
    struct gpu_calls none;
    gpu_calls_read(NULL, &arena, &none);
    CHECK_INT(none.n, 0);
    gpu_calls_read("/nonexistent/calls", &arena, &none);
    CHECK_INT(none.n, 0);
}

static void names_can_be_read(void)
{
    static const char *const names[][2] = {
        { "_ZN2at6native13reduce_kernelILi512EEEvT_", "at::native::reduce_kernel" },
        { "_ZN2at6native12_GLOBAL__N_18gelu_bwdEv", "at::native::(anonymous)::gelu_bwd" },
        { "_Z6adamw_PfS_", "adamw_" },
        { "Cijk_Ailk_Bljk_SB_MT64x64", "Cijk_Ailk_Bljk_SB_MT64x64" },
        { "_ZN", "_ZN" },
        { "_ZN999999999999x", "_ZN999999999999x" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK_STR(gpu_calls_readable(names[i][0], &arena), names[i][1]);
}

/* Each case with a folder of its own. */
#define WITH_FOLDER(name)                   \
    static void name##_(void)               \
    {                                       \
        name();                             \
        gpu_calls_remove(scratch("calls")); \
        CHECK_INT(read_all().n, 0);         \
    }
WITH_FOLDER(tells_where_a_process_is)
WITH_FOLDER(tells_what_failed)
WITH_FOLDER(tells_a_wait_from_a_cause)
WITH_FOLDER(tells_a_copy_from_a_wait)
WITH_FOLDER(an_older_kernel_is_not_the_last)
WITH_FOLDER(one_of_many_is_found)
WITH_FOLDER(files_of_the_dead_do_not_pile_up)
WITH_FOLDER(the_process_that_called_last_comes_first)
WITH_FOLDER(a_ring_that_went_round)
WITH_FOLDER(believes_nothing)
#ifdef __x86_64__
WITH_FOLDER(ticks_are_time)
#endif

int main(void)
{
    RUN(tells_where_a_process_is_);
    RUN(tells_what_failed_);
    RUN(tells_a_wait_from_a_cause_);
    RUN(tells_a_copy_from_a_wait_);
    RUN(an_older_kernel_is_not_the_last_);
    RUN(one_of_many_is_found_);
    RUN(the_guard_is_blamed_for_the_last_refusal_only);
    RUN(files_of_the_dead_do_not_pile_up_);
    RUN(the_process_that_called_last_comes_first_);
    RUN(a_ring_that_went_round_);
    RUN(believes_nothing_);
#ifdef __x86_64__
    RUN(ticks_are_time_);
#endif
    RUN(names_can_be_read);
    arena_release(&arena);
    return check_done();
}
