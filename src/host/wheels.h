/* SPDX-License-Identifier: Apache-2.0
 * What is known about PyTorch's wheels by version, if their files do not show it. */
#ifndef CAIRN_HOST_WHEELS_H
#define CAIRN_HOST_WHEELS_H

#include "base/arena.h"
#include "host/facts.h"

/* The targets that pytorch.org builds this release for; unknown for other versions than its own
 * ("2.9.1+rocm6.4").  from begins with FROM_VERSION. */
void wheels_targets(struct arena *a, const char *version, struct targets *out);
/* The AOTriton of this release; unknown for releases that are not in the table. */
struct text wheels_aotriton(struct arena *a, struct version torch);
/* Adds the targets that an image directory of AOTriton ("amd-gfx11xx", "amd-gfx90a") serves, as of this
 * version of AOTriton (not known: as of the newest in the table). */
void wheels_aotriton_targets(struct arena *a, const char *dir, struct version aotriton, struct targets *out);

#endif
