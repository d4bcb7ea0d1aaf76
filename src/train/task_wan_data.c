/* SPDX-License-Identifier: Apache-2.0
 * The caches of a Wan job: which items can be trained on, and which are held out. */
#include "base/int.h"
#include "base/str.h"
#include "base/thread.h"
#include "os/info.h"
#include "train/task_wan_inside.h"
#include "train/wan_cache.h"
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

static void say_left_out(const struct wan_job *t, struct left_out *l, const char *what, const char *who_lists)
{
    if (l->n > VIDEO_CACHE_LISTED)
        str_addf(&l->names, "\n  and %zu more%s", l->n - VIDEO_CACHE_LISTED, who_lists);
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
    say_left_out(t, &damaged, "cannot be used:", "");
    if (r)
        return -1;
    t->val_items = split->val;
    t->n_val = split->n_val;
    if (split->n_train)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "no item is left to train on");
    cairn_hint(
        err,
        "`cairn cache --look` shows what is wrong with each file; `cairn cache --again` makes the caches anew");
    return wan_cache_wrap(config_of(t), err);
}

/* ---- caches that are made first ---- */

static void say_problems(const struct wan_job *t, const struct dataset *d, const struct cache_result *r)
{
    struct left_out skipped = { 0 };
    for (size_t i = 0; i < dataset_count(d); i++) {
        const struct dataset_item *item = dataset_item(d, i);
        if (item->problem)
            leave_out(&skipped, arena_printf(t->task.env.arena, "%s: %s", item->path, item->why));
    }
    for (size_t i = 0; i < r->n_failures; i++)
        leave_out(&skipped,
                  arena_printf(t->task.env.arena, "%s: %s", r->failures[i].path, r->failures[i].why));
    say_left_out(t, &skipped, "cannot be cached:", "; `cairn cache` lists them");
}

static int make_caches(struct wan_job *t, const struct dataset *d, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    struct cache_job job;
    CLEANUP(cache_result_release) struct cache_result result = { 0 };
    if (wan_cache_job(config_of(t), d, e->nn->g, e->arena, &job, err))
        return -1;
    job.budget = e->budget_bytes;
    job.host_budget = e->host_bytes;
    job.talk = e->talk;
    job.sink = e->sink;
    job.stop = e->stop;
    int r = cache_job_run(&job, &result, err);
    say_problems(t, d, &result);
    if (!r)
        message_say(&e->sink, "caches: %zu of latents and %zu of captions made, %zu and %zu were there",
                    result.latents.made, result.text.made, result.latents.current, result.text.current);
    return r;
}

/* For a plan the size of the largest bucket is enough. */
static int size_of_dataset(struct wan_job *t, const struct dataset *d, struct cairn_error *err)
{
    struct arena *a = t->task.env.arena;
    struct dataset_totals totals;
    struct dataset_bucket most = { 0 };
    if (dataset_check(d, err))
        return -1;
    dataset_total(d, a, &totals);
    for (size_t i = 0; i < totals.n_buckets; i++) {
        const struct dataset_bucket *b = &totals.bucket[i];
        if (b->width * b->height * b->frames > most.width * most.height * most.frames)
            most = *b;
    }
    t->keys.data.size = arena_printf(a, "%zux%zux%zu", most.width, most.height, most.frames);
    return wan_job_set_size(t, err);
}

/* The folders of caches: those of data.path, or those of its images and clips. */
static int cache_folders(struct wan_job *t, struct video_cache_options *o, struct cairn_error *err)
{
    CLEANUP(dataset_cleanup) struct dataset *d = NULL;
    o->paths = t->keys.data.path.item;
    o->n_paths = t->keys.data.path.n;
    if (!wan_cache_is_needed(config_of(t)))
        return 0;
    if (wan_cache_check(config_of(t), &o->needs, err) ||
        wan_cache_dataset(config_of(t), NULL, false, &d, err) || wan_cache_check_use(d, err) ||
        make_caches(t, d, err))
        return -1;
    wan_cache_list(d, t->task.env.arena, o);
    return 0;
}

static int plan_dataset(struct wan_job *t, struct cairn_error *err)
{
    CLEANUP(dataset_cleanup) struct dataset *d = NULL;
    struct video_needs needs = needs_of(t);
    return wan_cache_check(config_of(t), &needs, err) ||
                   wan_cache_dataset(config_of(t), NULL, false, &d, err) || wan_cache_check_use(d, err) ||
                   size_of_dataset(t, d, err)
               ? -1
               : 0;
}

/* ---- caches ---- */

static int open_empty_caption(struct wan_job *t, const struct video_cache_options *o, struct cairn_error *err)
{
    bool is_used = t->keys.data.caption_dropout > 0;
    for (size_t i = 0; i < video_cache_count(t->cache); i++)
        is_used = is_used || video_cache_item(t->cache, i)->use.caption_dropout > 0;
    if (!is_used)
        return 0;
    for (size_t i = 0; i < o->n_paths; i++) {
        const char *path = cache_prompt_path(t->task.env.arena, o->paths[i], "");
        if (!os_is_file(path))
            continue;
        t->empty.text_path = path;
        return video_item_open_text(&t->empty, &o->needs, err);
    }
    cairn_fail(err, CAIRN_EUSAGE, "captions are to be dropped, but the empty caption is not cached");
    return cairn_hint(err, "let `cairn cache` make the caches, or set data.caption_dropout to 0");
}

/* The order of the items that are, or are not, of regularisation sets; none: out stays NULL. */
static int open_order(const struct wan_job *t, const struct validation_split *split, bool regularisation,
                      struct batches **out, struct cairn_error *err)
{
    const struct job_config *c = config_of(t);
    size_t n_items = 0, *items = NULL;
    for (size_t i = 0; i < split->n_train; i++) {
        const struct video_use *use = &video_cache_item(t->cache, split->train[i])->use;
        for (size_t k = 0; k < use->repeats && use->is_regularisation == regularisation; k++)
            *ARENA_PUSH(t->task.env.arena, items, n_items) = split->train[i];
    }
    struct batches_options b = {
        .cache = t->cache,
        .items = items,
        .n_items = n_items,
        .batch = (size_t)c->train.batch,
        .each = (size_t)c->train.accumulate,
        .seed = (uint64_t)c->train.seed,
    };
    return n_items ? batches_open(out, &b, err) : 0;
}

static int open_batches(struct wan_job *t, const struct validation_split *split, struct cairn_error *err)
{
    if (open_order(t, split, false, &t->batches, err) || open_order(t, split, true, &t->regularisation, err))
        return -1;
    if (t->batches)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "data.path: all items are of regularisation sets (is_reg)");
    return cairn_hint(err, "a job needs a dataset without is_reg");
}

static int open_caches(struct wan_job *t, struct cairn_error *err)
{
    struct video_cache_options o = { .needs = needs_of(t), .folder = config_of(t)->folder };
    struct validation_split split;
    if (cache_folders(t, &o, err))
        return -1;
    if (video_cache_open(&t->cache, &o, err))
        return wan_cache_wrap(config_of(t), err);
    t->samples.dirs = o.paths;
    t->samples.n_dirs = o.n_paths;
    if (open_empty_caption(t, &o, err))
        return -1;
    const struct video_cache_info *info = video_cache_info(t->cache);
    say_skipped(t, &info->without_text, "without a cached caption");
    say_skipped(t, &info->other_model, "of other models");
    say_skipped(t, &info->misnamed, "whose names are not musubi-tuner's");
    say_skipped(t, &info->unwanted, "of files or sizes that the dataset does not have");
    if (choose_items(t, &split, err))
        return -1;
    return open_batches(t, &split, err);
}

/* A plan takes the size from the caches, or where there are none, from data.size, data.resolution and data.frames.  That
 * of the command line comes first. */
int wan_job_open_data(struct wan_job *t, struct cairn_error *err)
{
    const struct job_config *c = config_of(t);
    const char *place = config_place(c, "data.size"), *from = "data.size";
    if (!t->task.env.only_plan)
        return open_caches(t, err);
    if (t->keys.data.size[0] && place && str_starts(place, "--"))
        return wan_job_set_size(t, err);
    struct cairn_error why = { 0 };
    bool media = wan_cache_is_needed(c);
    if (media ? !plan_dataset(t, &why) : !open_caches(t, &why))
        return 0;
    if (media && (!t->keys.data.size[0] || (why.code != CAIRN_EIO && why.code != CAIRN_ELACK))) {
        *err = why;
        return -1;
    }
    video_cache_close(t->cache);
    t->cache = NULL;
    if (!t->keys.data.size[0] && (config_is_set(c, "data.resolution") || config_is_set(c, "data.frames"))) {
        from = "data.resolution and data.frames";
        if (wan_cache_largest(c, t->task.env.arena, &t->keys.data.size, err))
            return -1;
    }
    if (t->keys.data.size[0] && t->keys.data.path.n)
        message_say(&t->task.env.sink, "warning: %s; the plan is for %s", why.msg, from);
    if (t->keys.data.size[0])
        return wan_job_set_size(t, err);
    *err = why;
    return err->hint[0] ? -1
                        : cairn_hint(err, "to plan without caches, set data.size to WIDTHxHEIGHTxFRAMES");
}
