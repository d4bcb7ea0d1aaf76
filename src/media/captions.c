/* SPDX-License-Identifier: Apache-2.0 */
#include "media/captions.h"

#include "base/file.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>

/* White space of more than one byte, as Python's str.isspace() knows it; and the byte order mark. */
static const char *const wide_spaces[] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
    "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf",
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

/* Bytes of white space at the start; 0: none. */
static size_t space_at(const char *s)
{
    if (is_space(*s))
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(wide_spaces); i++)
        if (str_starts(s, wide_spaces[i]))
            return strlen(wide_spaces[i]);
    return 0;
}

static size_t space_before(const char *s, const char *end)
{
    if (end > s && is_space(end[-1]))
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(wide_spaces); i++) {
        size_t n = strlen(wide_spaces[i]);
        if ((size_t)(end - s) >= n && !memcmp(end - n, wide_spaces[i], n))
            return n;
    }
    return 0;
}

const char *caption_strip(const char *text, struct arena *a)
{
    const char *end = text + strlen(text);
    for (size_t n; (n = space_at(text));)
        text += n;
    for (size_t n; (n = space_before(text, end));)
        end -= n;
    return arena_strndup(a, text, (size_t)(end - text));
}

enum caption_state caption_read(const char *path, struct arena *a, const char **text)
{
    CLEANUP(mem_free) char *bytes = NULL;
    struct cairn_error err = { 0 };
    size_t n;
    errno = 0;
    if (file_read_whole(path, CAPTION_MOST_BYTES, &bytes, &n, &err)) {
        bool is_missing = errno == ENOENT || errno == ENOTDIR;
        *text = arena_strdup(a, err.msg);
        return is_missing ? CAPTION_MISSING : CAPTION_UNREADABLE;
    }
    if (strlen(bytes) != n || !str_is_utf8(bytes)) {
        *text = arena_printf(a, "%s is not UTF-8", path);
        return CAPTION_UNREADABLE;
    }
    *text = caption_strip(bytes, a);
    if (**text)
        return CAPTION_OK;
    *text = arena_printf(a, "%s is empty", path);
    return CAPTION_EMPTY;
}

const char *caption_add_trigger(const char *caption, const char *trigger, struct arena *a)
{
    static const char *const places[] = { "[trigger]", "[name]" };
    CLEANUP(str_release) struct str out = { 0 };
    const char *word = trigger ? trigger : "";
    str_add(&out, "");
    for (const char *p = caption; *p;) {
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_LEN(places) && !n; i++)
            n = str_starts(p, places[i]) ? strlen(places[i]) : 0;
        if (n)
            str_add(&out, word);
        else
            str_addn(&out, p, 1);
        p += n ? n : 1;
    }
    bool is_added = *caption_strip(word, a) && !strstr(out.s ? out.s : "", word);
    const char *full =
        arena_printf(a, "%s%s%s", is_added ? word : "", is_added ? " " : "", out.s ? out.s : "");
    return caption_strip(full, a);
}
