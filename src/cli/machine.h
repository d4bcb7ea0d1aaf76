/* SPDX-License-Identifier: Apache-2.0
 * The options of all commands about the machine: --root, --torch, --rocm. */
#ifndef CAIRN_CLI_MACHINE_H
#define CAIRN_CLI_MACHINE_H

#include "cli/options.h"
#include "host/facts.h"

struct machine_options {
    const char *root, *torch_dir, *rocm_dir;
    const char *gfx;            /* a row of the command's own, if it has one */
    const char *const *command; /* to be started; NULL: none */
};

/* Rows of a table of options. */
#define OPT_MACHINE(m)                                                                                       \
    OPT_STR(0, "torch", &(m)->torch_dir, "DIR", "the PyTorch in this site-packages or virtual environment"), \
        OPT_STR(0, "rocm", &(m)->rocm_dir, "DIR", "the ROCm in this directory"),                             \
        OPT_STR(0, "root", &(m)->root, "DIR", "read the tree DIR instead of this machine's /")

/* All facts, with the environment of this process. */
int machine_read(const struct machine_options *m, struct facts *out, struct cairn_error *err);

#endif
