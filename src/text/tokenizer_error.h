/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TEXT_TOKENIZER_ERROR_H
#define CAIRN_TEXT_TOKENIZER_ERROR_H

#include "base/cleanup.h"
#include "base/error.h"

/* CAIRN_EFORMAT: the tokenizer's file of this name, and what is wrong with it. */
int tokenizer_refuse(struct cairn_error *err, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
