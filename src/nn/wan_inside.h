/* SPDX-License-Identifier: Apache-2.0
 * What the files of the Wan model share. */
#ifndef CAIRN_NN_WAN_INSIDE_H
#define CAIRN_NN_WAN_INSIDE_H

#include "nn/wan.h"

extern const struct model_ops wan_model_ops; /* wan_model.c */

#endif
