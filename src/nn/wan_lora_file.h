/* SPDX-License-Identifier: Apache-2.0
 * The LoRAs of Wan in the files of other programs (tensor/lora.h has their dialects).
 *
 * The comfy and musubi dialects hold the values as they are, with `.alpha` beside them; a file of the weights'
 * own type gives back the same bits.  The diffusers dialect has no alpha: the scale is folded into the values,
 * which come back exactly only where alpha / rank is a power of two and none gets too small for the type.  The bytes of a file depend on the values, the options
 * and the metadata alone. */
#ifndef CAIRN_NN_WAN_LORA_FILE_H
#define CAIRN_NN_WAN_LORA_FILE_H

#include "nn/wan.h"
#include "tensor/lora_names.h"

struct wan_lora_save {
    const char *path;
    enum lora_dialect dialect;       /* LORA_ANY: comfy */
    enum dtype dtype;                /* f32, f16 or bf16 */
    const struct param_getter *from; /* of each set; NULL: the weights */
    bool joined, no_alpha;           /* struct wan_save has them; joined: `set` does not count */
    const struct st_meta
        *meta; /* added to what the model itself says; the first of two with the same key counts */
    size_t n_meta;
    bool meta_is_all; /* the model says nothing itself */
};
/* The file appears whole or not at all. */
int wan_lora_save(const struct wan *m, size_t set, const struct wan_lora_save *o, struct cairn_error *err);
/* What a user should know of files in this dialect; NULL: nothing. */
const char *wan_lora_note(const struct wan *m, size_t set, enum lora_dialect d);

/* Loads a file of any dialect, or the folder of an adapter.  Of a file with the LoRAs of both experts, set 0
 * gets that for little noise and set 1 that for much, if the model has both.
 *
 * Every module of the file must be one that the set trains, of the model's rank.  Modules that the file lacks
 * keep their values, so call wan_init_lora first; report->missing names them.  Where alpha / rank is not the
 * model's, the values are rescaled, so that the LoRA does the same; report->rescaled counts such pairs.  The
 * report is filled even on failure; release it. */
int wan_lora_load(struct wan *m, size_t set, const char *path, struct param_report *report,
                  struct cairn_error *err);

#endif
