/* SPDX-License-Identifier: Apache-2.0
 * LoRA files: the keys of `cairn tensor convert --lora --json` and `cairn tensor merge --json`. */
#ifndef CAIRN_REPORT_LORA_H
#define CAIRN_REPORT_LORA_H

#include "base/arena.h"
#include "base/json.h"
#include "tensor/lora.h"
#include "tensor/merge.h"

/* A note on a result: an id for programs, a text for people. */
struct tensor_note {
    const char *id, *text;
};
struct tensor_notes {
    struct tensor_note *note;
    size_t n;
};
/* Guesses and other remarks on the result.  In the arena. */
struct tensor_notes lora_notes(const struct lora_report *r, struct arena *a);
struct tensor_notes merge_notes(const char *base, double scale, const struct merge_report *r,
                                struct arena *a);

/* The caller frees both. */
struct json *report_lora_convert(const char *in, const char *out, enum lora_dialect to,
                                 const struct lora_report *r, const struct tensor_notes *notes);
struct merge_paths {
    const char *base, *lora, *out;
};
struct json *report_merge(const struct merge_paths *p, double scale, const struct merge_report *r,
                          const struct tensor_notes *notes);

#endif
