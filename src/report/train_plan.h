/* SPDX-License-Identifier: Apache-2.0
 * Memory of a training job: the keys of `cairn plan --json`. */
#ifndef CAIRN_REPORT_TRAIN_PLAN_H
#define CAIRN_REPORT_TRAIN_PLAN_H

#include "base/json.h"
#include "train/train.h"

/* The caller frees it. */
struct json *report_train_plan(const struct train_plan *p, const struct gpu_info *g);

#endif
