/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_monitor.h"

#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/smi_run.h"
#include "smi/monitor.h"
#include <stdio.h>
#include <string.h>

struct monitor {
    struct smi_target target;
    struct smi_monitor columns;
    long seconds, times;
};

static int show(void *with, bool first)
{
    const struct monitor *m = with;
    CLEANUP(smi_release) struct smi s;
    CLEANUP(str_release) struct str text = { 0 };
    int code = smi_begin(&s, &m->target);
    if (code)
        return code;
    smi_monitor_text(&m->columns, &s, first, &text);
    fputs(text.s, stdout);
    return EXIT_FINE;
}

/* The argument, if it is a number within its bounds. */
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

struct words {
    const char *delay, *count, *options, *file;
};

/* NULL, or the error. */
static const char *take_words(struct monitor *m, const struct words *w)
{
    if (!take_number(w->delay, 86400, &m->seconds))
        return "-d takes seconds";
    if (!take_number(w->count, 1000000000, &m->times))
        return "-c takes a number";
    if (!smi_monitor_has(&m->columns) || (w->options && w->options[strspn(w->options, "DT")]))
        return m->columns.processes ? "-s takes letters of um, -o of DT"
                                    : "-s takes letters of pucvmet, -o of DT";
    m->columns.date = w->options && strchr(w->options, 'D');
    m->columns.time = w->options && strchr(w->options, 'T');
    return NULL;
}

int smi_monitor(int argc, char **argv, bool linked)
{
    static char dmon[] = "smi dmon", pmon[] = "smi pmon";
    struct monitor m = { .columns.processes = str_eq(argv[0], "pmon"), .seconds = 1 };
    struct words w = { 0 };
    m.columns.select = m.columns.processes ? "u" : "puc";
    const struct opt_row rows[] = {
        SMI_OPT_ID(&m.target),
        OPT_STR('d', "delay", &w.delay, "SECONDS", "seconds between two reports (default: 1)"),
        OPT_STR('c', "count", &w.count, "N", "number of reports; without it until Ctrl-C"),
        OPT_STR(
            's', "select", &m.columns.select, "LETTERS",
            m.columns.processes
                ? "the columns: u utilization (amdgpu does not report it), m memory"
                : "the columns: p power and temperature, u utilization, c clocks, v violations, m memory, "
                  "e errors, t PCIe traffic (default: puc)"),
        OPT_STR('o', "options", &w.options, "DT", "put the date (D) or the time (T) before each line"),
        SMI_OPT_FILE(&w.file),
        SMI_OPT_ROOT(&m.target),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = m.columns.processes ? "cairn smi pmon [options]" : "cairn smi dmon [options]",
        .about = m.columns.processes
                     ? "Prints one line per process that computes on a GPU, repeatedly, as nvidia-smi does."
                     : "Prints one line per GPU, repeatedly, as nvidia-smi does.",
    };
    argv[0] = m.columns.processes ? pmon : dmon;
    int r = options_parse_as(argc, argv, rows, &usage, NULL, linked ? smi_refuse_word : NULL);
    if (r != OPTIONS_GO)
        return r;
    const char *wrong = take_words(&m, &w);
    if (wrong)
        return smi_refuse_together(argv[0], wrong, linked);
    r = smi_redirect(w.file);
    return r ? r : smi_repeat(m.seconds * 1000, m.times, show, &m);
}
