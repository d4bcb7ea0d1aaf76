/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor convert --lora: the dialects of LoRA files. */
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/tensor_commands.h"
#include "tensor/lora.h"
#include <stdio.h>

int tensor_lora_convert(const char *in, const char *out, const char *dialect, const char *dtype, bool force)
{
    static const char command[] = "tensor convert";
    enum lora_dialect to = lora_dialect_parse(dialect);
    enum dtype type = dtype ? dtype_parse(dtype) : DTYPE_OTHER;
    struct lora_report report;
    struct cairn_error err = { 0 };
    if (to == LORA_ANY)
        return options_error(command, "--lora wants musubi, comfy or diffusers, not \"%s\"", dialect);
    if (dtype && !dtype_is_float(type))
        return options_error(command, "--dtype wants f64, f32, f16, bf16, f8_e4m3 or f8_e5m2, not \"%s\"",
                             dtype);
    if (lora_convert(in, out, to, type, force, &report, &err))
        return print_error(&err);
    printf("%s: %zu modules, %s to %s", out, report.modules, lora_dialect_name(report.from),
           lora_dialect_name(to));
    if (report.folded)
        printf(", alpha folded into %zu", report.folded);
    putchar('\n');
    return EXIT_FINE;
}
