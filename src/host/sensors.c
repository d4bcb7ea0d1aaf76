/* SPDX-License-Identifier: Apache-2.0
 * The rest of a DRM device: memory sizes, firmware, link, and the figures that change. */
#include "base/parse.h"
#include "base/str.h"
#include "host/drm.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct place {
    const char *file;
    size_t at; /* of a struct num in struct gpu_facts */
    int64_t least, most;
};

#define TIB ((int64_t)1 << 40)

/* The driver answers these from its own books: a sleeping card goes on sleeping. */
static const struct place still[] = {
    { "mem_info_vram_total", offsetof(struct gpu_facts, vram_total_bytes), 1, 64 * TIB },
    { "mem_info_vis_vram_total", offsetof(struct gpu_facts, vis_vram_total_bytes), 0, 64 * TIB },
    { "mem_info_gtt_total", offsetof(struct gpu_facts, gtt_total_bytes), 0, 64 * TIB },
    { "mem_info_vram_used", offsetof(struct gpu_facts, vram_used_bytes), 0, 64 * TIB },
    { "mem_info_vis_vram_used", offsetof(struct gpu_facts, vis_vram_used_bytes), 0, 64 * TIB },
    { "mem_info_gtt_used", offsetof(struct gpu_facts, gtt_used_bytes), 0, 64 * TIB },
};

/* Reading these wakes a sleeping card on a hybrid laptop, the link too: newer kernels power the card to read
 * its configuration space (pci_config_pm_runtime_get). */
static const struct place live[] = {
    { "current_link_width", offsetof(struct gpu_facts, link_width), 1, 64 },
    { "max_link_width", offsetof(struct gpu_facts, link_width_max), 1, 64 },
    { "pcie_replay_count", offsetof(struct gpu_facts, pcie_replays), 0, INT64_MAX },
    { "gpu_busy_percent", offsetof(struct gpu_facts, busy_percent), 0, 100 },
    { "mem_busy_percent", offsetof(struct gpu_facts, memory_busy_percent), 0, 100 },
};

/* In order of preference: the first file that exists is used. */
static const struct place hwmon[] = {
    { "temp1_input", offsetof(struct gpu_facts, temperature_mc), -100000, 300000 },
    { "power1_average", offsetof(struct gpu_facts, power_uw), 0, 5000000000 },
    { "power1_input", offsetof(struct gpu_facts, power_uw), 0, 5000000000 },
    { "temp3_input", offsetof(struct gpu_facts, memory_temperature_mc), -100000, 300000 }, /* label: mem */
    { "temp1_crit", offsetof(struct gpu_facts, temperature_crit_mc), -100000, 300000 },
    { "temp1_emergency", offsetof(struct gpu_facts, temperature_emergency_mc), -100000, 300000 },
    { "temp3_crit", offsetof(struct gpu_facts, memory_temperature_crit_mc), -100000, 300000 },
    { "in0_input", offsetof(struct gpu_facts, voltage_mv), 0, 100000 }, /* label: vddgfx */
    { "power1_cap", offsetof(struct gpu_facts, power_cap_uw), 0, 5000000000 },
    { "power1_cap_default", offsetof(struct gpu_facts, power_cap_default_uw), 0, 5000000000 },
    { "power1_cap_min", offsetof(struct gpu_facts, power_cap_min_uw), 0, 5000000000 },
    { "power1_cap_max", offsetof(struct gpu_facts, power_cap_max_uw), 0, 5000000000 },
    { "fan1_input", offsetof(struct gpu_facts, fan_rpm), 0, 100000 },
    { "pwm1", offsetof(struct gpu_facts, fan_duty), 0, 255 },
};

static const struct {
    const char *file;
    size_t at;
} firmware[] = {
    { "mes_fw_version", offsetof(struct gpu_facts, mes_fw) },
    { "mec_fw_version", offsetof(struct gpu_facts, mec_fw) },
    { "sdma_fw_version", offsetof(struct gpu_facts, sdma_fw) },
    { "smc_fw_version", offsetof(struct gpu_facts, smc_fw) },
};

static struct num *field(struct gpu_facts *g, size_t at)
{
    return (struct num *)((char *)g + at);
}

static void read_places(const struct root *r, struct arena *a, const char *dir, const struct place *rows,
                        size_t n, struct gpu_facts *g)
{
    for (size_t i = 0; i < n; i++) {
        struct num *into = field(g, rows[i].at);
        if (into->from)
            continue;
        struct num v = drm_read_num(r, a, arena_printf(a, "%s/%s", dir, rows[i].file), &g->problems);
        if (v.from && v.v >= rows[i].least && v.v <= rows[i].most)
            *into = v;
        else if (v.from)
            problems_add(&g->problems, a, "%s: %lld is out of range and was ignored", v.from, (long long)v.v);
    }
}

static void read_firmware(const struct root *r, struct arena *a, const char *dir, struct gpu_facts *g)
{
    for (size_t i = 0; i < ARRAY_LEN(firmware); i++) {
        const char *path = arena_printf(a, "%s/fw_version/%s", dir, firmware[i].file);
        const char *text = root_read(r, a, path, NULL);
        uint64_t v;
        if (text && cairn_parse_hex(text, &v) && v <= UINT32_MAX)
            *field(g, firmware[i].at) = (struct num){ (int64_t)v, path };
    }
}

/* Lines such as "1: 1100Mhz *", of which the one with a star is the clock in use. */
static void read_levels(const struct root *r, struct arena *a, const char *path, struct num *now,
                        struct num *most)
{
    const char *text = root_read(r, a, path, NULL);
    for (const char *line = text; line && *line; line = str_next_line(line)) {
        size_t n = strcspn(line, "\n");
        const char *colon = memchr(line, ':', n);
        char *end = NULL;
        long mhz = colon ? strtol(colon + 1, &end, 10) : -1;
        if (mhz < 0 || mhz >= 100000 || !(str_starts(end, "Mhz") || str_starts(end, "MHz")))
            continue;
        if (memchr(line, '*', n))
            *now = (struct num){ mhz, path };
        if (!most->from || mhz > most->v)
            *most = (struct num){ mhz, path };
    }
}

static void read_clocks(const struct root *r, struct arena *a, const char *dir, const char *sensors,
                        struct gpu_facts *g)
{
    read_levels(r, a, arena_printf(a, "%s/pp_dpm_sclk", dir), &g->clock_mhz, &g->clock_max_mhz);
    read_levels(r, a, arena_printf(a, "%s/pp_dpm_mclk", dir), &g->memory_clock_mhz, &g->memory_clock_max_mhz);
    read_levels(r, a, arena_printf(a, "%s/pp_dpm_vclk", dir), &g->video_clock_mhz, &g->video_clock_max_mhz);
    if (!sensors)
        return;
    struct num hz = drm_read_num(r, a, arena_printf(a, "%s/freq1_input", sensors), NULL);
    if (hz.from && hz.v >= 0 && hz.v < 100000000000)
        g->clock_mhz = (struct num){ hz.v / 1000000, hz.from };
}

static const char *find_hwmon(const struct root *r, struct arena *a, const char *dir)
{
    char **names;
    size_t n;
    if (root_list(r, a, arena_printf(a, "%s/hwmon", dir), &names, &n))
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (str_starts(names[i], "hwmon"))
            return arena_printf(a, "%s/hwmon/%s", dir, names[i]);
    return NULL;
}

void drm_read_details(const struct root *r, struct arena *a, const struct drm_device *d, bool still_only,
                      struct gpu_facts *g)
{
    read_places(r, a, d->dir, still, ARRAY_LEN(still), g);
    read_firmware(r, a, d->dir, g);
    g->vbios = text_read(r, a, arena_printf(a, "%s/vbios_version", d->dir));
    g->serial = text_read(r, a, arena_printf(a, "%s/serial_number", d->dir));
    g->runtime_status = text_read(r, a, arena_printf(a, "%s/power/runtime_status", d->dir));
    if (still_only || str_eq(g->runtime_status.s, "suspended"))
        return;
    read_places(r, a, d->dir, live, ARRAY_LEN(live), g);
    g->link_speed = text_read(r, a, arena_printf(a, "%s/current_link_speed", d->dir));
    g->link_speed_max = text_read(r, a, arena_printf(a, "%s/max_link_speed", d->dir));
    const char *sensors = find_hwmon(r, a, d->dir);
    if (sensors)
        read_places(r, a, sensors, hwmon, ARRAY_LEN(hwmon), g);
    read_clocks(r, a, d->dir, sensors, g);
}
