/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_python.h"

#include "base/cleanup.h"
#include "base/match.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FOUND = 1, FOUND_PACKAGE };

/* Where the path that ends at a place begins.  In quotes it may have spaces in it. */
static size_t begin_of(const char *s, size_t end)
{
    size_t quoted = end, plain = end;
    while (quoted > 0 && !strchr("\"'`\n\r\t<>|", s[quoted - 1]))
        quoted--;
    if (quoted > 0 && strchr("\"'`", s[quoted - 1]))
        return quoted;
    while (plain > quoted && !strchr(" (=,[;", s[plain - 1]))
        plain--;
    return plain;
}

/* The last part of a path, before its end; false where there is none. */
static bool last_part(const char *path, size_t *end, const char **part, size_t *len)
{
    size_t stop = *end, at;
    while (stop && (path[stop - 1] == '/' || path[stop - 1] == '\\'))
        stop--;
    for (at = stop; at && path[at - 1] != '/' && path[at - 1] != '\\'; at--)
        ;
    *part = path + at;
    *len = stop - at;
    *end = at ? at - 1 : 0;
    return stop > at;
}

static bool is_word(const char *part, size_t len, const char *word)
{
    return strlen(word) == len && !strncasecmp(part, word, len);
}

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t len = strlen(end);
    return n >= len && !memcmp(s + n - len, end, len);
}

/* "/home/me/venv" and "python3.11" out of "/home/me/venv/lib/python3.11/". */
static void take_unix(const char *path, size_t n, char *out, size_t size)
{
    const char *version, *lib;
    size_t end = n, version_len, lib_len;
    if (!last_part(path, &end, &version, &version_len) || version_len < 7 || strncmp(version, "python", 6) ||
        !last_part(path, &end, &lib, &lib_len) ||
        (!is_word(lib, lib_len, "lib") && !is_word(lib, lib_len, "lib64")))
        return;
    bool system = (end == 4 && !memcmp(path, "/usr", 4)) || ends_with(path, end, "/usr/local") ||
                  ends_with(path, end, "/.local");
    if (system)
        snprintf(out, size, "%.*s", (int)version_len, version);
    else
        snprintf(out, size, "%.*s/bin/python", (int)end, path);
}

/* A virtual environment has its programs in a folder of their own; conda and unpacked Pythons do not. */
static void take_windows(const char *path, size_t n, char *out, size_t size)
{
    const char *lib;
    size_t end = n, len;
    if (!last_part(path, &end, &lib, &len) || !is_word(lib, len, "lib"))
        return;
    const char *part;
    size_t prefix = end, part_len;
    if (!last_part(path, &end, &part, &part_len))
        return;
    bool own = match_any(path, prefix, "conda|\\envs\\") || match_any(part, part_len, "python");
    snprintf(out, size, "%.*s\\%spython.exe", (int)prefix, path, own ? "" : "Scripts\\");
}

/* What failed is rather the environment of torch than one that a tool runs in. */
static int weigh(const char *rest, size_t n)
{
    static const char *const packages[] = { "torch", "bitsandbytes", "accelerate", "diffusers",
                                            "transformers" };
    for (size_t i = 0; i < ARRAY_LEN(packages); i++)
        if (n > strlen(packages[i]) && !strncmp(rest, packages[i], strlen(packages[i])))
            return FOUND_PACKAGE;
    return FOUND;
}

void log_python_see(struct log_python *p, const char *s, size_t n, size_t at)
{
    size_t begin = begin_of(s, at), len = at - begin, name = strlen("site-packages");
    const char *path = s + begin;
    char exe[sizeof(p->exe)] = "";
    int weight = at + name < n ? weigh(s + at + name + 1, n - at - name - 1) : FOUND;
    if (weight <= p->weight || len < 4 || len >= sizeof(exe) - 32)
        return;
    if (*path == '/')
        take_unix(path, len, exe, sizeof(exe));
    else if (isalpha((unsigned char)*path) && path[1] == ':' && path[2] == '\\')
        take_windows(path, len, exe, sizeof(exe));
    if (!*exe)
        return;
    memcpy(p->exe, exe, sizeof(exe));
    p->weight = weight;
}
