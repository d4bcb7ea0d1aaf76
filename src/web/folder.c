/* SPDX-License-Identifier: Apache-2.0 */
#include "web/folder.h"

#include "base/str.h"
#include "os/file.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool folder_name_is_valid(const char *name)
{
    size_t n = strlen(name);
    return n && n <= 64 && name[0] != '.' &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")];
}

bool folder_path_is_valid(const char *path, const char **why)
{
    size_t n = strlen(path);
    if (!n || n > FOLDER_PATH_BYTES || str_clean_span(path, n) != n) {
        *why = "a path is UTF-8 without control characters, at most 1024 bytes";
        return false;
    }
    for (const char *part = path;;) {
        size_t length = strcspn(part, "/");
        if (!length || part[0] == '.') {
            *why = "no part of a path is empty or begins with a dot";
            return false;
        }
        if (length > FOLDER_NAME_BYTES) {
            *why = "a name has at most 200 bytes";
            return false;
        }
        if (!part[length])
            return true;
        part += length + 1;
    }
}

const struct folder *folders_find(const struct folders *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->folder[i].name, name))
            return &f->folder[i];
    return NULL;
}

int folders_add(struct folders *f, const char *name, const char *path, bool read_only, struct arena *a,
                struct cairn_error *err)
{
    if (!folder_name_is_valid(name))
        return cairn_fail(err, CAIRN_EUSAGE,
                          "\"%.80s\" cannot name a folder: use letters, digits, '-', '_' and '.', at most 64",
                          name);
    if (folders_find(f, name))
        return cairn_fail(err, CAIRN_EUSAGE, "two folders have the name %s", name);
    if (f->n == FOLDER_MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "there are more than %d folders", FOLDER_MOST);
    CLEANUP(mem_free) char *whole = realpath(path, NULL);
    if (!whole)
        return cairn_fail_errno(err, "the folder %s: %s", name, path);
    int fd = os_open(whole, OS_PLACE | OS_FOLDER);
    if (fd < 0)
        return cairn_fail_errno(err, "the folder %s: %s", name, whole);
    f->folder[f->n++] = (struct folder){ arena_strdup(a, name), arena_strdup(a, whole), read_only, fd };
    return 0;
}

int folders_add_option(struct folders *f, const char *option, struct arena *a, struct cairn_error *err)
{
    const char *equals = strchr(option, '=');
    if (!equals || !equals[1])
        return cairn_fail(err, CAIRN_EUSAGE, "--folder takes NAME=DIR or NAME=DIR:ro, not \"%s\"", option);
    char *path = arena_strdup(a, equals + 1);
    bool read_only = str_ends(path, ":ro");
    if (read_only)
        path[strlen(path) - 3] = '\0';
    return folders_add(f, arena_strndup(a, option, (size_t)(equals - option)), path, read_only, a, err);
}

void folders_write(const struct folders *f, struct json *parent)
{
    struct json *list = json_add_array(parent, "folders");
    for (size_t i = 0; i < f->n; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "name", f->folder[i].name);
        json_add_text(o, "path", f->folder[i].path);
        json_add_bool(o, "read_only", f->folder[i].read_only);
    }
}

void folders_close(struct folders *f)
{
    for (size_t i = 0; i < f->n; i++)
        close(f->folder[i].fd);
    f->n = 0;
}
