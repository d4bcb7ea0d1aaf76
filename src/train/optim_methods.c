/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim_methods.h"

#define METHOD(KIND, name) [OPTIM_##KIND] = &optim_##name,
const struct optim_method *const optim_methods[OPTIM_KINDS] = { OPTIM_METHODS(METHOD) };

#define NAME(KIND, name) [OPTIM_##KIND] = #name,
const char *const optim_names[OPTIM_KINDS + 1] = { OPTIM_METHODS(NAME) };
