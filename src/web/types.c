/* SPDX-License-Identifier: Apache-2.0 */
#include "web/types.h"

#include "base/cleanup.h"
#include <string.h>
#include <strings.h>

#define TEXT "text/plain; charset=utf-8"

/* clang-format off */
const struct type types[] = {
    { ".html",        "text/html; charset=utf-8",       TYPE_ASSET },
    { ".css",         "text/css; charset=utf-8",        TYPE_ASSET },
    { ".js",          "text/javascript; charset=utf-8", TYPE_ASSET },
    { ".svg",         "image/svg+xml",                  TYPE_ASSET },
    { ".png",         "image/png",                      TYPE_SHOWN | TYPE_UPLOADED | TYPE_ASSET },
    { ".jpg",         "image/jpeg",                     TYPE_SHOWN | TYPE_UPLOADED },
    { ".jpeg",        "image/jpeg",                     TYPE_SHOWN | TYPE_UPLOADED },
    { ".webp",        "image/webp",                     TYPE_SHOWN | TYPE_UPLOADED },
    { ".avif",        "image/avif",                     TYPE_SHOWN | TYPE_UPLOADED },
    { ".gif",         "image/gif",                      TYPE_SHOWN | TYPE_UPLOADED },
    { ".bmp",         "image/bmp",                      TYPE_SHOWN | TYPE_UPLOADED },
    { ".mp4",         "video/mp4",                      TYPE_SHOWN | TYPE_UPLOADED },
    { ".webm",        "video/webm",                     TYPE_SHOWN | TYPE_UPLOADED },
    { ".mov",         "video/quicktime",                TYPE_UPLOADED },
    { ".mkv",         "video/x-matroska",               TYPE_UPLOADED },
    { ".avi",         "video/x-msvideo",                TYPE_UPLOADED },
    { ".txt",         TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".caption",     TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".log",         TEXT,                             TYPE_SHOWN },
    { ".md",          TEXT,                             TYPE_SHOWN },
    { ".csv",         TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".yaml",        TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".yml",         TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".toml",        TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".json",        "application/json",               TYPE_SHOWN | TYPE_UPLOADED },
    { ".jsonl",       TEXT,                             TYPE_SHOWN | TYPE_UPLOADED },
    { ".safetensors", "application/octet-stream",       TYPE_UPLOADED },
};
/* clang-format on */
const unsigned n_types = ARRAY_LEN(types);

const struct type *type_of(const char *name)
{
    static const struct type other = { "", "application/octet-stream", 0 };
    size_t n = strlen(name);
    for (unsigned i = 0; i < n_types; i++) {
        size_t end = strlen(types[i].end);
        if (n > end && !strcasecmp(name + n - end, types[i].end))
            return &types[i];
    }
    return &other;
}
