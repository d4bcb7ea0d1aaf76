/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/self_env.h"
#include "cli/stop.h"
#include "cli/watch_calls.h"
#include "config.h"
#include "gpu/bench.h"
#include <stdlib.h>

static const volatile sig_atomic_t *stopped;

static bool is_stopped(void)
{
    return *stopped != 0;
}

static void print_results(const struct gpu_info *g, const struct bench_result *r, size_t n)
{
    printf("%s%s%s  ", print_color(COLOR_BOLD), g->name, print_color(COLOR_PLAIN));
    print_padded(stdout, g->title, 0);
    printf("  %s, cairn %s\n", g->arch, CAIRN_VERSION);
    printf("%s%-10s %-26s %-6s %-34s %9s %14s %6s%s\n", print_color(COLOR_BOLD), "BENCH", "NAME", "FORMAT",
           "SHAPE", "MS", "RATE", "SHARE", print_color(COLOR_PLAIN));
    for (size_t i = 0; i < n; i++) {
        bool small = r[i].is_flops && r[i].rate < 1;
        printf("%-10s %-26s %-6s %-34s %9.3f %7.1f %-7s %5.2f\n", r[i].group, r[i].name,
               r[i].format ? r[i].format : "-", r[i].shape, r[i].ms, small ? r[i].rate * 1000 : r[i].rate,
               small           ? "GFLOP/s"
               : r[i].is_flops ? "TFLOP/s"
                               : "GB/s",
               r[i].rate / r[i].ceiling);
    }
    puts(
        "SHARE: of the device's own copy, the best transfer, or the best row of that format, measured in this run");
}

static void print_results_json(const struct gpu_info *g, const struct bench_result *r, size_t n)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "version", CAIRN_VERSION);
    json_add_text(top, "device", g->name);
    json_add_text(top, "title", g->title);
    json_add_text(top, "arch", g->arch);
    struct json *results = json_add_array(top, "results");
    for (size_t i = 0; i < n; i++) {
        struct json *row = json_add_object(results, NULL);
        json_add_text(row, "bench", r[i].group);
        json_add_text(row, "name", r[i].name);
        json_add_text(row, "format", r[i].format);
        json_add_text(row, "shape", r[i].shape);
        json_add_real(row, "time_ms", r[i].ms);
        json_add_text(row, "unit", r[i].is_flops ? "TFLOP/s" : "GB/s");
        json_add_real(row, "rate", r[i].rate);
        json_add_real(row, "ceiling", r[i].ceiling);
        json_add_real(row, "ratio", r[i].rate / r[i].ceiling);
    }
    json_print(top, stdout);
}

static int run_bench(const char *device, const char *group, int limit_s, bool json)
{
    CLEANUP(mem_free) struct bench_result *results = NULL;
    struct cairn_error err = { 0 };
    struct gpu *g;
    size_t n;
    stopped = stop_catch();
    self_env_apply();
    if (watch_calls(limit_s, &err) || gpu_open(device ? device : "auto", &g, &err))
        return print_error(&err);
    int code = bench_run(g, group, is_stopped, &results, &n, &err);
    if (!code && !*stopped)
        (json ? print_results_json : print_results)(gpu_info(g), results, n);
    gpu_close(g);
    return *stopped ? stop_end() : code ? print_error(&err) : EXIT_FINE;
}

static bool is_group(const char *name)
{
    for (int i = 0; bench_groups[i]; i++)
        if (str_eq(bench_groups[i], name))
            return true;
    return false;
}

int cmd_bench(int argc, char **argv)
{
    const char *device = NULL;
    bool json = false;
    int rest, limit_s = WATCH_DEFAULT_S;
    const struct opt_row rows[] = {
        OPT_STR('d', "device", &device, "NAME",
                "this device: cpu, hip:0, cuda:0; the first if none is given"),
        WATCH_OPTION(&limit_s),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn bench [options] [copy|norm|gemm|attention]",
        .about =
            "Measures a device: copies between it and the host, and what share of the device's own speed cairn's "
            "kernels reach, each against a ceiling measured in the same run.",
        .examples = "  cairn bench\n"
                    "  cairn bench --device cpu norm\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest > 1)
        return options_error(argv[0], "one name at a time");
    const char *group = rest < argc ? argv[rest] : NULL;
    if (group && !is_group(group))
        return options_error(argv[0], "there is no bench \"%s\"; copy, norm, gemm and attention are there",
                             group);
    return run_bench(device, group, limit_s, json);
}
