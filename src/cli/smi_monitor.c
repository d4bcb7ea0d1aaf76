/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_monitor.h"

#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/smi_fields.h"
#include "cli/smi_run.h"
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

/* amdgpu does not tell what a process computes, only what it holds. */
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

/* pmon where processes, else dmon. */
struct monitor {
    struct smi_target target;
    bool processes, date, time;
    const char *select; /* letters, in the order of the columns */
    long seconds, times;
};

static const struct metric *metrics_of(const struct monitor *m)
{
    return m->processes ? of_process : of_gpu;
}

static void print_header(const struct monitor *m, bool units)
{
    putchar('#');
    if (m->date)
        printf("%-12s", units ? "YYYYMMDD" : "Date");
    if (m->time)
        printf("%-13s", units ? "HH:MM:SS" : "Time");
    printf("%s%s ", m->date || m->time ? "" : " ", units ? "Idx" : "gpu");
    if (m->processes)
        printf("%11s%7s", units ? "#" : "pid", units ? "C/G" : "type");
    for (const char *s = m->select; *s; s++)
        for (const struct metric *k = metrics_of(m); k->group; k++)
            if (k->group == *s)
                printf(m->processes ? "%7s" : "%6s ", units ? k->unit : k->name);
    puts(!m->processes ? "" : units ? "    name " : "    command ");
}

/* "-" where nothing tells it. */
static const char *metric_text(const struct metric *k, const struct smi_line *l)
{
    const struct smi_field *f = smi_field_of(l, k->column);
    struct smi_cell c = f ? smi_field_get(f, l) : (struct smi_cell){ .kind = SMI_UNKNOWN };
    return c.kind == SMI_NUMBER ? arena_printf(&l->smi->facts.arena, "%.0f", c.number) : "-";
}

static void print_start(const struct monitor *m, const struct smi_line *l)
{
    char date[16], clock[16];
    strftime(date, sizeof(date), "%Y%m%d", &l->smi->time);
    strftime(clock, sizeof(clock), "%H:%M:%S", &l->smi->time);
    putchar(' ');
    if (m->date)
        printf("%-12s", date);
    if (m->time)
        printf("%-13s", clock);
    printf("%s%3zu ", m->date || m->time ? "" : " ", l->gpu->index);
}

static void print_metrics(const struct monitor *m, const struct smi_line *l)
{
    for (const char *s = m->select; *s; s++)
        for (const struct metric *k = metrics_of(m); k->group; k++)
            if (k->group == *s)
                printf(m->processes ? " %6s" : "%6s ", metric_text(k, l));
}

/* A GPU without processes has a line, too. */
static void print_process(const struct monitor *m, const struct smi_line *l)
{
    char pid[24] = "-";
    const char *name = l->process && l->process->name ? l->process->name : "-";
    if (l->process)
        snprintf(pid, sizeof(pid), "%lld", (long long)l->process->pid);
    print_start(m, l);
    printf("%10s %5s", pid, l->process ? "C" : "-");
    print_metrics(m, l);
    fputs("    ", stdout);
    print_padded(stdout, name, 15);
    putchar('\n');
}

static void print_gpu(const struct monitor *m, struct smi *s, const struct smi_gpu *g)
{
    struct smi_line l = { .smi = s, .gpu = g };
    if (!m->processes) {
        print_start(m, &l);
        print_metrics(m, &l);
        putchar('\n');
        return;
    }
    if (!g->facts->n_processes)
        print_process(m, &l);
    for (size_t k = 0; k < g->facts->n_processes; k++) {
        l.process = &g->facts->processes[k];
        print_process(m, &l);
    }
}

static int show(void *with, bool first)
{
    const struct monitor *m = with;
    CLEANUP(smi_release) struct smi s;
    int code = smi_begin(&s, &m->target);
    if (code)
        return code;
    for (int units = 0; first && units < 2; units++)
        print_header(m, units);
    for (size_t i = 0; i < s.n_gpus; i++)
        print_gpu(m, &s, &s.gpus[i]);
    return EXIT_FINE;
}

/* What was given, as long as it is a number within its bounds. */
static bool take_number(const char *text, long most, long *out)
{
    uint64_t n;
    if (!text)
        return true;
    if (!cairn_parse_u64(text, &n) || !n || n > (uint64_t)most)
        return false;
    *out = (long)n;
    return true;
}

static bool take_letters(const struct monitor *m, const char *options)
{
    for (const char *s = m->select; *s; s++) {
        const struct metric *k = metrics_of(m);
        while (k->group && k->group != *s)
            k++;
        if (!k->group)
            return false;
    }
    return !options || strspn(options, "DT") == strlen(options);
}

struct words {
    const char *delay, *count, *options, *file;
};

/* NULL, or what is wrong. */
static const char *take_words(struct monitor *m, const struct words *w)
{
    if (!take_number(w->delay, 86400, &m->seconds))
        return "-d wants seconds";
    if (!take_number(w->count, 1000000000, &m->times))
        return "-c wants a number";
    if (!*m->select || !take_letters(m, w->options))
        return m->processes ? "-s wants letters of um, -o of DT" : "-s wants letters of pucvmet, -o of DT";
    m->date = w->options && strchr(w->options, 'D');
    m->time = w->options && strchr(w->options, 'T');
    return NULL;
}

int smi_monitor(int argc, char **argv, bool linked)
{
    static char dmon[] = "smi dmon", pmon[] = "smi pmon";
    struct monitor m = { .processes = str_eq(argv[0], "pmon"), .seconds = 1 };
    struct words w = { 0 };
    m.select = m.processes ? "u" : "puc";
    const struct opt_row rows[] = {
        SMI_OPT_ID(&m.target),
        OPT_STR('d', "delay", &w.delay, "SECONDS", "again after so many seconds (default: 1)"),
        OPT_STR('c', "count", &w.count, "N", "N times; without it until Ctrl-C"),
        OPT_STR(
            's', "select", &m.select, "LETTERS",
            m.processes
                ? "the columns: u what it computes (amdgpu does not tell), m the memory it holds"
                : "the columns: p power and temperature, u utilization, c clocks, v violations, m memory, "
                  "e errors, t PCIe traffic (default: puc)"),
        OPT_STR('o', "options", &w.options, "DT", "D the date, T the time, before each line"),
        SMI_OPT_FILE(&w.file),
        SMI_OPT_ROOT(&m.target),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = m.processes ? "cairn smi pmon [options]" : "cairn smi dmon [options]",
        .about = m.processes
                     ? "Shows a line a process that computes on a GPU, again and again, as nvidia-smi does."
                     : "Shows a line a GPU, again and again, as nvidia-smi does.",
    };
    argv[0] = m.processes ? pmon : dmon;
    int r = options_parse_as(argc, argv, rows, &usage, NULL, linked ? smi_refuse_word : NULL);
    if (r != OPTIONS_GO)
        return r;
    const char *wrong = take_words(&m, &w);
    if (wrong)
        return smi_refuse_together(argv[0], wrong, linked);
    r = smi_redirect(w.file);
    return r ? r : smi_repeat(m.seconds * 1000, m.times, show, &m);
}
