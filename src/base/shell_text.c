/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shell_text.h"

#include <string.h>

static const struct {
    const char *names;            /* with spaces between */
    const char *before, *between; /* a setting is before NAME between 'value' */
    const char *remove, *after;   /* a removal is remove NAME after */
    const char *remark;
} shells[] = {
    [SHELL_SH] = { "sh bash zsh dash ksh ash", "export ", "=", "unset ", "", "# " },
    [SHELL_FISH] = { "fish", "set -gx ", " ", "set -e ", "", "# " },
    [SHELL_POWERSHELL] = { "powershell pwsh", "$env:", " = ",
                           "Remove-Item -ErrorAction SilentlyContinue Env:", "", "# " },
    [SHELL_CMD] = { "cmd", "set \"", "=", "set \"", "=\"", "rem " },
    [SHELL_DOTENV] = { "dotenv env", "", "=", "# leave out ", "", "# " },
    [SHELL_JSON] = { "json", "", "", "", "", "" },
};

bool shell_find(const char *name, enum shell *out)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (str_list_has(shells[i].names, ' ', name)) {
            *out = (enum shell)i;
            return true;
        }
    return false;
}

/* PowerShell also treats the four typographic single quotes (U+2018 to U+201B) as quotes. */
static size_t powershell_quote_at(const char *s)
{
    if (s[0] == '\'')
        return 1;
    bool typographic = (unsigned char)s[0] == 0xe2 && (unsigned char)s[1] == 0x80 &&
                       (unsigned char)s[2] >= 0x98 && (unsigned char)s[2] <= 0x9b;
    return typographic ? 3 : 0;
}

static void quote_dotenv(const char *value, struct str *out)
{
    str_add(out, "\"");
    for (const char *p = value; *p; p++) {
        if (*p == '\n' || *p == '\r') {
            str_add(out, *p == '\n' ? "\\n" : "\\r");
            continue;
        }
        if (strchr("\"\\$`", *p))
            str_add(out, "\\");
        str_addn(out, p, 1);
    }
    str_add(out, "\"");
}

static void quote_char(enum shell s, const char **p, struct str *out)
{
    size_t n = s == SHELL_POWERSHELL ? powershell_quote_at(*p) : 0;
    if (s == SHELL_SH && **p == '\'') {
        str_add(out, "'\\''");
        n = 1;
    } else if (s == SHELL_FISH && strchr("'\\", **p)) {
        str_addf(out, "\\%c", **p);
        n = 1;
    } else {
        str_addn(out, *p, n); /* doubled if it is a quote */
        n = n ? n : 1;
        str_addn(out, *p, n);
    }
    *p += n;
}

/* A batch file expands %NAME% even in quotes, and a line feed ends the line. */
static void quote_cmd(const char *value, struct str *out)
{
    for (const char *p = value; *p; p++)
        str_addn(out, *p == '%' ? "%%" : *p == '\n' || *p == '\r' ? " " : p, *p == '%' ? 2 : 1);
    str_add(out, "\"");
}

/* docker's --env-file makes quotes a part of the value, so they are written only where needed. */
static bool needs_no_quotes(const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+@,=-";
    return strspn(value, plain) == strlen(value);
}

static void quote(enum shell s, const char *value, struct str *out)
{
    if (s == SHELL_CMD) {
        quote_cmd(value, out);
        return;
    }
    if (s == SHELL_DOTENV && needs_no_quotes(value)) {
        str_add(out, value);
        return;
    }
    if (s == SHELL_DOTENV && strpbrk(value, "'\n\r")) {
        quote_dotenv(value, out);
        return;
    }
    str_add(out, "'");
    for (const char *p = value; *p;)
        quote_char(s, &p, out);
    str_add(out, "'");
}

void shell_set(enum shell s, const char *name, const char *value, struct str *out)
{
    str_add(out, "");
    if (!str_is_variable(name, strlen(name)))
        return;
    str_addf(out, "%s%s%s", shells[s].before, name, shells[s].between);
    quote(s, value, out);
    str_add(out, "\n");
}

void shell_unset(enum shell s, const char *name, struct str *out)
{
    str_add(out, "");
    if (str_is_variable(name, strlen(name)))
        str_addf(out, "%s%s%s\n", shells[s].remove, name, shells[s].after);
}

void shell_remark(enum shell s, const char *text, int width, FILE *out)
{
    CLEANUP(str_release) struct str clean = { 0 }, lines = { 0 };
    str_add_clean(&clean, text, strlen(text));
    str_add_wrapped(&lines, clean.s, 0, 0, (size_t)width - strlen(shells[s].remark));
    for (const char *line = lines.s; line && *line; line = str_next_line(line))
        fprintf(out, "%s%.*s\n", shells[s].remark, (int)strcspn(line, "\n"), line);
}

/* The length of the next word of a command; a quoted part belongs to its word. */
static size_t word_span(const char *s)
{
    char quote = 0;
    bool escapes = true; /* a backslash escapes the next character */
    size_t n = 0;
    for (; s[n] && (quote || s[n] != ' '); n++) {
        if (s[n] == '\\' && escapes && s[n + 1]) {
            n++;
        } else if (quote ? s[n] == quote : s[n] == '\'' || s[n] == '"') {
            quote = quote ? 0 : s[n];
            escapes = quote != '\'' || (n && s[n - 1] == '$');
        }
    }
    return n;
}

static void add_remark(const char *text, int width, struct str *out)
{
    int column = 0;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, " ");
        bool full = column && column + 1 + (int)n > width;
        str_addf(out, "%s%s%.*s", full ? "\n" : "", full || !column ? "# " : " ", (int)n, at);
        column = (full || !column ? 2 : column + 1) + (int)n;
        at += n + strspn(at + n, " ");
    }
    str_add(out, "\n");
}

static void add_command(const char *line, int width, struct str *out)
{
    enum { MARK = 2 /* " \\" */, INDENT = 2 };
    int column = 0;
    const char *at = line;
    while (*at && *at != '#') {
        size_t n = word_span(at);
        if (column && column + 1 + (int)n > width - MARK) {
            str_addf(out, " \\\n%*s", INDENT, "");
            column = INDENT;
        } else if (column) {
            str_add(out, " ");
            column++;
        }
        str_addn(out, at, n);
        column += (int)n;
        at += n + strspn(at + n, " ");
    }
    if (column)
        str_add(out, "\n");
    if (*at)
        add_remark(at + 1 + strspn(at + 1, " "), width, out);
}

void shell_remedy(const char *remedy, int width, struct str *out)
{
    for (const char *line = remedy; line; line = str_next_line(line)) {
        CLEANUP(str_release) struct str clean = { 0 };
        str_add_clean(&clean, line, strcspn(line, "\n"));
        if (clean.len)
            add_command(clean.s, width, out);
    }
}
