/* SPDX-License-Identifier: Apache-2.0 */
#include "web/assets.h"

#include "base/str.h"
#include "os/file.h"
#include "os/info.h"
#include "os/watch.h"
#include "web/answer.h"
#include "web/folder.h"
#include "web/types.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Folders of --dev in which changes are noticed. */
static const char *const dev_folders[] = { ".", "pages", "text" };

struct assets {
    struct loop *loop;
    struct events *events;
    int dir, watch; /* of --dev; -1: none */
    struct loop_timer *reload;
};

/* ---- --dev ---- */

/* An editor makes several changes at once: one event for all. */
static void send_reload(void *context)
{
    struct assets *a = context;
    a->reload = NULL;
    events_publish(a->events, NULL, "reload", "{}", EVENTS_FLEETING);
}

static void asset_changed(void *context, struct os_watch_event e)
{
    struct assets *a = context;
    if (!a->reload && e.name && type_of(e.name)->flags & TYPE_ASSET)
        a->reload = loop_after(a->loop, 0.1, send_reload, a);
}

static void watch_ready(void *context)
{
    struct assets *a = context;
    os_watch_read(a->watch, asset_changed, a);
}

static int open_dev(struct assets *a, const char *dev, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena text = { 0 };
    a->dir = os_open(dev, OS_PLACE | OS_FOLDER);
    if (a->dir < 0)
        return cairn_fail_errno(err, "--dev %s", dev);
    a->watch = os_watch_open();
    if (a->watch < 0)
        return cairn_fail_errno(err, "watch %s", dev);
    for (size_t i = 0; i < ARRAY_LEN(dev_folders); i++)
        os_watch_add(a->watch, arena_printf(&text, "%s/%s", dev, dev_folders[i]));
    loop_read(a->loop, a->watch, watch_ready, a);
    return 0;
}

int assets_open(struct loop *l, struct events *e, const char *dev, struct assets **out,
                struct cairn_error *err)
{
    struct assets *a = calloc(1, sizeof(*a));
    if (!a)
        abort();
    *a = (struct assets){ .loop = l, .events = e, .dir = -1, .watch = -1 };
    if (dev && open_dev(a, dev, err)) {
        assets_close(a);
        return -1;
    }
    *out = a;
    return 0;
}

void assets_close(struct assets *a)
{
    if (!a)
        return;
    loop_cancel(a->loop, a->reload);
    if (a->watch >= 0)
        loop_forget(a->loop, a->watch);
    fd_close(&a->watch);
    fd_close(&a->dir);
    free(a);
}

static void not_found(struct request *r, const char *path)
{
    answer_problem(r, 404, "there is no file \"%s\" in this page", path);
}

static void answer_dev(struct assets *a, struct request *r, const char *path, int status)
{
    const char *why;
    struct os_info info;
    int fd = folder_path_is_valid(path, &why) ? os_open_beneath(a->dir, path, OS_READ | OS_NO_WAIT) : -1;
    const struct type *type = type_of(path);
    if (fd < 0 || !(type->flags & TYPE_ASSET) || os_info_fd(fd, &info) || info.kind != OS_KIND_FILE) {
        fd_close(&fd);
        not_found(r, path);
        return;
    }
    answer_file(r, status, type->type, fd, 0, info.size);
    answer_header(r, "Cache-Control", "no-store");
}

/* ---- inside the program ---- */

static const struct asset *find(const char *path)
{
    for (size_t i = 0; i < n_web_assets; i++)
        if (!strcmp(web_assets[i].path, path))
            return &web_assets[i];
    return NULL;
}

/* A client that wants no gzip says "gzip;q=0", which none does. */
static bool takes_gzip(const struct request *r)
{
    const char *accepted = request_header(r, "Accept-Encoding");
    return accepted && strstr(accepted, "gzip") && !strstr(accepted, "gzip;q=0");
}

void assets_answer(struct assets *a, struct request *r, const char *path, int status)
{
    if (a->dir >= 0) {
        answer_dev(a, r, path, status);
        return;
    }
    const struct asset *f = find(path);
    if (!f) {
        not_found(r, path);
        return;
    }
    bool packed = f->packed && takes_gzip(r);
    const char *tag = arena_printf(&r->arena, "\"%s%s\"", f->etag, packed ? "-gz" : "");
    const char *known = request_header(r, "If-None-Match");
    if (status == 200 && known && strstr(known, tag))
        answer_empty(r, 304);
    else
        answer_bytes(r, status, type_of(path)->type, (const char *)(packed ? f->packed : f->bytes),
                     packed ? f->packed_n : f->n, NULL);
    if (packed && r->answer.status != 304)
        answer_header(r, "Content-Encoding", "gzip");
    answer_header(r, "ETag", tag);
    answer_header(r, "Vary", "Accept-Encoding");
    answer_header(r, "Cache-Control", "no-cache"); /* asks each time, and gets 304 */
}
