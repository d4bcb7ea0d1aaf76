/* SPDX-License-Identifier: Apache-2.0
 * Common parts of the commands of `cairn smi`: exit codes, no GPU, loops, and wrong options. */
#ifndef CAIRN_CLI_SMI_RUN_H
#define CAIRN_CLI_SMI_RUN_H

#include "cli/options.h"
#include "smi/smi.h"
#include <stdbool.h>

/* The exit codes of nvidia-smi, which programs rely on.  It prints errors on stdout. */
enum { SMI_EXIT_BAD_ARGUMENT = 2, SMI_EXIT_NOT_FOUND = 6, SMI_EXIT_BAD_OPTION = 255 };

/* Which machine, and which of its GPUs. */
struct smi_target {
    const char *root, *ids;
    bool silent; /* without a GPU, print nothing on stdout */
};
#define SMI_OPT_ID(target)                   \
    OPT_STR('i', "id", &(target)->ids, "ID", \
            "only this GPU, or several separated by commas: index, UUID, serial number or PCI address")
#define SMI_OPT_FILE(file) OPT_STR('f', "filename", file, "FILE", "write to FILE instead of stdout")
#define SMI_OPT_ROOT(target) \
    OPT_STR(0, "root", &(target)->root, "DIR", "read the tree DIR instead of this machine's /")

/* EXIT_FINE: there is a GPU.  The caller releases s in any case. */
int smi_begin(struct smi *s, const struct smi_target *t);

/* Calls show every period_ms, `times` times (0: until Ctrl-C), or until it fails or the reader has left. */
int smi_repeat(long period_ms, long times, int (*show)(void *with, bool first), void *with);

/* Reports a wrong argument on stdout; returns the exit code. */
int smi_refuse(const char *why);
/* For struct opt_usage, in a program that is called nvidia-smi. */
int smi_refuse_option(const char *word, bool first);
/* The same for one of its commands, such as dmon. */
int smi_refuse_word(const char *word, bool first);
/* For options that exclude each other: prints why, or nvidia-smi's message if called by that name. */
int smi_refuse_together(const char *command, const char *why, bool linked);
/* Redirects stdout to this file; NULL: does nothing. */
int smi_redirect(const char *file);

#endif
