/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/rows.h"

#include "base/cleanup.h"
#include <string.h>
#include <strings.h>

/* clang-format off */
#define SECTIONS(X) \
    X(MEMORY) \
    X(UTILIZATION) \
    X(ECC) \
    X(TEMPERATURE) \
    X(POWER) \
    X(CLOCK) \
    X(COMPUTE) \
    X(PIDS) \
    X(PERFORMANCE) \
    X(SUPPORTED_CLOCKS) \
    X(PAGE_RETIREMENT) \
    X(ACCOUNTING) \
    X(ENCODER_STATS) \
    X(SUPPORTED_GPU_TARGET_TEMP) \
    X(VOLTAGE) \
    X(FBC_STATS) \
    X(ROW_REMAPPER) \
    X(RESET_STATUS) \
    X(GSP_FIRMWARE_VERSION)
/* clang-format on */

#define AS_PLACE(name) PLACE_##name,
#define AS_BIT(name) name = 1 << PLACE_##name,
#define AS_NAME(name) #name,
enum { SECTIONS(AS_PLACE) };
enum { SECTIONS(AS_BIT) };
static const char *const sections[] = { SECTIONS(AS_NAME) };

unsigned smi_section(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        if (strlen(sections[i]) == len && !strncasecmp(sections[i], name, len))
            return 1U << i;
    return 0;
}

/* clang-format off */
#define HEAD(depth, in, label, element) { depth, in, label, element, NULL, NULL, false }
#define ROW(depth, in, label, element, column) { depth, in, label, element, column, NULL, false }
#define WITH(depth, label, element, column, suffix) { depth, 0, label, element, column, suffix, false }
/* Statistics of NVIDIA's driver; not in XML. */
#define SAMPLES(in, label) \
    { 1, in, label, NULL, NULL, NULL, true }, \
    ROW(2, 0, "Duration", NULL, ""), \
    ROW(2, 0, "Number of Samples", NULL, ""), \
    ROW(2, 0, "Max", NULL, ""), \
    ROW(2, 0, "Min", NULL, ""), \
    ROW(2, 0, "Avg", NULL, "")

const struct smi_row smi_gpu_rows[] = {
    ROW(1, 0, "Product Name", "product_name", "name"),
    ROW(1, 0, "Product Brand", "product_brand", ""),
    ROW(1, 0, "Product Architecture", "product_architecture", "architecture"),
    ROW(1, 0, "Display Mode", "display_mode", "display_mode"),
    ROW(1, 0, "Display Active", "display_active", "display_active"),
    ROW(1, 0, "Persistence Mode", "persistence_mode", "persistence_mode"),
    ROW(1, 0, "Addressing Mode", "addressing_mode", "addressing_mode"),
    HEAD(1, 0, "MIG Mode", "mig_mode"),
    ROW(2, 0, "Current", "current_mig", "mig.mode.current"),
    ROW(2, 0, "Pending", "pending_mig", "mig.mode.pending"),
    ROW(1, 0, NULL, "mig_devices", "=None"),
    ROW(1, ACCOUNTING, "Accounting Mode", "accounting_mode", "accounting.mode"),
    ROW(1, ACCOUNTING, "Accounting Mode Buffer Size", "accounting_mode_buffer_size", "accounting.buffer_size"),
    HEAD(1, 0, "Driver Model", "driver_model"),
    ROW(2, 0, "Current", "current_dm", "driver_model.current"),
    ROW(2, 0, "Pending", "pending_dm", "driver_model.pending"),
    ROW(1, 0, "Serial Number", "serial", "serial"),
    ROW(1, 0, "GPU UUID", "uuid", "uuid"),
    /* Programs take it for the index. */
    ROW(1, 0, "Minor Number", "minor_number", "index"),
    ROW(1, 0, "VBIOS Version", "vbios_version", "vbios_version"),
    ROW(1, 0, "MultiGPU Board", "multigpu_board", ""),
    ROW(1, 0, "Board ID", "board_id", ""),
    ROW(1, 0, "Board Part Number", "board_part_number", ""),
    ROW(1, 0, "GPU Part Number", "gpu_part_number", ""),
    ROW(1, 0, "FRU Part Number", "gpu_fru_part_number", ""),
    ROW(1, 0, "Module ID", "gpu_module_id", ""),
    HEAD(1, 0, "Inforom Version", "inforom_version"),
    ROW(2, 0, "Image Version", "img_version", "inforom.img"),
    ROW(2, 0, "OEM Object", "oem_object", "inforom.oem"),
    ROW(2, 0, "ECC Object", "ecc_object", "inforom.ecc"),
    ROW(2, 0, "Power Management Object", "pwr_object", "inforom.pwr"),
    HEAD(1, 0, "Inforom BBX Object Flush", "inforom_bbx_flush"),
    ROW(2, 0, "Latest Timestamp", "latest_timestamp", ""),
    ROW(2, 0, "Latest Duration", "latest_duration", ""),
    HEAD(1, 0, "GPU Operation Mode", "gpu_operation_mode"),
    ROW(2, 0, "Current", "current_gom", "gom.current"),
    ROW(2, 0, "Pending", "pending_gom", "gom.pending"),
    ROW(1, 0, "GPU C2C Mode", "c2c_mode", "c2c.mode"),
    HEAD(1, 0, "GPU Virtualization Mode", "gpu_virtualization_mode"),
    ROW(2, 0, "Virtualization Mode", "virtualization_mode", ""),
    ROW(2, 0, "Host VGPU Mode", "host_vgpu_mode", ""),
    ROW(2, 0, "vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode", ""),
    HEAD(1, RESET_STATUS, "GPU Reset Status", "gpu_reset_status"),
    ROW(2, 0, "Reset Required", "reset_required", ""),
    ROW(2, 0, "Drain and Reset Recommended", "drain_and_reset_recommended", ""),
    ROW(1, GSP_FIRMWARE_VERSION, "GSP Firmware Version", "gsp_firmware_version", ""),
    HEAD(1, 0, "IBMNPU", "ibmnpu"),
    ROW(2, 0, "Relaxed Ordering Mode", "relaxed_ordering_mode", ""),
    HEAD(1, 0, "PCI", "pci"),
    ROW(2, 0, "Bus", "pci_bus", "pci.bus"),
    ROW(2, 0, "Device", "pci_device", "pci.device"),
    ROW(2, 0, "Domain", "pci_domain", "pci.domain"),
    ROW(2, 0, "Base Classcode", "pci_base_class", "pci.baseClass"),
    ROW(2, 0, "Sub Classcode", "pci_sub_class", "pci.subClass"),
    ROW(2, 0, "Device Id", "pci_device_id", "pci.device_id"),
    ROW(2, 0, "Bus Id", "pci_bus_id", "pci.bus_id"),
    ROW(2, 0, "Sub System Id", "pci_sub_system_id", "pci.sub_device_id"),
    HEAD(2, 0, "GPU Link Info", "pci_gpu_link_info"),
    HEAD(3, 0, "PCIe Generation", "pcie_gen"),
    ROW(4, 0, "Max", "max_link_gen", "pcie.link.gen.max"),
    ROW(4, 0, "Current", "current_link_gen", "pcie.link.gen.current"),
    ROW(4, 0, "Device Current", "device_current_link_gen", "pcie.link.gen.gpucurrent"),
    ROW(4, 0, "Device Max", "max_device_link_gen", "pcie.link.gen.gpumax"),
    ROW(4, 0, "Host Max", "max_host_link_gen", "pcie.link.gen.hostmax"),
    HEAD(3, 0, "Link Width", "link_widths"),
    WITH(4, "Max", "max_link_width", "pcie.link.width.max", "x"),
    WITH(4, "Current", "current_link_width", "pcie.link.width.current", "x"),
    HEAD(2, 0, "Bridge Chip", "pci_bridge_chip"),
    ROW(3, 0, "Type", "bridge_chip_type", ""),
    ROW(3, 0, "Firmware", "bridge_chip_fw", ""),
    ROW(2, 0, "Replays Since Reset", "replay_counter", "pcie.replays"),
    ROW(2, 0, "Replay Number Rollovers", "replay_rollover_counter", ""),
    ROW(2, 0, "Tx Throughput", "tx_util", ""),
    ROW(2, 0, "Rx Throughput", "rx_util", ""),
    ROW(2, 0, "Atomic Caps Inbound", "atomic_caps_inbound", ""),
    ROW(2, 0, "Atomic Caps Outbound", "atomic_caps_outbound", ""),
    ROW(1, 0, "Fan Speed", "fan_speed", "fan.speed"),
    ROW(1, PERFORMANCE, "Performance State", "performance_state", "pstate"),
    HEAD(1, PERFORMANCE, "Clocks Event Reasons", "clocks_event_reasons"),
    ROW(2, 0, "Idle", "clocks_event_reason_gpu_idle", "clocks_event_reasons.gpu_idle"),
    ROW(2, 0, "Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting", "clocks_event_reasons.applications_clocks_setting"),
    ROW(2, 0, "SW Power Cap", "clocks_event_reason_sw_power_cap", "clocks_event_reasons.sw_power_cap"),
    ROW(2, 0, "HW Slowdown", "clocks_event_reason_hw_slowdown", "clocks_event_reasons.hw_slowdown"),
    ROW(2, 0, "    HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown", "clocks_event_reasons.hw_thermal_slowdown"),
    ROW(2, 0, "    HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown", "clocks_event_reasons.hw_power_brake_slowdown"),
    ROW(2, 0, "Sync Boost", "clocks_event_reason_sync_boost", "clocks_event_reasons.sync_boost"),
    ROW(2, 0, "SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown", "clocks_event_reasons.sw_thermal_slowdown"),
    ROW(2, 0, "Display Clock Setting", "clocks_event_reason_display_clocks_setting", ""),
    ROW(1, PERFORMANCE, "Sparse Operation Mode", "sparse_operation_mode", ""),
    HEAD(1, MEMORY, "FB Memory Usage", "fb_memory_usage"),
    ROW(2, 0, "Total", "total", "memory.total"),
    ROW(2, 0, NULL, "reserved", "memory.reserved"), /* text without it: scripts count lines from the GPU to Free */
    ROW(2, 0, "Used", "used", "memory.used"),
    ROW(2, 0, "Free", "free", "memory.free"),
    HEAD(1, MEMORY, "BAR1 Memory Usage", "bar1_memory_usage"),
    ROW(2, 0, "Total", "total", "bar1.total"),
    ROW(2, 0, "Used", "used", "bar1.used"),
    ROW(2, 0, "Free", "free", "bar1.free"),
    HEAD(1, MEMORY, "Conf Compute Protected Memory Usage", "cc_protected_memory_usage"),
    ROW(2, 0, "Total", "total", ""),
    ROW(2, 0, "Used", "used", ""),
    ROW(2, 0, "Free", "free", ""),
    ROW(1, COMPUTE, "Compute Mode", "compute_mode", "compute_mode"),
    HEAD(1, UTILIZATION, "Utilization", "utilization"),
    ROW(2, 0, "Gpu", "gpu_util", "utilization.gpu"),
    ROW(2, 0, "Memory", "memory_util", "utilization.memory"),
    ROW(2, 0, "Encoder", "encoder_util", "utilization.encoder"),
    ROW(2, 0, "Decoder", "decoder_util", "utilization.decoder"),
    ROW(2, 0, "JPEG", "jpeg_util", "utilization.jpeg"),
    ROW(2, 0, "OFA", "ofa_util", "utilization.ofa"),
    SAMPLES(UTILIZATION, "GPU Utilization Samples"),
    SAMPLES(UTILIZATION, "Memory Utilization Samples"),
    SAMPLES(UTILIZATION, "ENC Utilization Samples"),
    SAMPLES(UTILIZATION, "DEC Utilization Samples"),
    HEAD(1, ENCODER_STATS, "Encoder Stats", "encoder_stats"),
    ROW(2, 0, "Active Sessions", "session_count", "encoder.stats.sessionCount"),
    ROW(2, 0, "Average FPS", "average_fps", "encoder.stats.averageFps"),
    ROW(2, 0, "Average Latency", "average_latency", "encoder.stats.averageLatency"),
    HEAD(1, FBC_STATS, "FBC Stats", "fbc_stats"),
    ROW(2, 0, "Active Sessions", "session_count", ""),
    ROW(2, 0, "Average FPS", "average_fps", ""),
    ROW(2, 0, "Average Latency", "average_latency", ""),
    HEAD(1, ECC, "ECC Mode", "ecc_mode"),
    ROW(2, 0, "Current", "current_ecc", "ecc.mode.current"),
    ROW(2, 0, "Pending", "pending_ecc", "ecc.mode.pending"),
    HEAD(1, ECC, "ECC Errors", "ecc_errors"),
    HEAD(2, 0, "Volatile", "volatile"),
    ROW(3, 0, "SRAM Correctable", "sram_correctable", "ecc.errors.corrected.volatile.sram"),
    ROW(3, 0, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", "ecc.errors.uncorrected.volatile.sram.parity"),
    ROW(3, 0, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", "ecc.errors.uncorrected.volatile.sram.secded"),
    ROW(3, 0, "DRAM Correctable", "dram_correctable", "ecc.errors.corrected.volatile.dram"),
    ROW(3, 0, "DRAM Uncorrectable", "dram_uncorrectable", "ecc.errors.uncorrected.volatile.dram"),
    HEAD(2, 0, "Aggregate", "aggregate"),
    ROW(3, 0, "SRAM Correctable", "sram_correctable", "ecc.errors.corrected.aggregate.sram"),
    ROW(3, 0, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", "ecc.errors.uncorrected.aggregate.sram.parity"),
    ROW(3, 0, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", "ecc.errors.uncorrected.aggregate.sram.secded"),
    ROW(3, 0, "DRAM Correctable", "dram_correctable", "ecc.errors.corrected.aggregate.dram"),
    ROW(3, 0, "DRAM Uncorrectable", "dram_uncorrectable", "ecc.errors.uncorrected.aggregate.dram"),
    ROW(3, 0, "SRAM Threshold Exceeded", "sram_threshold_exceeded", "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded"),
    HEAD(2, 0, "Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources"),
    ROW(3, 0, "SRAM L2", "sram_l2", "ecc.errors.uncorrected.aggregate.sram.l2"),
    ROW(3, 0, "SRAM SM", "sram_sm", "ecc.errors.uncorrected.aggregate.sram.sm"),
    ROW(3, 0, "SRAM Microcontroller", "sram_microcontroller", "ecc.errors.uncorrected.aggregate.sram.mcu"),
    ROW(3, 0, "SRAM PCIE", "sram_pcie", "ecc.errors.uncorrected.aggregate.sram.pcie"),
    ROW(3, 0, "SRAM Other", "sram_other", "ecc.errors.uncorrected.aggregate.sram.other"),
    HEAD(1, PAGE_RETIREMENT, "Retired Pages", "retired_pages"),
    ROW(2, 0, "Single Bit ECC", NULL, "retired_pages.single_bit_ecc.count"),
    ROW(2, 0, "Double Bit ECC", NULL, "retired_pages.double_bit.count"),
    ROW(2, 0, "Pending Page Blacklist", NULL, "retired_pages.pending"),
    HEAD(2, 0, NULL, "multiple_single_bit_retirement"),
    ROW(3, 0, NULL, "retired_count", "retired_pages.single_bit_ecc.count"),
    ROW(3, 0, NULL, "retired_pagelist", ""),
    HEAD(2, 0, NULL, "double_bit_retirement"),
    ROW(3, 0, NULL, "retired_count", "retired_pages.double_bit.count"),
    ROW(3, 0, NULL, "retired_pagelist", ""),
    ROW(2, 0, NULL, "pending_blacklist", "retired_pages.pending"),
    ROW(2, 0, NULL, "pending_retirement", "retired_pages.pending"),
    ROW(1, ROW_REMAPPER, "Remapped Rows", "remapped_rows", ""),
    HEAD(1, TEMPERATURE, "Temperature", "temperature"),
    WITH(2, "GPU Current Temp", "gpu_temp", "temperature.gpu", " C"),
    WITH(2, "GPU T.Limit Temp", "gpu_temp_tlimit", "temperature.gpu.tlimit", " C"),
    WITH(2, "GPU Shutdown Temp", "gpu_temp_max_threshold", "temperature.shutdown", " C"),
    WITH(2, "GPU Slowdown Temp", "gpu_temp_slow_threshold", "temperature.slowdown", " C"),
    ROW(2, 0, "GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", ""),
    ROW(2, 0, "GPU Target Temperature", "gpu_target_temperature", ""),
    WITH(2, "Memory Current Temp", "memory_temp", "temperature.memory", " C"),
    WITH(2, "Memory Max Operating Temp", "gpu_temp_max_mem_threshold", "temperature.memory.max", " C"),
    { 1, SUPPORTED_GPU_TARGET_TEMP, "Supported GPU Target Temp", "supported_gpu_target_temp", NULL, NULL, true },
    ROW(2, 0, "GPU Target Temp Min", "gpu_target_temp_min", ""),
    ROW(2, 0, "GPU Target Temp Max", "gpu_target_temp_max", ""),
    HEAD(1, POWER, "GPU Power Readings", "gpu_power_readings"),
    ROW(2, 0, NULL, "power_state", "pstate"),
    ROW(2, 0, "Power Draw", "power_draw", "power.draw"),
    ROW(2, 0, "Current Power Limit", "current_power_limit", "enforced.power.limit"),
    ROW(2, 0, "Requested Power Limit", "requested_power_limit", "power.limit"),
    ROW(2, 0, "Default Power Limit", "default_power_limit", "power.default_limit"),
    ROW(2, 0, "Min Power Limit", "min_power_limit", "power.min_limit"),
    ROW(2, 0, "Max Power Limit", "max_power_limit", "power.max_limit"),
    SAMPLES(POWER, "Power Samples"),
    HEAD(1, POWER, "GPU Memory Power Readings ", "gpu_memory_power_readings"),
    ROW(2, 0, "Power Draw", "power_draw", ""),
    HEAD(1, POWER, "Module Power Readings", "module_power_readings"),
    ROW(2, 0, NULL, "power_state", "pstate"),
    ROW(2, 0, "Power Draw", "power_draw", ""),
    ROW(2, 0, "Current Power Limit", "current_power_limit", ""),
    ROW(2, 0, "Requested Power Limit", "requested_power_limit", ""),
    ROW(2, 0, "Default Power Limit", "default_power_limit", ""),
    ROW(2, 0, "Min Power Limit", "min_power_limit", ""),
    ROW(2, 0, "Max Power Limit", "max_power_limit", ""),
    /* Where drivers before that of nvsmi_device_v12.dtd have them, and monitors of their time look. */
    HEAD(1, 0, NULL, "power_readings"),
    ROW(2, 0, NULL, "power_draw", "power.draw"),
    ROW(2, 0, NULL, "power_limit", "power.limit"),
    ROW(2, 0, NULL, "default_power_limit", "power.default_limit"),
    ROW(2, 0, NULL, "enforced_power_limit", "enforced.power.limit"),
    ROW(2, 0, NULL, "min_power_limit", "power.min_limit"),
    ROW(2, 0, NULL, "max_power_limit", "power.max_limit"),
    HEAD(1, CLOCK, "Clocks", "clocks"),
    ROW(2, 0, "Graphics", "graphics_clock", "clocks.current.graphics"),
    ROW(2, 0, "SM", "sm_clock", "clocks.current.sm"),
    ROW(2, 0, "Memory", "mem_clock", "clocks.current.memory"),
    ROW(2, 0, "Video", "video_clock", "clocks.current.video"),
    HEAD(1, CLOCK, "Applications Clocks", "applications_clocks"),
    ROW(2, 0, "Graphics", "graphics_clock", "clocks.applications.graphics"),
    ROW(2, 0, "Memory", "mem_clock", "clocks.applications.memory"),
    HEAD(1, CLOCK, "Default Applications Clocks", "default_applications_clocks"),
    ROW(2, 0, "Graphics", "graphics_clock", "clocks.default_applications.graphics"),
    ROW(2, 0, "Memory", "mem_clock", "clocks.default_applications.memory"),
    HEAD(1, CLOCK, "Deferred Clocks", "deferred_clocks"),
    ROW(2, 0, "Memory", "mem_clock", ""),
    HEAD(1, CLOCK, "Max Clocks", "max_clocks"),
    ROW(2, 0, "Graphics", "graphics_clock", "clocks.max.graphics"),
    ROW(2, 0, "SM", "sm_clock", "clocks.max.sm"),
    ROW(2, 0, "Memory", "mem_clock", "clocks.max.memory"),
    ROW(2, 0, "Video", "video_clock", "clocks.max.video"),
    HEAD(1, CLOCK, "Max Customer Boost Clocks", "max_customer_boost_clocks"),
    ROW(2, 0, "Graphics", "graphics_clock", ""),
    SAMPLES(CLOCK, "SM Clock Samples"),
    SAMPLES(CLOCK, "Memory Clock Samples"),
    HEAD(1, CLOCK, "Clock Policy", "clock_policy"),
    ROW(2, 0, "Auto Boost", "auto_boost", ""),
    ROW(2, 0, "Auto Boost Default", "auto_boost_default", ""),
    HEAD(1, VOLTAGE, "Voltage", "voltage"),
    ROW(2, 0, "Graphics", "graphics_volt", "voltage"),
    HEAD(1, 0, "Fabric", "fabric"),
    ROW(2, 0, "State", "state", ""),
    ROW(2, 0, "Status", "status", ""),
    ROW(2, 0, "CliqueId", "cliqueId", ""),
    ROW(2, 0, "ClusterUUID", "clusterUuid", ""),
    HEAD(2, 0, "Health", "health"),
    ROW(3, 0, "Bandwidth", "bandwidth", ""),
    { 1, SUPPORTED_CLOCKS, "Supported Clocks", "supported_clocks", "", NULL, true },
    /* The processes are children of this row. */
    HEAD(1, PIDS, "Processes", "processes"),
    { 1, ACCOUNTING, "Accounted Processes", NULL, "=None", NULL, true },
    HEAD(1, ACCOUNTING, NULL, "accounted_processes"),
};

const struct smi_row smi_process_rows[] = {
    ROW(2, 0, "GPU instance ID", "gpu_instance_id", ""),
    ROW(2, 0, "Compute instance ID", "compute_instance_id", ""),
    ROW(2, 0, "Process ID", "pid", "pid"),
    ROW(2, 0, "    Type", "type", "=C"),
    ROW(2, 0, "    Name", "process_name", "process_name"),
    ROW(2, 0, "    Used GPU Memory", "used_memory", "used_gpu_memory"),
};
/* clang-format on */

const size_t smi_n_gpu_rows = ARRAY_LEN(smi_gpu_rows);
const size_t smi_n_process_rows = ARRAY_LEN(smi_process_rows);
