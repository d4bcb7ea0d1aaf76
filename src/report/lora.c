/* SPDX-License-Identifier: Apache-2.0 */
#include "report/lora.h"

#include <inttypes.h>
#include <stdarg.h>

static void note(struct tensor_notes *n, struct arena *a, const char *id, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
static void note(struct tensor_notes *n, struct arena *a, const char *id, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *ARENA_PUSH(a, n->note, n->n) = (struct tensor_note){ id, arena_vprintf(a, fmt, ap) };
    va_end(ap);
}

static void add_notes(struct json *top, const struct tensor_notes *n)
{
    struct json *list = json_add_array(top, "notes");
    for (size_t i = 0; i < n->n; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "id", n->note[i].id);
        json_add_text(o, "text", n->note[i].text);
    }
}

/* Where the strength of a LoRA came from, and what of it was guessed. */
static void note_basis(struct tensor_notes *n, struct arena *a, const struct lora_basis *b, size_t modules)
{
    if (b->config_ignored)
        note(n, a, "config-ignored", "adapter_config.json is not used: the names in the file are not PEFT's");
    if (b->alpha_default)
        note(n, a, "alpha-default", "adapter_config.json has no lora_alpha: using PEFT's default, 8");
    if (b->alpha_guessed)
        note(n, a, "alpha-guessed",
             "no alpha in the file%s for %zu of %zu modules: using the rank (strength 1)",
             b->config_ignored ? "" : ", and no adapter_config.json beside it,", b->alpha_guessed, modules);
    if (*b->unknown_keys)
        note(n, a, "unknown-keys", "adapter_config.json has keys that cairn does not know: %s",
             b->unknown_keys);
}

struct tensor_notes lora_notes(const struct lora_report *r, struct arena *a)
{
    struct tensor_notes n = { 0 };
    note_basis(&n, a, &r->basis, r->modules);
    if (r->odd)
        note(&n, a, "nonfinite", "%" PRIu64 " values of the LoRA are NaN or Inf: it is unusable", r->odd);
    return n;
}

struct json *report_lora_convert(const char *in, const char *out, enum lora_dialect to,
                                 const struct lora_report *r, const struct tensor_notes *notes)
{
    struct json *v = json_new_object();
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
    add_notes(v, notes);
    return v;
}

struct tensor_notes merge_notes(const char *base, double scale, const struct merge_report *r, struct arena *a)
{
    struct tensor_notes n = { 0 };
    note_basis(&n, a, &r->basis, r->modules);
    if (r->orientation_guessed)
        note(&n, a, "orientation-guessed",
             "%zu square weights are taken as %s: their orientation in %s is unknown", r->orientation_guessed,
             r->guessed_transposed ? "[in, out] like most others" : "[out, in]", base);
    if (r->orientation_against)
        note(&n, a, "orientation-against-config",
             "%zu weights contradict fan_in_fan_out: using the orientation in %s", r->orientation_against,
             base);
    if (r->replaced && scale != 1)
        note(&n, a, "scale-not-for-whole", "--scale does not apply to %zu tensors that are fully replaced",
             r->replaced);
    if (r->nan_made || r->inf_made)
        note(&n, a, "made-nonfinite", "%" PRIu64 " values became NaN, %" PRIu64 " became Inf", r->nan_made,
             r->inf_made);
    if (r->rescaled)
        note(&n, a, "fp8-rescaled", "%zu fp8 weights got larger scales, so that the sums fit", r->rescaled);
    return n;
}

struct json *report_merge(const struct merge_paths *p, double scale, const struct merge_report *r,
                          const struct tensor_notes *notes)
{
    struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "base", p->base);
    json_add_text(v, "lora", p->lora);
    json_add_text(v, "out", p->out);
    json_add_text(v, "dialect", r->dialect == LORA_ANY ? NULL : lora_dialect_name(r->dialect));
    json_add_real(v, "scale", scale);
    json_add_int(v, "modules_merged", (int64_t)r->modules);
    json_add_int(v, "tensors_changed", (int64_t)r->changed);
    json_add_int(v, "tensors_copied", (int64_t)r->copied);
    json_add_int(v, "fp8_rescaled", (int64_t)r->rescaled);
    json_add_int(v, "written_bytes", (int64_t)r->bytes);
    json_add_text(v, "adapter_config", *r->basis.config ? r->basis.config : NULL);
    json_add_int(v, "alpha_guessed", (int64_t)r->basis.alpha_guessed);
    json_add_int(v, "modules_transposed", (int64_t)r->transposed);
    json_add_int(v, "orientation_guessed", (int64_t)r->orientation_guessed);
    json_add_int(v, "tensors_replaced", (int64_t)r->replaced);
    json_add_int(v, "nan_made", (int64_t)r->nan_made);
    json_add_int(v, "inf_made", (int64_t)r->inf_made);
    add_notes(v, notes);
    return v;
}
