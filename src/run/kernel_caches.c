/* SPDX-License-Identifier: Apache-2.0 */
#include "run/kernel_caches.h"

#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include "os/list.h"
#include "os/path.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char backup_name[] = ".cairn-backup-";

/* ---- what the libraries write ---- */

static bool is_all(const char *name, size_t n, const char *letters)
{
    return strlen(name) == n && strspn(name, letters) == n;
}

/* MIOpen's binary_cache.cpp and Triton's cache.py: MD5 or SHA-256 in hexadecimal, or SHA-256 in base 32. */
static bool is_hash(const char *name)
{
    static const char hex[] = "0123456789abcdef", base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    return is_all(name, 32, hex) || is_all(name, 64, hex) || is_all(name, 52, base32);
}

/* gfx1030_20.ukdb, gfx90a68.HIP.3_2_0_.ufdb.txt, gfx906_60.udb.txt, and what SQLite puts beside one: …-wal */
static bool is_database(const char *name)
{
    return strstr(name, ".ukdb") || strstr(name, ".ufdb") || strstr(name, ".udb");
}

static bool is_dir(int at, const char *name)
{
    struct stat st;
    return !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

static bool is_file(int at, const char *name)
{
    struct stat st;
    return !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

static bool is_kernels(int at, const char *name)
{
    return is_hash(name) ? is_dir(at, name) : is_database(name) && is_file(at, name);
}

/* A folder "3.4.0.a85ca8a54" with kernels and nothing else in it. */
static bool is_version(int at, const char *name)
{
    struct version v;
    if (name[0] < '0' || name[0] > '9' || !version_parse(name, &v))
        return false;
    CLEANUP(os_list_close) struct os_list *l = os_list_open_at(at, name, OS_NO_LINK);
    bool all = l != NULL;
    for (const char *below; all && (below = os_list_next(l));)
        all = is_kernels(os_list_dir(l), below);
    return all;
}

static bool is_of_miopen(int at, const char *name)
{
    return is_kernels(at, name) || is_version(at, name);
}

static bool is_of_triton(int at, const char *name)
{
    return is_hash(name) && is_dir(at, name);
}

/* ---- where ---- */

/* Where the libraries keep them: their own variable, or below HOME. */
static const struct {
    const char *variable, *below_home;
    bool (*is_its)(int at, const char *name);
} places[] = {
    { "MIOPEN_CUSTOM_CACHE_DIR", ".cache/miopen", is_of_miopen },
    { "MIOPEN_USER_DB_PATH", ".config/miopen", is_of_miopen },
    { "TRITON_CACHE_DIR", ".triton/cache", is_of_triton },
};

/* The library's files in a folder, and the number of other files. */
struct found {
    const char *path;
    char **names;
    size_t n, others;
};

/* Empty if there is no folder.  Does not follow a link: its target may belong to others. */
static struct found look(const char *const *env, size_t i, struct arena *a)
{
    const char *own = str_env(env, places[i].variable), *home = str_env(env, "HOME");
    struct found f = { 0 };
    const char *path = own && *own                      ? own
                       : home && path_is_absolute(home) ? arena_printf(a, "%s/%s", home, places[i].below_home)
                                                        : NULL;
    if (!path || !path_is_absolute(path))
        return f;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    f.path = arena_strndup(a, path, len);
    CLEANUP(os_list_close) struct os_list *l = os_list_open(f.path, OS_NO_LINK);
    for (const char *name; l && (name = os_list_next(l));)
        if (places[i].is_its(os_list_dir(l), name))
            *ARENA_PUSH(a, f.names, f.n) = arena_strdup(a, name);
        else
            f.others++;
    return f;
}

bool kernel_caches_exist(const char *const *env)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (look(env, i, &a).n)
            return true;
    return false;
}

/* ---- moving ---- */

/* Is `path` the folder `inner` or a parent of it?  True if unknown. */
static bool holds(const char *path, const char *inner)
{
    CLEANUP(mem_free) char *one = realpath(path, NULL), *other = inner ? realpath(inner, NULL) : NULL;
    if (!inner)
        return false;
    if (!one || !other)
        return true;
    size_t n = strlen(one);
    return !strncmp(one, other, n) && (!other[n] || other[n] == '/' || n == 1);
}

static int move_folder(const struct found *f, const char *suffix, struct arena *a, struct cache_move *out)
{
    *out = (struct cache_move){ f->path, arena_printf(a, "%s%s", f->path, suffix) };
    return os_rename(out->from, out->to);
}

/* Moves them to a folder inside, so that other files stay in place. */
static int move_entries(const struct found *f, const char *suffix, struct arena *a, struct cache_move *out)
{
    *out = (struct cache_move){
        arena_printf(a, "%zu cache%s of %s", f->n, f->n == 1 ? "" : "s", f->path),
        arena_printf(a, "%s/%s", f->path, suffix),
    };
    CLEANUP(fd_close) int from = os_open(f->path, OS_READ | OS_FOLDER | OS_NO_LINK);
    if (from < 0 || os_make_dir_at(from, suffix, 0700))
        return -1;
    CLEANUP(fd_close) int to = os_open_at(from, suffix, OS_READ | OS_FOLDER | OS_NO_LINK);
    int r = to < 0 ? -1 : 0;
    for (size_t i = 0; i < f->n && !r; i++)
        r = os_rename_at(from, f->names[i], to, f->names[i]);
    return r;
}

size_t kernel_caches_move(const char *const *env, struct arena *a, struct cache_move **out,
                          const char **trouble)
{
    size_t n = 0;
    *out = NULL;
    *trouble = NULL;
    const char *suffix = arena_printf(a, "%s%lld-%d", backup_name, (long long)time(NULL), (int)getpid());
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct cache_move moved;
        struct found f = look(env, i, a);
        if (!f.n)
            continue;
        bool whole = !f.others && !holds(f.path, str_env(env, "HOME")) && !holds(f.path, ".");
        if (whole ? move_folder(&f, suffix, a, &moved) : move_entries(&f, suffix, a, &moved))
            *trouble = arena_printf(a, "move %s aside: %s", f.path, strerror(errno));
        else
            *ARENA_PUSH(a, *out, n) = moved;
    }
    return n;
}
