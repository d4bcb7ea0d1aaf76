/* SPDX-License-Identifier: Apache-2.0
 * Commands below a command, such as `cairn tensor ls`: one table per command. */
#ifndef CAIRN_CLI_SUBCOMMANDS_H
#define CAIRN_CLI_SUBCOMMANDS_H

#include <stddef.h>

struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is "tensor ls" */
    const char *about;                 /* NULL: internal, and not listed */
};

struct subcommands {
    const struct subcommand *row;
    size_t n;
    const char *synopsis, *about; /* for --help */
};

/* Runs the command that argv[1] names; argv[0] is the outer command's name.  Also answers --help and, for
 * completion, --list-commands. */
int subcommands_run(const struct subcommands *s, int argc, char **argv);

#endif
