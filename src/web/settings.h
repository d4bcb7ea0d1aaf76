/* SPDX-License-Identifier: Apache-2.0
 * The settings of the queue and of the page: their names, types and defaults, in one table.  They are kept in the
 * database of jobs (job/store.h). */
#ifndef CAIRN_WEB_SETTINGS_H
#define CAIRN_WEB_SETTINGS_H

#include "base/error.h"
#include "base/json.h"
#include "job/store.h"

enum setting_type { SETTING_BOOL, SETTING_WORD, SETTING_SHARE };

struct setting {
    const char *key;
    enum setting_type type;
    const char *preset; /* as it is stored */
    const char *words;  /* of a word: separated by '|' */
    const char *about;
};
extern const struct setting settings[];
extern const size_t n_settings;

/* {"schema","settings":{…},"keys":[{"key","type","default","words","about"}]} */
int settings_report(struct store *s, struct json **out, struct cairn_error *err);
/* Stores the members of an object, all or none.  A wrong key or value fails with CAIRN_EUSAGE. */
int settings_change(struct store *s, const struct json *wanted, struct cairn_error *err);

#endif
