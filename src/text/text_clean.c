/* SPDX-License-Identifier: Apache-2.0 */
#include "text/text_clean.h"

#include "text/fix_text.h"
#include "text/html_unescape.h"

int text_clean(const char *text, size_t n, struct str *out, struct cairn_error *err)
{
    CLEANUP(runes_release) struct runes raw = { 0 };
    CLEANUP(runes_release) struct runes fixed = { 0 };
    CLEANUP(runes_release) struct runes once = { 0 };
    CLEANUP(runes_release) struct runes twice = { 0 };
    runes_add_utf8(&raw, text, n);
    if (fix_text(&raw, &fixed, err))
        return -1;
    html_unescape(&fixed, &once);
    html_unescape(&once, &twice);
    str_addn(out, "", 0);
    size_t begin = out->len;
    bool space = false;
    for (size_t i = 0; i < twice.n; i++) {
        bool is_space = rune_is_space(twice.at[i]);
        if (!is_space && space && out->len > begin)
            str_add(out, " ");
        if (!is_space)
            str_add_runes(out, twice.at + i, 1);
        space = is_space;
    }
    return 0;
}
