/* SPDX-License-Identifier: Apache-2.0 */
#include "host/script_words.h"

#include "base/str.h"
#include <string.h>

enum { MOST_DEPTH = 6 };

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

struct builder {
    struct script *s;
    struct str text;
    bool unknown;
    bool quoted; /* so it is a word even if it is empty */
};

static const char *dirname_of(struct arena *a, const char *path)
{
    return strchr(path, '/') ? path_parent(a, path) : ".";
}

static void add_value(struct builder *b, const char *value)
{
    if (value && !walk_spend(b->s->w, strlen(value)))
        value = NULL;
    b->unknown |= !value;
    str_add(&b->text, value ? value : "");
}

/* --- $(command)
 * ----------------------------------------------------------------------------------------------- */

/* What one statement of a substitution prints; NULL: nothing, or not known. */
static const char *printed_by(struct script *s, const struct statement *st)
{
    struct walk *w = s->w;
    const char *name = st->n ? st->words[0].text : "";
    const char *last = st->n > 1 ? st->words[st->n - 1].text : NULL;
    for (size_t i = 0; i < st->n; i++)
        if (st->words[i].unknown)
            return NULL;
    if (!strcmp(name, "pwd"))
        return w->cwd;
    if (!strcmp(name, "conda") && last && !strcmp(last, "--base"))
        return environments_conda_root(w);
    if (!strcmp(name, "uname") && (!last || !strcmp(last, "-s")))
        return "Linux";
    if (!last)
        return NULL;
    if (!strcmp(name, "cd"))
        w->cwd = walk_path(w, last);
    else if (!strcmp(name, "dirname"))
        return dirname_of(w->a, last);
    else if (!strcmp(name, "basename") && st->n == 2)
        return str_file_name(last);
    else if (!strcmp(name, "realpath") || !strcmp(name, "readlink"))
        return walk_path(w, last);
    else if (!strcmp(name, "echo") && st->n == 2)
        return last;
    else if (!strcmp(name, "which") || (!strcmp(name, "command") && st->n == 3)) {
        const char *found = walk_program(w, last);
        return found ? found : "";
    }
    return NULL;
}

static void substitute(struct builder *b, const char *text)
{
    struct walk inner = *b->s->w; /* a subshell: what it changes is gone with it */
    struct script s = {
        .w = &inner, .at = text, .name = b->s->name, .args = b->s->args, .depth = b->s->depth + 1
    };
    struct statement st;
    const char *printed = NULL;
    while (s.depth <= MOST_DEPTH && script_next(&s, &st)) {
        const char *more = printed_by(&s, &st);
        printed = more ? more : printed;
        if (st.ends == ENDS_OR) /* what follows is for the case that it fails */
            break;
    }
    add_value(b, printed);
}

/* The text up to the matching closing sign; steps past it. */
static const char *until_closed(struct script *s, char open, char close)
{
    const char *start = s->at;
    char quote = 0;
    for (int depth = 1; *s->at; s->at++) {
        char c = *s->at;
        if (c == '\\' && s->at[1])
            s->at++;
        else if (quote == '\'' || (c == '\'' && !quote))
            quote = c == '\'' ? (quote ? 0 : '\'') : quote;
        else if (c == '"')
            quote = quote ? 0 : '"';
        else if (c == open && open != close)
            depth++;
        else if (c == close && --depth == 0)
            break;
    }
    const char *text = arena_strndup(s->w->a, start, (size_t)(s->at - start));
    s->at += *s->at != '\0';
    return text;
}

/* --- $name
 * ---------------------------------------------------------------------------------------------------- */

static const char *argument(const struct script *s, size_t i)
{
    for (size_t k = 1; s->args && s->args[k - 1]; k++)
        if (k == i)
            return s->args[k - 1];
    return "";
}

static bool is_unknown(const struct walk *w, const char *name)
{
    const struct walk_var *v = walk_var(w, name);
    return v && v->unknown;
}

static const char *count_arguments(const struct script *s)
{
    int n = 0;
    while (s->args && s->args[n])
        n++;
    return arena_printf(s->w->a, "%d", n);
}

/* NULL: not known.  One that is not set is empty. */
static const char *value_of(const struct script *s, const char *name)
{
    if (!strcmp(name, "0") || str_starts(name, "BASH_SOURCE"))
        return s->name;
    if (name[0] >= '1' && name[0] <= '9' && !name[1])
        return argument(s, (size_t)(name[0] - '0'));
    if (!strcmp(name, "PWD"))
        return s->w->cwd;
    if (!strcmp(name, "#"))
        return count_arguments(s);
    if (!strcmp(name, "OSTYPE"))
        return "linux-gnu";
    if (!*name || is_unknown(s->w, name) || strchr("#?$!-", *name))
        return NULL;
    const char *value = walk_get(s->w, name);
    return value ? value : "";
}

/* Two forms cut a path: one keeps its folder, the other its file. */
static void add_trimmed(struct builder *b, const char *value, const char *rest)
{
    if (!value)
        add_value(b, NULL);
    else if (!strcmp(rest, "%/*"))
        add_value(b, strchr(value, '/') ? dirname_of(b->s->w->a, value) : value);
    else if (!strcmp(rest, "##*/"))
        add_value(b, str_file_name(value));
    else
        add_value(b, !strcmp(rest, "%/") ? value : NULL);
}

static void expand_text(struct builder *b, const char *text);

/* The inside of ${…}. */
static void expand_braces(struct builder *b, const char *inside)
{
    struct arena *a = b->s->w->a;
    size_t n = strspn(inside, name_letters);
    const char *name = arena_strndup(a, inside, n), *rest = inside + n;
    if (str_starts(rest, "[0]"))
        rest += strlen("[0]");
    const char *value = value_of(b->s, name);
    if (!n || *rest == '[')
        add_value(b, NULL);
    else if (!*rest)
        add_value(b, value);
    else if (str_starts(rest, ":-") || str_starts(rest, ":=") || *rest == '-') {
        if (value && *value)
            add_value(b, value);
        else
            expand_text(b, rest + (*rest == ':' ? 2 : 1));
    } else {
        add_trimmed(b, value, rest);
    }
}

static void expand_dollar(struct builder *b)
{
    struct script *s = b->s;
    char c = *s->at;
    if (c == '(' && s->at[1] == '(') {
        s->at++;
        until_closed(s, '(', ')');
        add_value(b, NULL);
    } else if (c == '(') {
        s->at++;
        substitute(b, until_closed(s, '(', ')'));
    } else if (c == '{') {
        s->at++;
        expand_braces(b, until_closed(s, '{', '}'));
    } else if (c && strchr("@*#?$!-", c)) {
        s->at++;
        add_value(b, c == '@' || c == '*' ? argument(s, 1) : c == '#' ? count_arguments(s) : NULL);
    } else {
        size_t n = c >= '0' && c <= '9' ? 1 : strspn(s->at, name_letters);
        const char *name = arena_strndup(s->w->a, s->at, n);
        s->at += n;
        if (n)
            add_value(b, value_of(s, name));
        else
            str_add(&b->text, "$");
    }
}

/* --- words
 * ---------------------------------------------------------------------------------------------------- */

static void read_quoted(struct builder *b)
{
    struct script *s = b->s;
    while (*s->at && *s->at != '"') {
        char c = *s->at++;
        if (c == '$')
            expand_dollar(b);
        else if (c == '`')
            substitute(b, until_closed(s, '`', '`'));
        else if (c == '\\' && *s->at == '\n')
            s->at++;
        else
            str_addn(&b->text, c == '\\' && *s->at && strchr("\"\\$`", *s->at) ? s->at++ : &c, 1);
    }
    s->at += *s->at == '"';
}

static void read_literal(struct builder *b)
{
    struct script *s = b->s;
    size_t n = strcspn(s->at, "'");
    str_addn(&b->text, s->at, n);
    s->at += n + (s->at[n] == '\'');
}

static void read_home(struct builder *b)
{
    const char *next = b->s->at;
    if (b->text.len || (*next && !strchr("/ \t\n;&|)", *next)))
        str_add(&b->text, "~");
    else
        add_value(b, walk_get(b->s->w, "HOME"));
}

/* A word up to what ends it outside of quotes. */
static void read_parts(struct builder *b, const char *end)
{
    struct script *s = b->s;
    while (*s->at && !strchr(end, *s->at)) {
        char c = *s->at++;
        if (c == '\\' && *s->at == '\n')
            s->at++;
        else if (c == '\\' && *s->at)
            str_addn(&b->text, s->at++, 1);
        else if (c == '\'' && (b->quoted = true))
            read_literal(b);
        else if (c == '"' && (b->quoted = true))
            read_quoted(b);
        else if (c == '$')
            expand_dollar(b);
        else if (c == '`')
            substitute(b, until_closed(s, '`', '`'));
        else if (c == '~')
            read_home(b);
        else
            str_addn(&b->text, &c, 1);
    }
}

static void expand_text(struct builder *b, const char *text)
{
    struct script inner = *b->s, *outer = b->s;
    inner.at = text;
    inner.depth++;
    b->s = &inner;
    if (inner.depth <= MOST_DEPTH)
        read_parts(b, "");
    else
        b->unknown = true;
    b->s = outer;
}

size_t script_assigned(const char *word)
{
    size_t n = strspn(word, name_letters);
    return n && (word[0] < '0' || word[0] > '9') && word[n] == '=' ? n : 0;
}

static struct word read_word(struct script *s)
{
    struct builder b = { .s = s };
    const char *start = s->at;
    read_parts(&b, " \t\r\n;&|()<>");
    if (*s->at == '(' && s->at > start && s->at[-1] == '=') { /* a list */
        s->at++;
        until_closed(s, '(', ')');
        b.unknown = true;
    }
    struct word word = {
        .text = arena_strdup(s->w->a, b.text.s ? b.text.s : ""),
        .unknown = b.unknown,
        .vanishes = !b.text.len && !b.unknown && !b.quoted,
    };
    str_release(&b.text);
    return word;
}

/* Quotes and comments do not count. */
const char *script_body(struct script *s, bool begun)
{
    s->at += strspn(s->at, begun ? "" : " \t\r\n()");
    if (!begun && *s->at != '{')
        return NULL;
    s->at += !begun;
    const char *start = s->at;
    char quote = 0;
    for (int depth = 1; *s->at; s->at++) {
        char c = *s->at;
        bool comment = c == '#' && !quote && strchr(" \t\n;", s->at[-1]);
        if (comment && strchr(s->at, '\n'))
            s->at = strchr(s->at, '\n');
        else if (c == '\\' && quote != '\'' && s->at[1])
            s->at++;
        else if ((c == '\'' && quote != '"') || (c == '"' && quote != '\''))
            quote = quote ? 0 : c;
        else if (!quote && (c == '{' || c == '}'))
            depth += c == '{' ? 1 : -1;
        if (!depth)
            break;
    }
    const char *body = arena_strndup(s->w->a, start, (size_t)(s->at - start));
    s->at += *s->at == '}';
    return body;
}

/* "> file", "2>&1", "<<EOF": not the command's words. */
static void skip_redirection(struct script *s)
{
    bool here = str_starts(s->at, "<<") && s->at[2] != '<';
    s->at += strspn(s->at, "<>");
    s->at += strspn(s->at, "&|-");
    s->at += strspn(s->at, " \t");
    if (*s->at == '(') { /* <(…): a process behind a file */
        s->at++;
        until_closed(s, '(', ')');
        return;
    }
    struct word target = read_word(s);
    if (here)
        s->heredoc = target.text;
}

static void skip_heredoc(struct script *s)
{
    const char *end = s->heredoc;
    s->heredoc = NULL;
    while (end && *s->at) {
        const char *line = s->at + strspn(s->at, "\t");
        size_t n = strcspn(line, "\r\n");
        const char *next = str_next_line(s->at);
        s->at = next ? next : s->at + strlen(s->at);
        if (n == strlen(end) && !strncmp(line, end, n))
            return;
    }
}

/* "$@" alone means all arguments. */
static bool take_arguments(struct script *s, struct statement *st)
{
    static const char *const forms[] = { "\"$@\"", "$@", "\"${@}\"", "\"$*\"", "$*", "\"${@:1}\"" };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        size_t n = strlen(forms[i]);
        if (strncmp(s->at, forms[i], n) || (s->at[n] && !strchr(" \t\r\n;&|)", s->at[n])))
            continue;
        s->at += n;
        for (size_t k = 0; s->args && s->args[k]; k++)
            *ARENA_PUSH(s->w->a, st->words, st->n) = (struct word){ .text = s->args[k] };
        return true;
    }
    return false;
}

static enum ends read_end(struct script *s)
{
    char c = *s->at;
    if (!c)
        return ENDS_TEXT;
    bool twice = s->at[1] == c;
    s->at += 1 + (twice && strchr(";&|", c));
    switch (c) {
    case '\n':
        skip_heredoc(s);
        return ENDS_LINE;
    case ';':
        return twice ? ENDS_CASE : ENDS_LINE;
    case '&':
        return twice ? ENDS_AND : ENDS_LINE;
    case '|':
        return twice ? ENDS_OR : ENDS_PIPE;
    case '(':
        return ENDS_OPEN;
    default:
        return ENDS_CLOSE;
    }
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

bool script_next(struct script *s, struct statement *out)
{
    *out = (struct statement){ 0 };
    if (!*s->at || !walk_spend(s->w, 0))
        return false;
    for (;;) {
        s->at += strspn(s->at, " \t\r");
        if (s->at[0] == '\\' && s->at[1] == '\n') {
            s->at += 2;
        } else if (*s->at == '#') {
            s->at += strcspn(s->at, "\n");
        } else if (*s->at == '<' || *s->at == '>' || str_starts(s->at, "&>")) {
            s->at += *s->at == '&';
            skip_redirection(s);
        } else if (!*s->at || strchr("\n;&|()", *s->at)) {
            out->ends = read_end(s);
            return true;
        } else if (!take_arguments(s, out)) {
            struct word word = read_word(s);
            bool is_descriptor = (*s->at == '<' || *s->at == '>') && is_number(word.text);
            if (!is_descriptor && !word.vanishes)
                *ARENA_PUSH(s->w->a, out->words, out->n) = word;
        }
    }
}
