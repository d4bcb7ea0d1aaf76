/* SPDX-License-Identifier: Apache-2.0 */
#include "report/dataset.h"

static void add_texts(struct json *o, const char *key, const char *const *text, size_t n)
{
    struct json *list = json_add_array(o, key);
    for (size_t i = 0; i < n; i++)
        json_add_text(list, NULL, text[i]);
}

static void add_media(struct json *o, const struct media_info *m)
{
    if (!m->width) {
        json_add_null(o, "width");
        json_add_null(o, "height");
        json_add_null(o, "source_frames");
        json_add_null(o, "fps");
        return;
    }
    json_add_int(o, "width", (int64_t)m->width);
    json_add_int(o, "height", (int64_t)m->height);
    json_add_int(o, "source_frames", (int64_t)m->frames);
    if (m->fps > 0)
        json_add_real(o, "fps", m->fps);
    else
        json_add_null(o, "fps");
}

static void add_size(struct json *o, const char *key, size_t width, size_t height, size_t frames)
{
    struct json *list = json_add_array(o, key);
    json_add_int(list, NULL, (int64_t)width);
    json_add_int(list, NULL, (int64_t)height);
    json_add_int(list, NULL, (int64_t)frames);
}

static void add_fit(struct json *o, const struct dataset_item *item)
{
    const struct picture_rect *c = &item->fit.crop;
    if (!c->width) {
        json_add_null(o, "bucket");
        json_add_null(o, "crop");
        return;
    }
    add_size(o, "bucket", item->bucket.width, item->bucket.height, item->n_frames);
    struct json *crop = json_add_object(o, "crop");
    json_add_int(crop, "x", (int64_t)c->x);
    json_add_int(crop, "y", (int64_t)c->y);
    json_add_int(crop, "width", (int64_t)c->width);
    json_add_int(crop, "height", (int64_t)c->height);
}

static void add_item(struct json *list, const struct dataset_item *item)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "file", item->path);
    add_media(o, &item->media);
    json_add_bool(o, "clip", item->is_clip);
    json_add_int(o, "start", (int64_t)item->start);
    json_add_int(o, "frames", (int64_t)item->n_frames);
    add_fit(o, item);
    json_add_text(o, "caption", item->caption);
    json_add_bool(o, "flip_x", item->flip_x);
    json_add_bool(o, "flip_y", item->flip_y);
    json_add_int(o, "repeats", (int64_t)item->block->repeats);
    json_add_text(o, "mask", item->mask_path);
    json_add_text(o, "control", item->control_path);
    json_add_text(o, "cache_directory", item->block->cache_directory);
    json_add_bool(o, "duplicate", item->is_duplicate);
    json_add_text(o, "problem", item->problem ? dataset_problem_name(item->problem) : NULL);
    json_add_text(o, "why", item->why);
    add_texts(o, "notes", item->notes, item->n_notes);
}

static void add_totals(struct json *top, const struct dataset *d)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct dataset_totals t;
    dataset_total(d, &a, &t);
    struct json *totals = json_add_object(top, "totals");
    json_add_int(totals, "files", (int64_t)t.files);
    json_add_int(totals, "items", (int64_t)t.items);
    json_add_int(totals, "usable", (int64_t)t.usable);
    json_add_int(totals, "samples_per_epoch", (int64_t)t.samples);
    json_add_int(totals, "captions_missing", (int64_t)t.captions_missing);
    json_add_int(totals, "duplicates", (int64_t)t.duplicates);
    struct json *problems = json_add_object(totals, "problems");
    for (int i = DATASET_FINE + 1; i < DATASET_PROBLEMS; i++)
        json_add_int(problems, dataset_problem_name((enum dataset_problem)i), (int64_t)t.by_problem[i]);
    struct json *buckets = json_add_array(top, "buckets");
    for (size_t i = 0; i < t.n_buckets; i++) {
        struct json *o = json_add_object(buckets, NULL);
        add_size(o, "bucket", t.bucket[i].width, t.bucket[i].height, t.bucket[i].frames);
        json_add_int(o, "items", (int64_t)t.bucket[i].items);
    }
}

struct json *report_dataset(const struct dataset *d, const char *sheet)
{
    struct json *top = json_new_object();
    const char *const *notes;
    size_t n = dataset_notes(d, &notes);
    json_add_int(top, "schema", 1);
    add_totals(top, d);
    struct json *items = json_add_array(top, "items");
    for (size_t i = 0; i < dataset_count(d); i++)
        add_item(items, dataset_item(d, i));
    add_texts(top, "notes", notes, n);
    json_add_text(top, "sheet", sheet);
    return top;
}
