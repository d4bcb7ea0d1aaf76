/* SPDX-License-Identifier: Apache-2.0 */
#include "run/memory_monitor.h"

#include "check.h"
#include "scratch.h"

static const int64_t gib = (int64_t)1 << 30;

static void set_available(int64_t bytes)
{
    char text[128];
    snprintf(text, sizeof(text), "MemTotal: 134217728 kB\nMemFree: 1 kB\nMemAvailable:   %lld kB\n",
             (long long)bytes / 1024);
    scratch_file("proc/meminfo", text);
}

static struct gpu_facts gpu = {
    .kind = GPU_INTEGRATED,
    .vram_total_bytes = { 1 << 20, "/sys/mem_info_vram_total" },
};

static struct facts make_machine(int64_t available)
{
    struct facts f = { .host.memory_total_bytes = { 128 * gib, "/proc/meminfo" } };
    struct cairn_error err = { 0 };
    set_available(available);
    scratch_file("sys/mem_info_vram_used", "1000\n");
    scratch_file("sys/mem_info_gtt_used", "20\n");
    scratch_file("sys/gpu_busy_percent", "55\n");
    if (root_open(&f.root, scratch(""), &err))
        abort();
    return f;
}

static void reads_and_keeps_the_peak(void)
{
    struct facts f = make_machine(100 * gib);
    struct memory_monitor g;
    memory_monitor_init(&g, &f, &gpu);
    CHECK_INT(g.now.vram_used_bytes, 1000);
    CHECK_INT(memory_monitor_gpu_bytes(&g.now), 1020);
    CHECK_INT(g.now.busy_percent, 55);
    CHECK_INT(g.now.host_available_bytes, 100 * gib);
    scratch_file("sys/mem_info_vram_used", "9000\n");
    set_available(40 * gib);
    memory_monitor_read(&g);
    scratch_file("sys/mem_info_vram_used", "10\n");
    set_available(90 * gib);
    memory_monitor_read(&g);
    CHECK_INT(g.now.vram_used_bytes, 10);
    CHECK_INT(g.peak.vram_used_bytes, 9000);
    CHECK_INT(g.peak.host_available_bytes, 40 * gib);
    root_close(&f.root);
}

static void guards_memory_that_is_shared(void)
{
    struct facts f = make_machine(100 * gib);
    struct memory_monitor g;
    memory_monitor_init(&g, &f, &gpu);
    CHECK_INT(g.guard_bytes, 8 * gib);
    set_available(15 * gib); /* the library in the trainer allows up to 16, and what it cannot see changes */
    memory_monitor_read(&g);
    memory_monitor_read(&g);
    CHECK(!memory_monitor_guard(&g));
    set_available(7 * gib);
    memory_monitor_read(&g);
    CHECK(!memory_monitor_guard(&g)); /* once may be chance */
    memory_monitor_read(&g);
    CHECK(memory_monitor_guard(&g));
    set_available(50 * gib);
    memory_monitor_read(&g);
    CHECK(!memory_monitor_guard(&g));
    set_available(3 * gib); /* no time for a second look */
    memory_monitor_read(&g);
    CHECK(memory_monitor_guard(&g));
    root_close(&f.root);
}

static void a_full_machine_is_not_stopped_at_once(void)
{
    struct facts f = make_machine(10 * gib);
    struct memory_monitor g;
    memory_monitor_init(&g, &f, &gpu);
    CHECK_INT(g.guard_bytes, 10 * gib / 4);
    memory_monitor_read(&g);
    memory_monitor_read(&g);
    CHECK(!memory_monitor_guard(&g));
    set_available(90 * gib); /* there is more again, and it is guarded as usual */
    memory_monitor_read(&g);
    CHECK_INT(g.guard_bytes, 8 * gib);
    set_available(5 * gib);
    memory_monitor_read(&g);
    memory_monitor_read(&g);
    CHECK(memory_monitor_guard(&g));
    memory_monitor_begin(&g); /* a second attempt */
    CHECK(!memory_monitor_guard(&g));
    CHECK_INT(g.guard_bytes, 5 * gib / 4);
    root_close(&f.root);
}

static void a_discrete_card_has_no_guard(void)
{
    struct facts f = make_machine(100 * gib);
    struct gpu_facts card = { .kind = GPU_DISCRETE };
    struct memory_monitor g;
    memory_monitor_init(&g, &f, &card);
    set_available(0);
    memory_monitor_read(&g);
    memory_monitor_read(&g);
    CHECK(!memory_monitor_guard(&g));
    CHECK_INT(memory_monitor_gpu_bytes(&g.now), -1);
    root_close(&f.root);
}

static void a_sleeping_gpu_is_left_asleep(void)
{
    struct facts f = make_machine(100 * gib);
    struct memory_monitor g;
    scratch_file("sys/power/runtime_status", "suspended\n");
    memory_monitor_init(&g, &f, &gpu);
    CHECK_INT(g.now.busy_percent, -1);
    scratch_file("sys/power/runtime_status", "active\n");
    memory_monitor_read(&g);
    CHECK_INT(g.now.busy_percent, 55);
    root_close(&f.root);
}

static void what_cannot_be_read_is_not_known(void)
{
    struct facts f = make_machine(100 * gib);
    struct memory_monitor g;
    memory_monitor_init(&g, &f, &gpu);
    remove(scratch("proc/meminfo"));
    scratch_file("sys/gpu_busy_percent", "many\n");
    memory_monitor_read(&g);
    memory_monitor_read(&g);
    CHECK_INT(g.now.host_available_bytes, -1);
    CHECK_INT(g.now.busy_percent, -1);
    CHECK(!memory_monitor_guard(&g));
    root_close(&f.root);
}

/* Of each attempt by itself. */
static void the_least_of_an_attempt_is_kept(void)
{
    struct facts f = make_machine(100 * gib);
    struct memory_monitor g;
    scratch_file("proc/self/cgroup", "0::/job\n");
    scratch_file("sys/fs/cgroup/job/memory.max", "68719476736\n"); /* 64 GiB */
    scratch_file("sys/fs/cgroup/job/memory.current", "17179869184\n");
    scratch_file("sys/fs/cgroup/job/memory.events", "low 0\noom 1\noom_kill 2\n");
    scratch_file("proc/vmstat", "pgfault 7\noom_kill 40\n");
    memory_monitor_init(&g, &f, &gpu);
    set_available(40 * gib);
    scratch_file("sys/fs/cgroup/job/memory.current", "64424509440\n");
    memory_monitor_read(&g);
    set_available(90 * gib);
    scratch_file("sys/fs/cgroup/job/memory.current", "17179869184\n");
    scratch_file("sys/fs/cgroup/job/memory.events", "low 0\noom 1\noom_kill 3\n");
    scratch_file("proc/vmstat", "pgfault 7\noom_kill 42\n");
    memory_monitor_end(&g);
    CHECK(g.memory.watched);
    CHECK_INT(g.memory.host_total_bytes, 128 * gib);
    CHECK_INT(g.memory.host_least_bytes, 40 * gib);
    CHECK_INT(g.memory.cgroup_limit_bytes, 64 * gib);
    CHECK_INT(g.memory.cgroup_least_bytes, 4 * gib);
    CHECK_INT(g.memory.oom_kills, 2);
    CHECK_INT(g.memory.cgroup_oom_kills, 1);
    memory_monitor_begin(&g);
    memory_monitor_end(&g);
    CHECK_INT(g.memory.host_least_bytes, 90 * gib);
    CHECK_INT(g.memory.oom_kills, 0);
    root_close(&f.root);
}

static void what_was_seen_of_memory_survives_a_journal(void)
{
    const struct diagnose_memory m = { true, 32 * gib, 30 * gib, -1, -1, 0, -1 };
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    memory_monitor_memory_json(&m, v);
    struct diagnose_memory back = memory_monitor_memory_of(v);
    CHECK(back.watched && back.host_total_bytes == 32 * gib && back.host_least_bytes == 30 * gib);
    CHECK(back.cgroup_limit_bytes == -1 && back.cgroup_least_bytes == -1);
    CHECK(back.oom_kills == 0 && back.cgroup_oom_kills == -1);
    CHECK(!memory_monitor_memory_of(NULL).watched);
}

int main(void)
{
    RUN(the_least_of_an_attempt_is_kept);
    RUN(what_was_seen_of_memory_survives_a_journal);
    RUN(reads_and_keeps_the_peak);
    RUN(guards_memory_that_is_shared);
    RUN(a_full_machine_is_not_stopped_at_once);
    RUN(a_discrete_card_has_no_guard);
    RUN(a_sleeping_gpu_is_left_asleep);
    RUN(what_cannot_be_read_is_not_known);
    return check_done();
}
