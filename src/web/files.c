/* SPDX-License-Identifier: Apache-2.0 */
#include "web/files.h"

#include "base/str.h"
#include "os/file.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/jobs.h"
#include "web/range.h"
#include "web/types.h"
#include "web/web.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void not_there(struct request *r)
{
    answer_problem(r, 404, "there is no such file");
}

/* "job-UID": the folder that the job's training writes to, which clients only read. */
static const struct folder *job_folder(struct request *r, const char *name)
{
    struct job_row row;
    struct cairn_error ignored = { 0 };
    if (!str_starts(name, "job-") || !jobs_get(r, name + strlen("job-"), &row, &ignored))
        return NULL;
    const char *dir = jobs_training(r, &row);
    int fd = dir && !r->folder ? os_open(dir, OS_PLACE | OS_FOLDER) : -1;
    if (fd < 0)
        return NULL;
    r->folder = ARENA_NEW(&r->arena, struct folder, 1);
    *r->folder = (struct folder){ .name = name, .path = dir, .read_only = true, .fd = fd };
    return r->folder;
}

const struct folder *files_folder(struct request *r, const char **path)
{
    const char *why;
    const struct folder *f = folders_find(&r->web->folders, r->part[0]);
    if (!f)
        f = job_folder(r, r->part[0]);
    *path = r->part[1];
    if (!f || !folder_path_is_valid(*path, &why)) {
        not_there(r);
        return NULL;
    }
    return f;
}

int files_open(struct request *r, const struct folder *f, const char *path, struct os_info *info)
{
    int fd = os_open_beneath(f->fd, path, OS_READ | OS_NO_WAIT);
    if (fd >= 0 && !os_info_fd(fd, info) && info->kind == OS_KIND_FILE)
        return fd;
    if (fd < 0 && errno == EACCES)
        answer_problem(r, 403, "the file may not be read");
    else
        not_there(r);
    fd_close(&fd);
    return -1;
}

const char *files_tag(struct request *r, const struct os_info *info)
{
    return arena_printf(&r->arena, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", info->number, info->size,
                        (uint64_t)info->modified_ns);
}

/* ---- reading ---- */

/* Letters, digits and a few signs as they are, all else escaped (RFC 8187). */
static const char *disposition(struct request *r, const char *name, bool shown)
{
    CLEANUP(str_release) struct str s = { 0 };
    str_add(&s, shown ? "inline" : "attachment");
    str_add(&s, "; filename*=UTF-8''");
    for (const char *c = name; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                     strchr("-._", *c);
        str_addf(&s, plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
    return arena_strdup(&r->arena, s.s);
}

/* A part is sent only of the file that the client knows. */
static const char *wanted_range(const struct request *r, const char *tag)
{
    const char *known = request_header(r, "If-Range");
    return known && strcmp(known, tag) ? NULL : request_header(r, "Range");
}

static void answer_part(struct request *r, int fd, const struct os_info *info, const struct type *type,
                        const char *tag)
{
    uint64_t from = 0, n = info->size;
    switch (range_parse(wanted_range(r, tag), info->size, &from, &n)) {
    case RANGE_NONE:
        close(fd);
        answer_problem(r, 416, "the file has only %" PRIu64 " bytes", info->size);
        answer_header(r, "Content-Range", arena_printf(&r->arena, "bytes */%" PRIu64, info->size));
        return;
    case RANGE_PART:
        answer_file(r, 206, type->type, fd, from, n);
        answer_header(r, "Content-Range",
                      arena_printf(&r->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, from + n - 1,
                                   info->size));
        return;
    case RANGE_ALL:
        answer_file(r, 200, type->type, fd, 0, info->size);
        return;
    }
}

void files_answer(struct request *r, int fd, const struct os_info *info, const char *name)
{
    const struct type *type = type_of(name);
    const char *tag = files_tag(r, info), *known = request_header(r, "If-None-Match");
    if (known && (strstr(known, tag) || !strcmp(known, "*"))) {
        close(fd);
        answer_empty(r, 304);
    } else {
        answer_part(r, fd, info, type, tag);
        answer_header(r, "Content-Disposition", disposition(r, name, type->flags & TYPE_SHOWN));
        answer_header(r, "Accept-Ranges", "bytes");
    }
    answer_header(r, "ETag", tag);
    answer_header(r, "Cache-Control", "private, no-cache");
}

void api_file_get(struct request *r)
{
    const char *path;
    struct os_info info;
    const struct folder *f = files_folder(r, &path);
    int fd = f ? files_open(r, f, path, &info) : -1;
    if (fd >= 0)
        files_answer(r, fd, &info, str_file_name(path));
}

/* ---- deleting ---- */

int files_open_parent(int dir, const char *path, bool make)
{
    char part[FOLDER_PATH_BYTES + 1];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!slash)
        return os_open_at(dir, ".", OS_PLACE | OS_FOLDER);
    if (n >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(part, path, n);
    part[n] = '\0';
    int fd = os_open_beneath(dir, part, OS_PLACE | OS_FOLDER);
    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    CLEANUP(fd_close) int above = files_open_parent(dir, part, true);
    if (above < 0 || (os_make_dir_at(above, str_file_name(part), 0777) && errno != EEXIST))
        return -1;
    return os_open_beneath(dir, part, OS_PLACE | OS_FOLDER);
}

/* .cairn-trash/20261118-143000/PATH, with -2 and so on if that exists. */
static int move_to_trash(struct request *r, const struct folder *f, const char *path, const char **to)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm t;
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &t));
    CLEANUP(fd_close) int from = files_open_parent(f->fd, path, false);
    if (from < 0)
        return -1;
    for (int i = 1; i < 100; i++) {
        *to = i == 1 ? arena_printf(&r->arena, ".cairn-trash/%s/%s", stamp, path)
                     : arena_printf(&r->arena, ".cairn-trash/%s-%d/%s", stamp, i, path);
        CLEANUP(fd_close) int into = files_open_parent(f->fd, *to, true);
        if (into < 0)
            return -1;
        if (!os_rename_new_at(from, str_file_name(path), into, str_file_name(path)))
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

void api_file_delete(struct request *r)
{
    const char *path, *to, *wanted = request_header(r, "If-Match");
    struct os_info info;
    struct cairn_error err = { 0 };
    const struct folder *f = files_folder(r, &path);
    CLEANUP(fd_close) int fd = f ? files_open(r, f, path, &info) : -1;
    if (fd < 0)
        return;
    if (f->read_only) {
        answer_problem(r, 403, "the folder %s is read-only", f->name);
    } else if (wanted && !strstr(wanted, files_tag(r, &info))) {
        answer_problem(r, 412, "the file has changed");
    } else if (move_to_trash(r, f, path, &to)) {
        cairn_fail_errno(&err, "move %s to the trash of the folder %s", path, f->name);
        answer_error(r, &err);
    } else {
        struct json *v = answer_new();
        json_add_text(v, "trash", to);
        answer_json(r, 200, v);
    }
}
