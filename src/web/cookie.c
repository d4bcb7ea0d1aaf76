/* SPDX-License-Identifier: Apache-2.0 */
#include "web/cookie.h"

#include <string.h>

const char *cookie_find(const char *header, const char *name, size_t *n)
{
    size_t length = strlen(name);
    for (const char *at = header; at && *at;) {
        at += strspn(at, " \t");
        size_t end = strcspn(at, ";");
        if (end > length && !strncmp(at, name, length) && at[length] == '=') {
            const char *value = at + length + 1, *stop = at + end;
            while (stop > value && (stop[-1] == ' ' || stop[-1] == '\t'))
                stop--;
            *n = (size_t)(stop - value);
            return value;
        }
        at += end + (at[end] == ';');
    }
    return NULL;
}
