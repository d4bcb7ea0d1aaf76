/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_topo.h"

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/smi_run.h"
#include "smi/topo.h"
#include <stdio.h>

static int show(const struct smi_target *t)
{
    CLEANUP(smi_release) struct smi s;
    CLEANUP(str_release) struct str text = { 0 };
    int code = smi_begin(&s, t);
    if (code)
        return code;
    smi_topo_text(&s, &text);
    fputs(text.s, stdout);
    return EXIT_FINE;
}

int smi_topo(int argc, char **argv, bool linked)
{
    static char name[] = "smi topo";
    struct smi_target target = { 0 };
    bool matrix = false;
    const struct opt_row rows[] = {
        OPT_FLAG('m', "matrix", &matrix, "how each pair of GPUs is connected"),
        SMI_OPT_ROOT(&target),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn smi topo -m",
        .about = "Shows how the GPUs are connected, and which CPUs are near them, as nvidia-smi does.",
    };
    argv[0] = name;
    int r = options_parse_as(argc, argv, rows, &usage, NULL, linked ? smi_refuse_word : NULL);
    if (r != OPTIONS_GO)
        return r;
    return matrix ? show(&target) : smi_refuse_together(name, "needs -m", linked);
}
