/* SPDX-License-Identifier: Apache-2.0
 * The LoRA files of a run under the names that ai-toolkit and musubi-tuner give them, in the run's folder:
 *
 *     ai-toolkit   NAME_000000250.safetensors           at the end NAME.safetensors
 *     musubi       NAME-step00000250.safetensors, after an epoch NAME-000003.safetensors; at the end NAME.safetensors
 *
 * With a LoRA for each expert, _high_noise or _low_noise comes before the extension.  The files are hard links to those of a
 * checkpoint, or copies where the file system has no links. */
#ifndef CAIRN_TRAIN_LORA_FILES_H
#define CAIRN_TRAIN_LORA_FILES_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lora_files_style { LORA_FILES_NONE, LORA_FILES_AI_TOOLKIT, LORA_FILES_MUSUBI };

struct lora_files {
    enum lora_files_style style;
    const char *dir, *name;
};

/* What a file is of. */
enum lora_files_kind { LORA_FILES_STEP, LORA_FILES_EPOCH, LORA_FILES_LAST };
struct lora_files_stamp {
    enum lora_files_kind kind;
    uint64_t number;    /* of the step or epoch; not used for the last */
    const char *suffix; /* "", "_high_noise" or "_low_noise" */
};

void lora_files_name(const struct lora_files *f, const struct lora_files_stamp *s, char *out, size_t size);
/* Whether a file name is one of a step or an epoch, and which. */
bool lora_files_parse(const struct lora_files *f, const char *file, struct lora_files_stamp *out);

/* The file of that name is replaced at once. */
int lora_files_put(const struct lora_files *f, const struct lora_files_stamp *s, const char *from,
                   struct cairn_error *err);
/* Removes the files of a kind but for those of the `keep` newest numbers up to `newest`; 0 keeps all of them.  Later ones
 * are of steps that the run will take again. */
void lora_files_rotate(const struct lora_files *f, enum lora_files_kind kind, uint64_t newest, size_t keep);

#endif
