/* SPDX-License-Identifier: Apache-2.0 */
#include "text/charsmap.h"

#include <stdlib.h>
#include <string.h>

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int charsmap_parse(struct charsmap *m, const void *bytes, size_t n, struct cairn_error *err)
{
    const unsigned char *p = bytes;
    size_t size = n > 4 ? read_u32(p) : 0;
    if (size < 4 || size > n - 4)
        return cairn_fail(err, CAIRN_EFORMAT, "the precompiled_charsmap is damaged");
    struct charsmap made = { .n_units = size / 4, .n_text = n - 4 - size };
    made.units = malloc(made.n_units * sizeof(*made.units));
    made.text = malloc(made.n_text + 1);
    if (!made.units || !made.text) {
        charsmap_release(&made);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a precompiled_charsmap of %zu bytes", n);
    }
    for (size_t i = 0; i < made.n_units; i++)
        made.units[i] = read_u32(p + 4 + 4 * i);
    if (made.n_text)
        memcpy(made.text, p + 4 + size, made.n_text);
    made.text[made.n_text] = '\0';
    *m = made;
    return 0;
}

/* How far the children of a unit are away. */
static size_t offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

size_t charsmap_find(const struct charsmap *m, const char *s, size_t n, bool longest, const char **with,
                     size_t *with_n)
{
    if (!m->n_units)
        return 0;
    size_t found = 0, at = offset(m->units[0]);
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)s[i];
        at ^= byte;
        if (at >= m->n_units || (m->units[at] & (1u << 31 | 0xff)) != byte)
            break;
        bool has_leaf = m->units[at] >> 8 & 1;
        at ^= offset(m->units[at]);
        if (!has_leaf)
            continue;
        size_t value = at < m->n_units ? m->units[at] & 0x7fffffff : SIZE_MAX;
        if (value > m->n_text)
            break;
        found = i + 1;
        *with = m->text + value;
        *with_n = strlen(*with);
        if (!longest)
            break;
    }
    return found;
}

void charsmap_release(struct charsmap *m)
{
    free(m->units);
    free(m->text);
    *m = (struct charsmap){ 0 };
}
