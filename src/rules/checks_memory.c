/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"
#include "host/memory.h"
#include "rules/remedy.h"

/* KFD offers the larger of carve-out and GTT, never the sum. */
static bool is_limited_by_gtt(const struct check_ctx *l)
{
    return ctx_integrated(l) && !memory_is_one_pool(l->gpu) && !memory_is_carve_out(l->gpu);
}

struct finding check_carve_out(const struct check_ctx *l)
{
    enum { SMALL_GIB = 4 };
    struct num ram = l->facts->host.memory_total_bytes;
    if (!ctx_integrated(l) || memory_is_one_pool(l->gpu))
        return found_skip("no integrated GPU with a carve-out in use");
    struct num vram = l->gpu->vram_total_bytes;
    if (!vram.from)
        return found_unknown("the size of the BIOS carve-out is unknown",
                             "the driver shows no mem_info_vram_total", NULL);
    struct num gtt = l->gpu->gtt_total_bytes;
    bool rules = gtt.from && vram.v >= gtt.v;
    if (!rules && memory_is_carve_out(l->gpu))
        return found_skip("KFD offers only the carve-out on this kernel; check kernel-unified covers it");
    const char *size = ctx_bytes(l, vram.v);
    if (!rules && (vram.v <= SMALL_GIB * GIB || (ram.from && vram.v <= ram.v / 8)))
        return found_ok(l, "the BIOS carve-out is %s; the GPU shares the remaining RAM", size);
    const char *then = ram.from ? remedy_limit(l, memory_wanted_limit(sum_bytes(ram.v, vram.v) - GIB / 2))
                                : "# then raise ttm.pages_limit as this report suggests";
    return found(
        CHECK_WARN, ctx_text(l, "the BIOS carve-out reserves %s for graphics", size),
        rules
            ? "a large carve-out hurts on Linux: that RAM is lost for loading and data, and HIP can use only "
              "the carve-out, not carve-out plus GTT"
            : "a large carve-out hurts on Linux: HIP uses GTT here, so neither CPU nor HIP can use that RAM",
        ctx_text(l, "# set the graphics memory in the BIOS to its minimum (512 MB), then\n%s", then));
}

struct finding check_ttm_limit(const struct check_ctx *l)
{
    struct num ram = l->facts->host.memory_total_bytes;
    int64_t limit;
    if (!ctx_integrated(l))
        return found_skip("no integrated GPU in use");
    if (!is_limited_by_gtt(l))
        return found_skip("GTT does not limit this GPU");
    if (!ctx_ttm_limit(l, &limit))
        return found_unknown("the GPU's memory limit is unknown",
                             "neither ttm.pages_limit nor GTT was readable",
                             "cat /sys/module/ttm/parameters/pages_limit    # times 4096 bytes");
    if (!ram.from)
        return found_unknown(ctx_text(l, "the GPU may map %s", ctx_bytes(l, limit)),
                             "the size of RAM is unknown, so the limit cannot be judged", NULL);
    int64_t want = memory_wanted_limit(ram.v);
    if (limit > ram.v)
        return found_skip("the limit is larger than RAM; check gtt-over-ram covers it");
    if (limit >= want / 10 * 8)
        return found_ok(l, "the GPU may map %s of %s RAM", ctx_bytes(l, limit), ctx_bytes(l, ram.v));
    return found(
        CHECK_WARN,
        ctx_text(l, "the GPU may map only %s of %s RAM", ctx_bytes(l, limit), ctx_bytes(l, ram.v)),
        ctx_text(l,
                 "the kernel's default is half of RAM; %s leaves enough for Linux. PyTorch fails with \"out "
                 "of memory\" at this limit, no matter how much RAM is free",
                 ctx_bytes(l, want)),
        remedy_limit(l, want));
}

struct finding check_gtt_over_ttm(const struct check_ctx *l)
{
    int64_t limit;
    struct num ram = l->facts->host.memory_total_bytes;
    if (!is_limited_by_gtt(l))
        return found_skip("no integrated GPU that uses GTT");
    struct num gtt = l->gpu->gtt_total_bytes;
    if (!gtt.from || !ctx_ttm_limit(l, &limit))
        return found_unknown("GTT and the TTM limit cannot be compared", "one of them is unknown", NULL);
    if (gtt.v <= limit)
        return found_ok(l, "GTT (%s) is within the TTM limit", ctx_bytes(l, gtt.v));
    return found(
        CHECK_WARN,
        ctx_text(l, "GTT reports %s, but the TTM limit is %s", ctx_bytes(l, gtt.v), ctx_bytes(l, limit)),
        "HIP can allocate only the smaller; tools that read GTT (and HIP's own \"free\") promise memory that "
        "does not exist",
        remedy_limit(l, ram.from ? memory_wanted_limit(ram.v) : gtt.v));
}

struct finding check_gtt_over_ram(const struct check_ctx *l)
{
    struct num ram = l->facts->host.memory_total_bytes;
    if (!is_limited_by_gtt(l))
        return found_skip("no integrated GPU that uses GTT");
    struct num gtt = l->gpu->gtt_total_bytes;
    if (!gtt.from || !ram.from)
        return found_unknown("GTT and RAM cannot be compared", "one of them is unknown", NULL);
    if (gtt.v <= ram.v)
        return found_ok(l, "GTT (%s) is less than RAM (%s)", ctx_bytes(l, gtt.v), ctx_bytes(l, ram.v));
    return found(CHECK_WARN,
                 ctx_text(l, "GTT (%s) is larger than RAM (%s)", ctx_bytes(l, gtt.v), ctx_bytes(l, ram.v)),
                 "GTT is a ceiling, not memory: the OOM killer ends a job that is sized by it",
                 remedy_limit(l, memory_wanted_limit(ram.v)));
}

struct finding check_memory_available(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!h->memory_total_bytes.from || !h->memory_available_bytes.from)
        return found_unknown("available RAM is unknown", "/proc/meminfo does not report it", NULL);
    int64_t total = h->memory_total_bytes.v, left = h->memory_available_bytes.v;
    const char *fact = ctx_text(l, "%s of %s RAM available", ctx_bytes(l, left), ctx_bytes(l, total));
    int64_t least = total / 10 > 4 * GIB ? total / 10 : 4 * GIB;
    if (left >= least)
        return found_ok(l, "%s", fact);
    return found(CHECK_WARN, fact,
                 ctx_integrated(l) ? "an integrated GPU takes its memory from the same RAM"
                                   : "trainers load models through host RAM before they reach the GPU",
                 "ps -eo pid,rss,comm --sort=-rss | head");
}

struct finding check_cgroup_limit(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!h->cgroup_limit_bytes.from)
        return found_skip("no memory limit on this cgroup");
    if (!h->memory_total_bytes.from)
        return found_unknown("the cgroup's memory limit cannot be judged", "the size of RAM is unknown",
                             NULL);
    const char *limit = ctx_bytes(l, h->cgroup_limit_bytes.v);
    if (h->cgroup_limit_bytes.v >= h->memory_total_bytes.v / 10 * 9)
        return found_ok(l, "the cgroup allows %s", limit);
    return found(
        CHECK_WARN,
        ctx_text(l, "this cgroup is limited to %s of %s RAM", limit, ctx_bytes(l, h->memory_total_bytes.v)),
        "the OOM killer ends a job that exceeds it, without a line in the job's own log; page cache of "
        "mapped weights counts too",
        h->container.s
            ? "# start the container without --memory"
            : "systemd-run --user --scope -p MemoryMax=infinity YOUR-COMMAND    # or raise the limit of its "
              "slice");
}

/* What a GPU of this size can train, and the host RAM needed while weights are loaded and cast. */
static const struct model_class {
    int64_t gpu_gib, host_gib;
    const char *what;
} classes[] = {
    { 24, 64, "14B video LoRA" },
    { 12, 32, "image LoRA, or 14B in fp8 with block swap" },
    { 0, 16, "small LoRA" },
};

static bool gpu_capacity(const struct check_ctx *l, int64_t *bytes)
{
    if (!l->gpu)
        return false;
    *bytes = l->gpu->vram_total_bytes.v;
    if (is_limited_by_gtt(l))
        return ctx_ttm_limit(l, bytes);
    return l->gpu->vram_total_bytes.from != NULL;
}

struct finding check_swap(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    int64_t capacity;
    if (!gpu_capacity(l, &capacity))
        return found_skip("no GPU with a known memory size");
    if (!h->memory_total_bytes.from || !h->swap_total_bytes.from)
        return found_unknown("the size of RAM or swap is unknown", "/proc/meminfo does not report it", NULL);
    const struct model_class *c = classes;
    while (capacity < c->gpu_gib * GIB / 10 * 9)
        c++;
    /* Weights do not compress, so zram does not help. */
    int64_t swap = h->swap_total_bytes.v - (h->zram_bytes.from ? h->zram_bytes.v : 0);
    swap = swap > 0 ? swap : 0;
    int64_t have = sum_bytes(h->memory_total_bytes.v, swap), need = c->host_gib * GIB;
    const char *fact =
        ctx_text(l, "%s RAM and %s swap on disk", ctx_bytes(l, h->memory_total_bytes.v), ctx_bytes(l, swap));
    if (have >= need / 10 * 9)
        return found_ok(l, "%s; %s needs %lld GiB", fact, c->what, (long long)c->host_gib);
    long long add = (long long)((need - have + 8 * GIB - 1) / (8 * GIB) * 8);
    return found(
        CHECK_WARN, fact,
        ctx_text(l,
                 "loading for %s, which fits this GPU, needs %lld GiB of RAM plus swap; zram does not count",
                 c->what, (long long)c->host_gib),
        remedy_on_host(
            l, ctx_text(l, "add %lld GiB of swap", add),
            ctx_text(
                l,
                "sudo fallocate -l %lldG /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && "
                "sudo swapon /swapfile",
                add)));
}

struct finding check_huge_pages(const struct check_ctx *l)
{
    const struct text *thp = &l->facts->host.thp;
    if (!l->gpu)
        return found_skip("no GPU");
    if (!thp->s)
        return found_unknown("transparent huge pages: unknown whether they are on", "sysfs does not show it",
                             NULL);
    if (!str_eq(thp->s, "never"))
        return found_ok(l, "transparent huge pages: %s", thp->s);
    return found(CHECK_WARN, "transparent huge pages are off",
                 "large host buffers then consist of 4 KiB pages, so pinning and mapping them is slower",
                 remedy_on_host(l, "enable transparent huge pages (madvise)",
                                "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"));
}

struct finding check_gpu_processes(const struct check_ctx *l)
{
    CLEANUP(str_release) struct str pids = { 0 }, names = { 0 };
    int64_t held = 0;
    if (!l->gpu)
        return found_skip("no GPU");
    for (size_t i = 0; i < l->gpu->n_processes; i++) {
        const struct gpu_process *p = &l->gpu->processes[i];
        if (p->vram_bytes < 256 * MIB)
            continue;
        held = sum_bytes(held, p->vram_bytes);
        str_addf(&pids, " %lld", (long long)p->pid);
        str_addf(&names, "%s%s (%lld) %s", names.len ? ", " : "", p->name ? p->name : "process",
                 (long long)p->pid, ctx_bytes(l, p->vram_bytes));
    }
    if (!held && !l->facts->root.live)
        return found_unknown("GPU memory: unknown which processes hold it",
                             "a captured tree does not show it", NULL);
    if (!held)
        return found_ok(l, "no compute process holds memory on this GPU");
    return found(
        CHECK_WARN, ctx_text(l, "other processes hold GPU memory: %s", names.s),
        ctx_text(l,
                 "a new job cannot use these %s; a trainer that did not exit cleanly can leave such a "
                 "process behind",
                 ctx_bytes(l, held)),
        ctx_text(l, "kill%s    # check first: ps -fp%s", pids.s, pids.s));
}

struct finding check_vram_in_use(const struct check_ctx *l)
{
    const struct gpu_facts *g = l->gpu;
    if (!g || g->kind == GPU_INTEGRATED)
        return found_skip("no discrete GPU");
    if (!g->vram_total_bytes.from || !g->vram_used_bytes.from)
        return found_unknown("VRAM in use is unknown", "the driver does not report it", NULL);
    const char *fact = ctx_text(l, "%s of %s VRAM in use", ctx_bytes(l, g->vram_used_bytes.v),
                                ctx_bytes(l, g->vram_total_bytes.v));
    if (g->vram_used_bytes.v <= g->vram_total_bytes.v / 5)
        return found_ok(l, "%s", fact);
    return found(CHECK_WARN, fact,
                 "desktop, browser and video players hold VRAM too, and HIP's own \"free\" does not count "
                 "them",
                 "cairn gpu    # lists the processes; close those you do not need");
}

struct finding check_gpu_memory(const struct check_ctx *l)
{
    enum { SMALL_GIB = 6 };
    if (!l->gpu)
        return found_skip("no GPU");
    if (!l->gpu->usable_bytes.from)
        return found_unknown(
            "usable GPU memory is unknown",
            l->gpu->usable_reason ? l->gpu->usable_reason : "the driver exposes no memory files", NULL);
    const char *fact =
        ctx_text(l, "%s usable: %s", ctx_bytes(l, l->gpu->usable_bytes.v), l->gpu->usable_reason);
    if (l->gpu->usable_bytes.v >= SMALL_GIB * GIB)
        return found_ok(l, "%s", fact);
    return found(CHECK_WARN, fact,
                 "most image models need more, even for a LoRA: use fp8 weights, block swap and small images",
                 "cairn gpu    # shows how the total is made up, and which processes hold memory");
}
