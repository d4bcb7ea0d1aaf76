/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor extract: a conversion that keeps every dtype and omits tensors. */
#include "base/progress.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "cli/tensor_commands.h"
#include "report/tensor.h"
#include <stdio.h>

static void print_result(const char *out, const struct convert_report *r)
{
    char size[24];
    print_padded(stdout, out, 0);
    printf(": %zu tensor%s, %s; %zu omitted\n", r->copied, r->copied == 1 ? "" : "s",
           bytes_text((int64_t)r->bytes_out, size), r->dropped);
}

static int extract(const char *in, const char *out, struct convert_options *o, const struct opt_list *only,
                   bool json)
{
    CLEANUP(source_close) struct tensor_source src = { 0 };
    struct cairn_error err = { 0 };
    struct convert_report report;
    struct progress progress;
    if (source_open(&src, in, &err) || tensor_check_patterns(&src, 1, only, &err))
        return print_error(&err);
    o->stop = stop_catch();
    o->progress = &progress;
    progress_start(&progress, stderr, "extract", 0);
    int r = convert_file(&src, out, o, &report, &err);
    progress_end(&progress);
    if (r)
        return *o->stop ? stop_end("nothing was written") : print_error(&err);
    if (json)
        print_report(report_tensor_extract(in, out, &report));
    else
        print_result(out, &report);
    return EXIT_FINE;
}

int tensor_extract(int argc, char **argv)
{
    CLEANUP(opt_list_release) struct opt_list only = { 0 };
    bool json = false;
    struct convert_options o = { .to = DTYPE_OTHER, .drop_others = true };
    const struct opt_row rows[] = {
        OPT_LIST(0, "only", &only, "GLOB", "copy tensors whose name matches; may be repeated"),
        OPT_FLAG('f', "force", &o.replace, "replace OUT if it exists"),
        OPT_INT(0, "threads", &o.threads, "N", "use N threads instead of all cores"),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        "cairn tensor extract IN OUT --only GLOB [options]",
        "Copies some tensors of IN to the safetensors file OUT, bit for bit, with order and "
        "metadata. OUT appears only when it is complete and on disk.",
        "  cairn tensor extract wan.safetensors block0.safetensors --only 'blocks.0.*'\n"
        "  cairn tensor extract models_t5_umt5-xxl-enc-bf16.pth t5.safetensors --only '*'\n",
        .mixed = true,
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r == OPTIONS_GO)
        r = tensor_operands(argc, argv, rest, 2, "IN and OUT") ?: OPTIONS_GO;
    if (r != OPTIONS_GO)
        return r;
    if (!only.n)
        return options_error(argv[0], "needs --only GLOB: which tensors");
    o.only = only.item;
    o.n_only = only.n;
    return extract(argv[rest], argv[rest + 1], &o, &only, json);
}
