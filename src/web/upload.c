/* SPDX-License-Identifier: Apache-2.0
 * PUT /files/{folder}/{path}: one file per request, its bytes as the body.
 *
 * The bytes go to a hidden file beside the target, .cairn-upload-NAME.part, which is locked meanwhile.  When all are
 * there it is flushed and gets its name; an existing file is never replaced.  After a broken connection the client
 * sends the rest with X-Offset, the number of bytes that the server has; the answer to a wrong one says how many. */
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include "os/info.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/files.h"
#include "web/task.h"
#include "web/types.h"
#include "web/web.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UPLOAD_MOST ((uint64_t)4 << 30)
#define UPLOAD_SPARE ((uint64_t)2 << 30) /* stays free, or a twentieth of the disk if that is more */
enum { FLUSH_EVERY = 32 << 20 };

struct upload {
    struct request *r;
    int dir, fd; /* of the folder; of the part */
    const char *name, *part;
    uint64_t at, end, flushed;
    int error; /* errno of the last step */
};

static void release(void *own)
{
    struct upload *u = own;
    fd_close(&u->dir);
    fd_close(&u->fd);
    free(u);
}

static int refuse(struct request *r, int status, const char *detail, const char *hint)
{
    answer_problem_hint(r, status, detail, hint, 0);
    return -1;
}

static int status_of(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return 507;
    case EACCES:
    case EPERM:
    case EROFS:
        return 403;
    case EXDEV: /* a link that leads out of the folder, or in a circle */
    case ELOOP:
        return 404;
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
        return 409;
    case ENAMETOOLONG:
        return 400;
    default:
        return 500;
    }
}

static int refuse_errno(struct request *r, const char *what, const char *name)
{
    struct cairn_error err = { 0 };
    int status = status_of(errno);
    cairn_fail_errno(&err, "%s %s", what, name);
    return refuse(r, status, err.msg, NULL);
}

/* ---- the checks before the first byte ---- */

static int check_request(struct request *r, const struct folder *f, const char *path)
{
    if (f->read_only)
        return refuse(r, 403, arena_printf(&r->arena, "the folder %s is read-only", f->name), NULL);
    if (!(type_of(path)->flags & TYPE_UPLOADED))
        return refuse(r, 415, "files of this kind are not taken",
                      "images, clips, captions (.txt), configurations and .safetensors can be sent");
    if (r->is_chunked || !request_header(r, "Content-Length"))
        return refuse(r, 411, "an upload needs a Content-Length", NULL);
    if (r->announced > UPLOAD_MOST)
        return refuse(r, 413, "a file may have at most 4 GiB", NULL);
    return 0;
}

static int check_disk(struct request *r, int dir, uint64_t need)
{
    struct os_disk disk;
    if (os_disk_fd(dir, &disk) || !disk.total)
        return 0; /* a full disk will tell */
    uint64_t spare = disk.total / 20 > UPLOAD_SPARE ? disk.total / 20 : UPLOAD_SPARE;
    if (disk.free >= need && disk.free - need >= spare)
        return 0;
    return refuse(r, 507, "the disk would have less than 2 GiB or 5 % left",
                  "free some space, or choose another folder");
}

static bool exists(int dir, const char *name)
{
    int fd = os_open_at(dir, name, OS_PLACE | OS_NO_LINK);
    bool there = fd >= 0 || errno != ENOENT;
    fd_close(&fd);
    return there;
}

/* ---- the part ---- */

static int wrong_offset(struct request *r, uint64_t have)
{
    refuse(r, 409, arena_printf(&r->arena, "the server has %" PRIu64 " bytes of this file", have),
           "send the rest with X-Offset, or all with X-Offset: 0");
    answer_header(r, "X-Offset", arena_printf(&r->arena, "%" PRIu64, have));
    return -1;
}

/* Locked, and as long as the client believes. */
static int open_part(struct upload *u, uint64_t offset)
{
    struct os_info info;
    u->fd = os_open_at(u->dir, u->part, OS_READ | OS_WRITE | OS_CREATE | OS_NO_LINK | OS_NO_WAIT);
    if (u->fd < 0 || os_info_fd(u->fd, &info))
        return refuse_errno(u->r, "create", u->name);
    if (info.kind != OS_KIND_FILE)
        return refuse(u->r, 409, "another kind of file has the name of the upload", NULL);
    if (os_lock(u->fd, false))
        return refuse(u->r, 409, "this file is being uploaded already", NULL);
    if (offset && offset != info.size)
        return wrong_offset(u->r, info.size);
    if (!offset && ftruncate(u->fd, 0))
        return refuse_errno(u->r, "truncate", u->name);
    return 0;
}

static int begin(struct request *r)
{
    const char *path, *at = request_header(r, "X-Offset");
    uint64_t offset = 0;
    const struct folder *f = files_folder(r, &path);
    if (!f || check_request(r, f, path))
        return -1;
    if (at && (!cairn_parse_u64(at, &offset) || offset > UPLOAD_MOST))
        return refuse(r, 400, "X-Offset must be a number of bytes", NULL);
    if (offset + r->announced > UPLOAD_MOST)
        return refuse(r, 413, "a file may have at most 4 GiB", NULL);
    struct upload *u = calloc(1, sizeof(*u));
    if (!u)
        abort();
    *u = (struct upload){ .r = r, .fd = -1, .at = offset, .end = offset + r->announced, .flushed = offset };
    u->name = arena_strdup(&r->arena, str_file_name(path));
    u->part = arena_printf(&r->arena, ".cairn-upload-%s.part", u->name);
    u->dir = files_open_parent(f->fd, path, true);
    request_own(r, u, release);
    if (u->dir < 0)
        return refuse_errno(r, "open the folder of", path);
    if (exists(u->dir, u->name))
        return refuse(r, 409, "a file of this name exists", "delete it first, or choose another name");
    return check_disk(r, u->dir, r->announced) || open_part(u, offset) ? -1 : 0;
}

static int take(struct request *r, const char *bytes, size_t n)
{
    struct upload *u = r->own;
    while (n) {
        ssize_t done = os_write_at(u->fd, bytes, n, u->at);
        if (done <= 0)
            return refuse_errno(r, "write", u->name);
        bytes += done;
        n -= (size_t)done;
        u->at += (uint64_t)done;
    }
    if (u->at - u->flushed >= FLUSH_EVERY) { /* so that little is left for fsync */
        os_start_flush(u->fd, u->flushed, u->at - u->flushed);
        u->flushed = u->at;
    }
    return 0;
}

const struct body_sink upload_sink = { .begin = begin, .take = take };

/* ---- the end ---- */

/* On a thread. */
static void finish(void *context)
{
    struct upload *u = context;
    bool failed = os_sync(u->fd) || os_rename_new_at(u->dir, u->part, u->dir, u->name);
    u->error = failed ? errno : 0;
    int folder = failed ? -1 : os_open_at(u->dir, ".", OS_READ | OS_FOLDER);
    if (folder >= 0)
        os_sync(folder);
    fd_close(&folder);
}

static void finished(void *context)
{
    struct upload *u = context;
    struct request *r = u->r;
    struct os_info info;
    errno = u->error;
    if (u->error == EEXIST) {
        refuse(r, 409, "a file of this name exists", NULL);
    } else if (u->error) {
        refuse_errno(r, "finish", u->name);
    } else {
        struct json *v = answer_new();
        json_add_text(v, "name", u->name);
        json_add_int(v, "size_bytes", (int64_t)u->at);
        answer_json(r, 201, v);
        if (!os_info_fd(u->fd, &info))
            answer_header(r, "ETag", files_tag(r, &info));
    }
    request_wake(r);
}

void api_file_put(struct request *r)
{
    struct upload *u = r->own;
    if (u->at != u->end) {
        refuse(r, 400, "the body is shorter than announced", NULL);
        return;
    }
    request_later(r);
    task_run(r->web->tasks, finish, finished, u);
}
