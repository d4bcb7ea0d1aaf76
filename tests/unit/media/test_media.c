/* SPDX-License-Identifier: Apache-2.0
 * The process that decodes, as its parent sees it. */
#include "media/media.h"

#include "base/cleanup.h"
#include "check.h"
#include "tree.h"
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static struct media *m;
static struct cairn_error err;
static struct arena arena;

struct taken {
    size_t n, frames[16], width, height;
    uint8_t first[3], last[3]; /* pixels of the newest frame */
    size_t fail_at;            /* 0: never */
};

static int take(void *ctx, size_t frame, const struct picture *p, struct cairn_error *e)
{
    struct taken *t = ctx;
    if (t->n < 16)
        t->frames[t->n] = frame;
    t->n++;
    t->width = p->width;
    t->height = p->height;
    size_t bytes = picture_bytes(p), c = (size_t)p->channels;
    memcpy(t->first, p->at, c);
    memcpy(t->last, p->at + bytes - c, c);
    return t->fail_at == t->n ? cairn_fail(e, CAIRN_EIO, "enough") : 0;
}

static const size_t zero[] = { 0 };

static void stills_of_each_format_are_read(void)
{
    static const char *const names[] = { "still.png", "still.bmp", "still.webp", "still.avif" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];
        struct media_info info;
        struct taken t = { 0 };
        snprintf(path, sizeof(path), "media/%s", names[i]);
        CHECK_INT(media_probe(m, check_data(path), &arena, &info, &err), 0);
        CHECK_STR(info.codec, strchr(names[i], '.') + 1);
        CHECK(!info.clip);
        CHECK_INT(info.frames, 1);
        CHECK_INT(media_read(m, check_data(path), zero, 1, take, &t, &err), 0);
        CHECK_INT(t.n, 1);
        CHECK_INT(t.width, 20);
        CHECK_INT(t.height, 12);
        CHECK(abs(t.last[0] - 228) <= 6 && abs(t.last[1] - 220) <= 6 && abs(t.last[2] - 240) <= 6);
    }
}

static void a_turned_picture_stands_upright(void)
{
    struct media_info info;
    struct taken t = { 0 };
    CHECK_INT(media_probe(m, check_data("media/turned.jpg"), &arena, &info, &err), 0);
    CHECK_INT(info.width, 12);
    CHECK_INT(info.height, 20);
    CHECK_INT(info.orientation, 6);
    CHECK_INT(media_read(m, check_data("media/turned.jpg"), zero, 1, take, &t, &err), 0);
    CHECK_INT(t.width, 12);
    /* Its first pixel is the stored picture's bottom left one. */
    CHECK(t.first[0] < 20 && abs(t.first[1] - 220) < 20 && abs(t.first[2] - 88) < 20);
}

static void alpha_and_grey_are_read_for_masks(void)
{
    struct media_info info;
    struct taken t = { 0 };
    const char *path = check_data("media/alpha.png");
    CHECK_INT(media_probe(m, path, &arena, &info, &err), 0);
    CHECK(info.has_alpha);
    CHECK_INT(media_read_alpha(m, path, zero, 1, take, &t, &err), 0);
    CHECK_INT(t.last[0], 247);
    CHECK_INT(media_read_grey(m, path, zero, 1, take, &t, &err), 0);
    CHECK_INT(t.last[0], 225);
    CHECK_INT(media_read_alpha(m, check_data("media/still.png"), zero, 1, take, &t, &err), 0);
    CHECK_INT(t.first[0], 255);
}

static void frames_of_a_clip_are_read(void)
{
    struct media_info info;
    struct taken t = { 0 };
    const char *path = check_data("media/clip.mp4");
    CHECK_INT(media_probe(m, path, &arena, &info, &err), 0);
    CHECK(info.clip && !info.variable_rate && !info.cut);
    CHECK_INT(info.frames, 9);
    CHECK_INT(info.width, 32);
    CHECK(info.fps > 15.99 && info.fps < 16.01);
    CHECK_STR(info.codec, "h264");
    CHECK_INT(media_read(m, path, (const size_t[]){ 1, 4, 8 }, 3, take, &t, &err), 0);
    CHECK_INT(t.n, 3);
    CHECK_INT(t.frames[1], 4);
    CHECK_INT(media_read(m, path, (const size_t[]){ 8, 9 }, 2, take, &t, &err), -1);
    CHECK_HAS(err.msg, "clip.mp4");
    CHECK_INT(media_read(m, path, (const size_t[]){ 4, 4 }, 2, take, &t, &err), -1);
}

static void the_reader_may_stop(void)
{
    struct taken t = { .fail_at = 2 };
    const char *path = check_data("media/clip.mp4");
    CHECK_INT(media_read(m, path, (const size_t[]){ 0, 1, 2, 3 }, 4, take, &t, &err), -1);
    CHECK_STR(err.msg, "enough");
    CHECK_INT(t.n, 2);
    t = (struct taken){ 0 };
    CHECK_INT(media_read(m, path, (const size_t[]){ 0, 1 }, 2, take, &t, &err), 0);
    CHECK_INT(t.n, 2);
}

static void what_is_no_media_file_is_an_error(void)
{
    struct tree tree;
    struct media_info info;
    struct taken t = { 0 };
    static const char *const names[] = { "text.png", "empty.png", "fifo.png", "missing.png" };
    tree_make(&tree);
    tree_put(&tree, "text.png", "this is text, whatever its name says\n");
    tree_put(&tree, "empty.png", "");
    CHECK_INT(mkfifo(tree_path(&tree, "fifo.png"), 0600), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        err = (struct cairn_error){ 0 };
        CHECK_INT(media_probe(m, tree_path(&tree, names[i]), &arena, &info, &err), -1);
        CHECK_HAS(err.msg, names[i]);
        CHECK_INT(media_read(m, tree_path(&tree, names[i]), zero, 1, take, &t, &err), -1);
    }
    CHECK_INT(media_probe(m, "/dev/zero", &arena, &info, &err), -1);
    tree_remove(&tree);
}

int main(void)
{
    if (media_open(&m, &(struct media_options){ 0 }, &err)) {
        printf("1..0 # SKIP %s\n", err.msg);
        return 0;
    }
    RUN(stills_of_each_format_are_read);
    RUN(a_turned_picture_stands_upright);
    RUN(alpha_and_grey_are_read_for_masks);
    RUN(frames_of_a_clip_are_read);
    RUN(the_reader_may_stop);
    RUN(what_is_no_media_file_is_an_error);
    media_close(m);
    arena_release(&arena);
    return check_done();
}
