/* SPDX-License-Identifier: Apache-2.0
 * The local cache of the Hugging Face Hub: models--ORG--NAME/refs/main names a folder of snapshots/.  Nothing is
 * ever downloaded. */
#ifndef CAIRN_BASE_HUB_H
#define CAIRN_BASE_HUB_H

#include "base/arena.h"
#include <stdbool.h>

/* $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, or huggingface/hub in the user's cache folder. */
const char *hub_folder(struct arena *a);
/* Whether it looks like ORG/NAME. */
bool hub_is_id(const char *text);
/* The folder of the revision that refs/main names; without it, the only snapshot there is.  NULL: none. */
const char *hub_find(const char *id, struct arena *a);

#endif
