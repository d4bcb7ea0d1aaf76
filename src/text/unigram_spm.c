/* SPDX-License-Identifier: Apache-2.0
 * What SentencePiece does with a text before the model sees it: characters are replaced, white space is
 * reduced and becomes U+2581, and one is put in front. */
#include "text/unicode.h"
#include "text/unigram_parts.h"

#include <string.h>

struct part {
    const char *s;
    size_t n, taken; /* taken: bytes of the text that it stands for */
};

static struct part next_part(const struct unigram *u, const char *s, size_t n)
{
    struct part p = { s, 0, 0 };
    uint32_t value, c;
    if ((p.taken = trie_longest(&u->spm.user, s, n, &value))) {
        p.n = p.taken;
        return p;
    }
    if ((p.taken = charsmap_find(&u->spm.map, s, n, true, &p.s, &p.n)))
        return p;
    p.taken = p.n = unicode_next(s, n, &c);
    if (c == UNICODE_BAD) {
        p.s = "\xef\xbf\xbd";
        p.n = 3;
    }
    return p;
}

static const char *space_of(const struct unigram *u)
{
    return u->spm.escape_spaces ? "\xe2\x96\x81" : " ";
}

static void add_part(const struct unigram *u, const char *s, size_t n, struct str *out)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] == ' ')
            str_add(out, space_of(u));
        else
            str_addn(out, s + i, 1);
}

void unigram_spm_normalize(const struct unigram *u, const char *s, size_t n, struct str *out)
{
    const struct unigram_spm *m = &u->spm;
    size_t at = 0;
    for (; m->remove_extra_spaces && at < n;) {
        struct part p = next_part(u, s + at, n - at);
        if (p.n != 1 || p.s[0] != ' ')
            break;
        at += p.taken;
    }
    if (at == n)
        return;
    if (!m->space_is_suffix && m->dummy_prefix)
        str_add(out, space_of(u));
    bool after_space = m->remove_extra_spaces;
    while (at < n) {
        struct part p = next_part(u, s + at, n - at);
        at += p.taken;
        for (; after_space && p.n && p.s[0] == ' '; p.n--)
            p.s++;
        add_part(u, p.s, p.n, out);
        if (p.n)
            after_space = m->remove_extra_spaces && p.s[p.n - 1] == ' ';
    }
    size_t space = strlen(space_of(u));
    while (m->remove_extra_spaces && out->len >= space &&
           !memcmp(out->s + out->len - space, space_of(u), space))
        out->len -= space;
    if (m->space_is_suffix && m->dummy_prefix)
        str_add(out, space_of(u));
}
