/* SPDX-License-Identifier: Apache-2.0
 * The joined list of GPUs, on trees made for one trap each.  Whole machines are in tests/cli/gpu. */
#include "check.h"
#include "host/drm.h"
#include "host/facts.h"
#include "host/gpu_names.h"
#include "tree.h"

#define NODES "sys/class/kfd/kfd/topology/nodes/"
#define DRM "sys/class/drm/"

static struct tree tree;
static struct facts facts;

static void look(void)
{
    struct cairn_error err = { 0 };
    struct facts_options o = { .root = tree.dir, .parts = FACTS_HARDWARE };
    if (facts_read(&facts, &o, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
}

static void done(void)
{
    facts_release(&facts);
    tree_remove(&tree);
}

static void card(const char *name, const char *slot, const char *id, const char *driver)
{
    char path[128], text[256];
    snprintf(path, sizeof(path), DRM "%s/device/uevent", name);
    snprintf(text, sizeof(text), "DRIVER=%s\nPCI_CLASS=30000\nPCI_ID=%s\nPCI_SLOT_NAME=%s\n", driver, id,
             slot);
    tree_put(&tree, path, text);
}

static void card_order_is_not_node_order(void)
{
    tree_make(&tree);
    tree_put(&tree, NODES "1/properties",
             "simd_count 80\ngfx_target_version 100301\nlocation_id 768\ndevice_id 29663\n");
    tree_put(&tree, NODES "2/properties",
             "simd_count 4\ngfx_target_version 100306\nlocation_id 4608\ndevice_id 5710\n");
    card("card0", "0000:12:00.0", "1002:164E", "amdgpu");
    card("card1", "0000:03:00.0", "1002:73DF", "amdgpu");
    tree_put(&tree, DRM "card0/device/mem_info_vram_total", "536870912\n");
    tree_put(&tree, DRM "card1/device/mem_info_vram_total", "12868124672\n");
    tree_put(&tree, DRM "card1-DP-1/status", "connected\n");
    look();
    REQUIRE(facts.n_gpus == 2);
    CHECK_STR(facts.gpus[0].gfx.s, "gfx1031");
    CHECK_INT(facts.gpus[0].vram_total_bytes.v, 12868124672);
    CHECK_INT(facts.gpus[1].vram_total_bytes.v, 536870912);
    CHECK_INT(facts.gpus[1].hip_index, 1);
    CHECK_INT(facts.default_gpu, 0);
    done();
}

static void a_device_that_does_not_say_which_it_is(void)
{
    for (int nodes = 1; nodes <= 2; nodes++) {
        tree_make(&tree);
        tree_put(&tree, NODES "1/properties",
                 "simd_count 80\ngfx_target_version 110501\nlocation_id 50432\n");
        if (nodes == 2)
            tree_put(&tree, NODES "2/properties",
                     "simd_count 96\ngfx_target_version 110000\nlocation_id 768\n");
        tree_put(&tree, DRM "card1/device/vendor", "0x1002\n");
        tree_put(&tree, DRM "card1/device/mem_info_gtt_total", "118111600640\n");
        look();
        REQUIRE(facts.n_gpus == (nodes == 1 ? 1 : 3));
        CHECK_STR(facts.gpus[0].gfx.s, "gfx1151");
        CHECK_INT(facts.gpus[0].gtt_total_bytes.v, nodes == 1 ? 118111600640 : 0);
        done();
    }
}

static void other_vendors_are_not_listed(void)
{
    tree_make(&tree);
    card("card0", "0000:01:00.0", "10DE:2684", "nvidia");
    card("card1", "0000:00:02.0", "8086:A780", "i915");
    tree_put(&tree, "sys/bus/pci/devices/0000:05:00.0/uevent",
             "DRIVER=snd_hda_intel\nPCI_CLASS=40300\nPCI_ID=1002:AB30\n");
    look();
    CHECK_INT(facts.n_gpus, 0);
    CHECK_INT(facts.default_gpu, -1);
    done();
}

static void a_card_given_to_a_virtual_machine(void)
{
    tree_make(&tree);
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.0/uevent",
             "DRIVER=vfio-pci\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n");
    look();
    REQUIRE(facts.n_gpus == 1);
    CHECK_STR(facts.gpus[0].gfx.s, "gfx1100");
    CHECK_STR(facts.gpus[0].gfx.from, "device_id");
    CHECK(!facts.gpus[0].rocm_capable);
    CHECK_HAS(facts.gpus[0].problems.text[0], "virtual machine");
    done();
}

static void a_pci_device_without_uevent(void)
{
    tree_make(&tree);
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.0/device", "0x73df\n");
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.1/vendor", "0x1002\n");
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.1/device", "0xab28\n");
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.1/class", "0x040300\n");
    look();
    REQUIRE(facts.n_gpus == 1);
    CHECK_STR(facts.gpus[0].gfx.s, "gfx1031");
    CHECK_STR(facts.gpus[0].pci.s, "0000:03:00.0");
    CHECK(!facts.gpus[0].rocm_capable);
    done();
}

static void sleeping_cards_are_not_woken(void)
{
    tree_make(&tree);
    card("card0", "0000:03:00.0", "1002:73FF", "amdgpu");
    tree_put(&tree, DRM "card0/device/power/runtime_status", "suspended\n");
    tree_put(&tree, DRM "card0/device/gpu_busy_percent", "7\n");
    tree_put(&tree, DRM "card0/device/pp_dpm_sclk", "0: 500Mhz *\n");
    tree_put(&tree, DRM "card0/device/hwmon/hwmon0/power1_cap", "100000000\n");
    tree_put(&tree, DRM "card0/device/current_link_width", "8\n");
    tree_put(&tree, DRM "card0/device/max_link_width", "16\n");
    tree_put(&tree, DRM "card0/device/current_link_speed", "16.0 GT/s PCIe\n");
    tree_put(&tree, DRM "card0/device/max_link_speed", "16.0 GT/s PCIe\n");
    tree_put(&tree, DRM "card0/device/mem_info_vram_total", "8573157376\n");
    tree_put(&tree, DRM "card0/device/mem_info_vram_used", "12582912\n");
    look();
    REQUIRE(facts.n_gpus == 1);
    const struct gpu_facts *g = &facts.gpus[0];
    CHECK(!g->busy_percent.from && !g->clock_max_mhz.from && !g->power_cap_uw.from);
    CHECK(!g->link_width.from && !g->link_width_max.from && !g->link_speed.s && !g->link_speed_max.s);
    CHECK_INT(g->vram_total_bytes.v, 8573157376);
    CHECK_INT(g->vram_used_bytes.v, 12582912);
    done();
}

static void limits_fan_and_levels(void)
{
    tree_make(&tree);
    card("card0", "0000:03:00.0", "1002:744C", "amdgpu");
    tree_put(&tree, DRM "card0/device/mem_busy_percent", "12\n");
    tree_put(&tree, DRM "card0/device/vbios_version", "113-D7020100-102\n");
    tree_put(&tree, DRM "card0/device/max_link_speed", "16.0 GT/s PCIe\n");
    tree_put(&tree, DRM "card0/device/hwmon/hwmon4/temp3_input", "68000\n");
    tree_put(&tree, DRM "card0/device/hwmon/hwmon4/power1_cap", "303000000\n");
    tree_put(&tree, DRM "card0/device/hwmon/hwmon4/power1_cap_max", "348000000\n");
    tree_put(&tree, DRM "card0/device/hwmon/hwmon4/pwm1", "102\n");
    tree_put(&tree, DRM "card0/device/pp_dpm_sclk", "0: 500Mhz *\n1: 1124Mhz \n2: 2482Mhz \nS: junk\n");
    tree_put(&tree, DRM "card0/device/pp_dpm_mclk", "0: 96Mhz \n1: 1249Mhz *\n");
    look();
    REQUIRE(facts.n_gpus == 1);
    const struct gpu_facts *g = &facts.gpus[0];
    CHECK_INT(g->memory_busy_percent.v, 12);
    CHECK_STR(g->vbios.s, "113-D7020100-102");
    CHECK_STR(g->link_speed_max.s, "16.0 GT/s PCIe");
    CHECK_INT(g->memory_temperature_mc.v, 68000);
    CHECK_INT(g->power_cap_uw.v, 303000000);
    CHECK_INT(g->power_cap_max_uw.v, 348000000);
    CHECK(!g->power_cap_min_uw.from);
    CHECK_INT(g->fan_duty.v, 102);
    CHECK_INT(g->clock_mhz.v, 500);
    CHECK_INT(g->clock_max_mhz.v, 2482);
    CHECK_INT(g->memory_clock_mhz.v, 1249);
    CHECK_INT(g->memory_clock_max_mhz.v, 1249);
    done();
}

static void an_nvidia_gpu_beside(void)
{
    tree_make(&tree);
    tree_put(&tree, "sys/bus/pci/devices/0000:01:00.1/uevent", "PCI_CLASS=40300\nPCI_ID=10DE:22BA\n");
    tree_put(&tree, "sys/bus/pci/devices/0000:03:00.0/uevent", "PCI_CLASS=30000\nPCI_ID=1002:744C\n");
    look();
    CHECK(!drm_has_nvidia(&facts.root, &facts.arena)); /* its sound is not its GPU */
    tree_put(&tree, "sys/bus/pci/devices/0000:01:00.0/uevent", "PCI_CLASS=30200\nPCI_ID=10DE:2684\n");
    CHECK(drm_has_nvidia(&facts.root, &facts.arena));
    done();
}

static void a_chip_outside_the_tables(void)
{
    tree_make(&tree);
    tree_put(&tree, NODES "1/properties", "simd_count 64\ngfx_target_version 130000\nlocation_id 50432\n");
    tree_put(&tree, NODES "1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 64000000000\n");
    card("card0", "0000:c5:00.0", "1002:FFF0", "amdgpu");
    tree_put(&tree, DRM "card0/device/mem_info_vram_total", "512000000\n");
    tree_put(&tree, DRM "card0/device/mem_info_gtt_total", "64000000000\n");
    look();
    REQUIRE(facts.n_gpus == 1);
    CHECK_STR(facts.gpus[0].gfx.s, "gfx1300");
    CHECK_INT(facts.gpus[0].kind, GPU_INTEGRATED); /* the bank is GTT, and GTT dwarfs VRAM */
    CHECK(facts.gpus[0].rocm_capable);
    done();
}

/* DRM tells the whole card's memory, and only for the first partition. */
static void a_partition_has_a_share_of_the_memory(void)
{
    tree_make(&tree);
    for (int i = 0; i < 2; i++) {
        char path[128], text[256];
        snprintf(path, sizeof(path), NODES "%d/properties", i + 1);
        snprintf(text, sizeof(text),
                 "simd_count 608\nsimd_per_cu 4\ngfx_target_version 90402\ndevice_id 29857\nlocation_id %d\n"
                 "drm_render_minor %d\n",
                 0xc00 + i, 128 + i);
        tree_put(&tree, path, text);
        snprintf(path, sizeof(path), NODES "%d/mem_banks/0/properties", i + 1);
        tree_put(&tree, path, "heap_type 1\nsize_in_bytes 103079215104\n");
    }
    card("card1", "0000:0c:00.0", "1002:74A1", "amdgpu");
    card("renderD128", "0000:0c:00.0", "1002:74A1", "amdgpu");
    tree_put(&tree, DRM "card1/device/mem_info_vram_total", "206158430208\n");
    tree_put(&tree, DRM "card1/device/mem_info_vram_used", "1000\n");
    look();
    REQUIRE(facts.n_gpus == 2);
    for (int i = 0; i < 2; i++) {
        CHECK_STR(facts.gpus[i].card.s, "0000:0c:00.0");
        CHECK_INT(facts.gpus[i].usable_bytes.v, 103079215104);
        CHECK_INT(facts.gpus[i].vram_total_bytes.v, 103079215104);
        CHECK(!facts.gpus[i].vram_used_bytes.from);
    }
    done();
}

/* A copy made on another system may have its lines' ends, and the name GC in place of the number 11. */
static void copies_of_a_tree(void)
{
    tree_make(&tree);
    tree_put(&tree, NODES "1/properties",
             "simd_count 80\r\ngfx_target_version 110501\r\nlocation_id 50432\r\n");
    card("card0", "0000:c5:00.0", "1002:1586", "amdgpu\r");
    tree_put(&tree, DRM "card1/device/uevent",
             "DRIVER=amdgpu\r\nPCI_ID=1002:FFF0\r\nPCI_SLOT_NAME=0000:c6:00.0\r\n");
    tree_put(&tree, DRM "card1/device/ip_discovery/die/0/GC/0/major", "11\n");
    tree_put(&tree, DRM "card1/device/ip_discovery/die/0/GC/0/minor", "0\n");
    tree_put(&tree, DRM "card1/device/ip_discovery/die/0/GC/0/revision", "1\n");
    look();
    REQUIRE(facts.n_gpus == 2);
    CHECK_INT(facts.problems.n, 0);
    CHECK_STR(facts.gpus[0].gfx.s, "gfx1151");
    CHECK_STR(facts.gpus[0].driver.s, "amdgpu");
    CHECK_STR(facts.gpus[1].gfx.s, "gfx1103");
    CHECK_STR(facts.gpus[1].pci.s, "0000:c6:00.0");
    done();
}

/* What could not be read is not absent. */
static void an_unreadable_topology(void)
{
    tree_make(&tree);
    tree_put(&tree, NODES "1/properties/file", "a directory where a file should be\n");
    card("card0", "0000:03:00.0", "1002:73FF", "amdgpu");
    look();
    REQUIRE(facts.n_gpus == 1 && facts.gpus[0].problems.n == 1);
    CHECK_HAS(facts.gpus[0].problems.text[0], "/sys/class/kfd");
    done();
    tree_make(&tree);
    tree_put(&tree, "sys/class/kfd/kfd/topology/nodes", "a file where a directory should be\n");
    card("card0", "0000:03:00.0", "1002:73FF", "amdgpu");
    look();
    REQUIRE(facts.n_gpus == 1 && facts.gpus[0].problems.n == 1);
    CHECK_INT(facts.host.kfd_present, TRI_UNKNOWN);
    CHECK_HAS(facts.gpus[0].problems.text[0], "/sys/class/kfd");
    done();
}

static void one_sign_is_not_enough(void)
{
    tree_make(&tree);
    card("card0", "0000:c5:00.0", "1002:FFF0", "amdgpu");
    tree_put(&tree, DRM "card0/device/mem_info_vram_total", "512000000\n");
    tree_put(&tree, DRM "card0/device/mem_info_gtt_total", "64000000000\n");
    look();
    REQUIRE(facts.n_gpus == 1);
    CHECK_INT(facts.gpus[0].kind, GPU_KIND_UNKNOWN);
    done();
}

static void garbage_gives_problems_not_numbers(void)
{
    tree_make(&tree);
    tree_put_bytes(&tree, NODES "1/properties",
                   "\x7f"
                   "ELF\0\0\xff",
                   7);
    tree_put(&tree, NODES "2/properties", "simd_count 80\ngfx_target_version 991616\n");
    card("card0", "not an address", "1002:744C", "amdgpu");
    tree_put(&tree, DRM "card0/device/mem_info_vram_total", "lots\n");
    tree_put(&tree, DRM "card0/device/mem_info_gtt_total", "-5\n");
    tree_put(&tree, DRM "card0/device/gpu_busy_percent", "250\n");
    tree_link(&tree, DRM "card1", "card1");
    look();
    REQUIRE(facts.n_gpus == 2);
    CHECK_INT(facts.problems.n, 1);
    CHECK(!facts.gpus[0].gfx.s && !facts.gpus[0].rocm_capable);
    CHECK_HAS(facts.gpus[0].problems.text[0], "991616");
    CHECK(!facts.gpus[1].vram_total_bytes.from && !facts.gpus[1].gtt_total_bytes.from);
    CHECK(!facts.gpus[1].busy_percent.from && !facts.gpus[1].pci.s);
    CHECK(facts.gpus[1].problems.n >= 3);
    CHECK_INT(facts.default_gpu, -1);
    done();
}

static void who_holds_the_memory(void)
{
    tree_make(&tree);
    tree_put(&tree, NODES "1/properties", "simd_count 80\ngfx_target_version 100300\n");
    tree_put(&tree, NODES "1/gpu_id", "41001\n");
    tree_put(&tree, "sys/class/kfd/kfd/proc/4242/vram_41001", "1073741824\n");
    tree_put(&tree, "sys/class/kfd/kfd/proc/4243/vram_41001", "0\n");
    tree_put(&tree, "proc/4242/comm", "python3\n");
    look();
    REQUIRE(facts.n_gpus == 1 && facts.gpus[0].n_processes == 1);
    CHECK_INT(facts.gpus[0].processes[0].pid, 4242);
    CHECK_STR(facts.gpus[0].processes[0].name, "python3");
    CHECK_INT(facts.gpus[0].processes[0].vram_bytes, 1073741824);
    done();
}

static void names_from_the_installed_lists(void)
{
    tree_make(&tree);
    card("card0", "0000:03:00.0", "1002:744C", "amdgpu");
    look();
    CHECK_STR(facts.gpus[0].name.s, "AMD Radeon RX 7900 XT/XTX/GRE");
    facts_release(&facts);
    tree_put(
        &tree, "usr/share/misc/pci.ids",
        "1001  Kolter\n\t744c  Wrong\n1002  AMD\n\t744c  Navi 31 [Radeon RX 7900 Test]\n\t744d  X [Y]\n1003  ULSI\n");
    look();
    CHECK_STR(facts.gpus[0].name.s, "AMD Radeon RX 7900 Test");
    facts_release(&facts);
    tree_put(&tree, "usr/share/libdrm/amdgpu.ids",
             "# ids\n1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n744C,\tCC,\tOther\n");
    tree_put(&tree, DRM "card0/device/revision", "0xc8\n");
    look();
    CHECK_STR(facts.gpus[0].name.s, "AMD Radeon RX 7900 XTX");
    CHECK_STR(facts.gpus[0].name.from, "/usr/share/libdrm/amdgpu.ids");
    done();
}

/* A container that got one of two: the runtime counts on without the other. */
/* On a machine without lists of its own the built-in names are asked. */
static void a_gpu_with_a_name_has_a_chip(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    size_t named = 0;
    tree_make(&tree);
    look();
    for (int64_t id = 0; id <= 0xffff; id++) {
        struct num device = { id, "test" }, unknown = { 0 };
        if (!gpu_name_find(&facts.root, &a, device, unknown, unknown).s)
            continue;
        named++;
        bool gfx6 = id == 0x6617 || id == 0x6818; /* R7 240 and HD 7870, which ROCm never knew */
        if (!gfx_from_device_id((uint64_t)id) != gfx6)
            CHECK_FAIL_("the id 0x%04llx", (long long)id);
    }
    CHECK(named > 20);
    done();
}

static void a_gpu_without_its_render_node(void)
{
    for (int passed = 0; passed < 2; passed++) {
        tree_make(&tree);
        tree_put(&tree, NODES "1/properties",
                 "simd_count 192\ngfx_target_version 110000\nlocation_id 768\ndrm_render_minor 128\n");
        tree_put(&tree, NODES "2/properties",
                 "simd_count 80\ngfx_target_version 100301\nlocation_id 1792\ndrm_render_minor 129\n");
        tree_put(&tree, "dev/kfd", "");
        if (passed)
            tree_put(&tree, "dev/dri/renderD129", "");
        look();
        REQUIRE(facts.n_gpus == 2);
        CHECK_INT(facts.gpus[0].hip_index, passed ? -1 : 0);
        CHECK_INT(facts.gpus[1].hip_index, passed ? 0 : 1);
        CHECK_INT(facts.default_gpu, passed ? 1 : 0);
        CHECK(facts.gpus[0].rocm_capable);
        REQUIRE(facts.gpus[0].problems.n == 1);
        CHECK_HAS(facts.gpus[0].problems.text[0], "renderD128");
        done();
    }
}

static void the_chip_told_by_hand(void)
{
    struct cairn_error err = { 0 };
    tree_make(&tree);
    look();
    CHECK_INT(facts_set_gfx(&facts, "gfx10", &err), -1);
    CHECK_HAS(err.msg, "gfx10");
    REQUIRE(!facts_set_gfx(&facts, "gfx1031", &err));
    REQUIRE(facts.n_gpus == 1 && facts.default_gpu == 0);
    CHECK_INT(facts.gpus[0].kind, GPU_DISCRETE);
    CHECK(facts.gpus[0].rocm_capable);
    done();
}

int main(void)
{
    RUN(card_order_is_not_node_order);
    RUN(a_device_that_does_not_say_which_it_is);
    RUN(other_vendors_are_not_listed);
    RUN(a_card_given_to_a_virtual_machine);
    RUN(a_pci_device_without_uevent);
    RUN(sleeping_cards_are_not_woken);
    RUN(limits_fan_and_levels);
    RUN(an_nvidia_gpu_beside);
    RUN(a_chip_outside_the_tables);
    RUN(a_partition_has_a_share_of_the_memory);
    RUN(copies_of_a_tree);
    RUN(an_unreadable_topology);
    RUN(one_sign_is_not_enough);
    RUN(garbage_gives_problems_not_numbers);
    RUN(who_holds_the_memory);
    RUN(names_from_the_installed_lists);
    RUN(a_gpu_with_a_name_has_a_chip);
    RUN(a_gpu_without_its_render_node);
    RUN(the_chip_told_by_hand);
    return check_done();
}
