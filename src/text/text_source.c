/* SPDX-License-Identifier: Apache-2.0 */
#include "text/text_source.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "text/split.h"
#include "os/list.h"
#include "os/info.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, LONGEST_PART = 64 << 20, LONGEST_LINE = 1 << 30, LOOKED_AT = 8192, DEEPEST = 64 };

/* ---- which files ---- */

static bool is_jsonl(const char *path)
{
    return str_ends(path, ".jsonl") || str_ends(path, ".ndjson");
}

static void add_file(struct text_source *s, const char *path, uint64_t bytes)
{
    struct text_source_file *f = ARENA_PUSH(&s->arena, s->files, s->n_files);
    *f = (struct text_source_file){ arena_strdup(&s->arena, path), is_jsonl(path), bytes };
    s->bytes += bytes;
}

static int add_folder(struct text_source *s, const char *folder, int depth, struct cairn_error *err)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(folder, 0);
    if (!l)
        return cairn_fail_errno(err, "open folder %s", folder);
    for (const char *name; (name = os_list_next(l));) {
        CLEANUP(str_release) struct str path = { 0 };
        struct os_info info;
        str_addf(&path, "%s/%s", folder, name);
        if (name[0] == '.' || os_info_link(path.s, &info))
            continue;
        /* A link to a file is followed; one to a folder is not, because it may form a loop. */
        bool link = info.kind == OS_KIND_LINK;
        if (link && os_info(path.s, &info))
            continue;
        if (info.kind == OS_KIND_FILE)
            add_file(s, path.s, info.size);
        else if (info.kind == OS_KIND_FOLDER && !link && depth == DEEPEST)
            return cairn_fail(err, CAIRN_EFORMAT, "%s has folders nested more than %d deep", s->path,
                              DEEPEST);
        else if (info.kind == OS_KIND_FOLDER && !link && add_folder(s, path.s, depth + 1, err))
            return -1;
    }
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct text_source_file *)a)->path, ((const struct text_source_file *)b)->path);
}

int text_source_open(struct text_source *s, const char *path, struct cairn_error *err)
{
    *s = (struct text_source){ .path = path };
    struct os_info info;
    if (os_info(path, &info))
        return cairn_fail_errno(err, "%s", path);
    s->folder = info.kind == OS_KIND_FOLDER;
    if (!s->folder && info.kind != OS_KIND_FILE)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is neither a file nor a folder", path);
    if (!s->folder && !info.size)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is empty", path);
    if (!s->folder) {
        add_file(s, path, info.size);
        return 0;
    }
    if (add_folder(s, path, 0, err)) {
        text_source_close(s);
        return -1;
    }
    if (s->n_files)
        qsort(s->files, s->n_files, sizeof(*s->files), compare_files);
    return s->n_files ? 0 : cairn_fail(err, CAIRN_EFORMAT, "%s: the folder has no files", path);
}

void text_source_close(struct text_source *s)
{
    arena_release(&s->arena);
    *s = (struct text_source){ 0 };
}

/* ---- bytes ---- */

/* A file that is read from start to end; the buffer starts with the bytes not used yet. */
struct reader {
    const struct text_source_file *file;
    int fd;
    struct os_info before;
    uint64_t at;
    char *buf;
    size_t have, cap;
    struct hash *hash;
    struct progress *progress;
    const volatile sig_atomic_t *stop;
};

static void reader_close(struct reader *r)
{
    fd_close(&r->fd);
    free(r->buf);
}

static int changed(const struct text_source_file *f, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EIO, "%s changed while cairn read it", f->path);
}

static int reader_open(struct reader *r, const struct text_source *s, const struct text_source_file *f,
                       struct hash *h, struct progress *progress, struct cairn_error *err)
{
    uint64_t size;
    *r = (struct reader){ .file = f, .fd = -1, .hash = h, .progress = progress, .stop = s->stop };
    if (file_open(f->path, &r->fd, &size, err))
        return -1;
    if (os_info_fd(r->fd, &r->before) || size != f->bytes)
        return changed(f, err);
    hash_add_u64(h, size << 1 | f->jsonl);
    return 0;
}

static bool at_end(const struct reader *r)
{
    return r->at == r->file->bytes;
}

/* Adds the next block to the buffer. */
static int reader_fill(struct reader *r, struct cairn_error *err)
{
    uint64_t left = r->file->bytes - r->at;
    size_t n = left < BLOCK ? (size_t)left : BLOCK;
    if (r->stop && *r->stop)
        return cairn_fail(err, CAIRN_EIO, "interrupted");
    if (r->cap - r->have < n) {
        size_t cap = 2 * r->cap > r->have + n ? 2 * r->cap : r->have + n;
        char *buf = realloc(r->buf, cap);
        if (!buf)
            return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu bytes", r->file->path, cap);
        r->buf = buf;
        r->cap = cap;
    }
    if (file_read_at(r->fd, r->file->path, r->buf + r->have, n, r->at, err))
        return -1;
    hash_add(r->hash, r->buf + r->have, n);
    r->at += n;
    r->have += n;
    progress_add(r->progress, n);
    return 0;
}

static void reader_use(struct reader *r, size_t n)
{
    if (n)
        memmove(r->buf, r->buf + n, r->have - n);
    r->have -= n;
}

static int reader_check(const struct reader *r, struct cairn_error *err)
{
    struct os_info now;
    return os_info_fd(r->fd, &now) || !os_info_is_unchanged(&r->before, &now) ? changed(r->file, err) : 0;
}

static int hash_file(const struct text_source *s, const struct text_source_file *f, struct hash *h,
                     struct progress *progress, struct cairn_error *err)
{
    CLEANUP(reader_close) struct reader r;
    if (reader_open(&r, s, f, h, progress, err))
        return -1;
    while (!at_end(&r)) {
        if (reader_fill(&r, err))
            return -1;
        r.have = 0;
    }
    return reader_check(&r, err);
}

int text_source_hash(const struct text_source *s, uint64_t hash[2], struct progress *progress,
                     struct cairn_error *err)
{
    struct hash h;
    hash_init(&h);
    for (size_t i = 0; i < s->n_files; i++)
        if (hash_file(s, &s->files[i], &h, progress, err))
            return -1;
    hash_end(&h, hash);
    return 0;
}

/* ---- documents ---- */

struct sink {
    text_source_fn *fn;
    void *context;
    const char *text_key;
    struct hash hash;
    struct progress *progress;
};

/* Cuts a text that has no good position to cut, but not inside a character. */
static size_t any_cut(const char *s, size_t n)
{
    size_t cut = n;
    while (cut && n - cut < 4 && ((unsigned char)s[cut - 1] & 0xc0) == 0x80)
        cut--;
    return cut > 1 ? cut - 1 : n;
}

static int read_text(struct reader *r, struct sink *out, struct cairn_error *err)
{
    bool begins = true;
    while (r->have || !at_end(r)) {
        if (!at_end(r) && reader_fill(r, err))
            return -1;
        size_t n = at_end(r) ? r->have : split_cut(r->buf, r->have);
        if (!n && r->have < LONGEST_PART)
            continue;
        if (!n)
            n = any_cut(r->buf, r->have);
        struct text_source_part part = { r->buf, n, begins, at_end(r) && n == r->have };
        if (out->fn(out->context, &part, err))
            return -1;
        reader_use(r, n);
        begins = false;
    }
    return 0;
}

static bool is_blank(const char *s, size_t n)
{
    while (n && strchr(" \t\r\n", s[n - 1]) && s[n - 1])
        n--;
    return !n;
}

static int read_line(const struct reader *r, const char *s, size_t n, size_t line, struct sink *out,
                     struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    const char *path = r->file->path, *key = out->text_key;
    if (is_blank(s, n))
        return 0;
    if (json_parse_nul(s, n, &v, err))
        return cairn_wrap(err, "%s:%zu: not JSON", path, line);
    const struct json *value = json_get(v, key);
    if (!value) {
        cairn_fail(err, CAIRN_EFORMAT, "%s:%zu: no key \"%s\"", path, line, key);
        struct json_member first = json_first(v);
        return first.key
                   ? cairn_hint(err, "its first key is \"%s\"; set data.text_key to the key of the text",
                                first.key)
                   : -1;
    }
    size_t len;
    const char *text = json_bytes(value, &len);
    if (!text)
        return cairn_fail(err, CAIRN_EFORMAT, "%s:%zu: \"%s\" is not a string", path, line, key);
    struct text_source_part part = { text, len, true, true };
    return part.n ? out->fn(out->context, &part, err) : 0;
}

static int read_lines(struct reader *r, struct sink *out, struct cairn_error *err)
{
    size_t line = 0, looked = 0; /* bytes of the buffer already searched for a line end */
    while (r->have || !at_end(r)) {
        if (!at_end(r) && reader_fill(r, err))
            return -1;
        size_t used = 0;
        for (char *end; (end = memchr(r->buf + looked, '\n', r->have - looked)); looked = used) {
            if (read_line(r, r->buf + used, (size_t)(end - r->buf) - used, ++line, out, err))
                return -1;
            used = (size_t)(end - r->buf) + 1;
        }
        if (at_end(r) && used < r->have) {
            if (read_line(r, r->buf + used, r->have - used, ++line, out, err))
                return -1;
            used = r->have;
        }
        reader_use(r, used);
        looked = r->have;
        if (r->have > LONGEST_LINE)
            return cairn_fail(err, CAIRN_EFORMAT, "%s:%zu: the line is longer than %d MiB", r->file->path,
                              line + 1, LONGEST_LINE >> 20);
    }
    return 0;
}

/* A named file must be text; one of a folder may be something else. */
static int check_text(const struct reader *r, bool *skip, struct cairn_error *err)
{
    size_t n = r->have < LOOKED_AT ? r->have : LOOKED_AT;
    const char *zero = n ? memchr(r->buf, '\0', n) : NULL;
    if (!zero || *skip) {
        *skip = zero || !r->file->bytes;
        return 0;
    }
    cairn_fail(err, CAIRN_EFORMAT, "%s is not text: byte %td is zero", r->file->path, zero - r->buf);
    return cairn_hint(
        err, "if it is UTF-16, convert it with iconv -f utf-16 -t utf-8; name a file of tokens .bin");
}

static int read_file(const struct text_source *s, const struct text_source_file *f, struct sink *out,
                     bool *skipped, struct cairn_error *err)
{
    CLEANUP(reader_close) struct reader r;
    *skipped = s->folder;
    if (reader_open(&r, s, f, &out->hash, out->progress, err) || (f->bytes && reader_fill(&r, err)) ||
        check_text(&r, skipped, err))
        return -1;
    /* Skipped files count too: the hash covers all bytes. */
    while (*skipped && !at_end(&r)) {
        r.have = 0;
        if (reader_fill(&r, err))
            return -1;
    }
    if (!*skipped && (f->jsonl ? read_lines(&r, out, err) : read_text(&r, out, err)))
        return -1;
    return reader_check(&r, err);
}

int text_source_read(struct text_source *s, const char *text_key, text_source_fn *fn, void *context,
                     uint64_t hash[2], struct progress *progress, struct cairn_error *err)
{
    struct sink out = { .fn = fn, .context = context, .text_key = text_key, .progress = progress };
    hash_init(&out.hash);
    s->skipped = 0;
    for (size_t i = 0; i < s->n_files; i++) {
        bool skipped;
        if (read_file(s, &s->files[i], &out, &skipped, err))
            return -1;
        s->skipped += skipped;
    }
    hash_end(&out.hash, hash);
    return 0;
}
