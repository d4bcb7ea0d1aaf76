/* SPDX-License-Identifier: Apache-2.0
 * What a job wrote: its log, its samples, its files; and its diagnosis. */
#include "base/file.h"
#include "base/str.h"
#include "os/file.h"
#include "os/info.h"
#include "os/list.h"
#include "run/log_parts.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/child.h"
#include "web/jobs.h"
#include "web/sample_index.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_MOST = 32 << 20, INDEX_MOST = 64 << 20, FILES_MOST = 5000, DEPTH = 3 };

/* ---- log ---- */

/* A range in one file is sent from there, one that lies in several from memory. */
static void answer_range(struct request *r, struct log_parts *p, uint64_t offset, uint64_t n)
{
    static const char type[] = "text/plain; charset=utf-8";
    uint64_t at;
    int fd = log_parts_find(p, offset, n, &at);
    if (fd >= 0) {
        for (int i = 0; i < LOG_PARTS; i++)
            p->fd[i] = p->fd[i] == fd ? -1 : p->fd[i]; /* the answer closes it */
        answer_file(r, 200, type, fd, at, n);
        return;
    }
    char *text = malloc(n + 1);
    if (!text)
        abort();
    ssize_t got = log_parts_read(p, offset, text, (size_t)n);
    answer_bytes(r, 200, type, text, got > 0 ? (size_t)got : 0, text);
}

void api_job_log(struct request *r)
{
    CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
    struct job_row row;
    int64_t offset, limit, tail;
    if (!jobs_find(r, &row) || !request_query_int(r, "offset", 0, INT64_MAX, 0, &offset) ||
        !request_query_int(r, "limit", 1, LOG_MOST, 1 << 20, &limit) ||
        !request_query_int(r, "tail", 0, LOG_MOST, -1, &tail))
        return;
    const char *path = arena_printf(&r->arena, "%s/log", jobs_journal(r, &row));
    if (log_parts_open(&p, path)) {
        answer_problem(r, 500, "open %s: %s", path, strerror(errno));
        return;
    }
    if (tail >= 0) {
        offset = (uint64_t)tail < p.total ? (int64_t)(p.total - (uint64_t)tail) : 0;
        limit = tail;
    }
    uint64_t at = log_parts_at(&p, (uint64_t)offset),
             skipped = at > (uint64_t)offset ? at - (uint64_t)offset : 0;
    uint64_t left = skipped < (uint64_t)limit ? (uint64_t)limit - skipped : 0;
    answer_range(r, &p, at, log_parts_length(&p, at, left));
    answer_header(r, "X-Offset", arena_printf(&r->arena, "%llu", (unsigned long long)at));
    answer_header(r, "X-Size", arena_printf(&r->arena, "%llu", (unsigned long long)p.total));
}

/* ---- samples ---- */

void api_job_samples(struct request *r)
{
    struct job_row row;
    struct cairn_error ignored;
    int64_t from, limit;
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    if (!jobs_find(r, &row) || !request_query_int(r, "from", 0, INT64_MAX, 0, &from) ||
        !request_query_int(r, "limit", 1, 10000, 10000, &limit))
        return;
    const char *dir = jobs_training(r, &row), *folder = arena_printf(&r->arena, "job-%s", row.uid);
    struct json *v = answer_new(), *list = json_add_array(v, "samples");
    if (dir && !file_read_whole(arena_printf(&r->arena, "%s/samples/index.jsonl", dir), INDEX_MOST, &text, &n,
                                &ignored))
        sample_index_add(text, from, limit, folder, list);
    answer_json(r, 200, v);
}

/* ---- files ---- */

struct listing {
    struct request *r;
    struct json *list;
    const char *top, *folder;
    size_t n;
};

/* "checkpoints/step-200/lora.safetensors", "samples/step-000250_00.mp4"; -1: none. */
static int64_t step_of(const char *path)
{
    const char *at = strstr(path, "step-");
    return at ? strtoll(at + strlen("step-"), NULL, 10) : -1;
}

static void list_folder(struct listing *l, const char *below, int depth)
{
    struct arena *a = &l->r->arena;
    const char *dir = *below ? arena_printf(a, "%s/%s", l->top, below) : l->top;
    CLEANUP(os_list_close) struct os_list *names = os_list_open(dir, OS_NO_LINK);
    for (const char *name; names && l->n < FILES_MOST && (name = os_list_next(names));) {
        const char *path = *below ? arena_printf(a, "%s/%s", below, name) : arena_strdup(a, name);
        struct os_info info;
        if (name[0] == '.' || os_info_link(arena_printf(a, "%s/%s", l->top, path), &info))
            continue;
        if (info.kind == OS_KIND_FOLDER && depth > 0)
            list_folder(l, path, depth - 1);
        if (info.kind != OS_KIND_FILE)
            continue;
        struct json *o = json_add_object(l->list, NULL);
        json_add_text(o, "folder", l->folder);
        json_add_text(o, "path", path);
        json_add_int(o, "size_bytes", (int64_t)info.size);
        json_add_int(o, "time", info.modified_ns / 1000000000);
        if (step_of(path) >= 0)
            json_add_int(o, "step", step_of(path));
        else
            json_add_null(o, "step");
        l->n++;
    }
}

void api_job_files(struct request *r)
{
    struct job_row row;
    if (!jobs_find(r, &row))
        return;
    struct json *v = answer_new();
    struct listing l = { .r = r,
                         .list = json_add_array(v, "files"),
                         .top = jobs_training(r, &row),
                         .folder = arena_printf(&r->arena, "job-%s", row.uid) };
    if (l.top)
        list_folder(&l, "", DEPTH);
    answer_json(r, 200, v);
}

/* ---- verdict ---- */

void api_job_verdict(struct request *r)
{
    struct job_row row;
    const char *argv[8] = { "diagnose", "--json" };
    size_t n = 2;
    if (!jobs_find(r, &row))
        return;
    const char *log = arena_printf(&r->arena, "%s/log", jobs_journal(r, &row));
    if (!os_is_file(log)) {
        answer_problem(r, 404, "the job has no log yet");
        return;
    }
    if (row.has_exit)
        argv[n++] = arena_printf(&r->arena, "--exit=%lld", (long long)row.exit_code);
    if (r->web->options->root)
        argv[n++] = arena_printf(&r->arena, "--root=%s", r->web->options->root);
    argv[n++] = log;
    child_answer(r, &(struct child_spec){ .argv = argv });
}
