/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor convert --lora: the dialects of LoRA files. */
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "cli/tensor_commands.h"
#include "report/lora.h"
#include <stdio.h>

void tensor_print_notes(const struct tensor_notes *n)
{
    for (size_t i = 0; i < n->n; i++) {
        fputs("cairn: ", stderr);
        print_wrapped(stderr, n->note[i].text, 7, print_width());
    }
}

static void print_text(const char *out, enum lora_dialect to, const struct lora_report *r)
{
    print_padded(stdout, out, 0);
    printf(": %zu module%s, %s to %s", r->modules, r->modules == 1 ? "" : "s", lora_dialect_name(r->from),
           lora_dialect_name(to));
    if (r->folded)
        printf(", alpha folded into %zu", r->folded);
    putchar('\n');
}

int tensor_lora_convert(const char *in, const char *out, const char *dialect, const char *dtype, bool force,
                        bool json)
{
    static const char command[] = "tensor convert";
    enum lora_dialect to = lora_dialect_parse(dialect);
    enum dtype type = dtype ? dtype_parse(dtype) : DTYPE_OTHER;
    struct lora_report report;
    struct cairn_error err = { 0 };
    if (to == LORA_ANY)
        return options_error(command, "--lora takes musubi, comfy or diffusers, not \"%s\"", dialect);
    if (dtype && !dtype_is_float(type))
        return options_error(command, "--dtype takes f64, f32, f16, bf16, f8_e4m3 or f8_e5m2, not \"%s\"",
                             dtype);
    struct lora_rewrite o = { .to = to, .dtype = type, .replace = force, .stop = stop_catch() };
    if (lora_convert(in, out, &o, &report, &err))
        return *o.stop ? stop_end("nothing was written") : print_error(&err);
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct tensor_notes notes = lora_notes(&report, &a);
    if (json) {
        print_report(report_lora_convert(in, out, to, &report, &notes));
    } else {
        print_text(out, to, &report);
        tensor_print_notes(&notes);
    }
    return EXIT_FINE;
}
