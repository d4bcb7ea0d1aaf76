/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gpus.h"

#include "base/parse.h"
#include "base/str.h"
#include "chip/gfxname.h"
#include "host/drm.h"
#include "host/kernel.h"
#include "host/kfd.h"
#include "host/memory.h"
#include "host/gpu_names.h"
#include <string.h>

struct devices {
    struct drm_device *item;
    size_t n;
};

/* PCI bus, device and function are packed into location_id. */
static char *pci_address(struct arena *a, int64_t domain, int64_t location, bool with_function)
{
    return arena_printf(a, "%04x:%02x:%02x.%x", (unsigned)domain, (unsigned)(location >> 8) & 0xff,
                        (unsigned)(location >> 3) & 0x1f, with_function ? (unsigned)location & 7 : 0);
}

/* A partitioned accelerator shows one node per partition: same serial, same bus and device, and location ids
 * that count up in the function bits, which are no functions then. */
static bool is_partition(const struct kfd_topology *t, const struct kfd_node *node)
{
    if (!node->location_id.from)
        return false;
    bool server_part = node->gfx_target_version.v / 10000 == 9 && node->gfx_target_version.v >= 90402;
    if (server_part && (node->location_id.v & 7))
        return true;
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct kfd_node *other = &t->nodes[i];
        bool same_part = node->uuid ? str_eq(node->uuid, other->uuid) : server_part;
        if (other != node && kfd_node_is_gpu(other) && same_part && other->location_id.from &&
            other->domain.v == node->domain.v && other->location_id.v >> 3 == node->location_id.v >> 3)
            return true;
    }
    return false;
}

static void take_address(struct arena *a, const struct kfd_topology *t, const struct kfd_node *node,
                         struct gpu_facts *g)
{
    if (!node->location_id.from || (!node->location_id.v && !node->domain.v))
        return;
    bool partition = is_partition(t, node);
    const char *from = node->location_id.from;
    g->pci = (struct text){ pci_address(a, node->domain.v, node->location_id.v, !partition), from };
    g->card = (struct text){ pci_address(a, node->domain.v, node->location_id.v, false), from };
}

static void take_target(struct arena *a, const struct kfd_node *node, struct gpu_facts *g)
{
    char name[GFXNAME_MAX];
    if (!node->gfx_target_version.from || node->gfx_target_version.v == 0)
        return;
    if (gfxname_from_kfd((uint64_t)node->gfx_target_version.v, name))
        g->gfx = (struct text){ arena_strdup(a, name), "kfd" };
    else
        problems_add(&g->problems, a, "%s: gfx_target_version %lld is not a target",
                     node->gfx_target_version.from, (long long)node->gfx_target_version.v);
}

static void take_node(struct arena *a, const struct kfd_topology *t, const struct kfd_node *node,
                      struct gpu_facts *g)
{
    g->kfd_node = (struct num){ node->number, node->simd_count.from };
    g->gpu_id = node->gpu_id;
    g->vendor_id = node->vendor_id;
    g->device_id = node->device_id;
    g->kfd_bank_bytes = node->bank_bytes;
    g->pcie_atomics = node->pcie_atomics;
    g->has_cwsr_size = node->has_cwsr_size;
    if (node->uuid)
        g->uuid = (struct text){ node->uuid, node->simd_count.from };
    if (node->wave_front_size.v > 0)
        g->wave_size = node->wave_front_size;
    if (node->drm_render_minor.from && node->drm_render_minor.v > 0)
        g->render_node =
            (struct text){ arena_printf(a, "/dev/dri/renderD%lld", (long long)node->drm_render_minor.v),
                           node->drm_render_minor.from };
    else if (node->drm_render_minor.from)
        problems_add(&g->problems, a,
                     "KFD names no render node for this GPU: the HSA runtime then finds no GPU at all");
    take_address(a, t, node, g);
    take_target(a, node, g);
}

/* Two SIMDs make a compute unit on RDNA, four before it. */
static void take_compute_units(const struct kfd_node *node, struct gpu_facts *g)
{
    int major, minor, stepping;
    int64_t per_cu = node->simd_per_cu.v;
    if (per_cu <= 0 && g->gfx.s && gfxname_split(g->gfx.s, &major, &minor, &stepping))
        per_cu = major >= 10 ? 2 : 4;
    if (per_cu > 0)
        g->compute_units = (struct num){ node->simd_count.v / per_cu, node->simd_count.from };
}

static size_t count_gpus(const struct kfd_topology *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_nodes; i++)
        n += kfd_node_is_gpu(&t->nodes[i]);
    return n;
}

/* Matched by render node, then by PCI address, then by device id, each only among unmatched devices. If one
 * GPU and one unidentified device are left (a container shows only part of its files), they are the same. */
static struct drm_device *find_device(struct devices *d, const struct kfd_topology *t,
                                      const struct kfd_node *node, const struct gpu_facts *g)
{
    for (int step = 0; step < 3; step++) {
        for (size_t i = 0; i < d->n; i++) {
            struct drm_device *dev = &d->item[i];
            bool same = false;
            if (step == 0)
                same = dev->render_minor >= 0 && node->drm_render_minor.v == dev->render_minor;
            else if (step == 1)
                same = g->pci.s && str_eq(g->pci.s, dev->pci.s);
            else
                same = node->device_id.from && dev->device_id.from && node->device_id.v == dev->device_id.v &&
                       !(g->pci.s && dev->pci.s);
            if (same && !dev->taken)
                return dev;
        }
    }
    bool lone = d->n == 1 && count_gpus(t) == 1 && !d->item->taken;
    return lone && !d->item->pci.s && !d->item->device_id.from ? d->item : NULL;
}

static void take_device(struct facts *f, struct drm_device *dev, struct gpu_facts *g)
{
    struct arena *a = &f->arena;
    dev->taken = true;
    g->driver = dev->driver;
    g->revision = dev->revision;
    g->pci_class = dev->pci_class;
    g->pci_subsystem = dev->subsystem;
    if (dev->vendor_id.from)
        g->vendor_id = dev->vendor_id;
    if (dev->device_id.from)
        g->device_id = dev->device_id;
    if (dev->pci.s && !g->pci.s) {
        g->pci = dev->pci;
        g->card = (struct text){ arena_printf(a, "%.11s0", dev->pci.s), dev->pci.from };
    }
    if (!g->gfx.s)
        g->gfx = dev->gfx;
    if (dev->render_minor >= 0 && !g->render_node.s)
        g->render_node = (struct text){ arena_printf(a, "/dev/dri/renderD%d", dev->render_minor), dev->dir };
    drm_read_details(&f->root, a, dev, f->still, g);
}

/* Signs that a chip outside our tables is an APU; two of three must agree. */
static void guess_kind(struct facts *f, struct gpu_facts *g)
{
    struct num vram = g->vram_total_bytes, gtt = g->gtt_total_bytes, bank = g->kfd_bank_bytes;
    int yes = 0, no = 0;
    if (bank.from && gtt.from && vram.from && gtt.v != vram.v) {
        yes += bank.v == gtt.v;
        no += bank.v == vram.v;
    }
    if (gtt.from && vram.from) {
        yes += gtt.v / 8 >= vram.v;
        no += gtt.v / 4 < vram.v;
    }
    /* In an APU the SoC's security processor is another function of the same PCI device. */
    enum { CLASS_CRYPTO = 0x1080 };
    const char *class = NULL;
    uint64_t v;
    if (g->card.s)
        class = root_read(&f->root, &f->arena,
                          arena_printf(&f->arena, "/sys/bus/pci/devices/%.11s2/class", g->card.s), NULL);
    if (class && cairn_parse_hex(class, &v))
        yes += v >> 8 == CLASS_CRYPTO;
    if (yes >= 2 && !no)
        g->kind = GPU_INTEGRATED, g->kind_from = "memory layout and PCI neighbours";
    else if (no >= 2 && !yes)
        g->kind = GPU_DISCRETE, g->kind_from = "memory layout";
}

static void take_chip(struct facts *f, struct gpu_facts *g)
{
    int major, minor, stepping;
    if (!g->gfx.s && g->device_id.from) {
        g->gfx.s = gfx_from_device_id((uint64_t)g->device_id.v);
        g->gfx.from = g->gfx.s ? "device_id" : NULL;
    }
    if (g->gfx.s)
        g->kind = gfx_kind(g->gfx.s, g->device_id.from ? (uint64_t)g->device_id.v : 0);
    if (g->kind != GPU_KIND_UNKNOWN)
        g->kind_from = "target";
    else
        guess_kind(f, g);
    /* The framebuffer banks of a card are its VRAM; those of an APU are not. */
    if (g->kind == GPU_DISCRETE && !g->vram_total_bytes.from)
        g->vram_total_bytes = g->kfd_bank_bytes;
    if (!g->wave_size.from && g->gfx.s && gfxname_split(g->gfx.s, &major, &minor, &stepping))
        g->wave_size = (struct num){ major >= 10 ? 32 : 64, "target" };
}

static const char *why_no_node(const struct facts *f, const struct gpu_facts *g)
{
    const char *driver = g->driver.s;
    if (driver && !strcmp(driver, "radeon"))
        return "bound to the old radeon driver, which has no compute; ROCm does not support chips of that age";
    if (driver && str_starts(driver, "vfio"))
        return "bound to vfio-pci: it is passed through to a virtual machine";
    if (driver && strcmp(driver, "amdgpu"))
        return "not bound to the amdgpu driver";
    if (!driver && f->host.amdgpu_loaded == TRI_NO)
        return "amdgpu, the kernel module, is not loaded";
    if (f->host.kfd_masked)
        return "KFD hides it from this container: pass its /dev/dri/renderD* and /dev/kfd to the container";
    if (f->host.kfd_unreadable)
        return "/sys/class/kfd is not fully readable, so it is unknown whether KFD has a node for it";
    if (!g->gfx.s && g->device_id.from)
        return "KFD has no node for it, and its PCI device id is in no table of chips that ROCm supports: "
               "too old, or newer than this cairn";
    if (f->host.kfd_present == TRI_YES)
        return "KFD has no node for it: `dmesg | grep -i kfd` shows the reason (for example PCIe atomics)";
    return "/sys/class/kfd does not exist: the kernel lacks CONFIG_HSA_AMD, amdgpu is not loaded, or a "
           "container hides it";
}

static void judge_access(struct facts *f, struct gpu_facts *g)
{
    struct arena *a = &f->arena;
    if (f->host.kfd_node.access == NODE_MISSING)
        problems_add(&g->problems, a, "/dev/kfd does not exist: %s",
                     f->host.container.s ? "start the container with --device=/dev/kfd --device=/dev/dri"
                                         : "is the amdgpu module loaded?");
    if (f->host.kfd_node.access == NODE_DENIED)
        problems_add(&g->problems, a, "no permission to open /dev/kfd: add yourself to the group %s",
                     f->host.kfd_node.group ? f->host.kfd_node.group : "that owns it");
    if (!g->render_node.s)
        return;
    g->render = kernel_dev_node(f, g->render_node.s);
    if (g->render.access == NODE_MISSING)
        problems_add(&g->problems, a, "%s does not exist: the HSA runtime skips this GPU", g->render.path);
    if (g->render.access == NODE_DENIED)
        problems_add(&g->problems, a, "no permission to open %s: the HSA runtime then finds no GPU at all",
                     g->render.path);
}

static void judge(struct facts *f, struct gpu_facts *g)
{
    struct arena *a = &f->arena;
    g->rocm_capable = g->hip_index >= 0 && g->gfx.s;
    if (g->hip_index < 0)
        problems_add(&g->problems, a, "%s", why_no_node(f, g));
    else if (!g->gfx.s)
        problems_add(&g->problems, a, "neither KFD nor the PCI device id shows this GPU's target");
    memory_judge_gpu(&f->host, a, g);
    if (g->hip_index >= 0)
        judge_access(f, g);
}

static const char *process_name(struct facts *f, const char *pid)
{
    return text_read(&f->root, &f->arena, arena_printf(&f->arena, "/proc/%s/comm", pid)).s;
}

/* /sys/class/kfd/kfd/proc/PID/vram_GPUID: how much VRAM a compute process holds. */
static void read_processes(struct facts *f)
{
    struct arena *a = &f->arena;
    char **pids;
    size_t n;
    if (root_list(&f->root, a, "/sys/class/kfd/kfd/proc", &pids, &n))
        return;
    for (size_t i = 0; i < n; i++) {
        uint64_t pid;
        if (!cairn_parse_u64(pids[i], &pid) || pid > INT32_MAX)
            continue;
        for (size_t k = 0; k < f->n_gpus; k++) {
            struct gpu_facts *g = &f->gpus[k];
            if (!g->gpu_id.from)
                continue;
            struct num held = drm_read_num(
                &f->root, a,
                arena_printf(a, "/sys/class/kfd/kfd/proc/%s/vram_%lld", pids[i], (long long)g->gpu_id.v),
                &g->problems);
            if (held.from && held.v > 0)
                *ARENA_PUSH(a, g->processes, g->n_processes) =
                    (struct gpu_process){ (int64_t)pid, process_name(f, pids[i]), held.v };
        }
    }
}

static int rank(enum gpu_kind kind)
{
    return kind == GPU_DISCRETE ? 2 : kind == GPU_KIND_UNKNOWN ? 1 : 0;
}

void gpus_choose_default(struct facts *f)
{
    f->default_gpu = -1;
    for (size_t i = 0; i < f->n_gpus; i++) {
        const struct gpu_facts *g = &f->gpus[i];
        const struct gpu_facts *best = f->default_gpu >= 0 ? &f->gpus[f->default_gpu] : NULL;
        if (!g->rocm_capable || g->hip_index < 0)
            continue;
        if (!best || rank(g->kind) > rank(best->kind) ||
            (rank(g->kind) == rank(best->kind) && g->usable_bytes.v > best->usable_bytes.v))
            f->default_gpu = (int)i;
    }
}

/* DRM reports the memory of the whole card; a partition has the share that KFD reports, and its use is
 * unknown. */
static void take_share(struct gpu_facts *g)
{
    if (!g->kfd_bank_bytes.from || g->kfd_bank_bytes.v >= g->vram_total_bytes.v)
        return;
    g->vram_total_bytes = g->kfd_bank_bytes;
    g->vram_used_bytes = g->vis_vram_total_bytes = g->vis_vram_used_bytes = (struct num){ 0 };
}

/* The runtime skips a GPU whose render node is not in /dev, as in a container that got only some, and does
 * not count it. If no node exists at all, that is one problem of the whole machine. */
static void count_shown(struct facts *f)
{
    bool any = false;
    int next = 0;
    for (size_t i = 0; i < f->n_gpus; i++)
        any |= f->gpus[i].hip_index >= 0 && f->gpus[i].render.access != NODE_MISSING;
    for (size_t i = 0; i < f->n_gpus && any; i++)
        if (f->gpus[i].hip_index >= 0)
            f->gpus[i].hip_index = f->gpus[i].render.access == NODE_MISSING ? -1 : next++;
}

/* node is NULL for a device that KFD does not have. */
static void finish(struct facts *f, const struct kfd_topology *t, const struct kfd_node *node,
                   struct gpu_facts *g)
{
    take_chip(f, g);
    if (node)
        take_compute_units(node, g);
    if (node && is_partition(t, node))
        take_share(g);
    g->name = gpu_name_find(&f->root, &f->arena, g->device_id, g->revision, g->compute_units);
    judge(f, g);
}

void gpus_read(struct facts *f)
{
    struct arena *a = &f->arena;
    struct kfd_topology t;
    struct devices devices = { 0 };
    kfd_read(&f->root, a, &t, &f->problems);
    drm_read(&f->root, a, &devices.item, &devices.n, &f->problems);
    f->host.kfd_present = t.present;
    f->host.kfd_masked = t.masked;
    f->host.kfd_unreadable = t.unreadable;
    int hip_index = 0;
    for (size_t i = 0; i < t.n_nodes; i++) {
        if (!kfd_node_is_gpu(&t.nodes[i]))
            continue;
        struct gpu_facts *g = ARENA_PUSH(a, f->gpus, f->n_gpus);
        g->hip_index = hip_index++;
        take_node(a, &t, &t.nodes[i], g);
        struct drm_device *dev = find_device(&devices, &t, &t.nodes[i], g);
        if (dev)
            take_device(f, dev, g);
        finish(f, &t, &t.nodes[i], g);
    }
    for (size_t i = 0; i < devices.n; i++) {
        if (devices.item[i].taken)
            continue;
        struct gpu_facts *g = ARENA_PUSH(a, f->gpus, f->n_gpus);
        g->hip_index = -1;
        take_device(f, &devices.item[i], g);
        finish(f, &t, NULL, g);
    }
    read_processes(f);
    count_shown(f);
    gpus_choose_default(f);
}
