/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/server.h"

#include "media/child/out.h"
#include "media/child/stills.h"
#include "media/protocol.h"
#include "media_config.h"
#ifdef HAVE_CLIPS
#include "media/child/clip.h"
#endif
#include "os/info.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/socket.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FOR_EVER = -1, NONSENSE = 4 };

struct server {
    int fd;
    struct server_limits limits;
    bool lost;       /* nobody listens any more, or nonsense was said */
    struct out *out; /* the file that is being written; NULL: none */
    struct wire_write out_size;
};

static void clock_start(const struct server *s)
{
    os_limit_time(s->limits.wait_s, s->limits.threads + 1);
}

/* The time that the other end takes to read does not count. */
static int answer(struct server *s, const struct wire_message *m)
{
    os_limit_time(0, 0);
    if (wire_send(s->fd, m, FOR_EVER))
        s->lost = true;
    clock_start(s);
    return s->lost ? -1 : 0;
}

static void answer_error(struct server *s, const struct cairn_error *err)
{
    struct wire_error e = { .code = err->code };
    snprintf(e.msg, sizeof(e.msg), "%.*s", (int)sizeof(e.msg) - 1, err->msg);
    snprintf(e.hint, sizeof(e.hint), "%.*s", (int)sizeof(e.hint) - 1, err->hint);
    answer(s, &(struct wire_message){ WIRE_ERROR, &e, NULL, sizeof(e), 0, -1 });
}

static void answer_done(struct server *s)
{
    answer(s, &(struct wire_message){ .kind = WIRE_DONE, .pass = -1 });
}

static int answer_frame(struct server *s, uint64_t number, const struct image *im, enum wire_plane plane,
                        struct cairn_error *err)
{
    const struct wire_frame f = { number, im->width, im->height, plane == WIRE_RGB ? 3 : 1, 0 };
    size_t bytes = wire_frame_bytes(&f, s->limits.most_pixels);
    CLEANUP(mem_free) uint8_t *pixels = bytes ? malloc(bytes) : NULL;
    if (!pixels)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu x %zu pixels", im->width, im->height);
    image_plane(im, plane, pixels);
    return answer(s, &(struct wire_message){ WIRE_FRAME, &f, pixels, sizeof(f), bytes, -1 });
}

/* ---- stills ---- */

/* The file in memory; a file that shrinks meanwhile ends the process, which the other end reports. */
struct mapping {
    const uint8_t *at;
    size_t n;
};

static void mapping_end(struct mapping *m)
{
    if (m->at)
        os_unmap(m->at, m->n);
}

static int map_file(int file, struct mapping *m, struct cairn_error *err)
{
    struct os_info info;
    if (os_info_fd(file, &info))
        return cairn_fail_errno(err, "its size is not known");
    m->n = (size_t)info.size;
    m->at = m->n ? os_map(file, m->n) : NULL;
    if (m->n && !m->at)
        return errno == ENOMEM
                   ? cairn_fail(err, CAIRN_ENOMEM, "a file of %zu bytes is larger than the limit", m->n)
                   : cairn_fail_errno(err, "it cannot be read");
    return m->n ? 0 : cairn_fail(err, CAIRN_EFORMAT, "it is empty");
}

static struct image_source source_of(const struct server *s, const struct mapping *m, bool header_only)
{
    return (struct image_source){ m->at, m->n, header_only, s->limits.most_pixels, s->limits.threads };
}

static int probe_still(struct server *s, const struct still_format *f, const struct mapping *m,
                       struct wire_info *out, struct cairn_error *err)
{
    CLEANUP(image_release) struct image im = { 0 };
    const struct image_source source = source_of(s, m, true);
    if (still_read(f, &source, &im, err))
        return -1;
    *out = (struct wire_info){ .width = im.width,
                               .height = im.height,
                               .frames = 1,
                               .flags = im.has_alpha ? WIRE_HAS_ALPHA : 0,
                               .bits = (uint32_t)im.bits,
                               .orientation = (uint32_t)im.orientation };
    snprintf(out->codec, sizeof(out->codec), "%s", im.codec);
    memcpy(out->colour, im.colour, sizeof(out->colour));
    return 0;
}

static int read_still(struct server *s, const struct still_format *f, const struct mapping *m,
                      const struct wire_read *r, const uint64_t *frames, struct cairn_error *err)
{
    CLEANUP(image_release) struct image im = { 0 };
    const struct image_source source = source_of(s, m, false);
    if (r->n != 1 || frames[0])
        return cairn_fail(err, CAIRN_EFORMAT, "a still picture has only frame 0");
    if (still_read(f, &source, &im, err))
        return -1;
    return answer_frame(s, 0, &im, (enum wire_plane)r->plane, err);
}

/* ---- clips ---- */

#ifdef HAVE_CLIPS
static struct server *serving; /* for alive(), which has no context */

/* Renews the limit on time, and tells the other end now and then. */
static void alive(void)
{
    static time_t told;
    time_t now = time(NULL);
    if (now == told)
        return;
    told = now;
    answer(serving, &(struct wire_message){ .kind = WIRE_ALIVE, .pass = -1 });
}

static struct clip_source clip_of(struct server *s, int file)
{
    serving = s;
    return (struct clip_source){ file, s->limits.most_pixels, s->limits.threads, alive };
}

struct to_answer {
    struct server *s;
    enum wire_plane plane;
};

static int take_frame(void *ctx, uint64_t number, const struct image *im, struct cairn_error *err)
{
    struct to_answer *t = ctx;
    return answer_frame(t->s, number, im, t->plane, err);
}

static int probe_clip(struct server *s, int file, struct wire_info *out, struct cairn_error *err)
{
    const struct clip_source source = clip_of(s, file);
    return clip_probe(&source, out, err);
}

static int read_clip(struct server *s, int file, const struct wire_read *r, const uint64_t *frames,
                     struct cairn_error *err)
{
    const struct clip_source source = clip_of(s, file);
    struct to_answer to = { s, (enum wire_plane)r->plane };
    return clip_read(&source, frames, r->n, r->plane == WIRE_ALPHA, take_frame, &to, err);
}
#else
static int no_clips(struct cairn_error *err)
{
    cairn_fail(
        err, CAIRN_ELACK,
        "not a picture of a known format, and cairn-media was built without FFmpeg, which reads clips");
    return cairn_hint(err, "run scripts/setup, then build cairn again");
}

static int probe_clip(struct server *s, int file, struct wire_info *out, struct cairn_error *err)
{
    (void)s, (void)file, (void)out;
    return no_clips(err);
}

static int read_clip(struct server *s, int file, const struct wire_read *r, const uint64_t *frames,
                     struct cairn_error *err)
{
    (void)s, (void)file, (void)r, (void)frames;
    return no_clips(err);
}
#endif

/* ---- files that are written ---- */

static int receive(struct server *s, void *into, size_t n)
{
    return os_socket_receive(s->fd, into, n, NULL, FOR_EVER);
}

static int open_out(struct server *s, int file, const struct wire_write *w, struct cairn_error *err)
{
    const struct out_format *f = &out_formats[w->format];
    if (f->open)
        return f->open(&s->out, file, w, s->limits.threads, err);
    cairn_fail(err, CAIRN_ELACK, "cairn-media was built without %s, which writes %s files", f->library,
               f->name);
    return cairn_hint(err, "run scripts/setup, then build cairn again");
}

static void on_write(struct server *s, const struct wire_head *head, int *file)
{
    struct cairn_error err = { 0 };
    struct wire_write w;
    if (s->out || *file < 0 || head->size != sizeof(w) || receive(s, &w, sizeof(w)) ||
        w.format >= WIRE_FORMATS) {
        s->lost = true;
        return;
    }
    if (open_out(s, *file, &w, &err)) {
        answer_error(s, &err);
        return;
    }
    *file = -1; /* the writer's now */
    s->out_size = w;
    answer_done(s);
}

static void on_add(struct server *s, const struct wire_head *head)
{
    struct cairn_error err = { 0 };
    struct wire_frame f;
    if (!s->out || head->size < sizeof(f) || receive(s, &f, sizeof(f)) || f.channels != 3 ||
        f.width != s->out_size.width || f.height != s->out_size.height ||
        head->size - sizeof(f) != wire_frame_bytes(&f, s->limits.most_pixels)) {
        s->lost = true;
        return;
    }
    size_t bytes = (size_t)head->size - sizeof(f);
    CLEANUP(mem_free) uint8_t *rgb = bytes ? malloc(bytes) : NULL;
    if (!rgb || receive(s, rgb, bytes))
        s->lost = true;
    else if (s->out->ops->add(s->out, rgb, &err))
        answer_error(s, &err);
    else
        answer_done(s);
}

static void close_out(struct server *s)
{
    if (s->out)
        s->out->ops->close(s->out);
    s->out = NULL;
}

static void on_finish(struct server *s, const struct wire_head *head)
{
    struct cairn_error err = { 0 };
    if (!s->out || head->size) {
        s->lost = true;
        return;
    }
    if (s->out->ops->finish(s->out, &err))
        answer_error(s, &err);
    else
        answer_done(s);
    close_out(s);
}

/* ---- requests ---- */

static void on_probe(struct server *s, const struct wire_head *head, int file)
{
    CLEANUP(mapping_end) struct mapping m = { 0 };
    struct cairn_error err = { 0 };
    struct wire_info info;
    if (head->size || file < 0) {
        s->lost = true;
        return;
    }
    const struct still_format *f = map_file(file, &m, &err) ? NULL : still_recognise(m.at, m.n);
    if (!m.at || (f ? probe_still(s, f, &m, &info, &err) : probe_clip(s, file, &info, &err)))
        answer_error(s, &err);
    else
        answer(s, &(struct wire_message){ WIRE_INFO, &info, NULL, sizeof(info), 0, -1 });
}

/* The frame numbers of a request, ascending; NULL: nonsense. */
static uint64_t *receive_numbers(struct server *s, const struct wire_head *head, struct wire_read *r)
{
    if (head->size < sizeof(*r) || os_socket_receive(s->fd, r, sizeof(*r), NULL, FOR_EVER))
        return NULL;
    if (r->plane > WIRE_ALPHA || !r->n || r->n > WIRE_MOST_FRAMES ||
        head->size - sizeof(*r) != r->n * sizeof(uint64_t))
        return NULL;
    CLEANUP(mem_free) uint64_t *numbers = malloc(r->n * sizeof(*numbers));
    if (!numbers || os_socket_receive(s->fd, numbers, r->n * sizeof(*numbers), NULL, FOR_EVER))
        return NULL;
    for (size_t i = 1; i < r->n; i++)
        if (numbers[i] <= numbers[i - 1])
            return NULL;
    return TAKE(numbers);
}

static void on_read(struct server *s, const struct wire_head *head, int file)
{
    CLEANUP(mapping_end) struct mapping m = { 0 };
    struct cairn_error err = { 0 };
    struct wire_read r;
    CLEANUP(mem_free) uint64_t *numbers = file < 0 ? NULL : receive_numbers(s, head, &r);
    if (!numbers) {
        s->lost = true;
        return;
    }
    const struct still_format *f = map_file(file, &m, &err) ? NULL : still_recognise(m.at, m.n);
    int failed = !m.at ? -1
                 : f   ? read_still(s, f, &m, &r, numbers, &err)
                       : read_clip(s, file, &r, numbers, &err);
    if (failed && !s->lost)
        answer_error(s, &err);
    else if (!failed)
        answer_done(s);
}

int server_run(int fd, const struct server_limits *limits)
{
    struct server s = { .fd = fd, .limits = *limits };
    while (!s.lost) {
        CLEANUP(fd_close) int file = -1;
        struct wire_head head;
        os_limit_time(0, 0);
        if (wire_receive_head(fd, &head, &file, FOR_EVER)) {
            close_out(&s);
            return errno == ECONNRESET ? 0 : NONSENSE;
        }
        clock_start(&s);
        if (head.kind == WIRE_PROBE)
            on_probe(&s, &head, file);
        else if (head.kind == WIRE_READ)
            on_read(&s, &head, file);
        else if (head.kind == WIRE_WRITE)
            on_write(&s, &head, &file);
        else if (head.kind == WIRE_ADD)
            on_add(&s, &head);
        else if (head.kind == WIRE_FINISH)
            on_finish(&s, &head);
        else
            s.lost = true;
    }
    close_out(&s);
    return NONSENSE;
}
