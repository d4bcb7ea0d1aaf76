/* SPDX-License-Identifier: Apache-2.0 */
#include "encode/cache_stale.h"

#include "base/str.h"
#include "encode/cache_job_inside.h"
#include "os/file.h"
#include "os/info.h"
#include "os/list.h"
#include "os/path.h"
#include "video/cache_write.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is in use.  Names are enough: a name that is in use in one folder is kept in the others too, which may be the same
 * folder by another path. */
struct used {
    const char **names; /* of files */
    size_t n_names;
    const char **stems; /* of items with a problem, whose size may be unknown */
    size_t n_stems;
    const char **dirs;
    size_t n_dirs;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has(const char **list, size_t n, const char *text)
{
    return n && bsearch(&text, list, n, sizeof(*list), by_text);
}

/* Sorted, each once. */
static size_t sort(const char **list, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(list, n, sizeof(*list), by_text);
    for (size_t i = 0; i < n; i++)
        if (!kept || strcmp(list[kept - 1], list[i]))
            list[kept++] = list[i];
    return kept;
}

static void list_used(const struct cache_job *job, struct arena *a, struct used *u)
{
    for (size_t i = 0; i < dataset_count(job->dataset); i++) {
        const struct dataset_item *item = dataset_item(job->dataset, i);
        *ARENA_PUSH(a, u->dirs, u->n_dirs) = item->block->cache_directory;
        *ARENA_PUSH(a, u->names, u->n_names) = cache_name_text(a, item->cache_stem);
        if (item->problem)
            *ARENA_PUSH(a, u->stems, u->n_stems) = item->cache_stem;
        else
            *ARENA_PUSH(a, u->names, u->n_names) = path_name(cache_item_path(a, item));
    }
    for (size_t i = 0; i < job->n_prompts; i++)
        *ARENA_PUSH(a, u->names, u->n_names) = cache_name_text(a, cache_prompt_stem(a, job->prompts[i]));
    u->n_dirs = sort(u->dirs, u->n_dirs);
    u->n_names = sort(u->names, u->n_names);
    u->n_stems = sort(u->stems, u->n_stems);
}

static bool is_stale(const struct used *u, const char *name, struct arena *a)
{
    struct cache_name parts;
    if (has(u->names, u->n_names, name))
        return false;
    if (str_ends(name, "_" CACHE_NAME_ARCH "_te.safetensors"))
        return true;
    if (!cache_name_parse(name, &parts) || !cache_name_is_wan(&parts))
        return false;
    return !has(u->stems, u->n_stems, arena_strndup(a, name, parts.stem)) &&
           !(parts.clip_stem && has(u->stems, u->n_stems, arena_strndup(a, name, parts.clip_stem)));
}

static int list_folder(const struct used *u, const char *dir, struct arena *a, struct cache_stale *out,
                       struct cairn_error *err)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    const char *name;
    if (!l)
        return errno == ENOENT ? 0 : cairn_fail_errno(err, "list %s", dir);
    while ((name = os_list_next(l))) {
        struct os_info info;
        if (!is_stale(u, name, a))
            continue;
        const char *path = arena_printf(a, "%s/%s", dir, name);
        if (os_info(path, &info) || info.kind != OS_KIND_FILE || !cache_is_wan(path))
            continue;
        *ARENA_PUSH(a, out->paths, out->n) = path;
        out->bytes += info.size;
    }
    return errno ? cairn_fail_errno(err, "list %s", dir) : 0;
}

int cache_stale_list(const struct cache_job *job, struct arena *a, struct cache_stale *out,
                     struct cairn_error *err)
{
    struct used u = { 0 };
    *out = (struct cache_stale){ 0 };
    list_used(job, a, &u);
    for (size_t i = 0; i < u.n_dirs; i++)
        if (list_folder(&u, u.dirs[i], a, out, err))
            return -1;
    out->n = sort(out->paths, out->n);
    return 0;
}

int cache_stale_remove(struct cache_stale *s, struct cairn_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        if (os_remove(s->paths[i]) && errno != ENOENT)
            return cairn_fail_errno(err, "remove %s", s->paths[i]);
        s->removed++;
    }
    return 0;
}
