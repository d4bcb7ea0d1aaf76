/* SPDX-License-Identifier: Apache-2.0
 * The library inside a process that believes to have HIP. */
#include "trial.h"
#include <link.h>
#include <sched.h>
#include <time.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { BIG = 9 * (1 << 20) + 12345 };

static const char *function_of(const struct record *r, uint64_t nth)
{
    return r->function[r->call[nth % RECORD_CALLS].function];
}

static const char *kernel_of(const struct record *r, uint64_t nth)
{
    const char *name = record_kernel(r, &r->call[nth % RECORD_CALLS]);
    return name ? name : "";
}

/* --- the recorder --- */

static void writes_calls_down(void)
{
    for (int major = 6; major <= 7; major++) {
        struct outcome bare = TRY("calls", NULL, .major = major);
        struct outcome o = TRY("calls", "record", .major = major);
        CHECK_STR(o.out, bare.out);
        struct record *r = record_of(o.pid);
        REQUIRE(r);
        CHECK_INT(record_n_calls(r), 6);
        CHECK_STR(function_of(r, 1), "hipMalloc");
        CHECK_STR(function_of(r, 2), "hipMemcpyWithStream");
        CHECK_INT(r->call[2].size, 5000);
        CHECK_INT(r->call[2].kind, 1);
        CHECK_STR(kernel_of(r, 3), "_ZN2at6native4gemmIfEEvPT_");
        CHECK_INT(r->call[3].size, 384);
        CHECK_STR(kernel_of(r, 4), "attention_backward");
        CHECK_INT(r->call[4].code, 719);
        CHECK_INT(r->call[5].kernel, r->call[3].kernel);
        CHECK_INT(r->call[6].returned, 1);
        CHECK_HAS(r->library, major == 6 ? "libamdhip64.so.6" : "libamdhip64.so.7");
    }
}

static uint64_t now_of(enum record_clock clock)
{
    struct timespec t;
    if (clock == RECORD_TICKS)
        return record_ticks();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* In the CPU's ticks where the kernel itself does so. */
static void knows_when_it_was(void)
{
    char kernels[16] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (f && !fgets(kernels, sizeof(kernels), f))
        kernels[0] = '\0';
    if (f)
        fclose(f);
    for (int other = 0; other < 2; other++) {
        const uint64_t begin[] = { now_of(RECORD_NS), now_of(RECORD_TICKS) };
        struct outcome o =
            TRY("calls", "record", .more = other ? "CAIRN_PRELOAD_CLOCKSOURCE=/dev/null" : NULL);
        struct record *r = record_of(o.pid);
        REQUIRE(r);
        CHECK_INT(r->clock, !other && !strcmp(kernels, "tsc\n") ? RECORD_TICKS : RECORD_NS);
        CHECK(r->call[1].start > begin[r->clock]);
        CHECK(r->call[2].start >= r->call[1].start + r->call[1].took);
        CHECK(now_of(r->clock) > r->call[6].start + r->call[6].took);
    }
}

static void survives_a_kill(void)
{
    struct outcome o = TRY("hang", "record", .kill_after_line = SIGKILL);
    CHECK(WIFSIGNALED(o.status));
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 1);
    CHECK_STR(kernel_of(r, 1), "never_ends");
    CHECK_INT(r->call[1].returned, 0);
}

/* Of 3000 kernels, twice in a row, the last 1024 have names. */
static void keeps_what_there_is_room_for(void)
{
    struct outcome o = TRY("many", "record");
    CHECK_STR(o.out, "done\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 6000);
    CHECK_INT(r->call[6000 % RECORD_CALLS].nth, 6000);
    CHECK_HAS(kernel_of(r, 6000), "kernel_2999_");
    CHECK_HAS(kernel_of(r, 6000 - RECORD_KERNELS + 1), "kernel_1976_");
    CHECK_STR(kernel_of(r, 6000 - RECORD_KERNELS), "");
    CHECK_INT(strlen(kernel_of(r, 5990)), sizeof(r->kernel[0].name) - 1);
    for (uint64_t nth = 6000 - RECORD_CALLS + 1; nth <= 6000; nth++) {
        const char *name = kernel_of(r, nth);
        if (*name)
            CHECK_INT(atoi(name + strlen("kernel_")), (nth - 1) % 3000);
    }
}

static void signals_leave_the_file_whole(void)
{
    struct outcome o = TRY("alarms", "record");
    CHECK_STR(o.out, "0 0\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 1);
}

static void does_without_its_file(void)
{
    struct outcome bare = TRY("load", NULL);
    struct outcome o = TRY("load", "record", .file = "/nonexistent/calls");
    CHECK_STR(o.out, bare.out);
    o = TRY("load", "record", .file = "/proc/calls"); /* read-only, for everybody */
    CHECK_STR(o.out, bare.out);
    o = TRY("load", "record", .file = "");
    CHECK_STR(o.out, bare.out);
}

static void exec_keeps_the_number(void)
{
    struct outcome o = TRY("exec", "record");
    CHECK_STR(o.out, "copy 0\nlaunch 0\nlaunch 719\nlaunch 0\nfree 0\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 6);
}

static void files_may_be_limited(void)
{
    size_t before = n_files();
    struct outcome o = TRY("limited", "record");
    CHECK_STR(o.out, "status 0\n");
    CHECK_INT(n_files(), before + 1); /* the parent's */
}

static void a_kernel_is_named_once(void)
{
    struct outcome o = TRY("twice", "record");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 2);
    CHECK_INT(r->call[2].kernel, r->call[1].kernel);
    CHECK_STR(kernel_of(r, 2), "gemm");
}

static void a_module_takes_its_names_along(void)
{
    struct outcome o = TRY("reloaded", "record");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_STR(kernel_of(r, 1), "gemm");
    CHECK_STR(kernel_of(r, 3), "softmax");
}

/* A file system with room for a small file. */
static bool full_disk(void)
{
    char *path = text("%s/full", place), *file = text("%s/small", path);
    unsigned uid = geteuid();
    if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return false;
    FILE *map = uid ? fopen("/proc/self/uid_map", "w") : NULL;
    if (map && (fprintf(map, "0 %u 1", uid) < 0 || fclose(map)))
        return false;
    if (mkdir(path, 0700) || mount("none", path, "tmpfs", 0, "size=64k"))
        return false;
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    return fd >= 0 && write(fd, path, 1) == 1;
}

static void does_without_room_on_the_disk(void)
{
    int status;
    char *file = text("%s/full/calls", place);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (!full_disk())
            _exit(77);
        struct outcome few = TRY("calls", NULL), o = TRY("calls", "record", .file = file);
        _exit(strcmp(few.out, o.out) || o.status || access(text("%s.%d", file, o.pid), F_OK) == 0);
    }
    waitpid(pid, &status, 0);
    free(file);
    if (WEXITSTATUS(status) == 77)
        SKIP("no file system of our own can be mounted");
    CHECK_INT(status, 0);
}

/* --- copies --- */

static void stages_copies(void)
{
    struct outcome o = TRY("load", "stage");
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
    CHECK_INT(n_files(), 0);
    for (int major = 5; major <= 7; major++) {
        o = TRY("load", "record,stage", .fake = "invalid=1000", .major = major);
        CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
        struct record *r = record_of(o.pid);
        REQUIRE(r);
        CHECK_INT(r->counts.staged, 4);
        CHECK_INT(r->counts.staged_bytes, 4 * BIG);
        CHECK_INT(r->counts.stage_failed, 0);
    }
    o = TRY("load", "stage", .fake = "noevent=1");
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
    o = TRY("load", NULL);
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 4\n");
}

static void pieces_may_have_any_size(void)
{
    struct outcome o = TRY("load", "stage", .more = "CAIRN_PRELOAD_PIECE=70001");
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
    o = TRY("load", "stage", .more = "CAIRN_PRELOAD_PIECE=33554432");
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
    o = TRY("load", "stage", .more = "CAIRN_PRELOAD_PIECE=nonsense");
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
}

static void there_may_be_any_number_of_buffers(void)
{
    static const char *const rings[] = { "1", "3", "16", "17", "nonsense" };
    for (size_t i = 0; i < 5; i++) {
        char *more = text("CAIRN_PRELOAD_RING=%s", rings[i]);
        struct outcome o = TRY("load", "stage", .more = more);
        CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
        free(more);
    }
}

static void keeps_the_order_of_a_stream(void)
{
    for (int major = 5; major <= 7; major++) {
        struct outcome o = TRY("order", "record,stage,retry", .major = major);
        CHECK_STR(o.out, "1\n1\n1\n");
        struct record *r = record_of(o.pid);
        REQUIRE(r);
        CHECK_INT(r->counts.staged, 3); /* the sources, and nothing that was pinned behind our back */
    }
}

static void leaves_captures_alone(void)
{
    struct outcome bare = TRY("capture", NULL), o = TRY("capture", "stage,retry");
    CHECK_STR(bare.out, "0 0 0 0 pinned 1 0 pinned 2\n");
    CHECK_STR(o.out, "0 0 0 0 pinned 1 0 pinned 1\n");
    CHECK_STR(TRY("odd-capture", "stage,retry").out, "1 last 1 0 pinned 0 1 0 1 0 pinned 1 0\n");
    CHECK_STR(TRY("capture-between", "stage,retry").out, "0 0 1 0 0 1 pinned 0\n");
    CHECK_STR(TRY("destroyed-capture", "stage").out, "0 0 pinned 0 0 0 pinned 0\n");
    CHECK_STR(TRY("destroyed-capture", "stage", .fake = "nofree=1").out, "1 0 pinned 1 0 0 pinned 1\n");
}

static void answers_as_the_runtime_does(void)
{
    struct outcome bare = TRY("bad", NULL);
    CHECK_STR(bare.out, "1 last 1 1 last 1 0 0 1 0 last 0\n");
    static const char *const switches[] = { "record", "stage", "retry", "stage,retry", "all" };
    for (size_t i = 0; i < 5; i++) {
        struct outcome o = TRY("bad", switches[i]);
        CHECK_STR(o.out, bare.out);
        CHECK_INT(o.status, 0);
    }
}

static void pieces_stay_in_their_place(void)
{
    struct outcome bare = TRY("neighbour", NULL);
    CHECK_STR(bare.out, "1 1 1 1 last 1\n");
    static const char *const switches[] = { "stage", "retry", "stage,retry" };
    for (size_t i = 0; i < 3; i++)
        CHECK_STR(TRY("neighbour", switches[i]).out, bare.out);
    bare = TRY("wraps", NULL);
    CHECK_STR(bare.out, "1 1 last 1 1\n");
    for (size_t i = 0; i < 3; i++)
        CHECK_STR(TRY("wraps", switches[i]).out, bare.out);
}

static void one_stream_does_not_hold_up_another(void)
{
    CHECK_STR(TRY("stuck", "stage").out, "0 1\n");
    CHECK_STR(TRY("stuck-inside", "stage").out, "0 1\n");
    CHECK_STR(TRY("failed-stream", NULL).out, "719 last 719 719 last 719\n");
    CHECK_STR(TRY("failed-stream", "stage,retry").out, "719 last 719 719 last 719\n");
}

static void short_ones_do_not_wait_for_earlier_work(void)
{
    struct outcome o = TRY("ahead", "record,stage");
    CHECK_STR(o.out, "0 pinned 2 18 0 1 last 0\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.staged, 17);
    CHECK_INT(r->counts.stage_failed, 2);
    o = TRY("ahead", "stage", .fake = "noevent=1");
    CHECK_STR(o.out, "0 pinned 18 18 0 1 last 0\n");
    CHECK_STR(TRY("run-ahead", "stage").out, "0 40 pinned 0\n");
}

static void long_ones_wait_for_earlier_work(void)
{
    CHECK_STR(TRY("written-first", NULL).out, "0 1\n");
    struct outcome o = TRY("written-first", "record,stage");
    CHECK_STR(o.out, "0 1\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.staged, 1);
    static const char *const fakes[] = { "invalid=5000000", "invalid=5000000,nopin=1", "invalid=1000" };
    for (size_t i = 0; i < 3; i++)
        for (int both = 0; both < 2; both++)
            CHECK_STR(TRY("written-first", both ? "stage,retry" : "retry", .fake = fakes[i]).out, "0 1\n");
}

/* A runtime that does not read them at the call. */
static void short_ones_wait_in_older_runtimes(void)
{
    static const struct {
        const char *fake, *out;
    } of[] = { { "version=60342134", "0 1\n" }, { "version=60443482", "0 0\n" } };
    for (size_t i = 0; i < 2; i++) {
        CHECK_STR(TRY("written-first-short", NULL, .fake = of[i].fake).out, of[i].out);
        struct outcome o = TRY("written-first-short", "record,stage", .fake = of[i].fake);
        CHECK_STR(o.out, of[i].out);
        struct record *r = record_of(o.pid);
        REQUIRE(r);
        CHECK_INT(r->counts.staged, 1);
    }
}

static void asks_again_for_pinned_memory(void)
{
    struct outcome o = TRY("later", "stage,retry", .fake = "pinlater=2");
    /* Asked for at the first, the third and the sixth. */
    CHECK_STR(o.out,
              "0 pinned 1 0 pinned 2 0 pinned 3 0 pinned 4 0 pinned 5 0 pinned 5 0 pinned 5 0 pinned 5 "
              "0 pinned 5 last 0\n");
}

static void leaves_errors_where_they_are(void)
{
    static const char *const fakes[] = { "", "nopin=1" };
    for (size_t i = 0; i < 2; i++) {
        struct outcome bare = TRY("pending", NULL, .fake = fakes[i]);
        CHECK_STR(bare.out, "1 0 last 1 0 last 0\n");
        CHECK_STR(TRY("pending", "stage,retry", .fake = fakes[i]).out, bare.out);
    }
    static const char fake[] = "invalid=5000000,meagre=2000000,nopin=1"; /* pieces have another error */
    struct outcome bare = TRY("pending", NULL, .fake = fake);
    CHECK_STR(bare.out, "1 1 last 1 1 last 1\n");
    CHECK_STR(TRY("pending", "stage,retry", .fake = fake).out, bare.out);
}

static void a_reset_takes_all_back(void)
{
    struct outcome o = TRY("reset", "record,stage,retry,memory");
    CHECK_STR(o.out, "0 0 0 1\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.staged, 2);
}

static void mapped_memory_is_known(void)
{
    struct outcome bare = TRY("map", NULL), o = TRY("map", "record,stage");
    CHECK_STR(bare.out, "0 0 0 1 0 1\n");
    CHECK_STR(o.out, bare.out);
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.staged, 1);
    CHECK_INT(r->counts.stage_failed, 0);
}

static void tries_again_in_pieces(void)
{
    struct outcome bare = TRY("load", NULL, .fake = "invalid=5000000");
    CHECK_HAS(bare.out, "1 0 1 0 1 0 1 0 last 1");
    struct outcome o = TRY("load", "record,retry", .fake = "invalid=5000000");
    CHECK_HAS(o.out, "0 1 0 1 0 1 0 1 last 0");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.retried, 4);
    CHECK_INT(r->counts.retry_failed, 0);
    CHECK_INT(r->counts.staged, 0);
    o = TRY("load", "record,retry", .fake = "invalid=1000"); /* not even a small one: through pinned memory */
    CHECK_HAS(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0");
}

static void does_without_pinned_memory(void)
{
    struct outcome bare = TRY("load", NULL, .fake = "nopin=1");
    struct outcome o = TRY("load", "record,stage,retry", .fake = "nopin=1");
    CHECK_STR(o.out, bare.out);
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.staged, 0);
    CHECK_INT(r->counts.stage_failed, 4);
}

/* --- processes and threads --- */

static void a_second_runtime_gets_its_own_calls(void)
{
    struct outcome bare = TRY("two", NULL);
    CHECK_STR(bare.out, "0 pinned 1\n0 pinned 1\n0 pinned 2\n");
    struct outcome o = TRY("two", "record");
    CHECK_STR(o.out, bare.out);
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 6); /* of the first */
    CHECK_HAS(r->library, "libamdhip64.so.6");
    o = TRY("two", "stage");
    CHECK_STR(o.out, "0 pinned 0\n0 pinned 1\n0 pinned 0\n");
    bare = TRY("two-shared", NULL);
    CHECK_STR(bare.out, "0 pinned 1\n0 pinned 2\n0 pinned 3\n");
    o = TRY("two-shared", "record");
    CHECK_STR(o.out, bare.out);
}

static void many_may_call(void)
{
    struct outcome o = TRY("five", "record");
    CHECK_STR(o.out, "0 pinned 1\n0 pinned 1\n0 pinned 1\n0 pinned 1\n0 pinned 1\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 3);
#ifdef __x86_64__
    CHECK_STR(TRY("made", "record").out, "0 pinned 1\n");
#endif
}

/* A folder with what stands for PyTorch and its runtime. */
static char *copied_world(const char *name)
{
    char *at = text("%s/%s", place, name);
    char *command = text("mkdir %s && cp %s/libamdhip64.so.6 %s/libtorch6.so %s", at, folder, folder, at);
    CHECK(!system(command));
    free(command);
    return at;
}

static void nobody_who_calls_is_forgotten(void)
{
    char *at = copied_world("callers"), *torch = text("%s/libtorch6.so", at);
    char *command = text("cd %s && for i in $(seq 0 199); do cp libtorch6.so $i.so; done", at);
    CHECK(!system(command));
    CHECK_STR(TRY("callers", "record", .torch = torch).out, "1 0\n");
    free(at);
    free(torch);
    free(command);
}

/* Behind everything, where only the loader that reads the file finds it. */
static bool move_table(const char *path)
{
    enum { FAR = 64 << 20 };
    int fd = open(path, O_RDWR);
    ElfW(Ehdr) file;
    ElfW(Phdr) parts[32];
    if (fd < 0 || pread(fd, &file, sizeof(file), 0) != sizeof(file) || file.e_phnum > 32)
        return false;
    const ssize_t n = (ssize_t)(file.e_phnum * sizeof(parts[0]));
    bool good =
        pread(fd, parts, (size_t)n, (off_t)file.e_phoff) == n && pwrite(fd, parts, (size_t)n, FAR) == n;
    file.e_phoff = FAR;
    good = good && pwrite(fd, &file, sizeof(file), 0) == sizeof(file);
    return !close(fd) && good;
}

static void a_caller_may_have_no_table_in_memory(void)
{
    char *at = copied_world("moved"), *torch = text("%s/libtorch6.so", at);
    REQUIRE(move_table(torch));
    CHECK_STR(TRY("once", NULL, .torch = torch).out, "0\n");
    struct outcome o = TRY("once", "record", .torch = torch);
    CHECK_STR(o.out, "0\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 1);
    free(at);
    free(torch);
}

static void a_runtime_may_lack_functions(void)
{
    CHECK_STR(TRY("lacking", "record").out, "801\n");
}

static void passes_an_unknown_version_through(void)
{
    struct outcome bare = TRY("load", NULL, .major = 9), o = TRY("load", "all", .major = 9);
    CHECK_STR(o.out, bare.out);
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->switches, SWITCH_RECORD);
    CHECK(record_n_calls(r) > 4);
    bare = TRY("figures", NULL, .major = 9);
    o = TRY("figures", "all", .major = 9, .budget = true);
    CHECK_STR(o.out, bare.out);
}

static void threads_do_not_mix(void)
{
    struct outcome o = TRY("threads", "record,stage,retry,memory");
    CHECK_STR(o.out, "400\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK(r->counts.staged >= 200);
    CHECK_INT(r->counts.staged + r->counts.stage_failed, 400);
    CHECK_INT(record_n_calls(r), 20 + 400 * 5);
}

static void threads_may_live_at_exit(void)
{
    for (int i = 0; i < 5; i++) {
        struct outcome o = TRY("exit", "record,stage,retry,memory,guard");
        CHECK_STR(o.out, "bye\n");
        CHECK_INT(WEXITSTATUS(o.status), 9);
        CHECK(WIFEXITED(o.status));
    }
}

/* Names as tools give them that make wheels, a runtime that calls itself something else, and a place far down. */
static void finds_the_runtime_under_any_name(void)
{
    static const char step[] =
        "a-folder-with-a-name-that-is-longer-than-anybody-would-like-to-type-every-day-of-the-week";
    char *deep = text("%s/%s/%s/%s/%s/%s/%s/%s", place, step, step, step, step, step, step, step);
    char *command =
        text("mkdir -p %s && cp %s/libamdhip64.so.6 %s/libtorch6.so %s", deep, folder, folder, deep);
    REQUIRE(!system(command));
    char *torches[] = { text("%s/libtorch-hashed.so", folder), text("%s/libtorch-other.so", folder),
                        text("%s/libtorch6.so", deep) };
    for (size_t i = 0; i < 3; i++) {
        struct outcome o = TRY("load", "record,stage", .torch = torches[i]);
        CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
        CHECK(record_of(o.pid));
        free(torches[i]);
    }
    free(deep);
    free(command);
}

static void a_cancelled_thread_takes_no_lock_along(void)
{
    struct outcome o = TRY("cancel", "all", .budget = true);
    CHECK_STR(o.out, "asked 0\n");
}

int main(int argc, char **argv)
{
    if (!trial_begin(argc, argv))
        return 2;
    RUN(stages_copies);
    RUN(writes_calls_down);
    RUN(knows_when_it_was);
    RUN(survives_a_kill);
    RUN(keeps_what_there_is_room_for);
    RUN(signals_leave_the_file_whole);
    RUN(does_without_its_file);
    RUN(exec_keeps_the_number);
    RUN(files_may_be_limited);
    RUN(a_kernel_is_named_once);
    RUN(a_module_takes_its_names_along);
    RUN(does_without_room_on_the_disk);
    RUN(pieces_may_have_any_size);
    RUN(there_may_be_any_number_of_buffers);
    RUN(keeps_the_order_of_a_stream);
    RUN(leaves_captures_alone);
    RUN(answers_as_the_runtime_does);
    RUN(pieces_stay_in_their_place);
    RUN(one_stream_does_not_hold_up_another);
    RUN(short_ones_do_not_wait_for_earlier_work);
    RUN(long_ones_wait_for_earlier_work);
    RUN(short_ones_wait_in_older_runtimes);
    RUN(asks_again_for_pinned_memory);
    RUN(leaves_errors_where_they_are);
    RUN(a_reset_takes_all_back);
    RUN(mapped_memory_is_known);
    RUN(tries_again_in_pieces);
    RUN(does_without_pinned_memory);
    RUN(passes_an_unknown_version_through);
    RUN(a_second_runtime_gets_its_own_calls);
    RUN(many_may_call);
    RUN(nobody_who_calls_is_forgotten);
    RUN(a_caller_may_have_no_table_in_memory);
    RUN(a_runtime_may_lack_functions);
    RUN(threads_do_not_mix);
    RUN(threads_may_live_at_exit);
    RUN(a_cancelled_thread_takes_no_lock_along);
    RUN(finds_the_runtime_under_any_name);
    return trial_done();
}
