/* SPDX-License-Identifier: Apache-2.0
 * Unicode's composed form. */
#ifndef CAIRN_TEXT_NFC_H
#define CAIRN_TEXT_NFC_H

#include "base/error.h"
#include "base/str.h"

/* Appends valid UTF-8 text in normalization form C. */
int text_add_nfc(struct str *out, const char *text, size_t n, struct cairn_error *err);

#endif
