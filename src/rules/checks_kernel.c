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
        CHECK_WARN, "this is WSL: there is no KFD, the GPU is behind /dev/dxg",
        "the HSA variables, sysfs and module parameters of this doctor do not apply; ROCm needs its WSL "
        "build and the bridge library librocdxg",
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
        return found_unknown("whether amdgpu is loaded is not known", "/sys/module is not there", NULL);
    return found(
        CHECK_FAIL, "the amdgpu kernel module is not loaded",
        "a blacklist, nomodeset, or an unsigned DKMS module under Secure Boot keep it out",
        remedy_on_host(l, "load amdgpu and see what the kernel says of it",
                       "sudo modprobe amdgpu; sudo dmesg | grep -iE 'amdgpu|secure boot'; grep -rn amdgpu "
                       "/etc/modprobe.d"));
}

struct finding check_kfd_topology(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!ctx_may_have_target(l) || h->wsl || ctx_told(l))
        return found_skip("no GPU that KFD could have");
    if (h->kfd_present == TRI_YES)
        return found_ok(l, "KFD is there");
    if (h->kfd_present == TRI_UNKNOWN)
        return found_unknown("whether KFD is there is not known", "/sys/class/kfd is not readable", NULL);
    return found(
        CHECK_FAIL, "KFD, the kernel's compute driver, is not there",
        "the kernel was built without CONFIG_HSA_AMD, or amdgpu has no GPU that KFD knows",
        ctx_text(l, "grep HSA_AMD /boot/config-%s    # =y is wanted; the distribution's own kernel has it",
                 h->kernel.s ? ctx_word(l, h->kernel.s) : "$(uname -r)"));
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
        return found_unknown(ctx_text(l, "the kernel's version is not known; %s wants %s", row->gfx, floor),
                             row->why, "uname -r");
    if (version_below(h->kernel_version, row->major, row->minor, row->patch))
        return found(CHECK_WARN,
                     ctx_text(l, "Linux %s is older than %s, which %s wants", h->kernel.s, floor, row->gfx),
                     row->why, remedy_kernel_newer(l));
    return found_ok(l, "Linux %s is new enough for %s (%s)", h->kernel.s, row->gfx, floor);
}

/* What KFD counts tells more than a version, since distributions backport; where GTT is the smaller it tells nothing. */
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
        return found_unknown("the kernel's version is not known; shared memory wants 6.10", NULL, "uname -r");
    case TRI_YES:
        return found_ok(l, "%s gives ROCm the shared memory of an integrated GPU", kernel);
    case TRI_NO:
        break;
    }
    return found(
        CHECK_WARN, ctx_text(l, "%s gives ROCm the BIOS carve-out only", kernel),
        "before 6.10 KFD counts only the carve-out as an integrated GPU's memory, however much RAM there is",
        remedy_kernel_newer(l));
}

/* gfx1151 is the one of its family with the large register file; its save area was sized for the small one. */
struct finding check_cwsr_kernel(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    int64_t enabled;
    if (!ctx_is(l, "gfx1151"))
        return found_skip("not gfx1151");
    if (l->gpu->has_cwsr_size == TRI_YES)
        return found_ok(l, "the kernel publishes the size of the context-save area");
    if (version_at_least(h->kernel_version, 6, 18, 4))
        return found_ok(l, "Linux %s sizes the context-save area right", h->kernel.s);
    if (ctx_param(l, "amdgpu", "cwsr_enable", &enabled) && enabled == 0)
        return found_ok(l, "amdgpu.cwsr_enable=0 avoids the small context-save area");
    if (!h->kernel_version.n)
        return found_unknown("whether the kernel sizes gfx1151's context-save area right is not known",
                             "the kernel's version is not known and its topology does not tell", "uname -r");
    return found(
        CHECK_WARN, ctx_text(l, "Linux %s makes the context-save area too small for gfx1151", h->kernel.s),
        "compute hangs or faults when waves are saved; fixed in 6.18.4 and in some distribution kernels "
        "(which this cannot see); until then saving can be switched off",
        remedy_kernel_add(l, "amdgpu.cwsr_enable=0"));
}

/* What sysfs shows has the API version above bit 12 on some kernels. */
enum { MES_VERSION_MASK = 0xfff };

static const struct bad_firmware {
    const char *gfx;
    int64_t mes;
    enum check_status status;
    const char *why;
} bad_firmware[] = {
    { "gfx1151", 0x83, CHECK_FAIL,
      "this firmware (linux-firmware 20251125, old amdgpu-dkms-firmware) hangs under compute; AMD's advice "
      "was to go back to 0x80, and later packages carry others" },
    { "gfx1151", 0x86, CHECK_WARN, "there is an open report of hangs with it; 0x80 is known to be good" },
};

struct finding check_mes_firmware(const struct check_ctx *l)
{
    bool listed = false;
    for (size_t i = 0; i < ARRAY_LEN(bad_firmware); i++)
        listed = listed || ctx_is(l, bad_firmware[i].gfx);
    if (!listed)
        return found_skip("no bad firmware is known for this chip");
    if (!l->gpu->mes_fw.from)
        return found_unknown("the version of the MES firmware is not known",
                             "0x83 is known to hang on this chip",
                             "cat /sys/class/drm/card*/device/fw_version/mes_fw_version");
    int64_t mes = l->gpu->mes_fw.v & MES_VERSION_MASK;
    for (size_t i = 0; i < ARRAY_LEN(bad_firmware); i++)
        if (ctx_is(l, bad_firmware[i].gfx) && mes == bad_firmware[i].mes)
            return found(bad_firmware[i].status, ctx_text(l, "MES firmware 0x%llx", (long long)mes),
                         bad_firmware[i].why, remedy_firmware_newer(l));
    return found_ok(l, "MES firmware 0x%llx", (long long)mes);
}

/* The parameters of the driver can be told only where /sys/module or the command line was readable. */
static bool params_known(const struct check_ctx *l)
{
    return l->facts->host.n_params || l->facts->host.cmdline.s;
}

static struct finding param_unknown(const char *name, const struct check_ctx *l)
{
    return found_unknown(ctx_text(l, "whether %s is set is not known", name),
                         "neither /sys/module nor /proc/cmdline was readable", NULL);
}

/* The limit that gttsize was meant to raise, as other checks want it where RAM is known; NULL: it is set already, or
 * there is no telling. */
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
        "it is deprecated and changes only the figure that DRM shows, not what HIP gives; the limit is "
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
        return found_unknown("ttm.page_pool_size cannot be judged", "the size of RAM is not known", NULL);
    /* The default is half of RAM; more is a guide's doing. */
    if (pages <= ram.v / PAGE_BYTES / 10 * 6)
        return found_ok(l, "ttm.page_pool_size is %s", ctx_bytes(l, pages * PAGE_BYTES));
    return found(
        CHECK_WARN, ctx_text(l, "ttm.page_pool_size is %lld pages, more than half of RAM", (long long)pages),
        "it only sizes a pool of recycled pages; set as large as the limit it has pinned RAM from boot on",
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
        return found_ok(l, "KFD's cap on pinned system memory is in force");
    return found(CHECK_WARN, "amdgpu.no_system_mem_limit lifts KFD's cap on pinned system memory",
                 "a job that asks for too much then takes the whole machine down instead of failing",
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
                         "a left-over of debugging: it hides video memory from every program",
                         remedy_kernel_replace(l, ctx_text(l, "amdgpu.%s", names[i]), NULL));
    }
    return found_ok(l, "no parameter limits video memory");
}

struct finding check_iommu_off(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!l->gpu)
        return found_skip("no GPU");
    if (!h->cmdline.s)
        return param_unknown("amd_iommu", l);
    if (!str_list_has(h->cmdline.s, ' ', "amd_iommu=off"))
        return found_ok(l, "the IOMMU is not switched off");
    return found(
        CHECK_WARN, "amd_iommu=off is on the kernel command line",
        "a little faster on some integrated GPUs, but AMD asks reporters of faults to remove it, and devices "
        "such as the NPU stop working",
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
    return found(
        CHECK_WARN, ctx_text(l, "%zu GPUs, and iommu=pt is not set", cards),
        "copies between GPUs pass through the IOMMU's translation; RCCL warns of hangs without iommu=pt",
        remedy_kernel_add(l, "iommu=pt"));
}
