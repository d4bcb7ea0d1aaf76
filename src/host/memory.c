/* SPDX-License-Identifier: Apache-2.0 */
#include "host/memory.h"

#include "base/parse.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

enum { PAGE = 4096 };
#define GIB(bytes) ((double)(bytes) / (1024.0 * 1024.0 * 1024.0))

/* "MemTotal:       98304000 kB" */
static struct num meminfo_value(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    unsigned long long kib;
    if (!at || (at != text && at[-1] != '\n') || sscanf(at + strlen(key), " %llu kB", &kib) != 1 ||
        kib > (unsigned long long)INT64_MAX / 1024)
        return (struct num){ 0 };
    return (struct num){ (int64_t)kib * 1024, "/proc/meminfo" };
}

static void read_meminfo(struct facts *f)
{
    const char *text = root_read(&f->root, &f->arena, "/proc/meminfo", NULL);
    if (!text)
        return;
    f->host.memory_total_bytes = meminfo_value(text, "MemTotal:");
    f->host.memory_available_bytes = meminfo_value(text, "MemAvailable:");
    f->host.swap_total_bytes = meminfo_value(text, "SwapTotal:");
}

/* Lines of /proc/swaps: "/dev/zram0  partition  8388604  0  100", sizes in KiB. */
static void read_zram(struct facts *f)
{
    const char *text = root_read(&f->root, &f->arena, "/proc/swaps", NULL);
    if (!text)
        return;
    int64_t sum = 0;
    for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
        unsigned long long kib;
        if (str_starts(line + 1, "/dev/zram") && sscanf(line + 1, "%*s %*s %llu", &kib) == 1 &&
            kib < 1ULL << 40)
            sum += (int64_t)kib * 1024;
    }
    f->host.zram_bytes = (struct num){ sum, "/proc/swaps" };
}

/* "max", or v1's huge number, means no limit. */
static struct num read_limit(struct facts *f, const char *path)
{
    const char *text = root_read(&f->root, &f->arena, path, NULL);
    uint64_t v;
    if (!text || !cairn_parse_u64(text, &v) || v > (uint64_t)1 << 60)
        return (struct num){ 0 };
    return (struct num){ (int64_t)v, path };
}

/* File pages that the kernel drops before it calls memory full, though it counts them as used. */
static int64_t droppable(struct facts *f, const char *dir)
{
    const char *text = root_read(&f->root, &f->arena, arena_printf(&f->arena, "%s/memory.stat", dir), NULL);
    for (const char *line = text; line; line = str_next_line(line)) {
        long long v;
        if (sscanf(line, "inactive_file %lld", &v) == 1 && v > 0)
            return v;
    }
    return 0;
}

/* Keeps the limit with the least headroom. */
static void take_cgroup(struct facts *f, const char *dir, const char *limit_file, const char *used_file)
{
    struct arena *a = &f->arena;
    struct num limit = read_limit(f, arena_printf(a, "%s/%s", dir, limit_file));
    if (!limit.from)
        return;
    struct num used = read_limit(f, arena_printf(a, "%s/%s", dir, used_file));
    int64_t drops = droppable(f, dir);
    used.v = used.v > drops ? used.v - drops : 0;
    struct host_facts *h = &f->host;
    if (h->cgroup_limit_bytes.from && h->cgroup_limit_bytes.v - h->cgroup_used_bytes.v <= limit.v - used.v)
        return;
    h->cgroup_limit_bytes = limit;
    h->cgroup_used_bytes = used;
}

/* A limit may sit on any ancestor of our own group. */
static void walk_cgroups(struct facts *f, const char *mount, const char *own, const char *limit_file,
                         const char *used_file)
{
    char *path = arena_strdup(&f->arena, own);
    for (;;) {
        take_cgroup(f, arena_printf(&f->arena, "%s%s", mount, path), limit_file, used_file);
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

const char *memory_own_cgroup(const struct root *r, struct arena *a, const char *mark)
{
    const char *text = root_read(r, a, "/proc/self/cgroup", NULL);
    const char *at = text ? strstr(text, mark) : NULL;
    if (!at)
        return "";
    at += strlen(mark);
    char *path = arena_strndup(a, at, strcspn(at, "\r\n"));
    return str_eq(path, "/") || strstr(path, "..") ? "" : path;
}

void memory_read(struct facts *f)
{
    read_meminfo(f);
    read_zram(f);
    walk_cgroups(f, "/sys/fs/cgroup", memory_own_cgroup(&f->root, &f->arena, "0::"), "memory.max",
                 "memory.current");
    if (!f->host.cgroup_limit_bytes.from)
        walk_cgroups(f, "/sys/fs/cgroup/memory", memory_own_cgroup(&f->root, &f->arena, ":memory:"),
                     "memory.limit_in_bytes", "memory.usage_in_bytes");
}

static struct num param_pages(const struct host_facts *h, const char *module)
{
    const struct module_param *p = host_param(h, module, "pages_limit");
    uint64_t pages;
    /* 0 asks for the default. */
    if (!p || !cairn_parse_u64(p->value, &pages) || !pages || pages > (uint64_t)INT64_MAX / PAGE)
        return (struct num){ 0 };
    return (struct num){ (int64_t)pages * PAGE, p->from };
}

/* Of the two copies of TTM, the live one counts: AMD's DKMS driver has its own, amdttm, and then ttm's limit,
 * which another driver or a guide may have set, does not apply. */
const char *memory_ttm_module(const struct host_facts *h)
{
    static const char *const modules[] = { "amdttm", "ttm" };
    for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
        struct num limit = param_pages(h, modules[i]);
        if (limit.from && str_starts(limit.from, "/sys/module/"))
            return modules[i];
    }
    return param_pages(h, "amdttm").from && !param_pages(h, "ttm").from ? "amdttm" : "ttm";
}

static bool gttsize_is_set(const struct host_facts *h)
{
    const struct module_param *p = host_param(h, "amdgpu", "gttsize");
    return p && strcmp(p->value, "-1");
}

struct num memory_ttm_limit(const struct host_facts *h)
{
    struct num set = param_pages(h, memory_ttm_module(h));
    if (set.from)
        return set;
    /* GTT follows the page limit unless gttsize moved it; only then does the default need to be known. */
    if (gttsize_is_set(h) && h->memory_total_bytes.from)
        return (struct num){ h->memory_total_bytes.v / 2, "the kernel's default, half of RAM" };
    return (struct num){ 0 };
}

/* Lowers *best to v if v is known and less; the reason then names v. */
static void take_least(struct num *best, const char **reason, struct num v, const char *what)
{
    if (!v.from || (best->from && best->v <= v.v))
        return;
    *best = v;
    *reason = what;
}

/* What the host leaves to a GPU that takes its memory from the host's. */
static void take_host_limits(const struct host_facts *h, struct num *best, const char **reason)
{
    struct num ram = h->memory_available_bytes;
    take_least(best, reason, ram, "the memory now available on this host; GTT is a ceiling, not free memory");
    if (!ram.from)
        take_least(best, reason, h->memory_total_bytes, "this host's RAM; GTT is a ceiling, not memory");
    if (h->cgroup_limit_bytes.from) {
        int64_t room = h->cgroup_limit_bytes.v - h->cgroup_used_bytes.v;
        struct num left = { room > 0 ? room : 0, h->cgroup_limit_bytes.from };
        take_least(best, reason, left, "what the cgroup's memory limit leaves");
    }
}

bool memory_is_one_pool(const struct gpu_facts *g)
{
    const struct gfx_chip *c = gfx_find(g->gfx.s);
    return g->kind == GPU_INTEGRATED && c && c->one_pool;
}

bool memory_is_carve_out(const struct gpu_facts *g)
{
    struct num vram = g->vram_total_bytes, gtt = g->gtt_total_bytes, bank = g->kfd_bank_bytes;
    if (g->kind == GPU_DISCRETE || memory_is_one_pool(g) || !vram.from)
        return false;
    return (gtt.from && vram.v >= gtt.v) || (bank.from && bank.v <= vram.v);
}

/* gttsize changes the size that DRM shows, not the limit for HIP: alone it shows nothing. */
static bool gtt_is_moved(const struct host_facts *h, const struct gpu_facts *g)
{
    return g->gtt_total_bytes.from && gttsize_is_set(h) && !memory_ttm_limit(h).from;
}

/* The maximum for HIP on a GPU that shares the host's memory, regardless of what the host has left. */
static void take_ceiling(const struct host_facts *h, struct arena *a, const struct gpu_facts *g,
                         struct num *best, const char **reason)
{
    struct num vram = g->vram_total_bytes, gtt = g->gtt_total_bytes;
    if (memory_is_one_pool(g) && vram.from) {
        take_least(best, reason, vram, "the HBM, which CPU and GPU share");
        return;
    }
    if (memory_is_carve_out(g)) {
        take_least(best, reason, vram,
                   gtt.from && vram.v >= gtt.v
                       ? "the BIOS carve-out, which is larger than GTT; the two do not add up"
                       : "the BIOS carve-out, the only memory that this kernel's KFD offers to HIP");
        return;
    }
    bool moved = gtt_is_moved(h, g);
    if (!moved)
        take_least(best, reason, gtt,
                   "GTT, the system memory the GPU may map; the carve-out does not add to it");
    take_least(best, reason, memory_ttm_limit(h),
               arena_printf(a, "%s.pages_limit%s", memory_ttm_module(h),
                            gtt.from ? ", which is smaller than GTT" : "; GTT is unknown"));
    take_least(best, reason, g->kfd_bank_bytes, "the total that KFD reports to HIP");
    if (!best->from && moved)
        *reason = "amdgpu.gttsize changed GTT, and ttm.pages_limit, which limits HIP, is unknown";
    else if (!best->from)
        take_least(best, reason, vram, "the BIOS carve-out; GTT is unknown");
}

static void judge_integrated(const struct host_facts *h, struct arena *a, struct gpu_facts *g)
{
    struct num best = { 0 };
    const char *reason = NULL;
    struct num gtt = g->gtt_total_bytes;
    take_ceiling(h, a, g, &best, &reason);
    if (!memory_is_carve_out(g))
        take_host_limits(h, &best, &reason);
    g->usable_bytes = best;
    g->usable_reason = reason;
    if (gtt_is_moved(h, g))
        problems_add(
            &g->problems, a,
            "amdgpu.gttsize raised GTT to %.1f GiB, but ttm.pages_limit limits HIP, and is unknown here "
            "(default: half of RAM)",
            GIB(gtt.v));
}

static void judge_discrete(struct gpu_facts *g)
{
    if (!g->vram_total_bytes.from) {
        g->usable_bytes = g->kfd_bank_bytes;
        g->usable_reason = g->kfd_bank_bytes.from ? "the total that KFD reports to HIP" : NULL;
        return;
    }
    g->usable_bytes = g->vram_total_bytes;
    g->usable_reason = "VRAM; the amount in use is unknown";
    if (g->vram_used_bytes.from && g->vram_used_bytes.v <= g->vram_total_bytes.v) {
        g->usable_bytes.v -= g->vram_used_bytes.v;
        g->usable_reason = "VRAM minus what all processes hold, including the desktop";
    }
}

static void find_problems(const struct host_facts *h, struct arena *a, struct gpu_facts *g)
{
    struct num vram = g->vram_total_bytes, gtt = g->gtt_total_bytes, ttm = memory_ttm_limit(h);
    if (g->kind != GPU_INTEGRATED) {
        if (g->vis_vram_total_bytes.from && vram.from && g->vis_vram_total_bytes.v < vram.v)
            problems_add(
                &g->problems, a,
                "resizable BAR is off: the CPU sees %.2f of %.1f GiB VRAM; enable it (and Above 4G Decoding) "
                "in the BIOS",
                GIB(g->vis_vram_total_bytes.v), GIB(vram.v));
        return;
    }
    if (vram.from && gtt.from && vram.v >= gtt.v && memory_is_carve_out(g))
        problems_add(
            &g->problems, a,
            "the BIOS carve-out (%.1f GiB) is larger than GTT (%.1f GiB): HIP uses only the carve-out, and "
            "Linux loses that RAM",
            GIB(vram.v), GIB(gtt.v));
    if (memory_is_one_pool(g) || memory_is_carve_out(g))
        return;
    if (gtt.from && h->memory_total_bytes.from && gtt.v > h->memory_total_bytes.v)
        problems_add(&g->problems, a, "GTT (%.1f GiB) is larger than this host's RAM (%.1f GiB)", GIB(gtt.v),
                     GIB(h->memory_total_bytes.v));
    if (gtt.from && ttm.from && ttm.v < gtt.v)
        problems_add(&g->problems, a,
                     "%s.pages_limit allows %.1f GiB, less than GTT (%.1f GiB): HIP can use only the smaller",
                     memory_ttm_module(h), GIB(ttm.v), GIB(gtt.v));
}

/* A device of unknown kind with far more GTT than VRAM is treated as sharing memory, which is the bound that
 * a training job meets first. */
static bool shares_memory(const struct gpu_facts *g)
{
    struct num vram = g->vram_total_bytes, gtt = g->gtt_total_bytes;
    return g->kind == GPU_INTEGRATED ||
           (g->kind == GPU_KIND_UNKNOWN && gtt.from && vram.from && gtt.v / 8 >= vram.v);
}

void memory_judge_gpu(const struct host_facts *h, struct arena *a, struct gpu_facts *g)
{
    if (shares_memory(g))
        judge_integrated(h, a, g);
    else
        judge_discrete(g);
    find_problems(h, a, g);
}

/* Host memory that the GPU holds is not available to the host, but is part of its budget. */
static struct memory_use shared_use(const struct host_facts *h, struct arena *a, const struct gpu_facts *g)
{
    struct memory_use m = { .used = memory_is_one_pool(g) ? g->vram_used_bytes : g->gtt_used_bytes };
    struct num room = { 0 };
    const char *ignored = NULL;
    take_ceiling(h, a, g, &m.total, &ignored);
    take_host_limits(h, &room, &ignored);
    room.v += m.used.v;
    take_least(&m.total, &ignored, room, NULL);
    return m;
}

struct memory_use memory_use(const struct host_facts *h, struct arena *a, const struct gpu_facts *g)
{
    struct memory_use m = { .total = g->vram_total_bytes, .used = g->vram_used_bytes };
    if (shares_memory(g) && !memory_is_carve_out(g))
        m = shared_use(h, a, g);
    else if (!m.total.from)
        m.total = g->kfd_bank_bytes;
    if (m.total.from && m.used.from)
        m.free = (struct num){ m.total.v > m.used.v ? m.total.v - m.used.v : 0, m.total.from };
    return m;
}

struct num memory_total(const struct host_facts *h, struct arena *a, const struct gpu_facts *g)
{
    struct num total = { 0 };
    const char *ignored = NULL;
    if (!shares_memory(g))
        return g->vram_total_bytes.from ? g->vram_total_bytes : g->kfd_bank_bytes;
    take_ceiling(h, a, g, &total, &ignored);
    return total;
}

int64_t memory_reserve(int64_t bytes)
{
    const int64_t most = (int64_t)16 << 30;
    return bytes / 5 < most ? bytes / 5 : most;
}

int64_t memory_wanted_limit(int64_t ram)
{
    const int64_t gib = (int64_t)1 << 30;
    return (ram - memory_reserve(ram)) / gib * gib;
}
