/* SPDX-License-Identifier: Apache-2.0 */
#include "host/kpack.h"

#include "chip/gfxname.h"
#include <string.h>

static const char magic[] = "KPAK";

enum {
    MAGIC = sizeof(magic) - 1,
    HEADER = 16,
    CHUNK = 16 * 1024,
    ITEMS_MAX = 1 << 20, /* values passed over on the way to the list */
};

/* Walks MessagePack in the file, a chunk at a time. */
struct walk {
    const struct binary *b;
    uint64_t at; /* of the next byte */
    uint64_t chunk_at;
    size_t chunk_len;
    size_t items;
    unsigned char *chunk;
};

enum kind { KIND_OTHER, KIND_TEXT, KIND_LIST, KIND_MAP };

/* One value without what is in it: `size` is the bytes of a text, or the number of values inside. */
struct item {
    enum kind kind;
    uint64_t size, body; /* body: bytes that follow, for KIND_OTHER and KIND_TEXT */
};

bool kpack_is(const void *p, size_t n)
{
    return n >= MAGIC && !memcmp(p, magic, MAGIC);
}

static int bad(const struct walk *w, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: the table of contents is damaged", w->b->path);
}

static int take(struct walk *w, void *buf, size_t n, struct cairn_error *err)
{
    if (w->at < w->chunk_at || w->at - w->chunk_at > w->chunk_len ||
        w->chunk_len - (w->at - w->chunk_at) < n) {
        w->chunk_at = w->at;
        if (binary_read_some(w->b, w->at, w->b->size, w->chunk, CHUNK, &w->chunk_len, err))
            return -1;
        if (w->chunk_len < n)
            return bad(w, err);
    }
    memcpy(buf, w->chunk + (w->at - w->chunk_at), n);
    w->at += n;
    return 0;
}

/* The forms of MessagePack whose first byte says all but the length; the length is big-endian.
 * https://github.com/msgpack/msgpack/blob/master/spec.md */
static const struct form {
    unsigned char first, last;
    enum kind kind;
    unsigned char length_bytes; /* of the length field */
    unsigned char extra;        /* bytes beside the length's */
} forms[] = {
    { 0xc0, 0xc3, KIND_OTHER, 0, 0 },  { 0xc4, 0xc4, KIND_OTHER, 1, 0 }, { 0xc5, 0xc5, KIND_OTHER, 2, 0 },
    { 0xc6, 0xc6, KIND_OTHER, 4, 0 },  { 0xc7, 0xc7, KIND_OTHER, 1, 1 }, { 0xc8, 0xc8, KIND_OTHER, 2, 1 },
    { 0xc9, 0xc9, KIND_OTHER, 4, 1 },  { 0xca, 0xca, KIND_OTHER, 0, 4 }, { 0xcb, 0xcb, KIND_OTHER, 0, 8 },
    { 0xcc, 0xcc, KIND_OTHER, 0, 1 },  { 0xcd, 0xcd, KIND_OTHER, 0, 2 }, { 0xce, 0xce, KIND_OTHER, 0, 4 },
    { 0xcf, 0xcf, KIND_OTHER, 0, 8 },  { 0xd0, 0xd0, KIND_OTHER, 0, 1 }, { 0xd1, 0xd1, KIND_OTHER, 0, 2 },
    { 0xd2, 0xd2, KIND_OTHER, 0, 4 },  { 0xd3, 0xd3, KIND_OTHER, 0, 8 }, { 0xd4, 0xd4, KIND_OTHER, 0, 2 },
    { 0xd5, 0xd5, KIND_OTHER, 0, 3 },  { 0xd6, 0xd6, KIND_OTHER, 0, 5 }, { 0xd7, 0xd7, KIND_OTHER, 0, 9 },
    { 0xd8, 0xd8, KIND_OTHER, 0, 17 }, { 0xd9, 0xd9, KIND_TEXT, 1, 0 },  { 0xda, 0xda, KIND_TEXT, 2, 0 },
    { 0xdb, 0xdb, KIND_TEXT, 4, 0 },   { 0xdc, 0xdc, KIND_LIST, 2, 0 },  { 0xdd, 0xdd, KIND_LIST, 4, 0 },
    { 0xde, 0xde, KIND_MAP, 2, 0 },    { 0xdf, 0xdf, KIND_MAP, 4, 0 },   { 0xe0, 0xff, KIND_OTHER, 0, 0 },
};

static int take_form(struct walk *w, const struct form *f, struct item *out, struct cairn_error *err)
{
    unsigned char length[4];
    uint64_t n = 0;
    if (take(w, length, f->length_bytes, err))
        return -1;
    for (unsigned i = 0; i < f->length_bytes; i++)
        n = n << 8 | length[i];
    bool has_body = f->kind == KIND_OTHER || f->kind == KIND_TEXT;
    *out = (struct item){ f->kind, n, has_body ? n + f->extra : 0 };
    return 0;
}

static int take_item(struct walk *w, struct item *out, struct cairn_error *err)
{
    unsigned char c = 0;
    if (++w->items > ITEMS_MAX)
        return bad(w, err);
    if (take(w, &c, 1, err))
        return -1;
    if (c < 0x80)
        *out = (struct item){ KIND_OTHER, 0, 0 };
    else if (c < 0x90)
        *out = (struct item){ KIND_MAP, c & 15, 0 };
    else if (c < 0xa0)
        *out = (struct item){ KIND_LIST, c & 15, 0 };
    else if (c < 0xc0)
        *out = (struct item){ KIND_TEXT, c & 31, c & 31 };
    else
        for (size_t i = 0; i < ARRAY_LEN(forms); i++)
            if (c >= forms[i].first && c <= forms[i].last)
                return take_form(w, &forms[i], out, err);
    return 0;
}

/* Passes over what is in an item; a count instead of recursion, so that depth costs nothing. */
static int skip_inside(struct walk *w, struct item it, struct cairn_error *err)
{
    uint64_t left = 0;
    for (;;) {
        if (it.body > w->b->size)
            return bad(w, err);
        w->at += it.body;
        left += it.kind == KIND_LIST ? it.size : it.kind == KIND_MAP ? it.size * 2 : 0;
        if (!left--)
            return 0;
        if (take_item(w, &it, err))
            return -1;
    }
}

static int take_targets(struct walk *w, struct arena *a, struct targets *t, struct cairn_error *err)
{
    struct item list, it;
    char name[64];
    if (take_item(w, &list, err))
        return -1;
    if (list.kind != KIND_LIST)
        return bad(w, err);
    for (uint64_t i = 0; i < list.size; i++) {
        if (take_item(w, &it, err))
            return -1;
        if (it.kind != KIND_TEXT || it.size > sizeof(name))
            return bad(w, err);
        if (take(w, name, (size_t)it.size, err))
            return -1;
        size_t len = gfxname_span(name, (size_t)it.size);
        if (len)
            targets_add(t, a, name, len);
    }
    return 0;
}

static int take_key(struct walk *w, bool *is_targets, struct cairn_error *err)
{
    static const char key[] = "gfx_arches";
    struct item it;
    char name[sizeof(key) - 1];
    if (take_item(w, &it, err))
        return -1;
    *is_targets = false;
    if (it.kind != KIND_TEXT || it.size != sizeof(name))
        return skip_inside(w, it, err);
    if (take(w, name, sizeof(name), err))
        return -1;
    *is_targets = !memcmp(name, key, sizeof(name));
    return 0;
}

int kpack_read(const struct binary *b, struct arena *a, struct targets *out, struct cairn_error *err)
{
    unsigned char h[HEADER];
    if (binary_read(b, 0, h, sizeof(h), err))
        return -1;
    if (!kpack_is(h, sizeof(h)) || le32(h + 4) != 1)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: not a kpack archive of version 1", b->path);
    unsigned char chunk[CHUNK];
    struct walk w = { .b = b, .at = le64(h + 8), .chunk = chunk };
    struct item top;
    if (w.at < HEADER || w.at >= b->size)
        return bad(&w, err);
    if (take_item(&w, &top, err))
        return -1;
    struct targets t = { .from = b->path };
    for (uint64_t i = 0; top.kind == KIND_MAP && i < top.size; i++) {
        struct item value;
        bool is_targets;
        if (take_key(&w, &is_targets, err))
            return -1;
        if (is_targets) {
            if (take_targets(&w, a, &t, err))
                return -1;
            *out = t;
            return 0;
        }
        if (take_item(&w, &value, err) || skip_inside(&w, value, err))
            return -1;
    }
    return cairn_fail(err, CAIRN_EFORMAT, "%s: the table of contents has no list of targets", b->path);
}
