/* SPDX-License-Identifier: Apache-2.0
 * Texts that the user has seen, so that cairn does not repeat them at every start: their hashes, in the
 * file `told` of the state folder, newest last. */
#ifndef CAIRN_RUN_SHOWN_BEFORE_H
#define CAIRN_RUN_SHOWN_BEFORE_H

#include <stdbool.h>

enum { SHOWN_KEEP = 64 };

/* Whether this text was shown for this trainer before; records it.  False if the file cannot be written. */
bool shown_before(const char *state, const char *trainer, const char *text);

#endif
