/* SPDX-License-Identifier: Apache-2.0
 * The caches of a Wan job: which items can be trained on, and which are held out. */
#include "base/int.h"
#include "base/str.h"
#include "base/thread.h"
#include "train/task_wan_inside.h"
#include "video/validation.h"
#include <stdlib.h>

static const struct job_config *config_of(const struct wan_job *t)
{
    return t->task.env.config;
}

/* The first names of what was left out, and how many there were. */
struct left_out {
    size_t n;
    struct str names;
};

static void leave_out(struct left_out *l, const char *what)
{
    if (l->n++ < VIDEO_CACHE_LISTED)
        str_addf(&l->names, "\n  %s", what);
}

static void say_left_out(const struct wan_job *t, struct left_out *l, const char *what)
{
    if (l->n)
        message_say(&t->task.env.sink, "%zu item%s %s%s", l->n, l->n == 1 ? "" : "s", what, l->names.s);
    str_release(&l->names);
}

static void say_skipped(const struct wan_job *t, const struct video_cache_skipped *s, const char *what)
{
    CLEANUP(str_release) struct str names = { 0 };
    for (size_t i = 0; i < s->n && i < VIDEO_CACHE_LISTED; i++)
        str_addf(&names, "%s%s", i ? ", " : "", s->names[i]);
    if (s->n)
        message_say(&t->task.env.sink, "left out %zu %s: %s%s", s->n, what, names.s,
                    s->n > VIDEO_CACHE_LISTED ? ", ..." : "");
}

static struct video_needs needs_of(const struct wan_job *t)
{
    const struct wan_shape *s = &t->shape;
    return (struct video_needs){
        .channels = s->out,
        .text_dim = s->text_width,
        .image_channels = s->in - s->out,
        .clip = s->clip_width > 0,
        .clip_tokens = s->clip_width ? s->clip_rows : 0,
        .clip_dim = s->clip_width,
    };
}

static void count_item(struct wan_job *t, const struct video_item *item)
{
    size_t cells = item->frames * item->height * item->width;
    *(item->is_clip ? &t->clips : &t->images) += 1;
    if (cells <= t->cells)
        return;
    t->cells = cells;
    t->task.extent = cells / WAN_PATCH;
    t->largest = wan_pixels_of(&t->shape, item->width, item->height, item->frames);
}

struct checking {
    const struct wan_job *t;
    const size_t *items;
    struct video_needs needs;
    struct cairn_error *why; /* of each: what is wrong with it; CAIRN_OK: nothing */
};

/* Reads an item once, but not for a plan. */
static int check_item(void *context, size_t i, struct cairn_error *err)
{
    const struct checking *k = context;
    const struct task_env *e = &k->t->task.env;
    const struct video_item *item = video_cache_item(k->t->cache, k->items[i]);
    size_t most = k->t->shape.text_rows;
    if (e->stop && *e->stop)
        return cairn_fail(err, CAIRN_EIO, "interrupted");
    if (item->text_rows > most)
        cairn_fail(err, CAIRN_EFORMAT, "%s: the caption has %zu tokens, more than %zu", item->text_path,
                   item->text_rows, most);
    else if (e->only_plan || !video_item_check(item, &k->needs, err))
        return 0;
    if (err->code != CAIRN_EFORMAT)
        return -1;
    k->why[i] = *err;
    *err = (struct cairn_error){ 0 };
    return 0;
}

/* Leaves out items that are damaged. */
static int keep_usable(struct wan_job *t, size_t *items, size_t *n, struct left_out *damaged,
                       struct cairn_error *err)
{
    CLEANUP(mem_free) struct cairn_error *why = calloc(*n + 1, sizeof(*why));
    struct checking k = { t, items, needs_of(t), why };
    size_t kept = 0;
    if (!why)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to check %zu items", *n);
    if (parallel_for(*n, 0, check_item, &k, err))
        return -1;
    for (size_t i = 0; i < *n; i++) {
        if (why[i].code) {
            leave_out(damaged, why[i].msg);
            continue;
        }
        count_item(t, video_cache_item(t->cache, items[i]));
        items[kept++] = items[i];
    }
    *n = kept;
    return 0;
}

static int choose_items(struct wan_job *t, struct validation_split *split, struct cairn_error *err)
{
    const struct video_cache_skipped *unread = &video_cache_info(t->cache)->damaged;
    struct left_out damaged = { 0 };
    for (size_t i = 0; i < unread->n; i++)
        leave_out(&damaged, i < VIDEO_CACHE_LISTED ? unread->names[i] : "");
    validation_split_make(t->cache, t->keys.data.val_split, t->task.env.arena, split);
    int r = keep_usable(t, split->train, &split->n_train, &damaged, err) ||
            keep_usable(t, split->val, &split->n_val, &damaged, err);
    say_left_out(t, &damaged, "cannot be used:");
    if (r)
        return -1;
    t->val_items = split->val;
    t->n_val = split->n_val;
    if (split->n_train)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "data.path: no item is left to train on");
    return cairn_hint(err, "cache the latents and captions again");
}

static int open_caches(struct wan_job *t, struct cairn_error *err)
{
    const struct job_config *c = config_of(t);
    const struct wan_keys *k = &t->keys;
    struct video_cache_options o = { .paths = k->data.path.item,
                                     .n_paths = k->data.path.n,
                                     .needs = needs_of(t) };
    struct validation_split split;
    if (video_cache_open(&t->cache, &o, err))
        return cairn_wrap(err, "data.path");
    const struct video_cache_info *info = video_cache_info(t->cache);
    say_skipped(t, &info->without_text, "without a cached caption");
    say_skipped(t, &info->other_model, "of other models");
    say_skipped(t, &info->misnamed, "whose names are not musubi-tuner's");
    if (choose_items(t, &split, err))
        return -1;
    struct batches_options b = {
        .cache = t->cache,
        .items = split.train,
        .n_items = split.n_train,
        .batch = (size_t)c->train.batch,
        .each = (size_t)c->train.accumulate,
        .seed = (uint64_t)c->train.seed,
    };
    return batches_open(&t->batches, &b, err);
}

/* A plan takes the size from the caches, or where there are none, from data.size.  That of the command line comes first. */
int wan_job_open_data(struct wan_job *t, struct cairn_error *err)
{
    const char *size = t->keys.data.size, *place = config_place(config_of(t), "data.size");
    if (!t->task.env.only_plan)
        return open_caches(t, err);
    if (*size && place && str_starts(place, "--"))
        return wan_job_set_size(t, err);
    struct cairn_error why = { 0 };
    if (!open_caches(t, &why))
        return 0;
    video_cache_close(t->cache);
    t->cache = NULL;
    if (*size && t->keys.data.path.n)
        message_say(&t->task.env.sink, "warning: %s; the plan is for data.size", why.msg);
    if (*size)
        return wan_job_set_size(t, err);
    *err = why;
    return err->hint[0] ? -1
                        : cairn_hint(err, "to plan without caches, set data.size to WIDTHxHEIGHTxFRAMES");
}
