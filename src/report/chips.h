/* SPDX-License-Identifier: Apache-2.0
 * The table of gfx targets: the keys of `cairn gpu --chips --json`. */
#ifndef CAIRN_REPORT_CHIPS_H
#define CAIRN_REPORT_CHIPS_H

#include "base/json.h"

struct json *report_chips(void); /* the caller frees it */

#endif
