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
#include "train/bench_wan.h"
#include <stdlib.h>
#include <string.h>

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
        printf("%-13s %-25s %-6s %-22s %9.3f %7.1f %-7s %6.2f  %s", r[i].group, r[i].name,
               r[i].format ? r[i].format : "-", r[i].shape, r[i].ms, small ? r[i].rate * 1000 : r[i].rate,
               small           ? "GFLOP/s"
               : r[i].is_flops ? "TFLOP/s"
                               : "GB/s",
               r[i].rate / r[i].ceiling, r[i].way ? r[i].way : "-");
        if (r[i].relative > 0)
            printf(", %.2f of the speed on the device", r[i].relative);
        putchar('\n');
    }
    puts(
        "SHARE: relative to the device's own copy, the best transfer, or the best matmul of that format, measured "
        "in this run");
}

/* The ops of a row; each has the share of the row's time. */
static void print_ops(const struct bench_result *r)
{
    double all = 0;
    for (size_t i = 0; i < r->n_ops; i++)
        all += r->ops[i].ms;
    printf("\n%s%-22s %-12s %6s %9s %7s %9s %9s  %s, %s, waiting after each op%s\n", print_color(COLOR_BOLD),
           "OP", "PART", "CALLS", "MS", "SHARE", "TFLOP/S", "GB/S", r->name, r->way,
           print_color(COLOR_PLAIN));
    for (size_t i = 0; i < r->n_ops; i++) {
        const struct bench_op *o = &r->ops[i];
        printf("%-22s %-12s %6.1f %9.3f %6.1f%% %9.1f %9.1f\n", o->op, o->part, o->calls, o->ms,
               100 * o->ms / all, o->flops / o->ms / 1e9, o->bytes / o->ms / 1e6);
    }
}

static void show(const struct gpu_info *g, const struct bench_result *r, size_t n, bool json)
{
    if (json) {
        print_report(report_bench(g, r, n));
        return;
    }
    print_results(g, r, n);
    for (size_t i = 0; i < n; i++)
        if (r[i].ops)
            print_ops(&r[i]);
}

/* What the command line asks for. */
struct ask {
    const char *device;
    struct bench_options kernels;
    struct bench_wan_options wan;
    bool any_kernel, any_wan, json;
    int limit_s;
};

static int measure(struct gpu *g, const struct ask *a, struct bench_result **out, size_t *n,
                   struct cairn_error *err)
{
    struct bench_result *wan = NULL;
    size_t n_wan = 0;
    *out = NULL;
    *n = 0;
    if ((a->any_kernel && bench_run(g, &a->kernels, out, n, err)) ||
        (a->any_wan && !*stopped && bench_wan_run(g, &a->wan, &wan, &n_wan, err)))
        return -1;
    struct bench_result *both = realloc(*out, (*n + n_wan + 1) * sizeof(**out));
    if (!both) {
        bench_results_free(wan, n_wan);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the results");
    }
    if (n_wan)
        memcpy(both + *n, wan, n_wan * sizeof(*wan));
    free(wan);
    *out = both;
    *n += n_wan;
    return 0;
}

static int run_bench(struct ask *a)
{
    struct bench_result *results = NULL;
    struct cairn_error err = { 0 };
    struct gpu *g;
    size_t n;
    stopped = stop_catch();
    a->kernels.stop = a->wan.stop = is_stopped;
    a->kernels.watch = a->wan.watch = tty_obeys(stderr) ? show_progress : NULL;
    own_env_apply(&stderr_messages);
    if (watch_calls(a->limit_s, NULL, &stderr_messages, &err) ||
        gpu_open(a->device ? a->device : "auto", &g, &err))
        return print_error(&err);
    int code = measure(g, a, &results, &n, &err);
    if (a->kernels.watch)
        fputs("\r\033[K", stderr);
    if (!code)
        show(gpu_info(g), results, n, a->json);
    bench_results_free(results, n);
    gpu_close(g);
    return code ? print_error(&err) : *stopped ? stop_end("showing the results so far") : EXIT_FINE;
}

static bool is_one_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

static bool parse_seconds(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out > 0 && *out <= 3600;
}

/* The groups: `wan` is measured only where it is asked for.  Returns the exit code, or OPTIONS_GO. */
static int read_groups(struct ask *a, char **names, int n)
{
    a->any_kernel = !n;
    for (int i = 0; i < n; i++) {
        bool wan = str_eq(names[i], "wan");
        if (!wan && !is_one_of(bench_groups, names[i]))
            return options_error("bench",
                                 "unknown bench \"%s\"; choose copy, norm, softmax, cross_entropy, adamw, "
                                 "gemm, attention, conv or wan",
                                 names[i]);
        a->any_wan = a->any_wan || wan;
        a->any_kernel = a->any_kernel || !wan;
    }
    a->kernels.groups = n ? (const char *const *)names : NULL;
    return OPTIONS_GO;
}

static int check_wan(const struct bench_wan_options *w)
{
    if (w->model && !is_one_of(bench_wan_models, w->model))
        return options_error("bench", "unknown --model \"%s\"; choose 14B, 5B, 1.3B or tiny", w->model);
    if (w->base && !is_one_of(bench_wan_bases, w->base))
        return options_error("bench", "unknown --base \"%s\"; choose device, fp8, int8 or host", w->base);
    return OPTIONS_GO;
}

int cmd_bench(int argc, char **argv)
{
    struct ask ask = { .limit_s = WATCH_DEFAULT_S };
    const char *seconds = "0.4";
    int rest, tokens = 0;
    const struct opt_row rows[] = {
        OPT_STR(0, "base", &ask.wan.base, "NAME",
                "wan: frozen blocks as device, fp8, int8 or host (default: all)"),
        OPT_STR('d', "device", &ask.device, "NAME", "cpu, hip:0, cuda:0 (default: the first device)"),
        OPT_HANG_AFTER(&ask.limit_s),
        OPT_FLAG('j', "json", &ask.json, "print JSON on stdout"),
        OPT_STR(0, "model", &ask.wan.model, "NAME",
                "wan: 14B, 5B, 1.3B or tiny (default: all; on the CPU tiny)"),
        OPT_FLAG(0, "profile", &ask.wan.profile, "wan: also print which op takes how long"),
        OPT_STR('s', "seconds", &seconds, "S", "time limit per row (default 0.4)"),
        OPT_INT(0, "tokens", &tokens, "N", "wan: length of a sample (default 7800; tiny: 64)"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis =
            "cairn bench [options] [copy|norm|softmax|cross_entropy|adamw|gemm|attention|conv|wan]...",
        .about = "Measures a device: copies between it and the host, and what share of the device's speed "
                 "cairn's kernels reach, relative to a ceiling measured in the same run. \"wan\" trains one "
                 "block of a Wan model with random weights, and is measured only when named. Ctrl-C ends it "
                 "early and shows the results so far.",
        .examples = "  cairn bench\n"
                    "  cairn bench --device cpu norm gemm\n"
                    "  cairn bench wan --model 14B --profile\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r == OPTIONS_GO)
        r = read_groups(&ask, argv + rest, argc - rest);
    if (r == OPTIONS_GO)
        r = check_wan(&ask.wan);
    if (r != OPTIONS_GO)
        return r;
    if (!parse_seconds(seconds, &ask.kernels.seconds))
        return options_error(argv[0], "--seconds takes a number greater than 0 and up to 3600");
    ask.wan.seconds = ask.kernels.seconds;
    ask.wan.tokens = (size_t)tokens;
    return run_bench(&ask);
}
