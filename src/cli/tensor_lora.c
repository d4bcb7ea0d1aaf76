/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor convert --lora: the dialects of LoRA files. */
#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "cli/tensor_commands.h"
#include "tensor/lora.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void tensor_note(struct json *notes, const char *id, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!notes) {
        fputs("cairn: ", stderr);
        print_wrapped(stderr, text, 7, print_width());
        return;
    }
    struct json *note = json_add_object(notes, NULL);
    json_add_text(note, "id", id);
    json_add_text(note, "text", text);
}

void tensor_note_basis(struct json *notes, const struct lora_basis *b, size_t modules)
{
    if (b->config_ignored)
        tensor_note(notes, "config-ignored",
                    "adapter_config.json is not used: the names in the file are not PEFT's");
    if (b->alpha_default)
        tensor_note(notes, "alpha-default",
                    "adapter_config.json has no lora_alpha: PEFT's default, 8, is taken");
    if (b->alpha_guessed)
        tensor_note(notes, "alpha-guessed",
                    "no alpha in the file%s for %zu of %zu modules: taken as the rank (strength 1)",
                    b->config_ignored ? "" : ", and no adapter_config.json beside it,", b->alpha_guessed,
                    modules);
    if (*b->unknown_keys)
        tensor_note(notes, "unknown-keys", "adapter_config.json sets what cairn does not know: %s",
                    b->unknown_keys);
}

static void add_notes(struct json *notes, const struct lora_report *r)
{
    tensor_note_basis(notes, &r->basis, r->modules);
    if (r->odd)
        tensor_note(notes, "nonfinite",
                    "%" PRIu64 " values of the LoRA are NaN or Inf, and still are: it is destroyed", r->odd);
}

static void print_json(const char *in, const char *out, enum lora_dialect to, const struct lora_report *r)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "in", in);
    json_add_text(v, "out", out);
    json_add_text(v, "from", r->from == LORA_ANY ? NULL : lora_dialect_name(r->from));
    json_add_text(v, "to", lora_dialect_name(to));
    json_add_int(v, "modules", (int64_t)r->modules);
    json_add_int(v, "alpha_folded", (int64_t)r->folded);
    json_add_text(v, "adapter_config", *r->basis.config ? r->basis.config : NULL);
    json_add_int(v, "alpha_guessed", (int64_t)r->basis.alpha_guessed);
    json_add_int(v, "nonfinite", (int64_t)r->odd);
    add_notes(json_add_array(v, "notes"), r);
    json_print(v, stdout);
}

static void print_text(const char *in, const char *out, enum lora_dialect to, const struct lora_report *r)
{
    (void)in;
    print_padded(stdout, out, 0);
    printf(": %zu module%s, %s to %s", r->modules, r->modules == 1 ? "" : "s", lora_dialect_name(r->from),
           lora_dialect_name(to));
    if (r->folded)
        printf(", alpha folded into %zu", r->folded);
    putchar('\n');
    add_notes(NULL, r);
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
        return options_error(command, "--lora wants musubi, comfy or diffusers, not \"%s\"", dialect);
    if (dtype && !dtype_is_float(type))
        return options_error(command, "--dtype wants f64, f32, f16, bf16, f8_e4m3 or f8_e5m2, not \"%s\"",
                             dtype);
    struct lora_rewrite o = { .to = to, .dtype = type, .replace = force, .stop = stop_catch() };
    if (lora_convert(in, out, &o, &report, &err))
        return *o.stop ? stop_end("nothing was written") : print_error(&err);
    (json ? print_json : print_text)(in, out, to, &report);
    return EXIT_FINE;
}
