/* SPDX-License-Identifier: Apache-2.0
 * The process that decodes, as its parent sees it. */
#include "media/media.h"

#include "base/cleanup.h"
#include "check.h"
#include "base/file.h"
#include "media/clip_writer.h"
#include "media/png_write.h"
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

/* Its frames have errors in the middle.  That is no matter of which thread is done first. */
static void damage_is_found_each_time(void)
{
    enum { TIMES = 30 };
    const char *path = check_data("media/damaged.mp4");
    for (int i = 0; i < TIMES; i++) {
        struct taken t = { 0 };
        err = (struct cairn_error){ 0 };
        CHECK_INT(media_read(m, path, (const size_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8 }, 9, take, &t, &err), -1);
        CHECK_HAS(err.msg, "damaged after ");
    }
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

/* What a process does that stands in for cairn-media. */
static const struct {
    const char *script;
    enum cairn_code code;
} strange[] = {
    { "kill -SEGV $$", CAIRN_EFORMAT },
    { "kill -XCPU $$", CAIRN_EFORMAT },
    { "kill -KILL $$", CAIRN_ENOMEM },
    { "exec sleep 20", CAIRN_EFORMAT },
    { "exit 3", CAIRN_ELACK },
    { "exit 0", CAIRN_EFORMAT },
    { "yes nonsense >&0", CAIRN_EFORMAT },
};

static void a_process_that_fails_is_an_error_of_the_file(void)
{
    struct tree tree;
    struct media_info info;
    tree_make(&tree);
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        char text[128];
        struct media *other;
        snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", strange[i].script);
        tree_put(&tree, "program", text);
        chmod(tree_path(&tree, "program"), 0700);
        const struct media_options options = { .program = tree_path(&tree, "program"), .wait_s = 1 };
        REQUIRE(!media_open(&other, &options, &err));
        /* Twice: the next request has a new process. */
        for (int turn = 0; turn < 2; turn++) {
            err = (struct cairn_error){ 0 };
            CHECK_INT(media_probe(other, check_data("media/still.png"), &arena, &info, &err), -1);
            CHECK_HAS(err.msg, "still.png");
            if (err.code != strange[i].code)
                CHECK_FAIL_("%s: code %d: %s", strange[i].script, err.code, err.msg);
        }
        media_close(other);
    }
    tree_remove(&tree);
}

static void a_missing_program_is_told_at_once(void)
{
    struct media *other;
    CHECK_INT(media_open(&other, &(struct media_options){ .program = "/nonexistent" }, &err), -1);
    char *kept = strdup(getenv("CAIRN_MEDIA") ? getenv("CAIRN_MEDIA") : "");
    unsetenv("CAIRN_MEDIA");
    CHECK_INT(media_open(&other, &(struct media_options){ 0 }, &err), -1);
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK(err.hint[0]);
    setenv("CAIRN_MEDIA", kept, 1);
    free(kept);
}

static void a_picture_over_the_limit_is_refused(void)
{
    struct media *small;
    struct media_info info;
    REQUIRE(!media_open(&small, &(struct media_options){ .pixels = 20 * 12 - 1 }, &err));
    CHECK_INT(media_probe(small, check_data("media/still.png"), &arena, &info, &err), -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK(err.hint[0]);
    media_close(small);
}

/* The size of a box of an MP4 file, and its name. */
static uint32_t box_at(const char *bytes, size_t at, char name[5])
{
    const uint8_t *p = (const uint8_t *)bytes + at;
    memcpy(name, p + 4, 4);
    name[4] = '\0';
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int count_frame(void *ctx, size_t frame, const struct picture *p, struct cairn_error *e)
{
    (void)frame, (void)e;
    *(int *)ctx = p->at[0] + p->at[1] + p->at[2];
    return 0;
}

/* A browser plays a clip before it has all of it only if the index comes first. */
static void index_of_mp4_comes_first(const char *path)
{
    CLEANUP(mem_free) char *bytes = NULL;
    size_t n, at = 0;
    char name[5] = "";
    REQUIRE(!file_read_whole(path, 1 << 20, &bytes, &n, &err));
    while (at + 8 <= n && strcmp(name, "moov") && strcmp(name, "mdat"))
        at += box_at(bytes, at, name);
    CHECK_STR(name, "moov");
}

static void write_frames(const char *path, enum clip_kind kind, int n)
{
    struct clip_writer *w = NULL;
    struct picture p;
    const struct clip_format format = { 32, 16, 8, true, kind };
    REQUIRE(!picture_new(&p, 32, 16, 3, &err));
    CHECK_INT(clip_writer_open(&w, &(struct media_options){ 0 }, path, &format, &err), 0);
    for (int i = 0; i < n; i++) {
        memset(p.at, 40 + 40 * i, picture_bytes(&p));
        CHECK_INT(clip_writer_add(w, &p, &err), 0);
    }
    CHECK_INT(clip_writer_commit(w, &err), 0);
    clip_writer_close(w);
    picture_free(&p);
}

static void pictures_are_written_and_read(void)
{
    static const struct {
        const char *name, *codec;
        enum clip_kind kind;
        int frames;
    } rows[] = { { "a.jpg", "jpeg", CLIP_JPEG, 1 },
                 { "a.webp", "webp", CLIP_WEBP, 1 },
                 { "b.webp", "webp", CLIP_WEBP, 4 } };
    static const size_t first[] = { 0 };
    struct tree tree;
    tree_make(&tree);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct media_info info;
        int sum = 0;
        const char *path = arena_strdup(&arena, tree_path(&tree, rows[i].name));
        write_frames(path, rows[i].kind, rows[i].frames);
        CHECK_INT(media_probe(m, path, &arena, &info, &err), 0);
        CHECK_STR(info.codec, rows[i].codec);
        CHECK_INT(info.width, 32);
        CHECK_INT(media_read(m, path, first, 1, count_frame, &sum, &err), 0);
        CHECK(sum >= 114 && sum <= 126);
    }
    struct clip_writer *w = NULL;
    struct picture p;
    const struct clip_format jpeg = { 32, 16, 8, true, CLIP_JPEG };
    REQUIRE(!picture_new(&p, 32, 16, 3, &err));
    memset(p.at, 0, picture_bytes(&p));
    CHECK_INT(clip_writer_open(&w, &(struct media_options){ 0 }, tree_path(&tree, "c.jpg"), &jpeg, &err), 0);
    CHECK_INT(clip_writer_add(w, &p, &err), 0);
    CHECK_INT(clip_writer_add(w, &p, &err), -1);
    clip_writer_close(w);
    picture_free(&p);
    tree_remove(&tree);
}

static void clips_are_written_and_read(void)
{
    struct tree tree;
    struct clip_writer *w;
    struct media_info info;
    struct picture p;
    tree_make(&tree);
    char *path = strdup(tree_path(&tree, "out.mp4"));
    const struct clip_format format = { 32, 16, 8, false, CLIP_MP4 };
    REQUIRE(!picture_new(&p, 32, 16, 3, &err));
    CHECK_INT(clip_writer_open(&w, &(struct media_options){ 0 }, path, &format, &err), 0);
    for (int i = 0; i < 5; i++) {
        memset(p.at, 40 * i, picture_bytes(&p));
        CHECK_INT(clip_writer_add(w, &p, &err), 0);
    }
    CHECK_INT(tree_count(tree.dir), 0);
    CHECK_INT(clip_writer_commit(w, &err), 0);
    clip_writer_close(w);
    CHECK_INT(media_probe(m, path, &arena, &info, &err), 0);
    CHECK_INT(info.frames, 5);
    index_of_mp4_comes_first(path);
    CHECK_INT(clip_writer_open(&w, &(struct media_options){ 0 }, path, &format, &err), -1);
    /* Nothing stays of one that is given up. */
    const struct clip_format again = { 32, 16, 8, true, CLIP_MP4 };
    CHECK_INT(clip_writer_open(&w, &(struct media_options){ 0 }, tree_path(&tree, "b.mp4"), &again, &err), 0);
    CHECK_INT(clip_writer_add(w, &p, &err), 0);
    clip_writer_close(w);
    CHECK_INT(tree_count(tree.dir), 1);
    picture_free(&p);
    free(path);
    tree_remove(&tree);
}

static void png_files_are_written_and_read(void)
{
    struct tree tree;
    struct picture p;
    struct taken t = { 0 };
    tree_make(&tree);
    REQUIRE(!picture_new(&p, 70, 50, 3, &err));
    for (size_t i = 0; i < picture_bytes(&p); i++)
        p.at[i] = (uint8_t)(i * i >> 4);
    const char *path = tree_path(&tree, "a.png");
    CHECK_INT(png_write(path, &p, &err), 0);
    char *bytes = NULL;
    size_t n = 0;
    REQUIRE(!file_read_whole(path, 1 << 20, &bytes, &n, &err));
    CHECK(n > 12 && !memcmp(bytes + n - 8, "IEND\xae\x42\x60\x82", 8)); /* nothing follows the last chunk */
    free(bytes);
    CHECK_INT(media_read(m, path, zero, 1, take, &t, &err), 0);
    CHECK_INT(t.width, 70);
    CHECK(!memcmp(t.last, p.at + picture_bytes(&p) - 3, 3));
    CHECK_INT(png_write("/nonexistent/a.png", &p, &err), -1);
    picture_free(&p);
    tree_remove(&tree);
}

int main(void)
{
    signal(SIGPIPE, SIG_DFL);
    if (media_open(&m, &(struct media_options){ 0 }, &err)) {
        printf("1..0 # SKIP %s\n", err.msg);
        return 0;
    }
    RUN(stills_of_each_format_are_read);
    RUN(a_turned_picture_stands_upright);
    RUN(alpha_and_grey_are_read_for_masks);
    RUN(frames_of_a_clip_are_read);
    RUN(damage_is_found_each_time);
    RUN(the_reader_may_stop);
    RUN(what_is_no_media_file_is_an_error);
    RUN(a_process_that_fails_is_an_error_of_the_file);
    RUN(a_missing_program_is_told_at_once);
    RUN(a_picture_over_the_limit_is_refused);
    RUN(clips_are_written_and_read);
    RUN(pictures_are_written_and_read);
    RUN(png_files_are_written_and_read);
    media_close(m);
    arena_release(&arena);
    return check_done();
}
