/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/env_names.h"

#include "base/cleanup.h"
#include <ctype.h>
#include <string.h>

static const struct env_name *const parts[] = { env_names_device, env_names_torch, env_names_library };

const char *env_verdict_name(enum env_verdict v)
{
    static const char *const names[] = {
        [ENV_SETS] = "sets",           [ENV_DEBUGS] = "sets with --debug", [ENV_REFUSES] = "refuses",
        [ENV_LEAVES] = "leaves alone", [ENV_BUILDS] = "build time only",   [ENV_UNREAD] = "nobody reads it",
    };
    return names[v];
}

const char *env_verdict_text(enum env_verdict v)
{
    static const char *const texts[] = {
        [ENV_SETS] = "sets it where it is needed",
        [ENV_DEBUGS] = "sets it with --debug, and removes it otherwise where it harms",
        [ENV_REFUSES] = "removes it where it harms",
        [ENV_LEAVES] = "leaves it as you have it",
        [ENV_BUILDS] = "leaves it as you have it: it is read at build time only",
        [ENV_UNREAD] = "removes it: nobody reads it",
    };
    return texts[v];
}

const struct env_name *env_name_at(size_t i)
{
    for (size_t k = 0; k < ARRAY_LEN(parts); k++)
        for (const struct env_name *r = parts[k]; r->name; r++)
            if (i-- == 0)
                return r;
    return NULL;
}

static bool name_matches(const char *pattern, const char *name)
{
    size_t n = strcspn(pattern, "*<");
    if (strncmp(pattern, name, n))
        return false;
    const char *rest = name + n;
    if (pattern[n] == '*') /* what a shell could not unset is not a variable name */
        return *rest && rest[strspn(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
    if (pattern[n] == '<')
        return *rest && rest[strspn(rest, "0123456789")] == '\0';
    return !*rest;
}

const struct env_name *env_name_find(const char *name)
{
    const struct env_name *by_pattern = NULL, *r;
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        if (!strcmp(r->name, name))
            return r;
        if (!by_pattern && name_matches(r->name, name))
            by_pattern = r;
    }
    return by_pattern;
}

enum { LONGEST = 64 };

/* Names are upper case; another case means the same. */
size_t env_name_distance(const char *a, const char *b)
{
    size_t row[LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = diagonal + (toupper((unsigned char)a[i - 1]) != toupper((unsigned char)b[j - 1]));
            size_t add = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < add ? change : add;
        }
    }
    return row[m];
}

size_t env_name_nearest(const char *name, const char **out, size_t n)
{
    size_t found = 0, far = strlen(name) / 3, distance[8];
    const struct env_name *r;
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        size_t d = env_name_distance(name, r->name), at = found < n ? found : n;
        if (d > far)
            continue;
        while (at > 0 && distance[at - 1] > d)
            at--;
        if (at >= n || n > ARRAY_LEN(distance))
            continue;
        size_t moved = (found < n ? found : n - 1) - at;
        memmove(&distance[at + 1], &distance[at], moved * sizeof(*distance));
        memmove(&out[at + 1], &out[at], moved * sizeof(*out));
        distance[at] = d;
        out[at] = r->name;
        found += found < n;
    }
    return found;
}
