/* SPDX-License-Identifier: Apache-2.0
 * Characters of UTF-8 text and the classes that tokenizers split by: \p{L}, \p{N}, \s and the rest.
 *
 * Bytes that are not UTF-8 are characters of one byte, of the class "other". */
#ifndef CAIRN_TEXT_UNICODE_H
#define CAIRN_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unicode_class { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE };

#define UNICODE_BAD 0xffffffffu

/* Decodes the character at s, where n > 0 bytes are left; returns its size in bytes. */
size_t unicode_next(const char *s, size_t n, uint32_t *c);
/* Writes a character as UTF-8; returns its bytes, at most 4. */
size_t unicode_put(char *s, uint32_t c);
enum unicode_class unicode_class_of(uint32_t c);
/* Offset of the first character that composition (NFC) might change; n if there is none. */
size_t unicode_nfc_span(const char *s, size_t n);

#endif
