/* SPDX-License-Identifier: Apache-2.0 */
#include "run/gauge.h"

#include "base/parse.h"
#include "base/str.h"
#include "host/memory.h"
#include <stdio.h>
#include <string.h>

enum { LOW_READINGS = 2 };

/* Of a GPU that sleeps the live figures are not among the facts, but where they are is known from the others. */
static void find_files(struct gauge *g, const struct gpu_facts *gpu)
{
    const char *total = gpu ? gpu->vram_total_bytes.from : NULL;
    const char *slash = total ? strrchr(total, '/') : NULL;
    if (!slash || *total != '/')
        return;
    snprintf(g->dir, sizeof(g->dir), "%.*s", (int)(slash - total), total);
}

void gauge_init(struct gauge *g, const struct facts *f, const struct gpu_facts *gpu)
{
    *g = (struct gauge){ .root = &f->root };
    find_files(g, gpu);
    g->peak = (struct gauge_reading){ -1, -1, -1, -1 };
    if (gpu && gpu->kind == GPU_INTEGRATED)
        g->reserve_bytes = memory_reserve(f->host.memory_total_bytes.v);
    gauge_begin(g);
}

void gauge_begin(struct gauge *g)
{
    g->guard_bytes = g->reserve_bytes / 2;
    gauge_read(g);
    if (g->now.host_available_bytes >= 0 && g->now.host_available_bytes <= g->reserve_bytes)
        g->guard_bytes = g->now.host_available_bytes / 4;
    g->low = 0;
}

static int64_t read_number(const struct gauge *g, struct arena *a, const char *name)
{
    const char *text = root_read(g->root, a, path_join(a, g->dir, name), NULL);
    int64_t v;
    return text && cairn_parse_i64(text, &v) && v >= 0 ? v : -1;
}

/* To ask a sleeping GPU for its load wakes it up. */
static bool is_awake(const struct gauge *g, struct arena *a)
{
    const char *status =
        g->dir[0] ? root_read(g->root, a, path_join(a, g->dir, "power/runtime_status"), NULL) : NULL;
    return g->dir[0] && !str_eq(status, "suspended");
}

static int64_t read_available(const struct root *root, struct arena *a)
{
    const char *text = root_read(root, a, "/proc/meminfo", NULL);
    const char *at = text ? strstr(text, "\nMemAvailable:") : NULL;
    long long kib;
    return at && sscanf(at, " MemAvailable: %lld", &kib) == 1 && kib >= 0 ? kib * 1024 : -1;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void gauge_read(struct gauge *g)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    bool awake = is_awake(g, &a);
    const struct gauge_reading r = {
        .host_available_bytes = read_available(g->root, &a),
        .vram_used_bytes = awake ? read_number(g, &a, "mem_info_vram_used") : -1,
        .gtt_used_bytes = awake ? read_number(g, &a, "mem_info_gtt_used") : -1,
        .busy_percent = awake ? read_number(g, &a, "gpu_busy_percent") : -1,
    };
    int64_t least = g->peak.host_available_bytes;
    g->now = r;
    g->peak = (struct gauge_reading){
        .host_available_bytes = least < 0 || (r.host_available_bytes >= 0 && r.host_available_bytes < least)
                                    ? r.host_available_bytes
                                    : least,
        .vram_used_bytes = larger(g->peak.vram_used_bytes, r.vram_used_bytes),
        .gtt_used_bytes = larger(g->peak.gtt_used_bytes, r.gtt_used_bytes),
        .busy_percent = larger(g->peak.busy_percent, r.busy_percent),
    };
    if (r.host_available_bytes > g->reserve_bytes)
        g->guard_bytes = g->reserve_bytes / 2;
    bool low = g->guard_bytes && r.host_available_bytes >= 0 && r.host_available_bytes < g->guard_bytes;
    g->low = low ? g->low + 1 : 0;
}

bool gauge_guard(const struct gauge *g)
{
    return g->low >= LOW_READINGS || (g->low && g->now.host_available_bytes < g->guard_bytes / 2);
}

int64_t gauge_gpu_bytes(const struct gauge_reading *r)
{
    if (r->vram_used_bytes < 0 && r->gtt_used_bytes < 0)
        return -1;
    return larger(r->vram_used_bytes, 0) + larger(r->gtt_used_bytes, 0);
}

static void add_number(struct json *into, const char *key, int64_t v)
{
    if (v < 0)
        json_add_null(into, key);
    else
        json_add_int(into, key, v);
}

void gauge_json(const struct gauge_reading *r, struct json *into)
{
    add_number(into, "host_available_bytes", r->host_available_bytes);
    add_number(into, "vram_used_bytes", r->vram_used_bytes);
    add_number(into, "gtt_used_bytes", r->gtt_used_bytes);
    add_number(into, "busy_percent", r->busy_percent);
}
