/* SPDX-License-Identifier: Apache-2.0 */
#include "run/memory_monitor.h"

#include "base/parse.h"
#include "base/str.h"
#include "host/memory.h"
#include <stdio.h>
#include <string.h>

enum { LOW_READINGS = 2 };

/* The facts of a sleeping GPU have no live values, but other values show where their files are. */
static void find_files(struct memory_monitor *g, const struct gpu_facts *gpu)
{
    const char *total = gpu ? gpu->vram_total_bytes.from : NULL;
    const char *slash = total ? strrchr(total, '/') : NULL;
    if (!slash || *total != '/')
        return;
    snprintf(g->dir, sizeof(g->dir), "%.*s", (int)(slash - total), total);
}

void memory_monitor_init(struct memory_monitor *g, const struct facts *f, const struct gpu_facts *gpu)
{
    *g = (struct memory_monitor){ .root = &f->root };
    find_files(g, gpu);
    g->peak = (struct memory_monitor_reading){ -1, -1, -1, -1 };
    if (gpu && gpu->kind == GPU_INTEGRATED)
        g->reserve_bytes = memory_reserve(f->host.memory_total_bytes.v);
    memory_monitor_begin(g);
}

/* "oom_kill 3" on its own line. */
static int64_t counter(const struct root *root, struct arena *a, const char *path)
{
    long long n;
    for (const char *line = root_read(root, a, path, NULL); line; line = str_next_line(line))
        if (sscanf(line, "oom_kill %lld", &n) == 1 && n >= 0)
            return n;
    return -1;
}

static struct memory_monitor_kills read_kills(const struct root *root)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *two = arena_printf(&a, "/sys/fs/cgroup%s/memory.events", memory_own_cgroup(root, &a, "0::"));
    const char *one = arena_printf(&a, "/sys/fs/cgroup/memory%s/memory.oom_control",
                                   memory_own_cgroup(root, &a, ":memory:"));
    struct memory_monitor_kills k = { counter(root, &a, "/proc/vmstat"), counter(root, &a, two) };
    if (k.cgroup < 0)
        k.cgroup = counter(root, &a, one);
    return k;
}

static int64_t rise(int64_t before, int64_t after)
{
    return before < 0 || after < before ? -1 : after - before;
}

void memory_monitor_end(struct memory_monitor *g)
{
    struct memory_monitor_kills now = read_kills(g->root);
    g->memory.oom_kills = rise(g->before.machine, now.machine);
    g->memory.cgroup_oom_kills = rise(g->before.cgroup, now.cgroup);
}

void memory_monitor_begin(struct memory_monitor *g)
{
    g->memory = (struct diagnose_memory){ true, -1, -1, -1, -1, -1, -1 };
    g->before = read_kills(g->root);
    g->guard_bytes = g->reserve_bytes / 2;
    memory_monitor_read(g);
    if (g->now.host_available_bytes >= 0 && g->now.host_available_bytes <= g->reserve_bytes)
        g->guard_bytes = g->now.host_available_bytes / 4;
    g->low = 0;
}

static int64_t read_number(const struct memory_monitor *g, struct arena *a, const char *name)
{
    const char *text = root_read(g->root, a, path_join(a, g->dir, name), NULL);
    int64_t v;
    return text && cairn_parse_i64(text, &v) && v >= 0 ? v : -1;
}

/* Reading the load would wake a sleeping GPU. */
static bool is_awake(const struct memory_monitor *g, struct arena *a)
{
    const char *status =
        g->dir[0] ? root_read(g->root, a, path_join(a, g->dir, "power/runtime_status"), NULL) : NULL;
    return g->dir[0] && !str_eq(status, "suspended");
}

static int64_t known(struct num v)
{
    return v.from ? v.v : -1;
}

static int64_t less(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Keeps the minimum of both kinds; returns the available host memory. */
static int64_t read_host(struct memory_monitor *g)
{
    struct facts f = { .root = *g->root };
    struct diagnose_memory *m = &g->memory;
    memory_read(&f);
    const struct host_facts *h = &f.host;
    int64_t available = known(h->memory_available_bytes);
    int64_t room = h->cgroup_limit_bytes.v - h->cgroup_used_bytes.v, left = room > 0 ? room : 0;
    m->host_total_bytes = known(h->memory_total_bytes);
    m->host_least_bytes = less(m->host_least_bytes, available);
    if (h->cgroup_limit_bytes.from && less(m->cgroup_least_bytes, left) == left) {
        m->cgroup_limit_bytes = h->cgroup_limit_bytes.v;
        m->cgroup_least_bytes = left;
    }
    arena_release(&f.arena);
    return available;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void memory_monitor_read(struct memory_monitor *g)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    bool awake = is_awake(g, &a);
    const struct memory_monitor_reading r = {
        .host_available_bytes = read_host(g),
        .vram_used_bytes = awake ? read_number(g, &a, "mem_info_vram_used") : -1,
        .gtt_used_bytes = awake ? read_number(g, &a, "mem_info_gtt_used") : -1,
        .busy_percent = awake ? read_number(g, &a, "gpu_busy_percent") : -1,
    };
    g->now = r;
    g->peak = (struct memory_monitor_reading){
        .host_available_bytes = less(g->peak.host_available_bytes, r.host_available_bytes),
        .vram_used_bytes = larger(g->peak.vram_used_bytes, r.vram_used_bytes),
        .gtt_used_bytes = larger(g->peak.gtt_used_bytes, r.gtt_used_bytes),
        .busy_percent = larger(g->peak.busy_percent, r.busy_percent),
    };
    if (r.host_available_bytes > g->reserve_bytes)
        g->guard_bytes = g->reserve_bytes / 2;
    bool low = g->guard_bytes && r.host_available_bytes >= 0 && r.host_available_bytes < g->guard_bytes;
    g->low = low ? g->low + 1 : 0;
}

bool memory_monitor_guard(const struct memory_monitor *g)
{
    return g->low >= LOW_READINGS || (g->low && g->now.host_available_bytes < g->guard_bytes / 2);
}

int64_t memory_monitor_gpu_bytes(const struct memory_monitor_reading *r)
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

void memory_monitor_json(const struct memory_monitor_reading *r, struct json *into)
{
    add_number(into, "host_available_bytes", r->host_available_bytes);
    add_number(into, "vram_used_bytes", r->vram_used_bytes);
    add_number(into, "gtt_used_bytes", r->gtt_used_bytes);
    add_number(into, "busy_percent", r->busy_percent);
}

void memory_monitor_memory_json(const struct diagnose_memory *m, struct json *into)
{
    add_number(into, "host_total_bytes", m->host_total_bytes);
    add_number(into, "host_least_bytes", m->host_least_bytes);
    add_number(into, "cgroup_limit_bytes", m->cgroup_limit_bytes);
    add_number(into, "cgroup_least_bytes", m->cgroup_least_bytes);
    add_number(into, "oom_kills", m->oom_kills);
    add_number(into, "cgroup_oom_kills", m->cgroup_oom_kills);
}

struct diagnose_memory memory_monitor_memory_of(const struct json *v)
{
    return (struct diagnose_memory){
        .watched = v != NULL,
        .host_total_bytes = json_int(json_get(v, "host_total_bytes"), -1),
        .host_least_bytes = json_int(json_get(v, "host_least_bytes"), -1),
        .cgroup_limit_bytes = json_int(json_get(v, "cgroup_limit_bytes"), -1),
        .cgroup_least_bytes = json_int(json_get(v, "cgroup_least_bytes"), -1),
        .oom_kills = json_int(json_get(v, "oom_kills"), -1),
        .cgroup_oom_kills = json_int(json_get(v, "cgroup_oom_kills"), -1),
    };
}
