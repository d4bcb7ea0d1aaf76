/* SPDX-License-Identifier: Apache-2.0
 * Reads a SentencePiece model: a ModelProto in the encoding of protocol buffers, of which only the fields
 * matter that change ids. */
#include "text/unigram.h"

#include "text/tokenizer_error.h"
#include "text/unigram_parts.h"
#include <float.h>
#include <string.h>

/* ---- protocol buffers ---- */

struct message {
    const unsigned char *p, *end;
};

struct field {
    uint64_t number;
    int wire;
    uint64_t value;      /* of a varint or four bytes */
    struct message text; /* of a text, a message */
};

static bool read_varint(struct message *m, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && m->p < m->end; shift += 7) {
        unsigned char b = *m->p++;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct message *m, size_t n, uint64_t *out)
{
    if ((size_t)(m->end - m->p) < n)
        return false;
    *out = 0;
    for (size_t i = n; i--;)
        *out = *out << 8 | m->p[i];
    m->p += n;
    return true;
}

/* False if the bytes are no message; call it while m->p < m->end. */
static bool read_field(struct message *m, struct field *f)
{
    uint64_t key;
    if (!read_varint(m, &key) || key >> 3 == 0)
        return false;
    *f = (struct field){ .number = key >> 3, .wire = (int)(key & 7) };
    if (f->wire == 0)
        return read_varint(m, &f->value);
    if (f->wire == 1)
        return read_fixed(m, 8, &f->value);
    if (f->wire == 5)
        return read_fixed(m, 4, &f->value);
    if (f->wire != 2 || !read_varint(m, &f->value) || f->value > (uint64_t)(m->end - m->p))
        return false;
    f->text = (struct message){ m->p, m->p + f->value };
    m->p = f->text.end;
    return true;
}

static bool is_field(const struct field *f, uint64_t number, int wire)
{
    return f->number == number && f->wire == wire;
}

/* ---- the model ---- */

struct reader {
    const char *name;
    struct unigram *u;
    struct message end_piece; /* the name of </s> */
    struct message charsmap;
    struct cairn_error *err;
    size_t n; /* pieces so far */
    float min_score;
    bool byte_found[256];
};

static int refuse_bytes(struct reader *r)
{
    return tokenizer_refuse(r->err, r->name, "not a SentencePiece model, or a damaged one");
}

static int read_trainer(struct reader *r, struct message m)
{
    static const char *const types[] = { "?", "unigram", "BPE", "word", "char" };
    struct field f;
    while (m.p < m.end) {
        if (!read_field(&m, &f))
            return refuse_bytes(r);
        if (is_field(&f, 3, 0) && f.value > 1 && f.value < ARRAY_LEN(types))
            return tokenizer_refuse(r->err, r->name, "the model type is %s, but only unigram is supported",
                                    types[f.value]);
        if (is_field(&f, 24, 0))
            r->u->spm.space_is_suffix = f.value;
        if (is_field(&f, 35, 0))
            r->u->byte_fallback = f.value;
        if (is_field(&f, 47, 2) && f.value)
            r->end_piece = f.text;
    }
    return 0;
}

static int read_normalizer(struct reader *r, struct message m)
{
    struct unigram_spm *s = &r->u->spm;
    struct field f;
    while (m.p < m.end) {
        if (!read_field(&m, &f))
            return refuse_bytes(r);
        if (is_field(&f, 2, 2))
            r->charsmap = f.text;
        if (is_field(&f, 3, 0))
            s->dummy_prefix = f.value;
        if (is_field(&f, 4, 0))
            s->remove_extra_spaces = f.value;
        if (is_field(&f, 5, 0))
            s->escape_spaces = f.value;
    }
    return 0;
}

static int hex_digit(uint8_t c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The byte that "<0x1F>" stands for; -1 for any other text. */
static int byte_of(struct message text)
{
    if (text.end - text.p != 6 || memcmp(text.p, "<0x", 3) != 0 || text.p[5] != '>')
        return -1;
    int high = hex_digit((uint8_t)text.p[3]), low = hex_digit((uint8_t)text.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static int put_piece(struct reader *r, struct message text, float score, enum unigram_kind kind)
{
    struct unigram *u = r->u;
    const char *s = (const char *)text.p;
    uint32_t id = (uint32_t)r->n++, before = TRIE_NONE;
    size_t n = (size_t)(text.end - text.p);
    u->kinds[id] = (uint8_t)kind;
    u->scores[id] = (double)score;
    if (!n || memchr(s, '\0', n))
        return tokenizer_refuse(r->err, r->name, "piece %u is empty or contains a NUL", id);
    if (kind == UNIGRAM_NORMAL && score < r->min_score)
        r->min_score = score;
    if (kind == UNIGRAM_NORMAL && u->spm.max_score < score)
        u->spm.max_score = score;
    if (kind == UNIGRAM_USER && trie_put(&u->spm.user, s, n, id, &before, r->err))
        return -1;
    if ((kind == UNIGRAM_NORMAL || kind == UNIGRAM_USER || kind == UNIGRAM_UNUSED) &&
        trie_put(&u->trie, s, n, id, &before, r->err))
        return -1;
    if (before != TRIE_NONE)
        return tokenizer_refuse(r->err, r->name, "pieces %u and %u are the same", before, id);
    if (kind == UNIGRAM_UNKNOWN) {
        if (u->unknown >= 0)
            return tokenizer_refuse(r->err, r->name, "pieces %u and %u both stand for the unknown",
                                    (unsigned)u->unknown, id);
        u->unknown = id;
    }
    if (kind == UNIGRAM_BYTE) {
        int byte = byte_of(text);
        if (byte < 0 || !u->byte_fallback)
            return tokenizer_refuse(r->err, r->name, "piece %u is a byte, but %s", id,
                                    byte < 0 ? "its name is not that of one"
                                             : "the model has no byte_fallback");
        r->byte_found[byte] = true;
        u->byte_ids[byte] = id;
    }
    if (kind == UNIGRAM_CONTROL && n == (size_t)(r->end_piece.end - r->end_piece.p) &&
        !memcmp(s, r->end_piece.p, n))
        u->end = id;
    return 0;
}

static int read_piece(struct reader *r, struct message m)
{
    struct message text = { m.p, m.p };
    struct field f;
    float score = 0;
    enum unigram_kind kind = UNIGRAM_NORMAL;
    while (m.p < m.end) {
        if (!read_field(&m, &f))
            return refuse_bytes(r);
        if (is_field(&f, 1, 2))
            text = f.text;
        if (is_field(&f, 2, 5))
            memcpy(&score, &(uint32_t){ (uint32_t)f.value }, sizeof(score));
        if (is_field(&f, 3, 0) && f.value >= UNIGRAM_NORMAL && f.value <= UNIGRAM_BYTE)
            kind = (enum unigram_kind)f.value;
    }
    return put_piece(r, text, score, kind);
}

/* The specifications first: the pieces are read by them. */
static int read_specs(struct reader *r, struct message m, size_t *pieces)
{
    struct field f;
    while (m.p < m.end) {
        if (!read_field(&m, &f))
            return refuse_bytes(r);
        *pieces += is_field(&f, 1, 2);
        if (!r->u)
            continue;
        if ((is_field(&f, 2, 2) && read_trainer(r, f.text)) ||
            (is_field(&f, 3, 2) && read_normalizer(r, f.text)))
            return -1;
    }
    return 0;
}

static int read_all(struct reader *r, struct message m)
{
    struct unigram *u = r->u;
    size_t pieces = 0;
    struct field f;
    if (read_specs(r, m, &pieces))
        return -1;
    while (m.p < m.end)
        if (!read_field(&m, &f) || (is_field(&f, 1, 2) && read_piece(r, f.text)))
            return -1;
    if (u->unknown < 0)
        return tokenizer_refuse(r->err, r->name, "the model has no piece for the unknown");
    for (int b = 0; b < 256 && u->byte_fallback; b++)
        if (!r->byte_found[b])
            return tokenizer_refuse(r->err, r->name,
                                    "the model has byte_fallback, but no piece for byte 0x%02x", b);
    if (r->charsmap.p < r->charsmap.end &&
        charsmap_parse(&u->spm.map, r->charsmap.p, (size_t)(r->charsmap.end - r->charsmap.p), r->err))
        return cairn_wrap(r->err, "%s", r->name);
    u->unknown_score = (double)(r->min_score - 10.0f);
    return 0;
}

int unigram_parse_model(struct unigram **out, const char *name, const void *bytes, size_t n,
                        struct cairn_error *err)
{
    static const char end_piece[] = "</s>";
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    struct reader r = { .name = name, .err = err, .min_score = FLT_MAX };
    struct message m = { bytes, bytes };
    if (n)
        m.end += n;
    size_t pieces = 0;
    r.end_piece.p = (const unsigned char *)end_piece;
    r.end_piece.end = r.end_piece.p + strlen(end_piece);
    if (read_specs(&r, m, &pieces))
        return -1;
    if (!pieces)
        return refuse_bytes(&r);
    if (unigram_new(&u, pieces, err))
        return cairn_wrap(err, "%s", name);
    u->spm.dummy_prefix = u->spm.remove_extra_spaces = u->spm.escape_spaces = true;
    u->spm.max_score = FLT_MIN;
    r.u = u;
    if (read_all(&r, m))
        return -1;
    unigram_identify(u, "sentencepiece", bytes, n);
    *out = TAKE(u);
    return 0;
}
