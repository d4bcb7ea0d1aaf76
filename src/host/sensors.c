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

static const struct place still[] = {
    { "mem_info_vram_total", offsetof(struct gpu_facts, vram_total_bytes), 1, 64 * TIB },
    { "mem_info_vis_vram_total", offsetof(struct gpu_facts, vis_vram_total_bytes), 0, 64 * TIB },
    { "mem_info_gtt_total", offsetof(struct gpu_facts, gtt_total_bytes), 0, 64 * TIB },
    { "current_link_width", offsetof(struct gpu_facts, link_width), 1, 64 },
    { "max_link_width", offsetof(struct gpu_facts, link_width_max), 1, 64 },
};

/* Reading these wakes a sleeping card on a hybrid laptop. */
static const struct place live[] = {
    { "mem_info_vram_used", offsetof(struct gpu_facts, vram_used_bytes), 0, 64 * TIB },
    { "mem_info_gtt_used", offsetof(struct gpu_facts, gtt_used_bytes), 0, 64 * TIB },
    { "gpu_busy_percent", offsetof(struct gpu_facts, busy_percent), 0, 100 },
};

/* In order of preference: the first file that is there wins. */
static const struct place hwmon[] = {
    { "temp1_input", offsetof(struct gpu_facts, temperature_mc), -100000, 300000 },
    { "power1_average", offsetof(struct gpu_facts, power_uw), 0, 5000000000 },
    { "power1_input", offsetof(struct gpu_facts, power_uw), 0, 5000000000 },
    { "fan1_input", offsetof(struct gpu_facts, fan_rpm), 0, 100000 },
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

/* The line with a star is the clock in use: "1: 1100Mhz *". */
static struct num read_clock(const struct root *r, struct arena *a, const char *path)
{
    const char *text = root_read(r, a, path, NULL);
    struct num best = { 0 };
    for (const char *line = text; line && *line; line = str_next_line(line)) {
        size_t n = strcspn(line, "\n");
        const char *colon = memchr(line, ':', n);
        if (!colon || !memchr(line, '*', n))
            continue;
        char *end;
        long mhz = strtol(colon + 1, &end, 10);
        if ((str_starts(end, "Mhz") || str_starts(end, "MHz")) && mhz >= 0 && mhz < 100000)
            best = (struct num){ mhz, path };
    }
    return best;
}

static void read_clocks(const struct root *r, struct arena *a, const char *dir, const char *sensors,
                        struct gpu_facts *g)
{
    if (sensors) {
        struct num hz = drm_read_num(r, a, arena_printf(a, "%s/freq1_input", sensors), NULL);
        if (hz.from && hz.v >= 0 && hz.v < 100000000000)
            g->clock_mhz = (struct num){ hz.v / 1000000, hz.from };
    }
    if (!g->clock_mhz.from)
        g->clock_mhz = read_clock(r, a, arena_printf(a, "%s/pp_dpm_sclk", dir));
    g->memory_clock_mhz = read_clock(r, a, arena_printf(a, "%s/pp_dpm_mclk", dir));
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

void drm_read_details(const struct root *r, struct arena *a, const struct drm_device *d, struct gpu_facts *g)
{
    read_places(r, a, d->dir, still, ARRAY_LEN(still), g);
    read_firmware(r, a, d->dir, g);
    g->link_speed = text_read(r, a, arena_printf(a, "%s/current_link_speed", d->dir));
    g->runtime_status = text_read(r, a, arena_printf(a, "%s/power/runtime_status", d->dir));
    if (str_eq(g->runtime_status.s, "suspended"))
        return;
    read_places(r, a, d->dir, live, ARRAY_LEN(live), g);
    const char *sensors = find_hwmon(r, a, d->dir);
    if (sensors)
        read_places(r, a, sensors, hwmon, ARRAY_LEN(hwmon), g);
    read_clocks(r, a, d->dir, sensors, g);
}
