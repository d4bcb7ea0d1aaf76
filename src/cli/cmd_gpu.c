/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "chip/gfx_table.h"
#include "cli/chips.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "host/memory.h"
#include "os/terminal.h"
#include "report/chips.h"
#include "report/gpu.h"
#include "rules/gpu_libraries.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *num_or_dash(struct num v, int64_t unit, const char *suffix, char *buf, size_t size)
{
    if (!v.from)
        return "-";
    snprintf(buf, size, "%lld%s", (long long)((v.v + unit / 2) / unit), suffix);
    return buf;
}

static const char *memory_cell(const struct facts *f, const struct gpu_facts *g, char *buf, size_t size)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    char usable[24] = "-", total[24] = "-";
    struct num all = memory_total(&f->host, &a, g);
    if (g->usable_bytes.from)
        bytes_text(g->usable_bytes.v, usable);
    if (all.from)
        bytes_text(all.v, total);
    snprintf(buf, size, "%s / %s", usable, total);
    return buf;
}

static void print_note(const char *mark, enum print_color color, const char *text)
{
    printf("    %s%s%s ", print_color(color), mark, print_color(COLOR_PLAIN));
    print_wrapped(stdout, text, 5 + (int)strlen(mark), print_width());
}

static void print_details(const struct gpu_facts *g)
{
    char node[32] = "no KFD node";
    if (g->kfd_node.from)
        snprintf(node, sizeof(node), "KFD node %lld", (long long)g->kfd_node.v);
    printf("    %sPCI %s, driver ", print_color(COLOR_DIM), g->pci.s ? g->pci.s : "unknown");
    print_padded(stdout, g->driver.s ? g->driver.s : "unknown", 0);
    printf(", %s, %s%s\n", g->render_node.s ? g->render_node.s : "no render node", node,
           print_color(COLOR_PLAIN));
    printf("    %starget from %s, name from %s%s\n", print_color(COLOR_DIM), g->gfx.from ? g->gfx.from : "-",
           g->name.from ? g->name.from : "-", print_color(COLOR_PLAIN));
    if (g->usable_reason)
        print_note("usable:", COLOR_DIM, g->usable_reason);
    char size[24];
    for (size_t i = 0; i < g->n_processes; i++) {
        const char *name = g->processes[i].name ? g->processes[i].name : "another user's process";
        fputs("    used by ", stdout);
        print_padded(stdout, name, 0);
        printf(" (pid %lld): %s\n", (long long)g->processes[i].pid,
               bytes_text(g->processes[i].vram_bytes, size));
    }
}

/* On a narrow terminal the name gets the remaining columns, and clock and kind (shown by -v) are omitted. */
struct layout {
    bool wide;
    int name;
};

static struct layout layout_for(int width)
{
    enum { WIDE = 99, WIDE_NAME = 29, OTHERS = 53, LEAST_NAME = 12 };
    if (width >= WIDE)
        return (struct layout){ true, WIDE_NAME };
    return (struct layout){ false, width - OTHERS > LEAST_NAME ? width - OTHERS : LEAST_NAME };
}

static void print_gpu(const struct facts *f, size_t i, struct layout l, bool verbose)
{
    const struct gpu_facts *g = &f->gpus[i];
    char index[16] = "-", memory[56], busy[16], temp[16], power[16], clock[16];
    if (g->hip_index >= 0)
        snprintf(index, sizeof(index), "%d%s", g->hip_index,
                 f->n_gpus > 1 && (int)i == f->default_gpu ? "*" : "");
    const char *kind = gpu_kind_name(g->kind);
    printf("%-3s %s%-8s%s ", index, print_color(g->rocm_capable ? COLOR_GREEN : COLOR_RED),
           g->gfx.s ? g->gfx.s : "unknown", print_color(COLOR_PLAIN));
    print_cut(stdout, g->name.s ? g->name.s : "unknown AMD GPU", l.name);
    if (l.wide)
        printf(" %-10s", kind ? kind : "-");
    printf(" %-19s %5s %6s %6s", memory_cell(f, g, memory, sizeof(memory)),
           num_or_dash(g->busy_percent, 1, "%", busy, sizeof(busy)),
           num_or_dash(g->temperature_mc, 1000, " C", temp, sizeof(temp)),
           num_or_dash(g->power_uw, 1000000, " W", power, sizeof(power)));
    if (l.wide)
        printf(" %5s", num_or_dash(g->clock_mhz, 1, "", clock, sizeof(clock)));
    putchar('\n');
    if (verbose && !l.wide)
        printf("    %s%s%s\n", print_color(COLOR_DIM), kind ? kind : "integrated or discrete: unknown",
               print_color(COLOR_PLAIN));
    if (verbose)
        print_details(g);
    for (size_t k = 0; k < g->problems.n; k++)
        print_note("problem:", COLOR_YELLOW, g->problems.text[k]);
}

static void print_host(const struct facts *f)
{
    CLEANUP(str_release) struct str text = { 0 };
    char total[24], available[24];
    str_addf(&text, "host: Linux %s", f->host.kernel.s ? f->host.kernel.s : "(version unknown)");
    if (f->host.memory_total_bytes.from)
        str_addf(&text, ", RAM %s", bytes_text(f->host.memory_total_bytes.v, total));
    if (f->host.memory_available_bytes.from)
        str_addf(&text, " (%s available)", bytes_text(f->host.memory_available_bytes.v, available));
    if (f->host.container.s)
        str_addf(&text, ", in a container (%s)", f->host.container.s);
    print_wrapped(stdout, text.s, 4, print_width());
    for (size_t i = 0; i < f->problems.n; i++)
        print_note("problem:", COLOR_YELLOW, f->problems.text[i]);
}

/* They depend only on the chip: one line per kind of chip. */
static void print_libraries(const struct facts *f, const struct gpu_libraries *libraries, struct arena *a)
{
    for (size_t i = 0; i < f->n_gpus; i++) {
        bool told = !libraries[i].n;
        for (size_t k = 0; k < i && !told; k++)
            told = libraries[k].n && !strcmp(f->gpus[k].gfx.s, f->gpus[i].gfx.s);
        if (told)
            continue;
        printf("%s: ", f->gpus[i].gfx.s);
        print_wrapped(stdout, gpu_libraries_text(&libraries[i], a), 4, print_width());
    }
}

static void print_table(const struct facts *f, const struct gpu_libraries *libraries, struct arena *a,
                        bool verbose)
{
    if (!f->n_gpus) {
        print_wrapped(
            stdout,
            "No AMD GPU found: no GPU node in KFD, no AMD device in /sys/class/drm or on the PCI bus.", 0,
            print_width());
        print_host(f);
        return;
    }
    struct layout l = layout_for(print_width());
    printf("%s%-3s %-8s %-*s", print_color(COLOR_BOLD), "GPU", "CHIP", l.name, "NAME");
    if (l.wide)
        printf(" %-10s", "KIND");
    printf(" %-19s %5s %6s %6s%s%s\n", "USABLE / TOTAL", "BUSY", "TEMP", "POWER", l.wide ? "   MHZ" : "",
           print_color(COLOR_PLAIN));
    for (size_t i = 0; i < f->n_gpus; i++)
        print_gpu(f, i, l, verbose);
    /* They are cairn's own and do not matter for PyTorch. */
    if (verbose || !facts_torch(f))
        print_libraries(f, libraries, a);
    print_host(f);
    if (f->default_gpu >= 0 && f->n_gpus > 1)
        puts("* the GPU that cairn would train on");
}

static int show_once(const struct facts_options *o, bool json, bool verbose)
{
    CLEANUP(facts_release) struct facts f;
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    if (facts_read(&f, o, &err))
        return print_error(&err);
    const struct gpu_libraries *libraries = gpu_libraries_find(&f, &a);
    if (json)
        print_report(report_gpus(&f, libraries));
    else
        print_table(&f, libraries, &a, verbose);
    return f.n_gpus ? EXIT_FINE : EXIT_LACKS;
}

/* Like watch(1): redraws the screen in place until Ctrl-C. */
static int show_again(const struct facts_options *o, bool json, bool verbose, double seconds)
{
    const volatile sig_atomic_t *stopped = stop_catch();
    bool terminal = tty_obeys(stdout) && !json;
    int code = EXIT_FINE;
    while (!*stopped) {
        if (terminal)
            fputs("\033[H\033[2J", stdout);
        code = show_once(o, json, verbose);
        if (code == EXIT_TROUBLE || fflush(stdout))
            break;
        struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
        if (!*stopped)
            nanosleep(&pause, NULL);
    }
    stop_end_line();
    return code;
}

static bool parse_seconds(const char *text, double *out)
{
    char end;
    *out = 1;
    return !*text || (sscanf(text, "%lf%c", out, &end) == 1 && *out >= 0.1 && *out <= 86400);
}

int cmd_gpu(int argc, char **argv)
{
    const char *root = NULL, *watch = NULL;
    bool json = false, chips = false, markdown = false, verbose = false;
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_FLAG('v', "verbose", &verbose,
                 "also show addresses, processes that use memory, and the source of each fact"),
        OPT_OPTIONAL('w', "watch", &watch, "SECONDS", "repeat every second, or every SECONDS, until Ctrl-C"),
        OPT_FLAG('c', "chips", &chips, "print the table of all gfx targets instead"),
        OPT_FLAG(0, "markdown", &markdown, "with --chips: as Markdown"),
        OPT_STR(0, "root", &root, "DIR", "read the tree DIR instead of this machine's /"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn gpu [options]",
        .about = "Lists the AMD GPUs: chip, the memory that a training job can really use, load, problems, "
                 "and the libraries that cairn would compute with. It reads sysfs and installed files, and "
                 "runs and loads nothing.",
        .examples = "  cairn gpu --json | jq .gpus[0].gfx\n"
                    "  cairn gpu --watch 2\n"
                    "  cairn gpu --chips\n",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    if (markdown && !chips)
        return options_error(argv[0], "--markdown goes with --chips");
    if (watch && chips)
        return options_error(argv[0], "--chips and --watch do not go together");
    double seconds = 0;
    if (watch && !parse_seconds(watch, &seconds))
        return options_error(argv[0], "--watch takes seconds between 0.1 and 86400, not \"%s\"", watch);
    if (chips)
        return json ? print_report(report_chips()) : (markdown ? chips_print_markdown : chips_print_table)(),
               EXIT_FINE;
    struct facts_options o = { .root = root, .env = (const char *const *)environ, .parts = FACTS_ALL };
    return watch ? show_again(&o, json, verbose, seconds) : show_once(&o, json, verbose);
}
