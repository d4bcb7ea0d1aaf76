/* SPDX-License-Identifier: Apache-2.0
 * samples/index.jsonl of a run: one object per line for each sample, with the name of its file. */
#ifndef CAIRN_WEB_SAMPLE_INDEX_H
#define CAIRN_WEB_SAMPLE_INDEX_H

#include "base/json.h"
#include <stdint.h>

/* Adds the samples of the lines from ≤ line < from + limit, with the folder and the path under which their files can be
 * fetched.  Skips lines that name no file. */
void sample_index_add(const char *text, int64_t from, int64_t limit, const char *folder, struct json *list);

#endif
