/* SPDX-License-Identifier: Apache-2.0
 * The prompts of a Wan job's samples. */
#ifndef CAIRN_TRAIN_WAN_PROMPTS_H
#define CAIRN_TRAIN_WAN_PROMPTS_H

#include "train/task_wan.h"
#include "video/prompts.h"

/* Those of sample.prompts, then those of sample.file.  What a prompt does not say, sample.* says: negative, fps, steps and
 * seed.  [trigger] becomes data.trigger.  Texts are in the arena. */
int wan_prompts(const struct job_config *c, struct arena *a, struct sample_prompt **out, size_t *n,
                struct cairn_error *err);
/* The same for other lines than sample.prompts; sample.file is not read. */
int wan_prompts_of(const struct job_config *c, const char *const *lines, size_t n_lines, struct arena *a,
                   struct sample_prompt **out, size_t *n, struct cairn_error *err);
/* The texts to encode: of prompts and negative prompts, each once, and the empty one. */
const char **wan_prompts_texts(const struct sample_prompt *prompts, size_t n, struct arena *a,
                               size_t *n_texts);

#endif
