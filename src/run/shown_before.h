/* SPDX-License-Identifier: Apache-2.0
 * What the user has read before, so that it need not be said at every start: the hashes of texts, in the
 * file `told` of the state folder, newest last. */
#ifndef CAIRN_RUN_SHOWN_BEFORE_H
#define CAIRN_RUN_SHOWN_BEFORE_H

#include <stdbool.h>

enum { SHOWN_KEEP = 64 };

/* Was this text told to the user of this trainer before?  From now on it was.  Where nothing can be
 * remembered it never was. */
bool shown_before(const char *state, const char *trainer, const char *text);

#endif
