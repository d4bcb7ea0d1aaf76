/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor convert: options and messages. */
#include "base/parse.h"
#include "base/progress.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "cli/tensor_commands.h"
#include "report/tensor.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
    const char *dtype, *clamp, *nan, *scaled, *seed, *lora;
    struct opt_list only;
    bool force, direct, json;
    int threads;
};

static bool parse_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end;
}

/* -1: no error; otherwise the exit code. */
static int read_options(const char *command, const struct options *w, struct convert_options *o)
{
    o->to = w->dtype ? dtype_parse(w->dtype) : DTYPE_OTHER;
    if (w->dtype && !dtype_is_float(o->to))
        return options_error(command, "--dtype takes f64, f32, f16, bf16, f8_e4m3 or f8_e5m2, not \"%s\"",
                             w->dtype);
    if (w->nan && (!parse_number(w->nan, &o->nan) || isnan(o->nan)))
        return options_error(command, "--nan takes a number, not \"%s\"", w->nan);
    if (w->clamp && *w->clamp && (!parse_number(w->clamp, &o->limit) || !(o->limit > 0) || isinf(o->limit)))
        return options_error(command, "--clamp takes a number above 0, not \"%s\"", w->clamp);
    if (o->limit > 0 && w->scaled)
        return options_error(command, "--clamp with a number does not go with --scaled");
    if (w->seed && !cairn_parse_u64(w->seed, &o->seed))
        return options_error(command, "--stochastic takes a whole number as its seed, not \"%s\"", w->seed);
    if (w->scaled && !w->dtype)
        return options_error(command, "--scaled needs --dtype");
    if (w->scaled && !fp8_grain_parse(*w->scaled ? w->scaled : "tensor", &o->scaled))
        return options_error(command, "--scaled takes tensor, channel or block64, not \"%s\"", w->scaled);
    return -1;
}

static void note(uint64_t n, const char *text)
{
    if (n)
        fprintf(stderr, "cairn: %" PRIu64 " %s\n", n, text);
}

/* Notes on the result. */
static void print_notes(const struct convert_options *o, const struct convert_report *r)
{
    bool plain_fp8 = fp8_is(o->to) && o->scaled == FP8_PLAIN;
    note(r->scaled, "weights got scales; the tensor " FP8_MARKER " marks the file for other programs");
    note(r->unscaled, "weights were multiplied by their scales, which the new file does not have");
    note(r->scales_ignored, "fp8 weights have scales that were NOT applied, so their values are wrong; "
                            "--scaled applies the scales");
    note(r->clamped, o->limit > 0 ? "values were clamped to the limit of --clamp"
                                  : "values were clamped to the largest finite value");
    note(r->nans_replaced, "NaN values were replaced");
    note(r->overflowed, "finite values became Inf (NaN in f8_e4m3); --clamp keeps them finite");
    note(r->underflowed, plain_fp8
                             ? "values underflowed to zero in the new dtype; --scaled keeps most of them"
                             : "values underflowed to zero in the new dtype");
    if (r->reordered)
        fputs("cairn: reordered the tensors to align each to the size of its elements\n", stderr);
}

static void print_summary(const char *out, const struct convert_report *r)
{
    char before[24], after[24];
    print_padded(stdout, out, 0);
    printf(": %zu tensor%s converted, %zu copied", r->converted, r->converted == 1 ? "" : "s", r->copied);
    if (r->dropped)
        printf(", %zu omitted", r->dropped);
    printf(", %s to %s\n", bytes_text((int64_t)r->bytes_in, before),
           bytes_text((int64_t)r->bytes_out, after));
}

/* Converting to safetensors, or merging shards into one file, needs no option. */
static bool has_nothing_to_do(const struct options *w, const struct tensor_source *src)
{
    return !w->dtype && !w->clamp && !w->nan && str_eq(src->format, "safetensors") && src->n_files == 1;
}

static int convert(const char *command, const char *in, const char *out, const struct options *w,
                   struct convert_options *o)
{
    CLEANUP(source_close) struct tensor_source src = { 0 };
    struct cairn_error err = { 0 };
    struct convert_report report;
    struct progress progress;
    if (source_open(&src, in, &err))
        return print_error(&err);
    if (has_nothing_to_do(w, &src))
        return options_error(command, "nothing to do: give --dtype, --clamp, --nan or --lora");
    if (w->direct && !source_set_direct(&src))
        fprintf(stderr, "cairn: reading %s through the page cache: O_DIRECT is not possible\n", in);
    progress_start(&progress, stderr, "convert", 0);
    o->progress = &progress;
    o->stop = stop_catch();
    int r = convert_file(&src, out, o, &report, &err);
    progress_end(&progress);
    if (r)
        return *o->stop ? stop_end("nothing was written") : print_error(&err);
    print_notes(o, &report);
    if (w->json)
        print_report(report_tensor_convert(in, out, &report));
    else
        print_summary(out, &report);
    return EXIT_FINE;
}

static int run(int argc, char **argv, int rest, struct options *w)
{
    struct convert_options o = { .clamp = w->clamp,
                                 .replace_nan = w->nan,
                                 .stochastic = w->seed,
                                 .replace = w->force,
                                 .direct = w->direct,
                                 .threads = w->threads,
                                 .only = w->only.item,
                                 .n_only = w->only.n };
    int r = tensor_operands(argc, argv, rest, 2, "IN and OUT");
    if (r)
        return r;
    if (w->lora)
        return tensor_lora_convert(argv[rest], argv[rest + 1], w->lora, w->dtype, w->force, w->json);
    r = read_options(argv[0], w, &o);
    return r >= 0 ? r : convert(argv[0], argv[rest], argv[rest + 1], w, &o);
}

int tensor_convert(int argc, char **argv)
{
    CLEANUP(opt_list_release) struct opt_list only = { 0 };
    struct options w = { 0 };
    const struct opt_row rows[] = {
        OPT_STR('d', "dtype", &w.dtype, "DTYPE",
                "f64, f32, f16, bf16, f8_e4m3 or f8_e5m2 (default: each tensor keeps its own)"),
        OPT_LIST(0, "only", &only, "GLOB",
                 "convert tensors whose name matches, copy the others; may be repeated"),
        OPT_ATTACHED(0, "clamp", &w.clamp, "VALUE",
                     "limit values that are too large, and Inf, to the largest finite value, or to VALUE"),
        OPT_STR(0, "nan", &w.nan, "VALUE", "replace NaN with VALUE"),
        OPT_ATTACHED(0, "scaled", &w.scaled, "GRAIN",
                     "to fp8: write scales per tensor (default), channel or block64; from fp8: apply them"),
        OPT_STR(0, "stochastic", &w.seed, "SEED", "round stochastically instead of to nearest even"),
        OPT_STR(0, "lora", &w.lora, "DIALECT", "rewrite a LoRA file for musubi, comfy or diffusers"),
        OPT_FLAG('f', "force", &w.force, "replace OUT if it exists"),
        OPT_INT(0, "threads", &w.threads, "N", "use N threads instead of all cores"),
        OPT_FLAG(0, "direct", &w.direct, "bypass the page cache (O_DIRECT), for OUT too"),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        "cairn tensor convert IN OUT [--dtype DTYPE] [options]",
        "Writes the tensors of IN to the safetensors file OUT in another floating-point dtype. "
        "Integer tensors, order and metadata are kept. It rounds to nearest even and keeps "
        "subnormals and NaN; values that are too large become Inf unless --clamp is given. OUT "
        "appears only when it is complete and on disk.",
        "  cairn tensor convert model.safetensors model-f32.safetensors --dtype f32\n"
        "  cairn tensor convert wan.safetensors wan-fp8.safetensors --dtype f8_e4m3 --scaled\n"
        "  cairn tensor convert wan-fp8.safetensors wan.safetensors --dtype bf16 --scaled\n"
        "  cairn tensor convert damaged.safetensors repaired.safetensors --clamp=100 --nan 0\n"
        "  cairn tensor convert Wan2.1_VAE.pth wan_2.1_vae.safetensors\n",
        .mixed = true,
    };
    int rest;
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    w.only = only;
    return run(argc, argv, rest, &w);
}
