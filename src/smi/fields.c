/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/fields.h"

#include "base/str.h"
#include "chip/gfx_table.h"
#include "chip/gfxname.h"
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct arena *arena_of(const struct smi_line *l)
{
    return &l->smi->facts.arena;
}

static struct smi_cell text(const char *s)
{
    return (struct smi_cell){ .kind = s && *s ? SMI_TEXT : SMI_UNKNOWN, .text = s };
}

static struct smi_cell number(struct num v, double unit, int decimals)
{
    return (struct smi_cell){ .kind = v.from ? SMI_NUMBER : SMI_UNKNOWN,
                              .number = (double)v.v / unit,
                              .decimals = decimals };
}

static struct smi_cell whole(size_t v)
{
    return (struct smi_cell){ .kind = SMI_NUMBER, .number = (double)v };
}

static struct smi_cell mebibytes(struct num bytes)
{
    bytes.v >>= 20;
    return number(bytes, 1, 0);
}

static struct smi_cell get_now(const struct smi_line *l)
{
    return text(l->smi->now);
}

static struct smi_cell get_driver_version(const struct smi_line *l)
{
    return text(smi_driver_version(l->smi));
}

static struct smi_cell get_count(const struct smi_line *l)
{
    return whole(l->smi->count);
}

static struct smi_cell get_index(const struct smi_line *l)
{
    return whole(l->gpu->index);
}

static struct smi_cell get_name(const struct smi_line *l)
{
    const struct gpu_facts *g = l->gpu->facts;
    return text(g->name.s ? g->name.s : arena_printf(arena_of(l), "AMD %s", g->gfx.s));
}

static struct smi_cell get_uuid(const struct smi_line *l)
{
    return text(smi_uuid(l->smi, l->gpu));
}

/* "0000:c5:00.0" becomes "00000000:C5:00.0". */
static struct smi_cell get_bus_id(const struct smi_line *l)
{
    if (!l->gpu->facts->pci.s)
        return text(NULL);
    char *s = arena_printf(arena_of(l), "0000%s", l->gpu->facts->pci.s);
    for (char *c = s; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return text(s);
}

/* A part of the address, in hexadecimal. */
static struct smi_cell address_part(const struct smi_line *l, int at, int len)
{
    struct smi_cell bus = get_bus_id(l);
    return text(bus.text ? arena_printf(arena_of(l), "0x%.*s", len, bus.text + at) : NULL);
}

static struct smi_cell get_pci_domain(const struct smi_line *l)
{
    return address_part(l, 4, 4);
}

static struct smi_cell get_pci_bus(const struct smi_line *l)
{
    return address_part(l, 9, 2);
}

static struct smi_cell get_pci_device(const struct smi_line *l)
{
    return address_part(l, 12, 2);
}

static struct smi_cell get_pci_id(const struct smi_line *l)
{
    const struct gpu_facts *g = l->gpu->facts;
    if (!g->device_id.from || !g->vendor_id.from)
        return text(NULL);
    return text(arena_printf(arena_of(l), "0x%04X%04X", (unsigned)g->device_id.v, (unsigned)g->vendor_id.v));
}

static struct smi_cell get_pci_subsystem(const struct smi_line *l)
{
    struct num v = l->gpu->facts->pci_subsystem;
    return text(v.from ? arena_printf(arena_of(l), "0x%08X", (unsigned)v.v) : NULL);
}

static struct smi_cell class_part(const struct smi_line *l, int shift)
{
    struct num v = l->gpu->facts->pci_class;
    return text(v.from ? arena_printf(arena_of(l), "0x%X", (unsigned)(v.v >> shift) & 0xff) : NULL);
}

static struct smi_cell get_pci_class(const struct smi_line *l)
{
    return class_part(l, 16);
}

static struct smi_cell get_pci_subclass(const struct smi_line *l)
{
    return class_part(l, 8);
}

/* "16.0 GT/s PCIe" is the fourth generation. */
static struct smi_cell generation(struct text speed)
{
    static const double rates[] = { 2.5, 5, 8, 16, 32, 64 };
    double rate = speed.s ? strtod(speed.s, NULL) : 0;
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rate == rates[i])
            return whole(i + 1);
    return text(NULL);
}

static struct smi_cell get_link_gen(const struct smi_line *l)
{
    return generation(l->gpu->facts->link_speed);
}

static struct smi_cell get_link_gen_max(const struct smi_line *l)
{
    return generation(l->gpu->facts->link_speed_max);
}

static struct smi_cell get_memory_total(const struct smi_line *l)
{
    return mebibytes(l->gpu->memory.total);
}

static struct smi_cell get_memory_used(const struct smi_line *l)
{
    return mebibytes(l->gpu->memory.used);
}

static struct smi_cell get_memory_free(const struct smi_line *l)
{
    return mebibytes(l->gpu->memory.free);
}

/* A suspended GPU is idle; reading its load would wake it. */
static struct smi_cell percent(const struct smi_line *l, struct num v)
{
    return str_eq(l->gpu->facts->runtime_status.s, "suspended") ? whole(0) : number(v, 1, 0);
}

static struct smi_cell get_busy(const struct smi_line *l)
{
    return percent(l, l->gpu->facts->busy_percent);
}

static struct smi_cell get_memory_busy(const struct smi_line *l)
{
    return percent(l, l->gpu->facts->memory_busy_percent);
}

static struct smi_cell get_compute_mode(const struct smi_line *l)
{
    (void)l;
    return text("Default");
}

static struct smi_cell get_compute_cap(const struct smi_line *l)
{
    int major, minor, stepping;
    if (!gfxname_split(l->gpu->facts->gfx.s, &major, &minor, &stepping))
        return text(NULL);
    return text(arena_printf(arena_of(l), "%d.%d", major, minor));
}

/* Kernels have power1_average or power1_input, by chip. */
static struct smi_cell power_from(const struct smi_line *l, const char *file)
{
    const char *from = l->gpu->facts->power_uw.from;
    return from && str_ends(from, file) ? number(l->gpu->facts->power_uw, 1e6, 2) : text(NULL);
}

static struct smi_cell get_power_average(const struct smi_line *l)
{
    return power_from(l, "_average");
}

static struct smi_cell get_power_instant(const struct smi_line *l)
{
    return power_from(l, "_input");
}

static struct smi_cell get_architecture(const struct smi_line *l)
{
    const struct gfx_chip *chip = l->gpu->facts->gfx.s ? gfx_find(l->gpu->facts->gfx.s) : NULL;
    return text(chip ? gfx_family_name(chip->family) : NULL);
}

static struct smi_cell get_bar_total(const struct smi_line *l)
{
    return mebibytes(l->gpu->facts->vis_vram_total_bytes);
}

static struct smi_cell get_bar_used(const struct smi_line *l)
{
    return mebibytes(l->gpu->facts->vis_vram_used_bytes);
}

static struct smi_cell get_bar_free(const struct smi_line *l)
{
    struct num total = l->gpu->facts->vis_vram_total_bytes, used = l->gpu->facts->vis_vram_used_bytes;
    bool known = total.from && used.from && total.v >= used.v;
    return mebibytes((struct num){ total.v - used.v, known ? total.from : NULL });
}

static struct smi_cell get_pid(const struct smi_line *l)
{
    return whole((size_t)l->process->pid);
}

static struct smi_cell get_process_name(const struct smi_line *l)
{
    return text(l->process->name);
}

static struct smi_cell get_process_memory(const struct smi_line *l)
{
    return mebibytes((struct num){ l->process->vram_bytes, "kfd" });
}

/* clang-format off */
#define GET(fn) fn, 0, 0, 0
#define NUM(field, unit, decimals) NULL, offsetof(struct gpu_facts, field), unit, decimals
#define TEXT(field) NULL, offsetof(struct gpu_facts, field), 0, 0
#define NEVER(name, alias, unit) { name, alias, unit, NULL, NULL, 0, 0, 0 }

static const struct smi_field gpu_rows[] = {
    { "timestamp", "", NULL, "time of the query", GET(get_now) },
    { "driver_version", "", NULL, "version of AMD's amdgpu if installed, else of the kernel", GET(get_driver_version) },
    { "kmd_version", "", NULL, "same as driver_version", GET(get_driver_version) },
    { "count", "", NULL, "number of GPUs", GET(get_count) },
    { "name", "gpu_name", NULL, "product name", GET(get_name) },
    { "serial", "gpu_serial", NULL, "serial number, if the card reports it", TEXT(serial) },
    { "uuid", "gpu_uuid", NULL, "UUID for ROCR_VISIBLE_DEVICES; the PCI address if the GPU has none, such as an APU", GET(get_uuid) },
    { "pci.bus_id", "gpu_bus_id", NULL, "PCI address, with a domain of eight digits", GET(get_bus_id) },
    { "pci.domain", "", NULL, "PCI domain", GET(get_pci_domain) },
    { "pci.bus", "", NULL, "PCI bus", GET(get_pci_bus) },
    { "pci.device", "", NULL, "PCI device", GET(get_pci_device) },
    { "pci.device_id", "", NULL, "PCI IDs of device and vendor", GET(get_pci_id) },
    { "pci.sub_device_id", "", NULL, "PCI IDs of the board", GET(get_pci_subsystem) },
    { "pci.baseClass", "", NULL, "PCI class; 3: display controller", GET(get_pci_class) },
    { "pci.subClass", "", NULL, "PCI subclass", GET(get_pci_subclass) },
    { "pcie.link.gen.current", "", NULL, "current generation of the PCIe link", GET(get_link_gen) },
    { "pcie.link.gen.gpucurrent", "", NULL, "same as pcie.link.gen.current", GET(get_link_gen) },
    { "pcie.link.gen.max", "", NULL, "maximum generation of the PCIe link", GET(get_link_gen_max) },
    { "pcie.link.gen.gpumax", "", NULL, "same as pcie.link.gen.max", GET(get_link_gen_max) },
    { "pcie.link.width.current", "", NULL, "current lanes of the PCIe link", NUM(link_width, 1, 0) },
    { "pcie.link.width.max", "", NULL, "maximum lanes of the PCIe link", NUM(link_width_max, 1, 0) },
    { "index", "", NULL, "index of the GPU in HIP and PyTorch", GET(get_index) },
    { "vbios_version", "", NULL, "VBIOS version of the card", TEXT(vbios) },
    { "fan.speed", "", "%", "fan speed, in percent of the maximum", NUM(fan_duty, 2.55, 0) },
    { "memory.total", "", "MiB", "VRAM; if GPU and host share memory, what training can use", GET(get_memory_total) },
    { "memory.used", "", "MiB", "memory used by all processes", GET(get_memory_used) },
    { "memory.free", "", "MiB", "memory.total minus memory.used", GET(get_memory_free) },
    { "compute_mode", "", NULL, "Default: several processes may use the GPU", GET(get_compute_mode) },
    { "compute_cap", "", NULL, "first two parts of the gfx target, as in PyTorch", GET(get_compute_cap) },
    { "utilization.gpu", "", "%", "percentage of time in which the GPU was busy", GET(get_busy) },
    { "utilization.memory", "", "%", "percentage of time in which its memory was read or written", GET(get_memory_busy) },
    { "temperature.gpu", "", NULL, "edge temperature of the chip, in C", NUM(temperature_mc, 1e3, 0) },
    { "temperature.memory", "", NULL, "temperature of the memory, in C", NUM(memory_temperature_mc, 1e3, 0) },
    { "power.draw", "", "W", "power draw", NUM(power_uw, 1e6, 2) },
    { "power.draw.average", "gpu.power.draw.average", "W", "average power draw, if the driver reports it", GET(get_power_average) },
    { "power.draw.instant", "gpu.power.draw.instant", "W", "instantaneous power draw, if the driver reports it", GET(get_power_instant) },
    { "power.limit", "gpu.power.requested_limit", "W", "current power limit", NUM(power_cap_uw, 1e6, 2) },
    { "enforced.power.limit", "gpu.power.current_limit", "W", "same as power.limit", NUM(power_cap_uw, 1e6, 2) },
    { "power.default_limit", "gpu.power.default_limit", "W", "default power limit", NUM(power_cap_default_uw, 1e6, 2) },
    { "power.min_limit", "gpu.power.min_limit", "W", "lowest power limit", NUM(power_cap_min_uw, 1e6, 2) },
    { "power.max_limit", "gpu.power.max_limit", "W", "highest power limit", NUM(power_cap_max_uw, 1e6, 2) },
    { "clocks.current.graphics", "clocks.gr", "MHz", "shader clock", NUM(clock_mhz, 1, 0) },
    { "clocks.current.sm", "clocks.sm", "MHz", "same as clocks.current.graphics", NUM(clock_mhz, 1, 0) },
    { "clocks.current.memory", "clocks.mem", "MHz", "memory clock", NUM(memory_clock_mhz, 1, 0) },
    { "clocks.current.video", "clocks.video", "MHz", "clock of the video decoder", NUM(video_clock_mhz, 1, 0) },
    { "clocks.max.graphics", "clocks.max.gr", "MHz", "maximum shader clock", NUM(clock_max_mhz, 1, 0) },
    { "clocks.max.sm", "", "MHz", "same as clocks.max.graphics", NUM(clock_max_mhz, 1, 0) },
    { "clocks.max.memory", "clocks.max.mem", "MHz", "maximum memory clock", NUM(memory_clock_max_mhz, 1, 0) },
    /* Only on NVIDIA GPUs, or not in amdgpu's sysfs. */
    NEVER("pcie.link.gen.hostmax", "", NULL),
    NEVER("display_mode", "", NULL),
    NEVER("display_attached", "", NULL),
    NEVER("display_active", "", NULL),
    NEVER("persistence_mode", "", NULL),
    NEVER("addressing_mode", "", NULL),
    NEVER("accounting.mode", "", NULL),
    NEVER("accounting.buffer_size", "", NULL),
    NEVER("driver_model.current", "", NULL),
    NEVER("driver_model.pending", "", NULL),
    NEVER("inforom.img", "inforom.image", NULL),
    NEVER("inforom.oem", "", NULL),
    NEVER("inforom.ecc", "", NULL),
    NEVER("inforom.pwr", "inforom.power", NULL),
    NEVER("inforom.checksum_validation", "", NULL),
    NEVER("gpu_recovery_action", "", NULL),
    NEVER("gom.current", "gpu_operation_mode.current", NULL),
    NEVER("gom.pending", "gpu_operation_mode.pending", NULL),
    NEVER("pstate", "", NULL),
    NEVER("clocks_event_reasons.supported", "clocks_throttle_reasons.supported", NULL),
    NEVER("clocks_event_reasons.active", "clocks_throttle_reasons.active", NULL),
    NEVER("clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", NULL),
    NEVER("clocks_event_reasons.applications_clocks_setting", "clocks_throttle_reasons.applications_clocks_setting", NULL),
    NEVER("clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", NULL),
    NEVER("clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", NULL),
    NEVER("clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", NULL),
    NEVER("clocks_event_reasons.hw_power_brake_slowdown", "clocks_throttle_reasons.hw_power_brake_slowdown", NULL),
    NEVER("clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", NULL),
    NEVER("clocks_event_reasons.sync_boost", "clocks_throttle_reasons.sync_boost", NULL),
    NEVER("clocks_event_reasons_counters.sw_power_cap", "", "us"),
    NEVER("clocks_event_reasons_counters.sync_boost", "", "us"),
    NEVER("clocks_event_reasons_counters.sw_thermal_slowdown", "", "us"),
    NEVER("clocks_event_reasons_counters.hw_thermal_slowdown", "", "us"),
    NEVER("clocks_event_reasons_counters.hw_power_brake_slowdown", "", "us"),
    NEVER("memory.reserved", "", "MiB"),
    NEVER("utilization.encoder", "", "%"),
    NEVER("utilization.decoder", "", "%"),
    NEVER("utilization.jpeg", "", "%"),
    NEVER("utilization.ofa", "", "%"),
    NEVER("encoder.stats.sessionCount", "", NULL),
    NEVER("encoder.stats.averageFps", "", NULL),
    NEVER("encoder.stats.averageLatency", "", NULL),
    NEVER("ecc.mode.current", "", NULL),
    NEVER("ecc.mode.pending", "", NULL),
    NEVER("ecc.errors.corrected.volatile.device_memory", "", NULL),
    NEVER("ecc.errors.corrected.volatile.dram", "", NULL),
    NEVER("ecc.errors.corrected.volatile.register_file", "", NULL),
    NEVER("ecc.errors.corrected.volatile.l1_cache", "", NULL),
    NEVER("ecc.errors.corrected.volatile.l2_cache", "", NULL),
    NEVER("ecc.errors.corrected.volatile.texture_memory", "", NULL),
    NEVER("ecc.errors.corrected.volatile.cbu", "", NULL),
    NEVER("ecc.errors.corrected.volatile.sram", "", NULL),
    NEVER("ecc.errors.corrected.volatile.total", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.device_memory", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.dram", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.register_file", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.l1_cache", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.l2_cache", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.texture_memory", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.cbu", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.sram", "", NULL),
    NEVER("ecc.errors.corrected.aggregate.total", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.device_memory", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.dram", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.register_file", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.l1_cache", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.l2_cache", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.texture_memory", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.cbu", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.sram", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.total", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.device_memory", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.dram", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.register_file", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.l1_cache", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.l2_cache", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.texture_memory", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.cbu", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.total", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.sram.parity", "", NULL),
    NEVER("ecc.errors.uncorrected.volatile.sram.secded", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.parity", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.secded", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.l2", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.sm", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.mcu", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.pcie", "", NULL),
    NEVER("ecc.errors.uncorrected.aggregate.sram.other", "", NULL),
    NEVER("retired_pages.single_bit_ecc.count", "retired_pages.sbe", NULL),
    NEVER("retired_pages.double_bit.count", "retired_pages.dbe", NULL),
    NEVER("retired_pages.pending", "", NULL),
    NEVER("remapped_rows.correctable", "remapped_rows.sbe", NULL),
    NEVER("remapped_rows.uncorrectable", "remapped_rows.dbe", NULL),
    NEVER("remapped_rows.pending", "", NULL),
    NEVER("remapped_rows.failure", "", NULL),
    NEVER("remapped_rows.histogram.max", "", NULL),
    NEVER("remapped_rows.histogram.high", "", NULL),
    NEVER("remapped_rows.histogram.partial", "", NULL),
    NEVER("remapped_rows.histogram.low", "", NULL),
    NEVER("remapped_rows.histogram.none", "", NULL),
    NEVER("temperature.gpu.tlimit", "", NULL),
    NEVER("power.management", "", NULL),
    NEVER("edpp_multiplier", "", "%"),
    NEVER("clocks.applications.graphics", "clocks.applications.gr", "MHz"),
    NEVER("clocks.applications.memory", "clocks.applications.mem", "MHz"),
    NEVER("clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz"),
    NEVER("clocks.default_applications.memory", "clocks.default_applications.mem", "MHz"),
    NEVER("mig.mode.current", "", NULL),
    NEVER("mig.mode.pending", "", NULL),
    NEVER("gsp.mode.current", "", NULL),
    NEVER("gsp.mode.default", "", NULL),
    NEVER("c2c.mode", "", NULL),
    NEVER("hostname", "", NULL),
};

/* Columns that --query-gpu does not have. */
static const struct smi_field more_rows[] = {
    { "architecture", "", NULL, "family of the chip", GET(get_architecture) },
    { "pcie.replays", "", NULL, "retransmitted PCIe packets", NUM(pcie_replays, 1, 0) },
    { "bar1.total", "", "MiB", "VRAM that the CPU can access", GET(get_bar_total) },
    { "bar1.used", "", "MiB", "used part of it", GET(get_bar_used) },
    { "bar1.free", "", "MiB", "bar1.total minus bar1.used", GET(get_bar_free) },
    { "temperature.shutdown", "", NULL, "temperature at which the GPU shuts down", NUM(temperature_emergency_mc, 1e3, 0) },
    { "temperature.slowdown", "", NULL, "temperature at which the GPU slows down", NUM(temperature_crit_mc, 1e3, 0) },
    { "temperature.memory.max", "", NULL, "temperature at which the memory slows down", NUM(memory_temperature_crit_mc, 1e3, 0) },
    { "clocks.max.video", "", "MHz", "maximum clock of the video decoder", NUM(video_clock_max_mhz, 1, 0) },
    { "voltage", "", "mV", "voltage of the shaders", NUM(voltage_mv, 1, 3) },
};

#define OF_GPU \
    { "timestamp", "", NULL, "time of the query", GET(get_now) }, \
    { "gpu_name", "", NULL, "product name", GET(get_name) }, \
    { "gpu_bus_id", "", NULL, "PCI address, with a domain of eight digits", GET(get_bus_id) }, \
    { "gpu_serial", "", NULL, "serial number, if the card reports it", TEXT(serial) }, \
    { "gpu_uuid", "", NULL, "UUID for ROCR_VISIBLE_DEVICES; the PCI address if the GPU has none, such as an APU", GET(get_uuid) }

static const struct smi_field app_rows[] = {
    OF_GPU,
    { "pid", "", NULL, "process ID", GET(get_pid) },
    { "process_name", "name", NULL, "name of the process", GET(get_process_name) },
    { "used_gpu_memory", "used_memory", "MiB", "GPU memory that the process uses", GET(get_process_memory) },
};

static const struct smi_field clock_rows[] = {
    OF_GPU,
    NEVER("memory", "mem", "MHz"),
    NEVER("graphics", "gr", "MHz"),
};

static const struct smi_field accounted_rows[] = {
    OF_GPU,
    NEVER("vgpu_instance", "", NULL),
    NEVER("pid", "", NULL),
    NEVER("gpu_utilization", "gpu_util", "%"),
    NEVER("mem_utilization", "mem_util", "%"),
    NEVER("max_memory_usage", "max_mem_usage", "MiB"),
    NEVER("time", "", "ms"),
};

static const struct smi_field retired_rows[] = {
    OF_GPU,
    NEVER("retired_pages.address", "", NULL),
    NEVER("retired_pages.timestamp", "", NULL),
    NEVER("retired_pages.cause", "", NULL),
};
/* clang-format on */

const struct smi_table smi_tables[SMI_TABLES] = {
    [SMI_GPU] = { "gpu", "gpus", gpu_rows, ARRAY_LEN(gpu_rows) },
    [SMI_APPS] = { "compute-apps", "compute_apps", app_rows, ARRAY_LEN(app_rows) },
    [SMI_CLOCKS] = { "supported-clocks", "supported_clocks", clock_rows, ARRAY_LEN(clock_rows) },
    [SMI_ACCOUNTED] = { "accounted-apps", "accounted_apps", accounted_rows, ARRAY_LEN(accounted_rows) },
    [SMI_RETIRED] = { "retired-pages", "retired_pages", retired_rows, ARRAY_LEN(retired_rows) },
};

static bool is_name(const char *name, const char *word, size_t len)
{
    return strlen(name) == len && !strncmp(name, word, len);
}

const struct smi_field *smi_field_find(const struct smi_table *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->n && len; i++)
        if (is_name(t->row[i].name, name, len) || is_name(t->row[i].alias, name, len))
            return &t->row[i];
    return NULL;
}

const struct smi_field *smi_field_of(const struct smi_line *l, const char *name)
{
    static const struct smi_table more = { NULL, NULL, more_rows, ARRAY_LEN(more_rows) };
    const struct smi_field *f =
        smi_field_find(&smi_tables[l->process ? SMI_APPS : SMI_GPU], name, strlen(name));
    return f || l->process ? f : smi_field_find(&more, name, strlen(name));
}

struct smi_cell smi_field_get(const struct smi_field *f, const struct smi_line *l)
{
    if (f->get)
        return f->get(l);
    if (!f->about)
        return text(NULL);
    const void *fact = (const char *)l->gpu->facts + f->at;
    return f->divide != 0 ? number(*(const struct num *)fact, f->divide, f->decimals)
                          : text(((const struct text *)fact)->s);
}

const char *smi_field_header(const struct smi_field *f, struct arena *a)
{
    return f->unit ? arena_printf(a, "%s [%s]", f->name, f->unit) : f->name;
}

/* An untrusted name must not look like two columns or contain control characters. */
static const char *one_column(const char *s, struct arena *a)
{
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, s, strlen(s));
    for (char *c = clean.s; c && *c; c++)
        if (*c == ',')
            *c = ' ';
    return arena_strdup(a, clean.s);
}

const char *smi_cell_text(const struct smi_field *f, struct smi_cell c, bool units, struct arena *a)
{
    if (c.kind == SMI_TEXT)
        return one_column(c.text, a);
    if (c.kind == SMI_NUMBER)
        return arena_printf(a, "%.*f%s%s", c.decimals, c.number, units && f->unit ? " " : "",
                            units && f->unit ? f->unit : "");
    /* nvidia-smi prints this one without brackets. */
    return !strcmp(f->name, "temperature.memory") ? "N/A" : "[N/A]";
}
