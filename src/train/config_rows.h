/* SPDX-License-Identifier: Apache-2.0
 * Macros for tables of configuration keys. */
#ifndef CAIRN_TRAIN_CONFIG_ROWS_H
#define CAIRN_TRAIN_CONFIG_ROWS_H

#include "train/config.h"

/* clang-format off */
/* The type of a key follows from its field.  After the description: words, unit, range. */
#define CONFIG_TYPE(type, field) _Generic(((type *)0)->field, int64_t: CONFIG_INT, double: CONFIG_REAL, \
    bool: CONFIG_BOOL, const char *: CONFIG_TEXT, struct config_count: CONFIG_COUNT, struct config_list: CONFIG_LIST, default: CONFIG_WORD)
#define CONFIG_KEY(struct_type, field, with, text, ...) { .name = #field, .type = CONFIG_TYPE(struct_type, field), \
    .at = offsetof(struct_type, field), .preset = with, .about = text, __VA_ARGS__ }
#define FROM(a, b) .least = (a), .most = (b)
#define SHARE .below = true, .most = 1 /* 0 is allowed, 1 is not */
#define ABOVE_0(b) .above = true, .most = (b)
#define UNIT(u) .unit = (u)
#define IS_PATH .path = CONFIG_PATH
#define MAY_BE_PATH .path = CONFIG_MAYBE_PATH
#define MANY 1000000000
/* clang-format on */

#endif
