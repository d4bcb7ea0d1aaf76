/* SPDX-License-Identifier: Apache-2.0
 * Options as a table: parsing, --help and completion read the same rows, so they cannot drift apart.
 *
 *     const struct opt_row rows[] = {
 *         OPT_STR('t', "trainer", &trainer, "NAME", "plan for this trainer"),
 *         OPT_FLAG('j', "json", &json, "print JSON on stdout"),
 *         OPT_END
 *     };
 *     int r = options_parse(argc, argv, rows, &usage, &rest);
 *     if (r != OPTIONS_GO) return r;     help was printed (0), or the usage was wrong (2)
 *
 * A command is called with argv[0] being its name. */
#ifndef CAIRN_CLI_OPTIONS_H
#define CAIRN_CLI_OPTIONS_H

#include "base/cleanup.h"
#include <stdbool.h>
#include <stddef.h>

enum opt_type {
    OPT_TYPE_END,
    OPT_TYPE_FLAG,
    OPT_TYPE_INT,      /* int *: a whole number >= 0 */
    OPT_TYPE_STR,      /* const char ** */
    OPT_TYPE_LIST,     /* struct opt_list *: may be given several times */
    OPT_TYPE_OPTIONAL, /* const char **: an argument may follow, -w2 and -w 2; "" when none does */
    OPT_TYPE_SEPARATE, /* the same, but not attached to its letter */
    OPT_TYPE_ATTACHED, /* the same, but only as --name=ARG, so that an operand may follow --name */
};

struct opt_list {
    const char **item; /* NULL-terminated once something was added */
    size_t n;
};
void opt_list_release(struct opt_list *l);

struct opt_row {
    enum opt_type type;
    char short_name; /* 0: none */
    const char *name;
    void *at;
    const char *arg; /* what the help calls the argument */
    const char *help;
};
/* clang-format off */
#define OPT_FLAG(c, n, p, h) { OPT_TYPE_FLAG, c, n, p, NULL, h }
#define OPT_INT(c, n, p, a, h) { OPT_TYPE_INT, c, n, p, a, h }
#define OPT_STR(c, n, p, a, h) { OPT_TYPE_STR, c, n, p, a, h }
#define OPT_LIST(c, n, p, a, h) { OPT_TYPE_LIST, c, n, p, a, h }
#define OPT_OPTIONAL(c, n, p, a, h) { OPT_TYPE_OPTIONAL, c, n, p, a, h }
#define OPT_SEPARATE(c, n, p, a, h) { OPT_TYPE_SEPARATE, c, n, p, a, h }
#define OPT_ATTACHED(c, n, p, a, h) { OPT_TYPE_ATTACHED, c, n, p, a, h }
#define OPT_HANG_AFTER(p) { OPT_TYPE_INT, 0, "hang-after", p, "SECONDS", \
    "give up if the device does not answer for this long (default 60; 0: never)" }
#define OPT_END { OPT_TYPE_END, 0, NULL, NULL, NULL, NULL }
/* clang-format on */

struct opt_usage {
    const char *synopsis;         /* "cairn env [options]" */
    const char *about;            /* a paragraph for --help */
    const char *examples;         /* lines, or NULL */
    bool mixed;                   /* options may follow operands: convert IN OUT --dtype f32 */
    void (*print_commands)(void); /* lists its sub-commands; NULL: none */
};

enum { OPTIONS_GO = -1 };

/* OPTIONS_GO: continue; *rest is the index of the first operand in argv (NULL: operands are wrong usage).
 * Otherwise the exit code, and lists are empty.  Handles --help and --color, which every command has. With
 * --list-options (for completion) it prints the rows, one per line. */
int options_parse(int argc, char **argv, const struct opt_row *rows, const struct opt_usage *usage,
                  int *rest);
/* The same, but `refuse` reports a wrong argument and returns the exit code; NULL: as above. */
typedef int (*options_refuse)(const char *word, bool first);
int options_parse_as(int argc, char **argv, const struct opt_row *rows, const struct opt_usage *usage,
                     int *rest, options_refuse refuse);
/* "cairn env: <message>", and the hint to --help; returns 2. */
int options_error(const char *command, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
