/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/env_print.h"
#include "cli/machine.h"
#include "cli/print.h"
#include "run/known_good.h"

struct env_options {
    struct machine_options machine;
    const char *trainer, *shell, *os, *explain;
    int gpu;
    bool json, debug;
    struct opt_list keep, with;
    enum shell dialect;
};

static int explain(const struct env_options *o, const struct facts *f, const struct plan *p)
{
    const struct env_explanation e = env_explain(o->explain, f, p);
    if (o->json)
        print_report(report_env_name(&e));
    else
        env_explain_text(&e);
    return e.row ? EXIT_FINE : EXIT_TROUBLE;
}

static int show(const struct env_options *o, const struct facts *f, const struct plan *p)
{
    if (o->explain && *o->explain)
        return explain(o, f, p);
    if (o->json)
        print_report(report_env(p));
    else
        env_print_shell(f, p, o->dialect);
    return p->gpu ? EXIT_FINE : EXIT_LACKS;
}

static int plan_and_show(const struct env_options *o, struct facts *f)
{
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct plan_options po = {
        .gpu = o->gpu,
        .debug = o->debug,
        .windows = str_eq(o->os, "windows"),
        .trainer = o->trainer,
        .keep = o->keep.item,
        .with = o->with.item,
    };
    struct plan plan;
    if (plan_build(f, &po, &a, &plan, &err))
        return print_error(&err);
    known_good_add(f, &po, &a, &plan);
    return show(o, f, &plan);
}

static int run_env(const struct env_options *o)
{
    CLEANUP(facts_release) struct facts f;
    struct cairn_error err = { 0 };
    if (machine_read(&o->machine, &f, &err))
        return print_error(&err);
    return plan_and_show(o, &f);
}

static int check_words(struct env_options *o, const char *command)
{
    if (o->shell && !shell_find(o->shell, &o->dialect))
        return options_error(
            command,
            "--shell takes sh (bash, zsh), fish, powershell (pwsh), cmd, dotenv or json, not "
            "\"%s\"",
            o->shell);
    if (o->os && !str_eq(o->os, "linux") && !str_eq(o->os, "windows"))
        return options_error(command, "--os takes linux or windows, not \"%s\"", o->os);
    if (!o->shell && str_eq(o->os, "windows"))
        o->dialect = SHELL_POWERSHELL;
    o->json |= o->dialect == SHELL_JSON;
    return OPTIONS_GO;
}

static int run_command(struct env_options *o, int argc, char **argv)
{
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &o->json, "print JSON on stdout"),
        OPT_OPTIONAL('e', "explain", &o->explain, "NAME", "explain one variable, or all of them"),
        OPT_INT('g', "gpu", &o->gpu, "N", "plan for GPU N only, and hide the others"),
        OPT_STR('t', "trainer", &o->trainer, "NAME", "plan for this trainer"),
        OPT_FLAG('d', "debug", &o->debug, "add variables that help to find an error; training becomes slow"),
        OPT_STR('s', "shell", &o->shell, "NAME",
                "output for sh (bash, zsh), fish, powershell (pwsh), cmd, dotenv or json"),
        OPT_LIST(0, "keep", &o->keep, "NAME", "keep this variable even if it does harm; may be repeated"),
        OPT_LIST(0, "with", &o->with, "NAME=VALUE", "add this variable; may be repeated"),
        OPT_STR(0, "os", &o->os, "NAME", "plan for linux or windows"),
        OPT_STR(0, "gfx", &o->machine.gfx, "NAME", "gfx target to assume, such as gfx1151"),
        OPT_MACHINE(&o->machine),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn env [options]",
        .about = "Prints the environment for a trainer on this machine, with the reason for each variable: "
                 "what to set, which of your variables to remove because they do harm, and which to keep. "
                 "On a supported card with a matching PyTorch that is little or nothing.",
        .examples = "  eval \"$(cairn env)\"\n"
                    "  cairn env --shell dotenv > .env\n"
                    "  cairn env --explain HSA_OVERRIDE_GFX_VERSION\n",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    r = check_words(o, argv[0]);
    if (r != OPTIONS_GO)
        return r;
    if (o->explain && !*o->explain)
        return o->json ? print_report(report_env_names()) : env_names_text(), EXIT_FINE;
    return run_env(o);
}

int cmd_env(int argc, char **argv)
{
    struct env_options o = { .gpu = -1 };
    int code = run_command(&o, argc, argv);
    opt_list_release(&o.keep);
    opt_list_release(&o.with);
    return code;
}
