/* SPDX-License-Identifier: Apache-2.0
 * A dataset before anything is computed: the keys of `cairn cache --look --json`. */
#ifndef CAIRN_REPORT_DATASET_H
#define CAIRN_REPORT_DATASET_H

#include "base/json.h"
#include "media/dataset.h"

/* sheet: path of the contact sheet; NULL: none was written.  The caller frees it. */
struct json *report_dataset(const struct dataset *d, const char *sheet);

#endif
