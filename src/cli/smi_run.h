/* SPDX-License-Identifier: Apache-2.0
 * What the answers of `cairn smi` have in common: exit codes, no GPU, loops, and wrong options. */
#ifndef CAIRN_CLI_SMI_RUN_H
#define CAIRN_CLI_SMI_RUN_H

#include "cli/options.h"
#include "smi/smi.h"
#include <stdbool.h>

/* The codes of nvidia-smi: programs that call it know them.  What it finds wrong it says on stdout. */
enum { SMI_EXIT_BAD_ARGUMENT = 2, SMI_EXIT_NOT_FOUND = 6, SMI_EXIT_BAD_OPTION = 255 };

/* Which machine, and which of its GPUs. */
struct smi_target {
    const char *root, *ids;
    bool silent; /* where there is no GPU: stdout stays empty */
};
#define SMI_OPT_ID(target)                   \
    OPT_STR('i', "id", &(target)->ids, "ID", \
            "only this GPU, or several separated by commas: index, UUID, serial number or PCI address")
#define SMI_OPT_FILE(file) OPT_STR('f', "filename", file, "FILE", "write to FILE instead of stdout")
#define SMI_OPT_ROOT(target) \
    OPT_STR(0, "root", &(target)->root, "DIR", "read the tree DIR instead of this machine's /")

/* EXIT_FINE: there is something to tell.  s is to be released in any case. */
int smi_begin(struct smi *s, const struct smi_target *t);

/* Shows something every period_ms, `times` times (0: until Ctrl-C), or until it fails or nobody reads any more. */
int smi_repeat(long period_ms, long times, int (*show)(void *with, bool first), void *with);

/* Says on stdout what is wrong with an argument; returns the code for that. */
int smi_refuse(const char *why);
/* For struct opt_usage, in a program that is called nvidia-smi. */
int smi_refuse_option(const char *word, bool first);
/* The same for one of its commands, such as dmon. */
int smi_refuse_word(const char *word, bool first);
/* For options that are right, but not together: why, or in the words of the program called nvidia-smi. */
int smi_refuse_together(const char *command, const char *why, bool linked);
/* stdout is this file from now on; NULL: as it is. */
int smi_redirect(const char *file);

#endif
