/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor merge: adds a LoRA to its base model. */
#include "base/progress.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "cli/tensor_commands.h"
#include "report/lora.h"
#include <math.h>
#include <stdlib.h>

static void print_text(const struct merge_paths *p, const struct merge_options *o,
                       const struct merge_report *r)
{
    char size[24];
    print_padded(stdout, p->out, 0);
    printf(": %zu module%s merged", r->modules, r->modules == 1 ? "" : "s");
    if (o->scale != 1)
        printf(" at %g", o->scale);
    printf(", %zu tensor%s changed, %zu copied, %s\n", r->changed, r->changed == 1 ? "" : "s", r->copied,
           bytes_text((int64_t)r->bytes, size));
    if (*r->basis.config) {
        fputs("  strength from ", stdout);
        print_padded(stdout, r->basis.config, 0);
        putchar('\n');
    }
    if (r->transposed)
        printf("  %zu transposed: the base stores these weights as [in, out]\n", r->transposed);
    if (r->replaced)
        printf("  %zu replaced: the LoRA file contains the full tensors\n", r->replaced);
}

static int open_and_merge(const struct merge_paths *p, const struct merge_options *o,
                          struct merge_report *report, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source base = { 0 };
    CLEANUP(lora_close) struct lora_file lora = { 0 };
    if (source_open(&base, p->base, err) || lora_open(&lora, p->lora, err))
        return -1;
    return merge_lora(&base, &lora, p->out, o, report, err);
}

static int merge(const struct merge_paths *p, struct merge_options *o, bool json)
{
    struct merge_report report;
    struct cairn_error err = { 0 };
    struct progress progress;
    progress_start(&progress, stderr, "merge", 0);
    o->progress = &progress;
    o->stop = stop_catch();
    int r = open_and_merge(p, o, &report, &err);
    progress_end(&progress);
    if (r && *o->stop)
        return stop_end("nothing was written");
    if (r)
        return print_error(&err);
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct tensor_notes notes = merge_notes(p->base, o->scale, &report, &a);
    if (json) {
        print_report(report_merge(p, o->scale, &report, &notes));
    } else {
        print_text(p, o, &report);
        tensor_print_notes(&notes);
    }
    return EXIT_FINE;
}

/* 0: no error; otherwise the exit code. */
static int read_options(const char *command, const char *scale, const char *dtype, struct merge_options *o)
{
    char *end = NULL;
    o->scale = scale ? strtod(scale, &end) : 1;
    if (scale && (end == scale || *end || !isfinite(o->scale)))
        return options_error(command, "--scale takes a number, not \"%s\"", scale);
    o->dtype = dtype ? dtype_parse(dtype) : DTYPE_OTHER;
    if (dtype && !dtype_is_float(o->dtype))
        return options_error(command, "--dtype takes f64, f32, f16, bf16, f8_e4m3 or f8_e5m2, not \"%s\"",
                             dtype);
    return 0;
}

int tensor_merge(int argc, char **argv)
{
    const char *scale = NULL, *dtype = NULL;
    bool force = false, json = false, allow_nan = false;
    int threads = 0, rest;
    const struct opt_row rows[] = {
        OPT_STR('s', "scale", &scale, "S",
                "strength: 1 is as trained, 0.5 half of it; a negative value subtracts it"),
        OPT_STR('d', "dtype", &dtype, "DTYPE", "dtype of OUT (default: each tensor keeps its own)"),
        OPT_FLAG('f', "force", &force, "replace OUT if it exists"),
        OPT_FLAG(0, "allow-nan", &allow_nan, "write OUT even if values become NaN or Inf"),
        OPT_INT(0, "threads", &threads, "N", "use N threads instead of all cores"),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        "cairn tensor merge BASE LORA OUT [options]",
        "Adds a LoRA to the weights of its base model: W + scale * (alpha / rank) * up * down, "
        "summed in f32. LORA is a file in any dialect (musubi, ComfyUI, diffusers, PEFT) or a "
        "PEFT folder. An adapter_config.json beside the file gives alpha, rank patterns and "
        "layout; cairn guesses what is missing, and reports the guess. BASE may be f32, f16, bf16 "
        "or fp8, with or without scales. A module that BASE lacks is an error, and so is a LoRA "
        "that makes values NaN or Inf. OUT appears only when it is complete and on disk.",
        "  cairn tensor merge wan2.1_t2v_14B_bf16.safetensors style.safetensors merged.safetensors\n"
        "  cairn tensor merge gpt2/model.safetensors my-adapter/ merged.safetensors\n"
        "  cairn tensor merge wan-fp8.safetensors style.safetensors new.safetensors --scale 0.8 --dtype bf16\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    struct merge_options o = { .replace = force, .allow_nan = allow_nan, .threads = threads };
    if ((r = tensor_operands(argc, argv, rest, 3, "BASE, LORA and OUT")) ||
        (r = read_options(argv[0], scale, dtype, &o)))
        return r;
    return merge(&(struct merge_paths){ argv[rest], argv[rest + 1], argv[rest + 2] }, &o, json);
}
