/* SPDX-License-Identifier: Apache-2.0
 * Signs of mojibake: text in UTF-8 that was decoded with another encoding.
 *
 * The heuristic is that of ftfy 6.3: about 400 characters occur in such text, and their classes follow each
 * other there as they never do in text that is right. */
#ifndef CAIRN_TEXT_MOJIBAKE_H
#define CAIRN_TEXT_MOJIBAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool mojibake_found(const uint32_t *at, size_t n);

/* Length of the run of characters at `from` that could be UTF-8 sequences decoded byte by byte; 0 if there is
 * none.  The characters before it are looked at as well. */
size_t mojibake_run(const uint32_t *at, size_t n, size_t from);

#endif
