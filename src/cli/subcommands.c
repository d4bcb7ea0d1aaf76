/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/subcommands.h"

#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include <stdio.h>
#include <string.h>

static const struct subcommands *shown; /* by --help, which has no context */

static void print_commands(void)
{
    for (size_t i = 0; i < shown->n; i++)
        if (shown->row[i].about) {
            printf("  %-10s ", shown->row[i].name);
            print_wrapped(stdout, shown->row[i].about, 13, print_width());
        }
}

/* Options before a sub-command, such as --help. */
static int own_options(const struct subcommands *s, int argc, char **argv)
{
    const struct opt_row rows[] = { OPT_END };
    const struct opt_usage usage = {
        .synopsis = s->synopsis,
        .about = s->about,
        .print_commands = print_commands,
    };
    shown = s;
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    return r != OPTIONS_GO ? r : options_error(argv[0], "needs a command");
}

static int list_commands(const struct subcommands *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].about)
            printf("%s\t%s\n", s->row[i].name, s->row[i].about);
    return EXIT_FINE;
}

int subcommands_run(const struct subcommands *s, int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--list-commands"))
        return list_commands(s);
    if (argc < 2 || argv[1][0] == '-')
        return own_options(s, argc, argv);
    struct suggestion near = { .word = argv[1] };
    for (size_t i = 0; i < s->n; i++) {
        if (!strcmp(argv[1], s->row[i].name)) {
            char name[32];
            snprintf(name, sizeof(name), "%s %s", argv[0], s->row[i].name);
            argv[1] = name;
            return s->row[i].run(argc - 1, argv + 1);
        }
        if (s->row[i].about)
            suggest_try(&near, s->row[i].name);
    }
    return options_error(argv[0], "unknown command \"%s\"%s%s%s", argv[1], near.best ? "; did you mean " : "",
                         near.best ? near.best : "", near.best ? "?" : "");
}
