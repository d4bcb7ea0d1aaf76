/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/smi_print.h"
#include "cli/stop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* The codes of nvidia-smi: programs that call it know them.  What it finds wrong it says on stdout. */
enum { SMI_EXIT_BAD_ARGUMENT = 2, SMI_EXIT_NOT_FOUND = 6, SMI_EXIT_BAD_OPTION = 255 };

struct smi_options {
    const char *query_gpu, *query_apps, *format, *ids, *file, *loop, *loop_ms, *root;
    bool list, json, help_gpu, help_apps;
    long period_ms; /* 0: once */
};

/* What the table shows, for --json without a query. */
static const char default_columns[] =
    "index,name,uuid,pci.bus_id,driver_version,fan.speed,temperature.gpu,utilization.gpu,utilization.memory,"
    "memory.total,memory.used,memory.free,power.draw,power.limit,clocks.current.graphics,clocks.current.memory";

static bool same_address(const char *pci, const char *id)
{
    size_t n = strlen(id), have = pci ? strlen(pci) : 0;
    if (!strchr(id, ':') || !have)
        return false;
    return n >= have ? !strcasecmp(id + n - have, pci) && strspn(id, "0") >= n - have
                     : !strcasecmp(pci + have - n, id);
}

/* By index, UUID, serial number or PCI address. */
static bool is_gpu(const struct smi_gpu *g, const char *id)
{
    uint64_t index;
    const struct gpu_facts *f = g->facts;
    if (cairn_parse_u64(id, &index) && index == g->index)
        return true;
    return (f->uuid.s && !strcasecmp(f->uuid.s, id)) || str_eq(f->serial.s, id) || same_address(f->pci.s, id);
}

/* Keeps the GPUs that are named.  A name that is nobody's is passed over. */
static void select_gpus(struct smi *s, const char *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_gpus; i++) {
        bool named = false;
        for (const char *at = ids; at && !named; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            named = is_gpu(&s->gpus[i], arena_strndup(&s->facts.arena, at, strcspn(at, ",")));
        if (named)
            s->gpus[n++] = s->gpus[i];
    }
    s->n_gpus = n;
}

static void show(struct smi *s, const struct smi_options *o, const struct smi_query *q, bool first)
{
    if (o->list)
        smi_print_list(s);
    else if (o->json)
        smi_print_json(s, q);
    else if (!q->table)
        smi_print_table(s);
    else {
        if (first && q->header)
            smi_print_header(q);
        smi_print_csv(s, q);
    }
}

static int show_once(const struct smi_options *o, const struct smi_query *q, bool first)
{
    CLEANUP(smi_release) struct smi s;
    struct cairn_error err = { 0 };
    if (smi_read(&s, o->root, &err))
        return print_error(&err);
    if (o->ids)
        select_gpus(&s, o->ids);
    if (!s.n_gpus && !o->json)
        puts("No devices were found");
    else
        show(&s, o, q, first);
    if (!s.count && s.facts.n_gpus)
        fputs("cairn: HIP shows none of the AMD GPUs that are here; `cairn gpu` says why\n", stderr);
    return s.n_gpus ? EXIT_FINE : SMI_EXIT_NOT_FOUND;
}

/* Until Ctrl-C, or until nobody reads any more. */
static int show_again(const struct smi_options *o, const struct smi_query *q)
{
    const volatile sig_atomic_t *stopped = stop_catch();
    const struct timespec pause = { o->period_ms / 1000, o->period_ms % 1000 * 1000000 };
    int code = EXIT_FINE;
    for (bool first = true; !*stopped; first = false) {
        code = show_once(o, q, first);
        if (code || fflush(stdout))
            break;
        if (!*stopped)
            nanosleep(&pause, NULL);
    }
    return code;
}

static int refuse(const char *why)
{
    puts(why);
    return SMI_EXIT_BAD_ARGUMENT;
}

/* csv is all there is, so it may be left out. */
static int parse_format(const char *format, struct smi_query *q)
{
    q->header = q->units = true;
    for (const char *at = format; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[16];
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
        if (str_eq(word, "noheader"))
            q->header = false;
        else if (str_eq(word, "nounits"))
            q->units = false;
        else if (!str_eq(word, "csv"))
            return refuse("Format modifier is not recognized.");
    }
    return OPTIONS_GO;
}

static int parse_query(const struct smi_options *o, struct arena *a, struct smi_query *q)
{
    const char *names = o->query_gpu ? o->query_gpu : o->query_apps, *bad;
    if (o->query_gpu && o->query_apps)
        return refuse("Only one --query-* switch can be used at a time.");
    if (!names && !o->json)
        return OPTIONS_GO;
    int r = parse_format(o->format, q);
    if (r != OPTIONS_GO)
        return r;
    smi_query_parse(q, o->query_apps ? &smi_app_fields : &smi_gpu_fields, names ? names : default_columns, a,
                    &bad);
    return bad ? refuse(arena_printf(a, "Field \"%s\" is not a valid field to query.\n", bad)) : OPTIONS_GO;
}

/* -l without a number is every five seconds. */
static int parse_period(struct smi_options *o, const char *command)
{
    const char *text = o->loop ? o->loop : o->loop_ms;
    uint64_t n = 5, most = o->loop ? 86400 : 86400000;
    if (!text)
        return OPTIONS_GO;
    if (*text && !cairn_parse_u64(text, &n))
        return options_error(command, "--loop wants seconds, --loop-ms milliseconds, not \"%s\"", text);
    if (!n || n > most)
        return refuse(
            "Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater than 0.\n");
    o->period_ms = (long)n * (o->loop ? 1000 : 1);
    return OPTIONS_GO;
}

static int run(struct smi_options *o, const char *command)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct smi_query q = { .table = NULL };
    if (o->help_gpu || o->help_apps) {
        if (o->help_gpu)
            smi_print_fields(&smi_gpu_fields, "query-gpu");
        else
            smi_print_fields(&smi_app_fields, "query-compute-apps");
        return EXIT_FINE;
    }
    int r = parse_query(o, &a, &q);
    if (r == OPTIONS_GO)
        r = parse_period(o, command);
    if (r != OPTIONS_GO)
        return r;
    if (o->file && !freopen(o->file, "we", stdout)) {
        struct cairn_error err = { 0 };
        cairn_fail_errno(&err, "open %s", o->file);
        return print_error(&err);
    }
    return o->period_ms ? show_again(o, &q) : show_once(o, &q, true);
}

int cmd_smi(int argc, char **argv)
{
    static char smi[] = "smi", loop_ms[] = "--loop-ms";
    struct smi_options o = { .root = getenv("CAIRN_SMI_ROOT") };
    const struct opt_row rows[] = {
        OPT_STR(0, "query-gpu", &o.query_gpu, "COLUMNS", "a line a GPU, with these columns"),
        OPT_STR(0, "query-compute-apps", &o.query_apps, "COLUMNS", "a line a process that computes on a GPU"),
        OPT_STR(0, "format", &o.format, "FORMAT",
                "how a query is answered: csv, and with commas noheader and nounits"),
        OPT_FLAG('L', "list-gpus", &o.list, "list the GPUs"),
        OPT_STR('i', "id", &o.ids, "ID",
                "only this GPU (or several, with commas): index, UUID, serial number or PCI address"),
        OPT_OPTIONAL('l', "loop", &o.loop, "SECONDS",
                     "again every five seconds, or every SECONDS; Ctrl-C ends it"),
        OPT_STR(0, "loop-ms", &o.loop_ms, "MS", "again every MS milliseconds; also -lms"),
        OPT_STR('f', "filename", &o.file, "FILE", "write to FILE instead of stdout"),
        OPT_FLAG(0, "help-query-gpu", &o.help_gpu, "list the columns of --query-gpu"),
        OPT_FLAG(0, "help-query-compute-apps", &o.help_apps, "list the columns of --query-compute-apps"),
        OPT_FLAG('j', "json", &o.json, "print JSON on stdout"),
        OPT_STR(0, "root", &o.root, "DIR", "look at the tree DIR instead of this machine's /"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn smi [options]",
        .about =
            "Answers as nvidia-smi would, for programs that know no other tool: the GPUs that HIP shows, with the "
            "columns, units and exit codes of nvidia-smi, read from sysfs. Where GPU and host share memory, "
            "memory.total is what training can really use. `cairn run --with-smi` gives it to a trainer under "
            "that name.",
        .examples =
            "  cairn smi --query-gpu=index,name,memory.used,memory.total --format=csv,noheader,nounits\n"
            "  cairn smi -L\n",
    };
    bool linked = !str_eq(argv[0], "smi");
    argv[0] = smi;
    for (int i = 1; i < argc; i++)
        if (str_eq(argv[i], "-lms"))
            argv[i] = loop_ms;
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r == OPTIONS_GO && o.format && !o.query_gpu && !o.query_apps)
        r = options_error(smi, "--format goes with a query");
    if (r == OPTIONS_GO)
        r = run(&o, smi);
    else if (r == EXIT_USAGE && linked)
        r = SMI_EXIT_BAD_OPTION;
    return r;
}
