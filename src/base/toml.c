/* SPDX-License-Identifier: Apache-2.0 */
#include "base/toml.h"

#include "base/file.h"
#include <ctype.h>
#include <string.h>

struct reader {
    const char *name, *start, *at, *end;
    struct arena *arena;
    struct cairn_error *err;
    size_t nodes;
    int depth;
    const char *counted; /* lines and columns are counted up to here */
    int line, column;
};

static int fail_at(struct reader *r, const char *at, const char *what)
{
    int line = 1, column = 1;
    for (const char *p = r->start; p < at; p++) {
        line += *p == '\n';
        column = *p == '\n' ? 1 : column + ((*p & 0xc0) != 0x80);
    }
    return cairn_fail(r->err, CAIRN_EFORMAT, "%s:%d:%d: %s", r->name, line, column, what);
}

static int fail(struct reader *r, const char *what)
{
    return fail_at(r, r->at, what);
}

static char peek(const struct reader *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static bool looking_at(const struct reader *r, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && !memcmp(r->at, text, n);
}

static struct yaml_node *new_node(struct reader *r, enum yaml_kind kind, const char *at)
{
    if (++r->nodes > YAML_MOST_NODES)
        return fail_at(r, at, "too many values"), NULL;
    struct yaml_node *n = ARENA_NEW(r->arena, struct yaml_node, 1);
    for (; r->counted < at; r->counted++) {
        r->line += *r->counted == '\n';
        r->column = *r->counted == '\n' ? 1 : r->column + ((*r->counted & 0xc0) != 0x80);
    }
    *n = (struct yaml_node){ .kind = kind, .line = r->line, .column = r->column };
    return n;
}

static void skip_blank(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

static void skip_comment(struct reader *r)
{
    if (peek(r) == '#')
        while (r->at < r->end && *r->at != '\n')
            r->at++;
}

/* Skips line ends too, as inside an array. */
static void skip_space(struct reader *r)
{
    for (;;) {
        skip_blank(r);
        skip_comment(r);
        if (peek(r) != '\n' && peek(r) != '\r')
            return;
        r->at++;
    }
}

static struct yaml_node *member(const struct yaml_node *map, const char *key)
{
    for (struct yaml_node *n = map->first; n; n = n->next)
        if (!strcmp(n->key->text, key))
            return n;
    return NULL;
}

static void append(struct yaml_node *to, struct yaml_node *n)
{
    struct yaml_node **tail = &to->first;
    while (*tail)
        tail = &(*tail)->next;
    *tail = n;
}

/* ---- strings ---- */

static void add_utf8(struct str *out, unsigned long c)
{
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (char)(0x80 | (c & 0x3f));
    b[0] = (char)(first[n] | c);
    str_addn(out, b, n);
}

/* After the backslash. */
static int take_escape(struct reader *r, struct str *out)
{
    static const char letters[] = "btnfre\"\\", meant[] = "\b\t\n\f\r\033\"\\";
    char c = peek(r);
    const char *known = c ? strchr(letters, c) : NULL;
    if (known) {
        str_addn(out, &meant[known - letters], 1);
        r->at++;
        return 0;
    }
    size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : c == 'x' ? 2 : 0;
    unsigned long value = 0;
    if (!digits || (size_t)(r->end - r->at) <= digits)
        return fail(r, "unknown escape sequence");
    for (size_t i = 1; i <= digits; i++) {
        unsigned char digit = (unsigned char)r->at[i];
        if (!isxdigit(digit))
            return fail(r, "the escape sequence needs hexadecimal digits");
        value = value * 16 + (unsigned long)(isdigit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    if (!value || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return fail(r, "not a valid character");
    add_utf8(out, value);
    r->at += 1 + digits;
    return 0;
}

/* A backslash at the end of a line removes the line end and the leading blanks of the next line. */
static bool skip_line_end(struct reader *r)
{
    const char *p = r->at;
    while (p < r->end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    if (p == r->end || *p != '\n')
        return false;
    while (p < r->end && strchr(" \t\r\n", *p))
        p++;
    r->at = p;
    return true;
}

static int take_string(struct reader *r, const char **text)
{
    CLEANUP(str_release) struct str s = { 0 };
    const char quote = *r->at, three[] = { quote, quote, quote, '\0' };
    bool many = looking_at(r, three);
    r->at += many ? 3 : 1;
    if (many && looking_at(r, "\r\n"))
        r->at++;
    if (many && peek(r) == '\n')
        r->at++;
    while (r->at < r->end) {
        char c = *r->at;
        if (many ? looking_at(r, three) : c == quote)
            break;
        if (c == '\n' && !many)
            return fail(r, "the string has no end");
        r->at++;
        if (c != '\\' || quote == '\'')
            str_addn(&s, &c, 1);
        else if (!(many && skip_line_end(r)) && take_escape(r, &s))
            return -1;
    }
    if (r->at == r->end)
        return fail(r, "the string has no end");
    r->at += many ? 3 : 1;
    while (many && peek(r) == quote) /* "a" and four quotes: one of them is text */
        str_addn(&s, r->at++, 1);
    *text = arena_strndup(r->arena, s.s ? s.s : "", s.len);
    return 0;
}

/* ---- values ---- */

static int take_value(struct reader *r, struct yaml_node **out);
static int take_pair(struct reader *r, struct yaml_node *map);

static int take_array(struct reader *r, struct yaml_node *list)
{
    struct yaml_node **tail = &list->first;
    r->at++;
    for (;;) {
        skip_space(r);
        if (peek(r) == ']')
            return r->at++, 0;
        if (r->at == r->end)
            return fail(r, "the array is not closed");
        if (take_value(r, tail))
            return -1;
        tail = &(*tail)->next;
        skip_space(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != ']')
            return fail(r, "expected a comma between the values of the array");
    }
}

static int take_inline_table(struct reader *r, struct yaml_node *map)
{
    r->at++;
    for (;;) {
        skip_space(r);
        if (peek(r) == '}')
            return r->at++, 0;
        if (r->at == r->end)
            return fail(r, "the table is not closed");
        if (take_pair(r, map))
            return -1;
        skip_space(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != '}')
            return fail(r, "expected a comma between the keys of the table");
    }
}

static int take_value(struct reader *r, struct yaml_node **out)
{
    char c = peek(r);
    bool quoted = c == '"' || c == '\'', inside = c == '[' || c == '{';
    struct yaml_node *n = new_node(r, c == '[' ? YAML_LIST : c == '{' ? YAML_MAP : YAML_SCALAR, r->at);
    if (!n)
        return -1;
    *out = n;
    if (quoted) {
        n->style = YAML_QUOTED;
        return take_string(r, &n->text);
    }
    if (inside) {
        if (++r->depth > YAML_MOST_DEPTH)
            return fail(r, "nested too deeply");
        int failed = c == '[' ? take_array(r, n) : take_inline_table(r, n);
        r->depth--;
        return failed;
    }
    const char *from = r->at;
    while (r->at < r->end && !strchr(",[]{}#='\"\r\n", *r->at))
        r->at++;
    const char *to = r->at;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    if (to == from)
        return fail_at(r, from, "a value is missing");
    n->text = arena_strndup(r->arena, from, (size_t)(to - from));
    return 0;
}

/* ---- keys ---- */

static int take_key(struct reader *r, struct yaml_node **out)
{
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    skip_blank(r);
    const char *from = r->at;
    struct yaml_node *n = new_node(r, YAML_SCALAR, from);
    if (!n)
        return -1;
    *out = n;
    if (peek(r) == '"' || peek(r) == '\'') {
        n->style = YAML_QUOTED;
        if (take_string(r, &n->text))
            return -1;
    } else {
        while (r->at < r->end && *r->at && strchr(bare, *r->at))
            r->at++;
        if (r->at == from)
            return fail(r, "a key is missing");
        n->text = arena_strndup(r->arena, from, (size_t)(r->at - from));
    }
    skip_blank(r);
    return 0;
}

/* The map that a key names: the table, or the last of an array of tables; created if missing. */
static int enter(struct reader *r, struct yaml_node *map, struct yaml_node *key, struct yaml_node **out)
{
    struct yaml_node *n = member(map, key->text);
    if (!n) {
        if (!(n = new_node(r, YAML_MAP, r->at)))
            return -1;
        n->key = key;
        append(map, n);
    }
    if (n->kind == YAML_LIST)
        for (n = n->first; n && n->next;)
            n = n->next;
    if (!n || n->kind != YAML_MAP)
        return fail(r, "this key has a value already");
    *out = n;
    return 0;
}

/* The value of a new key: a table, or an array with a table in it. */
enum { LEVELS = 2 };

/* "a.b.key": *map becomes the table a.b. */
static int take_path(struct reader *r, struct yaml_node **map, struct yaml_node **key)
{
    for (;;) {
        if (take_key(r, key))
            return -1;
        if (peek(r) != '.')
            return 0;
        r->at++;
        if ((r->depth += LEVELS) > YAML_MOST_DEPTH - LEVELS)
            return fail(r, "nested too deeply");
        if (enter(r, *map, *key, map))
            return -1;
    }
}

/* key.key = value */
static int take_pair(struct reader *r, struct yaml_node *map)
{
    struct yaml_node *key, *value;
    int depth = r->depth;
    if (take_path(r, &map, &key))
        return -1;
    if (peek(r) != '=')
        return fail(r, "expected = after the key");
    if (member(map, key->text))
        return fail(r, "duplicate key");
    r->at++;
    skip_blank(r);
    if (take_value(r, &value))
        return -1;
    r->depth = depth;
    value->key = key;
    append(map, value);
    return 0;
}

/* A new table at the end of the array `key`. */
static int add_to_array(struct reader *r, struct yaml_node *map, struct yaml_node *key,
                        struct yaml_node **out)
{
    struct yaml_node *list = member(map, key->text);
    if (list && list->kind != YAML_LIST)
        return fail(r, "this key has a value already");
    if (!list) {
        if (!(list = new_node(r, YAML_LIST, r->at)))
            return -1;
        list->key = key;
        append(map, list);
    }
    if (!(*out = new_node(r, YAML_MAP, r->at)))
        return -1;
    append(list, *out);
    return 0;
}

/* [a.b] and [[a.b]] */
static int take_header(struct reader *r, struct yaml_node *root, struct yaml_node **table)
{
    bool array = looking_at(r, "[[");
    struct yaml_node *key, *map = root;
    r->at += array ? 2 : 1;
    r->depth = 0;
    if (take_path(r, &map, &key))
        return -1;
    if (!looking_at(r, array ? "]]" : "]"))
        return fail(r, "the name of the table is not closed");
    r->at += array ? 2 : 1;
    r->depth += LEVELS;
    return array ? add_to_array(r, map, key, table) : enter(r, map, key, table);
}

static int take_document(struct reader *r, struct yaml_node *root)
{
    struct yaml_node *table = root;
    for (;;) {
        skip_space(r);
        if (r->at == r->end)
            return 0;
        if (peek(r) == '[' ? take_header(r, root, &table) : take_pair(r, table))
            return -1;
        skip_blank(r);
        skip_comment(r);
        if (r->at < r->end && *r->at != '\n' && *r->at != '\r')
            return fail(r, "expected the end of the line");
    }
}

int toml_parse(const char *name, const char *text, size_t len, struct arena *arena, struct yaml_node **out,
               struct cairn_error *err)
{
    struct reader r = { .name = name,
                        .start = text,
                        .at = text,
                        .end = text + len,
                        .arena = arena,
                        .err = err,
                        .counted = text,
                        .line = 1,
                        .column = 1 };
    if (len > YAML_MOST_BYTES)
        return file_settings_too_large(name, err);
    const char *whole = arena_strndup(arena, text, len);
    if (strlen(whole) != len || !str_is_utf8(whole))
        return fail(&r, "not UTF-8");
    struct yaml_node *root = new_node(&r, YAML_MAP, text);
    if (!root || take_document(&r, root))
        return -1;
    *out = root;
    return 0;
}

int toml_read(const char *path, struct arena *arena, struct yaml_node **out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    return file_read_settings(path, &text, &n, err) ? -1 : toml_parse(path, text, n, arena, out, err);
}
