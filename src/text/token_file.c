/* SPDX-License-Identifier: Apache-2.0 */
#include "text/token_file.h"

#include "base/int.h"
#include "os/fault.h"
#include "base/str.h"
#include "base/thread.h"
#include "os/info.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ---- */

struct cache_head {
    char magic[8];
    uint32_t version, width;
    uint64_t n, skipped, key[2], sum[2];
};
static const char magic[8] = "cairntok";
enum { VERSION = 1 };

enum { PIECE_BYTES = 1 << 20 };

/* Takes ownership of the descriptor. */
static int take_file(struct token_file *f, int fd, const char *path, struct cairn_error *err)
{
    struct os_info info;
    CLEANUP(fd_close) int mine = fd;
    *f = (struct token_file){ 0 };
    if (os_info_fd(mine, &info))
        return cairn_fail_errno(err, "stat %s", path);
    if (!info.size)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is empty", path);
    *f = (struct token_file){ .path = strdup(path), .fd = mine, .bytes = info.size };
    if (!f->path)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", path);
    mine = -1;
    return 0;
}

void token_file_close(struct token_file *f)
{
    if (f->path)
        close(f->fd);
    free(f->path);
    *f = (struct token_file){ 0 };
}

static bool is_whole(const struct token_file *f, const struct cache_head *head, const uint64_t key[2])
{
    struct cairn_error none;
    struct hash h;
    uint64_t sum[2];
    if (memcmp(head->magic, magic, sizeof(magic)) || head->version != VERSION ||
        (head->width != 1 && head->width != 2 && head->width != 4) ||
        memcmp(head->key, key, sizeof(head->key)) || head->n != (f->bytes - sizeof(*head)) / head->width ||
        (f->bytes - sizeof(*head)) % head->width)
        return false;
    CLEANUP(mem_free) char *piece = malloc(PIECE_BYTES);
    hash_init(&h);
    for (uint64_t at = sizeof(*head); at < f->bytes; at += PIECE_BYTES) {
        size_t n = f->bytes - at < PIECE_BYTES ? (size_t)(f->bytes - at) : PIECE_BYTES;
        if (!piece || file_read_at(f->fd, f->path, piece, n, at, &none))
            return false;
        hash_add(&h, piece, n);
    }
    hash_end(&h, sum);
    return !memcmp(sum, head->sum, sizeof(sum));
}

static void use_head(struct token_file *f, const struct cache_head *head)
{
    f->first = sizeof(*head);
    f->width = (int)head->width;
    f->n = head->n;
    f->skipped = head->skipped;
}

int token_cache_open(struct token_file *f, const struct own_dir *d, const char *name, const uint64_t key[2])
{
    struct cairn_error none;
    struct cache_head head;
    int fd;
    *f = (struct token_file){ 0 };
    if (d->fd < 0 || own_file_open(d, name, OS_READ, &fd, &none) || take_file(f, fd, name, &none))
        return -1;
    if (f->bytes < sizeof(head) || file_read_at(f->fd, name, &head, sizeof(head), 0, &none) ||
        !is_whole(f, &head, key)) {
        token_file_close(f);
        return -1;
    }
    use_head(f, &head);
    return 0;
}

/* ---- .bin files ---- */

enum { LLMC_HEAD = 256 * 4, LLMC_16 = 20240520, LLMC_32 = 20240801 };

/* Finds the tokens; a file without a header is all tokens. */
static int read_head(struct token_file *f, struct cairn_error *err)
{
    int32_t head[3] = { 0 };
    if (f->bytes >= sizeof(head) && file_read_at(f->fd, f->path, head, sizeof(head), 0, err))
        return -1;
    f->width = head[0] == LLMC_32 ? 4 : 2;
    if (f->bytes >= LLMC_HEAD && (head[0] == LLMC_16 || head[0] == LLMC_32))
        f->first = LLMC_HEAD;
    else
        f->width = 2;
    f->n = (f->bytes - f->first) / (uint64_t)f->width;
    if ((f->bytes - f->first) % (uint64_t)f->width)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %llu bytes is not a whole number of %d-bit tokens",
                          f->path, (unsigned long long)(f->bytes - f->first), 8 * f->width);
    if (f->first && (uint64_t)(uint32_t)head[2] != f->n)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s is truncated or damaged: its header says %u tokens, but it has %llu", f->path,
                          (uint32_t)head[2], (unsigned long long)f->n);
    return 0;
}

static uint32_t token_at(const char *at, int width)
{
    uint16_t narrow;
    uint32_t wide;
    if (width == 1)
        return *(const unsigned char *)at;
    if (width == 2) {
        memcpy(&narrow, at, 2);
        return narrow;
    }
    memcpy(&wide, at, 4);
    return wide;
}

/* Reads into the end of `out` and widens from the front, which never overwrites a token not yet widened. */
int token_file_copy(const struct token_file *f, uint64_t at, size_t n, int32_t *out, struct cairn_error *err)
{
    size_t width = (size_t)f->width;
    const char *raw = (char *)out + n * (sizeof(*out) - width);
    if (file_read_at(f->fd, f->path, (char *)raw, n * width, f->first + at * width, err))
        return cairn_hint(err, "the file must not change while a run uses it");
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)token_at(raw + i * width, f->width);
    return 0;
}

struct check {
    const struct token_file *f;
    uint32_t vocab;
};
enum { CHECKED = 1 << 20 };

static int check_part(void *context, size_t part, struct cairn_error *err)
{
    const struct check *c = context;
    uint64_t at = (uint64_t)part * CHECKED;
    size_t n = c->f->n - at < CHECKED ? (size_t)(c->f->n - at) : CHECKED, i = 0;
    CLEANUP(mem_free) int32_t *ids = malloc(n * sizeof(*ids));
    uint32_t most = 0;
    if (!ids)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to read the file", c->f->path);
    if (token_file_copy(c->f, at, n, ids, err))
        return -1;
    for (size_t k = 0; k < n; k++)
        most = (uint32_t)ids[k] > most ? (uint32_t)ids[k] : most;
    while (most >= c->vocab && (uint32_t)ids[i] < c->vocab)
        i++;
    if (most < c->vocab)
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: token %llu has the id %u, but the largest id of the vocabulary is %u",
               c->f->path, (unsigned long long)(at + i), (uint32_t)ids[i], c->vocab - 1);
    return cairn_hint(err, "set data.tokenizer to the tokenizer that made the file");
}

int token_bin_open(struct token_file *f, const char *path, uint32_t vocab, struct cairn_error *err)
{
    uint64_t size;
    int fd;
    *f = (struct token_file){ 0 };
    if (file_open(path, &fd, &size, err) || take_file(f, fd, path, err))
        return -1;
    struct check c = { f, vocab };
    if (read_head(f, err) || parallel_for(div_up(f->n, CHECKED), 0, check_part, &c, err)) {
        token_file_close(f);
        return -1;
    }
    return 0;
}

/* ---- writing ---- */

static int no_room(struct cairn_error *err)
{
    return cairn_hint(
        err, "cairn caches tokens in that folder; free some space there, or set XDG_CACHE_HOME to another");
}

/* An unnamed file that disappears with the process. */
static int open_unnamed(struct file_out *out, struct cairn_error *err)
{
    static const char name[] = "tokens";
    int fd = os_open_unnamed(name);
    *out = (struct file_out){ .file = { .fd = fd, .dir = -1 }, .path = fd < 0 ? NULL : strdup(name) };
    return fd < 0 ? cairn_fail_errno(err, "make a temporary file for tokens") : 0;
}

int token_writer_open(struct token_writer *w, const struct own_dir *d, const char *name, uint32_t vocab,
                      struct cairn_error *err)
{
    CLEANUP(str_release) struct str path = { 0 };
    *w = (struct token_writer){ .out = FILE_OUT_NONE, .width = vocab <= 256 ? 1 : vocab <= 65536 ? 2 : 4 };
    w->unnamed = d->fd < 0;
    hash_init(&w->sum);
    if (w->unnamed)
        return open_unnamed(&w->out, err);
    str_addf(&path, "%s/%s", d->path, name);
    return file_out_open_at(&w->out, d->fd, path.s, 0, true, err);
}

static void make_narrow(const struct token_writer *w, const uint32_t *ids, size_t n)
{
    uint8_t *bytes = w->narrow;
    uint16_t *words = w->narrow;
    if (w->width == 1)
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)ids[i];
    else if (w->width == 2)
        for (size_t i = 0; i < n; i++)
            words[i] = (uint16_t)ids[i];
    else
        memcpy(w->narrow, ids, n * 4);
}

int token_writer_put(struct token_writer *w, const uint32_t *ids, size_t n, struct cairn_error *err)
{
    size_t bytes = n * (size_t)w->width;
    if (!n)
        return 0;
    if (bytes > w->cap) {
        void *more = realloc(w->narrow, bytes);
        if (!more)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tokens", n);
        w->narrow = more;
        w->cap = bytes;
    }
    make_narrow(w, ids, n);
    hash_add(&w->sum, w->narrow, bytes);
    uint64_t at = sizeof(struct cache_head) + w->n * (uint64_t)w->width;
    if (file_out_write(&w->out, w->narrow, bytes, at, err))
        return no_room(err);
    w->n += n;
    return 0;
}

int token_writer_commit(struct token_writer *w, const uint64_t key[2], uint64_t skipped,
                        struct token_file *out, struct cairn_error *err)
{
    struct cache_head head = {
        .version = VERSION, .width = (uint32_t)w->width, .n = w->n, .skipped = skipped
    };
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.key, key, sizeof(head.key));
    hash_end(&w->sum, head.sum);
    if (file_out_write(&w->out, &head, sizeof(head), 0, err))
        return no_room(err);
    int fd = fault_hit() ? -1 : fcntl(w->out.file.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return cairn_fail_errno(err, "open %s", w->out.path);
    if (take_file(out, fd, w->out.path, err))
        return -1;
    use_head(out, &head);
    if (w->unnamed || !file_out_commit(&w->out, err))
        return 0;
    token_file_close(out);
    return no_room(err);
}

void token_writer_close(struct token_writer *w)
{
    file_out_close(&w->out);
    free(w->narrow);
    w->narrow = NULL;
}
