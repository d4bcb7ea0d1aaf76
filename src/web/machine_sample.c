/* SPDX-License-Identifier: Apache-2.0 */
#include "web/machine_sample.h"

#include "base/str.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FIGURE(name, field, unit)                        \
    {                                                    \
        name, offsetof(struct gpu_facts, field), (unit), \
    }
const struct machine_figure machine_figures[] = {
    FIGURE("busy_percent", busy_percent, 1),
    FIGURE("memory_busy_percent", memory_busy_percent, 1),
    FIGURE("vram_used_bytes", vram_used_bytes, 1),
    FIGURE("vram_total_bytes", vram_total_bytes, 1),
    FIGURE("gtt_used_bytes", gtt_used_bytes, 1),
    FIGURE("gtt_total_bytes", gtt_total_bytes, 1),
    FIGURE("usable_bytes", usable_bytes, 1),
    FIGURE("clock_mhz", clock_mhz, 1),
    FIGURE("memory_clock_mhz", memory_clock_mhz, 1),
    FIGURE("power_w", power_uw, 1e-6),
    FIGURE("power_cap_w", power_cap_uw, 1e-6),
    FIGURE("temperature_c", temperature_mc, 1e-3),
    FIGURE("memory_temperature_c", memory_temperature_mc, 1e-3),
    FIGURE("fan_rpm", fan_rpm, 1),
};
const size_t n_machine_figures = ARRAY_LEN(machine_figures);

static const char *const host_keys[MACHINE_HOST] = {
    [MACHINE_CPU] = "cpu_percent",
    [MACHINE_MEMORY_TOTAL] = "memory_total_bytes",
    [MACHINE_MEMORY_AVAILABLE] = "memory_available_bytes",
};

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

static double number(const struct num *n, double unit)
{
    return n->from ? (double)n->v * unit : NAN;
}

/* ---- taking one ---- */

/* The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. */
static double read_cpu(const struct facts *f, struct machine_cpu *last)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    uint64_t v[8] = { 0 }, all = 0;
    const char *text = root_read(&f->root, &a, "/proc/stat", NULL);
    if (!text || sscanf(text,
                        "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                        " %" SCNu64,
                        &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) < 4)
        return NAN;
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        all += v[i];
    struct machine_cpu now = { all - v[3] - v[4], all };
    double share = last->all && now.all > last->all && now.busy >= last->busy
                       ? 100.0 * (double)(now.busy - last->busy) / (double)(now.all - last->all)
                       : NAN;
    *last = now;
    return share;
}

void machine_sample_take(struct machine_sample *s, const struct facts *f, struct machine_cpu *cpu,
                         int64_t time_ms)
{
    size_t n = f->n_gpus < MACHINE_GPUS ? f->n_gpus : MACHINE_GPUS;
    *s = (struct machine_sample){
        .time_ms = time_ms,
        .host = { [MACHINE_CPU] = read_cpu(f, cpu),
                  [MACHINE_MEMORY_TOTAL] = number(&f->host.memory_total_bytes, 1),
                  [MACHINE_MEMORY_AVAILABLE] = number(&f->host.memory_available_bytes, 1) },
        .n_gpus = n,
        .asleep = need(calloc(n + 1, sizeof(bool))),
        .value = need(calloc(n * n_machine_figures + 1, sizeof(double))),
    };
    for (size_t g = 0; g < n; g++) {
        s->asleep[g] = str_eq(f->gpus[g].runtime_status.s, "suspended");
        for (size_t i = 0; i < n_machine_figures; i++)
            s->value[g * n_machine_figures + i] =
                number((const struct num *)((const char *)&f->gpus[g] + machine_figures[i].at),
                       machine_figures[i].unit);
    }
}

void machine_sample_release(struct machine_sample *s)
{
    free(s->asleep);
    free(s->value);
    *s = (struct machine_sample){ 0 };
}

/* ---- JSON ---- */

static void add_number(struct json *parent, const char *key, double v)
{
    if (isnan(v))
        json_add_null(parent, key);
    else if (v == floor(v) && fabs(v) < 9e15)
        json_add_int(parent, key, (int64_t)v);
    else
        json_add_real(parent, key, round(v * 1000) / 1000);
}

static void add_processes(struct json *o, const struct gpu_facts *g)
{
    struct json *list = json_add_array(o, "processes");
    for (size_t i = 0; i < g->n_processes; i++) {
        struct json *p = json_add_object(list, NULL);
        json_add_int(p, "pid", g->processes[i].pid);
        json_add_text(p, "name", g->processes[i].name);
        json_add_int(p, "vram_bytes", g->processes[i].vram_bytes);
    }
}

struct json *machine_sample_report(const struct machine_sample *s, const struct facts *f)
{
    struct json *v = json_new_object();
    json_add_int(v, "time_ms", s->time_ms);
    struct json *host = json_add_object(v, "host");
    for (size_t i = 0; i < MACHINE_HOST; i++)
        add_number(host, host_keys[i], s->host[i]);
    struct json *list = json_add_array(v, "gpus");
    for (size_t g = 0; g < s->n_gpus; g++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "pci", f->gpus[g].pci.s);
        json_add_bool(o, "asleep", s->asleep[g]);
        for (size_t i = 0; i < n_machine_figures; i++)
            add_number(o, machine_figures[i].key, s->value[g * n_machine_figures + i]);
        add_processes(o, &f->gpus[g]);
    }
    return v;
}

/* ---- the ring ---- */

void machine_ring_release(struct machine_ring *r)
{
    for (size_t i = 0; i < r->n; i++)
        machine_sample_release(&r->sample[(r->first + i) % MACHINE_RING]);
    r->n = r->first = 0;
}

void machine_ring_add(struct machine_ring *r, struct machine_sample *s)
{
    if (r->n && r->sample[r->first].n_gpus != s->n_gpus)
        machine_ring_release(r);
    while (r->n == MACHINE_RING ||
           (r->n && r->sample[r->first].time_ms < s->time_ms - MACHINE_KEPT_S * 1000)) {
        machine_sample_release(&r->sample[r->first]);
        r->first = (r->first + 1) % MACHINE_RING;
        r->n--;
    }
    r->sample[(r->first + r->n++) % MACHINE_RING] = *s;
    *s = (struct machine_sample){ 0 };
}

/* One array: a figure of each sample from `skip` on. */
static void add_column(struct json *parent, const char *key, const struct machine_ring *r, size_t skip,
                       double (*figure)(const struct machine_sample *s, size_t i), size_t i)
{
    struct json *column = json_add_array(parent, key);
    for (size_t k = skip; k < r->n; k++)
        add_number(column, NULL, figure(&r->sample[(r->first + k) % MACHINE_RING], i));
}

static double time_of(const struct machine_sample *s, size_t i)
{
    (void)i;
    return (double)s->time_ms;
}

static double host_figure(const struct machine_sample *s, size_t i)
{
    return s->host[i];
}

static double gpu_figure(const struct machine_sample *s, size_t i)
{
    return s->value[i];
}

struct json *machine_ring_report(const struct machine_ring *r, int64_t since_ms)
{
    struct json *v = json_new_object();
    size_t skip = 0, n_gpus = r->n ? r->sample[r->first].n_gpus : 0;
    while (skip < r->n && r->sample[(r->first + skip) % MACHINE_RING].time_ms < since_ms)
        skip++;
    json_add_int(v, "schema", 1);
    add_column(v, "time_ms", r, skip, time_of, 0);
    struct json *host = json_add_object(v, "host");
    for (size_t k = 0; k < MACHINE_HOST; k++)
        add_column(host, host_keys[k], r, skip, host_figure, k);
    struct json *gpus = json_add_array(v, "gpus");
    for (size_t g = 0; g < n_gpus; g++) {
        struct json *o = json_add_object(gpus, NULL);
        for (size_t k = 0; k < n_machine_figures; k++)
            add_column(o, machine_figures[k].key, r, skip, gpu_figure, g * n_machine_figures + k);
    }
    return v;
}
