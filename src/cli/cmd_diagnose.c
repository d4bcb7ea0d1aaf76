/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/diagnose_print.h"
#include "cli/machine.h"
#include "cli/print.h"
#include "cli/run_history.h"
#include "host/logfile.h"
#include "report/diagnosis.h"
#include "run/attempt.h"
#include "run/calls_file.h"
#include "run/context.h"
#include "os/path.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct diagnose_options {
    struct machine_options machine;
    const char *gfx, *exit_text;
    bool json, list, markdown, no_machine, hung;
    int64_t exit_code;
};

static void feed(void *to, const char *bytes, size_t n)
{
    diagnoser_feed(to, bytes, n);
}

/* The rest of a file; the lines before it count, and that is all. */
struct rest {
    struct diagnoser *d;
    uint64_t skip_bytes;
};

static void feed_rest(void *to, const char *bytes, size_t n)
{
    struct rest *r = to;
    size_t skipped = n < r->skip_bytes ? n : (size_t)r->skip_bytes;
    for (size_t i = 0; i < skipped; i++)
        if (bytes[i] == '\n')
            diagnoser_feed(r->d, "\n", 1);
    r->skip_bytes -= skipped;
    diagnoser_feed(r->d, bytes + skipped, n - skipped);
}

static int read_log(struct diagnoser *d, const char *path, struct diagnose_context *ctx,
                    struct cairn_error *err)
{
    bool cut = false;
    const char *name = str_eq(path, "-") ? "standard input" : path;
    diagnoser_mark_file(d, name);
    if (logfile_read(path, feed, d, &cut, err))
        return -1;
    ctx->cut |= cut;
    if (cut) {
        CLEANUP(str_release) struct str clean = { 0 };
        str_add_clean(&clean, name, strlen(name));
        fprintf(stderr, "cairn: %s is cut short: its end, where an error may stand, is missing\n", clean.s);
    }
    return 0;
}

static bool is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

static struct json *read_json(const char *path)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct json *v = NULL;
    struct cairn_error err = { 0 };
    if (is_file(path) && !logfile_read(path, logfile_into_str, &text, NULL, &err))
        json_parse(text.s, text.len, &v, &err);
    return v;
}

/* Where what a journal knows goes. */
struct operand_context {
    struct diagnose_context *ctx;
    struct facts *facts;
    bool wants_machine; /* the user named another machine, PyTorch or chip */
};

static enum diagnose_gpu_use gpu_use_of(const char *name)
{
    for (int u = DIAGNOSE_GPU_UNKNOWN; u <= DIAGNOSE_GPU_USED; u++)
        if (str_eq(name, diagnose_gpu_use_name(u)))
            return u;
    return DIAGNOSE_GPU_UNKNOWN;
}

static void take_verdict(struct diagnose_context *ctx, const struct json *v, const struct json *last)
{
    const char *end = json_text(json_get(last, "end"));
    if (ctx->exit_code < 0)
        ctx->exit_code = json_int(json_get(v, "code"), -1);
    ctx->hung |= str_eq(end, attempt_end_name(ATTEMPT_HUNG));
    ctx->memory_guard = str_eq(end, attempt_end_name(ATTEMPT_MEMORY));
    ctx->refused = (uint64_t)json_int(json_get(last, "refused"), 0);
    ctx->refused_bytes = (uint64_t)json_int(json_get(last, "refused_bytes"), 0);
    ctx->memory = gauge_memory_of(json_get(last, "memory"));
    ctx->gpu_use = gpu_use_of(json_text(json_get(last, "gpu_use")));
}

/* What was set for an attempt is there in all behind it. */
static void feed_changes(struct diagnoser *d, const struct json *tries)
{
    for (size_t i = 0; i < json_length(tries); i++) {
        const char *change = json_text(json_get(json_at(tries, i), "change"));
        if (change)
            diagnoser_feed(d, change, strlen(change));
        diagnoser_feed(d, "\n", 1);
    }
}

/* A folder is a journal of `cairn run`: what it changed in the environment, and the log and the end of the last attempt.
 * Of a log that was rotated nobody knows where that begins. */
static int read_journal(struct diagnoser *d, const char *dir, struct operand_context *to, struct arena *a,
                        struct cairn_error *err)
{
    struct diagnose_context *ctx = to->ctx;
    const char *log = arena_printf(a, "%s/log", dir), *env = arena_printf(a, "%s/env", dir);
    const char *hang = arena_printf(a, "%s/hang.txt", dir);
    if (!is_file(log)) {
        cairn_fail(err, CAIRN_EFORMAT,
                   "%s is a directory, and has no file \"log\" as a journal of cairn run has", dir);
        return cairn_hint(err, "give the log file itself");
    }
    CLEANUP(json_cleanup) struct json *v = read_json(arena_printf(a, "%s/verdict.json", dir));
    const struct json *tries = json_get(v, "attempts");
    const struct json *last = json_length(tries) ? json_at(tries, json_length(tries) - 1) : NULL;
    struct rest rest = { d, 0 };
    if (!is_file(arena_printf(a, "%s/log.first", dir)))
        rest.skip_bytes = (uint64_t)json_int(json_get(last, "log_offset_bytes"), 0);
    take_verdict(ctx, v, last);
    ctx->hang_file = ctx->hung && is_file(hang) ? hang : NULL;
    CLEANUP(json_cleanup) struct json *known = read_json(arena_printf(a, "%s/" CONTEXT_FILE, dir));
    if (to->wants_machine || !context_take(known, a, to->facts, ctx)) {
        /* As far as it is told in texts. */
        if (is_file(env) && read_log(d, env, ctx, err))
            return -1;
        feed_changes(d, tries);
    }
    diagnoser_mark_file(d, log);
    return logfile_read(log, feed_rest, &rest, NULL, err);
}

/* "…/log" beside "events.jsonl" is part of a journal. */
static const char *journal_of(const char *path, struct arena *a)
{
    CLEANUP(mem_free) char *folder = path_folder(path);
    const char *dir = arena_strdup(a, folder);
    bool is_log = str_eq(path_name(path), "log");
    return is_log && is_file(arena_printf(a, "%s/events.jsonl", dir)) ? dir : NULL;
}

static int read_operand(struct diagnoser *d, const char *path, struct operand_context *to, struct arena *a,
                        struct cairn_error *err)
{
    struct stat st;
    bool there = !str_eq(path, "-") && !stat(path, &st), folder = there && S_ISDIR(st.st_mode);
    const char *journal = folder ? path : journal_of(path, a);
    if (!there && run_history_dir(path, a, &journal, err)) /* a file of that name comes first */
        return -1;
    return journal ? read_journal(d, journal, to, a, err) : read_log(d, path, to->ctx, err);
}

static bool is_record(const char *path)
{
    return !str_eq(path, "-") && calls_file_is(path);
}

/* Files of the recorder that somebody made by hand: they are shown. */
static int take_records(struct calls *c, int n, char **paths, struct arena *a, struct cairn_error *err)
{
    for (int i = 0; i < n; i++) {
        struct calls one;
        if (!is_record(paths[i]))
            continue;
        if (calls_file_read(paths[i], a, &one, err))
            return -1;
        *ARENA_PUSH(a, c->process, c->n) = one.process[0];
    }
    return 0;
}

static void show_text(const struct diagnosis *d, const struct calls *c)
{
    if (d)
        diagnose_print_text(d);
    if (d && c->n)
        putchar('\n');
    diagnose_print_calls(c);
}

static int show(const struct diagnose_options *o, const struct diagnosis *d, const struct calls *c)
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
    struct calls calls = { 0 };
    struct cairn_error err = { 0 };
    if (diagnoser_new(&d, &err))
        return print_error(&err);
    if (!n)
        paths = only, n = 1;
    if (take_records(&calls, n, paths, &a, &err))
        return print_error(&err);
    if (calls.n == (size_t)n)
        return show(o, NULL, &calls);
    if (!o->no_machine && machine_read(&o->machine, &f, &err))
        return print_error(&err);
    ctx.facts = o->no_machine ? NULL : &f;
    ctx.own_torch = o->machine.torch_dir != NULL;
    struct operand_context to = { &ctx, &f,
                                  o->machine.root || o->machine.torch_dir || o->machine.rocm_dir || o->gfx };
    for (int i = 0; i < n; i++)
        if (!is_record(paths[i]) && read_operand(d, paths[i], &to, &a, &err))
            return print_error(&err);
    struct diagnosis out;
    diagnoser_finish(d, &ctx, &a, &out);
    return show(o, &out, &calls);
}

/* "gfx1031", "gfx1031+gfx90c", "gfx120X".  A target that is not in the table is no error: nothing is known of it. */
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

/* 139; and as Windows says it, 3221225477, 0xC0000005 or -1073741819. */
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
        return options_error(command, "--exit wants an exit status or 128 + signal, not \"%s\"",
                             o->exit_text);
    if (o->gfx && !is_gfx_list(o->gfx))
        return options_error(
            command, "--gfx wants a target such as gfx1031, gfx1031+gfx90c or gfx120X, not \"%s\"", o->gfx);
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
                "the exit status of the run, or 128 + signal; of Windows also 0xC0000005 or -1073741819"),
        OPT_FLAG(0, "hung", &o.hung, "the log ends where the run stood still, and somebody stopped it"),
        OPT_STR(0, "gfx", &o.gfx, "NAME",
                "the GPU that the log is of: gfx1031, gfx1031+gfx90c for several, gfx120X for a family"),
        OPT_FLAG('n', "no-machine", &o.no_machine, "do not look at this machine: the log is of another one"),
        OPT_FLAG('l', "list", &o.list, "list every class of failure"),
        OPT_FLAG(0, "markdown", &o.markdown, "with --list: as Markdown"),
        OPT_MACHINE(&o.machine),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn diagnose [options] [FILE...]",
        .about =
            "Names the cause of a failed run from its log, with what to do about it, in the order in which to try. Several files "
            "are taken together: the trainer's log and the output of dmesg. A folder is a journal of cairn run, as is last, '#2' or another name that cairn run --history lists; - or nothing is "
            "standard input. A record of GPU calls that was made by hand is shown. Exit status: 0 when the log could be explained (also when nothing failed), 1 when it could not be "
            "explained or read.",
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
