/* SPDX-License-Identifier: Apache-2.0
 * The conditions of a shell script, as far as files and variables decide them; private to script*.c. */
#ifndef CAIRN_HOST_SCRIPT_TEST_H
#define CAIRN_HOST_SCRIPT_TEST_H

#include "host/facts.h"
#include "host/script_words.h"

/* The words after [, [[ or test; one condition. */
enum tri script_test(struct walk *w, const struct word *words, size_t n);

#endif
