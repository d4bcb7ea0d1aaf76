/* SPDX-License-Identifier: Apache-2.0
 * Files of tokens, read on demand.  The file is not mapped: the user owns a .bin, and truncating it while it
 * is in use must be an error, not a signal.
 *
 * There are two kinds.  cairn's cache: a header with the cache key and a hash of the tokens, then the tokens,
 * 1, 2 or 4 bytes each as the vocabulary needs.  A .bin of other programs: 16-bit ids as nanoGPT writes them,
 * or with the header of llm.c (256 32-bit integers; 20240520 for 16-bit ids, 20240801 for 32-bit ids). */
#ifndef CAIRN_TEXT_TOKEN_FILE_H
#define CAIRN_TEXT_TOKEN_FILE_H

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/own.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token_file {
    char *path; /* NULL: not open */
    int fd;
    uint64_t bytes, first; /* size of the file; offset of the first token */
    int width;             /* bytes per token */
    uint64_t n;
    uint64_t skipped; /* files skipped when the cache was made */
};

/* Opens a complete cache made for this key.  Anything else returns -1 without an error: make the cache
 * again. */
int token_cache_open(struct token_file *f, const struct own_dir *d, const char *name, const uint64_t key[2]);
/* Checks every id: one outside the vocabulary is an error. */
int token_bin_open(struct token_file *f, const char *path, uint32_t vocab, struct cairn_error *err);
void token_file_close(struct token_file *f);

/* Tokens at … at+n-1; fails if the file no longer has them. */
int token_file_copy(const struct token_file *f, uint64_t at, size_t n, int32_t *out, struct cairn_error *err);

/* Writes a cache, which gets its name when it is complete.  If d is not open, the file is unnamed. */
struct token_writer {
    struct file_out out;
    bool unnamed;
    int width;
    uint64_t n;
    struct hash sum;
    void *narrow;
    size_t cap;
};

int token_writer_open(struct token_writer *w, const struct own_dir *d, const char *name, uint32_t vocab,
                      struct cairn_error *err);
int token_writer_put(struct token_writer *w, const uint32_t *ids, size_t n, struct cairn_error *err);
/* Finishes the file and opens it for reading. */
int token_writer_commit(struct token_writer *w, const uint64_t key[2], uint64_t skipped,
                        struct token_file *out, struct cairn_error *err);
void token_writer_close(struct token_writer *w); /* removes what was not committed */

#endif
