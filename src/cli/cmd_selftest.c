/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/selftest_print.h"
#include "cli/stop.h"
#include "config.h"
#include "host/selftest_record.h"
#include "start/own_env.h"
#include "start/watch_calls.h"
#include <time.h>

static const volatile sig_atomic_t *stopped;

static bool is_stopped(void)
{
    return *stopped != 0;
}

/* For `cairn doctor`, which tells what is proven on a GPU. */
static void record(const struct selftest *t)
{
    struct cairn_error err = { 0 };
    char today[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(today, sizeof(today), "%Y-%m-%d", gmtime_r(&now, &tm));
    struct selftest_record r = { CAIRN_VERSION, t->info.library, today, !t->wrong && !t->lost };
    if (t->info.api == GPU_API_HIP && selftest_record_write(t->info.arch, &r, &err))
        message_say(&stderr_messages, "the result is not kept for cairn doctor: %s", err.msg);
}

static int run_tests(const struct selftest_options *o, int limit_s, bool json)
{
    CLEANUP(selftest_release) struct selftests t = { 0 };
    struct cairn_error err = { 0 };
    stopped = stop_catch();
    own_env_apply(&stderr_messages);
    int code = watch_calls(limit_s, NULL, &stderr_messages, &err) || selftest_run(o, &t, &err);
    if (*stopped)
        return stop_end("no result");
    if (code)
        return print_error(&err);
    if (!t.device[0].n)
        return options_error("selftest", "no kernel has \"%s\" in its name", o->only);
    for (size_t i = 0; i < t.n && !o->only && !o->debug; i++)
        record(&t.device[i]);
    for (size_t i = 0; i < t.n && !json; i++)
        selftest_print(&t.device[i]);
    if (json)
        print_report(report_selftest(t.device, t.n));
    return t.wrong ? EXIT_TROUBLE : EXIT_FINE;
}

int cmd_selftest(int argc, char **argv)
{
    struct selftest_options o = { .is_stopped = is_stopped };
    bool json = false;
    int limit_s = WATCH_DEFAULT_S;
    const struct opt_row rows[] = {
        OPT_STR('d', "device", &o.device, "NAME", "only this device: cpu, hip:0, cuda:0, or auto"),
        OPT_STR(0, "only", &o.only, "KERNEL", "only kernels whose name contains this"),
        OPT_FLAG(0, "debug", &o.debug, "use kernels that check indices and find NaN and Inf"),
        OPT_HANG_AFTER(&limit_s),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn selftest [options]",
        .about = "Runs every kernel of cairn on every device and compares the results with definitions in "
                 "double precision. The table names chip, driver and library, for bug reports. Exit "
                 "status: 1 if a result is wrong.",
        .examples = "  cairn selftest\n"
                    "  cairn selftest --device hip:0 --json > report.json\n",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    return r != OPTIONS_GO ? r : run_tests(&o, limit_s, json);
}
