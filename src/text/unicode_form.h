/* SPDX-License-Identifier: Apache-2.0
 * Unicode's normalization forms and lower case. */
#ifndef CAIRN_TEXT_UNICODE_FORM_H
#define CAIRN_TEXT_UNICODE_FORM_H

#include "base/error.h"
#include "base/str.h"
#include <stdint.h>

enum unicode_form { UNICODE_NFC, UNICODE_NFD, UNICODE_NFKC, UNICODE_NFKD };

/* Appends valid UTF-8 text in a normalization form. */
int unicode_add_form(struct str *out, enum unicode_form form, const char *text, size_t n,
                     struct cairn_error *err);
uint32_t unicode_lower(uint32_t c);

#endif
