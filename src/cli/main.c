/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "config.h"
#include "gpu/compile.h"
#include "gpu/watch.h"
#include "rules/reviewed.h"
#include "train/config.h"
#include "os/terminal.h"
#include "os/path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
};

/* The only list of commands. */
static const struct command commands[] = {
    { "gpu", cmd_gpu, "list the GPUs: chip, usable memory, load, problems" },
    { "doctor", cmd_doctor, "check everything that training needs, and print the fixes" },
    { "env", cmd_env, "print the environment for a trainer on this machine, and why" },
    { "run", cmd_run, "run a trainer with that environment, watch it, diagnose and retry" },
    { "job", cmd_job, "a queue of trainings that needs no server" },
    { "smi", cmd_smi, "answer as nvidia-smi does, for programs that expect it" },
    { "diagnose", cmd_diagnose, "find the cause of a failed run in its log, and the fixes" },
    { "plot", cmd_plot, "plot loss and memory of training runs, and compare them" },
    { "bench", cmd_bench, "measure the speed of a device and of cairn's kernels on it" },
    { "selftest", cmd_selftest, "check that cairn's kernels compute correct results" },
    { "train", cmd_train, "train a GPT or a LoRA on the best device, without Python" },
    { "cache", cmd_cache, "encode images, clips and captions for training a video model" },
    { "decode", cmd_decode, "show what a cache of latents holds, as a picture or a clip" },
    { "plan", cmd_plan, "compute the memory of a training job, and how to make it fit" },
    { "config", cmd_config, "check a configuration; convert the job of ai-toolkit or musubi-tuner" },
    { "sample", cmd_sample, "generate text, images or clips with a trained model" },
    { "ui", cmd_ui, "serve a page for jobs, curves, samples and the machine in a browser" },
    { "tensor", cmd_tensor, "list, check, convert, compare and merge tensor files" },
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_usage(FILE *out)
{
    static const char *const more[][2] = {
        { "cairn help COMMAND", "show help for a command" },
        { "cairn help config",
          "print a configuration with every key, its default and meaning; or config wan" },
        { "cairn help rules", "list the pages that explain why variables are set and removed" },
        { "cairn --version", "print the version and the date of its knowledge; --kernels: also the kernels" },
    };
    int width = print_width();
    fputs("usage: cairn <command> [options]\n\n", out);
    print_wrapped(out,
                  "Checks an AMD GPU machine for training, runs and diagnoses PyTorch trainers, and trains "
                  "GPT models and LoRAs for Wan video models.",
                  0, width);
    fputs("\ncommands:\n", out);
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(out, "  %-10s ", commands[i].name);
        print_wrapped(out, commands[i].about, 13, width);
    }
    fputc('\n', out);
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        fprintf(out, "  %-21s ", more[i][0]);
        print_wrapped(out, more[i][1], 24, width);
    }
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

/* Suggests commands, words such as "help", and options of the program itself. */
static int unknown_command(const char *name)
{
    static const char *const others[] = { "help", "version", "--help", "--version" };
    bool option = name[0] == '-';
    struct suggestion near = { .word = name };
    for (int i = 0; i < N_COMMANDS; i++)
        suggest_try(&near, commands[i].name);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        suggest_try(&near, others[i]);
    fputs(option ? "cairn: unknown option " : "cairn: unknown command \"", stderr);
    print_padded(stderr, name, 0);
    fputs(option ? "" : "\"", stderr);
    if (near.best)
        fprintf(stderr, "; did you mean %s?", near.best);
    fputs("\n  try: cairn help\n", stderr);
    return EXIT_USAGE;
}

/* A kind: the keys of that kind of model.  --markdown: the tables of docs/config.md. */
static int help_config(const char *more)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    CLEANUP(str_release) struct str text = { 0 };
    struct cairn_error ignored;
    struct job_config c;
    bool markdown = more && !strcmp(more, "--markdown");
    config_init(&c, &arena);
    if (more && !markdown && config_set(&c, "help config", "model.kind", more, &ignored)) {
        fprintf(stderr, "cairn: help config takes a kind of model or --markdown, not \"%s\"\n", more);
        return EXIT_USAGE;
    }
    if (markdown)
        config_write_markdown(&text);
    else
        config_write(&c, &text);
    fputs(text.s, stdout);
    return EXIT_FINE;
}

/* "rules" lists the pages, "rules/override" prints one. */
static int help_rules(const char *name)
{
    const char *page = name ? page_find("rules", name) : NULL;
    if (page)
        return fputs(page, stdout), EXIT_FINE;
    char *names = page_names("rules");
    if (name)
        fprintf(stderr, "cairn: unknown page rules/%s\n  try: %s\n", name, names);
    else
        printf("Why cairn sets and removes variables; cairn help rules/NAME prints a page:\n  %s\n", names);
    free(names);
    return name ? EXIT_USAGE : EXIT_FINE;
}

static int cmd_help(int argc, char **argv)
{
    if (argc < 2 || str_eq(argv[1], "help") || str_eq(argv[1], "--help") || str_eq(argv[1], "-h"))
        return print_usage(stdout), EXIT_FINE;
    if (!strcmp(argv[1], "rules") || !strncmp(argv[1], "rules/", 6))
        return help_rules(argv[1][5] ? argv[1] + 6 : NULL);
    if (!strcmp(argv[1], "config"))
        return help_config(argc > 2 ? argv[2] : NULL);
    const struct command *c = find_command(argv[1]);
    if (!c)
        return unknown_command(argv[1]);
    char help[] = "--help";
    char *args[] = { argv[1], argc > 2 ? argv[2] : help, argc > 2 ? help : NULL, NULL };
    return c->run(argc > 2 ? 3 : 2, args);
}

/* The hash covers the whole source of a kernel. */
static void print_kernels(void)
{
    char hash[33];
    for (size_t i = 0; i < n_kernel_rows; i++) {
        compile_text_hash(kernel_rows[i].text, hash);
        printf("%s  %-12s %s\n", hash, kernel_rows[i].text->file, kernel_rows[i].name);
    }
}

static int print_version(const char *more)
{
    if (more && strcmp(more, "--kernels")) {
        fprintf(stderr, "cairn: --version takes --kernels, not \"%s\"\n", more);
        return EXIT_USAGE;
    }
    printf("cairn %s\nknowledge reviewed %s\n", CAIRN_VERSION, RULES_REVIEWED);
    if (more)
        print_kernels();
    return EXIT_FINE;
}

/* The link that `cairn run --with-smi` makes. */
static bool is_smi(const char *program)
{
    return program && str_eq(path_name(program), "nvidia-smi");
}

static int run(int argc, char **argv)
{
    if (argc && is_smi(argv[0]))
        return cmd_smi(argc, argv);
    if (argc < 2)
        return print_usage(stderr), EXIT_USAGE;
    const char *word = argv[1];
    if (!strcmp(word, "help"))
        return cmd_help(argc - 1, argv + 1);
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        return print_usage(stdout), EXIT_FINE;
    if (!strcmp(word, "--version") || !strcmp(word, "version"))
        return print_version(argc > 2 ? argv[2] : NULL);
    if (!strcmp(word, "--list-commands")) {
        for (int i = 0; i < N_COMMANDS; i++)
            printf("%s\t%s\n", commands[i].name, commands[i].about);
        return EXIT_FINE;
    }
    const struct command *c = find_command(word);
    return c ? c->run(argc - 1, argv + 1) : unknown_command(word);
}

/* A full disk must not look like success; a reader (head) may close the pipe. */
static int flush_output(int code)
{
    if ((!fflush(stdout) && !ferror(stdout)) || errno == EPIPE)
        return code;
    struct cairn_error err = { 0 };
    cairn_fail_errno(&err, "write to %s", print_output_name());
    return print_error(&err);
}

int main(int argc, char **argv)
{
    os_fill_standard();
    int code = flush_output(run(argc, argv));
    if (watch_saw_hang())
        _exit(code); /* skip the exit handlers of a runtime that would wait for its device */
    return code;
}
