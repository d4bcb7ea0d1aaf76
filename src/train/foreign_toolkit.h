/* SPDX-License-Identifier: Apache-2.0
 * Jobs of ai-toolkit that train a LoRA for a Wan model, as keys of our schema. */
#ifndef CAIRN_TRAIN_FOREIGN_TOOLKIT_H
#define CAIRN_TRAIN_FOREIGN_TOOLKIT_H

#include "base/yaml.h"
#include "train/foreign.h"

/* Whether a file that was read is such a job: `job`, and `process` below `config`. */
bool foreign_is_toolkit(const struct yaml_node *root);
/* Whether it names a model; one without may still describe datasets. */
bool foreign_has_model(const struct yaml_node *root);
/* Errors are CAIRN_EUSAGE and name the line and the key.  `path` is for messages; data.path is set to it. */
int foreign_toolkit(const char *path, const struct yaml_node *root, struct arena *a, struct foreign_job *out,
                    struct cairn_error *err);

#endif
