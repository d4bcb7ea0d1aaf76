/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of text per work item of a thread. */
enum { PIECE = 256 << 10 };

uint32_t tokenizer_vocab(const struct tokenizer *t)
{
    return t->vocab;
}

bool tokenizer_has(const struct tokenizer *t, uint32_t id)
{
    return id < t->vocab && t->tokens[id].n;
}

int64_t tokenizer_end_of_text(const struct tokenizer *t)
{
    return t->end_of_text;
}

const uint64_t *tokenizer_hash(const struct tokenizer *t)
{
    return t->hash;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    bpe_release(&t->bpe);
    free(t->tokens);
    free(t->words);
    free(t->added);
    str_release(&t->text);
    str_release(&t->json);
    free(t);
}

void tokenizer_cleanup(struct tokenizer **t)
{
    tokenizer_free(*t);
}

int tokenizer_save(const struct tokenizer *t, const char *path, struct cairn_error *err)
{
    return file_write(path, t->json.s, t->json.len, err);
}

/* ---- per thread: a cache, since most words of a text repeat ---- */

enum { MEMORY = 1 << 14, WORD_BYTES = 22, WORD_IDS = 10 };

struct seen {
    uint8_t n, n_ids; /* n 0: free */
    char word[WORD_BYTES];
    uint32_t ids[WORD_IDS];
};

struct encoder {
    const struct tokenizer *t;
    struct encoder *next; /* idle ones */
    struct token_list *out;
    struct seen seen[MEMORY];
};

static const char *text_of(const struct tokenizer *t, uint32_t id)
{
    return t->text.s + t->tokens[id].at;
}

static uint32_t find_word(const struct tokenizer *t, const char *word, size_t n)
{
    for (size_t at = hash_bytes(word, n);; at++) {
        uint32_t id = t->words[at & t->words_mask];
        if (id == BPE_NONE || (t->tokens[id].n == n && !memcmp(text_of(t, id), word, n)))
            return id;
    }
}

static int encode_new(struct encoder *e, const char *word, size_t n, struct cairn_error *err)
{
    uint32_t id = e->t->whole_words ? find_word(e->t, word, n) : BPE_NONE;
    if (id == BPE_NONE)
        return bpe_encode(&e->t->bpe, word, n, e->out, err);
    if (token_list_reserve(e->out, 1, err))
        return -1;
    e->out->ids[e->out->n++] = id;
    return 0;
}

static int encode_word(struct encoder *e, const char *word, size_t n, struct cairn_error *err)
{
    struct token_list *out = e->out;
    if (n > WORD_BYTES)
        return encode_new(e, word, n, err);
    struct seen *s = &e->seen[hash_bytes(word, n) % MEMORY];
    if (s->n == n && !memcmp(s->word, word, n)) {
        if (token_list_reserve(out, WORD_IDS, err))
            return -1;
        memcpy(out->ids + out->n, s->ids, sizeof(s->ids)); /* copying all is faster: the size is constant */
        out->n += s->n_ids;
        return 0;
    }
    size_t before = out->n;
    if (encode_new(e, word, n, err))
        return -1;
    size_t made = out->n - before;
    if (made > WORD_IDS)
        return 0;
    s->n = (uint8_t)n;
    s->n_ids = (uint8_t)made;
    memcpy(s->word, word, n);
    memcpy(s->ids, out->ids + before, made * sizeof(*s->ids));
    return 0;
}

/* Each step splits the pieces of the previous one. */
static int encode_steps(struct encoder *e, int step, const char *s, size_t n, struct cairn_error *err)
{
    if (step == TOKENIZER_STEPS || step == e->t->n_steps)
        return n ? encode_word(e, s, n, err) : 0;
    for (size_t at = 0; at < n;) {
        size_t size = split_next(e->t->steps[step], s + at, n - at);
        if (encode_steps(e, step + 1, s + at, size, err))
            return -1;
        at += size;
    }
    return 0;
}

static int check_nfc(const char *s, size_t n, struct cairn_error *err)
{
    size_t stable = unicode_nfc_span(s, n);
    uint32_t c;
    if (stable == n)
        return 0;
    unicode_next(s + stable, n - stable, &c);
    cairn_fail(err, CAIRN_EFORMAT, "the tokenizer needs text in NFC, but U+%04X may have to be composed", c);
    return cairn_hint(err, "normalize the file first: uconv -x nfc, or unicodedata.normalize in Python");
}

/* Encodes text that has no added tokens. */
static int encode_plain(struct encoder *e, const char *s, size_t n, bool begins, struct cairn_error *err)
{
    if (!n)
        return 0;
    if (e->t->nfc && check_nfc(s, n, err))
        return -1;
    if (!e->t->prefix_space || !begins || s[0] == ' ')
        return encode_steps(e, 0, s, n, err);
    CLEANUP(mem_free) char *longer = malloc(n + 1);
    if (!longer)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes of text", n + 1);
    longer[0] = ' ';
    memcpy(longer + 1, s, n);
    return encode_steps(e, 0, longer, n + 1, err);
}

/* The longest added token at s. */
static const struct added_token *added_at(const struct tokenizer *t, bool normalized, const char *s, size_t n)
{
    for (size_t i = 0; i < t->n_added; i++) {
        const struct added_token *a = &t->added[i];
        size_t size = t->tokens[a->id].n;
        if (a->normalized == normalized && size <= n && !memcmp(s, text_of(t, a->id), size))
            return a;
    }
    return NULL;
}

/* Pass 0 finds added tokens in the raw text, pass 1 those marked as normalized. */
static int encode_pass(struct encoder *e, int pass, const char *s, size_t n, bool begins,
                       struct cairn_error *err)
{
    while (pass < 2 && !e->t->added_any[pass])
        pass++;
    if (pass == 2)
        return encode_plain(e, s, n, begins, err);
    const bool *begin = e->t->added_begin[pass];
    size_t from = 0;
    for (size_t at = 0; at < n;) {
        while (at < n && !begin[(unsigned char)s[at]])
            at++;
        const struct added_token *a = at < n ? added_at(e->t, pass == 1, s + at, n - at) : NULL;
        if (!a) {
            at++;
            continue;
        }
        if (encode_pass(e, pass + 1, s + from, at - from, begins || from, err) ||
            token_list_reserve(e->out, 1, err))
            return -1;
        e->out->ids[e->out->n++] = a->id;
        from = at += e->t->tokens[a->id].n;
    }
    return encode_pass(e, pass + 1, s + from, n - from, begins || from, err);
}

static int encode_bytes(const char *s, size_t n, struct token_list *out, struct cairn_error *err)
{
    if (token_list_reserve(out, n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        out->ids[out->n + i] = (unsigned char)s[i];
    out->n += n;
    return 0;
}

static int encode_piece(struct encoder *e, const struct tokenizer_piece *p, struct token_list *out,
                        struct cairn_error *err)
{
    const struct tokenizer *t = e->t;
    e->out = out;
    if (t->bytes ? encode_bytes(p->text, p->n, out, err) : encode_pass(e, 0, p->text, p->n, p->begins, err))
        return -1;
    if (!p->ends || t->end_of_text < 0)
        return 0;
    if (token_list_reserve(out, 1, err))
        return -1;
    out->ids[out->n++] = (uint32_t)t->end_of_text;
    return 0;
}

/* ---- all threads ---- */

struct job {
    const struct tokenizer *t;
    const struct tokenizer_piece *pieces;
    struct token_list *lists; /* one per piece */
    struct encoder *idle;
    pthread_mutex_t lock;
};

static struct encoder *take_encoder(struct job *j, struct cairn_error *err)
{
    pthread_mutex_lock(&j->lock);
    struct encoder *e = j->idle;
    if (e)
        j->idle = e->next;
    pthread_mutex_unlock(&j->lock);
    if (!e && !(e = calloc(1, sizeof(*e))))
        cairn_fail(err, CAIRN_ENOMEM, "no memory to encode text");
    if (e)
        e->t = j->t;
    return e;
}

static void give_encoder(struct job *j, struct encoder *e)
{
    pthread_mutex_lock(&j->lock);
    e->next = j->idle;
    j->idle = e;
    pthread_mutex_unlock(&j->lock);
}

static int work(void *context, size_t piece, struct cairn_error *err)
{
    struct job *j = context;
    struct encoder *e = take_encoder(j, err);
    if (!e)
        return -1;
    int r = encode_piece(e, &j->pieces[piece], &j->lists[piece], err);
    give_encoder(j, e);
    return r;
}

static int join(struct job *j, size_t n, struct token_list *out, struct cairn_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += j->lists[i].n;
    if (token_list_reserve(out, total, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (j->lists[i].n)
            memcpy(out->ids + out->n, j->lists[i].ids, j->lists[i].n * sizeof(*out->ids));
        out->n += j->lists[i].n;
        token_list_release(&j->lists[i]);
    }
    return 0;
}

static void job_release(struct job *j, size_t n)
{
    while (j->idle) {
        struct encoder *e = j->idle;
        j->idle = e->next;
        free(e);
    }
    for (size_t i = 0; j->lists && i < n; i++)
        token_list_release(&j->lists[i]);
    free(j->lists);
}

int tokenizer_encode_pieces(const struct tokenizer *t, const struct tokenizer_piece *pieces, size_t n,
                            struct token_list *out, struct cairn_error *err)
{
    struct job j = { .t = t, .pieces = pieces, .lock = PTHREAD_MUTEX_INITIALIZER };
    j.lists = calloc(n + 1, sizeof(*j.lists));
    int r = !j.lists                            ? cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu pieces", n)
            : parallel_for(n, 0, work, &j, err) ? -1
                                                : join(&j, n, out, err);
    job_release(&j, n);
    return r;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, struct token_list *out,
                     struct cairn_error *err)
{
    size_t most = n / PIECE + 1, count = 0;
    CLEANUP(mem_free) struct tokenizer_piece *pieces = calloc(most, sizeof(*pieces));
    if (!pieces)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu pieces", most);
    for (size_t at = 0; at < n; count++) {
        size_t size = n - at;
        if (size > PIECE && t->n_steps && count + 1 < most) {
            size_t cut = split_cut(text + at, PIECE);
            size = cut ? cut : size;
        }
        pieces[count] = (struct tokenizer_piece){ text + at, size, at == 0, false };
        at += size;
    }
    return tokenizer_encode_pieces(t, pieces, count, out, err);
}

int tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct str *out,
                     struct cairn_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!tokenizer_has(t, ids[i]))
            return cairn_fail(err, CAIRN_EFORMAT, "token %zu: the tokenizer has no id %u", i, ids[i]);
        str_addn(out, text_of(t, ids[i]), t->tokens[ids[i]].n);
    }
    return 0;
}
