/* SPDX-License-Identifier: Apache-2.0
 * Datasets, with sizes from the files' names instead of cairn-media: "a.64x48.mp4" has 64 x 48 pixels, and
 * "b.64x48x30.mp4" also 30 frames; so has everything in a folder "size.64x48x30". */
#include "media/dataset.h"

#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include "media/dataset_sheet.h"
#include "media/png_write.h"
#include "os/file.h"
#include "os/path.h"
#include <unistd.h>

static struct cairn_error err;
static char root[] = "/tmp/cairn-dataset-XXXXXX";

static int probe(void *context, const char *path, struct arena *a, struct media_info *out,
                 struct cairn_error *e)
{
    const char *dot = strchr(path_name(path), '.'), *folder = strstr(path, "/size.");
    dot = folder ? folder + 5 : dot;
    size_t w = 0, h = 0, n = 1;
    (void)context;
    (void)a;
    if (!dot || sscanf(dot, ".%zux%zux%zu", &w, &h, &n) < 2)
        return cairn_fail(e, CAIRN_EFORMAT, "%s: not a picture", path);
    *out = (struct media_info){ .clip = n > 1, .width = w, .height = h, .frames = n, .fps = 30 };
    return 0;
}

static const char *at(const char *name)
{
    static char buf[8][256];
    static int turn;
    char *out = buf[turn++ % 8];
    snprintf(out, sizeof(buf[0]), "%s/%s", root, name);
    return out;
}

static void put(const char *name, const char *text)
{
    CHECK_INT(file_write(at(name), text, strlen(text), &err), 0);
}

/* A new, empty folder in place of the one before. */
static void start(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s/*", root);
    CHECK_INT(system(command), 0);
    CHECK_INT(file_make_dir(at("data"), 0700, &err), 0);
    err = (struct cairn_error){ 0 };
}

static void put_media(const char *name, const char *caption)
{
    CLEANUP(str_release) struct str path = { 0 };
    str_addf(&path, "data/%s", name);
    put(path.s, name);
    char *dot = strrchr(path.s, '.');
    *dot = '\0';
    path.len = strlen(path.s);
    str_add(&path, ".txt");
    if (caption)
        put(path.s, caption);
}

static struct dataset *open_config(const char *name, const char *text)
{
    struct dataset *d = NULL;
    put(name, text);
    struct dataset_options o = { .config = at(name), .probe = probe, .threads = 2 };
    dataset_open(&d, &o, &err);
    return d;
}

static struct dataset *open_folder(struct dataset_options o)
{
    struct dataset *d = NULL;
    const char *folder = at("data");
    o.paths = &folder;
    o.n_paths = 1;
    o.probe = probe;
    dataset_open(&d, &o, &err);
    return d;
}

static const struct dataset_item *find(const struct dataset *d, const char *stem)
{
    for (size_t i = 0; d && i < dataset_count(d); i++)
        if (!strcmp(dataset_item(d, i)->stem, stem))
            return dataset_item(d, i);
    static const struct dataset_item none = { .problem = DATASET_PROBLEMS };
    return &none;
}

static void a_folder_needs_no_options(void)
{
    start();
    put_media("a.1664x960.png", "  a stone \n");
    put_media("b.832x480x60.mp4", "a river");
    put_media("c.100x100x2.mp4", "short");
    CLEANUP(dataset_cleanup) struct dataset *d = open_folder((struct dataset_options){ 0 });
    REQUIRE(d);
    REQUIRE(dataset_count(d) == 3);
    const struct dataset_item *a = dataset_item(d, 0), *b = dataset_item(d, 1);
    CHECK_STR(a->caption, "a stone");
    CHECK_INT(a->bucket.width, 832);
    CHECK_INT(a->bucket.height, 480);
    CHECK_INT(a->name_size.width, 1664);
    CHECK_INT(a->n_frames, 1);
    CHECK_INT(b->n_frames, 29); /* 60 frames at 30 per second are 32 at 16 */
    CHECK_INT(b->frames[1], 2);
    CHECK_INT(b->frames[2], 4);
    CHECK_INT(b->name_size.width, 832);
    CHECK_INT(dataset_item(d, 2)->n_frames, 1);
    CHECK_INT(dataset_check(d, &err), 0);
}

static void captions_may_be_wrong(void)
{
    start();
    put_media("none.64x64.png", NULL);
    put_media("empty.64x64.png", " \n\t");
    put_media("latin.64x64.png", "caf\xe9");
    put_media("fine.64x64.png", "\xef\xbb\xbf\xe3\x80\x80yes\xc2\xa0");
    CLEANUP(dataset_cleanup) struct dataset *d = open_folder((struct dataset_options){ 0 });
    REQUIRE(d);
    CHECK_INT(find(d, "none.64x64")->problem, DATASET_CAPTION);
    CHECK_INT(find(d, "empty.64x64")->problem, DATASET_CAPTION);
    CHECK_INT(find(d, "latin.64x64")->problem, DATASET_CAPTION);
    CHECK_STR(find(d, "fine.64x64")->caption, "yes");
    CLEANUP(arena_release) struct arena a = { 0 };
    struct dataset_totals t;
    dataset_total(d, &a, &t);
    CHECK_INT(t.captions_missing, 3);
    CHECK_INT(t.usable, 1);
    CHECK_INT(t.n_buckets, 1);

    CLEANUP(dataset_cleanup)
    struct dataset *with =
        open_folder((struct dataset_options){ .caption_default = "[trigger] x", .trigger = "sks" });
    CHECK_STR(find(with, "none.64x64")->caption, "sks x");
    CHECK_STR(find(with, "empty.64x64")->caption, "sks x");
    CHECK_STR(find(with, "fine.64x64")->caption, "sks yes");
    CHECK_INT(find(with, "latin.64x64")->problem, DATASET_CAPTION);
}

static void names_may_clash(void)
{
    start();
    put_media("a.64x64.png", "one");
    put_media("a.64x64.mp4", "one");
    put_media("b.64x64.png", "two");
    put_media("b.64x64.jpg", "two");
    CLEANUP(dataset_cleanup) struct dataset *d = open_folder((struct dataset_options){ 0 });
    REQUIRE(d && dataset_count(d) == 4);
    CHECK_INT(dataset_item(d, 0)->problem, DATASET_FINE);
    CHECK_INT(dataset_item(d, 1)->problem, DATASET_FINE);
    CHECK_INT(dataset_item(d, 2)->problem, DATASET_SAME_NAME);
    CHECK_INT(dataset_item(d, 3)->problem, DATASET_SAME_NAME);
}

static void lists_name_files_and_captions(void)
{
    start();
    put("data/list.jsonl", "{\"image_path\": \"x/a.64x64.png\", \"caption\": \"one\"}\n\n"
                           "{\"image_path\": \"a.80x64.png\", \"caption\": \"other\"}\n"
                           "{\"image_path\": \"y/b.64x64.png\"}\n");
    put("data/a.80x64.png", "");
    CLEANUP(dataset_cleanup)
    struct dataset *d = open_config("d.toml", "[[datasets]]\nimage_jsonl_file = 'data/list.jsonl'\n"
                                              "cache_directory = 'c'\nresolution = 64\n");
    CHECK_STR(err.msg, "");
    REQUIRE(d && dataset_count(d) == 3);
    CHECK_STR(find(d, "a.64x64")->caption, "one");
    CHECK_STR(find(d, "a.80x64")->path, at("data/a.80x64.png"));
    CHECK_INT(find(d, "b.64x64")->problem, DATASET_CAPTION);
}

static void stems_of_one_text_cache_clash(void)
{
    start();
    put("data/list.jsonl", "{\"image_path\": \"/size.64x64/a.png\", \"caption\": \"one\"}\n"
                           "{\"image_path\": \"/size.80x64/a.png\", \"caption\": \"other\"}\n"
                           "{\"image_path\": \"/size.80x64/b.png\", \"caption\": \"same\"}\n"
                           "{\"image_path\": \"/size.64x64/b.png\", \"caption\": \"same\"}\n");
    CLEANUP(dataset_cleanup)
    struct dataset *d = open_config("d.toml", "[[datasets]]\nimage_jsonl_file = 'data/list.jsonl'\n"
                                              "cache_directory = 'c'\nresolution = 64\n");
    REQUIRE(d && dataset_count(d) == 4);
    CHECK_INT(dataset_item(d, 0)->problem, DATASET_SAME_NAME);
    CHECK_INT(dataset_item(d, 2)->problem, DATASET_SAME_NAME);
    CHECK_INT(dataset_item(d, 1)->problem, DATASET_FINE);
    CHECK_INT(dataset_item(d, 3)->problem, DATASET_FINE);
}

static void files_may_be_broken_or_the_same(void)
{
    start();
    put_media("broken.png", "x");
    put_media("a.64x64.png", "x");
    put("data/b.64x64.png", "a.64x64.png");
    put("data/b.64x64.txt", "y");
    put("data/.hidden.64x64.png", "z");
    put("data/notes.doc", "z");
    CHECK_INT(symlink(at("data"), at("data/loop.png")), 0);
    CHECK_INT(symlink("nowhere", at("data/gone.png")), 0);
    CLEANUP(dataset_cleanup) struct dataset *d = open_folder((struct dataset_options){ 0 });
    REQUIRE(d);
    CHECK_INT(dataset_count(d), 4);
    CHECK_INT(find(d, "broken")->problem, DATASET_UNREADABLE);
    CHECK_INT(find(d, "gone")->problem, DATASET_UNREADABLE);
    CHECK(!find(d, "a.64x64")->is_duplicate);
    CHECK(find(d, "b.64x64")->is_duplicate);
    CHECK_INT(find(d, "b.64x64")->problem, DATASET_FINE);
}

static void names_may_be_strange(void)
{
    start();
    put_media("it's \"x\" \n \xe2\x82\xac.64x64.png", "yes");
    CLEANUP(dataset_cleanup) struct dataset *d = open_folder((struct dataset_options){ 0 });
    CHECK_STR(find(d, "it's \"x\" \n \xe2\x82\xac.64x64")->caption, "yes");
}

static void a_folder_must_be_readable(void)
{
    start();
    const char *missing = at("missing");
    struct dataset_options o = { .paths = &missing, .n_paths = 1, .probe = probe };
    struct dataset *d = NULL;
    CHECK_INT(dataset_open(&d, &o, &err), -1);
    CHECK_HAS(err.msg, "missing");
    CLEANUP(dataset_cleanup) struct dataset *empty = open_folder((struct dataset_options){ 0 });
    REQUIRE(empty);
    CHECK_INT(dataset_check(empty, &err), -1);
}

static void refused(const char *text, const char *part)
{
    err = (struct cairn_error){ 0 };
    CLEANUP(dataset_cleanup) struct dataset *d = open_config("d.toml", text);
    CHECK(!d);
    CHECK_HAS(err.msg, part);
}

#define CLIPS "[[datasets]]\nvideo_directory = 'data'\n"
static void musubi_keys_are_strict(void)
{
    start();
    refused("[general]\nresolutoin = 5\n" CLIPS, "d.toml:2:1");
    CHECK_HAS(err.hint, "resolution");
    refused(CLIPS "image_directory = 'x'\n", "image_directory");
    refused("[[datasets]]\nimage_directory = 'data'\nfp_1f_target_index = 3\n", "fp_1f_target_index");
    refused("[[datasets]]\nimage_directory = 'data'\nmultiple_target = true\n", "multiple_target");
    refused("[[datasets]]\nimage_directory = 'data'\ntarget_frames = [1]\n", "target_frames");
    refused(CLIPS "target_frames = [0]\n", "target_frames");
    refused(CLIPS "target_frames = []\n", "target_frames");
    refused(CLIPS "frame_extraction = 'tail'\n", "frame_extraction");
    refused(CLIPS "source_fps = -1.0\n", "source_fps");
    refused(CLIPS "resolution = [1, 2, 3]\n", "resolution");
    refused(CLIPS "resolution = 8\n", "resolution");
    refused(CLIPS "enable_bucket = 1\n", "enable_bucket");
    refused(CLIPS CLIPS, "cache_directory");
    refused("[[datasets]]\nvideo_jsonl_file = 'x.jsonl'\n", "cache_directory");
    refused("[[datasets]]\nbatch_size = 1\n", "image_directory");
    refused("[general]\nbatch_size = 1\n", "datasets");
    refused("[general]\nvideo_directory = 'x'\n" CLIPS, "video_directory");
    refused("[other]\nx = 1\n" CLIPS, "other");
}

static void musubi_datasets_override_general(void)
{
    start();
    put_media("a.640x480x30.mp4", "x");
    CLEANUP(dataset_cleanup)
    struct dataset *d = open_config(
        "d.json", "{\"general\": {\"resolution\": 256, \"caption_extension\": \".txt\", \"num_repeats\": 2},"
                  " \"datasets\": [{\"video_directory\": \"data\", \"num_repeats\": 3,"
                  " \"target_frames\": [8, 5, 40], \"frame_extraction\": \"chunk\"}]}");
    CHECK_STR(err.msg, "");
    REQUIRE(d);
    CHECK_INT(dataset_count(d), 6); /* 5 and 8 are both 5 */
    const struct dataset_item *last = dataset_item(d, 5);
    CHECK_INT(last->start, 25);
    CHECK_INT(last->n_frames, 5);
    CHECK_INT(last->frames[4], 29);
    CHECK_INT(last->block->repeats, 3);
    CHECK_INT(last->bucket.width, 288);
    CHECK_INT(last->bucket.height, 224);
    CHECK(last->n_notes > 0); /* too short for 37 */
}

static const char job[] =
    "config:\n  name: stones\n  process:\n    - trigger_word: sks\n      model: {arch: \"wan22_5b\"}\n"
    "      datasets:\n        - folder_path: data\n          resolution: [256, 512]\n"
    "          num_frames: 9\n          flip_x: true\n";

static void toolkit_jobs_are_read(void)
{
    start();
    put_media("a.640x480x30.mp4", "of [trigger]");
    put_media("b.640x480.png", NULL);
    CHECK_INT(file_make_dir(at("data/sub"), 0700, &err), 0);
    put("data/sub/c.64x64.png", "c");
    CLEANUP(dataset_cleanup) struct dataset *d = open_config("job.yaml", job);
    CHECK_STR(err.msg, "");
    REQUIRE(d);
    CHECK_INT(dataset_count(d), 12); /* 3 files, 2 sizes, flipped or not */
    const struct dataset_item *a = dataset_item(d, 0), *flipped = dataset_item(d, 1);
    CHECK_STR(a->caption, "of sks");
    CHECK_INT(a->bucket.width % 32, 0);
    CHECK_INT(a->n_frames, 9);
    CHECK_INT(a->frames[8], 29);
    CHECK_INT(a->frames[1], 4); /* 3.625 */
    CHECK(flipped->flip_x && !a->flip_x);
    CHECK(strcmp(flipped->cache_stem, a->cache_stem));
    CHECK_STR(find(d, "b.640x480")->caption, "sks");
    CHECK_INT(find(d, "c.64x64")->problem, DATASET_FINE);
    CLEANUP(str_release) struct str more = { 0 };
    str_addf(&more, "%s          num_repeat: 2\n", job);
    CLEANUP(dataset_cleanup) struct dataset *unknown = open_config("unknown.yaml", more.s);
    CHECK(!unknown && strstr(err.msg, "num_repeat") && strstr(err.hint, "num_repeats"));
}

static void too_little_is_a_problem(void)
{
    start();
    put_media("a.640x480x4.mp4", "x");
    put_media("b.1x1x9.mp4", "x");
    CLEANUP(dataset_cleanup)
    struct dataset *d =
        open_config("d.toml", CLIPS "caption_extension = '.txt'\ntarget_frames = [5]\nresolution = 64\n");
    REQUIRE(d);
    CHECK_INT(find(d, "a.640x480x4")->problem, DATASET_TOO_SHORT);
    CHECK_INT(find(d, "b.1x1x9")->problem, DATASET_FINE);
    CLEANUP(dataset_cleanup)
    struct dataset *p = open_config("p.toml", "[[datasets]]\nimage_directory = 'data'\nresolution = 100\n");
    put_media("c.5x5.png", "x");
    CLEANUP(dataset_cleanup)
    struct dataset *q = open_config("q.toml", "[[datasets]]\nimage_directory = 'data'\nresolution = 64\n"
                                              "enable_bucket = true\nbucket_no_upscale = true\n");
    CHECK(p && dataset_count(p) == 0);
    CHECK_INT(find(q, "c.5x5")->problem, DATASET_TOO_SMALL);
}

/* Each half of the picture has its own value. */
static void put_picture(const char *name, size_t width, size_t height, int left, int right)
{
    CLEANUP(picture_free) struct picture p = { 0 };
    REQUIRE(!picture_new(&p, width, height, 3, &err));
    for (size_t i = 0; i < width * height; i++)
        memset(p.at + i * 3, i % width < width / 2 ? left : right, 3);
    CHECK_INT(png_write(at(name), &p, &err), 0);
}

static size_t count_value(const struct picture *p, uint8_t value)
{
    size_t n = 0;
    for (size_t i = 0; i < picture_bytes(p); i += 3)
        n += p->at[i] == value;
    return n;
}

static int take_corner(void *ctx, size_t index, const struct picture *p, struct cairn_error *e)
{
    (void)e;
    ((int *)ctx)[index] = p->at[0];
    return 0;
}

static void a_sheet_shows_every_bucket(void)
{
    static const struct media_options defaults;
    CLEANUP(picture_free) struct picture sheet = { 0 };
    struct media *m = NULL;
    struct dataset *opened = NULL;
    int corner[2] = { 0 };
    start();
    put_picture("data/wide.png", 640, 480, 10, 20);
    put_picture("data/high.png", 100, 300, 30, 30);
    put("data/wide.txt", "x");
    put("data/high.txt", "x");
    put_media("broken.png", "x");
    const char *folder = at("data");
    struct dataset_options o = { .paths = &folder, .n_paths = 1, .flip_x = true };
    if (media_open(&m, &defaults, &err) || dataset_open(&opened, &o, &err))
        SKIP("no cairn-media");
    CLEANUP(dataset_cleanup) struct dataset *d = opened;
    CHECK_INT(find(d, "broken")->problem, DATASET_UNREADABLE);
    const struct dataset_item *wide = find(d, "wide");
    CHECK_INT(dataset_item_read(wide, m, take_corner, &corner[0], &err), 0);
    CHECK_INT(dataset_item_read(wide + 1, m, take_corner, &corner[1], &err), 0);
    CHECK_INT(corner[0], 10);
    CHECK_INT(corner[1], 20);
    CHECK_INT(dataset_sheet(d, m, NULL, &sheet, &err), 0);
    REQUIRE(sheet.at);
    CHECK(count_value(&sheet, 10) > 15000);
    CHECK(count_value(&sheet, 20) > 15000);
    CHECK(count_value(&sheet, 30) > 15000);
    CHECK(count_value(&sheet, 230) > 500); /* letters */
    media_close(m);
}

int main(void)
{
    if (os_make_temp_dir(root))
        return 1;
    RUN(a_folder_needs_no_options);
    RUN(captions_may_be_wrong);
    RUN(names_may_clash);
    RUN(lists_name_files_and_captions);
    RUN(stems_of_one_text_cache_clash);
    RUN(files_may_be_broken_or_the_same);
    RUN(names_may_be_strange);
    RUN(a_folder_must_be_readable);
    RUN(musubi_keys_are_strict);
    RUN(musubi_datasets_override_general);
    RUN(toolkit_jobs_are_read);
    RUN(too_little_is_a_problem);
    RUN(a_sheet_shows_every_bucket);
    start();
    rmdir(at("data"));
    rmdir(root);
    return check_done();
}
