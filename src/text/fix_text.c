/* SPDX-License-Identifier: Apache-2.0 */
#include "text/fix_text.h"

#include "text/fix_encoding.h"
#include "text/html_unescape.h"
#include "text/unicode_form.h"
#include "text/replacement_table.h"
#include <string.h>

enum { PIECE_MAX = 1000000 };

static const char *replacement(uint32_t c)
{
    size_t low = 0, high = ARRAY_LEN(replacements);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (replacements[mid].c < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ARRAY_LEN(replacements) && replacements[low].c == c ? replacements[low].text : NULL;
}

static void replace_characters(const struct runes *in, struct runes *out)
{
    for (size_t i = 0; i < in->n; i++) {
        uint32_t c = in->at[i];
        const char *text = c < 0x80 ? NULL : replacement(c);
        if (text)
            runes_add_utf8(out, text, strlen(text));
        else if (c == '\r' && i + 1 < in->n && in->at[i + 1] == '\n')
            continue;
        else
            runes_add(out, c == '\r' ? '\n' : c);
    }
}

static bool is_digit(uint32_t c)
{
    for (size_t i = 0; i < ARRAY_LEN(digit_zeros); i++)
        if (c >= digit_zeros[i] && c <= digit_zeros[i] + 9)
            return true;
    return false;
}

/* The characters of a terminal's escape sequence, such as one that sets a colour; 0 if there is none. */
static size_t escape_span(const uint32_t *at, size_t n)
{
    if (n < 3 || at[0] != '\033' || at[1] != '[')
        return 0;
    size_t i = 2;
    while (i < n && (at[i] == ';' || is_digit(at[i])))
        i++;
    return i < n && at[i] < 0x80 && (at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z' ? i + 1 : 0;
}

/* Controls that show nothing, deprecated and annotation characters, and the byte order mark. */
static bool is_removed(uint32_t c)
{
    return c < 9 || c == 0xb || (c >= 0xe && c < 0x20) || c == 0x7f || (c >= 0x206a && c <= 0x206f) ||
           c == 0xfeff || (c >= 0xfff9 && c <= 0xfffc);
}

static void remove_characters(const struct runes *in, struct runes *out)
{
    for (size_t i = 0; i < in->n;) {
        size_t escape = escape_span(in->at + i, in->n - i);
        if (!escape && !is_removed(in->at[i]))
            runes_add(out, in->at[i]);
        i += escape ? escape : 1;
    }
}

static int compose(const struct runes *in, struct runes *out, struct cairn_error *err)
{
    CLEANUP(str_release) struct str plain = { 0 };
    CLEANUP(str_release) struct str composed = { 0 };
    str_add_runes(&plain, in->at, in->n);
    if (unicode_add_form(&composed, UNICODE_NFC, plain.s, plain.len, err))
        return -1;
    runes_add_utf8(out, composed.s, composed.len);
    return 0;
}

/* Only characters that nothing below would change. */
static bool is_plain(const struct runes *text)
{
    for (size_t i = 0; i < text->n; i++)
        if (text->at[i] != '\n' && text->at[i] != '\t' && (text->at[i] < 0x20 || text->at[i] > 0x7e))
            return false;
    return true;
}

static int fix_characters(struct runes *text, bool *changed, struct cairn_error *err)
{
    CLEANUP(runes_release) struct runes before = { 0 };
    CLEANUP(runes_release) struct runes replaced = { 0 };
    CLEANUP(runes_release) struct runes removed = { 0 };
    *changed = false;
    if (is_plain(text))
        return 0;
    runes_addn(&before, text->at, text->n);
    fix_encoding(text);
    replace_characters(text, &replaced);
    remove_characters(&replaced, &removed);
    text->n = 0;
    if (compose(&removed, text, err))
        return -1;
    *changed = !runes_equal(&before, text);
    return 0;
}

/* Fixes the text again until nothing changes: a reference may hide another, or mojibake.  While only "&amp;" becomes "&",
 * characters that needed no fixing need none. */
static int fix_piece(struct runes *text, bool unescape, struct cairn_error *err)
{
    for (bool changed = true;;) {
        CLEANUP(runes_release) struct runes fixed = { 0 };
        if (!unescape)
            runes_addn(&fixed, text->at, text->n);
        else if (changed || !html_unnest_strict(text, &fixed))
            html_unescape_strict(text, &fixed);
        if (fix_characters(&fixed, &changed, err))
            return -1;
        if (runes_equal(text, &fixed))
            return 0;
        runes_swap(text, &fixed);
    }
}

int fix_text(const struct runes *text, struct runes *out, struct cairn_error *err)
{
    bool unescape = true;
    for (size_t at = 0, end; at < text->n; at = end) {
        CLEANUP(runes_release) struct runes piece = { 0 };
        for (end = at; end < text->n && end - at < PIECE_MAX && (end == at || text->at[end - 1] != '\n');
             end++)
            if (text->at[end] == '<')
                unescape = false;
        runes_addn(&piece, text->at + at, end - at);
        if (fix_piece(&piece, unescape, err))
            return -1;
        runes_addn(out, piece.at, piece.n);
    }
    return 0;
}
