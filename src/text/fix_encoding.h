/* SPDX-License-Identifier: Apache-2.0
 * Undoes mojibake as ftfy 6.3's fix_encoding does: where text shows signs of it (text/mojibake.h), it is encoded
 * with the encoding that it was wrongly decoded with, and decoded as UTF-8, until nothing changes. */
#ifndef CAIRN_TEXT_FIX_ENCODING_H
#define CAIRN_TEXT_FIX_ENCODING_H

#include "text/runes.h"

void fix_encoding(struct runes *text);

#endif
