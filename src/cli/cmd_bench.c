/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "config.h"
#include "os/terminal.h"
#include "report/bench.h"
#include "start/own_env.h"
#include "start/watch_calls.h"
#include <stdlib.h>

static const volatile sig_atomic_t *stopped;

static bool is_stopped(void)
{
    return *stopped != 0;
}

/* The progress line is rewritten in place and erased at the end. */
static void show_progress(const char *name, const char *format, size_t done, size_t all)
{
    fprintf(stderr, "\rbench  %zu of %zu  %s %s\033[K", done + 1, all, name, format);
    fflush(stderr);
}

static void print_results(const struct gpu_info *g, const struct bench_result *r, size_t n)
{
    printf("%s%s%s  ", print_color(COLOR_BOLD), g->name, print_color(COLOR_PLAIN));
    print_padded(stdout, g->title, 0);
    printf("  %s, cairn %s\n", g->arch, CAIRN_VERSION);
    print_runtime(stdout, g, "");
    printf("%s%-13s %-25s %-6s %-22s %9s %15s %6s  %s%s\n", print_color(COLOR_BOLD), "BENCH", "NAME",
           "FORMAT", "SHAPE", "MS", "RATE", "SHARE", "BY", print_color(COLOR_PLAIN));
    for (size_t i = 0; i < n; i++) {
        bool small = r[i].is_flops && r[i].rate < 1;
        printf("%-13s %-25s %-6s %-22s %9.3f %7.1f %-7s %6.2f  %s\n", r[i].group, r[i].name,
               r[i].format ? r[i].format : "-", r[i].shape, r[i].ms, small ? r[i].rate * 1000 : r[i].rate,
               small           ? "GFLOP/s"
               : r[i].is_flops ? "TFLOP/s"
                               : "GB/s",
               r[i].rate / r[i].ceiling, r[i].way ? r[i].way : "-");
    }
    puts(
        "SHARE: relative to the device's own copy, the best transfer, or the best matmul of that format, measured "
        "in this run");
}

static void show(const struct gpu_info *g, const struct bench_result *r, size_t n, bool json)
{
    if (json)
        print_report(report_bench(g, r, n));
    else
        print_results(g, r, n);
}

static int run_bench(const char *device, struct bench_options *o, int limit_s, bool json)
{
    CLEANUP(mem_free) struct bench_result *results = NULL;
    struct cairn_error err = { 0 };
    struct gpu *g;
    size_t n;
    stopped = stop_catch();
    o->stop = is_stopped;
    o->watch = tty_obeys(stderr) ? show_progress : NULL;
    own_env_apply(&stderr_messages);
    if (watch_calls(limit_s, NULL, &stderr_messages, &err) || gpu_open(device ? device : "auto", &g, &err))
        return print_error(&err);
    int code = bench_run(g, o, &results, &n, &err);
    if (o->watch)
        fputs("\r\033[K", stderr);
    if (!code)
        show(gpu_info(g), results, n, json);
    gpu_close(g);
    return code ? print_error(&err) : *stopped ? stop_end("showing the results so far") : EXIT_FINE;
}

static bool is_group(const char *name)
{
    for (int i = 0; bench_groups[i]; i++)
        if (str_eq(bench_groups[i], name))
            return true;
    return false;
}

static bool parse_seconds(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out > 0 && *out <= 3600;
}

int cmd_bench(int argc, char **argv)
{
    const char *device = NULL, *seconds = "0.4";
    bool json = false;
    int rest, limit_s = WATCH_DEFAULT_S;
    const struct opt_row rows[] = {
        OPT_STR('d', "device", &device, "NAME", "cpu, hip:0, cuda:0 (default: the first device)"),
        OPT_HANG_AFTER(&limit_s),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_STR('s', "seconds", &seconds, "S", "time limit per row (default 0.4)"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn bench [options] [copy|norm|softmax|cross_entropy|adamw|gemm|attention]...",
        .about = "Measures a device: copies between it and the host, and what share of the device's speed "
                 "cairn's kernels reach, relative to a ceiling measured in the same run. Ctrl-C ends it "
                 "early and shows the results so far.",
        .examples = "  cairn bench\n"
                    "  cairn bench --device cpu norm gemm\n",
        .mixed = true,
    };
    struct bench_options o = { 0 };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    for (int i = rest; i < argc; i++)
        if (!is_group(argv[i]))
            return options_error(
                argv[0],
                "unknown bench \"%s\"; choose copy, norm, softmax, cross_entropy, adamw, gemm or attention",
                argv[i]);
    if (!parse_seconds(seconds, &o.seconds))
        return options_error(argv[0], "--seconds takes a number greater than 0 and up to 3600");
    o.groups = rest < argc ? (const char *const *)&argv[rest] : NULL;
    return run_bench(device, &o, limit_s, json);
}
