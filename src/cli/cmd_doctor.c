/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/doctor_print.h"
#include "cli/machine.h"
#include "cli/print.h"
#include "rules/checks.h"
#include "run/probe.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct doctor_options {
    struct machine_options machine;
    const char *only;
    int gpu, timeout_s;
    bool json, list, verbose, all, probe;
};

/* Exit code: 3 without a GPU that KFD can use, 1 if a check fails, else 0. */
static int exit_code(const struct doctor_view *v)
{
    enum verdict verdict = doctor_verdict(v);
    if (v->probe && v->probe->reality != VERDICT_UNKNOWN && verdict != VERDICT_BROKEN)
        return EXIT_FINE; /* the probe worked */
    if (v->doctor->lacks_gpu)
        return EXIT_LACKS;
    return verdict == VERDICT_BROKEN ? EXIT_TROUBLE : EXIT_FINE;
}

static int show(const struct doctor_options *o, const struct doctor *d, const struct probe_report *probe)
{
    const struct doctor_view v = { .doctor = d, .probe = probe, .only = o->only, .all = o->all };
    if (o->json)
        print_report(report_doctor(&v));
    else
        doctor_print_text(&v, o->verbose);
    return exit_code(&v);
}

/* Ends by the signal itself, so that a shell loop stops too. */
static int stop_by(int sig)
{
    raise(sig);
    return 128 + sig;
}

static int probe_and_show(const struct doctor_options *o, const struct facts *f, const struct plan *p,
                          const struct doctor *d, struct arena *a)
{
    const struct probe_request request = {
        .facts = f, .plan = p, .doctor = d, .gpu = o->gpu, .timeout_s = o->timeout_s
    };
    struct cairn_error err = { 0 };
    CLEANUP(probe_release) struct probe probe = { 0 };
    struct probe_report report;
    if (probe_examine(&request, a, &probe, &report, &err))
        return print_error(&err);
    return probe.end == PROBE_INTERRUPTED ? stop_by(probe.code) : show(o, d, &report);
}

static int examine(const struct doctor_options *o, struct facts *f, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct plan plan = { 0 };
    const struct plan_options po = { .gpu = o->gpu };
    if (plan_build(f, &po, a, &plan, &err))
        return print_error(&err);
    struct doctor d;
    doctor_run(f, &plan, a, &d);
    return o->probe ? probe_and_show(o, f, &plan, &d, a) : show(o, &d, NULL);
}

static int run_doctor(const struct doctor_options *o)
{
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    if (machine_read(&o->machine, &f, &err))
        return print_error(&err);
    CLEANUP(arena_release) struct arena a = { 0 };
    return examine(o, &f, &a);
}

#define GROUPS "hardware, kernel, permissions, memory, rocm, pytorch, libraries, environment or disk"

/* Other names of groups. */
static const char *group_name(const char *word)
{
    static const char *const other[][2] = { { "torch", "pytorch" }, { "env", "environment" } };
    for (size_t i = 0; word && i < ARRAY_LEN(other); i++)
        if (!strcmp(word, other[i][0]))
            return other[i][1];
    return word;
}

static int refuse(const struct doctor_options *o, const char *command)
{
    if (o->only && !checks_has_group(o->only))
        return options_error(command, "--only takes " GROUPS ", not \"%s\"", o->only);
    if (o->probe && o->list)
        return options_error(command, "--list and --probe do not go together");
    if (o->probe && o->machine.root && !o->machine.torch_dir)
        return options_error(command,
                             "--probe runs this machine's own Python; with --root it needs --torch too");
    if (o->timeout_s < 1)
        return options_error(command, "--probe-timeout takes at least one second");
    return OPTIONS_GO;
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options o = { .gpu = -1, .timeout_s = 120 };
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &o.json, "print JSON on stdout"),
        OPT_FLAG('v', "verbose", &o.verbose, "show every check, not only findings"),
        OPT_FLAG('a', "all", &o.all, "like -v, with the checks that do not apply here"),
        OPT_FLAG('l', "list", &o.list, "list every check, what it reads, and its source"),
        OPT_STR(0, "only", &o.only, "GROUP", "show every check of one group: " GROUPS),
        OPT_FLAG('p', "probe", &o.probe, "also run PyTorch once, and compare the result with the prediction"),
        OPT_INT(0, "probe-timeout", &o.timeout_s, "SECONDS", "time limit for --probe (default 120)"),
        OPT_INT('g', "gpu", &o.gpu, "N", "judge for GPU N, in HIP's numbering"),
        OPT_STR(0, "gfx", &o.machine.gfx, "NAME", "gfx target to assume, such as gfx1151"),
        OPT_MACHINE(&o.machine),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn doctor [options]",
        .about = "Checks everything that training with PyTorch on an AMD GPU needs, from the card to the "
                 "environment. Each finding has a reason and, if a command fixes it, the command. Exit "
                 "status: 0 if nothing fails, 1 if something does, 3 if there is no GPU that ROCm can use.",
        .examples =
            "  cairn doctor\n  cairn doctor --only memory\n  cairn doctor --probe\n  cairn doctor --json | "
            "jq -r .summary\n",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    o.only = group_name(o.only);
    r = refuse(&o, argv[0]);
    if (r != OPTIONS_GO)
        return r;
    if (o.list)
        return o.json ? print_report(report_checks(o.only)) : doctor_list_text(o.only), EXIT_FINE;
    return run_doctor(&o);
}
