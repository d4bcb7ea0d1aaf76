/* SPDX-License-Identifier: Apache-2.0
 * Samples of a video model as files of a folder: step-000250_00.mp4 and so on, index.jsonl with one object for each, and
 * sheet.png with a row for each prompt and a column for each step. */
#ifndef CAIRN_TRAIN_SAMPLE_FILES_H
#define CAIRN_TRAIN_SAMPLE_FILES_H

#include "encode/decode.h"
#include "train/task_wan.h"
#include <signal.h>

struct sample_file {
    const char *dir;
    uint64_t step;
    size_t index; /* of the prompt */
    const char *prompt;
    int64_t seed;
    double fps; /* 0: that of the model */
    enum wan_sample_format format;
    FILE *talk;                        /* for a line of progress, "decoding sample 2 of 4"; may be NULL */
    const char *doing;                 /* its beginning */
    const volatile sig_atomic_t *stop; /* Ctrl-C; may be NULL */
    /* Filled in. */
    char name[64];
    size_t width, height, frames;
};

/* Decodes the latents and writes the file, which replaces one of the same name, as does its line of index.jsonl. */
int sample_file_write(struct decoder *d, const struct decode_clip *c, struct sample_file *f,
                      struct cairn_error *err);
/* Makes sheet.png of what index.jsonl lists.  Of many steps it shows some, evenly chosen. */
int sample_sheet_write(const char *dir, struct cairn_error *err);

#endif
