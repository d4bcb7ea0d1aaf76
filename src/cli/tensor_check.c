/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor check: scans files on all cores and reports damaged ones. */
#include "cli/tensor_check.h"

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/tensor_commands.h"
#include <stdio.h>

struct options {
    bool json, verbose;
    struct check_options how;
};

static int check(size_t n, char **paths, struct options *w)
{
    CLEANUP(check_release) struct checked_files checked = { 0 };
    struct cairn_error err = { 0 };
    struct progress progress;
    progress_start(&progress, stderr, "check", 0);
    w->how.details = w->json || w->verbose;
    w->how.progress = &progress;
    int r = check_files(paths, n, &w->how, &checked, &err);
    progress_end(&progress);
    if (r)
        return print_error(&err);
    if (checked.not_direct)
        fprintf(stderr, "cairn: read %d files through the page cache: O_DIRECT is not possible\n",
                checked.not_direct);
    if (w->json)
        print_report(report_tensor_check(&checked));
    else
        check_print_table(&checked, w->verbose);
    return checked.damaged ? EXIT_TROUBLE : EXIT_FINE;
}

int tensor_check(int argc, char **argv)
{
    struct options w = { .json = false };
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_FLAG('v', "verbose", &w.verbose, "list every tensor with its statistics"),
        OPT_INT(0, "threads", &w.how.threads, "N", "use N threads instead of all cores"),
        OPT_FLAG(0, "direct", &w.how.direct, "bypass the page cache (O_DIRECT)"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn tensor check FILE|FOLDER... [options]",
        .about = "Reads every value and reports damaged files, with a remedy: truncated, NaN, Inf, all "
                 "zero, half zero, constant, values that are implausible for a latent or a weight, or a "
                 ".pth with a wrong CRC-32. Tensors of a dtype that cairn does not know are counted as "
                 "skipped. Folders are searched for .safetensors, .pt and .pth. Exit status: 1 if a file "
                 "is damaged.",
        .examples = "  cairn tensor check ~/dataset/cache\n"
                    "  cairn tensor check lora.safetensors --verbose\n"
                    "  cairn tensor check . --json | jq -r '.files[] | select(.damaged) | .path'\n",
        .mixed = true,
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (rest == argc)
        return options_error(argv[0], "needs a FILE or FOLDER");
    return check((size_t)(argc - rest), argv + rest, &w);
}
