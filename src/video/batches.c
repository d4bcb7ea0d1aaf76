/* SPDX-License-Identifier: Apache-2.0 */
#include "video/batches.h"

#include "base/int.h"
#include "base/shuffle.h"
#include <stdlib.h>
#include <string.h>

/* Items that may be in one batch. */
struct group {
    size_t first, n;  /* in items */
    uint64_t batches; /* number of batches of the groups before */
};

struct batches {
    size_t batch, each;
    uint64_t seed, per_epoch;
    size_t *items; /* group after group */
    struct group *groups;
    size_t n_groups;
};

struct sized {
    const struct video_item *item;
    size_t index;
};

/* Items of one batch have one size, and all or none of them a clean first frame. */
static int compare(const struct video_item *x, const struct video_item *y)
{
    int order = video_item_compare_size(x, y);
    return order ? order : x->use.clean_first_frame - y->use.clean_first_frame;
}

static int by_size(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    int order = compare(x->item, y->item);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static void fill_groups(struct batches *b, const struct sized *sorted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        b->items[i] = sorted[i].index;
        if (!i || compare(sorted[i - 1].item, sorted[i].item))
            b->groups[b->n_groups++] = (struct group){ .first = i };
        b->groups[b->n_groups - 1].n++;
    }
    for (size_t g = 0; g < b->n_groups; g++) {
        b->groups[g].batches = b->per_epoch;
        b->per_epoch += div_up(b->groups[g].n, b->batch);
    }
}

int batches_open(struct batches **out, const struct batches_options *o, struct cairn_error *err)
{
    if (!o->n_items || !o->batch || !o->each)
        return cairn_fail(err, CAIRN_EUSAGE, "%zu items, batches of %zu, %zu per step: none may be 0",
                          o->n_items, o->batch, o->each);
    CLEANUP(batches_cleanup) struct batches *b = calloc(1, sizeof(*b));
    CLEANUP(mem_free) struct sized *sorted = calloc(o->n_items, sizeof(*sorted));
    if (b) {
        b->items = calloc(o->n_items, sizeof(*b->items));
        b->groups = calloc(o->n_items, sizeof(*b->groups));
    }
    if (!b || !sorted || !b->items || !b->groups)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the order of %zu items", o->n_items);
    b->batch = o->batch;
    b->each = o->each;
    b->seed = o->seed;
    for (size_t i = 0; i < o->n_items; i++)
        sorted[i] = (struct sized){ video_cache_item(o->cache, o->items[i]), o->items[i] };
    qsort(sorted, o->n_items, sizeof(*sorted), by_size);
    fill_groups(b, sorted, o->n_items);
    *out = TAKE(b);
    return 0;
}

void batches_close(struct batches *b)
{
    if (!b)
        return;
    free(b->items);
    free(b->groups);
    free(b);
}

void batches_cleanup(struct batches **b)
{
    batches_close(*b);
}

uint64_t batches_per_epoch(const struct batches *b)
{
    return b->per_epoch;
}

size_t batches_sizes(const struct batches *b)
{
    return b->n_groups;
}

static size_t group_of(const struct batches *b, uint64_t batch)
{
    size_t low = 0, high = b->n_groups;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (b->groups[middle].batches <= batch)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct batches_sample batches_at(const struct batches *b, uint64_t step, size_t k)
{
    uint64_t number = step * b->each + k / b->batch;
    struct batches_sample s = { .epoch = number / b->per_epoch };
    uint64_t place = number % b->per_epoch, key = shuffle_key(b->seed, s.epoch);
    uint64_t batch = shuffle(place, b->per_epoch, key);
    size_t g = group_of(b, batch);
    const struct group *group = &b->groups[g];
    uint64_t at = ((batch - group->batches) * b->batch + k % b->batch) % group->n;
    s.position = place * b->batch + k % b->batch;
    s.item = b->items[group->first + shuffle(at, group->n, shuffle_key(key, g + 1))];
    return s;
}
