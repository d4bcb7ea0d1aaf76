/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor: finds the sub-command. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/subcommands.h"
#include "cli/tensor_commands.h"
#include "tensor/source.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The only list of sub-commands. */
static const struct subcommand rows[] = {
    { "ls", tensor_ls, "list the tensors of a file: dtype, shape, size" },
    { "check", tensor_check, "find files with zeros, NaN, Inf or implausible values; searches folders" },
    { "convert", tensor_convert, "write a file with other dtypes or LoRA names" },
    { "diff", tensor_diff, "compare two files, tensor by tensor" },
    { "extract", tensor_extract, "write a file with some of the tensors" },
    { "merge", tensor_merge, "add a LoRA to its base model" },
};

const char *tensor_shape_text(const struct st_tensor *t, char *buf)
{
    size_t used = (size_t)snprintf(buf, TENSOR_SHAPE_TEXT, "[");
    for (int i = 0; i < t->rank; i++) {
        char one[24];
        size_t n = (size_t)snprintf(one, sizeof(one), "%s%" PRIu64, i ? ", " : "", t->shape[i]);
        if (used + n + sizeof("...]") > TENSOR_SHAPE_TEXT) {
            strcpy(buf + used, "...]");
            return buf;
        }
        memcpy(buf + used, one, n + 1);
        used += n;
    }
    strcpy(buf + used, "]");
    return buf;
}

int tensor_operands(int argc, char **argv, int rest, int want, const char *what)
{
    if (argc - rest < want)
        return options_error(argv[0], "needs %s", what);
    if (argc - rest > want)
        return options_error(argv[0], "needs %s; unexpected \"%s\"", what, argv[rest + want]);
    return 0;
}

int tensor_check_patterns(const struct tensor_source *sources, size_t n, const struct opt_list *only,
                          struct cairn_error *err)
{
    for (size_t k = 0; k < only->n; k++) {
        bool fits = false;
        for (size_t f = 0; f < n && !fits; f++)
            for (size_t i = 0; i < sources[f].n_tensors && !fits; i++)
                fits = source_name_matches(sources[f].tensors[i].name, &only->item[k], 1);
        if (!fits)
            return cairn_fail(err, CAIRN_EFORMAT, "%s%s: no tensor name matches \"%s\"", sources[0].path,
                              n > 1 ? " and the others" : "", only->item[k]);
    }
    return 0;
}

int cmd_tensor(int argc, char **argv)
{
    static const struct subcommands commands = {
        .row = rows,
        .n = ARRAY_LEN(rows),
        .synopsis = "cairn tensor COMMAND [options] FILE...",
        .about = "Lists, checks, converts, compares and merges tensor files: safetensors, sharded models "
                 "by their .index.json, and PyTorch's .pth and .pt, without executing anything in them. "
                 "\"cairn help tensor COMMAND\" shows the help of one command.",
    };
    return subcommands_run(&commands, argc, argv);
}
