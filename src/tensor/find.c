/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/find.h"

#include "base/str.h"
#include "base/file.h"
#include "os/info.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

static const char *const suffixes[] = { ".safetensors", ".safetensors.index.json", ".pt", ".pth" };

struct names {
    char **name;
    size_t n;
};

static void walk(const char *dir, int depth, struct arena *a, struct found_files *out);

static void add(struct arena *a, struct found_files *out, const char *path, uint64_t bytes, const char *error)
{
    *ARENA_PUSH(a, out->file, out->n) = (struct found_file){ arena_strdup(a, path), bytes, false, error };
}

static void add_error(struct arena *a, struct found_files *out, const char *path, const char *what)
{
    add(a, out, path, 0, arena_printf(a, "%s %s: %s", what, path, strerror(errno)));
}

static bool is_tensor_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_ends(name, suffixes[i]))
            return true;
    return false;
}

static int natural(const void *a, const void *b)
{
    return str_compare_natural(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder, sorted; -1 with errno set if it cannot be read. */
static int read_names(const char *dir, struct arena *a, struct names *out)
{
    if (file_names(dir, a, &out->name, &out->n))
        return -1;
    if (out->n)
        qsort(out->name, out->n, sizeof(*out->name), natural);
    return 0;
}

static void visit(const char *path, int depth, struct arena *a, struct found_files *out)
{
    struct os_info own, info;
    bool wanted = is_tensor_name(path);
    if (os_info_link(path, &own)) {
        add_error(a, out, path, "stat");
        return;
    }
    if (own.kind == OS_KIND_FOLDER) {
        walk(path, depth + 1, a, out);
        return;
    }
    if (!wanted)
        return;
    if (os_info(path, &info))
        add_error(a, out, path, "open");
    else if (info.kind == OS_KIND_FILE)
        add(a, out, path, info.size, NULL);
}

static void walk(const char *dir, int depth, struct arena *a, struct found_files *out)
{
    struct names names = { 0 };
    if (depth > MOST_DEPTH) {
        errno = ELOOP;
        add_error(a, out, dir, "read folder");
        return;
    }
    if (read_names(dir, a, &names))
        add_error(a, out, dir, "read folder");
    for (size_t i = 0; i < names.n; i++)
        visit(arena_printf(a, "%s%s%s", dir, str_ends(dir, "/") ? "" : "/", names.name[i]), depth, a, out);
}

void find_tensor_files(const char *path, struct arena *a, struct found_files *out)
{
    struct os_info info;
    if (os_info(path, &info)) {
        add_error(a, out, path, "open");
    } else if (info.kind == OS_KIND_FOLDER) {
        walk(path, 0, a, out);
        return;
    } else {
        add(a, out, path, info.size, NULL);
    }
    out->file[out->n - 1].named = true;
}
