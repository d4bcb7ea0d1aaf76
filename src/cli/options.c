/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "base/suggest.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 48, CODE_FIRST = 256, CODE_HELP = 200, CODE_COLOR };

void opt_list_release(struct opt_list *l)
{
    free(l->item);
    *l = (struct opt_list){ 0 };
}

static void opt_list_add(struct opt_list *l, const char *item)
{
    const char **bigger = realloc(l->item, (l->n + 2) * sizeof(*bigger));
    if (!bigger)
        abort();
    bigger[l->n++] = item;
    bigger[l->n] = NULL;
    l->item = bigger;
}

int options_error(const char *command, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "cairn %s: ", command);
    print_padded(stderr, text, 0); /* it contains text from the user */
    fprintf(stderr, "\n  try: cairn %s --help\n", command);
    return EXIT_USAGE;
}

/* The column of the help text; on a narrow terminal it has its own line. */
static int help_column(void)
{
    return print_width() < 72 ? 8 : 31;
}

/* "  -j, --json          print JSON on stdout" */
static void print_row(char short_name, const char *name, const char *arg, bool optional, const char *help)
{
    char left[64];
    char mark[5] = "    ";
    if (short_name)
        snprintf(mark, sizeof(mark), "-%c, ", short_name);
    snprintf(left, sizeof(left), "  %s--%s%s%s%s", mark, name,
             !arg       ? ""
             : optional ? "[="
                        : " ",
             arg ? arg : "", arg && optional ? "]" : "");
    int column = help_column();
    if ((int)strlen(left) >= column)
        printf("%s\n%*s", left, column, "");
    else
        printf("%-*s", column, left);
    print_wrapped(stdout, help, column, print_width());
}

static bool is_optional(const struct opt_row *r)
{
    return r->type == OPT_TYPE_OPTIONAL || r->type == OPT_TYPE_SEPARATE || r->type == OPT_TYPE_ATTACHED;
}

static void print_help(const struct opt_row *rows, const struct opt_usage *usage)
{
    printf("usage: %s\n\n", usage->synopsis);
    print_wrapped(stdout, usage->about, 0, print_width());
    if (usage->print_commands) {
        puts("\ncommands:");
        usage->print_commands();
    }
    puts("\noptions:");
    for (const struct opt_row *r = rows; r->type; r++)
        print_row(r->short_name, r->name, r->arg, is_optional(r), r->help);
    print_row(0, "color", "WHEN", false, "color the output: auto, always or never");
    print_row('h', "help", NULL, false, "show this help");
    if (usage->examples)
        printf("\nexamples:\n%s", usage->examples);
}

/* For completion and for the test of the man page: name, argument (or -), help, separated by tabs. */
static void print_list(const struct opt_row *rows)
{
    for (const struct opt_row *r = rows; r->type; r++)
        printf("--%s\t%s\t%s\n", r->name, r->arg ? r->arg : "-", r->help);
    puts("--color\tWHEN\tauto, always or never\n--help\t-\tshow this help");
}

/* Rejects empty names of files and folders, and "-" for options that cannot write to stdout. */
static int check_name(const char *command, const struct opt_row *row, const char *value)
{
    if (!*value && (str_starts(row->arg, "FILE") || str_eq(row->arg, "DIR")))
        return options_error(command, "--%s: the name is empty", row->name);
    if (str_eq(value, "-") && str_eq(row->arg, "FILE"))
        return options_error(command, "--%s takes a file; for a file named - write ./-", row->name);
    return OPTIONS_GO;
}

static int take_value(const char *command, const struct opt_row *row, const char *value)
{
    uint64_t number;
    switch (row->type) {
    case OPT_TYPE_FLAG:
        *(bool *)row->at = true;
        return OPTIONS_GO;
    case OPT_TYPE_INT:
        if (!cairn_parse_u64(value, &number))
            return options_error(command, "--%s takes a whole number, not \"%s\"", row->name, value);
        if (number > INT_MAX)
            return options_error(command, "--%s takes a number up to %d, not %s", row->name, INT_MAX, value);
        *(int *)row->at = (int)number;
        return OPTIONS_GO;
    case OPT_TYPE_STR:
        *(const char **)row->at = value;
        return check_name(command, row, value);
    case OPT_TYPE_OPTIONAL:
    case OPT_TYPE_SEPARATE:
    case OPT_TYPE_ATTACHED:
        *(const char **)row->at = value ? value : "";
        return OPTIONS_GO;
    case OPT_TYPE_LIST:
        opt_list_add(row->at, value);
        return OPTIONS_GO;
    case OPT_TYPE_END:
        break;
    }
    return EXIT_USAGE;
}

struct table {
    struct option longs[MOST_OPTIONS + 4];
    char shorts[3 * MOST_OPTIONS + 8];
    size_t n;
};

static void add_option(struct table *t, const char *name, int has_arg, int code)
{
    t->longs[t->n++] = (struct option){ name, has_arg, NULL, code };
}

static void build_table(const struct opt_row *rows, bool mixed, struct table *t)
{
    size_t s = 0, n_rows = 0;
    while (rows[n_rows].type)
        n_rows++;
    assert(n_rows <= MOST_OPTIONS);
    if (!mixed)
        t->shorts[s++] = '+'; /* operands end the options: cairn run -- python --json */
    t->shorts[s++] = ':';
    t->shorts[s++] = 'h';
    for (int i = 0; rows[i].type; i++) {
        bool optional = is_optional(&rows[i]);
        int has_arg = rows[i].type == OPT_TYPE_FLAG ? no_argument
                      : optional                    ? optional_argument
                                                    : required_argument;
        add_option(t, rows[i].name, has_arg, CODE_FIRST + i);
        if (rows[i].short_name) {
            t->shorts[s++] = rows[i].short_name;
            if (has_arg == required_argument || rows[i].type == OPT_TYPE_OPTIONAL)
                t->shorts[s++] = ':';
            if (rows[i].type == OPT_TYPE_OPTIONAL)
                t->shorts[s++] = ':'; /* -w1 */
        }
    }
    add_option(t, "help", no_argument, CODE_HELP);
    add_option(t, "color", required_argument, CODE_COLOR);
}

static const struct opt_row *row_of(const struct opt_row *rows, int code)
{
    if (code >= CODE_FIRST)
        return &rows[code - CODE_FIRST];
    for (const struct opt_row *r = rows; r->type; r++)
        if (r->short_name == code)
            return r;
    return NULL;
}

static const char *wrong_option(char **argv)
{
    static char mark[3] = "-?";
    const char *word = argv[optind - 1];
    if (optopt == 0 || optopt >= CODE_HELP || str_starts(word, "--"))
        return word;
    mark[1] = (char)optopt;
    return mark;
}

/* "--probe, --probe-timeout" */
static size_t add_those_that_start(struct str *out, const char *name, const struct table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (str_starts(t->longs[i].name, name))
            str_addf(out, "%s--%s", n++ ? ", " : "", t->longs[i].name);
    return n;
}

static int unknown_option(const char *command, const char *word, const struct table *t)
{
    CLEANUP(str_release) struct str several = { 0 };
    char name[64];
    struct suggestion near = { .word = name };
    snprintf(name, sizeof(name), "%.*s", str_starts(word, "--") ? (int)strcspn(word + 2, "=") : 0, word + 2);
    if (*name && optopt >= CODE_HELP)
        return options_error(command, "--%s takes no argument", name);
    if (*name && add_those_that_start(&several, name, t) > 1)
        return options_error(command, "--%s is ambiguous: %s", name, several.s);
    for (size_t i = 0; *name && i < t->n; i++)
        suggest_try(&near, t->longs[i].name);
    if (near.best)
        return options_error(command, "unknown option %s; did you mean --%s?", word, near.best);
    return options_error(command, "unknown option %s", word);
}

static int parse(int argc, char **argv, const struct opt_row *rows, const struct opt_usage *usage, int *rest,
                 options_refuse refuse)
{
    struct table t = { .n = 0 };
    if (argc > 1 && !strcmp(argv[1], "--list-options"))
        return print_list(rows), EXIT_FINE;
    build_table(rows, usage->mixed, &t);
    optind = 0; /* GNU: reset */
    opterr = 0;
    for (int code, at = 1; (code = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1; at = optind) {
        if (code == 'h' || code == CODE_HELP)
            return print_help(rows, usage), EXIT_FINE;
        if ((code == '?' || code == ':') && refuse)
            return refuse(argv[at], at == 1);
        if (code == '?')
            return unknown_option(argv[0], wrong_option(argv), &t);
        if (code == ':')
            return options_error(argv[0], "%s needs an argument", argv[optind - 1]);
        if (code == CODE_COLOR) {
            if (!print_color_mode(optarg))
                return options_error(argv[0], "--color takes auto, always or never, not \"%s\"", optarg);
            continue;
        }
        const struct opt_row *row = row_of(rows, code);
        /* An optional argument may also be the next word: --explain NAME and --explain=NAME both work. */
        const char *value = optarg;
        bool may_follow = row->type == OPT_TYPE_OPTIONAL || row->type == OPT_TYPE_SEPARATE;
        if (may_follow && !value && optind < argc && argv[optind][0] != '-')
            value = argv[optind++];
        int r = take_value(argv[0], row, value);
        if (r != OPTIONS_GO)
            return r;
    }
    if (!rest && optind < argc && refuse)
        return refuse(argv[optind], optind == 1);
    if (!rest && optind < argc)
        return options_error(argv[0], "unexpected argument \"%s\"", argv[optind]);
    bool own = usage->mixed && strcmp(argv[optind - 1], "--") != 0; /* else they belong to another command */
    for (int i = optind; own && i < argc; i++)
        if (!*argv[i])
            return options_error(argv[0], "the name is empty");
    if (rest)
        *rest = optind;
    return OPTIONS_GO;
}

int options_parse_as(int argc, char **argv, const struct opt_row *rows, const struct opt_usage *usage,
                     int *rest, options_refuse refuse)
{
    int r = parse(argc, argv, rows, usage, rest, refuse);
    for (const struct opt_row *row = rows; r != OPTIONS_GO && row->type; row++)
        if (row->type == OPT_TYPE_LIST)
            opt_list_release(row->at);
    return r;
}

int options_parse(int argc, char **argv, const struct opt_row *rows, const struct opt_usage *usage, int *rest)
{
    return options_parse_as(argc, argv, rows, usage, rest, NULL);
}
