/* SPDX-License-Identifier: Apache-2.0
 * Reads a tokenizer.json: checks that cairn supports its parts, and fills a tokenizer. */
#include "text/tokenizer.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "text/tokenizer_error.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "os/info.h"
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 256 << 20 };

/* ---- the letters of byte-level names ---- */

static bool is_own_letter(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/* Bytes that are not printable map to code points from 256 on, in order. */
uint32_t tokenizer_byte_char(unsigned char byte)
{
    if (is_own_letter(byte))
        return byte;
    uint32_t c = 256;
    for (int b = 0; b < byte; b++)
        c += !is_own_letter(b);
    return c;
}

int tokenizer_char_byte(uint32_t c)
{
    if (c < 256)
        return is_own_letter((int)c) ? (int)c : -1;
    static const uint32_t last = 256 + 67;
    if (c > last)
        return -1;
    for (int b = 0; b < 256; b++)
        if (!is_own_letter(b) && c-- == 256)
            return b;
    return -1;
}

/* Appends the bytes that a name encodes; a name with other characters is used literally. */
static void add_name_bytes(struct str *out, const char *name)
{
    size_t before = out->len, n = strlen(name);
    uint32_t c;
    for (size_t at = 0; at < n;) {
        at += unicode_next(name + at, n - at, &c);
        int byte = tokenizer_char_byte(c);
        if (byte < 0) {
            out->len = before;
            str_addn(out, name, n);
            return;
        }
        str_addn(out, &(char){ (char)byte }, 1);
    }
}

/* ---- reading ---- */

struct reader {
    const char *name; /* of the file */
    struct tokenizer *t;
    const struct json *vocab; /* of the model */
    struct cairn_error *err;
};

static const char *text_or(const struct json *v, const char *otherwise)
{
    const char *s = json_text(v);
    return s ? s : otherwise;
}

static const char *type_of(const struct json *v)
{
    return text_or(json_get(v, "type"), "(no type)");
}

static bool is_set(const struct json *v)
{
    return v && !json_is_null(v);
}

static int read_normalizer(struct reader *r, const struct json *v)
{
    if (!is_set(v))
        return 0;
    const struct json *list = json_get(v, "normalizers");
    if (!strcmp(type_of(v), "Sequence")) {
        for (size_t i = 0; i < json_length(list); i++)
            if (json_at(list, i) && strcmp(type_of(json_at(list, i)), "NFC"))
                return tokenizer_refuse(r->err, r->name, "the normalizer %s is not supported",
                                        type_of(json_at(list, i)));
        r->t->nfc = json_length(list) > 0;
        return 0;
    }
    if (strcmp(type_of(v), "NFC"))
        return tokenizer_refuse(r->err, r->name, "the normalizer %s is not supported", type_of(v));
    r->t->nfc = true;
    return 0;
}

static int add_step(struct reader *r, enum split_kind kind)
{
    if (r->t->n_steps == TOKENIZER_STEPS)
        return tokenizer_refuse(r->err, r->name, "more than %d pre-tokenizers", TOKENIZER_STEPS);
    r->t->steps[r->t->n_steps++] = kind;
    return 0;
}

static int read_split(struct reader *r, const struct json *v)
{
    const char *pattern = json_text(json_get(json_get(v, "pattern"), "Regex"));
    const char *behavior = text_or(json_get(v, "behavior"), "");
    bool invert = json_bool(json_get(v, "invert"), false);
    enum split_kind kind;
    if (!pattern || !split_find(pattern, &kind))
        return tokenizer_refuse(r->err, r->name,
                                "the pre-tokenizer Split has an unsupported expression: %.200s",
                                pattern ? pattern : "(none)");
    /* The expressions leave no gaps, so keeping the matches and splitting at them is the same. */
    if (strcmp(behavior, "Isolated") && !(invert && !strcmp(behavior, "Removed")))
        return tokenizer_refuse(r->err, r->name,
                                "the pre-tokenizer Split with behavior %.40s is not supported", behavior);
    return add_step(r, kind);
}

static int read_byte_level(struct reader *r, const struct json *v)
{
    if (json_bool(json_get(v, "add_prefix_space"), true)) {
        if (r->t->n_steps)
            return tokenizer_refuse(r->err, r->name,
                                    "add_prefix_space after another pre-tokenizer is not supported");
        r->t->prefix_space = true;
    }
    return json_bool(json_get(v, "use_regex"), true) ? add_step(r, SPLIT_GPT2) : 0;
}

static int read_step(struct reader *r, const struct json *v, bool *byte_level)
{
    const char *type = type_of(v);
    if (*byte_level)
        return tokenizer_refuse(r->err, r->name, "the pre-tokenizer %s after ByteLevel is not supported",
                                type);
    if (!strcmp(type, "ByteLevel")) {
        *byte_level = true;
        return read_byte_level(r, v);
    }
    if (!strcmp(type, "Split"))
        return read_split(r, v);
    if (!strcmp(type, "Digits") && json_bool(json_get(v, "individual_digits"), false))
        return add_step(r, SPLIT_DIGITS);
    return tokenizer_refuse(r->err, r->name, "the pre-tokenizer %s is not supported", type);
}

static int read_pre_tokenizer(struct reader *r, const struct json *v)
{
    bool byte_level = false;
    const struct json *list = json_get(v, "pretokenizers");
    if (is_set(v) && strcmp(type_of(v), "Sequence")) {
        if (read_step(r, v, &byte_level))
            return -1;
    } else {
        for (size_t i = 0; i < json_length(list); i++)
            if (read_step(r, json_at(list, i), &byte_level))
                return -1;
    }
    return byte_level ? 0
                      : tokenizer_refuse(r->err, r->name,
                                         "no ByteLevel pre-tokenizer: only byte-level BPE is supported");
}

static bool is_empty(const struct json *v)
{
    const char *s = json_text(v);
    return !is_set(v) || (s && !*s);
}

static int check_model(struct reader *r, const struct json *m)
{
    /* Older files do not name the type; only BPE has merges. */
    if (!json_is_object(m) || (json_get(m, "type") ? strcmp(type_of(m), "BPE") : !json_get(m, "merges")))
        return tokenizer_refuse(r->err, r->name, "the model is %s, but only BPE is supported", type_of(m));
    if (json_number(json_get(m, "dropout"), 0) != 0)
        return tokenizer_refuse(r->err, r->name, "the model has dropout, which is not supported");
    if (json_bool(json_get(m, "byte_fallback"), false))
        return tokenizer_refuse(r->err, r->name, "the model has byte_fallback, which is not supported");
    if (!is_empty(json_get(m, "continuing_subword_prefix")) || !is_empty(json_get(m, "end_of_word_suffix")))
        return tokenizer_refuse(r->err, r->name,
                                "continuing_subword_prefix and end_of_word_suffix are not supported");
    if (!json_is_object(json_get(m, "vocab")) || !json_is_array(json_get(m, "merges")))
        return tokenizer_refuse(r->err, r->name, "the model has no vocab or no merges");
    r->t->whole_words = json_bool(json_get(m, "ignore_merges"), false);
    return 0;
}

/* ---- ids ---- */

static size_t count_members(const struct json *object)
{
    size_t n = 0;
    for (struct json_member m = json_first(object); m.key; m = json_next(object, m))
        n++;
    return n;
}

/* Ids index a table; a table with mostly holes is an error. */
static int make_table(struct reader *r, size_t entries)
{
    size_t most = 2 * entries + 1024;
    r->t->tokens = calloc(most, sizeof(*r->t->tokens));
    if (!r->t->tokens)
        return cairn_fail(r->err, CAIRN_ENOMEM, "%s: no memory for %zu tokens", r->name, most);
    r->t->vocab = (uint32_t)most;
    return 0;
}

static int put_token(struct reader *r, const char *name, uint64_t id, bool plain)
{
    struct tokenizer *t = r->t;
    if (id >= t->vocab)
        return tokenizer_refuse(r->err, r->name,
                                "token %.60s has the id %llu, which is far above the number of tokens", name,
                                (unsigned long long)id);
    if (t->tokens[id].n)
        return tokenizer_refuse(r->err, r->name, "two tokens have the id %llu", (unsigned long long)id);
    size_t before = t->text.len;
    if (plain)
        str_add(&t->text, name);
    else
        add_name_bytes(&t->text, name);
    t->tokens[id] = (struct token_text){ (uint32_t)before, (uint32_t)(t->text.len - before) };
    return 0;
}

static int read_vocab(struct reader *r)
{
    for (struct json_member m = json_first(r->vocab); m.key; m = json_next(r->vocab, m)) {
        uint64_t id;
        if (!json_to_u64(m.value, &id))
            return tokenizer_refuse(r->err, r->name, "token %.60s has no id", m.key);
        if (*m.key && put_token(r, m.key, id, false))
            return -1;
    }
    for (int b = 0; b < 256; b++) {
        char name[5] = "";
        uint64_t id;
        unicode_put(name, tokenizer_byte_char((unsigned char)b));
        if (!json_to_u64(json_get(r->vocab, name), &id)) {
            tokenizer_refuse(r->err, r->name, "the vocabulary has no token for byte 0x%02x", b);
            return cairn_hint(r->err, "train it with initial_alphabet=ByteLevel.alphabet()");
        }
        r->t->bpe.byte_ids[b] = (uint32_t)id;
    }
    return 0;
}

static int read_added_one(struct reader *r, const struct json *v)
{
    struct tokenizer *t = r->t;
    const char *content = json_text(json_get(v, "content"));
    uint64_t id, known;
    if (!content || !json_to_u64(json_get(v, "id"), &id))
        return tokenizer_refuse(r->err, r->name, "an added token without content or id");
    if (!*content)
        return 0;
    static const char *const no[] = { "lstrip", "rstrip", "single_word" };
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (json_bool(json_get(v, no[i]), false))
            return tokenizer_refuse(r->err, r->name, "the added token %.60s has %s, which is not supported",
                                    content, no[i]);
    /* Texts are split between threads, and a token must not be split. */
    if (split_cut(content, strlen(content)))
        return tokenizer_refuse(
            r->err, r->name, "the added token %.60s contains several words or lines, which is not supported",
            content);
    if (!json_to_u64(json_get(r->vocab, content), &known)) {
        if (put_token(r, content, id, true))
            return -1;
    } else if (known != id) {
        return tokenizer_refuse(r->err, r->name,
                                "the added token %.60s has the id %llu, but %llu in the vocabulary", content,
                                (unsigned long long)id, (unsigned long long)known);
    } else {
        /* Its name is literal text, not byte-level encoded. */
        t->tokens[id] = (struct token_text){ (uint32_t)t->text.len, (uint32_t)strlen(content) };
        str_add(&t->text, content);
    }
    bool special = json_bool(json_get(v, "special"), false);
    bool normalized = json_bool(json_get(v, "normalized"), !special);
    t->added[t->n_added++] = (struct added_token){ (uint32_t)id, normalized };
    t->added_any[normalized] = true;
    t->added_begin[normalized][(unsigned char)content[0]] = true;
    return 0;
}

static int read_added(struct reader *r, const struct json *list)
{
    r->t->added = calloc(json_length(list) + 1, sizeof(*r->t->added));
    if (!r->t->added)
        return cairn_fail(r->err, CAIRN_ENOMEM, "%s: no memory for added tokens", r->name);
    for (size_t i = 0; i < json_length(list); i++)
        if (read_added_one(r, json_at(list, i)))
            return -1;
    return 0;
}

/* Longest first; no two have the same text. */
static void sort_added(struct tokenizer *t)
{
    for (size_t i = 1; i < t->n_added; i++) {
        struct added_token a = t->added[i];
        size_t at = i;
        for (; at && t->tokens[t->added[at - 1].id].n < t->tokens[a.id].n; at--)
            t->added[at] = t->added[at - 1];
        t->added[at] = a;
    }
}

static void find_end_of_text(struct tokenizer *t)
{
    static const char *const names[] = { "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>" };
    t->end_of_text = t->bytes ? 0 : -1;
    for (size_t k = 0; k < ARRAY_LEN(names) && t->end_of_text < 0; k++)
        for (size_t i = 0; i < t->n_added; i++) {
            struct token_text x = t->tokens[t->added[i].id];
            if (x.n == strlen(names[k]) && !memcmp(t->text.s + x.at, names[k], x.n))
                t->end_of_text = t->added[i].id;
        }
}

/* ---- merges ---- */

/* "a b", or ["a","b"]. */
static bool merge_parts(const struct json *v, struct str *left, struct str *right)
{
    left->len = right->len = 0;
    const char *s = json_text(v), *space = s ? strchr(s, ' ') : NULL;
    if (s) {
        if (!space || strchr(space + 1, ' '))
            return false;
        str_addn(left, s, (size_t)(space - s));
        str_add(right, space + 1);
        return true;
    }
    const char *a = json_text(json_at(v, 0)), *b = json_text(json_at(v, 1));
    if (!a || !b || json_length(v) != 2)
        return false;
    str_add(left, a);
    str_add(right, b);
    return true;
}

static int read_merges(struct reader *r, const struct json *list)
{
    CLEANUP(str_release) struct str left = { 0 }, right = { 0 };
    for (size_t i = 0; i < json_length(list); i++) {
        const char *s = json_text(json_at(list, i));
        if (s && i == 0 && str_starts(s, "#version"))
            continue;
        uint64_t a, b, made;
        if (!merge_parts(json_at(list, i), &left, &right))
            return tokenizer_refuse(r->err, r->name, "merge %zu is not a pair of tokens", i);
        bool known =
            json_to_u64(json_get(r->vocab, left.s), &a) && json_to_u64(json_get(r->vocab, right.s), &b);
        str_add(&left, right.s);
        if (!known || !json_to_u64(json_get(r->vocab, left.s), &made))
            return tokenizer_refuse(
                r->err, r->name, "merge %zu makes %.60s, but it or one of its parts is not in the vocabulary",
                i, left.s);
        bpe_add(&r->t->bpe, (uint32_t)a, (uint32_t)b, (uint32_t)made);
    }
    return 0;
}

static int index_words(struct reader *r)
{
    struct tokenizer *t = r->t;
    size_t slots = 16;
    while (slots < 2 * (size_t)t->vocab)
        slots *= 2;
    if (!(t->words = malloc(slots * sizeof(*t->words))))
        return cairn_fail(r->err, CAIRN_ENOMEM, "%s: no memory for %zu words", r->name, slots);
    t->words_mask = slots - 1;
    memset(t->words, 0xff, slots * sizeof(*t->words));
    for (struct json_member m = json_first(r->vocab); m.key; m = json_next(r->vocab, m)) {
        uint64_t id;
        if (!json_to_u64(m.value, &id) || !*m.key)
            continue;
        size_t at = hash_bytes(t->text.s + t->tokens[id].at, t->tokens[id].n);
        while (t->words[at & t->words_mask] != BPE_NONE)
            at++;
        t->words[at & t->words_mask] = (uint32_t)id;
    }
    return 0;
}

/* ---- opening ---- */

static bool is_bytes(const struct tokenizer *t)
{
    bool same = t->vocab == 256 && !t->bpe.n_merges && !t->n_added && !t->nfc && !t->prefix_space;
    for (uint32_t b = 0; b < 256 && same; b++)
        same = t->bpe.byte_ids[b] == b;
    return same;
}

/* Hash of everything that affects ids, so that two files of the same tokenizer have the same hash. */
static void make_hash(struct tokenizer *t)
{
    struct hash h;
    hash_init(&h);
    hash_add_u64(&h, (uint64_t)t->nfc | (uint64_t)t->prefix_space << 1 | (uint64_t)t->whole_words << 2);
    for (int i = 0; i < t->n_steps; i++)
        hash_add_u64(&h, (uint64_t)t->steps[i]);
    for (uint32_t id = 0; id < t->vocab; id++) {
        hash_add_u64(&h, t->tokens[id].n);
        hash_add(&h, t->text.s + t->tokens[id].at, t->tokens[id].n);
    }
    hash_add_u64(&h, t->bpe.n_merges);
    for (size_t i = 0; i <= t->bpe.mask; i++)
        if (t->bpe.slots[i].rank != BPE_NONE) {
            hash_add_u64(&h, t->bpe.slots[i].pair);
            hash_add_u64(&h, t->bpe.slots[i].rank);
        }
    for (size_t i = 0; i < t->n_added; i++)
        hash_add_u64(&h, (uint64_t)t->added[i].id << 1 | t->added[i].normalized);
    hash_add_u64(&h, (uint64_t)t->end_of_text);
    hash_end(&h, t->hash);
}

static int read_all(struct reader *r, const struct json *top)
{
    struct tokenizer *t = r->t;
    const struct json *model = json_get(top, "model"), *added = json_get(top, "added_tokens");
    if (check_model(r, model) || read_normalizer(r, json_get(top, "normalizer")) ||
        read_pre_tokenizer(r, json_get(top, "pre_tokenizer")))
        return -1;
    r->vocab = json_get(model, "vocab");
    if (make_table(r, count_members(r->vocab) + json_length(added)) ||
        bpe_init(&t->bpe, json_length(json_get(model, "merges")), r->err) || read_vocab(r) ||
        read_added(r, added) || read_merges(r, json_get(model, "merges")))
        return -1;
    while (t->vocab && !t->tokens[t->vocab - 1].n)
        t->vocab--;
    if (t->whole_words && index_words(r))
        return -1;
    sort_added(t);
    t->bytes = is_bytes(t);
    find_end_of_text(t);
    make_hash(t);
    return 0;
}

int tokenizer_parse(const char *name, const char *json, size_t n, struct tokenizer **out,
                    struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    if (json_parse(json, n, &top, err))
        return cairn_wrap(err, "%s", name);
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = calloc(1, sizeof(*t));
    if (!t)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", name);
    struct reader r = { .name = name, .t = t, .err = err };
    if (read_all(&r, top))
        return -1;
    str_addn(&t->json, json, n);
    *out = TAKE(t);
    return 0;
}

int tokenizer_open(const char *path, struct tokenizer **out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    CLEANUP(str_release) struct str file = { 0 };
    size_t size;
    str_add(&file, path);
    if (os_is_folder(path))
        str_add(&file, "/tokenizer.json");
    if (file_read_whole(file.s, LARGEST_FILE, &text, &size, err))
        return -1;
    return tokenizer_parse(file.s, text, size, out, err);
}
