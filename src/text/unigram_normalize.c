/* SPDX-License-Identifier: Apache-2.0
 * The normalizers of a tokenizer.json. */
#include "text/grapheme.h"
#include "text/unicode.h"
#include "text/unicode_form.h"
#include "text/unigram_parts.h"

#include <stdlib.h>
#include <string.h>

/* A text that is being rewritten, and how many bytes at its beginning stem from the text's first character:
 * a Metaspace of the scheme "first" asks for it. */
struct rewriting {
    const char *s;
    size_t n, first;
    struct str *out;
    size_t out_first;
};

static void put(struct rewriting *r, const char *s, size_t n, bool from_first)
{
    str_addn(r->out, s, n);
    if (from_first)
        r->out_first = r->out->len;
}

/* ---- Precompiled ---- */

/* A new character: change 1 means that it is added, 0 that it replaces one, -n that n more are dropped. */
struct step {
    uint32_t c;
    long change;
};

struct steps {
    struct step *at;
    size_t n, cap;
};

static void add_step(struct steps *t, uint32_t c)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        t->at = realloc(t->at, t->cap * sizeof(*t->at));
        if (!t->at)
            abort();
    }
    t->at[t->n++] = (struct step){ c, 0 };
}

static long add_characters(struct steps *t, const char *s, size_t n)
{
    long count = 0;
    uint32_t c;
    for (size_t at = 0; at < n; count++) {
        at += unicode_next(s + at, n - at, &c);
        add_step(t, c == UNICODE_BAD ? 0xfffd : c);
    }
    return count;
}

static long count_characters(const char *s, size_t n)
{
    long count = 0;
    uint32_t c;
    for (size_t at = 0; at < n; count++)
        at += unicode_next(s + at, n - at, &c);
    return count;
}

static void replace_part(struct steps *t, const char *old, size_t old_n, const char *with, size_t with_n)
{
    long more = add_characters(t, with, with_n) - count_characters(old, old_n);
    for (long i = 0; i < more && (size_t)i < t->n; i++)
        t->at[t->n - 1 - (size_t)i].change = 1;
    if (more < 0 && t->n)
        t->at[t->n - 1].change += more;
}

static size_t skip_character(const struct rewriting *r, size_t at)
{
    uint32_t c;
    return at < r->n ? at + unicode_next(r->s + at, r->n - at, &c) : at;
}

static void apply(struct rewriting *r, const struct steps *t)
{
    char bytes[4];
    size_t at = 0;
    for (size_t i = 0; i < t->n; i++) {
        long change = t->at[i].change;
        size_t origin = change > 0 && at ? at - 1 : at;
        put(r, bytes, unicode_put(bytes, t->at[i].c), origin < r->first || (change > 0 && !at));
        for (long k = change; k <= 0; k++)
            at = skip_character(r, at);
    }
}

/* A cluster of less than six bytes is replaced as a whole, by what its shortest key is replaced by: the library
 * does so, and its authors call it weird. */
static void precompiled(struct rewriting *r, const struct charsmap *map)
{
    struct steps t = { 0 };
    const char *with = NULL;
    size_t with_n = 0;
    for (size_t at = 0; at < r->n;) {
        const char *g = r->s + at;
        size_t size = grapheme_next(g, r->n - at);
        at += size;
        if (size < 6 && charsmap_find(map, g, size, false, &with, &with_n)) {
            replace_part(&t, g, size, with, with_n);
            continue;
        }
        uint32_t c;
        for (size_t i = 0, one; i < size; i += one) {
            one = unicode_next(g + i, size - i, &c);
            if (charsmap_find(map, g + i, one, false, &with, &with_n))
                replace_part(&t, g + i, one, with, with_n);
            else
                add_step(&t, c);
        }
    }
    apply(r, &t);
    free(t.at);
}

/* ---- the others ---- */

static bool is_space(uint32_t c)
{
    return unicode_class_of(c) == UNICODE_SPACE;
}

static void strip(struct rewriting *r, bool left, bool right)
{
    size_t from = 0, to = 0;
    uint32_t c;
    for (size_t at = 0; at < r->n;) {
        size_t size = unicode_next(r->s + at, r->n - at, &c);
        bool space = is_space(c);
        if (space && left && from == at)
            from = at + size;
        at += size;
        if (!space || !right)
            to = at;
    }
    if (to > from) {
        put(r, r->s + from, to - from, false);
        r->out_first = r->first > from ? r->first - from : 0;
    }
}

/* Bytes of a match at this place; 0: none. */
static size_t match(const struct unigram_normalizer *f, const char *s, size_t n)
{
    if (!f->least)
        return n >= f->pattern.len && !memcmp(s, f->pattern.s, f->pattern.len) ? f->pattern.len : 0;
    size_t at = 0, count = 0;
    for (uint32_t c; at < n; count++) {
        size_t size = unicode_next(s + at, n - at, &c);
        if (f->any_space ? !is_space(c) : size != f->pattern.len || memcmp(s + at, f->pattern.s, size))
            break;
        at += size;
    }
    return count >= f->least ? at : 0;
}

static void replace(struct rewriting *r, const struct unigram_normalizer *f)
{
    uint32_t c;
    for (size_t at = 0; at < r->n;) {
        size_t found = match(f, r->s + at, r->n - at);
        size_t size = found ? found : unicode_next(r->s + at, r->n - at, &c);
        if (found && f->with.len)
            put(r, f->with.s, f->with.len, at + found - 1 < r->first);
        else if (!found)
            put(r, r->s + at, size, at < r->first);
        at += size;
    }
}

static void prepend(struct rewriting *r, const struct str *with)
{
    if (r->n && with->len)
        put(r, with->s, with->len, r->first > 0);
    put(r, r->s, r->n, false);
    r->out_first = r->first ? r->first + r->out->len - r->n : 0;
}

static void nmt(struct rewriting *r)
{
    uint32_t c;
    for (size_t at = 0, size; at < r->n; at += size) {
        size = unicode_next(r->s + at, r->n - at, &c);
        if ((c && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f)
            continue;
        bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
        put(r, space ? " " : r->s + at, space ? 1 : size, at < r->first);
    }
}

static void lowercase(struct rewriting *r)
{
    char bytes[4];
    uint32_t c;
    for (size_t at = 0, size; at < r->n; at += size) {
        size = unicode_next(r->s + at, r->n - at, &c);
        if (c == 0x130) /* the only one that becomes two */
            put(r, "i\xcc\x87", 3, at < r->first);
        else
            put(r, bytes, unicode_put(bytes, unicode_lower(c)), at < r->first);
    }
}

static void compose(struct rewriting *r, enum unigram_change change)
{
    static const enum unicode_form forms[] = {
        [CHANGE_NFC] = UNICODE_NFC,
        [CHANGE_NFD] = UNICODE_NFD,
        [CHANGE_NFKC] = UNICODE_NFKC,
        [CHANGE_NFKD] = UNICODE_NFKD,
    };
    struct cairn_error err;
    uint32_t c;
    if (unicode_add_form(r->out, forms[change], r->s, r->n, &err))
        abort(); /* the text is UTF-8, so there is no memory */
    if (r->first && r->out->len)
        r->out_first = unicode_next(r->out->s, r->out->len, &c);
}

void unigram_hf_normalize(const struct unigram *u, const char *s, size_t n, struct str *out, size_t *first)
{
    CLEANUP(str_release) struct str before = { 0 };
    str_addn(out, s, n);
    for (size_t i = 0; i < u->n_normalizers; i++) {
        const struct unigram_normalizer *f = &u->normalizers[i];
        struct str swap = before;
        before = *out;
        *out = swap;
        out->len = 0;
        struct rewriting r = { before.s, before.len, *first, out, 0 };
        if (f->change == CHANGE_PRECOMPILED)
            precompiled(&r, &f->map);
        else if (f->change == CHANGE_REPLACE)
            replace(&r, f);
        else if (f->change == CHANGE_STRIP)
            strip(&r, f->left, f->right);
        else if (f->change == CHANGE_PREPEND)
            prepend(&r, &f->with);
        else if (f->change == CHANGE_NMT)
            nmt(&r);
        else if (f->change == CHANGE_LOWERCASE)
            lowercase(&r);
        else
            compose(&r, f->change);
        *first = r.out_first;
    }
}
