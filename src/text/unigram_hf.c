/* SPDX-License-Identifier: Apache-2.0
 * The way of a text through a tokenizer.json: added tokens are found in it, the rest is normalized, added tokens
 * are found in that, and the rest is split into words, which the model encodes. */
#include "text/grapheme.h"
#include "text/unicode.h"
#include "text/unigram_parts.h"

#include <string.h>

/* ---- words ---- */

static int split(struct unigram_work *w, size_t step, const char *s, size_t n, size_t first,
                 struct cairn_error *err);

static size_t first_from(size_t first, size_t at)
{
    return first > at ? first - at : 0;
}

static int split_spaces(struct unigram_work *w, size_t step, const char *s, size_t n, size_t first,
                        struct cairn_error *err)
{
    size_t from = 0;
    uint32_t c;
    for (size_t at = 0, size; at < n; at += size) {
        size = unicode_next(s + at, n - at, &c);
        if (unicode_class_of(c) != UNICODE_SPACE)
            continue;
        if (split(w, step + 1, s + from, at - from, first_from(first, from), err))
            return -1;
        from = at + size;
    }
    return split(w, step + 1, s + from, n - from, first_from(first, from), err);
}

static int split_metaspace(struct unigram_work *w, size_t step, const char *s, size_t n, size_t first,
                           struct cairn_error *err)
{
    const struct unigram_splitter *m = &w->u->splitters[step];
    CLEANUP(str_release) struct str text = { 0 };
    size_t size = strlen(m->with), text_first = 0, from = 0;
    bool begins = s[0] == ' ' || (n >= size && !memcmp(s, m->with, size));
    if (!begins && (m->prefix == PREFIX_ALWAYS || (m->prefix == PREFIX_FIRST && first)))
        str_add(&text, m->with);
    if (first)
        text_first = text.len;
    for (size_t i = 0; i < n; i++) {
        str_addn(&text, s[i] == ' ' ? m->with : s + i, s[i] == ' ' ? size : 1);
        if (i < first)
            text_first = text.len;
    }
    for (size_t at = size; at < text.len && m->split; at++) {
        if (text.len - at < size || memcmp(text.s + at, m->with, size))
            continue;
        if (split(w, step + 1, text.s + from, at - from, first_from(text_first, from), err))
            return -1;
        from = at;
    }
    return split(w, step + 1, text.s + from, text.len - from, first_from(text_first, from), err);
}

static int split(struct unigram_work *w, size_t step, const char *s, size_t n, size_t first,
                 struct cairn_error *err)
{
    if (!n)
        return 0;
    if (step == w->u->n_splitters)
        return unigram_encode_word(w, s, n, err);
    return w->u->splitters[step].metaspace ? split_metaspace(w, step, s, n, first, err)
                                           : split_spaces(w, step, s, n, first, err);
}

/* ---- added tokens ---- */

static int find_added(struct unigram_work *w, int normalized, const char *s, size_t n, size_t first,
                      struct cairn_error *err);

static int encode_between(struct unigram_work *w, int normalized, const char *s, size_t n, size_t first,
                          struct cairn_error *err)
{
    if (normalized)
        return split(w, 0, s, n, first, err);
    CLEANUP(str_release) struct str text = { 0 };
    unigram_hf_normalize(w->u, s, n, &text, &first);
    return find_added(w, 1, text.s, text.len, first, err);
}

/* The character before a place; UNICODE_BAD at the beginning. */
static uint32_t character_before(const char *s, size_t at, size_t *size)
{
    uint32_t c = UNICODE_BAD;
    for (*size = 1; *size < at && ((unsigned char)s[at - *size] & 0xc0) == 0x80; ++*size)
        ;
    if (at)
        unicode_next(s + at - *size, *size, &c);
    return c;
}

static bool is_single_word(const char *s, size_t n, size_t from, size_t to)
{
    uint32_t after = UNICODE_BAD;
    size_t size;
    if (to < n)
        unicode_next(s + to, n - to, &after);
    return !grapheme_is_word(character_before(s, from, &size)) && !grapheme_is_word(after);
}

static size_t spaces_begin(const char *s, size_t at)
{
    for (size_t size; at && unicode_class_of(character_before(s, at, &size)) == UNICODE_SPACE; at -= size)
        ;
    return at;
}

static size_t spaces_end(const char *s, size_t n, size_t at)
{
    uint32_t c;
    for (size_t size; at < n; at += size) {
        size = unicode_next(s + at, n - at, &c);
        if (unicode_class_of(c) != UNICODE_SPACE)
            break;
    }
    return at;
}

static int find_added(struct unigram_work *w, int normalized, const char *s, size_t n, size_t first,
                      struct cairn_error *err)
{
    const struct unigram *u = w->u;
    size_t done = 0;
    uint32_t index = 0;
    for (size_t at = 0; at < n && u->added_trie[normalized].n_nodes;) {
        size_t size = trie_longest(&u->added_trie[normalized], s + at, n - at, &index), from = at;
        at += size ? size : 1;
        const struct unigram_added *a = &u->added[index];
        if (!size || (a->single_word && !is_single_word(s, n, from, at)))
            continue;
        if (a->left) {
            from = spaces_begin(s, from);
            from = from > done ? from : done;
        }
        if ((done < from &&
             encode_between(w, normalized, s + done, from - done, first_from(first, done), err)) ||
            token_list_reserve(w->out, 1, err))
            return -1;
        w->out->ids[w->out->n++] = a->id;
        done = a->right ? spaces_end(s, n, at) : at;
    }
    return done < n ? encode_between(w, normalized, s + done, n - done, first_from(first, done), err) : 0;
}

int unigram_hf_encode(struct unigram_work *w, const char *s, size_t n, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    size_t first = 0;
    for (size_t at = 0, size; at < n; at += size) {
        uint32_t c;
        size = unicode_next(s + at, n - at, &c);
        str_addn(&text, c == UNICODE_BAD ? "\xef\xbf\xbd" : s + at, c == UNICODE_BAD ? 3 : size);
        if (!at)
            first = text.len;
    }
    return find_added(w, 0, text.s, text.len, first, err);
}
