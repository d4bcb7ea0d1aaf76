/* SPDX-License-Identifier: Apache-2.0 */
#include "media/dataset.h"

#include "base/int.h"
#include "base/str.h"
#include "media/captions.h"
#include "media/dataset_parts.h"
#include "media/dataset_probe.h"
#include "os/path.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct dataset {
    struct arena arena;
    struct dataset_probed probed;
    struct dataset_sources sources;
    struct dataset_item *item;
    size_t n, files;
};

/* ---- making items ---- */

struct maker {
    struct dataset *d;
    struct arena *a;
    const struct dataset_source *s;
    const struct dataset_file *f;
    struct dataset_item item; /* what the items of a file have in common */
    const char **notes;
    size_t n_notes;
};

static void note(struct maker *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct maker *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *ARENA_PUSH(m->a, m->notes, m->n_notes) = arena_vprintf(m->a, fmt, ap);
    va_end(ap);
}

/* The first problem stays. */
static void set_problem(struct dataset_item *item, enum dataset_problem problem, const char *why)
{
    if (item->problem)
        return;
    item->problem = problem;
    item->why = why;
}

static const char *caption_path(const struct maker *m)
{
    CLEANUP(mem_free) char *folder = path_folder(m->f->path);
    return arena_printf(m->a, "%s/%s%s", folder, m->f->stem, m->s->caption_extension);
}

static void find_caption(struct maker *m)
{
    const struct dataset_source *s = m->s;
    const char *text = m->f->caption, *why = "the list has no caption for it";
    enum caption_state state = CAPTION_MISSING;
    if (m->f->is_listed && text) {
        text = caption_strip(text, m->a);
        state = *text ? CAPTION_OK : CAPTION_EMPTY;
        why = "its caption is empty";
    } else if (!m->f->is_listed && s->caption_extension) {
        state = caption_read(caption_path(m), m->a, &text);
        why = state == CAPTION_MISSING ? arena_printf(m->a, "no caption: %s does not exist", caption_path(m))
                                       : text;
    } else if (!m->f->is_listed) {
        why = "no caption: caption_extension is not set";
    }
    m->item.has_caption = state == CAPTION_OK;
    if (state == CAPTION_UNREADABLE) {
        set_problem(&m->item, DATASET_CAPTION, why);
        return;
    }
    if (state != CAPTION_OK && !s->caption_default && !s->caption_optional) {
        set_problem(&m->item, DATASET_CAPTION, why);
        return;
    }
    if (state != CAPTION_OK) {
        note(m, "no caption: %s", s->caption_default ? "using the default" : "using the empty prompt");
        text = s->caption_default ? caption_strip(s->caption_default, m->a) : "";
    }
    m->item.caption = s->has_trigger ? caption_add_trigger(text, s->trigger, m->a) : text;
}

static void find_partners(struct maker *m)
{
    const struct dataset_source *s = m->s;
    const char *name = path_name(m->f->path);
    if (m->f->control)
        m->item.control_path = m->f->control;
    else if (s->control_folder)
        m->item.control_path = dataset_find_partner(s->control_folder, name, m->f->stem, m->f->is_clip, m->a);
    if (s->control_folder && !m->item.control_path)
        set_problem(&m->item, DATASET_CONTROL,
                    arena_printf(m->a, "no control file of this name in %s", s->control_folder));
    if (s->mask_folder)
        m->item.mask_path = dataset_find_partner(s->mask_folder, name, m->f->stem, false, m->a);
    if (s->mask_folder && !m->item.mask_path)
        note(m, "no mask of this name in %s", s->mask_folder);
}

static struct bucket_size choose_bucket(const struct dataset_source *s, const struct dataset_file *f)
{
    size_t step = s->buckets.step;
    if (s->square)
        return (struct bucket_size){ s->side / step * step, s->side / step * step };
    if (s->by_area)
        return bucket_of_area(f->media.width, f->media.height, s->side, step);
    return bucket_set_choose(f->is_clip ? &s->clip_buckets : &s->buckets, f->media.width, f->media.height);
}

static void find_bucket(struct maker *m)
{
    const struct media_info *info = &m->f->media;
    struct dataset_item *item = &m->item;
    struct bucket_size b = item->bucket = choose_bucket(m->s, m->f);
    size_t step = m->s->buckets.step;
    struct cairn_error err = { 0 };
    if (!b.width || !b.height) {
        set_problem(item, DATASET_TOO_SMALL,
                    arena_printf(m->a, "%zu x %zu pixels are too few: at least %zu x %zu", info->width,
                                 info->height, step, step));
        return;
    }
    if (picture_fit_plan(&item->fit, info->width, info->height, b.width, b.height, &err)) {
        set_problem(item, DATASET_TOO_SMALL, arena_strdup(m->a, err.msg));
        return;
    }
    if (b.width % step || b.height % step)
        set_problem(
            item, DATASET_TOO_SMALL,
            arena_printf(m->a,
                         "%zu x %zu is not a multiple of %zu pixels: change the resolution, or use buckets",
                         b.width, b.height, step));
    double scale = (double)item->fit.scaled_width / (double)info->width;
    if (scale > 1.5)
        note(m, "enlarged %.1f times", scale);
}

static void note_media(struct maker *m)
{
    const struct media_info *info = &m->f->media;
    const struct dataset_source *s = m->s;
    if (m->f->same_as)
        note(m, "the same bytes as %s", m->f->same_as);
    if (info->cut)
        note(m, "damaged or incomplete: %zu frames can be read", info->frames);
    if (m->f->is_clip && info->variable_rate)
        note(m, "variable frame rate, %.3g per second on average", info->fps);
    if (m->f->is_clip && s->fps > 0 && s->source_fps <= 0 && info->fps <= 0)
        note(m, "unknown frame rate: using every frame");
    else if (m->f->is_clip && s->fps > 0 && s->source_fps <= 0 && info->fps < s->fps * 0.95)
        note(m, "%.3g frames per second, below %.3g", info->fps, s->fps);
    if (info->has_alpha && !s->block.alpha_mask)
        note(m, "transparency is dropped");
    if (info->colour_note)
        note(m, "%s", info->colour_note);
}

static void add_item(struct maker *m, const struct dataset_piece *piece, bool flip_x, bool flip_y)
{
    static const char *const suffix[] = { "", "_flip_x", "_flip_y", "_flip_xy" };
    struct dataset_item *item = ARENA_PUSH(m->a, m->d->item, m->d->n);
    *item = m->item;
    item->start = piece->start;
    item->frames = piece->frames;
    item->n_frames = piece->n;
    item->flip_x = flip_x;
    item->flip_y = flip_y;
    item->cache_stem = arena_printf(m->a, "%s%s", m->f->stem, suffix[flip_x + 2 * flip_y]);
    item->notes = m->notes;
    item->n_notes = m->n_notes;
}

static void note_missing_counts(struct maker *m, const struct dataset_piece *piece, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = at_least(most, piece[i].n);
    for (size_t i = 0; m->s->extract <= DATASET_UNIFORM && i < m->s->n_frames; i++)
        if (m->s->frames[i] > most)
            note(m, "too short for %zu frames", m->s->frames[i]);
}

static size_t find_pieces(struct maker *m, struct dataset_piece **piece)
{
    static const size_t first_frame[] = { 0 };
    static struct dataset_piece still = { 0, 1, first_frame };
    size_t n = 1, needed = 1;
    *piece = &still;
    if (m->f->is_clip)
        n = dataset_cut(m->s, &m->f->media, m->a, piece, &needed);
    if (!n)
        set_problem(&m->item, DATASET_TOO_SHORT,
                    arena_printf(m->a, "too short: %zu frames, at least %zu are needed%s", m->f->media.frames,
                                 needed, m->s->fps > 0 ? " after those that the rate drops" : ""));
    else if (m->f->is_clip)
        note_missing_counts(m, *piece, n);
    return n;
}

static void make_items(struct dataset *d, const struct dataset_source *s, const struct dataset_file *f)
{
    static struct dataset_piece none;
    struct maker m = { .d = d, .a = &d->arena, .s = s, .f = f };
    struct dataset_piece *piece = &none;
    size_t n = 1;
    m.item = (struct dataset_item){ .block = &s->block,
                                    .path = f->path,
                                    .stem = f->stem,
                                    .media = f->media,
                                    .is_clip = f->is_clip,
                                    .is_duplicate = f->same_as };
    if (f->broken) {
        set_problem(&m.item, DATASET_UNREADABLE, f->broken);
        find_caption(&m);
    } else {
        note_media(&m);
        find_bucket(&m);
        n = find_pieces(&m, &piece);
        find_caption(&m);
        find_partners(&m);
        m.item.name_size =
            f->is_clip ? m.item.bucket : (struct bucket_size){ f->media.width, f->media.height };
    }
    if (!n) {
        piece = &none;
        n = 1;
    }
    for (int flips = 0; flips < 4; flips++) {
        bool x = flips & 1, y = flips & 2;
        for (size_t i = 0; (!x || s->flip_x) && (!y || s->flip_y) && i < n; i++)
            add_item(&m, &piece[i], x, y);
    }
}

/* ---- names that clash ---- */

/* Also orders the items of one text cache by their captions. */
static int by_text(const void *a, const void *b)
{
    const struct dataset_item *p = *(struct dataset_item *const *)a, *q = *(struct dataset_item *const *)b;
    int order = strcmp(p->block->cache_directory, q->block->cache_directory);
    order = order ? order : strcmp(p->cache_stem, q->cache_stem);
    return order ? order : strcmp(p->caption, q->caption);
}

static int by_latents(const void *a, const void *b)
{
    const struct dataset_item *p = *(struct dataset_item *const *)a, *q = *(struct dataset_item *const *)b;
    int order = strcmp(p->block->cache_directory, q->block->cache_directory);
    order = order ? order : strcmp(p->cache_stem, q->cache_stem);
    const size_t ours[] = { p->is_clip, p->start, p->n_frames, p->name_size.width, p->name_size.height };
    const size_t theirs[] = { q->is_clip, q->start, q->n_frames, q->name_size.width, q->name_size.height };
    /* Start and frames are in the names of clips only. */
    for (size_t i = 0; !order && i < ARRAY_LEN(ours); i++)
        if (i == 0 || i > 2 || p->is_clip)
            order = (ours[i] > theirs[i]) - (ours[i] < theirs[i]);
    return order;
}

static bool same_stem(const struct dataset_item *p, const struct dataset_item *q)
{
    return !strcmp(p->block->cache_directory, q->block->cache_directory) &&
           !strcmp(p->cache_stem, q->cache_stem);
}

static void mark_run(struct dataset *d, struct dataset_item **item, size_t n, const char *what)
{
    for (size_t i = 0; n > 1 && i < n; i++)
        set_problem(item[i], DATASET_SAME_NAME,
                    arena_printf(&d->arena, "%s would have the same %s cache: rename one of them",
                                 item[i ? 0 : 1]->path, what));
}

static size_t usable_items(struct dataset *d, struct dataset_item **out)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (!d->item[i].problem)
            out[n++] = &d->item[i];
    return n;
}

static void find_clashes(struct dataset *d)
{
    struct dataset_item **item = ARENA_NEW(&d->arena, struct dataset_item *, d->n + 1);
    size_t n = usable_items(d, item);
    qsort(item, n, sizeof(struct dataset_item *), by_latents);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !by_latents(&item[i], &item[end]);)
            end++;
        mark_run(d, item + i, end - i, "latents");
    }
    n = usable_items(d, item);
    qsort(item, n, sizeof(struct dataset_item *), by_text);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && same_stem(item[i], item[end]);)
            end++;
        if (strcmp(item[i]->caption, item[end - 1]->caption)) {
            /* Name one with another caption. */
            struct dataset_item *last = item[end - 1];
            item[end - 1] = item[i + 1];
            item[i + 1] = last;
            mark_run(d, item + i, end - i, "text");
        }
    }
}

/* ---- opening ---- */

int dataset_open(struct dataset **out, const struct dataset_options *o, struct cairn_error *err)
{
    CLEANUP(dataset_cleanup) struct dataset *d = calloc(1, sizeof(*d));
    if (!d)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a dataset");
    if (dataset_read_config(o, &d->arena, &d->sources, err))
        return -1;
    struct dataset_files *files = ARENA_NEW(&d->arena, struct dataset_files, d->sources.n);
    for (size_t i = 0; i < d->sources.n; i++) {
        if (dataset_list_files(&d->sources.source[i], &d->arena, &files[i].file, &files[i].n, err))
            return -1;
        d->files += files[i].n;
        if (!files[i].n)
            dataset_note(&d->sources, &d->arena, "%s has no files", d->sources.source[i].block.name);
    }
    if (dataset_probe_files(&d->probed, o, files, d->sources.n, &d->arena, err))
        return -1;
    for (size_t i = 0; i < d->sources.n; i++)
        for (size_t k = 0; k < files[i].n; k++)
            make_items(d, &d->sources.source[i], &files[i].file[k]);
    find_clashes(d);
    *out = TAKE(d);
    return 0;
}

void dataset_close(struct dataset *d)
{
    if (!d)
        return;
    dataset_probed_release(&d->probed);
    arena_release(&d->arena);
    free(d);
}

void dataset_cleanup(struct dataset **d)
{
    dataset_close(*d);
}

size_t dataset_count(const struct dataset *d)
{
    return d->n;
}

const struct dataset_item *dataset_item(const struct dataset *d, size_t i)
{
    return &d->item[i];
}

size_t dataset_notes(const struct dataset *d, const char *const **notes)
{
    *notes = d->sources.notes;
    return d->sources.n_notes;
}

const char *dataset_why(struct arena *a, const char *path, const char *message)
{
    const char *at = strstr(message, path);
    if (!at)
        return arena_strdup(a, message);
    const char *after = at + strlen(path);
    if (at == message && str_starts(after, ": "))
        return arena_strdup(a, after + 2);
    return arena_printf(a, "%.*sit%s", (int)(at - message), message, after);
}

/* A folder of clips where images are wanted, or the other way round, is a mistake of its own. */
static int fail_empty(const struct dataset_source *s, size_t n_sources, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct dataset_source both = *s;
    struct dataset_file *files;
    struct cairn_error ignored = { 0 };
    size_t n = 0;
    bool images = s->find & DATASET_PICTURES, clips = s->find & DATASET_CLIPS;
    cairn_fail(err, CAIRN_EFORMAT, "no %s in %s%s",
               !clips   ? "images"
               : images ? "images or clips"
                        : "clips",
               s->block.name, n_sources > 1 ? ", and none in the others" : "");
    both.find |= DATASET_PICTURES | DATASET_CLIPS;
    if (!s->list && !(images && clips) && !dataset_list_files(&both, &a, &files, &n, &ignored) && n)
        return s->by_area ? cairn_hint(err, "to train on its clips, set num_frames above 1, such as to 81")
                          : cairn_hint(err, images ? "it has clips: set video_directory instead"
                                                   : "it has images: set image_directory instead");
    return cairn_hint(err, "name the folder that has them itself%s",
                      s->find & DATASET_SUBFOLDERS ? "" : ": subfolders are not searched");
}

int dataset_check(const struct dataset *d, struct cairn_error *err)
{
    for (size_t i = 0; i < d->n; i++)
        if (!d->item[i].problem)
            return 0;
    const struct dataset_source *first = &d->sources.source[0];
    if (!d->n) {
        fail_empty(first, d->sources.n, err);
    } else {
        cairn_fail(err, CAIRN_EFORMAT, "none of %zu items can be used; %s: %s", d->n, d->item[0].path,
                   d->item[0].why);
        if (d->item[0].problem == DATASET_CAPTION)
            cairn_hint(
                err,
                "write the caption of NAME.mp4 into NAME%s, or name the extension that the captions have",
                first->caption_extension ? first->caption_extension : ".txt");
        else
            cairn_hint(err, "`cairn cache --look` shows what is wrong with each file");
    }
    return first->place ? cairn_wrap(err, "%s", first->place) : -1;
}

/* ---- totals ---- */

const char *dataset_problem_name(enum dataset_problem p)
{
    static const char *const names[] = {
        [DATASET_FINE] = "none",           [DATASET_UNREADABLE] = "unreadable",
        [DATASET_CAPTION] = "caption",     [DATASET_TOO_SHORT] = "too-short",
        [DATASET_TOO_SMALL] = "too-small", [DATASET_SAME_NAME] = "same-name",
        [DATASET_CONTROL] = "control",
    };
    return names[p];
}

static int by_size(const void *a, const void *b)
{
    const struct dataset_bucket *p = a, *q = b;
    if (p->width != q->width)
        return p->width < q->width ? -1 : 1;
    if (p->height != q->height)
        return p->height < q->height ? -1 : 1;
    return (p->frames > q->frames) - (p->frames < q->frames);
}

static void count_bucket(struct dataset_totals *t, struct arena *a, const struct dataset_item *item)
{
    struct dataset_bucket key = { item->bucket.width, item->bucket.height, item->n_frames, 1 };
    for (size_t i = 0; i < t->n_buckets; i++)
        if (!by_size(&t->bucket[i], &key)) {
            t->bucket[i].items++;
            return;
        }
    *ARENA_PUSH(a, t->bucket, t->n_buckets) = key;
}

void dataset_total(const struct dataset *d, struct arena *a, struct dataset_totals *out)
{
    *out = (struct dataset_totals){ .files = d->files, .items = d->n };
    for (size_t i = 0; i < d->n; i++) {
        const struct dataset_item *item = &d->item[i];
        /* Items of a file follow one another. */
        bool is_first = !i || item->path != d->item[i - 1].path;
        out->by_problem[item->problem]++;
        out->captions_missing += is_first && !item->has_caption;
        out->duplicates += is_first && item->is_duplicate;
        if (item->problem)
            continue;
        out->usable++;
        out->samples += item->block->repeats;
        count_bucket(out, a, item);
    }
    if (out->n_buckets)
        qsort(out->bucket, out->n_buckets, sizeof(*out->bucket), by_size);
}
