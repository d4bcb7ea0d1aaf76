/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include "base/file.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    const char *name, *text;
    size_t len;
    struct arena *arena;
    struct cairn_error *err;
    size_t nodes;
    struct yaml_node *root;
    size_t depth;
    struct level {
        struct yaml_node *node, **tail;
        struct yaml_node *key; /* waits for its value */
    } open[YAML_MOST_DEPTH];
};

static int fail_at(struct reader *r, yaml_mark_t at, const char *what)
{
    return cairn_fail(r->err, CAIRN_EFORMAT, "%s:%zu:%zu: %s", r->name, at.line + 1, at.column + 1, what);
}

/* The library reports only the offset of an invalid byte. */
static int fail_byte(struct reader *r, const char *problem, size_t offset)
{
    yaml_mark_t at = { 0 };
    for (size_t i = 0; i < offset && i < r->len; i++) {
        bool line = r->text[i] == '\n';
        at.line += line;
        at.column = line ? 0 : at.column + ((r->text[i] & 0xc0) != 0x80);
    }
    return fail_at(r, at, problem);
}

/* 0 at the end. */
static char char_at(const struct reader *r, yaml_mark_t at)
{
    const char *s = r->text, *end = s + r->len;
    for (size_t lines = at.line; s < end && lines; s++)
        lines -= *s == '\n';
    for (size_t left = at.column; s < end && (left || (*s & 0xc0) == 0x80); s++)
        left -= (*s & 0xc0) != 0x80;
    return s < end ? *s : '\0';
}

static int fail_parser(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_MEMORY_ERROR)
        return cairn_fail(r->err, CAIRN_ENOMEM, "%s: out of memory", r->name);
    if (p->error == YAML_READER_ERROR)
        return fail_byte(r, problem, p->problem_offset);
    if (!p->context)
        return fail_at(r, p->problem_mark, problem);
    if (char_at(r, p->problem_mark) == '\t')
        return fail_at(r, p->problem_mark, "a tab, where YAML allows only spaces");
    return cairn_fail(r->err, CAIRN_EFORMAT, "%s:%zu:%zu: %s %s", r->name, p->problem_mark.line + 1,
                      p->problem_mark.column + 1, problem, p->context);
}

static const struct yaml_node *member(const struct yaml_node *map, const char *key)
{
    for (const struct yaml_node *n = map->first; n; n = n->next)
        if (!strcmp(n->key->text, key))
            return n;
    return NULL;
}

static int take_key(struct reader *r, struct level *l, struct yaml_node *n, yaml_mark_t at)
{
    if (n->kind != YAML_SCALAR)
        return fail_at(r, at, "a key must be a scalar, not a list or a map");
    if (n->style == YAML_PLAIN && !strcmp(n->text, "<<"))
        return fail_at(r, at, "merge keys (<<) are not supported; write the keys out");
    const struct yaml_node *twin = member(l->node, n->text);
    if (twin)
        return cairn_fail(r->err, CAIRN_EFORMAT, "%s:%zu:%zu: duplicate key %s, first in line %d", r->name,
                          at.line + 1, at.column + 1, n->text, twin->key->line);
    l->key = n;
    return 0;
}

/* Adds a node at the current position of the document. */
static int place(struct reader *r, struct yaml_node *n, yaml_mark_t at)
{
    if (!r->depth) {
        r->root = n;
        return 0;
    }
    struct level *l = &r->open[r->depth - 1];
    if (l->node->kind == YAML_MAP && !l->key)
        return take_key(r, l, n, at);
    n->key = l->key;
    l->key = NULL;
    *l->tail = n;
    l->tail = &n->next;
    return 0;
}

static int new_node(struct reader *r, enum yaml_kind kind, const yaml_event_t *e, const void *anchor,
                    const void *tag, struct yaml_node **out)
{
    if (anchor)
        return fail_at(r, e->start_mark, "anchors (&) are not supported; write the value out");
    if (tag)
        return fail_at(r, e->start_mark, "tags (!) are not supported");
    if (++r->nodes > YAML_MOST_NODES)
        return fail_at(r, e->start_mark, "too many values");
    struct yaml_node *n = ARENA_NEW(r->arena, struct yaml_node, 1);
    n->kind = kind;
    n->line = (int)e->start_mark.line + 1;
    n->column = (int)e->start_mark.column + 1;
    *out = n;
    return 0;
}

static int take_scalar(struct reader *r, const yaml_event_t *e)
{
    struct yaml_node *n;
    const char *text = (const char *)e->data.scalar.value;
    yaml_scalar_style_t style = e->data.scalar.style;
    if (new_node(r, YAML_SCALAR, e, e->data.scalar.anchor, e->data.scalar.tag, &n))
        return -1;
    if (strlen(text) != e->data.scalar.length)
        return fail_at(r, e->start_mark, "a string contains a NUL");
    n->text = arena_strdup(r->arena, text);
    n->style = style == YAML_PLAIN_SCALAR_STYLE                                          ? YAML_PLAIN
               : style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE ? YAML_BLOCK
                                                                                         : YAML_QUOTED;
    return place(r, n, e->start_mark);
}

static int take_open(struct reader *r, enum yaml_kind kind, const yaml_event_t *e, const void *anchor,
                     const void *tag)
{
    struct yaml_node *n;
    if (new_node(r, kind, e, anchor, tag, &n) || place(r, n, e->start_mark))
        return -1;
    if (r->depth == YAML_MOST_DEPTH)
        return fail_at(r, e->start_mark, "nested too deeply");
    r->open[r->depth++] = (struct level){ .node = n, .tail = &n->first };
    return 0;
}

static int take_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return take_open(r, YAML_LIST, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return take_open(r, YAML_MAP, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return 0;
    case YAML_ALIAS_EVENT:
        return fail_at(r, e->start_mark, "aliases (*) are not supported; write the value out");
    case YAML_DOCUMENT_START_EVENT:
        return r->root ? fail_at(r, e->start_mark, "a second document; only one is allowed") : 0;
    default:
        return 0;
    }
}

static int read_events(struct reader *r)
{
    for (bool more = true; more;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&r->parser, &e))
            return fail_parser(r);
        int failed = take_event(r, &e);
        more = e.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (failed)
            return -1;
    }
    if (!r->root) { /* no document at all */
        r->root = ARENA_NEW(r->arena, struct yaml_node, 1);
        *r->root = (struct yaml_node){ .kind = YAML_SCALAR, .text = "", .line = 1, .column = 1 };
    }
    return 0;
}

int yaml_parse(const char *name, const char *text, size_t len, struct arena *arena, struct yaml_node **out,
               struct cairn_error *err)
{
    struct reader r = { .name = name, .text = text, .len = len, .arena = arena, .err = err };
    if (len > YAML_MOST_BYTES)
        return file_settings_too_large(name, err);
    if (!yaml_parser_initialize(&r.parser))
        return cairn_fail(err, CAIRN_ENOMEM, "%s: out of memory", name);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int failed = read_events(&r);
    yaml_parser_delete(&r.parser);
    if (!failed)
        *out = r.root;
    return failed;
}

int yaml_read(const char *path, struct arena *arena, struct yaml_node **out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    return file_read_settings(path, &text, &n, err) ? -1 : yaml_parse(path, text, n, arena, out, err);
}

bool yaml_is_null(const struct yaml_node *n)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };
    if (n->kind != YAML_SCALAR || n->style != YAML_PLAIN)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(n->text, words[i]))
            return true;
    return false;
}

/* Reads one character of valid UTF-8; returns its length. */
static size_t next_point(const char *s, uint32_t *out)
{
    const unsigned char *b = (const unsigned char *)s;
    size_t n = *b < 0x80 ? 1 : *b < 0xe0 ? 2 : *b < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? *b : *b & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (b[i] & 0x3f);
    *out = c;
    return n;
}

/* Characters that need no escape in YAML; the two separators would be folded like line feeds. */
static bool is_printable(uint32_t c)
{
    if (c < 0x80)
        return c >= 0x20 && c != 0x7f;
    return c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

void yaml_add_quoted(struct str *out, const char *text)
{
    uint32_t c;
    str_add(out, "\"");
    for (size_t n; *text; text += n) {
        n = next_point(text, &c);
        if (c == '\n')
            str_add(out, "\\n");
        else if (c == '\t')
            str_add(out, "\\t");
        else if (c == '"' || c == '\\')
            str_addf(out, "\\%c", (char)c);
        else if (is_printable(c))
            str_addn(out, text, n);
        else
            str_addf(out, "\\u%04x", (unsigned)c);
    }
    str_add(out, "\"");
}
