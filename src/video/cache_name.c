/* SPDX-License-Identifier: Apache-2.0 */
#include "video/cache_name.h"

#include "base/str.h"
#include <string.h>

static const char suffix[] = ".safetensors";

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether the n characters are numbers with `between` between them, `least` to `most` of them. */
static bool are_numbers(const char *s, size_t n, char between, int least, int most)
{
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_digit(s[i]))
            count += i == 0 || !is_digit(s[i - 1]);
        else if (s[i] != between || i == 0 || !is_digit(s[i - 1]))
            return false;
    }
    return n && is_digit(s[n - 1]) && count >= least && count <= most;
}

/* The last "_" among the first n characters; 0: none, or nothing is before it. */
static size_t last_part(const char *s, size_t n)
{
    while (n && s[n - 1] != '_')
        n--;
    return n ? n - 1 : 0;
}

bool cache_name_parse(const char *file, struct cache_name *out)
{
    size_t n = strlen(file);
    if (!str_ends(file, suffix))
        return false;
    n -= strlen(suffix);
    size_t arch = last_part(file, n), size = last_part(file, arch);
    if (!arch || !size || arch + 1 == n || !are_numbers(file + size + 1, arch - size - 1, 'x', 2, 2))
        return false;
    size_t clip = last_part(file, size);
    if (!clip || !are_numbers(file + clip + 1, size - clip - 1, '-', 2, 3))
        clip = 0;
    *out = (struct cache_name){
        .stem = size, .clip_stem = clip, .arch = file + arch + 1, .arch_len = n - arch - 1
    };
    return true;
}

bool cache_name_is_wan(const struct cache_name *n)
{
    return n->arch_len == strlen(CACHE_NAME_ARCH) && !memcmp(n->arch, CACHE_NAME_ARCH, n->arch_len);
}

char *cache_name_latents(struct arena *a, const struct cache_of *of)
{
    const char *when = of->clip ? arena_printf(a, "%05zu-%03zu_", of->start, of->frames) : "";
    return arena_printf(a, "%s_%s%04zux%04zu_" CACHE_NAME_ARCH ".safetensors", of->stem, when, of->width,
                        of->height);
}

char *cache_name_text(struct arena *a, const char *stem)
{
    return arena_printf(a, "%s_" CACHE_NAME_ARCH "_te.safetensors", stem);
}
