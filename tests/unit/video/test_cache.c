/* SPDX-License-Identifier: Apache-2.0 */
#include "video/cache.h"

#include "os/fault.h"
#include "caches.h"
#include "check.h"
#include "video/cache_name.h"
#include <errno.h>
#include <math.h>

static struct tree dir;
static struct cairn_error err;

static void file_in(char *out, const char *folder, const char *name)
{
    char relative[256];
    snprintf(relative, sizeof(relative), "%s/%s", folder, name);
    strcpy(out, tree_path(&dir, relative));
}

static void put_latents(const char *folder, const char *name, uint64_t c, uint64_t f, uint64_t h, uint64_t w)
{
    char path[PATH_MAX];
    file_in(path, folder, name);
    cache_latents(path, c, f, h, w);
}

static void put_text(const char *folder, const char *name, uint64_t rows)
{
    char path[PATH_MAX];
    file_in(path, folder, name);
    cache_text(path, rows, 8);
}

static struct video_cache *open_needs(const char *folder, struct video_needs needs)
{
    char path[PATH_MAX];
    const char *paths[] = { path };
    struct video_cache *c = NULL;
    snprintf(path, sizeof(path), "%s/%s", dir.dir, folder);
    err = (struct cairn_error){ 0 };
    if (video_cache_open(&c, &(struct video_cache_options){ .paths = paths, .n_paths = 1, .needs = needs },
                         &err))
        printf("# %s (%s)\n", err.msg, err.hint);
    return c;
}

static struct video_cache *open_folder(const char *folder)
{
    return open_needs(folder, (struct video_needs){ .channels = 16, .text_dim = 8 });
}

/* ---- names ---- */

static void names_are_split_from_the_right(void)
{
    static const struct {
        const char *file;
        int stem, clip_stem; /* -1: not the name of a cache */
        bool wan;
    } rows[] = {
        { "cat walk_00000-005_0640x0480_wan.safetensors", 18, 8, true },
        { "dog_run_01_00000-009_0320x0320_wan.safetensors", 20, 10, true },
        { "a_00000-009-02_0320x0320_wan.safetensors", 14, 1, true },
        { "still_1_0512x0768_wan.safetensors", 7, 0, true },
        { "写真_0512x0768_wan.safetensors", 6, 0, true },
        { "a_12345x54321_wan.safetensors", 1, 0, true },
        { "a_wan_te_0512x0768_wan.safetensors", 8, 0, true },
        { "00000-005_0640x0480_wan.safetensors", 9, 0, true },
        { "a_0-1-2-3_0640x0480_wan.safetensors", 9, 0, true },
        { "a_0640x0480_hv15.safetensors", 1, 0, false },
        { "a_wan_te.safetensors", -1, 0, false },
        { "lora_wan.safetensors", -1, 0, false },
        { "_0640x0480_wan.safetensors", -1, 0, false },
        { "0640x0480_wan.safetensors", -1, 0, false },
        { "a_0640x_wan.safetensors", -1, 0, false },
        { "a_x0480_wan.safetensors", -1, 0, false },
        { "a_0640x0480x1_wan.safetensors", -1, 0, false },
        { "a_0640x0480_.safetensors", -1, 0, false },
        { "a_0640x0480_wan.pt", -1, 0, false },
        { "", -1, 0, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cache_name n;
        bool is = cache_name_parse(rows[i].file, &n);
        if (is != (rows[i].stem >= 0))
            printf("# %s\n", rows[i].file);
        CHECK(is == (rows[i].stem >= 0));
        if (!is)
            continue;
        CHECK_INT(n.stem, rows[i].stem);
        CHECK_INT(n.clip_stem, rows[i].clip_stem);
        CHECK(cache_name_is_wan(&n) == rows[i].wan);
    }
}

/* ---- listing ---- */

static void items_are_sorted_and_described(void)
{
    put_latents("list", "b_c_00000-005_0640x0480_wan.safetensors", 16, 2, 6, 8);
    put_latents("list", "b_c_00005-005_0640x0480_wan.safetensors", 16, 2, 6, 8);
    put_text("list", "b_c_wan_te.safetensors", 3);
    put_latents("list", "写真_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("list", "写真_wan_te.safetensors", 5);
    put_latents("list", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("list", "a_wan_te.safetensors", 4);
    put_latents("list", "lonely_0512x0768_wan.safetensors", 16, 1, 12, 8);
    tree_put(&dir, "list/my_lora_wan.safetensors", "x");
    tree_put(&dir, "list/a_0512x0768_hv.safetensors", "x");
    tree_put(&dir, "list/a.PNG", "x");
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_folder("list");
    REQUIRE(c);
    const struct video_cache_info *info = video_cache_info(c);
    CHECK_INT(video_cache_count(c), 4);
    CHECK_INT(info->without_text.n, 1);
    CHECK_STR(info->without_text.names[0], "lonely_0512x0768_wan.safetensors");
    CHECK_INT(info->misnamed.n, 1);
    CHECK_INT(info->other_model.n, 1);
    const struct video_item *first = video_cache_item(c, 0), *clip = video_cache_item(c, 1);
    CHECK_STR(first->name, "a_0512x0768");
    CHECK_INT(first->text_rows, 4);
    CHECK(!first->is_clip);
    CHECK_STR(clip->name, "b_c_00000-005_0640x0480");
    CHECK_INT(clip->channels, 16);
    CHECK_INT(clip->frames, 2);
    CHECK_INT(clip->height, 6);
    CHECK_INT(clip->width, 8);
    CHECK_INT(clip->text_rows, 3);
    CHECK_STR(video_cache_item(c, 2)->text_path, clip->text_path);
    CHECK_STR(video_cache_item(c, 3)->name, "写真_0512x0768");
    CHECK_INT(video_cache_item(c, 3)->text_rows, 5);
}

/* An image "a_00000-005.png" beside a clip "a.mp4": the files say which is which. */
static void an_image_may_be_named_like_a_clip(void)
{
    put_latents("named", "a_00000-005_0640x0480_wan.safetensors", 16, 1, 6, 8);
    put_text("named", "a_00000-005_wan_te.safetensors", 3);
    put_latents("named", "a_00007-005_0640x0480_wan.safetensors", 16, 2, 6, 8);
    put_text("named", "a_wan_te.safetensors", 4);
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_folder("named");
    REQUIRE(c && video_cache_count(c) == 2);
    CHECK_INT(video_cache_item(c, 0)->text_rows, 3);
    CHECK_INT(video_cache_item(c, 1)->text_rows, 4);
}

static void several_folders_are_one_set(void)
{
    put_latents("two", "x_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("two", "x_wan_te.safetensors", 4);
    put_latents("three", "x_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("three", "x_wan_te.safetensors", 6);
    char one[PATH_MAX], other[PATH_MAX];
    const char *paths[] = { one, other };
    snprintf(one, sizeof(one), "%s/two/", dir.dir);
    snprintf(other, sizeof(other), "%s/three", dir.dir);
    CLEANUP(video_cache_cleanup) struct video_cache *c = NULL;
    REQUIRE(!video_cache_open(&c, &(struct video_cache_options){ .paths = paths, .n_paths = 2 }, &err));
    REQUIRE(video_cache_count(c) == 2);
    CHECK_INT(video_cache_item(c, 0)->text_rows, 6); /* "three" before "two" */
    CHECK_INT(video_cache_item(c, 1)->text_rows, 4);
}

static void files_that_are_not_wanted_are_counted(void)
{
    put_latents("some", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_latents("some", "b_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("some", "a_wan_te.safetensors", 4);
    put_text("some", "b_wan_te.safetensors", 4);
    char folder[PATH_MAX], file[PATH_MAX + 40];
    const char *paths[] = { folder };
    snprintf(folder, sizeof(folder), "%s/some/", dir.dir);
    snprintf(file, sizeof(file), "%s/some/b_0512x0768_wan.safetensors", dir.dir);
    struct video_cache_wanted wanted[] = { { file, { .repeats = 3, .weight = 0.5 } } };
    struct video_cache_options o = { .paths = paths, .n_paths = 1, .wanted = wanted, .n_wanted = 1 };
    CLEANUP(video_cache_cleanup) struct video_cache *c = NULL;
    REQUIRE(!video_cache_open(&c, &o, &err));
    REQUIRE(video_cache_count(c) == 1);
    CHECK_STR(video_cache_item(c, 0)->path, file);
    CHECK_INT(video_cache_item(c, 0)->use.repeats, 3);
    CHECK(video_cache_item(c, 0)->use.weight == 0.5);
    CHECK_INT(video_cache_info(c)->unwanted.n, 1);
}

/* ---- what is refused ---- */

static void refuse(const char *folder, struct video_needs needs, const char *object)
{
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_needs(folder, needs);
    CHECK(!c && err.code != CAIRN_OK);
    CHECK_HAS(err.msg, object);
}

static void a_cache_must_fit_the_model(void)
{
    put_latents("fit", "a_0512x0768_wan.safetensors", 48, 1, 12, 8);
    put_text("fit", "a_wan_te.safetensors", 4);
    refuse("fit", (struct video_needs){ .channels = 16 }, "48 channels");
    CHECK_HAS(err.hint, "5B");
    refuse("fit", (struct video_needs){ .text_dim = 4096 }, "a_wan_te.safetensors");
    refuse("fit", (struct video_needs){ .image_channels = 20 }, "latents_image");
    refuse("fit", (struct video_needs){ .clip = true }, "clip");
    put_latents("odd", "a_0512x0768_wan.safetensors", 16, 1, 11, 8);
    put_text("odd", "a_wan_te.safetensors", 4);
    refuse("odd", (struct video_needs){ .channels = 16 }, "a_0512x0768_wan.safetensors");
}

static void a_folder_without_caches_says_so(void)
{
    tree_put(&dir, "media/a.mp4", "x");
    refuse("media", (struct video_needs){ 0 }, "media");
    CHECK_HAS(err.hint, "wan_cache_latents.py");
    tree_put(&dir, "empty/readme", "x");
    refuse("empty", (struct video_needs){ 0 }, "_wan.safetensors");
    CHECK_STR(err.hint, "");
    tree_put(&dir, "hv/a_0640x0480_hv.safetensors", "x");
    refuse("hv", (struct video_needs){ 0 }, "hv");
    CHECK_HAS(err.hint, "a_0640x0480_hv.safetensors");
    put_latents("notext", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    refuse("notext", (struct video_needs){ 0 }, "_wan_te.safetensors");
    put_latents("above/cache", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    refuse("above", (struct video_needs){ 0 }, "above");
    CHECK_HAS(err.hint, "above/cache");
    refuse("nowhere", (struct video_needs){ 0 }, "nowhere");
    refuse("empty/readme", (struct video_needs){ 0 }, "not a folder");
}

static void damaged_files_are_named(void)
{
    put_text("damaged", "a_wan_te.safetensors", 4);
    tree_put(&dir, "damaged/a_0512x0768_wan.safetensors", "not a safetensors file at all");
    refuse("damaged", (struct video_needs){ 0 }, "a_0512x0768_wan.safetensors");
    put_latents("damaged", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    CHECK(!truncate(tree_path(&dir, "damaged/a_0512x0768_wan.safetensors"), 1000));
    refuse("damaged", (struct video_needs){ 0 }, "a_0512x0768_wan.safetensors");
    cache_text(tree_path(&dir, "damaged/a_0512x0768_wan.safetensors"), 4, 8);
    refuse("damaged", (struct video_needs){ 0 }, "latents");
    struct cache_tensor ints = { "latents_1x2x2_int32", DTYPE_I32, { 16, 1, 2, 2 }, 4, 0 };
    cache_write(tree_path(&dir, "damaged/a_0512x0768_wan.safetensors"), &ints, 1, NULL);
    refuse("damaged", (struct video_needs){ 0 }, "latents_1x2x2_int32");
    struct cache_tensor flat = { "latents_1x2x2_float32", DTYPE_F32, { 16, 4 }, 2, 0 };
    cache_write(tree_path(&dir, "damaged/a_0512x0768_wan.safetensors"), &flat, 1, NULL);
    refuse("damaged", (struct video_needs){ 0 }, "latents_1x2x2_float32");
}

/* ---- values ---- */

/* The CLIP features are f16 although their name says otherwise, and names of f8 contain "_". */
static void values_are_read_as_f32(void)
{
    const struct cache_tensor tensors[] = {
        { "latents_2x4x6_float8_e4m3fn", DTYPE_F8_E4M3, { 16, 2, 4, 6 }, 4, 0 },
        { "latents_image_2x4x6_bfloat16", DTYPE_BF16, { 20, 2, 4, 6 }, 4, 0 },
        { "latents_control_2x4x6_bfloat16", DTYPE_BF16, { 16, 2, 4, 6 }, 4, 7 },
        { "clip_bfloat16", DTYPE_F16, { 9, 10 }, 2, 0 },
    };
    cache_write(tree_path(&dir, "values/a_00000-005_0640x0480_wan.safetensors"), tensors, 4, "5");
    put_text("values", "a_wan_te.safetensors", 3);
    struct video_needs needs = { 16, 8, 20, true, 9, 10 };
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_needs("values", needs);
    REQUIRE(c);
    const struct video_item *item = video_cache_item(c, 0);
    float values[20 * 48];
    CHECK_INT(item->clip_tokens, 9);
    CHECK_INT(item->clip_dim, 10);
    CHECK_INT(item->image_channels, 20);
    CHECK_INT(item->parts[VIDEO_LATENTS].values, 16 * 48);
    CHECK(!video_item_read(item, VIDEO_LATENTS, values, &err) && values[0] == 1 && values[10] == 11);
    CHECK(!video_item_read(item, VIDEO_IMAGE, values, &err) && values[20 * 48 - 1] == 60);
    CHECK(!video_item_read(item, VIDEO_CLIP, values, &err) && values[89] == 90);
    CHECK(!video_item_read(item, VIDEO_TEXT, values, &err) && values[23] == 24);
    CHECK(!video_item_check(item, &needs, &err));
    needs.clip_tokens = 257;
    refuse("values", needs, "clip_bfloat16");
    needs.image_channels = 16;
    refuse("values", needs, "latents_image_2x4x6_bfloat16");
}

static void bad_latents_are_found(void)
{
    static const float bad[] = { NAN, INFINITY, 3 };
    put_text("bad", "a_wan_te.safetensors", 3);
    for (size_t i = 0; i < 3; i++) {
        struct cache_tensor t = { "latents_1x4x6_float32", DTYPE_F32, { 16, 1, 4, 6 }, 4, bad[i] };
        cache_write(tree_path(&dir, "bad/a_0640x0480_wan.safetensors"), &t, 1, NULL);
        CLEANUP(video_cache_cleanup) struct video_cache *c = open_folder("bad");
        REQUIRE(c);
        CHECK(video_item_check(video_cache_item(c, 0), &(struct video_needs){ 0 }, &err) == -1);
        CHECK_HAS(err.msg, "a_0640x0480_wan.safetensors");
        CHECK_HAS(err.msg, "latents_1x4x6_float32");
    }
}

static void a_file_may_vanish_or_change(void)
{
    put_latents("gone", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("gone", "a_wan_te.safetensors", 3);
    CLEANUP(video_cache_cleanup) struct video_cache *c = open_folder("gone");
    REQUIRE(c);
    const struct video_item *item = video_cache_item(c, 0);
    float values[16 * 96];
    CHECK(!video_item_read(item, VIDEO_LATENTS, values, &err));
    CHECK(!truncate(item->path, 1000));
    CHECK(video_item_read(item, VIDEO_LATENTS, values, &err) == -1);
    CHECK_HAS(err.msg, item->path);
    remove(item->path);
    CHECK(video_item_read(item, VIDEO_LATENTS, values, &err) == -1);
    CHECK_HAS(err.msg, item->path);
}

static void every_call_may_fail(void)
{
    put_latents("fault", "a_0512x0768_wan.safetensors", 16, 1, 12, 8);
    put_text("fault", "a_wan_te.safetensors", 3);
    for (int nth = 1, reached = 1; reached; nth++) {
        float values[16 * 96];
        fault_arm(nth, EIO);
        struct video_cache *c = open_folder("fault");
        int r = c ? video_item_read(video_cache_item(c, 0), VIDEO_LATENTS, values, &err) : -1;
        reached = fault_disarm();
        CHECK((r == 0) == !reached);
        video_cache_close(c);
        REQUIRE(nth < 100);
    }
}

int main(void)
{
    tree_make(&dir);
    RUN(names_are_split_from_the_right);
    RUN(items_are_sorted_and_described);
    RUN(an_image_may_be_named_like_a_clip);
    RUN(several_folders_are_one_set);
    RUN(files_that_are_not_wanted_are_counted);
    RUN(a_cache_must_fit_the_model);
    RUN(a_folder_without_caches_says_so);
    RUN(damaged_files_are_named);
    RUN(values_are_read_as_f32);
    RUN(bad_latents_are_found);
    RUN(a_file_may_vanish_or_change);
    RUN(every_call_may_fail);
    tree_remove(&dir);
    return check_done();
}
