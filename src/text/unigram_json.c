/* SPDX-License-Identifier: Apache-2.0
 * Reads a tokenizer.json of model type Unigram: checks that cairn supports its parts, and fills a unigram. */
#include "text/unigram.h"

#include "base/json.h"
#include "text/tokenizer_error.h"
#include "text/unicode.h"
#include "text/unigram_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 64 };

struct reader {
    const char *name; /* of the file */
    struct unigram *u;
    struct cairn_error *err;
};

static const char *type_of(const struct json *v)
{
    const char *s = json_text(json_get(v, "type"));
    return s ? s : "(no type)";
}

static bool is_set(const struct json *v)
{
    return v && !json_is_null(v);
}

/* ---- normalizers ---- */

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *d = c ? strchr(digits, c) : NULL;
    return d ? (int)(d - digits) : -1;
}

static bool decode_base64(const char *s, struct str *out)
{
    size_t n = strlen(s);
    while (n && s[n - 1] == '=')
        n--;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        int d = base64_digit(s[i]);
        if (d < 0)
            return false;
        bits = bits << 6 | (uint32_t)d;
        if (i % 4)
            str_addn(out, &(char){ (char)(bits >> (6 - 2 * (i % 4))) }, 1);
    }
    return n % 4 != 1;
}

static int read_precompiled(struct reader *r, const struct json *v, struct unigram_normalizer *f)
{
    CLEANUP(str_release) struct str bytes = { 0 };
    const char *text = json_text(json_get(v, "precompiled_charsmap"));
    if (!text || !decode_base64(text, &bytes))
        return tokenizer_refuse(r->err, r->name, "the normalizer Precompiled has no precompiled_charsmap");
    if (charsmap_parse(&f->map, bytes.s, bytes.len, r->err))
        return cairn_wrap(r->err, "%s", r->name);
    for (size_t at = 0, size; at < f->map.n_text; at += size) {
        uint32_t c;
        size = unicode_next(f->map.text + at, f->map.n_text - at, &c);
        if (c == UNICODE_BAD)
            return tokenizer_refuse(r->err, r->name, "the precompiled_charsmap is damaged");
    }
    return 0;
}

/* One character, or \s, and how often at least: " {2,}", "\s+".  A text without special characters, too. */
static bool read_expression(const char *e, struct unigram_normalizer *f)
{
    static const char special[] = "\\^$.|?*+()[]{}";
    uint32_t c;
    int used = 0;
    unsigned least;
    if (!strpbrk(e, special)) {
        str_add(&f->pattern, e);
        return *e;
    }
    f->any_space = str_starts(e, "\\s");
    size_t size = f->any_space ? 2 : unicode_next(e, strlen(e), &c);
    if (!f->any_space && strchr(special, e[0]))
        return false;
    str_addn(&f->pattern, e, size);
    if (!strcmp(e + size, "+"))
        f->least = 1;
    else if (sscanf(e + size, "{%3u,}%n", &least, &used) == 1 && used && !e[size + (size_t)used])
        f->least = least;
    return f->least > 0;
}

static int read_replace(struct reader *r, const struct json *v, struct unigram_normalizer *f)
{
    const struct json *pattern = json_get(v, "pattern");
    const char *text = json_text(json_get(pattern, "String")), *with = json_text(json_get(v, "content"));
    const char *expression = json_text(json_get(pattern, "Regex"));
    if (!with || (!text && !expression) || (text && !*text))
        return tokenizer_refuse(r->err, r->name, "the normalizer Replace has no pattern or no content");
    str_add(&f->with, with);
    if (text)
        str_add(&f->pattern, text);
    else if (!read_expression(expression, f))
        return tokenizer_refuse(r->err, r->name,
                                "the normalizer Replace has an unsupported expression: %.200s", expression);
    return 0;
}

static const struct {
    const char *type;
    enum unigram_change change;
} simple[] = {
    { "Nmt", CHANGE_NMT }, { "Lowercase", CHANGE_LOWERCASE }, { "NFC", CHANGE_NFC },
    { "NFD", CHANGE_NFD }, { "NFKC", CHANGE_NFKC },           { "NFKD", CHANGE_NFKD },
};

static int read_normalizer(struct reader *r, const struct json *v)
{
    const char *type = type_of(v), *with;
    struct unigram *u = r->u;
    if (!is_set(v))
        return 0;
    if (!strcmp(type, "Sequence")) {
        const struct json *list = json_get(v, "normalizers");
        for (size_t i = 0; i < json_length(list); i++)
            if (read_normalizer(r, json_at(list, i)))
                return -1;
        return 0;
    }
    if (u->n_normalizers == MOST_STEPS)
        return tokenizer_refuse(r->err, r->name, "more than %d normalizers", MOST_STEPS);
    struct unigram_normalizer *f = &u->normalizers[u->n_normalizers++];
    if (!strcmp(type, "Precompiled"))
        return f->change = CHANGE_PRECOMPILED, read_precompiled(r, v, f);
    if (!strcmp(type, "Replace"))
        return f->change = CHANGE_REPLACE, read_replace(r, v, f);
    for (size_t i = 0; i < ARRAY_LEN(simple); i++)
        if (!strcmp(type, simple[i].type))
            return f->change = simple[i].change, 0;
    if (!strcmp(type, "Strip")) {
        f->change = CHANGE_STRIP;
        f->left = json_bool(json_get(v, "strip_left"), true);
        f->right = json_bool(json_get(v, "strip_right"), true);
        return 0;
    }
    if (!strcmp(type, "Prepend") && (with = json_text(json_get(v, "prepend")))) {
        f->change = CHANGE_PREPEND;
        str_add(&f->with, with);
        return 0;
    }
    return tokenizer_refuse(r->err, r->name, "the normalizer %.60s is not supported", type);
}

/* ---- pre-tokenizers ---- */

static int read_metaspace(struct reader *r, const struct json *v, struct unigram_splitter *m)
{
    static const char *const schemes[] = { "never", "first", "always" };
    const char *with = json_text(json_get(v, "replacement")),
               *scheme = json_text(json_get(v, "prepend_scheme"));
    uint32_t c;
    if (!with || !*with || unicode_next(with, strlen(with), &c) != strlen(with) || c == UNICODE_BAD)
        return tokenizer_refuse(r->err, r->name,
                                "the replacement of the pre-tokenizer Metaspace is not one character");
    strcpy(m->with, with);
    m->metaspace = true;
    m->split = json_bool(json_get(v, "split"), true);
    /* Older files say add_prefix_space instead. */
    m->prefix = json_bool(json_get(v, "add_prefix_space"), true) ? PREFIX_ALWAYS : PREFIX_NEVER;
    for (int i = 0; scheme; i++) {
        if (i == (int)ARRAY_LEN(schemes))
            return tokenizer_refuse(
                r->err, r->name, "the pre-tokenizer Metaspace has the unknown prepend_scheme %.60s", scheme);
        if (!strcmp(scheme, schemes[i])) {
            m->prefix = (enum unigram_prefix)i;
            break;
        }
    }
    return 0;
}

static int read_splitter(struct reader *r, const struct json *v)
{
    const char *type = type_of(v);
    struct unigram *u = r->u;
    if (!is_set(v))
        return 0;
    if (!strcmp(type, "Sequence")) {
        const struct json *list = json_get(v, "pretokenizers");
        for (size_t i = 0; i < json_length(list); i++)
            if (read_splitter(r, json_at(list, i)))
                return -1;
        return 0;
    }
    if (u->n_splitters == MOST_STEPS)
        return tokenizer_refuse(r->err, r->name, "more than %d pre-tokenizers", MOST_STEPS);
    struct unigram_splitter *m = &u->splitters[u->n_splitters++];
    if (!strcmp(type, "Metaspace"))
        return read_metaspace(r, v, m);
    return strcmp(type, "WhitespaceSplit")
               ? tokenizer_refuse(r->err, r->name, "the pre-tokenizer %.60s is not supported", type)
               : 0;
}

/* ---- the model and added tokens ---- */

static int read_model(struct reader *r, const struct json *m)
{
    struct unigram *u = r->u;
    const struct json *unknown = json_get(m, "unk_id");
    char name[8];
    uint64_t id;
    if (is_set(unknown)) {
        if (!json_to_u64(unknown, &id) || id >= u->n_pieces)
            return tokenizer_refuse(r->err, r->name, "unk_id is not in the vocabulary");
        u->unknown = (int64_t)id;
    }
    u->byte_fallback = json_bool(json_get(m, "byte_fallback"), false);
    for (unsigned b = 0; b < 256; b++) {
        snprintf(name, sizeof(name), "<0x%02X>", b);
        u->byte_ids[b] = trie_find(&u->trie, name, 6);
    }
    return 0;
}

static struct unigram_added *find_added(struct unigram *u, const char *s, size_t n)
{
    for (size_t i = 0; i < u->n_added; i++)
        if (u->added[i].text.len == n && !memcmp(u->added[i].text.s, s, n))
            return &u->added[i];
    return NULL;
}

static int read_added(struct reader *r, const struct json *v)
{
    struct unigram *u = r->u;
    size_t n;
    const char *content = json_bytes(json_get(v, "content"), &n);
    if (!content)
        return tokenizer_refuse(r->err, r->name, "an added token without content");
    if (!n)
        return 0;
    /* A token that comes again is changed.  `tokenizers` ignores the ids of the file. */
    struct unigram_added *a = find_added(u, content, n);
    if (!a) {
        a = &u->added[u->n_added++];
        str_addn(&a->text, content, n);
        a->id = trie_find(&u->trie, content, n);
        if (a->id == TRIE_NONE)
            a->id = u->vocab++;
    }
    a->single_word = json_bool(json_get(v, "single_word"), false);
    a->left = json_bool(json_get(v, "lstrip"), false);
    a->right = json_bool(json_get(v, "rstrip"), false);
    a->normalized = json_bool(json_get(v, "normalized"), !json_bool(json_get(v, "special"), false));
    return 0;
}

static int index_added(struct reader *r)
{
    struct unigram *u = r->u;
    for (size_t i = 0; i < u->n_added; i++) {
        CLEANUP(str_release) struct str text = { 0 };
        struct unigram_added *a = &u->added[i];
        uint32_t before;
        size_t first = 0;
        if (a->normalized)
            unigram_hf_normalize(u, a->text.s, a->text.len, &text, &first);
        else
            str_addn(&text, a->text.s, a->text.len);
        if (!text.len)
            return tokenizer_refuse(
                r->err, r->name, "nothing is left of the added token %.60s when it is normalized", a->text.s);
        if (trie_put(&u->added_trie[a->normalized], text.s, text.len, (uint32_t)i, &before, r->err))
            return -1;
        if (before != TRIE_NONE)
            return tokenizer_refuse(r->err, r->name,
                                    "the added tokens %.60s and %.60s are the same when they are normalized",
                                    u->added[before].text.s, a->text.s);
    }
    return 0;
}

static void find_end(struct unigram *u)
{
    static const char *const names[] = { "</s>", "<eos>" };
    for (size_t k = 0; k < ARRAY_LEN(names) && u->end < 0; k++) {
        struct unigram_added *a = find_added(u, names[k], strlen(names[k]));
        uint32_t id = a ? a->id : trie_find(&u->trie, names[k], strlen(names[k]));
        u->end = id == TRIE_NONE ? -1 : (int64_t)id;
    }
}

static int read_all(struct reader *r, const struct json *top)
{
    struct unigram *u = r->u;
    const struct json *added = json_get(top, "added_tokens");
    u->json = true;
    u->normalizers = calloc(MOST_STEPS, sizeof(*u->normalizers));
    u->splitters = calloc(MOST_STEPS, sizeof(*u->splitters));
    u->added = calloc(json_length(added) + 1, sizeof(*u->added));
    if (!u->normalizers || !u->splitters || !u->added)
        return cairn_fail(r->err, CAIRN_ENOMEM, "%s: no memory", r->name);
    if (read_model(r, json_get(top, "model")) || read_normalizer(r, json_get(top, "normalizer")) ||
        read_splitter(r, json_get(top, "pre_tokenizer")))
        return -1;
    for (size_t i = 0; i < json_length(added); i++)
        if (read_added(r, json_at(added, i)))
            return -1;
    find_end(u);
    return index_added(r);
}

int unigram_parse_json(struct unigram **out, const char *name, const char *json, size_t n,
                       struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    CLEANUP(str_release) struct str rest = { 0 };
    struct reader r = { .name = name, .err = err };
    if (unigram_read_vocab(&u, json, n, &rest, err) ||
        json_parse_nul(rest.s ? rest.s : "", rest.len, &top, err))
        return cairn_wrap(err, "%s", name);
    const struct json *model = json_get(top, "model");
    /* Older files do not name the type; only a unigram has a list. */
    if (!u || (json_get(model, "type") && strcmp(type_of(model), "Unigram")))
        return tokenizer_refuse(r.err, r.name, "the model is %.60s, but only Unigram is supported here",
                                type_of(model));
    r.u = u;
    if (read_all(&r, top))
        return -1;
    unigram_identify(u, "tokenizers", json, n);
    *out = TAKE(u);
    return 0;
}
