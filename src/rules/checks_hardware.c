/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"
#include "rules/remedy.h"
#include "rules/reviewed.h"

static const char *kind_word(const struct gpu_facts *g)
{
    return g->kind == GPU_DISCRETE ? ", discrete" : g->kind == GPU_INTEGRATED ? ", integrated" : "";
}

static const char *list_gpus(const struct check_ctx *l)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (size_t i = 0; i < l->facts->n_gpus; i++) {
        const struct gpu_facts *g = &l->facts->gpus[i];
        str_addf(&s, "%s%s%s", i ? "; " : "", ctx_gpu(l, g), kind_word(g));
    }
    return ctx_text(l, "%s", s.s);
}

struct finding check_gpu_present(const struct check_ctx *l)
{
    if (l->facts->n_gpus)
        return found_ok(l, "%s", list_gpus(l));
    if (l->facts->host.wsl)
        return found_unknown(
            "WSL: sysfs does not describe the GPU behind /dev/dxg",
            "WSL reaches the GPU through librocdxg, not through KFD; only a program that uses the GPU can "
            "test it",
            "cairn doctor --probe");
    if (l->facts->host.kfd_unreadable)
        return found_unknown("AMD GPU: unknown whether this machine has one",
                             l->facts->problems.n ? l->facts->problems.text[0]
                                                  : "KFD's topology in /sys/class/kfd is not fully readable",
                             "cairn gpu --verbose");
    return found(
        CHECK_FAIL, "no AMD GPU found",
        "neither KFD nor DRM lists a device of vendor 1002; training with ROCm needs an AMD GPU (gfx900 or "
        "newer) with the amdgpu driver",
        "lspci -nnk -d 1002:    # if it lists a GPU without a driver: sudo modprobe amdgpu");
}

struct finding check_gpu_in_kfd(const struct check_ctx *l)
{
    const struct facts *f = l->facts;
    if (!f->n_gpus)
        return found_skip("no GPU");
    size_t n = ctx_capable(l);
    if (n)
        return found_ok(l, "%zu of %zu GPU%s can run ROCm", n, f->n_gpus, f->n_gpus == 1 ? "" : "s");
    const struct problems *p = &f->gpus[0].problems;
    if (f->host.kfd_unreadable)
        return found_unknown("ROCm: unknown whether any GPU here can run it",
                             "KFD's topology in /sys/class/kfd is not fully readable", "cairn gpu --verbose");
    return found(CHECK_FAIL, "no GPU here can run ROCm",
                 p->n ? p->text[0] : "KFD, the kernel's compute driver, has no node for any of them",
                 /* a chip with a target can have a node, once the obstacle is gone */
                 ctx_may_have_target(l) ? "cairn gpu --verbose; sudo dmesg | grep -iE 'kfd|amdgpu'" : NULL);
}

static const char *driver_remedy(const struct check_ctx *l, const struct gpu_facts *g)
{
    if (str_eq(g->driver.s, "radeon"))
        return remedy_kernel_add(
            l, "radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1");
    if (!g->pci.s || !str_eq(g->driver.s, "vfio-pci") || ctx_shell_word(l, g->pci.s) != g->pci.s)
        return "lspci -nnk -d 1002:";
    return ctx_text(l,
                    "sudo sh -c 'echo > /sys/bus/pci/devices/%s/driver_override; echo %s > "
                    "/sys/bus/pci/drivers/%s/unbind; echo %s > /sys/bus/pci/drivers_probe'",
                    g->pci.s, g->pci.s, g->driver.s, g->pci.s);
}

struct finding check_gpu_driver(const struct check_ctx *l)
{
    const struct facts *f = l->facts;
    if (!f->n_gpus)
        return found_skip("no GPU");
    bool known = false;
    for (size_t i = 0; i < f->n_gpus; i++) {
        const struct gpu_facts *g = &f->gpus[i];
        known = known || g->driver.s || g->rocm_capable;
        if (!g->driver.s || str_eq(g->driver.s, "amdgpu"))
            continue;
        const char *fact = ctx_text(l, "%s is bound to %s, not to amdgpu", ctx_gpu(l, g), g->driver.s);
        if (g->device_id.from && !g->gfx.s)
            return found(CHECK_WARN, fact, "ROCm has no target for this chip, whatever the driver", NULL);
        return found(ctx_capable(l) ? CHECK_WARN : CHECK_FAIL, fact,
                     "only the amdgpu driver exposes a GPU to KFD, and so to ROCm", driver_remedy(l, g));
    }
    if (!known)
        return found_unknown("the driver of the GPU is unknown", "no uevent file names the driver",
                             "lspci -nnk -d 1002:");
    return found_ok(l, "bound to amdgpu");
}

struct finding check_gpu_target(const struct check_ctx *l)
{
    if (!l->gpu)
        return found_skip("no GPU");
    if (!l->gpu->gfx.s)
        return found_unknown("the gfx target of the GPU is unknown",
                             l->gpu->device_id.from
                                 ? "the PCI device id is in no table: the chip is older than ROCm, or newer "
                                   "than this cairn"
                                 : "without the target, cairn cannot judge any library",
                             "cairn doctor --gfx gfx1100    # with the real target");
    if (!l->chip)
        return found(CHECK_WARN, ctx_text(l, "%s is not in cairn's tables", l->gpu->gfx.s),
                     "the tables were reviewed on " RULES_REVIEWED "; they do not cover newer chips",
                     "cairn gpu --chips");
    return found_ok(l, "%s, %s, %s (from %s)", l->chip->gfx, l->chip->codename,
                    gfx_family_name(l->chip->family), l->gpu->gfx.from);
}

struct finding check_gpu_support(const struct check_ctx *l)
{
    const struct gfx_chip *c = l->chip;
    if (!c)
        return found_skip("no GPU with a known chip");
    if (!c->wheel && !c->therock)
        return found(
            CHECK_FAIL, ctx_text(l, "no PyTorch wheel carries code for %s (%s)", c->gfx, c->products),
            ctx_text(l, "%s; `cairn gpu --chips` lists the chips that can",
                     c->problems ? c->problems : ctx_text(l, "AMD's support for it: %s", c->support)),
            NULL);
    if (!c->wheel_major && !str_eq(c->therock, "ready"))
        return found(CHECK_WARN,
                     ctx_text(l, "%s: AMD builds wheels for it but does not qualify them", c->gfx),
                     "AMD's wheels contain code for the chip, untested; pytorch.org's wheels contain none",
                     "cairn doctor --probe    # runs conversions and a matmul on the GPU");
    return found_ok(l, "%s: AMD's support: %s; pytorch.org wheel: %s; AMD wheel: %s", c->gfx, c->support,
                    c->wheel ? c->wheel : "none", c->therock ? c->therock : "none");
}

static const struct gpu_facts *find_integrated(const struct check_ctx *l)
{
    for (size_t i = 0; i < l->facts->n_gpus; i++) {
        const struct gpu_facts *g = &l->facts->gpus[i];
        if (g != l->gpu && g->rocm_capable && g->hip_index >= 0 && g->kind == GPU_INTEGRATED)
            return g;
    }
    return NULL;
}

static bool is_visible(const struct check_ctx *l, const struct gpu_facts *g)
{
    for (size_t i = 0; i < l->plan->n_visible; i++)
        if (l->plan->visible[i] == g)
            return true;
    return false;
}

/* What the plan would set to select GPUs, or the user's own value that it keeps; NULL: neither. */
static const struct plan_var *find_selector(const struct plan_var *vars, size_t n)
{
    for (size_t i = 0; i < PLAN_N_SELECTORS; i++)
        if (plan_find(vars, n, plan_selectors[i]))
            return plan_find(vars, n, plan_selectors[i]);
    return NULL;
}

struct finding check_gpu_integrated(const struct check_ctx *l)
{
    if (!l->gpu || l->gpu->kind != GPU_DISCRETE)
        return found_skip("no discrete GPU");
    const struct gpu_facts *other = find_integrated(l);
    if (!other)
        return found_ok(l, "no integrated GPU beside the discrete one");
    const struct plan_var *v = find_selector(l->plan->set, l->plan->n_set),
                          *own = find_selector(l->plan->keep, l->plan->n_keep);
    if (!is_visible(l, other) && !v)
        return own ? found_ok(l, "%s=%s hides the integrated GPU", own->name, own->value)
                   : found_ok(l, "the integrated GPU is hidden");
    return found(
        CHECK_WARN, ctx_text(l, "%s is visible beside %s", ctx_gpu(l, other), ctx_gpu(l, l->gpu)),
        "a visible integrated GPU crashes libraries that have no code for it, can become the default device, "
        "and makes PyTorch disable hipBLASLt for all devices",
        v ? ctx_text(l, "export %s=%s", v->name, v->value)
          : ctx_text(l, "eval \"$(cairn env --gpu %d)\"    # overrides your own %s", l->gpu->hip_index,
                     own ? own->name : "choice"));
}

struct finding check_gpu_asleep(const struct check_ctx *l)
{
    if (!l->gpu)
        return found_skip("no GPU");
    if (!l->gpu->runtime_status.s)
        return found_skip("the kernel does not report the power state");
    if (!str_eq(l->gpu->runtime_status.s, "suspended"))
        return found_ok(l, "%s", l->gpu->runtime_status.s);
    return found_unknown(
        "the GPU is asleep: cairn did not read its load, sensors and PCIe link",
        "reading them would wake the GPU; it wakes by itself at first use",
        l->gpu->pci.s
            ? ctx_text(l, "echo on | sudo tee /sys/bus/pci/devices/%s/power/control    # keeps it awake",
                       ctx_shell_word(l, l->gpu->pci.s))
            : NULL);
}

struct finding check_gpu_bf16(const struct check_ctx *l)
{
    const struct gfx_chip *c = l->chip;
    if (!c)
        return found_skip("no GPU with a known chip");
    if (str_eq(c->bf16, "native"))
        return found_ok(l, "bf16: %s computes it in hardware", c->gfx);
    return found(
        CHECK_WARN, ctx_text(l, "bf16: %s has no bf16 arithmetic", c->gfx),
        "torch.cuda.is_bf16_supported() returns True on every ROCm device; this chip emulates bf16 in fp32, "
        "which is slow, and Triton kernels with bf16 matmuls crash the compiler",
        "accelerate launch --mixed_precision fp16 TRAIN.py    # fp16 with loss scaling");
}

struct finding check_gpu_attention(const struct check_ctx *l)
{
    const struct gfx_chip *c = l->chip;
    if (!c)
        return found_skip("no GPU with a known chip");
    if (c->matrix_core)
        return found_ok(l, "%s has matrix cores (%s), which fused attention needs", c->gfx, c->matrix_core);
    return found(
        CHECK_WARN, ctx_text(l, "fused attention is not available on %s", c->gfx),
        "AOTriton has kernels only for chips with matrix cores; PyTorch falls back to math attention, whose "
        "memory grows with the square of the sequence length: enable the trainer's sliced attention, and "
        "start with small images",
        NULL);
}

struct finding check_pcie_atomics(const struct check_ctx *l)
{
    const struct gpu_facts *g = l->gpu;
    if (!g || g->kind == GPU_INTEGRATED)
        return found_skip("no discrete GPU");
    if (g->pcie_atomics == TRI_UNKNOWN)
        return found_unknown("PCIe atomics: unknown whether the slot has them",
                             "KFD publishes no link for this GPU", NULL);
    if (g->pcie_atomics == TRI_YES)
        return found_ok(l, "PCIe atomics reach the GPU");
    return found(
        CHECK_WARN, "PCIe atomics are missing in this slot",
        "signals from GPU to CPU (printf, assert, some synchronisation) do not work, and KFD skips older "
        "GPUs altogether; slots wired to the CPU have atomics",
        g->pci.s ? ctx_text(l, "sudo lspci -vvv -s %s | grep -i atomicops    # then move the card",
                            ctx_shell_word(l, g->pci.s))
                 : NULL);
}

struct finding check_pcie_link(const struct check_ctx *l)
{
    const struct gpu_facts *g = l->gpu;
    if (!g || g->kind == GPU_INTEGRATED)
        return found_skip("no discrete GPU");
    if (!g->link_width.from || !g->link_width_max.from)
        return found_unknown("the PCIe link width is unknown",
                             str_eq(g->runtime_status.s, "suspended")
                                 ? "the GPU sleeps"
                                 : "the kernel shows no current_link_width",
                             NULL);
    const char *fact =
        ctx_text(l, "PCIe x%lld of x%lld%s%s", (long long)g->link_width.v, (long long)g->link_width_max.v,
                 g->link_speed.s ? " at " : "", g->link_speed.s ? g->link_speed.s : "");
    /* An idle link lowers its speed to save power, but not its width. */
    if (g->link_width.v >= g->link_width_max.v)
        return found_ok(l, "%s", fact);
    return found(
        CHECK_WARN, fact,
        "fewer lanes than the card supports: copies between RAM and VRAM (offload, block swap, loading) are "
        "slower; check the slot, the riser, or a second card that shares the lanes",
        g->pci.s ? ctx_text(l, "sudo lspci -vv -s %s | grep -E 'LnkCap|LnkSta'", ctx_shell_word(l, g->pci.s))
                 : NULL);
}

struct finding check_resizable_bar(const struct check_ctx *l)
{
    const struct gpu_facts *g = l->gpu;
    if (!g || g->kind == GPU_INTEGRATED)
        return found_skip("no discrete GPU");
    if (!g->vis_vram_total_bytes.from || !g->vram_total_bytes.from)
        return found_unknown("resizable BAR: unknown whether it is on",
                             "the driver shows no mem_info_vis_vram_total", NULL);
    if (g->vis_vram_total_bytes.v >= g->vram_total_bytes.v)
        return found_ok(l, "the CPU sees all %s of VRAM", ctx_bytes(l, g->vram_total_bytes.v));
    return found(CHECK_WARN,
                 ctx_text(l, "resizable BAR is off: the CPU sees %s of %s VRAM",
                          ctx_bytes(l, g->vis_vram_total_bytes.v), ctx_bytes(l, g->vram_total_bytes.v)),
                 "copies go through a small window, and peer-to-peer access between cards is impossible",
                 "# enable \"Above 4G Decoding\" and \"Re-Size BAR\" in the BIOS (systemctl reboot "
                 "--firmware-setup)");
}
