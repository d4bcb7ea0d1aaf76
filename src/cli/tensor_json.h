/* SPDX-License-Identifier: Apache-2.0
 * How the tensor commands show a tensor: the same words in all of them. */
#ifndef CAIRN_CLI_TENSOR_JSON_H
#define CAIRN_CLI_TENSOR_JSON_H

#include "base/json.h"
#include "tensor/source.h"

enum { TENSOR_SHAPE_TEXT = 64 };

/* "[16, 21, 60, 104]"; one that is too long ends in "...]".  buf holds TENSOR_SHAPE_TEXT bytes and is returned. */
const char *tensor_shape_text(const struct st_tensor *t, char *buf);
/* name, dtype, shape, elements, bytes. */
void tensor_json_head(struct json *o, const struct st_tensor *t);
/* null where v is not finite: JSON has no word for it. */
void tensor_json_real(struct json *o, const char *key, double v);

#endif
