/* SPDX-License-Identifier: Apache-2.0 */
#include "train/token_file.h"

#include "base/fault.h"
#include "base/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- reading ---- */

struct cache_head {
    char magic[8];
    uint32_t version, width;
    uint64_t n, skipped, key[2], sum[2];
};
static const char magic[8] = "cairntok";
enum { VERSION = 1 };

static int map_file(struct token_file *f, const char *path, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    if (file_open(path, &fd, &size, err))
        return -1;
    if (!size)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is empty", path);
    void *map = fault_hit() ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return cairn_fail_errno(err, "map %s", path);
    *f = (struct token_file){ .map = map, .map_bytes = size };
    return 0;
}

void token_file_close(struct token_file *f)
{
    if (f->map)
        munmap(f->map, f->map_bytes);
    *f = (struct token_file){ 0 };
}

static bool is_whole(const struct token_file *f, const uint64_t key[2])
{
    struct cache_head head;
    struct hash h;
    uint64_t sum[2];
    if (f->map_bytes < sizeof(head))
        return false;
    memcpy(&head, f->map, sizeof(head));
    if (memcmp(head.magic, magic, sizeof(magic)) || head.version != VERSION ||
        (head.width != 1 && head.width != 2 && head.width != 4) || memcmp(head.key, key, sizeof(head.key)) ||
        head.n != (f->map_bytes - sizeof(head)) / head.width || (f->map_bytes - sizeof(head)) % head.width)
        return false;
    hash_init(&h);
    hash_add(&h, (const char *)f->map + sizeof(head), f->map_bytes - sizeof(head));
    hash_end(&h, sum);
    return !memcmp(sum, head.sum, sizeof(sum));
}

int token_cache_open(struct token_file *f, const char *path, const uint64_t key[2])
{
    struct cairn_error nobody;
    struct cache_head head;
    *f = (struct token_file){ 0 };
    if (map_file(f, path, &nobody))
        return -1;
    if (!is_whole(f, key)) {
        token_file_close(f);
        return -1;
    }
    memcpy(&head, f->map, sizeof(head));
    f->tokens = (const char *)f->map + sizeof(head);
    f->width = (int)head.width;
    f->n = head.n;
    f->skipped = head.skipped;
    return 0;
}

/* ---- of others ---- */

enum { LLMC_HEAD = 256 * 4, LLMC_16 = 20240520, LLMC_32 = 20240801 };

/* Sets where the tokens are; a file without a head is all tokens. */
static int read_head(struct token_file *f, const char *path, struct cairn_error *err)
{
    int32_t head[3] = { 0 };
    size_t skip = 0;
    if (f->map_bytes >= sizeof(head))
        memcpy(head, f->map, sizeof(head));
    f->width = head[0] == LLMC_32 ? 4 : 2;
    if (f->map_bytes >= LLMC_HEAD && (head[0] == LLMC_16 || head[0] == LLMC_32))
        skip = LLMC_HEAD;
    else
        f->width = 2;
    f->tokens = (const char *)f->map + skip;
    f->n = (f->map_bytes - skip) / (size_t)f->width;
    if ((f->map_bytes - skip) % (size_t)f->width)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %zu bytes are no whole number of %d-bit tokens", path,
                          f->map_bytes - skip, 8 * f->width);
    if (skip && (uint64_t)(uint32_t)head[2] != f->n)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s is cut short or damaged: its head says %u tokens, and it has %llu", path,
                          (uint32_t)head[2], (unsigned long long)f->n);
    return 0;
}

static uint32_t token_at(const struct token_file *f, uint64_t i)
{
    uint16_t narrow;
    uint32_t wide;
    if (f->width == 1)
        return ((const unsigned char *)f->tokens)[i];
    if (f->width == 2) {
        memcpy(&narrow, (const char *)f->tokens + 2 * i, 2);
        return narrow;
    }
    memcpy(&wide, (const char *)f->tokens + 4 * i, 4);
    return wide;
}

struct check {
    const struct token_file *f;
    const char *path;
    uint32_t vocab;
};
enum { CHECKED = 1 << 22 };

static int check_part(void *context, size_t part, struct cairn_error *err)
{
    const struct check *c = context;
    uint64_t at = (uint64_t)part * CHECKED, end = at + CHECKED < c->f->n ? at + CHECKED : c->f->n;
    uint32_t most = 0;
    for (uint64_t i = at; i < end; i++) {
        uint32_t id = token_at(c->f, i);
        most = id > most ? id : most;
    }
    while (most >= c->vocab && token_at(c->f, at) < c->vocab)
        at++;
    if (most < c->vocab)
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: token %llu has the id %u, and the vocabulary ends at %u", c->path,
               (unsigned long long)at, token_at(c->f, at), c->vocab - 1);
    return cairn_hint(err, "data.tokenizer must be the one that made the file");
}

int token_bin_open(struct token_file *f, const char *path, uint32_t vocab, struct cairn_error *err)
{
    *f = (struct token_file){ 0 };
    if (map_file(f, path, err))
        return -1;
    struct check c = { f, path, vocab };
    if (read_head(f, path, err) || parallel_for((f->n + CHECKED - 1) / CHECKED, 0, check_part, &c, err)) {
        token_file_close(f);
        return -1;
    }
    return 0;
}

void token_file_copy(const struct token_file *f, uint64_t at, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)token_at(f, at + i);
}

/* ---- writing ---- */

static int no_room(struct cairn_error *err)
{
    return cairn_hint(err,
                      "tokens are kept in that folder; make room there, or name another by XDG_CACHE_HOME");
}

int token_writer_open(struct token_writer *w, const char *path, uint32_t vocab, struct cairn_error *err)
{
    *w = (struct token_writer){ .out.fd = -1, .width = vocab <= 256 ? 1 : vocab <= 65536 ? 2 : 4 };
    hash_init(&w->sum);
    return file_out_open(&w->out, path, 0, true, err);
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
                        struct cairn_error *err)
{
    struct cache_head head = {
        .version = VERSION, .width = (uint32_t)w->width, .n = w->n, .skipped = skipped
    };
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.key, key, sizeof(head.key));
    hash_end(&w->sum, head.sum);
    if (file_out_write(&w->out, &head, sizeof(head), 0, err) || file_out_commit(&w->out, err))
        return no_room(err);
    return 0;
}

void token_writer_close(struct token_writer *w)
{
    file_out_close(&w->out);
    free(w->narrow);
    w->narrow = NULL;
}
