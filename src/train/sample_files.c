/* SPDX-License-Identifier: Apache-2.0 */
#include "train/sample_files.h"

#include "base/file.h"
#include "base/int.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/str.h"
#include "media/clip_writer.h"
#include "media/media.h"
#include "media/png_write.h"
#include "media/sheet_draw.h"
#include "os/info.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_MOST = 64 << 20 };

/* ---- one file ---- */

/* A clip as one picture has its frames in rows. */
struct output {
    struct sample_file *f;
    const char *path;
    enum wan_sample_format format;
    struct picture sheet;
    size_t across;
    struct clip_writer *writer;
    struct progress progress;
};

static void output_close(struct output *o)
{
    progress_end(&o->progress);
    clip_writer_close(o->writer);
    o->writer = NULL;
    picture_free(&o->sheet);
}

static bool is_one_picture(const struct output *o)
{
    return o->format == WAN_SAMPLE_PNG || o->format == WAN_SAMPLE_JPEG;
}

static int open_writer(struct output *o, size_t width, size_t height, struct cairn_error *err)
{
    const struct clip_format format = { width, height, o->f->fps, true,
                                        o->format == WAN_SAMPLE_JPEG   ? CLIP_JPEG
                                        : o->format == WAN_SAMPLE_WEBP ? CLIP_WEBP
                                                                       : CLIP_MP4 };
    return clip_writer_open(&o->writer, &(struct media_options){ 0 }, o->path, &format, err);
}

static int start(void *ctx, const struct vae_size *size, double fps, struct cairn_error *err)
{
    struct output *o = ctx;
    output_close(o); /* of a first try */
    o->f->width = size->width;
    o->f->height = size->height;
    o->f->frames = size->frames;
    o->f->fps = o->f->fps > 0 ? o->f->fps : fps;
    progress_start_count(&o->progress, o->f->talk, o->f->doing, "frame", size->frames);
    if (!is_one_picture(o))
        return open_writer(o, size->width, size->height, err);
    o->across = (size_t)ceil(sqrt((double)size->frames));
    if (picture_new(&o->sheet, size->width * o->across, size->height * div_up(size->frames, o->across), 3,
                    err))
        return -1;
    memset(o->sheet.at, 0, picture_bytes(&o->sheet));
    return 0;
}

static int frame(void *ctx, size_t number, const struct picture *p, struct cairn_error *err)
{
    struct output *o = ctx;
    if (o->f->stop && *o->f->stop)
        return cairn_fail(err, CAIRN_EIO, "interrupted");
    progress_add(&o->progress, 1);
    if (!is_one_picture(o))
        return clip_writer_add(o->writer, p, err);
    size_t row = p->width * 3, sheet_row = o->sheet.width * 3;
    uint8_t *to = o->sheet.at + number / o->across * p->height * sheet_row + number % o->across * row;
    for (size_t y = 0; y < p->height; y++)
        memcpy(to + y * sheet_row, p->at + y * row, row);
    return 0;
}

static int commit(struct output *o, struct cairn_error *err)
{
    if (o->format == WAN_SAMPLE_PNG)
        return png_write(o->path, &o->sheet, err);
    if (o->format == WAN_SAMPLE_JPEG &&
        (open_writer(o, o->sheet.width, o->sheet.height, err) || clip_writer_add(o->writer, &o->sheet, err)))
        return -1;
    return clip_writer_commit(o->writer, err);
}

/* ---- index.jsonl ---- */

static char *line_of(const struct sample_file *f)
{
    CLEANUP(json_cleanup) struct json *o = json_new_object();
    json_add_int(o, "step", (int64_t)f->step);
    json_add_int(o, "index", (int64_t)f->index);
    json_add_text(o, "prompt", f->prompt);
    json_add_int(o, "seed", f->seed);
    json_add_text(o, "file", f->name);
    json_add_int(o, "width", (int64_t)f->width);
    json_add_int(o, "height", (int64_t)f->height);
    json_add_int(o, "frames", (int64_t)f->frames);
    json_add_real(o, "fps", f->fps);
    return json_to_string(o);
}

/* Calls fn with each line that is an object, and with its text. */
static int each_line(const char *path,
                     void (*fn)(void *ctx, const struct json *o, const char *line, size_t n), void *ctx,
                     struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    if (!os_is_file(path))
        return 0;
    if (file_read_whole(path, INDEX_MOST, &text, &n, err))
        return -1;
    for (const char *at = text; at < text + n;) {
        const char *end = memchr(at, '\n', (size_t)(text + n - at));
        size_t len = (size_t)((end ? end : text + n) - at);
        CLEANUP(json_cleanup) struct json *o = NULL;
        struct cairn_error ignored;
        if (len && !json_parse(at, len, &o, &ignored) && json_is_object(o))
            fn(ctx, o, at, len);
        at += len + 1;
    }
    return 0;
}

struct kept_lines {
    const struct sample_file *f;
    struct str text;
};

static void keep_line(void *ctx, const struct json *o, const char *line, size_t n)
{
    struct kept_lines *k = ctx;
    if (json_int(json_get(o, "step"), -1) == (int64_t)k->f->step &&
        json_int(json_get(o, "index"), -1) == (int64_t)k->f->index)
        return;
    str_addn(&k->text, line, n);
    str_add(&k->text, "\n");
}

static int add_to_index(const struct sample_file *f, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *path = arena_printf(&a, "%s/index.jsonl", f->dir);
    CLEANUP(mem_free) char *line = line_of(f);
    struct kept_lines k = { .f = f };
    int r = each_line(path, keep_line, &k, err);
    if (!r) {
        str_addf(&k.text, "%s\n", line);
        r = file_write(path, k.text.s, k.text.len, err);
    }
    str_release(&k.text);
    return r;
}

int sample_file_write(struct decoder *d, const struct decode_clip *c, struct sample_file *f,
                      struct cairn_error *err)
{
    static const char *const extensions[] = { [WAN_SAMPLE_PNG] = "png",
                                              [WAN_SAMPLE_JPEG] = "jpg",
                                              [WAN_SAMPLE_WEBP] = "webp",
                                              [WAN_SAMPLE_MP4] = "mp4" };
    CLEANUP(arena_release) struct arena a = { 0 };
    enum wan_sample_format format = f->format != WAN_SAMPLE_AUTO ? f->format
                                    : c->frames > 1              ? WAN_SAMPLE_MP4
                                                                 : WAN_SAMPLE_PNG;
    snprintf(f->name, sizeof(f->name), "step-%06" PRIu64 "_%02zu.%s", f->step, f->index, extensions[format]);
    CLEANUP(output_close)
    struct output o = { .f = f, .path = arena_printf(&a, "%s/%s", f->dir, f->name), .format = format };
    if (decode_latents(d, c, &(struct decode_sink){ start, frame, &o }, err) || commit(&o, err))
        return -1;
    return add_to_index(f, err);
}

/* ---- the sheet ---- */

enum { GAP = 8, TITLE = 20, CELL = 160, COLUMNS_MOST = 12, ROWS_MOST = 32 };

struct listed {
    uint64_t step;
    size_t index, width, height, frames;
    const char *file, *prompt;
};
struct listing {
    struct arena arena;
    struct listed *all;
    size_t n;
};

static void listing_release(struct listing *l)
{
    arena_release(&l->arena);
}

static void list_line(void *ctx, const struct json *o, const char *line, size_t n)
{
    struct listing *l = ctx;
    int64_t step = json_int(json_get(o, "step"), -1), index = json_int(json_get(o, "index"), -1);
    int64_t width = json_int(json_get(o, "width"), 0), height = json_int(json_get(o, "height"), 0);
    const char *file = json_text(json_get(o, "file")), *prompt = json_text(json_get(o, "prompt"));
    (void)line, (void)n;
    if (step < 0 || index < 0 || index >= ROWS_MOST || width < 1 || height < 1 || !file || strchr(file, '/'))
        return;
    *ARENA_PUSH(&l->arena, l->all, l->n) = (struct listed){ (uint64_t)step,
                                                            (size_t)index,
                                                            (size_t)width,
                                                            (size_t)height,
                                                            (size_t)json_int(json_get(o, "frames"), 1),
                                                            arena_strdup(&l->arena, file),
                                                            arena_strdup(&l->arena, prompt ? prompt : "") };
}

static int by_step(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->index > y->index) - (x->index < y->index);
}

/* The steps of the columns: all, or some from the first to the last. */
static size_t choose_steps(const struct listing *l, uint64_t *steps)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    uint64_t *all = ARENA_NEW(&a, uint64_t, l->n);
    size_t n = 0, shown;
    for (size_t i = 0; i < l->n; i++)
        if (!n || all[n - 1] != l->all[i].step)
            all[n++] = l->all[i].step;
    shown = at_most(n, COLUMNS_MOST);
    for (size_t i = 0; i < shown; i++)
        steps[i] = all[shown < 2 ? 0 : i * (n - 1) / (shown - 1)];
    return shown;
}

static const struct listed *find(const struct listing *l, size_t index, const uint64_t *step)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].index == index && (!step || l->all[i].step == *step))
            return &l->all[i];
    return NULL;
}

struct cell {
    struct picture *sheet;
    struct sheet_place at;
};

static int paste(void *ctx, size_t number, const struct picture *p, struct cairn_error *err)
{
    struct cell *c = ctx;
    (void)number;
    return sheet_paste(c->sheet, &c->at, p, err);
}

/* The middle frame of a clip; of an animation, which is read as a picture, the first. */
static void draw_sample(struct cell *c, struct media *m, const char *dir, const struct listed *s)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error ignored = { 0 };
    size_t number = str_ends(s->file, ".mp4") ? s->frames / 2 : 0;
    if (media_read(m, arena_printf(&a, "%s/%s", dir, s->file), &number, 1, paste, c, &ignored))
        sheet_fill(c->sheet, &c->at, SHEET_MISSING);
}

struct sheet_row {
    size_t index, y, width, height;
};

static size_t place_rows(const struct listing *l, struct sheet_row *rows, size_t *height)
{
    size_t n = 0;
    *height = GAP + TITLE;
    for (size_t i = 0; i < ROWS_MOST; i++) {
        const struct listed *s = find(l, i, NULL);
        if (!s)
            continue;
        size_t longer = at_least(s->width, s->height);
        rows[n] = (struct sheet_row){ i, *height + TITLE, at_least(s->width * CELL / longer, 1),
                                      at_least(s->height * CELL / longer, 1) };
        *height = rows[n].y + rows[n].height + GAP;
        n++;
    }
    return n;
}

static int draw(const struct listing *l, const char *dir, struct media *m, struct picture *sheet,
                struct cairn_error *err)
{
    uint64_t steps[COLUMNS_MOST];
    struct sheet_row rows[ROWS_MOST];
    size_t height, columns = choose_steps(l, steps), n = place_rows(l, rows, &height);
    if (picture_new(sheet, GAP + columns * (CELL + GAP), height, 3, err))
        return -1;
    memset(sheet->at, SHEET_PAPER, picture_bytes(sheet));
    for (size_t k = 0; k < columns; k++) {
        char title[40];
        snprintf(title, sizeof(title), "step %" PRIu64, steps[k]);
        sheet_text(sheet, GAP + k * (CELL + GAP), GAP, title, 1, CELL / SHEET_LETTER);
    }
    for (size_t i = 0; i < n; i++) {
        const struct sheet_row *r = &rows[i];
        sheet_text(sheet, GAP, r->y - 12, find(l, r->index, NULL)->prompt, 1,
                   (sheet->width - 2 * GAP) / SHEET_LETTER);
        for (size_t k = 0; k < columns; k++) {
            struct cell c = { sheet, { GAP + k * (CELL + GAP), r->y, r->width, r->height } };
            const struct listed *s = find(l, r->index, &steps[k]);
            if (s)
                draw_sample(&c, m, dir, s);
        }
    }
    return 0;
}

int sample_sheet_write(const char *dir, struct cairn_error *err)
{
    CLEANUP(listing_release) struct listing l = { 0 };
    CLEANUP(picture_free) struct picture sheet = { 0 };
    struct media *m = NULL;
    if (each_line(arena_printf(&l.arena, "%s/index.jsonl", dir), list_line, &l, err) || !l.n)
        return l.n ? -1 : 0;
    qsort(l.all, l.n, sizeof(*l.all), by_step);
    int r = media_open(&m, NULL, err) || draw(&l, dir, m, &sheet, err) ||
            png_write(arena_printf(&l.arena, "%s/sheet.png", dir), &sheet, err);
    media_close(m);
    return r ? -1 : 0;
}
