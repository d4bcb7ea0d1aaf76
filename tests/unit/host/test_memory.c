/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "host/memory.h"
#include "host/kernel.h"
#include "tree.h"

#define GIB ((int64_t)1 << 30)

static struct arena arena;

static struct num known(int64_t v)
{
    return (struct num){ v, "test" };
}

static void carve_out_and_gtt_do_not_add(void)
{
    struct host_facts h = { 0 };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(GIB),
                           .gtt_total_bytes = known(60 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 60 * GIB);
    CHECK_HAS(g.usable_reason, "GTT");
}

static void a_larger_carve_out_wins(void)
{
    struct host_facts h = { .memory_available_bytes = known(20 * GIB) };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(96 * GIB),
                           .gtt_total_bytes = known(16 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 96 * GIB); /* the carve-out is not part of the host's memory */
    REQUIRE(g.problems.n == 1);
    CHECK_HAS(g.problems.text[0], "carve-out");
}

static void page_limit_below_gtt(void)
{
    struct module_param limit = { "ttm", "pages_limit", "1048576", "/sys/module/ttm/parameters/pages_limit" };
    struct host_facts h = { .params = &limit, .n_params = 1 };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(GIB),
                           .gtt_total_bytes = known(60 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 4 * GIB);
    CHECK_HAS(g.usable_reason, "pages_limit");
    REQUIRE(g.problems.n == 1);
    CHECK_HAS(g.problems.text[0], "4.0 GiB");
}

/* With AMD's DKMS driver only amdttm's limit counts, and a limit of 0 stands for the default. */
static void the_live_copy_of_ttm_counts(void)
{
    struct module_param limits[] = {
        { "ttm", "pages_limit", "1048576", "/proc/cmdline" },
        { "amdttm", "pages_limit", "2097152", "/sys/module/amdttm/parameters/pages_limit" },
    };
    struct host_facts h = { .params = limits, .n_params = 2 };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(GIB),
                           .gtt_total_bytes = known(60 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 8 * GIB);
    CHECK_HAS(g.usable_reason, "amdttm.pages_limit");
    limits[1].value = "0";
    CHECK_INT(memory_ttm_limit(&h).v, 4 * GIB);
    h.params = &limits[1];
    h.n_params = 1;
    CHECK(!memory_ttm_limit(&h).from);
}

static void a_limit_without_gtt(void)
{
    struct module_param limit = { "ttm", "pages_limit", "1048576", "/sys/module/ttm/parameters/pages_limit" };
    struct host_facts h = { .params = &limit, .n_params = 1 };
    struct gpu_facts g = { .kind = GPU_INTEGRATED };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 4 * GIB);
    CHECK_STR(g.usable_reason, "ttm.pages_limit; GTT is unknown");
}

static void an_mi300a_has_no_carve_out(void)
{
    struct host_facts h = { .memory_total_bytes = known(128 * GIB),
                            .memory_available_bytes = known(100 * GIB) };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .gfx = { "gfx942", "kfd" },
                           .vram_total_bytes = known(128 * GIB),
                           .gtt_total_bytes = known(64 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 100 * GIB);
    CHECK_INT(g.problems.n, 0);
}

static void raised_gttsize_alone_does_not_help(void)
{
    struct module_param gtt = { "amdgpu", "gttsize", "131072", "/proc/cmdline" };
    struct host_facts h = { .params = &gtt, .n_params = 1, .memory_total_bytes = known(124 * GIB) };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(GIB),
                           .gtt_total_bytes = known(128 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 62 * GIB);
    CHECK_STR(g.usable_reason,
              "ttm.pages_limit, which is smaller than GTT"); /* no sign of AMD's own amdttm */
    h.memory_total_bytes =
        (struct num){ 0 }; /* then nobody knows the default, and the figure of GTT is no limit */
    memory_judge_gpu(&h, &arena, &g);
    CHECK(!g.usable_bytes.from && !memory_total(&h, &arena, &g).from);
    g.kfd_bank_bytes = known(61 * GIB);
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 61 * GIB);
    g.kfd_bank_bytes = (struct num){ 0 };
    gtt.value = "-1"; /* the default: GTT follows the page limit */
    h.memory_total_bytes = known(200 * GIB);
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 128 * GIB);
}

static void host_and_cgroup_bound_an_apu(void)
{
    struct host_facts h = { .memory_total_bytes = known(90 * GIB),
                            .memory_available_bytes = known(50 * GIB) };
    struct gpu_facts g = { .kind = GPU_INTEGRATED, .gtt_total_bytes = known(100 * GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 50 * GIB);
    h.cgroup_limit_bytes = known(8 * GIB);
    h.cgroup_used_bytes = known(3 * GIB);
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 5 * GIB);
    CHECK_HAS(g.usable_reason, "cgroup");
    h.cgroup_used_bytes = known(9 * GIB);
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 0);
}

static void old_kernels_give_hip_the_carve_out_only(void)
{
    struct host_facts h = { 0 };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(GIB / 2),
                           .gtt_total_bytes = known(60 * GIB),
                           .kfd_bank_bytes = known(GIB / 2) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, GIB / 2);
    CHECK_HAS(g.usable_reason, "KFD");

    /* What the host has left, and TTM's limit, are about other memory. */
    struct module_param limit = { "ttm", "pages_limit", "1048576", "/sys/module/ttm/parameters/pages_limit" };
    h = (struct host_facts){ .memory_available_bytes = known(2 * GIB), .params = &limit, .n_params = 1 };
    g.vram_total_bytes = g.kfd_bank_bytes = known(16 * GIB);
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 16 * GIB);
    CHECK_INT(g.problems.n, 0);
}

static void a_card_has_what_nobody_holds(void)
{
    struct host_facts h = { .memory_available_bytes = known(GIB) };
    struct gpu_facts g = { .kind = GPU_DISCRETE,
                           .vram_total_bytes = known(16 * GIB),
                           .gtt_total_bytes = known(GIB) };
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 16 * GIB);
    g.vram_used_bytes = known(3 * GIB);
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 13 * GIB);
    g.vram_used_bytes = known(17 * GIB); /* more than there is: not believed */
    memory_judge_gpu(&h, &arena, &g);
    CHECK_INT(g.usable_bytes.v, 16 * GIB);
}

static void what_a_card_has_and_holds(void)
{
    struct host_facts h = { .memory_available_bytes = known(GIB) };
    struct gpu_facts g = { .kind = GPU_DISCRETE, .kfd_bank_bytes = known(16 * GIB) };
    struct memory_use m = memory_use(&h, &arena, &g);
    CHECK_INT(m.total.v, 16 * GIB);
    CHECK(!m.used.from && !m.free.from);
    g.vram_total_bytes = known(16 * GIB);
    g.vram_used_bytes = known(3 * GIB);
    m = memory_use(&h, &arena, &g);
    CHECK_INT(m.total.v, 16 * GIB); /* the host's memory is not the card's */
    CHECK_INT(m.used.v, 3 * GIB);
    CHECK_INT(m.free.v, 13 * GIB);
    g.vram_used_bytes = known(17 * GIB);
    CHECK_INT(memory_use(&h, &arena, &g).free.v, 0);
}

/* The budget stays the same while a trainer fills it: what the GPU takes, the host has less. */
static void the_budget_of_an_apu(void)
{
    struct host_facts h = { .memory_total_bytes = known(128 * GIB),
                            .memory_available_bytes = known(90 * GIB) };
    struct gpu_facts g = { .kind = GPU_INTEGRATED,
                           .vram_total_bytes = known(GIB),
                           .vram_used_bytes = known(GIB / 2),
                           .gtt_total_bytes = known(112 * GIB),
                           .gtt_used_bytes = known(10 * GIB) };
    struct memory_use m = memory_use(&h, &arena, &g);
    CHECK_INT(m.total.v, 100 * GIB);
    CHECK_INT(m.used.v, 10 * GIB);
    CHECK_INT(m.free.v, 90 * GIB);
    g.gtt_used_bytes = known(70 * GIB);
    h.memory_available_bytes = known(30 * GIB);
    CHECK_INT(memory_use(&h, &arena, &g).total.v, 100 * GIB);
    h.memory_available_bytes = known(120 * GIB);
    m = memory_use(&h, &arena, &g);
    CHECK_INT(m.total.v, 112 * GIB); /* no more than HIP gives */
    CHECK_INT(m.free.v, 42 * GIB);
    g.gtt_used_bytes = (struct num){ 0 };
    m = memory_use(&h, &arena, &g);
    CHECK_INT(m.total.v, 112 * GIB);
    CHECK(!m.used.from && !m.free.from);
    g = (struct gpu_facts){ .kind = GPU_INTEGRATED,
                            .vram_total_bytes = known(96 * GIB),
                            .vram_used_bytes = known(4 * GIB),
                            .gtt_total_bytes = known(16 * GIB) };
    h.memory_available_bytes = known(8 * GIB);
    m = memory_use(&h, &arena, &g);
    CHECK_INT(m.total.v, 96 * GIB); /* a carve-out is not the host's */
    CHECK_INT(m.free.v, 92 * GIB);
}

static void nothing_known_is_unknown(void)
{
    struct host_facts h = { 0 };
    struct gpu_facts apu = { .kind = GPU_INTEGRATED }, card = { .kind = GPU_DISCRETE };
    memory_judge_gpu(&h, &arena, &apu);
    memory_judge_gpu(&h, &arena, &card);
    CHECK(!apu.usable_bytes.from && !apu.usable_reason);
    CHECK(!card.usable_bytes.from && !card.usable_reason);
    CHECK(!memory_use(&h, &arena, &apu).total.from && !memory_use(&h, &arena, &card).total.from);
    struct gpu_facts odd = { .kfd_bank_bytes = known(16 * GIB) }; /* a chip outside the tables */
    memory_judge_gpu(&h, &arena, &odd);
    CHECK_INT(odd.usable_bytes.v, 16 * GIB);
}

static void reads_the_host(void)
{
    struct tree t;
    struct cairn_error err;
    struct facts f = { 0 };
    tree_make(&t);
    tree_put(&t, "proc/meminfo",
             "MemTotal:       1024 kB\nMemAvailable:   512 kB\nSwapTotal: 12 kB\nHMemTotal: 3 kB\n");
    tree_put(&t, "proc/swaps",
             "Filename Type Size Used Priority\n/dev/sda2 partition 4 0 -2\n/dev/zram0 partition 8 0 100\n");
    tree_put(&t, "proc/self/cgroup", "0::/a/b\n");
    tree_put(&t, "sys/fs/cgroup/a/b/memory.max", "max\n");
    tree_put(&t, "sys/fs/cgroup/a/memory.max", "4096\n");
    tree_put(&t, "sys/fs/cgroup/a/memory.current", "196\n");
    tree_put(&t, "sys/fs/cgroup/a/memory.stat", "anon 96\nactive_file 0\ninactive_file 100\n");
    REQUIRE(!root_open(&f.root, t.dir, &err));
    memory_read(&f);
    CHECK_INT(f.host.memory_total_bytes.v, 1 << 20);
    CHECK_INT(f.host.memory_available_bytes.v, 1 << 19);
    CHECK_INT(f.host.swap_total_bytes.v, 12 << 10);
    CHECK_INT(f.host.zram_bytes.v, 8 << 10);
    CHECK_INT(f.host.cgroup_limit_bytes.v, 4096);
    CHECK_INT(f.host.cgroup_used_bytes.v, 96);
    facts_release(&f);
    tree_remove(&t);
}

static void cgroup_v1(void)
{
    struct tree t;
    struct cairn_error err;
    struct facts f = { 0 };
    tree_make(&t);
    tree_put(&t, "proc/self/cgroup", "5:memory:/docker/x\n4:cpu:/\n");
    tree_put(&t, "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put(&t, "sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n");
    tree_put(&t, "sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    REQUIRE(!root_open(&f.root, t.dir, &err));
    memory_read(&f);
    CHECK_INT(f.host.cgroup_limit_bytes.v, 8192);
    facts_release(&f);
    tree_remove(&t);
}

static void reads_parameters_and_the_system(void)
{
    struct tree t;
    struct cairn_error err;
    struct facts f = { 0 };
    tree_make(&t);
    tree_put(&t, "proc/version", "Linux version 6.18.0-rc6-custom (gcc) #1\n");
    tree_put(&t, "proc/cmdline",
             "quiet amdgpu.gttsize=1 xamdgpu.gttsize=9 amdgpu.gttsize=2 ttm.pages_limit=7\n");
    tree_put(&t, "sys/module/ttm/parameters/pages_limit", "29360128\n");
    tree_put(&t, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    tree_put(&t, "etc/os-release", "NAME=x\nID=ubuntu\nPRETTY_NAME=\"Ubuntu 24.04\"\n");
    tree_put(&t, "etc/group", "root:x:0:\nrender:x:993:me\nvideo:x:44:\n");
    tree_put(&t, "run/systemd/container", "lxc\n");
    tree_put(&t, "dev/null", "");
    REQUIRE(!root_open(&f.root, t.dir, &err));
    kernel_read(&f);
    CHECK_STR(f.host.kernel.s, "6.18.0-rc6-custom");
    CHECK(f.host.kernel_version.pre && version_below(f.host.kernel_version, 6, 18, 0));
    CHECK_STR(f.host.os_id.s, "ubuntu");
    CHECK_STR(f.host.os_name.s, "Ubuntu 24.04");
    CHECK_STR(f.host.thp.s, "madvise");
    CHECK_STR(f.host.container.s, "lxc");
    CHECK_INT(f.host.render_gid, 993);
    REQUIRE(host_param(&f.host, "amdgpu", "gttsize") && host_param(&f.host, "ttm", "pages_limit"));
    CHECK_STR(host_param(&f.host, "amdgpu", "gttsize")->value, "2");
    CHECK_STR(host_param(&f.host, "ttm", "pages_limit")->value, "29360128"); /* live beats asked for */
    CHECK(!host_param(&f.host, "amdgpu", "cwsr_enable"));
    CHECK_INT(f.host.kfd_node.access, NODE_MISSING);
    facts_release(&f);
    tree_remove(&t);
}

/* A capture that went through Windows. */
static void lines_may_end_in_crlf(void)
{
    struct tree t;
    struct cairn_error err;
    struct facts f = { 0 };
    tree_make(&t);
    tree_put(&t, "proc/self/cgroup", "0::/a\r\n1:name=x:/\r\n");
    tree_put(&t, "sys/fs/cgroup/a/memory.max", "4096\r\n");
    tree_put(&t, "etc/os-release", "ID=fedora\r\nPRETTY_NAME=\"Fedora Linux 43\"\r\n");
    REQUIRE(!root_open(&f.root, t.dir, &err));
    kernel_read(&f);
    memory_read(&f);
    CHECK_INT(f.host.cgroup_limit_bytes.v, 4096);
    CHECK_STR(f.host.os_id.s, "fedora");
    CHECK_STR(f.host.os_name.s, "Fedora Linux 43");
    facts_release(&f);
    tree_remove(&t);
}

int main(void)
{
    RUN(carve_out_and_gtt_do_not_add);
    RUN(a_larger_carve_out_wins);
    RUN(page_limit_below_gtt);
    RUN(the_live_copy_of_ttm_counts);
    RUN(a_limit_without_gtt);
    RUN(an_mi300a_has_no_carve_out);
    RUN(raised_gttsize_alone_does_not_help);
    RUN(host_and_cgroup_bound_an_apu);
    RUN(old_kernels_give_hip_the_carve_out_only);
    RUN(a_card_has_what_nobody_holds);
    RUN(what_a_card_has_and_holds);
    RUN(the_budget_of_an_apu);
    RUN(nothing_known_is_unknown);
    RUN(reads_the_host);
    RUN(cgroup_v1);
    RUN(reads_parameters_and_the_system);
    arena_release(&arena);
    RUN(lines_may_end_in_crlf);
    return check_done();
}
