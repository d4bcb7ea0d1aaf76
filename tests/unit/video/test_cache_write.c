/* SPDX-License-Identifier: Apache-2.0 */
#include "video/cache_write.h"

#include "caches.h"
#include "check.h"
#include "tensor/safetensors.h"
#include "video/cache.h"
#include <math.h>

static struct tree dir;
static struct cairn_error err;

enum {
    CHANNELS = 16,
    FRAMES = 2,
    HEIGHT = 4,
    WIDTH = 6,
    VALUES = CHANNELS * FRAMES * HEIGHT * WIDTH,
    ROWS = 3,
    DIM = 8
};
static float latents[VALUES], text[ROWS * DIM];

static struct cache_latents a_clip(const char *stem)
{
    return (struct cache_latents){
        .of = { .stem = stem, .width = 640, .height = 480, .clip = true, .start = 7, .frames = 5 },
        .channels = CHANNELS,
        .frames = FRAMES,
        .height = HEIGHT,
        .width = WIDTH,
        .values = latents,
        .dtype = DTYPE_BF16,
        .made_from = "abc",
    };
}

static struct cache_text a_caption(const char *stem)
{
    return (struct cache_text){ stem, "a \"cat\"\nwalks", ROWS, DIM, text, DTYPE_BF16, "def" };
}

static void names_and_metadata_are_musubis(void)
{
    struct cache_latents l = a_clip("cat walk_1");
    struct cache_text t = a_caption("cat walk_1");
    CLEANUP(st_close) struct st_file f = { 0 };
    REQUIRE(!cache_write_latents(dir.dir, &l, &err) && !cache_write_text(dir.dir, &t, &err));
    REQUIRE(!st_open(&f, tree_path(&dir, "cat walk_1_00007-005_0640x0480_wan.safetensors"), &err));
    const struct st_tensor *found = st_find(&f, "latents_2x4x6_bfloat16");
    REQUIRE(found);
    CHECK_INT(found->dtype, DTYPE_BF16);
    CHECK_INT(found->shape[0], CHANNELS);
    CHECK_STR(st_meta_find(&f, "architecture"), "wan");
    CHECK_STR(st_meta_find(&f, "width"), "640");
    CHECK_STR(st_meta_find(&f, "height"), "480");
    CHECK_STR(st_meta_find(&f, "frame_count"), "5");
    CHECK_STR(st_meta_find(&f, "format_version"), "1.0.1");
    CLEANUP(st_close) struct st_file g = { 0 };
    REQUIRE(!st_open(&g, tree_path(&dir, "cat walk_1_wan_te.safetensors"), &err));
    CHECK(st_find(&g, "varlen_t5_bfloat16"));
    CHECK_STR(st_meta_find(&g, "caption1"), "a \"cat\"\nwalks");
}

static void what_is_written_is_read(void)
{
    const char *paths[] = { dir.dir };
    struct video_cache *c = NULL;
    float back[VALUES];
    REQUIRE(!video_cache_open(&c, &(struct video_cache_options){ .paths = paths, .n_paths = 1 }, &err));
    REQUIRE(video_cache_count(c) == 1);
    const struct video_item *item = video_cache_item(c, 0);
    CHECK(item->is_clip);
    CHECK_INT(item->text_rows, ROWS);
    CHECK(!video_item_read(item, VIDEO_LATENTS, back, &err));
    for (int i = 0; i < VALUES; i++)
        if (back[i] != latents[i]) {
            CHECK_INT(i, -1);
            break;
        }
    video_cache_close(c);
}

static void an_image_has_no_frames_in_its_name(void)
{
    struct cache_latents l = a_clip("still");
    CLEANUP(arena_release) struct arena a = { 0 };
    l.of.clip = false;
    l.dtype = DTYPE_F32;
    CHECK_STR(cache_name_latents(&a, &l.of), "still_0640x0480_wan.safetensors");
    REQUIRE(!cache_write_latents(dir.dir, &l, &err));
    CLEANUP(st_close) struct st_file f = { 0 };
    REQUIRE(!st_open(&f, tree_path(&dir, "still_0640x0480_wan.safetensors"), &err));
    CHECK(st_find(&f, "latents_2x4x6_float32"));
    CHECK(!st_meta_find(&f, "frame_count"));
}

static void a_bad_latent_leaves_the_old_file(void)
{
    struct cache_latents l = a_clip("bad");
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *path = tree_path(&dir, "bad_00007-005_0640x0480_wan.safetensors");
    float zeros[VALUES] = { 0 }, nan[VALUES];
    REQUIRE(!cache_write_latents(dir.dir, &l, &err));
    memcpy(nan, latents, sizeof(nan));
    nan[5] = NAN;
    l.made_from = "other";
    l.values = zeros;
    CHECK_INT(cache_write_latents(dir.dir, &l, &err), -1);
    l.values = nan;
    CHECK_INT(cache_write_latents(dir.dir, &l, &err), -1);
    nan[5] = 1e6f;
    l.dtype = DTYPE_F16;
    CHECK_INT(cache_write_latents(dir.dir, &l, &err), -1);
    CHECK_STR(cache_made_from(&a, path), "abc");
}

static void made_from_tells_who_wrote_it(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CHECK_STR(cache_made_from(&a, tree_path(&dir, "cat walk_1_wan_te.safetensors")), "def");
    cache_text(tree_path(&dir, "other_wan_te.safetensors"), 2, 8);
    CHECK_STR(cache_made_from(&a, tree_path(&dir, "other_wan_te.safetensors")), "");
    CHECK(!cache_made_from(&a, tree_path(&dir, "none_wan_te.safetensors")));
}

int main(void)
{
    tree_make(&dir);
    for (int i = 0; i < VALUES; i++)
        latents[i] = (float)(i % 100) / 64;
    for (int i = 0; i < ROWS * DIM; i++)
        text[i] = (float)i;
    RUN(names_and_metadata_are_musubis);
    RUN(what_is_written_is_read);
    RUN(an_image_has_no_frames_in_its_name);
    RUN(a_bad_latent_leaves_the_old_file);
    RUN(made_from_tells_who_wrote_it);
    tree_remove(&dir);
    return check_done();
}
