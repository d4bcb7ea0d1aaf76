/* SPDX-License-Identifier: Apache-2.0
 * Sources of text: a file, a folder, a .jsonl.
 *
 * A text file is one document.  Each line of a .jsonl is one: the string under a key.  A folder stands for
 * all text and .jsonl files below it, sorted by path.  Names that begin with a dot are ignored; empty files
 * and files with a zero byte near their start are skipped and counted.  Bytes are passed on unchanged, UTF-8
 * or not. */
#ifndef CAIRN_TEXT_TEXT_SOURCE_H
#define CAIRN_TEXT_TEXT_SOURCE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/progress.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_source_file {
    const char *path;
    bool jsonl;
    uint64_t bytes;
};

struct text_source {
    const char *path; /* as given */
    bool folder;
    struct text_source_file *files;
    size_t n_files;
    uint64_t bytes;
    size_t skipped;                    /* files of a folder that are not text; known after a read */
    const volatile sig_atomic_t *stop; /* when set, reading fails with an error; may be NULL */
    struct arena arena;
};

/* Lists the files; reads no text yet. */
int text_source_open(struct text_source *s, const char *path, struct cairn_error *err);
void text_source_close(struct text_source *s);

/* Hash of all bytes of all files. */
int text_source_hash(const struct text_source *s, uint64_t hash[2], struct progress *progress,
                     struct cairn_error *err);

/* A part of a document, about a MiB; cut by split_cut, or after 64 MiB if it finds no position. */
struct text_source_part {
    const char *text;
    size_t n;
    bool begins, ends; /* the document */
};
typedef int text_source_fn(void *context, const struct text_source_part *part, struct cairn_error *err);

/* Calls fn with all parts, in order; the hash is that of text_source_hash for the bytes read now.  A file
 * that changes meanwhile is an error. */
int text_source_read(struct text_source *s, const char *text_key, text_source_fn *fn, void *context,
                     uint64_t hash[2], struct progress *progress, struct cairn_error *err);

#endif
