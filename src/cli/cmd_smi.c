/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/smi_monitor.h"
#include "cli/smi_run.h"
#include "cli/smi_topo.h"
#include "config.h"
#include "smi/answer.h"
#include "smi/report.h"
#include "smi/rows.h"
#include <stdio.h>
#include <string.h>

enum { DAY_MS = 86400000 };

struct smi_options {
    struct smi_target target;
    const char *query[SMI_TABLES]; /* columns of that table */
    const char *format, *file, *loop, *loop_ms, *display;
    bool list, report, xml, json, version, help[SMI_TABLES];
    unsigned sections;
    long period_ms; /* 0: once */
};

/* What the table shows, for --json without a query. */
static const char default_columns[] =
    "index,name,uuid,pci.bus_id,driver_version,fan.speed,temperature.gpu,utilization.gpu,utilization.memory,"
    "memory.total,memory.used,memory.free,power.draw,power.limit,clocks.current.graphics,clocks.current.memory";

struct answer {
    const struct smi_options *o;
    const struct smi_query *q;
};

static void add_answer(struct smi *s, const struct smi_options *o, const struct smi_query *q, bool first,
                       struct str *out)
{
    if (o->list)
        smi_list_text(s, out);
    else if (o->xml)
        smi_report_xml(s, out);
    else if (o->report)
        smi_report_text(s, o->sections, out);
    else if (!q->table)
        smi_table_text(s, out);
    else {
        if (first && q->header)
            smi_header_text(q, out);
        smi_csv_text(s, q, out);
    }
}

static void print_answer(struct smi *s, const struct smi_options *o, const struct smi_query *q, bool first)
{
    CLEANUP(str_release) struct str text = { 0 };
    if (o->json) {
        print_report(smi_json(s, q));
        return;
    }
    add_answer(s, o, q, first, &text);
    if (text.len)
        fputs(text.s, stdout);
}

static int show(void *with, bool first)
{
    const struct answer *answer = with;
    CLEANUP(smi_release) struct smi s;
    int code = smi_begin(&s, &answer->o->target);
    if (code == EXIT_FINE || (code == SMI_EXIT_NOT_FOUND && answer->o->json))
        print_answer(&s, answer->o, answer->q, first);
    return code;
}

/* csv is the only format, so it may be omitted. */
static int parse_format(const char *format, struct smi_query *q)
{
    q->header = q->units = true;
    for (const char *at = format; at; at = smi_next_word(at)) {
        char word[16];
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
        if (str_eq(word, "noheader"))
            q->header = false;
        else if (str_eq(word, "nounits"))
            q->units = false;
        else if (!str_eq(word, "csv"))
            return smi_refuse("Format modifier is not recognized.");
    }
    return OPTIONS_GO;
}

static int parse_query(const struct smi_options *o, struct arena *a, struct smi_query *q)
{
    const char *names = o->json ? default_columns : NULL, *bad;
    const struct smi_table *table = &smi_tables[SMI_GPU];
    size_t n = 0;
    for (size_t i = 0; i < SMI_TABLES; i++)
        if (o->query[i]) {
            names = o->query[i];
            table = &smi_tables[i];
            n++;
        }
    if (n > 1)
        return smi_refuse("Only one --query-* switch can be used at a time.");
    if (!names)
        return OPTIONS_GO;
    int r = parse_format(o->format, q);
    if (r != OPTIONS_GO)
        return r;
    smi_query_parse(q, table, names, a, &bad);
    return bad ? smi_refuse(arena_printf(a, "Field \"%s\" is not a valid field to query.\n", bad))
               : OPTIONS_GO;
}

/* -l without a number means every five seconds. */
static int parse_period(struct smi_options *o)
{
    const char *text = str_eq(o->loop, "") ? "5" : o->loop ? o->loop : o->loop_ms;
    long unit_ms = o->loop ? 1000 : 1;
    uint64_t n;
    if (!text)
        return OPTIONS_GO;
    if (!cairn_parse_u64(text, &n) || !n || n > (uint64_t)(DAY_MS / unit_ms))
        return smi_refuse(
            "Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater than 0.\n");
    o->period_ms = (long)n * unit_ms;
    return OPTIONS_GO;
}

static int parse_display(struct smi_options *o, struct arena *a)
{
    for (const char *at = o->display; at; at = smi_next_word(at)) {
        size_t n = strcspn(at, ",");
        unsigned section = smi_section(at, n);
        if (!section)
            return smi_refuse(arena_printf(a, "Display type \"%.*s\" is not recognized.", (int)n, at));
        o->sections |= section;
    }
    return OPTIONS_GO;
}

/* Options that need or exclude another one. */
static const char *wrong_together(const struct smi_options *o)
{
    bool query = false;
    for (size_t i = 0; i < SMI_TABLES; i++)
        query |= o->query[i] != NULL;
    if (o->format && !query)
        return "--format goes with a query";
    if ((o->xml || o->display) && !o->report)
        return "-x and -d go with -q";
    if (o->xml && o->display)
        return "-d does not go with -x";
    if (query + o->report + o->list > 1)
        return "-q, -L and a query do not go together";
    if (o->json && (o->report || o->format))
        return "-q and --format do not go with --json";
    if (o->loop && o->loop_ms)
        return "-l does not go with --loop-ms";
    return NULL;
}

static int print_version(const char *root)
{
    CLEANUP(smi_release) struct smi s;
    struct cairn_error err = { 0 };
    if (smi_read(&s, root, &err))
        return print_error(&err);
    const char *known = smi_driver_version(&s), *version = known ? known : "N/A";
    printf("NVIDIA-SMI version  : %s\nNVML version        : N/A\n"
           "DRIVER version      : %s\nCUDA Version        : N/A\nCairn version       : " CAIRN_VERSION "\n",
           version, version);
    return EXIT_FINE;
}

static int print_fields(const struct smi_table *t)
{
    CLEANUP(str_release) struct str text = { 0 };
    smi_fields_text(t, &text);
    fputs(text.s, stdout);
    return EXIT_FINE;
}

static int run(struct smi_options *o)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct smi_query q = { .table = NULL };
    for (size_t i = 0; i < SMI_TABLES; i++)
        if (o->help[i])
            return print_fields(&smi_tables[i]);
    if (o->version)
        return print_version(o->target.root);
    int r = parse_query(o, &a, &q);
    if (r == OPTIONS_GO)
        r = parse_period(o);
    if (r == OPTIONS_GO)
        r = parse_display(o, &a);
    if (r != OPTIONS_GO)
        return r;
    r = smi_redirect(o->file);
    if (r)
        return r;
    o->target.silent = o->json;
    struct answer answer = { o, &q };
    return o->period_ms ? smi_repeat(o->period_ms, 0, show, &answer) : show(&answer, true);
}

/* nvidia-smi's long options with one dash, which getopt would take for several short ones. */
static void long_words(int argc, char **argv)
{
    static char loop_ms[] = "--loop-ms", query[] = "--query";
    for (int i = 1; i < argc; i++)
        if (str_eq(argv[i], "-lms"))
            argv[i] = loop_ms;
        else if (str_eq(argv[i], "-a"))
            argv[i] = query;
}

/* Some programs parse the version from the first line of the help. */
static void print_title(void)
{
    CLEANUP(smi_release) struct smi s;
    struct cairn_error err = { 0 };
    const char *version = smi_read(&s, NULL, &err) ? NULL : smi_driver_version(&s);
    printf("NVIDIA System Management Interface -- v%s\n\n", version ? version : CAIRN_VERSION);
}

static int parse(int argc, char **argv, struct smi_options *o, bool linked)
{
    const struct opt_row rows[] = {
        OPT_STR(0, "query-gpu", &o->query[SMI_GPU], "COLUMNS", "one line per GPU, with these columns"),
        OPT_STR(0, "query-compute-apps", &o->query[SMI_APPS], "COLUMNS",
                "one line per process that computes on a GPU"),
        OPT_STR(0, "query-supported-clocks", &o->query[SMI_CLOCKS], "COLUMNS",
                "no lines: AMD GPUs have no such list"),
        OPT_STR(0, "query-accounted-apps", &o->query[SMI_ACCOUNTED], "COLUMNS",
                "no lines, for the same reason"),
        OPT_STR(0, "query-retired-pages", &o->query[SMI_RETIRED], "COLUMNS", "no lines, for the same reason"),
        OPT_STR(0, "format", &o->format, "FORMAT",
                "format of a query: csv, and after commas noheader and nounits"),
        OPT_FLAG('L', "list-gpus", &o->list, "list the GPUs"),
        OPT_FLAG('q', "query", &o->report, "everything known about the GPUs; also -a"),
        OPT_FLAG('x', "xml-format", &o->xml, "with -q: as XML"),
        OPT_STR('d', "display", &o->display, "SECTIONS",
                "with -q: only these sections, separated by commas: MEMORY, UTILIZATION, ECC, "
                "TEMPERATURE, POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE, ..."),
        SMI_OPT_ID(&o->target),
        OPT_SEPARATE('l', "loop", &o->loop, "SECONDS",
                     "repeat every five seconds, or every SECONDS, until Ctrl-C"),
        OPT_STR(0, "loop-ms", &o->loop_ms, "MS", "repeat every MS milliseconds; also -lms"),
        SMI_OPT_FILE(&o->file),
        OPT_FLAG(0, "help-query-gpu", &o->help[SMI_GPU], "list the columns of --query-gpu"),
        OPT_FLAG(0, "help-query-compute-apps", &o->help[SMI_APPS],
                 "list the columns of --query-compute-apps"),
        OPT_FLAG(0, "help-query-supported-clocks", &o->help[SMI_CLOCKS],
                 "list the columns of --query-supported-clocks"),
        OPT_FLAG(0, "help-query-accounted-apps", &o->help[SMI_ACCOUNTED],
                 "list the columns of --query-accounted-apps"),
        OPT_FLAG(0, "help-query-retired-pages", &o->help[SMI_RETIRED],
                 "list the columns of --query-retired-pages"),
        OPT_FLAG(0, "version", &o->version, "print the driver version, as nvidia-smi does"),
        OPT_FLAG('j', "json", &o->json, "print JSON on stdout"),
        SMI_OPT_ROOT(&o->target),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn smi [options]\n       cairn smi topo -m\n       cairn smi dmon|pmon [options]",
        .about = "Answers as nvidia-smi does, for programs that expect it: the GPUs that HIP shows, with "
                 "the columns, units and exit codes of nvidia-smi, read from sysfs. If GPU and host share "
                 "memory, memory.total is what training can really use. `cairn run --with-smi` gives it to "
                 "a trainer under that name. No option changes a GPU.",
        .examples =
            "  cairn smi --query-gpu=index,name,memory.used,memory.total --format=csv,noheader,nounits\n"
            "  cairn smi -q -x\n"
            "  cairn smi dmon -s pum -c 10\n",
    };
    return options_parse_as(argc, argv, rows, &usage, NULL, linked ? smi_refuse_option : NULL);
}

/* The first word may be one of these. */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv, bool linked);
    const char *about;
} commands[] = {
    { "topo", smi_topo, "show how the GPUs are connected" },
    { "dmon", smi_monitor, "print one line per GPU, repeatedly" },
    { "pmon", smi_monitor, "print one line per process, repeatedly" },
};

static int list_commands(void)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        printf("%s\t%s\n", commands[i].name, commands[i].about);
    return EXIT_FINE;
}

static bool is_command(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (str_eq(word, commands[i].name))
            return true;
    return false;
}

/* --root, which nvidia-smi does not have, may precede such a command: move the command first. */
static void command_first(int argc, char **argv)
{
    int at = str_eq(argv[1], "--root") ? 3 : str_starts(argv[1], "--root=") ? 2 : argc;
    char *word = at < argc ? argv[at] : NULL;
    if (!word || !is_command(word))
        return;
    memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof(argv[0]));
    argv[1] = word;
}

int cmd_smi(int argc, char **argv)
{
    static char smi[] = "smi";
    struct smi_options o = { 0 };
    bool linked = !str_eq(argv[0], "smi");
    if (!linked && argc > 1)
        command_first(argc, argv);
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++)
        if (str_eq(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1, linked);
    if (!linked && argc > 1 && str_eq(argv[1], "--list-commands"))
        return list_commands();
    argv[0] = smi;
    if (linked && argc == 2 && (str_eq(argv[1], "-h") || str_eq(argv[1], "--help")))
        print_title();
    long_words(argc, argv);
    int r = parse(argc, argv, &o, linked);
    if (r != OPTIONS_GO)
        return r;
    const char *wrong = wrong_together(&o);
    return wrong ? smi_refuse_together(smi, wrong, linked) : run(&o);
}
