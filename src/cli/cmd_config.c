/* SPDX-License-Identifier: Apache-2.0
 * cairn config convert: the job of another trainer as a configuration of cairn's own.
 * cairn config check: what is wrong with a configuration, all of it. */
#include "base/file.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "os/file.h"
#include "cli/pages.h"
#include "report/config_check.h"
#include "report/config_keys.h"
#include "run/job_file.h"
#include "start/check_config.h"
#include "start/read_config.h"
#include "train/config.h"
#include <errno.h>
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
            return cairn_fail_errno(err, "open %s", file),
                   cairn_hint(err, "name a job file of ai-toolkit, or musubi-tuner's file for --config_file");
        struct job_file f;
        cairn_fail(err, CAIRN_EUSAGE, "%s is not a job of ai-toolkit or musubi-tuner", file);
        if (job_file_read(file, a, &f) && f.is_dataset)
            return cairn_hint(err, "it is a dataset file: `cairn cache` takes it, and so does data.path");
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

/* Standard input as a file that can be opened several times. */
static int keep_input(struct arena *a, const char **path, int *fd, struct cairn_error *err)
{
    static char buf[FILE_SETTINGS_MOST + 1];
    size_t n = fread(buf, 1, sizeof(buf), stdin);
    if (ferror(stdin))
        return cairn_fail_errno(err, "read standard input");
    if (n == sizeof(buf))
        return file_settings_too_large("standard input", err);
    *fd = os_open_memory("cairn-config");
    if (*fd < 0 || (n && os_write_at(*fd, buf, n, 0) != (ssize_t)n))
        return cairn_fail_errno(err, "keep standard input");
    *path = arena_printf(a, "/proc/self/fd/%d", *fd);
    return 0;
}

static void print_findings(const struct config_findings *f, const char *shown)
{
    for (size_t i = 0; i < f->n_notes; i++)
        printf("note: %s\n", f->notes[i]);
    for (size_t i = 0; i < f->n_errors; i++) {
        const struct config_finding *e = &f->errors[i];
        print_padded(stdout, shown, 0);
        if (e->line)
            printf(":%d:%d", e->line, e->column);
        fputs(": ", stdout);
        print_padded(stdout, e->message, 0);
        putchar('\n');
        if (e->hint) {
            fputs("  ", stdout);
            print_padded(stdout, e->hint, 0);
            putchar('\n');
        }
    }
    if (!f->n_errors) {
        print_padded(stdout, shown, 0);
        puts(": no errors");
    }
}

static int check(const char *file, bool json, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct config_findings found;
    const char *path = file, *shown = file;
    CLEANUP(fd_close) int fd = -1;
    if (!strcmp(file, "-")) {
        shown = "standard input";
        if (keep_input(a, &path, &fd, &err))
            return print_error(&err);
    } else if (access(file, R_OK)) {
        cairn_fail_errno(&err, "open %s", file);
        return print_error(&err);
    }
    start_check_config(path, shown, a, &found);
    if (json)
        print_report(report_config(&found));
    else
        print_findings(&found, shown);
    return found.n_errors ? EXIT_TROUBLE : EXIT_FINE;
}

/* The keys, and the examples to start from. */
static int print_keys(void)
{
    static const char folder[] = "example/";
    struct json *v = report_config_keys(), *presets = json_add_array(v, "presets");
    for (const struct page *p = pages; p->name; p++)
        if (str_starts(p->name, folder)) {
            struct json *o = json_add_object(presets, NULL);
            json_add_text(o, "name", p->name + strlen(folder));
            json_add_text(o, "text", p->text);
        }
    print_report(v);
    return EXIT_FINE;
}

int cmd_config(int argc, char **argv)
{
    const char *out = NULL;
    bool json = false;
    int rest;
    const struct opt_row rows[] = {
        OPT_STR('o', "out", &out, "FILE", "convert: write it to FILE instead of standard output"),
        OPT_FLAG('j', "json", &json, "check: print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn config convert|check [options] FILE\n       cairn config keys",
        .about =
            "convert prints the job of another trainer (ai-toolkit: YAML or JSON; musubi-tuner: TOML) as a "
            "configuration of cairn's own. Each key has a comment that names the key it comes from. The datasets "
            "stay in FILE, which data.path names. cairn train, plan and cache take such jobs as they are, too. Exit "
            "status: 0 converted, 1 a file cannot be read or written, 2 the job asks for something that cairn "
            "cannot do.\n\n"
            "check lists all errors of a configuration or such a job, with their lines; - is standard input. It "
            "looks at no data and no weights. Exit status: 0 no errors, 1 errors.\n\n"
            "keys prints all keys with types and defaults, and the examples of cairn train --example, as JSON.",
        .examples = "  cairn config convert job.yaml > wan.yaml\n"
                    "  cairn config check wan.yaml\n"
                    "  cairn plan wan.yaml --gfx gfx1201 --memory 16\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    const char *what = rest < argc ? argv[rest] : "";
    bool converts = !strcmp(what, "convert");
    if (!strcmp(what, "keys"))
        return argc - rest == 1 && !out ? print_keys() : options_error("config", "keys takes no file");
    if (!converts && strcmp(what, "check"))
        return options_error(
            "config", "the commands are: cairn config convert FILE, cairn config check FILE, cairn config "
                      "keys");
    if (argc - rest != 2)
        return options_error("config", "%s takes one file", what);
    if (converts ? json : out != NULL)
        return options_error("config", "%s does not take --%s", what, converts ? "json" : "out");
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    if (!converts)
        return check(argv[rest + 1], json, &a);
    return convert(argv[rest + 1], out, &a, &err) ? print_error(&err) : EXIT_FINE;
}
