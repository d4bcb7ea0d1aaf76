/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"
#include "host/memory.h"
#include "rules/remedy.h"
#include <string.h>

struct finding check_wsl(const struct check_ctx *l)
{
    if (!l->facts->host.wsl)
        return found_skip("not WSL");
    return found(
        CHECK_WARN, "WSL: there is no KFD; the GPU is reached through /dev/dxg",
        "HSA variables, sysfs and module parameters do not apply under WSL; ROCm needs its WSL build and the "
        "bridge library librocdxg",
        "ls -l /dev/dxg && cairn doctor --probe");
}

struct finding check_amdgpu_module(const struct check_ctx *l)
{
    const struct facts *f = l->facts;
    if (!f->n_gpus)
        return found_skip("no GPU");
    if (f->host.amdgpu_loaded == TRI_YES || ctx_capable(l))
        return found_ok(l, "amdgpu is loaded%s%s", f->host.amdgpu_version.s ? ", version " : "",
                        f->host.amdgpu_version.s ? f->host.amdgpu_version.s : "");
    if (f->host.amdgpu_loaded == TRI_UNKNOWN)
        return found_unknown("amdgpu: unknown whether the module is loaded", "/sys/module does not exist",
                             NULL);
    return found(
        CHECK_FAIL, "amdgpu, the kernel module, is not loaded",
        "a blacklist, nomodeset, or an unsigned DKMS module under Secure Boot can prevent it",
        remedy_on_host(l, "load amdgpu and read its kernel messages",
                       "sudo modprobe amdgpu; sudo dmesg | grep -iE 'amdgpu|secure boot'; grep -rn amdgpu "
                       "/etc/modprobe.d"));
}

struct finding check_kfd_topology(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!ctx_may_have_target(l) || h->wsl || ctx_gfx_given(l))
        return found_skip("no GPU that KFD supports");
    if (h->kfd_present == TRI_YES)
        return found_ok(l, "KFD is available");
    if (h->kfd_present == TRI_UNKNOWN)
        return found_unknown("KFD: unknown whether the kernel has it", "/sys/class/kfd is not readable",
                             NULL);
    return found(
        CHECK_FAIL, "KFD, the kernel's compute driver, is missing",
        "the kernel was built without CONFIG_HSA_AMD, or amdgpu found no GPU that KFD supports",
        ctx_text(l, "grep HSA_AMD /boot/config-%s    # must be =y; the distribution's own kernel has it",
                 h->kernel.s ? ctx_shell_word(l, h->kernel.s) : "$(uname -r)"));
}

/* Kernels before these hang on the chip. */
static const struct kernel_floor {
    const char *gfx;
    int major, minor, patch;
    const char *why;
} floors[] = {
    { "gfx1152", 6, 19, 10, "older kernels hang under compute with its MES firmware" },
};

struct finding check_kernel_chip(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    const struct kernel_floor *row = floors;
    while (row < floors + ARRAY_LEN(floors) && !ctx_is(l, row->gfx))
        row++;
    if (row == floors + ARRAY_LEN(floors))
        return found_skip("no kernel is known to be too old for this chip");
    const char *floor = ctx_text(l, "%d.%d.%d", row->major, row->minor, row->patch);
    if (!h->kernel_version.n)
        return found_unknown(ctx_text(l, "the kernel version is unknown; %s needs %s", row->gfx, floor),
                             row->why, "uname -r");
    if (version_below(h->kernel_version, row->major, row->minor, row->patch))
        return found(CHECK_WARN,
                     ctx_text(l, "Linux %s is older than %s, which %s needs", h->kernel.s, floor, row->gfx),
                     row->why, remedy_kernel_newer(l));
    return found_ok(l, "Linux %s is new enough for %s (%s)", h->kernel.s, row->gfx, floor);
}

/* KFD's own count is more reliable than a version, because distributions backport; if GTT is the smaller one,
 * the count shows nothing. */
static enum tri gives_shared_memory(const struct check_ctx *l)
{
    const struct gpu_facts *g = l->gpu;
    struct version kernel = l->facts->host.kernel_version;
    if (g->kfd_bank_bytes.from && g->vram_total_bytes.from && g->gtt_total_bytes.from &&
        g->vram_total_bytes.v < g->gtt_total_bytes.v)
        return memory_is_carve_out(g) ? TRI_NO : TRI_YES;
    return !kernel.n ? TRI_UNKNOWN : version_at_least(kernel, 6, 10, 0) ? TRI_YES : TRI_NO;
}

struct finding check_kernel_unified(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!ctx_integrated(l) || memory_is_one_pool(l->gpu))
        return found_skip("no integrated GPU with a carve-out in use");
    const char *kernel = h->kernel.s ? ctx_text(l, "Linux %s", h->kernel.s) : "this kernel";
    switch (gives_shared_memory(l)) {
    case TRI_UNKNOWN:
        return found_unknown("the kernel version is unknown; shared memory needs 6.10", NULL, "uname -r");
    case TRI_YES:
        return found_ok(l, "%s lets ROCm use the shared memory of an integrated GPU", kernel);
    case TRI_NO:
        break;
    }
    return found(
        CHECK_WARN, ctx_text(l, "%s lets ROCm use only the BIOS carve-out", kernel),
        "before 6.10, KFD counts only the carve-out as memory of an integrated GPU, however much RAM the "
        "machine has",
        remedy_kernel_newer(l));
}

/* gfx1151 has the large register file, unlike the rest of its family; its save area was sized for the small
 * one. */
struct finding check_cwsr_kernel(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    int64_t enabled;
    if (!ctx_is(l, "gfx1151"))
        return found_skip("not gfx1151");
    if (l->gpu->has_cwsr_size == TRI_YES)
        return found_ok(l, "the kernel publishes the size of the context-save area");
    if (version_at_least(h->kernel_version, 6, 18, 4))
        return found_ok(l, "Linux %s sizes the context-save area correctly", h->kernel.s);
    if (ctx_param(l, "amdgpu", "cwsr_enable", &enabled) && enabled == 0)
        return found_ok(l, "amdgpu.cwsr_enable=0 avoids the small context-save area");
    if (!h->kernel_version.n)
        return found_unknown(
            "context-save area: unknown whether the kernel makes it large enough for gfx1151",
            "the kernel version is unknown, and its topology does not show it", "uname -r");
    return found(
        CHECK_WARN, ctx_text(l, "Linux %s makes the context-save area too small for gfx1151", h->kernel.s),
        "compute hangs or faults when the kernel saves waves; 6.18.4 and some distribution kernels have the "
        "fix (cairn cannot see backports); until then, disable context saving",
        remedy_kernel_add(l, "amdgpu.cwsr_enable=0"));
}

/* On some kernels the value in sysfs has the API version above bit 12. */
enum { MES_VERSION_MASK = 0xfff };

static const struct bad_firmware {
    const char *gfx;
    int64_t mes;
    enum check_status status;
    const char *why;
} bad_firmware[] = {
    { "gfx1151", 0x83, CHECK_FAIL,
      "this firmware (linux-firmware 20251125, old amdgpu-dkms-firmware) hangs under compute; AMD advised "
      "going back to 0x80, and later packages ship other versions" },
    { "gfx1151", 0x86, CHECK_WARN,
      "an open report describes hangs with this firmware; 0x80 is known to be "
      "good" },
};

struct finding check_mes_firmware(const struct check_ctx *l)
{
    bool listed = false;
    for (size_t i = 0; i < ARRAY_LEN(bad_firmware); i++)
        listed = listed || ctx_is(l, bad_firmware[i].gfx);
    if (!listed)
        return found_skip("no bad firmware is known for this chip");
    if (!l->gpu->mes_fw.from)
        return found_unknown("the MES firmware version is unknown", "0x83 is known to hang on this chip",
                             "cat /sys/class/drm/card*/device/fw_version/mes_fw_version");
    int64_t mes = l->gpu->mes_fw.v & MES_VERSION_MASK;
    for (size_t i = 0; i < ARRAY_LEN(bad_firmware); i++)
        if (ctx_is(l, bad_firmware[i].gfx) && mes == bad_firmware[i].mes)
            return found(bad_firmware[i].status, ctx_text(l, "MES firmware 0x%llx", (long long)mes),
                         bad_firmware[i].why, remedy_firmware_newer(l));
    return found_ok(l, "MES firmware 0x%llx", (long long)mes);
}

/* Module parameters are known only if /sys/module or the command line was readable. */
static bool params_known(const struct check_ctx *l)
{
    return l->facts->host.n_params || l->facts->host.cmdline.s;
}

static struct finding param_unknown(const char *name, const struct check_ctx *l)
{
    return found_unknown(ctx_text(l, "%s: unknown whether it is set", name),
                         "neither /sys/module nor /proc/cmdline was readable", NULL);
}

/* The limit that gttsize was meant to raise, with the same value as other checks if RAM is known; NULL: it is
 * already set, or unknown. */
static const char *limit_for_gttsize(const struct check_ctx *l, int64_t mib)
{
    struct num ram = l->facts->host.memory_total_bytes;
    const char *cmdline = l->facts->host.cmdline.s;
    if (!ctx_integrated(l) || mib < 256 || mib >= 1 << 30 || (cmdline && strstr(cmdline, "ttm.pages_limit=")))
        return NULL;
    int64_t want = ram.from ? memory_wanted_limit(ram.v) : mib * MIB;
    return ctx_text(l, "%s.pages_limit=%lld", memory_ttm_module(&l->facts->host),
                    (long long)(want / PAGE_BYTES));
}

struct finding check_gttsize(const struct check_ctx *l)
{
    int64_t mib;
    if (!l->gpu)
        return found_skip("no GPU");
    if (!params_known(l))
        return param_unknown("amdgpu.gttsize", l);
    if (!ctx_param(l, "amdgpu", "gttsize", &mib) || mib < 0)
        return found_ok(l, "amdgpu.gttsize is not set");
    return found(
        CHECK_WARN, ctx_text(l, "amdgpu.gttsize=%lld is set", (long long)mib),
        "deprecated: it changes only the size that DRM shows, not what HIP can allocate; the real limit is "
        "ttm.pages_limit",
        remedy_kernel_replace(l, "amdgpu.gttsize", limit_for_gttsize(l, mib)));
}

struct finding check_page_pool(const struct check_ctx *l)
{
    int64_t pages;
    struct num ram = l->facts->host.memory_total_bytes;
    if (!ctx_integrated(l))
        return found_skip("no integrated GPU in use");
    if (!params_known(l))
        return param_unknown("ttm.page_pool_size", l);
    if (!ctx_param(l, "ttm", "page_pool_size", &pages) && !ctx_param(l, "amdttm", "page_pool_size", &pages))
        return found_ok(l, "ttm.page_pool_size is not set");
    if (!ram.from)
        return found_unknown("ttm.page_pool_size cannot be judged", "the size of RAM is unknown", NULL);
    /* The default is half of RAM; a larger value comes from a guide. */
    if (pages <= ram.v / PAGE_BYTES / 10 * 6)
        return found_ok(l, "ttm.page_pool_size is %s", ctx_bytes(l, pages * PAGE_BYTES));
    return found(
        CHECK_WARN, ctx_text(l, "ttm.page_pool_size is %lld pages, more than half of RAM", (long long)pages),
        "it only sizes a pool of recycled pages; values as large as the limit have pinned RAM from boot",
        remedy_kernel_replace(l, "ttm.page_pool_size", NULL));
}

struct finding check_system_mem_limit(const struct check_ctx *l)
{
    const struct module_param *p = host_param(&l->facts->host, "amdgpu", "no_system_mem_limit");
    if (!l->gpu)
        return found_skip("no GPU");
    if (!params_known(l))
        return param_unknown("amdgpu.no_system_mem_limit", l);
    if (!p || str_eq(p->value, "N") || str_eq(p->value, "0"))
        return found_ok(l, "KFD's cap on pinned system memory is active");
    return found(
        CHECK_WARN, "amdgpu.no_system_mem_limit removes KFD's cap on pinned system memory",
        "a job that allocates too much then takes down the whole machine instead of failing with OOM",
        remedy_kernel_replace(l, "amdgpu.no_system_mem_limit", NULL));
}

struct finding check_vram_limits(const struct check_ctx *l)
{
    static const char *const names[] = { "vramlimit", "vis_vramlimit" };
    if (!l->gpu)
        return found_skip("no GPU");
    if (!params_known(l))
        return param_unknown("amdgpu.vramlimit", l);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int64_t mib;
        if (ctx_param(l, "amdgpu", names[i], &mib) && mib > 0)
            return found(CHECK_WARN, ctx_text(l, "amdgpu.%s=%lld is set", names[i], (long long)mib),
                         "a debugging leftover: it hides VRAM from every program",
                         remedy_kernel_replace(l, ctx_text(l, "amdgpu.%s", names[i]), NULL));
    }
    return found_ok(l, "no parameter limits VRAM");
}

struct finding check_iommu_off(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!l->gpu)
        return found_skip("no GPU");
    if (!h->cmdline.s)
        return param_unknown("amd_iommu", l);
    if (!str_list_has(h->cmdline.s, ' ', "amd_iommu=off"))
        return found_ok(l, "the IOMMU is on");
    return found(
        CHECK_WARN, "amd_iommu=off is on the kernel command line",
        "slightly faster on some integrated GPUs, but AMD asks to remove it before reporting faults, and "
        "devices such as the NPU stop working",
        remedy_kernel_replace(l, "amd_iommu", NULL));
}

struct finding check_iommu_pt(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    size_t cards = 0;
    for (size_t i = 0; i < l->facts->n_gpus; i++)
        cards += l->facts->gpus[i].rocm_capable && l->facts->gpus[i].kind == GPU_DISCRETE;
    if (cards < 2)
        return found_skip("fewer than two discrete GPUs");
    if (!h->cmdline.s)
        return param_unknown("iommu=pt", l);
    if (str_list_has(h->cmdline.s, ' ', "iommu=pt") || str_list_has(h->cmdline.s, ' ', "amd_iommu=off"))
        return found_ok(l, "the IOMMU does not translate for the GPUs");
    return found(CHECK_WARN, ctx_text(l, "iommu=pt is not set, with %zu GPUs", cards),
                 "the IOMMU translates every copy between GPUs; RCCL warns of hangs without iommu=pt",
                 remedy_kernel_add(l, "iommu=pt"));
}
