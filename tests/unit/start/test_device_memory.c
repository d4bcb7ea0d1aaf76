/* SPDX-License-Identifier: Apache-2.0 */
#include "start/device_memory.h"

#include "check.h"
#include "host/facts.h"
#include "tree.h"

#define GIB ((int64_t)1 << 30)
#define UNIFIED "0000:c5:00.0"

static const char *const no_env[] = { NULL };

static uint64_t budget_at(const char *root, const char *pci)
{
    const struct facts_options o = { .root = root, .env = no_env, .parts = FACTS_HARDWARE };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    if (facts_read(&f, &o, &err)) {
        CHECK_STR(err.msg, "");
        return UINT64_MAX;
    }
    return device_memory_budget(&f, pci);
}

static uint64_t budget_of(const char *machine, const char *pci)
{
    char root[PATH_MAX];
    snprintf(root, sizeof(root), "%s/%s", check_data("sysfs"), machine);
    return budget_at(root, pci);
}

/* All that the desktop does not hold. */
static void a_card_of_its_own(void)
{
    CHECK_INT(budget_of("gfx1030-rx6900xt-desktop-drm-only", "0000:0c:00.0"), 17163091968 - 668274688);
    CHECK_INT(budget_of("gfx900-vega56-desktop-smallbar", "0000:0b:00.0"), 8573157376 - 16613376);
}

/* A fifth is Linux's, or 16 GiB if that is less. */
static void memory_that_is_shared(void)
{
    CHECK_INT(budget_of("gfx1103-phoenix-780m-laptop", "0000:64:00.0"), 31433977856 - 31433977856 / 5);
    CHECK_INT(budget_of("gfx1151-strixhalo-hal0-lxc-container", "0000:bf:00.0"), 95328494592 - 16 * GIB);
}

static void what_is_not_known_is_no_budget(void)
{
    CHECK_INT(budget_of("gfx908-mi100", "0000:23:00.0"), 0);
    CHECK_INT(budget_of("gfx1103-phoenix-780m-laptop", "0000:65:00.0"), 0);
    CHECK_INT(budget_of("gfx1103-phoenix-780m-laptop", ""), 0);
}

/* An APU with 60 GiB of GTT on a host with 64, of which 50 are left. */
static struct tree apu(void)
{
    struct tree t;
    tree_make(&t);
#define DEVICE "sys/devices/pci0000:00/" UNIFIED "/"
    tree_put(&t, "proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   52428800 kB\n");
    tree_put(&t, "sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\n");
    tree_put(&t, "sys/class/kfd/kfd/topology/nodes/1/properties",
             "cpu_cores_count 0\nsimd_count 80\ngfx_target_version 110501\nvendor_id 4098\ndevice_id 5510\n"
             "location_id 50432\ndomain 0\ndrm_render_minor 128\n");
    tree_put(&t, "sys/class/kfd/kfd/topology/nodes/1/gpu_id", "7\n");
    tree_put(&t, DEVICE "vendor", "0x1002\n");
    tree_put(&t, DEVICE "device", "0x1586\n");
    tree_put(&t, DEVICE "class", "0x038000\n");
    tree_put(&t, DEVICE "mem_info_vram_total", "536870912\n");
    tree_put(&t, DEVICE "mem_info_gtt_total", "64424509440\n");
    tree_put(&t, DEVICE "drm/renderD128/dev", "226:128\n");
    tree_link(&t, "sys/bus/pci/devices/" UNIFIED, "../../../devices/pci0000:00/" UNIFIED);
    tree_link(&t, "sys/class/drm/renderD128", "../../devices/pci0000:00/" UNIFIED "/drm/renderD128");
    tree_link(&t, DEVICE "drm/renderD128/device", "../../../" UNIFIED);
#undef DEVICE
    return t;
}

static void what_the_host_has_left(void)
{
    struct tree t = apu();
    CHECK_INT(budget_at(t.dir, UNIFIED), 40 * GIB);
    tree_remove(&t);
}

static void a_limit_of_the_cgroup(void)
{
    struct tree t = apu();
    tree_put(&t, "proc/self/cgroup", "0::/job\n");
    tree_put(&t, "sys/fs/cgroup/job/memory.max", "12884901888\n");
    tree_put(&t, "sys/fs/cgroup/job/memory.current", "2147483648\n");
    CHECK_INT(budget_at(t.dir, UNIFIED), 8 * GIB);
    /* Nothing left is not the same as nothing known. */
    tree_put(&t, "sys/fs/cgroup/job/memory.current", "12884901888\n");
    CHECK_INT(budget_at(t.dir, UNIFIED), 1);
    tree_remove(&t);
}

int main(void)
{
    RUN(a_card_of_its_own);
    RUN(memory_that_is_shared);
    RUN(what_is_not_known_is_no_budget);
    RUN(what_the_host_has_left);
    RUN(a_limit_of_the_cgroup);
    return check_done();
}
