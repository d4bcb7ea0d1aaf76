/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/fields.h"

#include "check.h"

static struct arena arena;

static const char *cell(const struct smi_line *l, const char *name, bool units)
{
    const struct smi_field *f =
        smi_field_find(l->process ? &smi_tables[SMI_APPS] : &smi_tables[SMI_GPU], name, strlen(name));
    return f ? smi_cell_text(f, smi_field_get(f, l), units, &arena) : "no such column";
}

/* A name twice would hide the second; an alias that is another's name as well. */
static void every_name_is_its_own(void)
{
    for (const struct smi_table *t = smi_tables; t < smi_tables + SMI_TABLES; t++)
        for (size_t i = 0; i < t->n; i++) {
            const struct smi_field *f = &t->row[i];
            CHECK(smi_field_find(t, f->name, strlen(f->name)) == f);
            CHECK(!*f->alias || smi_field_find(t, f->alias, strlen(f->alias)) == f);
            CHECK(!f->get || f->about);
        }
    CHECK(!smi_field_find(&smi_tables[SMI_GPU], "", 0));
    CHECK(!smi_field_find(&smi_tables[SMI_GPU], "Name", 4));
    CHECK(!smi_field_find(&smi_tables[SMI_GPU], "memory", 6));
}

static void looks_as_programs_expect(void)
{
    struct gpu_facts g = {
        .name = { "AMD, Inc. \033 Radeon", "test" },
        .gfx = { "gfx1151", "kfd" },
        .pci = { "0000:c5:00.0", "test" },
        .device_id = { 0x1586, "test" },
        .vendor_id = { 0x1002, "test" },
        .pci_class = { 0x038000, "test" },
        .pci_subsystem = { 0xb0261f4c, "test" },
        .power_uw = { 77714000, "/hwmon0/power1_average" },
        .power_cap_uw = { 120000000, "test" },
        .temperature_mc = { 45600, "test" },
        .fan_duty = { 128, "test" },
        .link_speed = { "16.0 GT/s PCIe", "test" },
        .link_speed_max = { "Unknown", "test" },
        .busy_percent = { 0, "test" },
    };
    struct smi_gpu gpu = { .facts = &g,
                           .index = 1,
                           .memory = { .total = { ((int64_t)96 << 30) - 1, "test" } } };
    struct smi s = {
        .facts.host.kernel = { "6.17.0-12-generic", "test" }, .gpus = &gpu, .n_gpus = 1, .count = 2
    };
    const struct smi_line l = { .smi = &s, .gpu = &gpu };
    static const struct {
        const char *name, *plain, *units;
    } rows[] = {
        { "index", "1", "1" },
        { "count", "2", "2" },
        { "name", "AMD  Inc. ? Radeon", "AMD  Inc. ? Radeon" },
        { "driver_version", "6.17.0", "6.17.0" },
        { "compute_cap", "11.5", "11.5" },
        { "gpu_bus_id", "00000000:C5:00.0", "00000000:C5:00.0" },
        { "pci.domain", "0x0000", "0x0000" },
        { "pci.bus", "0xC5", "0xC5" },
        { "pci.device", "0x00", "0x00" },
        { "pci.device_id", "0x15861002", "0x15861002" },
        { "pci.sub_device_id", "0xB0261F4C", "0xB0261F4C" },
        { "pci.baseClass", "0x3", "0x3" },
        { "pci.subClass", "0x80", "0x80" },
        { "memory.total", "98303", "98303 MiB" },
        { "memory.used", "[N/A]", "[N/A]" },
        { "power.draw", "77.71", "77.71 W" },
        { "power.draw.average", "77.71", "77.71 W" },
        { "power.draw.instant", "[N/A]", "[N/A]" },
        { "enforced.power.limit", "120.00", "120.00 W" },
        { "temperature.gpu", "46", "46" },
        { "temperature.memory", "N/A", "N/A" },
        { "fan.speed", "50", "50 %" },
        { "utilization.gpu", "0", "0 %" },
        { "utilization.memory", "[N/A]", "[N/A]" },
        { "pcie.link.gen.current", "4", "4" },
        { "pcie.link.gen.max", "[N/A]", "[N/A]" },
        { "clocks.sm", "[N/A]", "[N/A]" },
        { "ecc.errors.uncorrected.volatile.total", "[N/A]", "[N/A]" },
        { "uuid", "GPU-0000-c5-00-0", "GPU-0000-c5-00-0" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_STR(cell(&l, rows[i].name, false), rows[i].plain);
        CHECK_STR(cell(&l, rows[i].name, true), rows[i].units);
    }
    g.name = (struct text){ 0 };
    s.facts.host.amdgpu_version = (struct text){ "6.12.12", "test" };
    CHECK_STR(cell(&l, "name", true), "AMD gfx1151");
    CHECK_STR(cell(&l, "driver_version", true), "6.12.12");
    s.facts.host = (struct host_facts){ .kernel = { "unknown", "test" } };
    CHECK_STR(cell(&l, "driver_version", true), "[N/A]");
    arena_release(&s.facts.arena);
}

static void a_process(void)
{
    struct gpu_facts g = { .name = { "AMD Radeon", "test" }, .gfx = { "gfx1100", "kfd" } };
    struct smi_gpu gpu = { .facts = &g };
    struct smi s = { .gpus = &gpu, .n_gpus = 1 };
    struct gpu_process p = { 4711, NULL, 5 << 20 };
    const struct smi_line l = { &s, &gpu, &p };
    CHECK_STR(cell(&l, "pid", true), "4711");
    CHECK_STR(cell(&l, "name", true), "[N/A]");
    CHECK_STR(cell(&l, "used_memory", true), "5 MiB");
    CHECK_STR(cell(&l, "gpu_name", true), "AMD Radeon");
    arena_release(&s.facts.arena);
}

static void the_header_has_the_unit(void)
{
    const struct smi_field *f = smi_field_find(&smi_tables[SMI_GPU], "clocks.gr", 9);
    REQUIRE(f);
    CHECK_STR(smi_field_header(f, &arena), "clocks.current.graphics [MHz]");
    CHECK_STR(smi_field_header(smi_field_find(&smi_tables[SMI_GPU], "gpu_name", 8), &arena), "name");
}

int main(void)
{
    RUN(every_name_is_its_own);
    RUN(looks_as_programs_expect);
    RUN(a_process);
    RUN(the_header_has_the_unit);
    arena_release(&arena);
    return check_done();
}
