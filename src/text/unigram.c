/* SPDX-License-Identifier: Apache-2.0
 * The model: of all ways to split a text into pieces, the one with the highest sum of scores. */
#include "text/unigram.h"

#include "base/hash.h"
#include "base/file.h"
#include "os/info.h"
#include "text/unigram_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 256 << 20 };

void unigram_identify(struct unigram *u, const char *library, const void *bytes, size_t n)
{
    struct hash h;
    hash_init(&h);
    hash_add_text(&h, library);
    hash_add(&h, bytes, n);
    hash_end(&h, u->hash);
}

int unigram_new(struct unigram **out, size_t n, struct cairn_error *err)
{
    CLEANUP(unigram_cleanup) struct unigram *u = calloc(1, sizeof(*u));
    if (u) {
        u->scores = calloc(n + 1, sizeof(*u->scores));
        u->kinds = calloc(n + 1, sizeof(*u->kinds));
    }
    if (!u || !u->scores || !u->kinds || n > UINT32_MAX / 2)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu pieces", n);
    if (trie_reserve(&u->trie, 4 * n, err))
        return -1;
    u->n_pieces = n;
    u->vocab = (uint32_t)n;
    u->unknown = u->end = -1;
    *out = TAKE(u);
    return 0;
}

void unigram_free(struct unigram *u)
{
    if (!u)
        return;
    trie_release(&u->trie);
    free(u->scores);
    free(u->kinds);
    charsmap_release(&u->spm.map);
    trie_release(&u->spm.user);
    for (size_t i = 0; i < u->n_normalizers; i++) {
        charsmap_release(&u->normalizers[i].map);
        str_release(&u->normalizers[i].pattern);
        str_release(&u->normalizers[i].with);
    }
    free(u->normalizers);
    free(u->splitters);
    for (size_t i = 0; i < u->n_added; i++)
        str_release(&u->added[i].text);
    free(u->added);
    trie_release(&u->added_trie[0]);
    trie_release(&u->added_trie[1]);
    free(u);
}

void unigram_cleanup(struct unigram **u)
{
    unigram_free(*u);
}

uint32_t unigram_vocab(const struct unigram *u)
{
    return u->vocab;
}

int64_t unigram_end(const struct unigram *u)
{
    return u->end;
}

int64_t unigram_unknown(const struct unigram *u)
{
    return u->unknown;
}

const uint64_t *unigram_hash(const struct unigram *u)
{
    return u->hash;
}

/* ---- opening ---- */

/* Relative to a folder: a tokenizer, a model in the diffusers layout, a Wan model in the official layout. */
static const char *const places[] = {
    "tokenizer.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer/tokenizer.json",
    "tokenizer/spiece.model",
    "google/umt5-xxl/tokenizer.json",
    "google/umt5-xxl/spiece.model",
};

static int find_in_folder(const char *path, struct str *file, struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        file->len = 0;
        str_addf(file, "%s/%s", path, places[i]);
        if (os_is_file(file->s))
            return 0;
    }
    cairn_fail(err, CAIRN_EIO, "%s: no tokenizer.json or spiece.model in this folder", path);
    return cairn_hint(err, "name the tokenizer's file, or the folder that holds it");
}

static bool is_json(const char *s, size_t n)
{
    size_t at = 0;
    while (at < n && memchr(" \t\r\n", s[at], 4))
        at++;
    return at < n && s[at] == '{';
}

int unigram_open(struct unigram **out, const char *path, struct cairn_error *err)
{
    CLEANUP(mem_free) char *bytes = NULL;
    CLEANUP(str_release) struct str file = { 0 };
    size_t n;
    if (os_is_folder(path)) {
        if (find_in_folder(path, &file, err))
            return -1;
    } else {
        str_add(&file, path);
    }
    if (file_read_whole(file.s, LARGEST_FILE, &bytes, &n, err))
        return -1;
    return is_json(bytes, n) ? unigram_parse_json(out, file.s, bytes, n, err)
                             : unigram_parse_model(out, file.s, bytes, n, err);
}

/* ---- encoding ---- */

void unigram_work_release(struct unigram_work *w)
{
    free(w->nodes);
}

/* The first byte of a character gives its size, as in both libraries. */
static size_t char_size(const char *s, size_t n)
{
    unsigned char b = (unsigned char)s[0];
    size_t size = b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    return size < n ? size : n;
}

/* Sums are floats in SentencePiece and doubles in `tokenizers`.  Of equal sums the earlier one stays. */
static void offer(const struct unigram *u, struct unigram_node *to, double score, size_t from, uint32_t id)
{
    if (!u->json)
        score = (double)(float)score;
    if (to->from == TRIE_NONE || score > to->score)
        *to = (struct unigram_node){ score, (uint32_t)from, id };
}

static double score_of(const struct unigram *u, uint32_t id, size_t n)
{
    if (u->kinds[id] != UNIGRAM_USER)
        return u->scores[id];
    float best = (float)n * u->spm.max_score;
    return (double)best - 0.1;
}

/* Offers all pieces that begin at a place. */
static void walk(const struct unigram *u, struct unigram_node *nodes, const char *s, size_t at, size_t n)
{
    double here = nodes[at].score;
    size_t size = char_size(s + at, n - at);
    bool has_character = false;
    uint32_t node = 0;
    for (size_t i = at; i < n && (node = trie_next(&u->trie, node, (unsigned char)s[i]));) {
        uint32_t id = u->trie.values[node];
        i++;
        if (id == TRIE_NONE || u->kinds[id] == UNIGRAM_UNUSED)
            continue;
        offer(u, &nodes[i], score_of(u, id, i - at) + here, at, id);
        has_character |= i - at == size;
    }
    if (!has_character)
        offer(u, &nodes[at + size], u->unknown_score + here, at, (uint32_t)u->unknown);
}

static int reserve_nodes(struct unigram_work *w, size_t n, struct cairn_error *err)
{
    if (n >= TRIE_NONE)
        return cairn_fail(err, CAIRN_EFORMAT, "a text of %zu bytes is too long to be one text", n);
    if (n > w->n_nodes) {
        struct unigram_node *nodes = realloc(w->nodes, n * sizeof(*nodes));
        if (!nodes)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory to encode %zu bytes of text", n);
        w->nodes = nodes;
        w->n_nodes = n;
    }
    return 0;
}

/* Turns the links from the end to the beginning around; returns the number of pieces.  Afterwards the last
 * nodes are the pieces in their order, and `from` is where a piece begins. */
static size_t line_up(struct unigram_node *nodes, size_t n)
{
    size_t count = 0;
    /* A piece has at least one byte, so what is still to be read is before the place that is written. */
    for (size_t end = n; end; count++) {
        nodes[n - count] = nodes[end];
        end = nodes[n - count].from;
    }
    return count;
}

/* A piece that is not in the vocabulary, or a run of them. */
static void add_unknown(const struct unigram *u, const char *s, size_t n, struct token_list *out)
{
    bool bytes = u->byte_fallback;
    for (size_t i = 0; i < n && bytes; i++)
        bytes = u->byte_ids[(unsigned char)s[i]] != TRIE_NONE;
    if (!bytes)
        out->ids[out->n++] = (uint32_t)u->unknown;
    for (size_t i = 0; i < n && bytes; i++)
        out->ids[out->n++] = u->byte_ids[(unsigned char)s[i]];
}

int unigram_encode_word(struct unigram_work *w, const char *s, size_t n, struct cairn_error *err)
{
    const struct unigram *u = w->u;
    if (reserve_nodes(w, n + 1, err) || token_list_reserve(w->out, n, err))
        return -1;
    struct unigram_node *nodes = w->nodes;
    for (size_t i = 0; i <= n; i++)
        nodes[i] = (struct unigram_node){ 0, TRIE_NONE, 0 };
    for (size_t at = 0; at < n; at += char_size(s + at, n - at))
        walk(u, nodes, s, at, n);
    for (size_t i = n + 1 - line_up(nodes, n); i <= n; i++) {
        size_t from = nodes[i].from;
        if ((int64_t)nodes[i].id != u->unknown && nodes[i].id != TRIE_NONE) {
            w->out->ids[w->out->n++] = nodes[i].id;
            continue;
        }
        if (u->unknown < 0)
            return cairn_fail(err, CAIRN_EFORMAT,
                              "the text has a character that the tokenizer does not know, "
                              "and the tokenizer has no token for the unknown");
        while (i < n && (int64_t)nodes[i + 1].id == u->unknown)
            i++;
        size_t to = i < n ? nodes[i + 1].from : n;
        /* `tokenizers` looks for the whole run once more. */
        uint32_t known = u->json ? trie_find(&u->trie, s + from, to - from) : TRIE_NONE;
        if (known != TRIE_NONE)
            w->out->ids[w->out->n++] = known;
        else
            add_unknown(u, s + from, to - from, w->out);
    }
    return 0;
}

int unigram_encode(const struct unigram *u, const char *text, size_t n, struct token_list *out,
                   struct cairn_error *err)
{
    CLEANUP(unigram_work_release) struct unigram_work w = { .u = u, .out = out };
    if (u->json)
        return unigram_hf_encode(&w, text, n, err);
    CLEANUP(str_release) struct str normalized = { 0 };
    unigram_spm_normalize(u, text, n, &normalized);
    return unigram_encode_word(&w, normalized.s, normalized.len, err);
}
