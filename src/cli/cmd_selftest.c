/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/selftest_print.h"
#include "cli/stop.h"
#include "gpu/pool.h"
#include "start/own_env.h"
#include "start/watch_calls.h"
#include <stdlib.h>

struct run {
    const char *device, *only; /* NULL: all */
    bool debug;
    struct selftest *tests;
    size_t n;
    bool wrong;
};

static const volatile sig_atomic_t *stopped;

static bool is_stopped(void)
{
    return *stopped != 0;
}

static int test_open(struct run *r, struct gpu *g, struct selftest *t, struct cairn_error *err)
{
    bool wrong = false;
    t->info = *gpu_info(g);
    if (check_all(g, r->only, is_stopped, &t->results, &t->n, err))
        return -1;
    t->lost = gpu_lost(g);
    for (size_t i = 0; i < t->n; i++)
        wrong |= !t->results[i].ok;
    /* A device that has failed already has nothing to add. */
    t->has_conversions = !r->only && !*stopped && !wrong;
    if (t->has_conversions && conversions_run(g, t->conversions, err))
        return -1;
    for (int i = 0; i < CONVERSIONS; i++)
        for (int p = 0; p < CONVERSION_PATHS; p++)
            wrong |= t->conversions[i].wrong[p] != 0;
    r->wrong |= wrong;
    return 0;
}

static int test_device(struct run *r, struct arena *a, const char *name, struct cairn_error *err)
{
    struct gpu *g;
    if (gpu_open(name, &g, err))
        return -1;
    /* Each array by itself, so that what a kernel writes beside it is not another array's. */
    pool_set_direct(gpu_pool(g));
    int code = r->debug ? gpu_set_debug(g, err) : 0;
    if (!code)
        code = test_open(r, g, ARENA_PUSH(a, r->tests, r->n), err);
    gpu_close(g);
    return code;
}

static int test_devices(struct run *r, struct arena *a, struct cairn_error *err)
{
    struct gpu_info *infos;
    char **reasons;
    size_t n, n_reasons;
    if (r->device)
        return test_device(r, a, r->device, err);
    gpu_list(a, &infos, &n, &reasons, &n_reasons);
    for (size_t i = 0; i < n && !*stopped; i++)
        if (test_device(r, a, infos[i].name, err))
            return -1;
    return 0;
}

static void run_release(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->tests[i].results);
}

static int run_tests(const char *device, const char *only, bool debug, int limit_s, bool json)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(run_release) struct run r = { .device = device, .only = only, .debug = debug };
    struct cairn_error err = { 0 };
    stopped = stop_catch();
    own_env_apply(&stderr_messages);
    int code = watch_calls(limit_s, NULL, &stderr_messages, &err) || test_devices(&r, &a, &err);
    if (*stopped)
        return stop_end("nothing was found out");
    if (code)
        return print_error(&err);
    if (!r.tests[0].n)
        return options_error("selftest", "no kernel has \"%s\" in its name", only);
    for (size_t i = 0; i < r.n && !json; i++)
        selftest_print(&r.tests[i]);
    if (json)
        print_report(report_selftest(r.tests, r.n));
    return r.wrong ? EXIT_TROUBLE : EXIT_FINE;
}

int cmd_selftest(int argc, char **argv)
{
    const char *device = NULL, *only = NULL;
    bool debug = false, json = false;
    int limit_s = WATCH_DEFAULT_S;
    const struct opt_row rows[] = {
        OPT_STR('d', "device", &device, "NAME", "only this device: cpu, hip:0, cuda:0, or auto"),
        OPT_STR(0, "only", &only, "KERNEL", "only kernels with this in their name"),
        OPT_FLAG(0, "debug", &debug, "kernels check indices and numbers, and say where a fault is"),
        OPT_HANG_AFTER(&limit_s),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn selftest [options]",
        .about =
            "Runs every kernel of cairn on every device found and compares the results with plain definitions in "
            "double precision. The table names chip, driver and library: paste it into a report. Exit status 1 "
            "when a result is wrong.",
        .examples = "  cairn selftest\n"
                    "  cairn selftest --device hip:0 --json > report.json\n",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    return r != OPTIONS_GO ? r : run_tests(device, only, debug, limit_s, json);
}
