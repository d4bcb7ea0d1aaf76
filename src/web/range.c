/* SPDX-License-Identifier: Apache-2.0 */
#include "web/range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A number too large for 64 bits becomes the largest: it lies behind the end of any file. */
static bool read_number(const char **at, uint64_t *out)
{
    const char *s = *at;
    uint64_t v = 0;
    for (; *s >= '0' && *s <= '9'; s++) {
        unsigned digit = (unsigned)(*s - '0');
        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
    }
    if (s == *at)
        return false;
    *at = s;
    *out = v;
    return true;
}

enum range_kind range_parse(const char *header, uint64_t size, uint64_t *from, uint64_t *n)
{
    uint64_t first = 0, last = 0;
    if (!header || strncasecmp(header, "bytes=", 6))
        return RANGE_ALL;
    const char *at = header + 6;
    bool has_first = read_number(&at, &first);
    if (*at++ != '-')
        return RANGE_ALL;
    bool has_last = read_number(&at, &last);
    if (*at || (!has_first && !has_last) || (has_first && has_last && last < first))
        return RANGE_ALL;
    if (!has_first) { /* the last bytes */
        if (!last || !size)
            return RANGE_NONE;
        *n = last < size ? last : size;
        *from = size - *n;
        return RANGE_PART;
    }
    if (first >= size)
        return RANGE_NONE;
    *from = first;
    *n = (has_last && last < size ? last + 1 : size) - first;
    return RANGE_PART;
}
