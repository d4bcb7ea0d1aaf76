/* SPDX-License-Identifier: Apache-2.0 */
#include "host/python_site.h"

#include "base/str.h"
#include <errno.h>
#include <string.h>

void python_site_read(struct python_site *s, const struct root *root, struct arena *a, const char *path)
{
    *s = (struct python_site){ .root = root, .a = a, .path = path };
    if (root_list(root, a, path, &s->names, &s->n)) {
        s->n = 0;
        s->unreadable = errno != ENOENT;
    }
}

bool python_site_has(const struct python_site *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->names[i], name))
            return true;
    return false;
}

bool python_site_lacks(const struct python_site *s, const char *relative)
{
    return !root_exists(s->root, python_site_path(s, relative)) && errno == ENOENT;
}

const char *python_site_path(const struct python_site *s, const char *name)
{
    return arena_printf(s->a, "%s/%s", s->path, name);
}

/* "Flash.Attn" and "flash-attn" are the same distribution: https://packaging.python.org, name
 * normalization. */
static char normal(char c)
{
    if (c == '-' || c == '.')
        return '_';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool starts_normal(const char *s, size_t n, const char *start)
{
    size_t len = strlen(start);
    if (n < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (normal(s[i]) != normal(start[i]))
            return false;
    return true;
}

/* Splits "name-version.dist-info" or "name-version[-py3.11].egg-info"; false for anything else. */
static bool split(const char *entry, size_t *name_len, const char **version, size_t *version_len)
{
    size_t end = strlen(entry);
    if (str_ends(entry, ".dist-info"))
        end -= strlen(".dist-info");
    else if (str_ends(entry, ".egg-info"))
        end -= strlen(".egg-info");
    else
        return false;
    for (size_t i = 0; i + 1 < end; i++)
        if (entry[i] == '-' && entry[i + 1] >= '0' && entry[i + 1] <= '9') {
            const char *rest = entry + i + 1;
            size_t n = end - i - 1;
            const char *py = memmem(rest, n, "-py", 3);
            *name_len = i;
            *version = rest;
            *version_len = py ? (size_t)(py - rest) : n;
            return true;
        }
    return false;
}

struct text python_site_version(const struct python_site *s, const char *distribution)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *version;
        size_t name_len, len;
        if (split(s->names[i], &name_len, &version, &len) && name_len == strlen(distribution) &&
            starts_normal(s->names[i], name_len, distribution))
            return (struct text){ arena_strndup(s->a, version, len), python_site_path(s, s->names[i]) };
    }
    return (struct text){ 0 };
}

void python_site_each(const struct python_site *s, const char *start,
                      void (*visit)(void *context, const char *rest, size_t len, const char *info),
                      void *context)
{
    size_t skip = strlen(start);
    for (size_t i = 0; i < s->n; i++) {
        const char *version;
        size_t name_len, len;
        if (split(s->names[i], &name_len, &version, &len) && starts_normal(s->names[i], name_len, start))
            visit(context, s->names[i] + skip, name_len - skip, python_site_path(s, s->names[i]));
    }
}
