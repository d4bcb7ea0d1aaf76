/* SPDX-License-Identifier: Apache-2.0 */
#include "media/frame_folder.h"

#include "base/file.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool frame_folder_is_picture(const char *name)
{
    static const char *const extensions[] = { ".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avif" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && i < ARRAY_LEN(extensions); i++)
        if (!strcasecmp(dot, extensions[i]))
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int frame_folder_list(const char *folder, struct arena *a, char ***paths, size_t *n, struct cairn_error *err)
{
    char **names;
    size_t count, kept = 0;
    if (file_names(folder, a, &names, &count))
        return cairn_fail_errno(err, "read %s", folder);
    for (size_t i = 0; i < count; i++)
        if (frame_folder_is_picture(names[i]))
            names[kept++] = names[i];
    if (!kept)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: a folder without pictures is not a clip", folder);
    qsort(names, kept, sizeof(*names), by_name);
    for (size_t i = 0; i < kept; i++)
        names[i] = arena_printf(a, "%s/%s", folder, names[i]);
    *paths = names;
    *n = kept;
    return 0;
}
