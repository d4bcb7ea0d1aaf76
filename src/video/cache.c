/* SPDX-License-Identifier: Apache-2.0 */
#include "video/cache.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "os/info.h"
#include "os/path.h"
#include "video/cache_name.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct video_cache {
    struct arena arena;
    struct video_item *items;
    size_t n;
    struct video_cache_info info;
};

/* A latents file, and the text files that it may go with. */
struct candidate {
    const char *name, *path;
    const char *order;            /* its path, or the part of it below the folder of the options */
    const char *text, *clip_text; /* paths; NULL: not there */
    struct video_use use;
};

struct listing {
    struct arena *arena;
    const struct video_cache_options *o;
    struct video_cache_info *info;
    struct candidate *list;
    size_t n, media;
    char **names; /* of the folder that is being listed, sorted */
    size_t n_names;
};

static void skip(struct video_cache_skipped *s, const char *name)
{
    if (s->n < VIDEO_CACHE_LISTED)
        s->names[s->n] = name;
    s->n++;
}

/* ---- a folder's names ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_media(const char *name)
{
    static const char extensions[] = "png jpg jpeg webp bmp avif mp4 webm avi mkv mov flv wmv m4v mpg mpeg";
    const char *dot = strrchr(name, '.');
    char low[8] = "";
    if (!dot || strlen(dot + 1) >= sizeof(low))
        return false;
    for (size_t i = 0; dot[1 + i]; i++)
        low[i] = (char)(dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? dot[1 + i] - 'A' + 'a' : dot[1 + i]);
    return *low && str_list_has(extensions, ' ', low);
}

static const char *text_path(const struct listing *l, const char *dir, const char *name, size_t stem)
{
    if (!stem)
        return NULL;
    char *file = arena_printf(l->arena, "%.*s_" CACHE_NAME_ARCH "_te.safetensors", (int)stem, name);
    return bsearch(&file, l->names, l->n_names, sizeof(*l->names), by_text)
               ? arena_printf(l->arena, "%s/%s", dir, file)
               : NULL;
}

static int by_wanted_path(const void *a, const void *b)
{
    const struct video_cache_wanted *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* 0 repeats: the dataset does not have the file. */
static struct video_use use_of(const struct video_cache_options *o, const char *path)
{
    const struct video_cache_wanted key = { .path = path }, *found;
    if (!o->wanted)
        return (struct video_use){ .repeats = 1, .weight = 1 };
    found = bsearch(&key, o->wanted, o->n_wanted, sizeof(key), by_wanted_path);
    return found ? found->use : (struct video_use){ 0 };
}

static void list_name(struct listing *l, const char *dir, const char *name)
{
    struct cache_name n;
    if (cache_name_parse(name, &n)) {
        if (!cache_name_is_wan(&n)) {
            skip(&l->info->other_model, name);
            return;
        }
        struct candidate c = { .name = name,
                               .path = arena_printf(l->arena, "%s/%s", dir, name),
                               .text = text_path(l, dir, name, n.stem),
                               .clip_text = text_path(l, dir, name, n.clip_stem) };
        size_t below = l->o->folder && str_starts(c.path, l->o->folder) ? strlen(l->o->folder) : 0;
        c.order = below && c.path[below] == '/' ? c.path + below + 1 : c.path;
        c.use = use_of(l->o, c.path);
        if (!c.use.repeats)
            skip(&l->info->unwanted, name);
        else if (c.text || c.clip_text)
            *ARENA_PUSH(l->arena, l->list, l->n) = c;
        else
            skip(&l->info->without_text, name);
    } else if (str_ends(name, "_" CACHE_NAME_ARCH ".safetensors")) {
        skip(&l->info->misnamed, name);
    } else {
        l->media += is_media(name);
    }
}

static int list_folder(struct listing *l, const char *path, struct cairn_error *err)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *dir = arena_strndup(l->arena, path, n);
    l->names = NULL;
    if (file_names(dir, l->arena, &l->names, &l->n_names)) {
        if (errno != ENOTDIR)
            return cairn_fail_errno(err, "read the folder %s", dir);
        cairn_fail(err, CAIRN_EUSAGE, "%s is not a folder", dir);
        return cairn_hint(err, "name the folder of the caches, or that of the images and clips");
    }
    if (l->n_names)
        qsort(l->names, l->n_names, sizeof(*l->names), by_text);
    for (size_t i = 0; i < l->n_names; i++)
        list_name(l, dir, l->names[i]);
    return 0;
}

/* ---- nothing was found ---- */

/* The first subfolder that has caches; NULL: none. */
static const char *subfolder_with_caches(const char *dir, struct arena *a)
{
    char **names, **inside;
    size_t n, m;
    struct cache_name parsed;
    if (file_names(dir, a, &names, &n))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *path = arena_printf(a, "%s/%s", dir, names[i]);
        if (!os_is_folder(path) || file_names(path, a, &inside, &m))
            continue;
        for (size_t k = 0; k < m; k++)
            if (cache_name_parse(inside[k], &parsed) && cache_name_is_wan(&parsed))
                return path;
    }
    return NULL;
}

static int no_items(const struct listing *l, const struct video_cache_options *o, struct cairn_error *err)
{
    const struct video_cache_info *i = l->info;
    const char *where = o->n_paths == 1 ? o->paths[0] : "the folders", *below = NULL;
    if (i->without_text.n) {
        cairn_fail(err, CAIRN_EUSAGE,
                   "%s: none of %zu latents caches has a text cache STEM_wan_te.safetensors", where,
                   i->without_text.n);
        return cairn_hint(err, "run `cairn cache`, or musubi-tuner's wan_cache_text_encoder_outputs.py");
    }
    cairn_fail(err, CAIRN_EUSAGE,
               l->media ? "%s: no caches STEM_WIDTHxHEIGHT_wan.safetensors"
                        : "%s: no images or clips, and no caches STEM_WIDTHxHEIGHT_wan.safetensors",
               where);
    for (size_t k = 0; k < o->n_paths && !below; k++)
        below = subfolder_with_caches(o->paths[k], l->arena);
    if (below)
        return cairn_hint(err, "subfolders are not searched; %s has caches", below);
    if (i->other_model.n)
        return cairn_hint(err, "%zu caches are for other models: %s", i->other_model.n,
                          i->other_model.names[0]);
    if (l->media)
        return cairn_hint(err,
                          "%zu images or clips are not cached: run `cairn cache`, or musubi-tuner's "
                          "wan_cache_latents.py and wan_cache_text_encoder_outputs.py",
                          l->media);
    return -1;
}

/* ---- headers ---- */

struct reading {
    const struct candidate *candidates;
    struct video_item *items;
    const struct video_needs *needs;
    struct cairn_error *why; /* of each item: why it is left out; CAIRN_OK: it is not */
};

static int open_one(const struct reading *r, size_t i, struct cairn_error *err)
{
    const struct candidate *c = &r->candidates[i];
    struct video_item *item = &r->items[i];
    item->path = c->path;
    if (video_item_open(item, r->needs, err))
        return -1;
    /* The file says whether it is of a clip; a text that is there decides where a file does not. */
    item->text_path = item->is_clip ? c->clip_text : c->text;
    if (!item->text_path)
        item->text_path = item->is_clip ? c->text : c->clip_text;
    return video_item_open_text(item, r->needs, err);
}

/* A damaged file costs its item, not the run. */
static int open_item(void *context, size_t i, struct cairn_error *err)
{
    const struct reading *r = context;
    if (!open_one(r, i, err))
        return 0;
    if (err->code != CAIRN_EFORMAT)
        return -1;
    r->why[i] = *err;
    *err = (struct cairn_error){ 0 };
    return 0;
}

static int drop_damaged(struct video_cache *c, const struct cairn_error *why, struct cairn_error *err)
{
    size_t all = c->n, first = all;
    c->n = 0;
    for (size_t i = 0; i < all; i++) {
        if (!why[i].code) {
            c->items[c->n++] = c->items[i];
            continue;
        }
        first = first == all ? i : first;
        skip(&c->info.damaged, arena_strdup(&c->arena, why[i].msg));
    }
    if (c->n)
        return 0;
    *err = why[first];
    return all > 1 ? cairn_wrap(err, "none of %zu caches can be used; the first", all) : -1;
}

static int by_path(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return strcmp(x->order, y->order);
}

static int read_headers(struct video_cache *c, struct listing *l, const struct video_needs *needs,
                        struct cairn_error *err)
{
    qsort(l->list, l->n, sizeof(*l->list), by_path);
    c->items = ARENA_NEW(&c->arena, struct video_item, l->n);
    c->n = l->n;
    for (size_t i = 0; i < l->n; i++) {
        c->items[i].name = arena_strndup(
            &c->arena, l->list[i].name, strlen(l->list[i].name) - strlen("_" CACHE_NAME_ARCH ".safetensors"));
        c->items[i].use = l->list[i].use;
    }
    CLEANUP(mem_free) struct cairn_error *why = calloc(l->n, sizeof(*why));
    if (!why)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu caches", l->n);
    struct reading r = { l->list, c->items, needs, why };
    return parallel_for(l->n, 0, open_item, &r, err) || drop_damaged(c, why, err) ? -1 : 0;
}

int video_cache_open(struct video_cache **out, const struct video_cache_options *o, struct cairn_error *err)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = calloc(1, sizeof(*c));
    if (!c)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the list of caches");
    struct listing l = { .arena = &c->arena, .o = o, .info = &c->info };
    if (!o->n_paths)
        return cairn_fail(err, CAIRN_EUSAGE, "no training data: data.path is empty");
    for (size_t i = 0; i < o->n_paths; i++)
        if (list_folder(&l, o->paths[i], err))
            return -1;
    if (!l.n)
        return no_items(&l, o, err);
    if (read_headers(c, &l, &o->needs, err))
        return -1;
    *out = TAKE(c);
    return 0;
}

void video_cache_close(struct video_cache *c)
{
    if (!c)
        return;
    arena_release(&c->arena);
    free(c);
}

void video_cache_cleanup(struct video_cache **c)
{
    video_cache_close(*c);
}

const struct video_cache_info *video_cache_info(const struct video_cache *c)
{
    return &c->info;
}

size_t video_cache_count(const struct video_cache *c)
{
    return c->n;
}

const struct video_item *video_cache_item(const struct video_cache *c, size_t i)
{
    return &c->items[i];
}
