/* SPDX-License-Identifier: Apache-2.0
 * Tokens in a file, read where they are wanted.  The file is not mapped: a .bin is somebody else's, and one that is cut
 * while it is used must be an error and not a signal.
 *
 * Two kinds.  A cache of cairn's: a head with the key that it was made for and a hash of the tokens, then the tokens, of 1, 2 or
 * 4 bytes as the vocabulary needs.  And a .bin of others: 16-bit ids as nanoGPT writes them, or with the head of
 * llm.c (256 numbers of 32 bits; 20240520 for 16-bit ids, 20240801 for 32-bit ones). */
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
    uint64_t bytes, first; /* of the file; where the tokens begin */
    int width;             /* bytes of a token */
    uint64_t n;
    uint64_t skipped; /* files that were left out when it was made */
};

/* A whole cache of that name that was made for this key; anything else is -1 without a reason, and is to be made again. */
int token_cache_open(struct token_file *f, const struct own_dir *d, const char *name, const uint64_t key[2]);
/* Every id is looked at: one that the vocabulary does not have is an error. */
int token_bin_open(struct token_file *f, const char *path, uint32_t vocab, struct cairn_error *err);
void token_file_close(struct token_file *f);

/* Tokens at … at+n-1; fails where the file does not have them any more. */
int token_file_copy(const struct token_file *f, uint64_t at, size_t n, int32_t *out, struct cairn_error *err);

/* Makes a cache; it gets its name when it is whole.  Where d is not open it is a file without a name. */
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
/* Opens it for reading, too. */
int token_writer_commit(struct token_writer *w, const uint64_t key[2], uint64_t skipped,
                        struct token_file *out, struct cairn_error *err);
void token_writer_close(struct token_writer *w); /* removes what was not committed */

#endif
