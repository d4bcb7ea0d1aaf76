/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/monitor.h"

#include "smi/fields.h"
#include <stdio.h>
#include <string.h>

struct metric {
    char group; /* the letter of -s */
    const char *name, *unit, *column;
};

static const struct metric of_gpu[] = {
    { 'p', "pwr", "W", "power.draw" },
    { 'p', "gtemp", "C", "temperature.gpu" },
    { 'p', "mtemp", "C", "temperature.memory" },
    { 'u', "sm", "%", "utilization.gpu" },
    { 'u', "mem", "%", "utilization.memory" },
    { 'u', "enc", "%", "utilization.encoder" },
    { 'u', "dec", "%", "utilization.decoder" },
    { 'u', "jpg", "%", "utilization.jpeg" },
    { 'u', "ofa", "%", "utilization.ofa" },
    { 'c', "mclk", "MHz", "clocks.current.memory" },
    { 'c', "pclk", "MHz", "clocks.current.graphics" },
    { 'v', "pviol", "%", "" },
    { 'v', "tviol", "bool", "" },
    { 'm', "fb", "MB", "memory.used" },
    { 'm', "bar1", "MB", "bar1.used" },
    { 'm', "ccpm", "MB", "" },
    { 'e', "sbecc", "errs", "ecc.errors.corrected.volatile.total" },
    { 'e', "dbecc", "errs", "ecc.errors.uncorrected.volatile.total" },
    { 'e', "pci", "errs", "" },
    { 't', "rxpci", "MB/s", "" },
    { 't', "txpci", "MB/s", "" },
    { 0, NULL, NULL, NULL },
};

/* amdgpu reports the memory of a process, but not its load. */
static const struct metric of_process[] = {
    { 'u', "sm", "%", "" },
    { 'u', "mem", "%", "" },
    { 'u', "enc", "%", "" },
    { 'u', "dec", "%", "" },
    { 'u', "jpg", "%", "" },
    { 'u', "ofa", "%", "" },
    { 'm', "fb", "MB", "used_gpu_memory" },
    { 'm', "ccpm", "MB", "" },
    { 0, NULL, NULL, NULL },
};

static const struct metric *metrics_of(const struct smi_monitor *m)
{
    return m->processes ? of_process : of_gpu;
}

static void add_header(struct str *out, const struct smi_monitor *m, bool units)
{
    str_add(out, "#");
    if (m->date)
        str_addf(out, "%-12s", units ? "YYYYMMDD" : "Date");
    if (m->time)
        str_addf(out, "%-13s", units ? "HH:MM:SS" : "Time");
    str_addf(out, "%s%s ", m->date || m->time ? "" : " ", units ? "Idx" : "gpu");
    if (m->processes)
        str_addf(out, "%11s%7s", units ? "#" : "pid", units ? "C/G" : "type");
    for (const char *s = m->select; *s; s++)
        for (const struct metric *k = metrics_of(m); k->group; k++)
            if (k->group == *s)
                str_addf(out, m->processes ? "%7s" : "%6s ", units ? k->unit : k->name);
    str_add(out, !m->processes ? "\n" : units ? "    name \n" : "    command \n");
}

/* "-" if unknown. */
static const char *metric_text(const struct metric *k, const struct smi_line *l)
{
    const struct smi_field *f = smi_field_of(l, k->column);
    struct smi_cell c = f ? smi_field_get(f, l) : (struct smi_cell){ .kind = SMI_UNKNOWN };
    return c.kind == SMI_NUMBER ? arena_printf(&l->smi->facts.arena, "%.0f", c.number) : "-";
}

static void add_start(struct str *out, const struct smi_monitor *m, const struct smi_line *l)
{
    char date[16], clock[16];
    strftime(date, sizeof(date), "%Y%m%d", &l->smi->time);
    strftime(clock, sizeof(clock), "%H:%M:%S", &l->smi->time);
    str_add(out, " ");
    if (m->date)
        str_addf(out, "%-12s", date);
    if (m->time)
        str_addf(out, "%-13s", clock);
    str_addf(out, "%s%3zu ", m->date || m->time ? "" : " ", l->gpu->index);
}

static void add_metrics(struct str *out, const struct smi_monitor *m, const struct smi_line *l)
{
    for (const char *s = m->select; *s; s++)
        for (const struct metric *k = metrics_of(m); k->group; k++)
            if (k->group == *s)
                str_addf(out, m->processes ? " %6s" : "%6s ", metric_text(k, l));
}

/* A GPU without processes has a line too. */
static void add_process(struct str *out, const struct smi_monitor *m, const struct smi_line *l)
{
    char pid[24] = "-";
    const char *name = l->process && l->process->name ? l->process->name : "-";
    if (l->process)
        snprintf(pid, sizeof(pid), "%lld", (long long)l->process->pid);
    add_start(out, m, l);
    str_addf(out, "%10s %5s", pid, l->process ? "C" : "-");
    add_metrics(out, m, l);
    str_add(out, "    ");
    str_add_padded(out, name, 15);
    str_add(out, "\n");
}

static void add_gpu(struct str *out, const struct smi_monitor *m, struct smi *s, const struct smi_gpu *g)
{
    struct smi_line l = { .smi = s, .gpu = g };
    if (!m->processes) {
        add_start(out, m, &l);
        add_metrics(out, m, &l);
        str_add(out, "\n");
        return;
    }
    if (!g->facts->n_processes)
        add_process(out, m, &l);
    for (size_t k = 0; k < g->facts->n_processes; k++) {
        l.process = &g->facts->processes[k];
        add_process(out, m, &l);
    }
}

void smi_monitor_text(const struct smi_monitor *m, struct smi *s, bool header, struct str *out)
{
    for (int units = 0; header && units < 2; units++)
        add_header(out, m, units);
    for (size_t i = 0; i < s->n_gpus; i++)
        add_gpu(out, m, s, &s->gpus[i]);
}

bool smi_monitor_has(const struct smi_monitor *m)
{
    for (const char *s = m->select; *s; s++) {
        const struct metric *k = metrics_of(m);
        while (k->group && k->group != *s)
            k++;
        if (!k->group)
            return false;
    }
    return *m->select;
}
