/* SPDX-License-Identifier: Apache-2.0 */
#include "video/batches.h"

#include "caches.h"
#include "check.h"
#include "video/validation.h"

static struct tree dir;
static struct cairn_error err;

/* Sizes by number: 10 clips, 5 images, 1 wide image. */
enum { ITEMS = 16 };

static void put_item(const char *folder, int i)
{
    char name[128];
    snprintf(name, sizeof(name), "%s/n%02d_0640x0480_wan.safetensors", folder, i);
    cache_latents(tree_path(&dir, name), 16, i < 10 ? 2 : 1, 4, i < 15 ? 6 : 8);
    snprintf(name, sizeof(name), "%s/n%02d_wan_te.safetensors", folder, i);
    cache_text(tree_path(&dir, name), 2, 8);
}

static struct video_cache *open_cache(const char *folder)
{
    char path[PATH_MAX];
    const char *paths[] = { path };
    struct video_cache *c = NULL;
    snprintf(path, sizeof(path), "%s/%s", dir.dir, folder);
    if (video_cache_open(&c, &(struct video_cache_options){ .paths = paths, .n_paths = 1 }, &err))
        printf("# %s\n", err.msg);
    return c;
}

static struct batches *open_batches(const struct video_cache *c, size_t batch, size_t each, uint64_t seed)
{
    size_t items[ITEMS];
    struct batches *b = NULL;
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = i;
    struct batches_options o = { c, items, ITEMS, batch, each, seed };
    if (batches_open(&b, &o, &err))
        printf("# %s\n", err.msg);
    return b;
}

static bool same_size(const struct video_cache *c, size_t a, size_t b)
{
    const struct video_item *x = video_cache_item(c, a), *y = video_cache_item(c, b);
    return x->frames == y->frames && x->height == y->height && x->width == y->width;
}

/* Batches of 4: 3 of the clips, 2 of the images, 1 of the wide image. */
static void every_item_once_an_epoch(void)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_cache("items");
    CLEANUP(batches_cleanup) struct batches *b = c ? open_batches(c, 4, 1, 7) : NULL;
    REQUIRE(b);
    CHECK_INT(batches_per_epoch(b), 6);
    CHECK_INT(batches_sizes(b), 3);
    size_t order[3][24];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        int seen[ITEMS] = { 0 };
        for (uint64_t step = 0; step < 6; step++)
            for (size_t k = 0; k < 4; k++) {
                struct batches_sample s = batches_at(b, 6 * epoch + step, k);
                REQUIRE(s.item < ITEMS);
                seen[s.item]++;
                order[epoch][4 * step + k] = s.item;
                CHECK(same_size(c, s.item, batches_at(b, 6 * epoch + step, 0).item));
                CHECK_INT(s.epoch, epoch);
                CHECK_INT(s.position, 4 * step + k);
            }
        for (int i = 0; i < ITEMS; i++)
            CHECK(i == 15 ? seen[i] == 4 : seen[i] == 1 || seen[i] == 2);
    }
    CHECK(memcmp(order[0], order[1], sizeof(order[0])) && memcmp(order[1], order[2], sizeof(order[0])));
}

/* No item is twice in a batch if its size has enough. */
static void a_batch_has_different_items(void)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_cache("items");
    CLEANUP(batches_cleanup) struct batches *b = c ? open_batches(c, 3, 1, 8) : NULL;
    REQUIRE(b);
    for (uint64_t step = 0; step < 200; step++) {
        size_t x = batches_at(b, step, 0).item, y = batches_at(b, step, 1).item,
               z = batches_at(b, step, 2).item;
        CHECK(x == 15 ? y == 15 && z == 15 : x != y && y != z && x != z);
    }
}

static void accumulation_takes_the_same_batches(void)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_cache("items");
    CLEANUP(batches_cleanup) struct batches *one = c ? open_batches(c, 2, 1, 7) : NULL;
    CLEANUP(batches_cleanup) struct batches *three = c ? open_batches(c, 2, 3, 7) : NULL;
    CLEANUP(batches_cleanup) struct batches *other = c ? open_batches(c, 2, 1, 8) : NULL;
    REQUIRE(one && three && other);
    int differ = 0;
    for (uint64_t i = 0; i < 300; i++)
        for (size_t k = 0; k < 2; k++) {
            CHECK_INT(batches_at(one, i, k).item, batches_at(three, i / 3, i % 3 * 2 + k).item);
            differ += batches_at(one, i, k).item != batches_at(other, i, k).item;
        }
    CHECK(differ > 300);
}

/* Each item comes to the first place of an epoch about as often. */
static void the_order_is_random(void)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_cache("items");
    CLEANUP(batches_cleanup) struct batches *b = c ? open_batches(c, 1, 1, 1) : NULL;
    REQUIRE(b && batches_per_epoch(b) == ITEMS);
    int first[ITEMS] = { 0 };
    for (uint64_t epoch = 0; epoch < 1600; epoch++)
        first[batches_at(b, epoch * ITEMS, 0).item]++;
    for (int i = 0; i < ITEMS; i++)
        CHECK(first[i] > 50 && first[i] < 160);
}

static void nothing_to_train_on_is_an_error(void)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_cache("items");
    struct batches *b = NULL;
    size_t item = 0;
    REQUIRE(c);
    CHECK(batches_open(&b, &(struct batches_options){ c, &item, 0, 1, 1, 0 }, &err) == -1);
    CHECK(batches_open(&b, &(struct batches_options){ c, &item, 1, 0, 1, 0 }, &err) == -1);
    CHECK(!b);
}

/* ---- validation ---- */

static bool is_held_out(const struct validation_split *s, const struct video_cache *c, const char *name)
{
    for (size_t i = 0; i < s->n_val; i++)
        if (!strcmp(video_cache_item(c, s->val[i])->name, name))
            return true;
    return false;
}

static void a_split_is_stable_when_items_are_added(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(video_cache_cleanup) struct video_cache *few = open_cache("items");
    for (int i = 0; i < 40; i++)
        put_item("more", i);
    CLEANUP(video_cache_cleanup) struct video_cache *more = open_cache("more");
    struct validation_split s, m;
    REQUIRE(few && more);
    validation_split_make(few, 0.3, &a, &s);
    validation_split_make(more, 0.3, &a, &m);
    CHECK_INT(s.n_val + s.n_train, 16);
    CHECK(s.n_val >= 1 && s.n_val < 12 && m.n_val > s.n_val && m.n_val < 24);
    for (size_t i = 0; i < 16; i++) {
        const char *name = video_cache_item(few, i)->name;
        CHECK(is_held_out(&s, few, name) == is_held_out(&m, more, name));
    }
    for (size_t i = 1; i < m.n_train; i++)
        CHECK(m.train[i - 1] < m.train[i]);
    validation_split_make(more, 1e-9, &a, &m);
    CHECK_INT(m.n_val, 1);
    validation_split_make(more, 0.999999999, &a, &m);
    CHECK(m.n_train >= 1 && m.n_val >= 30);
    validation_split_make(more, 0, &a, &m);
    CHECK_INT(m.n_val, 0);
}

/* Crops of one video are all held out or all trained on, and a single video is trained on. */
static void crops_stay_together(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (int stem = 0; stem < 4; stem++) {
        char name[128];
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof(name), "crops%d/v%d_%05d-005_0640x0480_wan.safetensors", stem > 0, stem,
                     i * 5);
            cache_latents(tree_path(&dir, name), 16, 2, 4, 6);
        }
        snprintf(name, sizeof(name), "crops%d/v%d_wan_te.safetensors", stem > 0, stem);
        cache_text(tree_path(&dir, name), 2, 8);
    }
    CLEANUP(video_cache_cleanup) struct video_cache *one = open_cache("crops0");
    CLEANUP(video_cache_cleanup) struct video_cache *three = open_cache("crops1");
    struct validation_split s;
    REQUIRE(one && three);
    validation_split_make(one, 0.5, &a, &s);
    CHECK_INT(s.n_val, 0);
    CHECK_INT(s.n_train, 5);
    validation_split_make(three, 1e-9, &a, &s);
    CHECK_INT(s.n_val, 5);
    for (size_t i = 1; i < s.n_val; i++)
        CHECK_STR(video_cache_item(three, s.val[i])->text_path, video_cache_item(three, s.val[0])->text_path);
}

int main(void)
{
    tree_make(&dir);
    for (int i = 0; i < ITEMS; i++)
        put_item("items", i);
    RUN(every_item_once_an_epoch);
    RUN(a_batch_has_different_items);
    RUN(accumulation_takes_the_same_batches);
    RUN(the_order_is_random);
    RUN(nothing_to_train_on_is_an_error);
    RUN(a_split_is_stable_when_items_are_added);
    RUN(crops_stay_together);
    tree_remove(&dir);
    return check_done();
}
