/* SPDX-License-Identifier: Apache-2.0 */
#include "encode/frames_ahead.h"

#include "os/thread.h"
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 8 };

enum state { WAITING, WORKING, READY, FAILED, GONE };

/* The pixels of one item: frames of the bucket's size, one after the other. */
struct slot {
    enum state state;
    uint8_t *pixels; /* NULL: too large to be decoded ahead */
    struct cairn_error why;
};

struct worker {
    struct frames_ahead *f;
    pthread_t thread;
    struct media *media;
};

struct frames_ahead {
    struct frames_ahead_options o;
    struct slot *slots;
    size_t next; /* the first item that no thread has taken */
    size_t at;   /* the item that the caller has */
    uint64_t held;
    bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker workers[THREADS_MOST];
    int n_workers;
    struct media *own; /* for what is read piece by piece */
};

static uint64_t frame_bytes(const struct dataset_item *i)
{
    return (uint64_t)i->bucket.width * i->bucket.height * 3;
}

static uint64_t item_bytes(const struct dataset_item *i)
{
    return frame_bytes(i) * i->n_frames;
}

/* ---- decoding ---- */

struct copying {
    uint8_t *to;
    uint64_t frame;
};

static int copy_frame(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    const struct copying *c = ctx;
    (void)err;
    memcpy(c->to + frame * c->frame, p->at, c->frame);
    return 0;
}

static int decode(const struct dataset_item *item, struct media *m, uint8_t **out, struct cairn_error *err)
{
    uint8_t *pixels = malloc(item_bytes(item));
    struct copying c = { pixels, frame_bytes(item) };
    if (!pixels)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu frames", item->path, item->n_frames);
    if (dataset_item_read(item, m, copy_frame, &c, err)) {
        free(pixels);
        return -1;
    }
    *out = pixels;
    return 0;
}

/* The next item for a thread; waits until there is room for it.  False: there is no more. */
static bool take(struct frames_ahead *f, size_t *item)
{
    for (;;) {
        if (f->stop || f->next == f->o.n)
            return false;
        uint64_t bytes = item_bytes(f->o.items[f->next]);
        if (bytes > f->o.bytes) { /* the caller reads it */
            f->slots[f->next++].state = READY;
            pthread_cond_broadcast(&f->changed);
        } else if (!f->held || f->held + bytes <= f->o.bytes) {
            f->held += bytes;
            *item = f->next++;
            f->slots[*item].state = WORKING;
            return true;
        } else
            pthread_cond_wait(&f->changed, &f->lock);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct frames_ahead *f = w->f;
    size_t i;
    pthread_mutex_lock(&f->lock);
    while (take(f, &i)) {
        struct slot *s = &f->slots[i];
        pthread_mutex_unlock(&f->lock);
        int r = decode(f->o.items[i], w->media, &s->pixels, &s->why);
        pthread_mutex_lock(&f->lock);
        s->state = r ? FAILED : READY;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- the caller's side ---- */

static void free_slot(struct frames_ahead *f, size_t i)
{
    struct slot *s = &f->slots[i];
    if (s->pixels || s->state == FAILED)
        f->held -= item_bytes(f->o.items[i]);
    free(s->pixels);
    s->pixels = NULL;
    s->state = GONE;
}

int frames_ahead_next(struct frames_ahead *f, size_t item, struct cairn_error *err)
{
    struct slot *s = &f->slots[item];
    int r = 0;
    pthread_mutex_lock(&f->lock);
    for (; f->at < item; f->at++)
        free_slot(f, f->at);
    pthread_cond_broadcast(&f->changed);
    while (s->state == WAITING || s->state == WORKING)
        pthread_cond_wait(&f->changed, &f->lock);
    if (s->state == FAILED) {
        *err = s->why;
        r = -1;
    }
    pthread_mutex_unlock(&f->lock);
    return r;
}

static void to_float(float *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)in[i] / 127.5f - 1.0f;
}

struct converting {
    float *to;
    size_t first, frame;
};

static int convert_frame(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    const struct converting *c = ctx;
    (void)err;
    to_float(c->to + (frame - c->first) * c->frame, p->at, c->frame);
    return 0;
}

int frames_ahead_read(struct frames_ahead *f, size_t first, size_t n, float *out, struct cairn_error *err)
{
    const struct dataset_item *item = f->o.items[f->at];
    const uint8_t *pixels = f->slots[f->at].pixels;
    size_t frame = (size_t)frame_bytes(item);
    struct converting c = { out, first, frame };
    if (pixels) {
        to_float(out, pixels + first * frame, n * frame);
        return 0;
    }
    if (!f->own && media_open(&f->own, &(struct media_options){ 0 }, err))
        return -1;
    return dataset_item_read_range(item, first, n, f->own, convert_frame, &c, err);
}

static int threads_for(const struct frames_ahead_options *o)
{
    int n = o->threads > 0 ? o->threads : os_cpus();
    n = n < THREADS_MOST ? n : THREADS_MOST;
    return (size_t)n < o->n ? n : (int)o->n;
}

int frames_ahead_open(struct frames_ahead **out, const struct frames_ahead_options *o,
                      struct cairn_error *err)
{
    struct frames_ahead *f = calloc(1, sizeof(*f));
    struct slot *slots = calloc(o->n + 1, sizeof(*slots));
    if (!f || !slots) {
        free(f);
        free(slots);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a list of %zu items", o->n);
    }
    f->o = *o;
    f->o.bytes = o->bytes ? o->bytes : 1u << 30;
    f->slots = slots;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    for (int i = 0, n = threads_for(o); i < n; i++) {
        struct worker *w = &f->workers[i];
        w->f = f;
        if (media_open(&w->media, &(struct media_options){ 0 }, err)) {
            frames_ahead_close(f);
            return -1;
        }
        if (os_thread_start(&w->thread, work, w)) {
            media_close(w->media);
            cairn_fail(err, CAIRN_EIO, "a thread to decode frames could not be started");
            frames_ahead_close(f);
            return -1;
        }
        f->n_workers++;
    }
    *out = f;
    return 0;
}

void frames_ahead_close(struct frames_ahead *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_workers; i++) {
        pthread_join(f->workers[i].thread, NULL);
        media_close(f->workers[i].media);
    }
    for (size_t i = 0; i < f->o.n; i++)
        free(f->slots[i].pixels);
    media_close(f->own);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f->slots);
    free(f);
}
