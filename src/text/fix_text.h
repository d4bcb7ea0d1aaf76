/* SPDX-License-Identifier: Apache-2.0
 * What ftfy.fix_text does with its defaults (ftfy 6.3): undoes HTML's references and mojibake, replaces
 * ligatures, full-width and half-width forms, curly quotes and odd line ends, removes terminal escapes and
 * control characters, and composes (NFC). */
#ifndef CAIRN_TEXT_FIX_TEXT_H
#define CAIRN_TEXT_FIX_TEXT_H

#include "base/error.h"
#include "text/runes.h"

/* Appends the fixed text.  Each line is fixed by itself, in pieces of at most a million characters.  From the
 * first piece with a "<" on, references of HTML stay as they are. */
int fix_text(const struct runes *text, struct runes *out, struct cairn_error *err);

#endif
