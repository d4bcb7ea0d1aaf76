/* SPDX-License-Identifier: Apache-2.0
 * cairn config convert: the job of another trainer as a configuration of cairn's own. */
#include "base/file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "start/read_config.h"
#include "train/config.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Also that cairn itself would take it. */
static int convert(const char *file, const char *out, struct arena *a, struct cairn_error *err)
{
    CLEANUP(str_release) struct str yaml = { 0 };
    struct foreign_job job = { 0 };
    struct job_config c;
    bool found;
    if (start_read_foreign(file, a, &job, &found, err)) {
        if (found)
            return -1;
        if (access(file, R_OK))
            return cairn_fail_errno(err, "open %s", file);
        cairn_fail(err, CAIRN_EUSAGE, "%s is not a job of ai-toolkit or musubi-tuner", file);
        return cairn_hint(err, "a configuration of cairn's own needs no conversion: cairn plan %s checks it",
                          file);
    }
    config_init(&c, a);
    if (foreign_apply(&c, &job, err) || config_check(&c, err))
        return -1;
    foreign_write(&job, &yaml);
    if (out)
        return file_write(out, yaml.s, yaml.len, err);
    fputs(yaml.s, stdout);
    return 0;
}

int cmd_config(int argc, char **argv)
{
    const char *out = NULL;
    int rest;
    const struct opt_row rows[] = {
        OPT_STR('o', "out", &out, "FILE", "write it to FILE instead of standard output"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn config convert [options] FILE",
        .about =
            "Prints the job of another trainer (ai-toolkit: YAML or JSON; musubi-tuner: TOML) as a configuration "
            "of cairn's own. Each key has a comment that names the key it comes from. The datasets stay in "
            "FILE, which data.path names. cairn train, plan and cache take such jobs as they are, too. Exit "
            "status: 0 converted, 1 a file cannot be read or written, 2 the job asks for something that cairn "
            "cannot do.",
        .examples = "  cairn config convert job.yaml > wan.yaml\n"
                    "  cairn plan wan.yaml --gfx gfx1201 --memory 16\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (rest >= argc || strcmp(argv[rest], "convert"))
        return options_error("config", "the command is: cairn config convert FILE");
    if (argc - rest != 2)
        return options_error("config", "convert takes one file");
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    return convert(argv[rest + 1], out, &a, &err) ? print_error(&err) : EXIT_FINE;
}
