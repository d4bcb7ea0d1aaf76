/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include "base/str.h"
#include <string.h>

#define GIB ((int64_t)1 << 30)

struct num num_of(int64_t v)
{
    return (struct num){ v, "test" };
}

struct text text_of(const char *s)
{
    return (struct text){ s, "test" };
}

struct targets targets_of(struct machine *m, const char *names)
{
    struct targets t = { .from = "test" };
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        targets_add(&t, &m->arena, at, n);
        at += n;
    }
    return t;
}

static void push_env(struct machine *m, const char *assignment)
{
    size_t n = 0;
    while (m->env[n])
        n++;
    m->env[n] = assignment;
}

void machine_env(struct machine *m, const char *assignment)
{
    size_t n = strcspn(assignment, "=");
    push_env(m, assignment);
    m->keep[m->plan.n_keep++] = (struct plan_var){ .name = arena_strndup(&m->arena, assignment, n),
                                                   .value = assignment + n + 1,
                                                   .why = "yours" };
}

void machine_show(struct machine *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        m->visible[i] = &m->gpus[i];
    m->plan.visible = m->visible;
    m->plan.n_visible = n;
}

void machine_param(struct machine *m, const char *module, const char *name, const char *value)
{
    m->params[m->facts.host.n_params++] = (struct module_param){ module, name, value, "test" };
}

void machine_set(struct machine *m, const char *name, const char *value)
{
    m->set[m->plan.n_set++] =
        (struct plan_var){ .name = name, .value = value, .why = "because", .source = "test" };
}

void machine_unset(struct machine *m, const char *name, const char *value)
{
    push_env(m, arena_printf(&m->arena, "%s=%s", name, value));
    m->unset[m->plan.n_unset++] =
        (struct plan_var){ .name = name, .value = value, .why = "it harms", .source = "test" };
}

void machine_fatal(struct machine *m, const char *name, const char *value)
{
    machine_unset(m, name, value);
    m->unset[m->plan.n_unset - 1].fatal = true;
}

void machine_torch(struct machine *m, const char *version)
{
    m->torches[0].version = text_of(version);
    version_parse(version, &m->torches[0].parsed);
}

void machine_kernel(struct machine *m, const char *version)
{
    m->facts.host.kernel = text_of(version);
    version_parse(version, &m->facts.host.kernel_version);
}

static struct package_facts package_of(const char *version)
{
    struct package_facts p = { .version = text_of(version), .fits = TRI_YES };
    version_parse(version, &p.parsed);
    return p;
}

static void wire(struct machine *m)
{
    *m = (struct machine){ 0 };
    m->facts.gpus = m->gpus;
    m->facts.torches = m->torches;
    m->facts.rocms = m->rocms;
    m->facts.runtimes = m->runtimes;
    m->facts.disks = m->disks;
    m->facts.env = m->env;
    m->facts.default_gpu = -1;
    m->facts.host.params = m->params;
    m->plan.set = m->set;
    m->plan.unset = m->unset;
    m->plan.keep = m->keep;
    machine_show(m, 1);
    m->plan.warnings.text = m->warnings;
}

void machine_bare(struct machine *m)
{
    wire(m);
    struct host_facts *h = &m->facts.host;
    m->facts.root.live = true;
    machine_kernel(m, "6.19.12");
    h->os_id = text_of("debian");
    h->cmdline = text_of("BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet");
    h->amdgpu_loaded = TRI_YES;
    h->kfd_present = TRI_YES;
    h->memory_total_bytes = num_of(64 * GIB);
    h->memory_available_bytes = num_of(50 * GIB);
    h->swap_total_bytes = num_of(8 * GIB);
    h->zram_bytes = num_of(0);
    h->thp = text_of("madvise");
    h->kfd_node = (struct dev_node){ "/dev/kfd", NODE_OPEN, 105, "render", 0660 };
    h->user = "user";
    h->render_gid = 105;
    m->disks[0] = (struct disk_facts){ "/home/user/.cache", "cache", num_of(200 * GIB) };
    m->disks[1] = (struct disk_facts){ "/home/user/train", "work", num_of(200 * GIB) };
    m->facts.n_disks = 2;
}

static void add_torch(struct machine *m, const char *target)
{
    struct torch_facts *t = &m->torches[0];
    m->facts.n_torches = 1;
    t->site = "/home/user/venv/lib/python3.12/site-packages";
    t->python = "/home/user/venv/bin/python3";
    t->how = "VIRTUAL_ENV";
    machine_torch(m, "2.12.0+rocm7.2.1");
    t->hip = text_of("7.2.53211");
    version_parse("7.2.53211", &t->hip_parsed);
    t->build = TORCH_ROCM;
    t->hip_library = text_of("/home/user/venv/lib/python3.12/site-packages/torch/lib/libamdhip64.so");
    m->runtimes[0] = (struct hip_runtime){ .what = "PyTorch", .hip = t->hip_library.s };
    m->runtimes[0].files.hiprtc = "/home/user/venv/lib/python3.12/site-packages/torch/lib/libhiprtc.so";
    m->facts.n_runtimes = 1;
    t->compiled = t->rocblas = t->hipblaslt = t->miopen = targets_of(m, target);
    t->aotriton = targets_of(m, "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153");
    t->miopen_version = text_of("3.5.1");
    t->triton = package_of("3.6.0");
    t->accelerate = package_of("1.12.0");
}

static void add_access(struct gpu_facts *g, const char *node)
{
    g->rocm_capable = true;
    g->driver = text_of("amdgpu");
    g->runtime_status = text_of("active");
    g->render_node = text_of(node);
    g->render = (struct dev_node){ node, NODE_OPEN, 105, "render", 0660 };
}

static void add_card(struct machine *m)
{
    struct gpu_facts *g = &m->gpus[0];
    add_access(g, "/dev/dri/renderD128");
    g->kfd_node = num_of(1);
    g->gfx = text_of("gfx1100");
    g->name = text_of("Radeon RX 7900 XTX");
    g->kind = GPU_DISCRETE;
    g->pci = text_of("0000:03:00.0");
    g->vram_total_bytes = g->vis_vram_total_bytes = num_of(24 * GIB);
    g->vram_used_bytes = num_of(GIB);
    g->gtt_total_bytes = num_of(32 * GIB);
    g->usable_bytes = num_of(23 * GIB);
    g->usable_reason = "VRAM less what is in use";
    g->link_width = g->link_width_max = num_of(16);
    g->pcie_atomics = TRI_YES;
    m->facts.n_gpus = 1;
    m->facts.default_gpu = 0;
    m->plan.gpu = g;
}

void machine_card(struct machine *m)
{
    machine_bare(m);
    add_card(m);
    add_torch(m, "gfx1100 gfx1101 gfx1030");
}

void machine_both(struct machine *m)
{
    machine_card(m);
    struct gpu_facts *g = &m->gpus[1];
    add_access(g, "/dev/dri/renderD129");
    g->hip_index = 1;
    g->gfx = text_of("gfx1036");
    g->kind = GPU_INTEGRATED;
    m->facts.n_gpus = 2;
    machine_env(m, "ROCR_VISIBLE_DEVICES=0");
}

void machine_halo(struct machine *m)
{
    machine_bare(m);
    struct host_facts *h = &m->facts.host;
    struct gpu_facts *g = &m->gpus[0];
    machine_kernel(m, "7.0.3-200.fc43.x86_64");
    h->os_id = text_of("fedora");
    h->memory_total_bytes = num_of(125 * GIB);
    h->memory_available_bytes = num_of(110 * GIB);
    machine_param(m, "ttm", "pages_limit", "29360128");
    machine_param(m, "ttm", "page_pool_size", "16384000");
    machine_param(m, "amdgpu", "gttsize", "-1");
    add_access(g, "/dev/dri/renderD128");
    g->kfd_node = num_of(1);
    g->gfx = text_of("gfx1151");
    g->name = text_of("Radeon 8060S");
    g->kind = GPU_INTEGRATED;
    g->vram_total_bytes = num_of(GIB / 2);
    g->gtt_total_bytes = num_of(112 * GIB);
    g->usable_bytes = num_of(110 * GIB);
    g->usable_reason = "GTT";
    g->has_cwsr_size = TRI_YES;
    g->mes_fw = num_of(0x80);
    m->facts.n_gpus = 1;
    m->facts.default_gpu = 0;
    m->plan.gpu = g;
    add_torch(m, "gfx1100 gfx1151");
}

void machine_blank(struct machine *m)
{
    wire(m);
    m->gpus[0] =
        (struct gpu_facts){ .gfx = text_of("gfx1151"), .kind = GPU_INTEGRATED, .rocm_capable = true };
    m->facts.n_gpus = 1;
    m->facts.default_gpu = 0;
    m->facts.host.render_gid = -1;
    m->plan.gpu = &m->gpus[0];
}

void machine_release(struct machine *m)
{
    arena_release(&m->arena);
}
