/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/diagnose_print.h"
#include "cli/machine.h"
#include "cli/messages.h"
#include "cli/print.h"
#include "report/diagnosis.h"
#include "run/diagnose_input.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct diagnose_options {
    struct machine_options machine;
    const char *gfx, *exit_text;
    bool json, list, markdown, no_machine, hung;
    int64_t exit_code;
};

static void show_text(const struct diagnosis *d, const struct gpu_calls *c)
{
    if (d)
        diagnose_print_text(d);
    if (d && c->n)
        putchar('\n');
    diagnose_print_calls(c);
}

static int show(const struct diagnose_options *o, const struct diagnosis *d, const struct gpu_calls *c)
{
    if (o->json)
        print_report(report_diagnosis(d, c));
    else
        show_text(d, c);
    return d && str_eq(d->class_id, "unknown") ? EXIT_TROUBLE : EXIT_FINE;
}

static void release_diagnoser(struct diagnoser **d)
{
    diagnoser_free(*d);
}

static int run_diagnose(struct diagnose_options *o, int n, char **paths)
{
    static char standard_input[] = "-", *only[] = { standard_input };
    CLEANUP(release_diagnoser) struct diagnoser *d = NULL;
    CLEANUP(facts_release) struct facts f = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct diagnose_context ctx = { .gfx = o->gfx, .exit_code = o->exit_code, .hung = o->hung };
    struct gpu_calls calls = { 0 };
    struct cairn_error err = { 0 };
    if (diagnoser_new(&d, &err))
        return print_error(&err);
    if (!n)
        paths = only, n = 1;
    if (diagnose_input_calls(n, paths, &a, &calls, &err))
        return print_error(&err);
    if (calls.n == (size_t)n)
        return show(o, NULL, &calls);
    if (!o->no_machine && machine_read(&o->machine, &f, &err))
        return print_error(&err);
    ctx.facts = o->no_machine ? NULL : &f;
    ctx.own_torch = o->machine.torch_dir != NULL;
    const struct diagnose_input in = {
        .diagnoser = d,
        .context = &ctx,
        .facts = &f,
        .wants_machine = o->machine.root || o->machine.torch_dir || o->machine.rocm_dir || o->gfx,
        .messages = &stderr_messages,
    };
    for (int i = 0; i < n; i++)
        if (!diagnose_input_is_calls(paths[i]) && diagnose_input_read(&in, paths[i], &a, &err))
            return print_error(&err);
    struct diagnosis out;
    diagnoser_finish(d, &ctx, &a, &out);
    return show(o, &out, &calls);
}

/* "gfx1031", "gfx1031+gfx90c", "gfx120X".  A target that is not in the table is unknown, not an error. */
static bool is_gfx_list(const char *text)
{
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, "+");
        if (n < 4 || n > 8 || strncmp(p, "gfx", 3) != 0 || strspn(p + 3, "0123456789abcdefxX") < n - 3)
            return false;
        p += n;
        if (!*p)
            return true;
    }
}

/* 139; or a Windows status: 3221225477, 0xC0000005 or -1073741819. */
static bool parse_exit(const char *text, int64_t *out)
{
    enum { NTSTATUS_LEAST = -0x40000000, NTSTATUS_MOST = -0x30000001 }; /* 0xC… */
    uint64_t code;
    char *end;
    if (cairn_parse_i64(text, out) && *out < 0) {
        bool fine = *out >= NTSTATUS_LEAST && *out <= NTSTATUS_MOST;
        *out += (int64_t)1 << 32;
        return fine;
    }
    bool hex = str_starts(text, "0x") || str_starts(text, "0X");
    if (hex) {
        code = strtoull(text + 2, &end, 16);
        if (!text[2 + strspn(text + 2, "0")] || *end || end - text > 10)
            return false;
    } else if (!cairn_parse_u64(text, &code)) {
        return false;
    }
    *out = (int64_t)code;
    return code <= UINT32_MAX;
}

static int check_words(struct diagnose_options *o, const char *command)
{
    o->exit_code = -1;
    if (o->exit_text && !parse_exit(o->exit_text, &o->exit_code))
        return options_error(command, "--exit takes an exit status or 128 + signal, not \"%s\"",
                             o->exit_text);
    if (o->gfx && !is_gfx_list(o->gfx))
        return options_error(
            command, "--gfx takes a target such as gfx1031, gfx1031+gfx90c or gfx120X, not \"%s\"", o->gfx);
    if (o->no_machine && (o->machine.root || o->machine.torch_dir || o->machine.rocm_dir))
        return options_error(command, "--no-machine does not go together with --root, --torch or --rocm");
    return OPTIONS_GO;
}

int cmd_diagnose(int argc, char **argv)
{
    struct diagnose_options o = { 0 };
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &o.json, "print JSON on stdout"),
        OPT_STR('x', "exit", &o.exit_text, "CODE",
                "exit status of the run, or 128 + signal; on Windows also 0xC0000005 or -1073741819"),
        OPT_FLAG(0, "hung", &o.hung, "the run hung, and somebody stopped it"),
        OPT_STR(0, "gfx", &o.gfx, "NAME",
                "GPU of the log: gfx1031, gfx1031+gfx90c for several, gfx120X for a family"),
        OPT_FLAG('n', "no-machine", &o.no_machine, "ignore this machine: the log is from another one"),
        OPT_FLAG('l', "list", &o.list, "list all failure classes"),
        OPT_FLAG(0, "markdown", &o.markdown, "with --list: as Markdown"),
        OPT_MACHINE(&o.machine),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn diagnose [options] [FILE...]",
        .about = "Finds the cause of a failed run in its log, and lists the fixes in the order to try "
                 "them. Several files are read together, such as the trainer's log and the output of "
                 "dmesg. A folder is a journal of cairn run, as is last, '#2' or another name that cairn "
                 "run --history lists; - or no file is standard input. A file of recorded GPU calls is "
                 "shown. Exit status: 0 if the log was explained (also if nothing failed), 1 if it was "
                 "not, or could not be read.",
        .examples =
            "  cairn diagnose train.log\n  sudo dmesg | cairn diagnose train.log -\n  cairn diagnose --exit 137 --json train.log\n"
            "  cairn diagnose last\n",
        .mixed = true,
    };
    int rest = 0;
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r == OPTIONS_GO)
        r = check_words(&o, argv[0]);
    if (r != OPTIONS_GO)
        return r;
    if (o.markdown && !o.list)
        return options_error(argv[0], "--markdown goes with --list");
    if (o.list)
        return o.json ? print_report(report_classes())
                      : (o.markdown ? diagnose_list_markdown : diagnose_list_text)(),
               EXIT_FINE;
    if (rest == argc && isatty(STDIN_FILENO))
        return options_error(argv[0], "give the log of a run, or - for standard input");
    return run_diagnose(&o, argc - rest, argv + rest);
}
