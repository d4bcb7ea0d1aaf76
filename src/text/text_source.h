/* SPDX-License-Identifier: Apache-2.0
 * Where text comes from: a file, a folder, a .jsonl.
 *
 * A text file is one document.  A line of a .jsonl is one: the text under a key.  Of a folder all text files below it
 * are taken, sorted by path, .jsonl among them; names that begin with a dot are left out, empty files and those with a zero byte near their
 * begin are skipped and counted.  Bytes pass as they are, UTF-8 or not. */
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
    const char *path; /* as it was given */
    bool folder;
    struct text_source_file *files;
    size_t n_files;
    uint64_t bytes;
    size_t skipped;                    /* files of a folder that are no text; known after a read */
    const volatile sig_atomic_t *stop; /* when it is set, reading ends with an error; may be NULL */
    struct arena arena;
};

/* What is there; reads no text yet. */
int text_source_open(struct text_source *s, const char *path, struct cairn_error *err);
void text_source_close(struct text_source *s);

/* Over all bytes of all files, to know them again. */
int text_source_hash(const struct text_source *s, uint64_t hash[2], struct progress *progress,
                     struct cairn_error *err);

/* A part of a document, about a MiB; parts are cut by split_cut (and every 64 MiB where it finds no place). */
struct text_source_part {
    const char *text;
    size_t n;
    bool begins, ends; /* the document */
};
typedef int text_source_fn(void *context, const struct text_source_part *part, struct cairn_error *err);

/* Gives all parts to fn, in order; the hash is that of text_source_hash, of what was read now.  A file that changes
 * meanwhile is an error. */
int text_source_read(struct text_source *s, const char *text_key, text_source_fn *fn, void *context,
                     uint64_t hash[2], struct progress *progress, struct cairn_error *err);

#endif
