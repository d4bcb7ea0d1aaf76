/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_train.h"

#include "base/json.h"
#include "text/split.h"
#include "text/string_set.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include <stdlib.h>
#include <string.h>

#define END_OF_TEXT "<|endoftext|>"

/* Grows an array to n elements; items is the address of its pointer. */
static int grow(void *items, size_t *cap, size_t n, size_t size, struct cairn_error *err)
{
    if (n <= *cap)
        return 0;
    size_t more = *cap * 2 > n ? *cap * 2 : n + 16;
    void *old, *new;
    memcpy(&old, items, sizeof(old));
    if (!(new = realloc(old, more * size)))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", more * size);
    memcpy(items, &new, sizeof(new));
    *cap = more;
    return 0;
}

/* ---- counting words ---- */

struct word_counts {
    struct string_set words;
};

struct word_counts *word_counts_new(void)
{
    struct word_counts *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    return w;
}

int word_counts_add(struct word_counts *w, const char *text, size_t n, struct cairn_error *err)
{
    for (size_t at = 0, size, place; at < n; at += size) {
        size = split_next(SPLIT_GPT2, text + at, n - at);
        if (size > UINT32_MAX)
            return cairn_fail(err, CAIRN_EFORMAT, "a word of %zu bytes is too long", size);
        if (string_set_put(&w->words, text + at, size, &place, err))
            return -1;
        w->words.list[place].count++;
    }
    return 0;
}

void word_counts_cleanup(struct word_counts **w)
{
    if (*w)
        string_set_release(&(*w)->words);
    free(*w);
}

/* ---- training ---- */

struct pair {
    uint32_t left, right;
    int64_t count;
    uint32_t *where; /* words that may contain it; a word may be listed twice */
    size_t n, cap;
};

/* A pair with its count at the time it was pushed. */
struct offer {
    int64_t count;
    size_t pair;
};

struct learner {
    const struct word_counts *from;
    uint32_t *ids;      /* of all words, concatenated */
    size_t *begin;      /* by word */
    uint32_t *length;   /* by word; shrinks */
    struct pair *pairs; /* in order of first occurrence */
    size_t n_pairs, cap_pairs;
    size_t *slots; /* pairs by hash, plus one */
    size_t n_slots;
    struct offer *heap;
    size_t n_heap, cap_heap;
    size_t *touched; /* pairs whose count a merge increased */
    size_t n_touched, cap_touched;
    struct string_set tokens; /* by id */
    uint32_t *merges;         /* left, right, left, right, … */
    size_t n_merges, cap_merges;
    const volatile sig_atomic_t *stop;
    struct cairn_error *err;
};

static void learner_release(struct learner *l)
{
    for (size_t i = 0; i < l->n_pairs; i++)
        free(l->pairs[i].where);
    free(l->ids);
    free(l->begin);
    free(l->length);
    free(l->pairs);
    free(l->slots);
    free(l->heap);
    free(l->touched);
    free(l->merges);
    string_set_release(&l->tokens);
}

static size_t *pair_slot(const struct learner *l, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 32 | right;
    for (size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32);; at++) {
        size_t *slot = &l->slots[at & (l->n_slots - 1)];
        if (!*slot || (l->pairs[*slot - 1].left == left && l->pairs[*slot - 1].right == right))
            return slot;
    }
}

static int widen_pairs(struct learner *l)
{
    size_t n = l->n_slots ? 2 * l->n_slots : 1 << 12;
    size_t *slots = calloc(n, sizeof(*slots));
    if (!slots)
        return cairn_fail(l->err, CAIRN_ENOMEM, "no memory for %zu pairs", n);
    free(l->slots);
    l->slots = slots;
    l->n_slots = n;
    for (size_t i = 0; i < l->n_pairs; i++)
        *pair_slot(l, l->pairs[i].left, l->pairs[i].right) = i + 1;
    return 0;
}

static int find_pair(struct learner *l, uint32_t left, uint32_t right, size_t *place)
{
    if (2 * (l->n_pairs + 1) > l->n_slots && widen_pairs(l))
        return -1;
    size_t *slot = pair_slot(l, left, right);
    if (!*slot) {
        if (grow(&l->pairs, &l->cap_pairs, l->n_pairs + 1, sizeof(*l->pairs), l->err))
            return -1;
        l->pairs[l->n_pairs++] = (struct pair){ .left = left, .right = right };
        *slot = l->n_pairs;
    }
    *place = *slot - 1;
    return 0;
}

/* Adds to a pair's count, in this word. */
static int add_pair(struct learner *l, uint32_t left, uint32_t right, uint32_t word)
{
    size_t place;
    if (l->stop && *l->stop)
        return cairn_fail(l->err, CAIRN_EIO, "interrupted");
    if (find_pair(l, left, right, &place))
        return -1;
    struct pair *p = &l->pairs[place];
    p->count += l->from->words.list[word].count;
    if (grow(&p->where, &p->cap, p->n + 1, sizeof(*p->where), l->err) ||
        grow(&l->touched, &l->cap_touched, l->n_touched + 1, sizeof(*l->touched), l->err))
        return -1;
    if (!p->n || p->where[p->n - 1] != word)
        p->where[p->n++] = word;
    if (!l->n_touched || l->touched[l->n_touched - 1] != place)
        l->touched[l->n_touched++] = place;
    return 0;
}

static int remove_pair(struct learner *l, uint32_t left, uint32_t right, uint32_t word)
{
    size_t place;
    if (find_pair(l, left, right, &place))
        return -1;
    l->pairs[place].count -= l->from->words.list[word].count;
    return 0;
}

static bool goes_first(const struct learner *l, struct offer a, struct offer b)
{
    const struct pair *p = &l->pairs[a.pair], *q = &l->pairs[b.pair];
    if (a.count != b.count)
        return a.count > b.count;
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static int push(struct learner *l, struct offer o)
{
    if (grow(&l->heap, &l->cap_heap, l->n_heap + 1, sizeof(*l->heap), l->err))
        return -1;
    size_t at = l->n_heap++;
    for (; at && goes_first(l, o, l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = o;
    return 0;
}

static struct offer pop(struct learner *l)
{
    struct offer top = l->heap[0], last = l->heap[--l->n_heap];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < l->n_heap) {
        if (child + 1 < l->n_heap && goes_first(l, l->heap[child + 1], l->heap[child]))
            child++;
        if (!goes_first(l, l->heap[child], last))
            break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    l->heap[at] = last;
    return top;
}

static int compare_places(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

/* Pushes each pair whose count increased, once. */
static int offer_touched(struct learner *l)
{
    if (l->n_touched)
        qsort(l->touched, l->n_touched, sizeof(*l->touched), compare_places);
    for (size_t i = 0; i < l->n_touched; i++) {
        size_t place = l->touched[i];
        if ((i && place == l->touched[i - 1]) || l->pairs[place].count < 1)
            continue;
        if (push(l, (struct offer){ l->pairs[place].count, place }))
            return -1;
    }
    l->n_touched = 0;
    return 0;
}

static int start_tokens(struct learner *l)
{
    size_t place;
    if (string_set_put(&l->tokens, END_OF_TEXT, strlen(END_OF_TEXT), &place, l->err))
        return -1;
    /* In the order of the characters that encode them. */
    for (uint32_t c = 0; c < 512; c++) {
        int byte = tokenizer_char_byte(c);
        char one = (char)byte;
        if (byte >= 0 && string_set_put(&l->tokens, &one, 1, &place, l->err))
            return -1;
    }
    return 0;
}

static int start_words(struct learner *l)
{
    const struct string_set *w = &l->from->words;
    uint32_t ids[256];
    l->ids = malloc((w->text.len + 1) * sizeof(*l->ids));
    l->begin = malloc((w->n + 1) * sizeof(*l->begin));
    l->length = malloc((w->n + 1) * sizeof(*l->length));
    if (!l->ids || !l->begin || !l->length || w->n > UINT32_MAX)
        return cairn_fail(l->err, CAIRN_ENOMEM, "no memory for %zu words", w->n);
    for (int b = 0; b < 256; b++)
        ids[b] = (uint32_t)string_set_find(&l->tokens, &(char){ (char)b }, 1);
    for (uint32_t i = 0; i < w->n; i++) {
        l->begin[i] = w->list[i].at;
        l->length[i] = w->list[i].n;
        for (size_t k = 0; k < w->list[i].n; k++) {
            uint32_t *id = l->ids + w->list[i].at + k;
            *id = ids[(unsigned char)w->text.s[w->list[i].at + k]];
            if (k && add_pair(l, id[-1], id[0], i))
                return -1;
        }
    }
    return offer_touched(l);
}

/* Puts the new token in place of the pair, from left to right. */
static int merge_word(struct learner *l, uint32_t word, uint32_t left, uint32_t right, uint32_t made)
{
    uint32_t *id = l->ids + l->begin[word], n = l->length[word], to = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 == n || id[i] != left || id[i + 1] != right) {
            id[to++] = id[i];
            continue;
        }
        if (to && (remove_pair(l, id[to - 1], left, word) || add_pair(l, id[to - 1], made, word)))
            return -1;
        if (i + 2 < n && (remove_pair(l, right, id[i + 2], word) || add_pair(l, made, id[i + 2], word)))
            return -1;
        id[to++] = made;
        i++;
    }
    l->length[word] = to;
    return 0;
}

static int token_of(struct learner *l, uint32_t left, uint32_t right, uint32_t *made)
{
    CLEANUP(str_release) struct str joined = { 0 };
    const struct string_set_entry *a = &l->tokens.list[left], *b = &l->tokens.list[right];
    size_t place;
    str_addn(&joined, l->tokens.text.s + a->at, a->n);
    str_addn(&joined, l->tokens.text.s + b->at, b->n);
    if (string_set_put(&l->tokens, joined.s, joined.len, &place, l->err))
        return -1;
    *made = (uint32_t)place;
    return 0;
}

static int learn_pair(struct learner *l, size_t place)
{
    uint32_t left = l->pairs[place].left, right = l->pairs[place].right, made;
    if (token_of(l, left, right, &made) ||
        grow(&l->merges, &l->cap_merges, l->n_merges + 2, sizeof(*l->merges), l->err))
        return -1;
    l->merges[l->n_merges++] = left;
    l->merges[l->n_merges++] = right;
    /* Frees the list before others grow: no word contains this pair afterwards. */
    CLEANUP(mem_free) uint32_t *where = TAKE(l->pairs[place].where);
    size_t n = l->pairs[place].n;
    l->pairs[place].n = l->pairs[place].cap = 0;
    for (size_t i = 0; i < n; i++)
        if (merge_word(l, where[i], left, right, made))
            return -1;
    l->pairs[place].count = 0;
    return offer_touched(l);
}

static int learn(struct learner *l, uint32_t vocab)
{
    while (l->n_heap && l->tokens.n < vocab) {
        struct offer top = pop(l);
        int64_t now = l->pairs[top.pair].count;
        if (now != top.count) {
            if (now > 1 && push(l, (struct offer){ now, top.pair }))
                return -1;
            continue;
        }
        if (now < 2)
            break;
        if (learn_pair(l, top.pair))
            return -1;
    }
    return 0;
}

/* ---- the file ---- */

static void name_token(const struct learner *l, uint32_t id, struct str *out)
{
    const struct string_set_entry *t = &l->tokens.list[id];
    char c[4];
    for (size_t i = 0; i < t->n; i++)
        str_addn(out, c, unicode_put(c, tokenizer_byte_char((unsigned char)l->tokens.text.s[t->at + i])));
}

static void add_byte_level(struct json *top, const char *key, bool regex)
{
    struct json *v = json_add_object(top, key);
    json_add_text(v, "type", "ByteLevel");
    json_add_bool(v, "add_prefix_space", false);
    json_add_bool(v, "trim_offsets", true);
    json_add_bool(v, "use_regex", regex);
}

static void add_end_of_text(struct json *list)
{
    static const char *const no[] = { "single_word", "lstrip", "rstrip", "normalized" };
    struct json *v = json_add_object(list, NULL);
    json_add_int(v, "id", 0);
    json_add_text(v, "content", END_OF_TEXT);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        json_add_bool(v, no[i], false);
    json_add_bool(v, "special", true);
}

/* Writes everything before the vocabulary; returns the model. */
static struct json *add_head(struct json *top, bool regex, bool end_of_text)
{
    json_add_text(top, "version", "1.0");
    json_add_null(top, "truncation");
    json_add_null(top, "padding");
    struct json *added = json_add_array(top, "added_tokens");
    if (end_of_text)
        add_end_of_text(added);
    json_add_null(top, "normalizer");
    add_byte_level(top, "pre_tokenizer", regex);
    add_byte_level(top, "post_processor", regex);
    add_byte_level(top, "decoder", regex);
    struct json *model = json_add_object(top, "model");
    json_add_text(model, "type", "BPE");
    json_add_null(model, "dropout");
    json_add_null(model, "unk_token");
    json_add_null(model, "continuing_subword_prefix");
    json_add_null(model, "end_of_word_suffix");
    json_add_bool(model, "fuse_unk", false);
    json_add_bool(model, "byte_fallback", false);
    json_add_bool(model, "ignore_merges", false);
    return model;
}

static int parse_made(const struct json *top, struct tokenizer **out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = json_to_string(top);
    return tokenizer_parse("the new tokenizer", text, strlen(text), out, err);
}

static int make_tokenizer(const struct learner *l, struct tokenizer **out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    CLEANUP(str_release) struct str name = { 0 };
    struct json *model = add_head(top, true, true), *vocab = json_add_object(model, "vocab");
    for (uint32_t id = 0; id < l->tokens.n; id++) {
        name.len = 0;
        name_token(l, id, &name);
        json_add_int(vocab, name.s, id);
    }
    struct json *merges = json_add_array(model, "merges");
    for (size_t i = 0; i < l->n_merges; i += 2) {
        name.len = 0;
        name_token(l, l->merges[i], &name);
        str_add(&name, " ");
        name_token(l, l->merges[i + 1], &name);
        json_add_text(merges, NULL, name.s);
    }
    return parse_made(top, out, err);
}

int tokenizer_train(const struct word_counts *w, uint32_t vocab, const volatile sig_atomic_t *stop,
                    struct tokenizer **out, struct cairn_error *err)
{
    CLEANUP(learner_release) struct learner l = { .from = w, .stop = stop, .err = err };
    if (vocab < TOKENIZER_LEAST_VOCAB)
        return cairn_fail(err, CAIRN_EUSAGE,
                          "a vocabulary of %u is too small: 256 bytes and the end-of-text token make %d",
                          vocab, TOKENIZER_LEAST_VOCAB);
    if (start_tokens(&l) || start_words(&l) || learn(&l, vocab))
        return -1;
    return make_tokenizer(&l, out, err);
}

int tokenizer_new_bytes(struct tokenizer **out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    struct json *model = add_head(top, false, false), *vocab = json_add_object(model, "vocab");
    for (int b = 0; b < 256; b++) {
        char name[5] = "";
        unicode_put(name, tokenizer_byte_char((unsigned char)b));
        json_add_int(vocab, name, b);
    }
    json_add_array(model, "merges");
    return parse_made(top, out, err);
}
