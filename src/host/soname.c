/* SPDX-License-Identifier: Apache-2.0 */
#include "host/soname.h"

#include "base/str.h"
#include <string.h>

struct places {
    const struct root *root;
    struct arena *a;
    const char **path;
    size_t n;
};

static void add_place(struct places *p, const char *path, size_t len)
{
    if (len && path[0] == '/')
        *ARENA_PUSH(p->a, p->path, p->n) = arena_strndup(p->a, path, len);
}

static void add_list(struct places *p, const char *list)
{
    while (list && *list) {
        size_t len = strcspn(list, ":;");
        add_place(p, list, len);
        list += len + (list[len] != '\0');
    }
}

/* A folder a line; "include" lines name the files that are read anyway. */
static void add_conf(struct places *p, const char *path)
{
    const char *at = root_read(p->root, p->a, path, NULL);
    while (at && *at) {
        size_t line = strcspn(at, "\n"), len;
        size_t blank = strspn(at, " \t");
        len = strcspn(at + blank, " \t#\n");
        add_place(p, at + blank, len);
        at += line + (at[line] != '\0');
    }
}

static void find_places(struct places *p, const struct facts *f)
{
    static const char *const own[] = {
        "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"
    };
    char **names;
    size_t n;
    add_list(p, facts_env(f, "LD_LIBRARY_PATH"));
    add_conf(p, "/etc/ld.so.conf");
    if (!root_list(p->root, p->a, "/etc/ld.so.conf.d", &names, &n))
        for (size_t i = 0; i < n; i++)
            if (str_ends(names[i], ".conf"))
                add_conf(p, arena_printf(p->a, "/etc/ld.so.conf.d/%s", names[i]));
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        add_place(p, own[i], strlen(own[i]));
}

static const char *look(const struct places *p, const char *folder, const char *name)
{
    const char *path = path_join(p->a, folder, name);
    return root_exists(p->root, path) ? path : NULL;
}

const char *soname_find(const struct root *r, struct arena *a, const struct facts *f,
                        const char *const *names, const char *folder)
{
    struct places p = { .root = r, .a = a };
    const char *found;
    find_places(&p, f);
    for (size_t i = 0; names[i]; i++)
        for (size_t k = 0; k < p.n; k++)
            if ((found = look(&p, p.path[k], names[i])))
                return found;
    for (size_t i = 0; folder && names[i]; i++)
        if ((found = look(&p, folder, names[i])))
            return found;
    return NULL;
}
