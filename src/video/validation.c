/* SPDX-License-Identifier: Apache-2.0 */
#include "video/validation.h"

#include "base/hash.h"
#include "os/path.h"
#include <stdlib.h>
#include <string.h>

struct ranked {
    uint64_t hash; /* of the stem: the name of the text's file */
    size_t item;
    bool val;
};

static int by_hash(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static int by_item(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* How many of the ranked items are held out; stems are not divided. */
static size_t count_held_out(const struct ranked *r, size_t n, double share)
{
    size_t held = 0, stem = 0; /* items of the stems so far */
    if (!n || !(share > 0))
        return 0;
    for (size_t i = 0; i < n; i = stem) {
        while (stem < n && r[stem].hash == r[i].hash)
            stem++;
        bool wanted = (double)r[i].hash < share * 0x1p64;
        if (stem == n || (!wanted && held))
            break;
        held = stem;
        if (!wanted)
            break;
    }
    return held;
}

void validation_split_make(const struct video_cache *c, double share, struct arena *a,
                           struct validation_split *out)
{
    size_t n = video_cache_count(c);
    struct ranked *r = ARENA_NEW(a, struct ranked, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *stem = path_name(video_cache_item(c, i)->text_path);
        r[i] = (struct ranked){ .hash = hash_bytes(stem, strlen(stem)), .item = i };
    }
    qsort(r, n, sizeof(*r), by_hash);
    size_t held = count_held_out(r, n, share);
    for (size_t i = 0; i < held; i++)
        r[i].val = true;
    qsort(r, n, sizeof(*r), by_item);
    *out =
        (struct validation_split){ .train = ARENA_NEW(a, size_t, n + 1), .val = ARENA_NEW(a, size_t, n + 1) };
    for (size_t i = 0; i < n; i++)
        if (r[i].val)
            out->val[out->n_val++] = i;
        else
            out->train[out->n_train++] = i;
}
