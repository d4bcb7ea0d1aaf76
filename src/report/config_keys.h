/* SPDX-License-Identifier: Apache-2.0
 * The keys of a configuration, for programs that edit one: the values of `cairn config keys`. */
#ifndef CAIRN_REPORT_CONFIG_KEYS_H
#define CAIRN_REPORT_CONFIG_KEYS_H

#include "base/json.h"

/* {"schema":1,"kinds":{"gpt":[{"name","type","default","words","unit","about"}…]},"sections":{name: about}}.
 * A key's default is that of its kind, as text in a file. */
struct json *report_config_keys(void);

#endif
