/* SPDX-License-Identifier: Apache-2.0
 * The files of a dataset: those of a folder, or those that a list names. */
#include "media/dataset_parts.h"

#include "base/json.h"
#include "os/info.h"
#include "os/path.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const picture_extensions[] = { ".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avif" };
static const char *const clip_extensions[] = { ".mp4", ".webm", ".avi", ".mkv", ".mov",
                                               ".flv", ".wmv",  ".m4v", ".mpg", ".mpeg" };

static bool has_extension(const char *name, const char *const *list, size_t n)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && i < n; i++)
        if (!strcasecmp(dot, list[i]))
            return true;
    return false;
}

static bool is_picture(const char *name)
{
    return has_extension(name, picture_extensions, ARRAY_LEN(picture_extensions));
}

static bool is_clip(const char *name)
{
    return has_extension(name, clip_extensions, ARRAY_LEN(clip_extensions));
}

/* As Python's os.path.splitext: leading dots do not begin an extension. */
static char *stem_of(const char *path, struct arena *a)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *trimmed = arena_strndup(a, path, n);
    const char *name = path_name(trimmed), *dot = strrchr(name, '.'), *first = name + strspn(name, ".");
    return arena_strndup(a, name, dot && dot > first ? (size_t)(dot - name) : strlen(name));
}

struct lister {
    const struct dataset_source *s;
    struct arena *a;
    struct dataset_file *file;
    size_t n;
    struct cairn_error *err;
};

static struct dataset_file *add_file(struct lister *l, const char *path, bool clip)
{
    struct dataset_file *f = ARENA_PUSH(l->a, l->file, l->n);
    *f = (struct dataset_file){ .path = path, .stem = stem_of(path, l->a), .is_clip = clip };
    return f;
}

/* Links to files are followed, links to folders are not: they may form a loop. */
static int list_folder(struct lister *l, const char *folder, int depth)
{
    enum { DEEPEST = 64 };
    char **names;
    size_t n;
    if (file_names(folder, l->a, &names, &n))
        return cairn_fail_errno(l->err, "read the folder %s", folder);
    for (size_t i = 0; i < n; i++) {
        bool clip = is_clip(names[i]);
        if (names[i][0] == '.')
            continue;
        const char *path = arena_printf(l->a, "%s%s%s", folder, str_ends(folder, "/") ? "" : "/", names[i]);
        struct os_info info;
        bool wanted =
            (clip && l->s->find & DATASET_CLIPS) || (is_picture(names[i]) && l->s->find & DATASET_PICTURES);
        if (wanted && !os_is_folder(path))
            add_file(l, path, clip);
        if (l->s->find & DATASET_SUBFOLDERS && depth < DEEPEST && !os_info_link(path, &info) &&
            info.kind == OS_KIND_FOLDER && strcmp(names[i], "_controls") && list_folder(l, path, depth + 1))
            return -1;
    }
    return 0;
}

/* ---- lists ---- */

static void take_entry(struct lister *l, const char *path, const struct json *entry, bool clips)
{
    const char *control = json_text(json_get(entry, "control_path"));
    const char *resolved = dataset_resolve(path, l->s->list, l->s->relative_to, l->a);
    struct dataset_file *f = add_file(l, resolved, clips || is_clip(path));
    f->is_listed = true;
    f->caption = arena_strdup(l->a, json_text(json_get(entry, "caption")));
    if (!control)
        control = json_text(json_get(entry, "control_path_0"));
    if (control)
        f->control = dataset_resolve(control, l->s->list, l->s->relative_to, l->a);
}

static int take_line(struct lister *l, const char *line, size_t n, size_t number)
{
    CLEANUP(json_cleanup) struct json *entry = NULL;
    bool clips = !(l->s->find & DATASET_PICTURES);
    const char *key = clips ? "video_path" : "image_path";
    if (json_parse(line, n, &entry, l->err))
        return cairn_wrap(l->err, "%s:%zu", l->s->list, number);
    const char *path = json_text(json_get(entry, key));
    if (!path && !clips)
        path = json_text(json_get(entry, "image_path_0"));
    if (!path || !*path)
        return cairn_fail(l->err, CAIRN_EFORMAT, "%s:%zu: %s is missing", l->s->list, number, key);
    take_entry(l, path, entry, clips);
    return 0;
}

static int take_lines(struct lister *l, const char *text, size_t len)
{
    size_t number = 0;
    for (const char *at = text, *end = text + len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = stop ? (size_t)(stop - at) : (size_t)(end - at);
        number++;
        size_t blank = 0;
        while (blank < n && strchr(" \t\r", at[blank]) && at[blank])
            blank++;
        if (blank < n && take_line(l, at, n, number))
            return -1;
        at += n + 1;
    }
    return 0;
}

/* ai-toolkit: an object whose keys are the paths. */
static int take_object(struct lister *l, const char *text, size_t len)
{
    CLEANUP(json_cleanup) struct json *all = NULL;
    if (json_parse(text, len, &all, l->err))
        return cairn_wrap(l->err, "%s", l->s->list);
    if (!json_is_object(all))
        return cairn_fail(l->err, CAIRN_EFORMAT, "%s: expected an object of paths and captions", l->s->list);
    for (struct json_member m = json_first(all); m.key; m = json_next(all, m))
        if (is_picture(m.key) || (is_clip(m.key) && l->s->find & DATASET_CLIPS))
            take_entry(l, m.key, m.value, false);
    return 0;
}

static int list_listed(struct lister *l)
{
    enum { MOST = 1 << 28 };
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    if (file_read_whole(l->s->list, MOST, &text, &n, l->err))
        return -1;
    return l->s->by_area ? take_object(l, text, n) : take_lines(l, text, n);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct dataset_file *)a)->path, ((const struct dataset_file *)b)->path);
}

int dataset_list_files(const struct dataset_source *s, struct arena *a, struct dataset_file **files,
                       size_t *n, struct cairn_error *err)
{
    struct lister l = { .s = s, .a = a, .err = err };
    if (s->list ? list_listed(&l) : list_folder(&l, s->folder, 0)) {
        if (s->place)
            cairn_wrap(err, "%s", s->place);
        return s->place && !err->hint[0] ? cairn_hint(err, "set it to a folder of images and clips") : -1;
    }
    if (l.n)
        qsort(l.file, l.n, sizeof(*l.file), by_path);
    *files = l.file;
    *n = l.n;
    return 0;
}

const char *dataset_find_partner(const char *folder, const char *name, const char *stem, bool clips,
                                 struct arena *a)
{
    const char *path = arena_printf(a, "%s/%s", folder, name);
    if (os_is_file(path))
        return path;
    path = arena_printf(a, "%s/%s", folder, stem);
    if (clips && os_is_folder(path))
        return path;
    const char *const *list = clips ? clip_extensions : picture_extensions;
    size_t n = clips ? ARRAY_LEN(clip_extensions) : ARRAY_LEN(picture_extensions);
    for (size_t i = 0; i < 2 * n; i++) {
        char *extension = arena_strdup(a, list[i % n]);
        for (char *c = extension; i >= n && *c; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
        path = arena_printf(a, "%s/%s%s", folder, stem, extension);
        if (os_is_file(path))
            return path;
    }
    return NULL;
}
