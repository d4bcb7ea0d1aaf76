/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"

#include "base/file.h"
#include "base/str.h"
#include "media/frame_folder.h"
#include "media/helper.h"
#include "os/info.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct media {
    struct helper helper;
};

int media_open(struct media **out, const struct media_options *options, struct cairn_error *err)
{
    CLEANUP(mem_free) struct media *m = calloc(1, sizeof(*m));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read pictures");
    if (helper_init(&m->helper, options, false, err))
        return -1;
    *out = TAKE(m);
    return 0;
}

struct media *media_from_socket(int fd, uint64_t pixels)
{
    struct media *m = calloc(1, sizeof(*m));
    if (m)
        m->helper = (struct helper){ .program = "/nonexistent",
                                     .options = { .wait_s = 1, .pixels = pixels },
                                     .fd = fd };
    return m;
}

void media_close(struct media *m)
{
    if (m)
        helper_stop(&m->helper);
    free(m);
}

static bool is_folder(const char *path)
{
    struct os_info info;
    return !os_info(path, &info) && info.kind == OS_KIND_FOLDER;
}

/* Opens the file here, so that the process needs no file of its own. */
static int ask(struct helper *h, const char *path, struct wire_message *m, struct cairn_error *err)
{
    uint64_t size;
    CLEANUP(fd_close) int fd = -1;
    if (file_open(path, &fd, &size, err))
        return -1;
    if (!size)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is empty", path);
    m->pass = fd;
    return helper_ask(h, path, m, err);
}

/* ---- probe ---- */

static const char *clean_text(struct arena *a, const char *text, size_t size)
{
    CLEANUP(str_release) struct str out = { 0 };
    str_add_clean(&out, text, strnlen(text, size));
    return out.len ? arena_strdup(a, out.s) : NULL;
}

static bool is_sound(const struct wire_info *w, uint64_t most)
{
    const struct wire_frame size = { 0, w->width, w->height, 3, 0 };
    return wire_frame_bytes(&size, most) && w->frames && w->frames <= WIRE_MOST_FRAMES && isfinite(w->fps) &&
           w->fps >= 0 && isfinite(w->start_s) && w->bits <= 64 && w->orientation >= 1 &&
           w->orientation <= 8 && (w->frames == 1 || w->flags & WIRE_CLIP);
}

static int probe_file(struct media *m, const char *path, struct arena *a, struct media_info *out,
                      struct cairn_error *err)
{
    struct helper *h = &m->helper;
    struct wire_message request = { .kind = WIRE_PROBE };
    struct wire_head head;
    struct wire_info w;
    if (ask(h, path, &request, err) || helper_answer(h, path, &head, err))
        return -1;
    if (head.kind != WIRE_INFO || head.size != sizeof(w))
        return helper_confused(h, path, err);
    if (helper_payload(h, path, &w, sizeof(w), err))
        return -1;
    if (!is_sound(&w, h->options.pixels))
        return helper_confused(h, path, err);
    *out = (struct media_info){
        .clip = w.flags & WIRE_CLIP,
        .width = w.width,
        .height = w.height,
        .frames = w.frames,
        .fps = w.fps,
        .variable_rate = w.flags & WIRE_VARIABLE_RATE,
        .start_s = w.start_s,
        .has_alpha = w.flags & WIRE_HAS_ALPHA,
        .bits = (int)w.bits,
        .orientation = (int)w.orientation,
        .cut = w.flags & WIRE_CUT,
        .codec = clean_text(a, w.codec, sizeof(w.codec)),
        .colour_note = clean_text(a, w.colour, sizeof(w.colour)),
    };
    return 0;
}

int media_probe(struct media *m, const char *path, struct arena *a, struct media_info *out,
                struct cairn_error *err)
{
    if (!is_folder(path))
        return probe_file(m, path, a, out, err);
    CLEANUP(arena_release) struct arena names = { 0 };
    char **files;
    size_t n;
    if (frame_folder_list(path, &names, &files, &n, err) || probe_file(m, files[0], a, out, err))
        return -1;
    if (out->clip)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: a frame of a clip must be a still picture", files[0]);
    out->clip = true;
    out->frames = n;
    return 0;
}

/* ---- read ---- */

struct reading {
    struct helper *helper;
    const char *path;
    enum wire_plane plane;
    media_take *take;
    void *ctx;
    struct picture p; /* used for one frame after the other */
};

static void reading_end(struct reading *r)
{
    picture_free(&r->p);
}

static int receive_frame(struct reading *r, const struct wire_head *head, size_t number,
                         struct cairn_error *err)
{
    struct helper *h = r->helper;
    struct wire_frame f;
    if (head->kind != WIRE_FRAME || head->size < sizeof(f))
        return helper_confused(h, r->path, err);
    if (helper_payload(h, r->path, &f, sizeof(f), err))
        return -1;
    size_t bytes = wire_frame_bytes(&f, h->options.pixels);
    if (!bytes || f.number != number || f.channels != (r->plane == WIRE_RGB ? 3 : 1) ||
        head->size - sizeof(f) != bytes)
        return helper_confused(h, r->path, err);
    if (!r->p.at || r->p.width != f.width || r->p.height != f.height) {
        picture_free(&r->p);
        if (picture_new(&r->p, f.width, f.height, (int)f.channels, err)) {
            helper_stop(h); /* nobody will read the rest of its answer */
            return cairn_wrap(err, "%s", r->path);
        }
    }
    if (helper_payload(h, r->path, r->p.at, bytes, err))
        return -1;
    return r->take(r->ctx, number, &r->p, err);
}

static int receive_frames(struct reading *r, const uint64_t *frames, size_t n, struct cairn_error *err)
{
    struct helper *h = r->helper;
    struct wire_head head;
    for (size_t i = 0; i < n; i++) {
        if (helper_answer(h, r->path, &head, err))
            return -1;
        if (receive_frame(r, &head, frames[i], err)) {
            helper_stop(h);
            return -1;
        }
    }
    if (helper_answer(h, r->path, &head, err))
        return -1;
    return head.kind == WIRE_DONE && !head.size ? 0 : helper_confused(h, r->path, err);
}

static int read_file(struct reading *r, const size_t *frames, size_t n, struct cairn_error *err)
{
    CLEANUP(mem_free) uint64_t *numbers = malloc(n * sizeof(*numbers));
    if (!numbers)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu frame numbers", r->path, n);
    for (size_t i = 0; i < n; i++)
        numbers[i] = frames[i];
    const struct wire_read request = { r->plane, 0, n };
    struct wire_message m = { WIRE_READ, &request, numbers, sizeof(request), n * sizeof(*numbers), -1 };
    return ask(r->helper, r->path, &m, err) ? -1 : receive_frames(r, numbers, n, err);
}

/* Hands a picture of the folder on with its number in the clip. */
struct renumber {
    media_take *take;
    void *ctx;
    size_t number, width, height;
};

static int take_renumbered(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    struct renumber *r = ctx;
    (void)frame;
    if (!r->width) {
        r->width = p->width;
        r->height = p->height;
    }
    if (p->width != r->width || p->height != r->height)
        return cairn_fail(err, CAIRN_EFORMAT, "it has %zu x %zu pixels, the frames before it %zu x %zu",
                          p->width, p->height, r->width, r->height);
    return r->take(r->ctx, r->number, p, err);
}

static int read_folder(struct reading *r, const size_t *frames, size_t n, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena names = { 0 };
    char **files;
    size_t count;
    if (frame_folder_list(r->path, &names, &files, &count, err))
        return -1;
    struct renumber renumber = { .take = r->take, .ctx = r->ctx };
    for (size_t i = 0; i < n; i++) {
        if (frames[i] >= count)
            return cairn_fail(err, CAIRN_EFORMAT, "%s has %zu pictures; frame %zu is not there", r->path,
                              count, frames[i]);
        CLEANUP(reading_end)
        struct reading one = { .helper = r->helper,
                               .path = files[frames[i]],
                               .plane = r->plane,
                               .take = take_renumbered,
                               .ctx = &renumber };
        renumber.number = frames[i];
        if (read_file(&one, (const size_t[]){ 0 }, 1, err))
            return -1;
    }
    return 0;
}

static int read_any(struct reading r, const size_t *frames, size_t n, struct cairn_error *err)
{
    for (size_t i = 1; i < n; i++)
        if (frames[i] <= frames[i - 1])
            return cairn_fail(err, CAIRN_EUSAGE, "%s: frame %zu is asked for after frame %zu", r.path,
                              frames[i], frames[i - 1]);
    if (!n || n > WIRE_MOST_FRAMES)
        return n ? cairn_fail(err, CAIRN_EUSAGE, "%s: %zu frames are too many", r.path, n) : 0;
    CLEANUP(reading_end) struct reading reading = r;
    return (is_folder(r.path) ? read_folder : read_file)(&reading, frames, n, err);
}

int media_read(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take, void *ctx,
               struct cairn_error *err)
{
    return read_any((struct reading){ &m->helper, path, WIRE_RGB, take, ctx, { 0 } }, frames, n, err);
}

int media_read_grey(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take,
                    void *ctx, struct cairn_error *err)
{
    return read_any((struct reading){ &m->helper, path, WIRE_GREY, take, ctx, { 0 } }, frames, n, err);
}

int media_read_alpha(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take,
                     void *ctx, struct cairn_error *err)
{
    return read_any((struct reading){ &m->helper, path, WIRE_ALPHA, take, ctx, { 0 } }, frames, n, err);
}
