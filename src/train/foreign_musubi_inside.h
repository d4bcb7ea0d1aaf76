/* SPDX-License-Identifier: Apache-2.0
 * What the files of foreign_musubi.h share: the table of options, and what a job sets of them. */
#ifndef CAIRN_TRAIN_FOREIGN_MUSUBI_INSIDE_H
#define CAIRN_TRAIN_FOREIGN_MUSUBI_INSIDE_H

#include "train/foreign_musubi.h"

enum musubi_type {
    MUSUBI_FLAG, /* without a value */
    MUSUBI_TEXT,
    MUSUBI_INT,
    MUSUBI_REAL,
    MUSUBI_SHARE, /* a number of steps; below 1, or with %: a share of all */
    MUSUBI_WORD,
    MUSUBI_LIST, /* any number of texts */
};

enum musubi_use {
    MUSUBI_KEY,     /* it is one of our keys */
    MUSUBI_OWN,     /* foreign_musubi.c and the files beside it make keys of it */
    MUSUBI_NOTED,   /* it does not change the result */
    MUSUBI_REFUSED, /* it would, and cannot be done */
};

struct musubi_option {
    const char *name;
    enum musubi_type type;
    enum musubi_use use;
    const char *text;   /* our key; the reason for a refusal */
    const char *words;  /* of a word, separated by spaces */
    const char *remedy; /* of a refusal */
};
extern const struct musubi_option musubi_options[];
extern const size_t n_musubi_options;

/* What a job sets. */
struct musubi_setting {
    const char **value; /* NULL: it is not set; a flag has one, "true" or "false" */
    size_t n;
    const char *place, *name; /* as for foreign_add */
};

struct musubi_job {
    struct arena *a;
    struct musubi_setting *set;  /* one for each option */
    const char *mixed_precision; /* of accelerate; NULL: not given */
    struct foreign_job *out;
    struct cairn_error *err;
};

/* ---- foreign_musubi_read.c ---- */

int musubi_read_command(struct musubi_job *j, const char *const *words, size_t n);
/* Options that are set already keep their values. */
int musubi_read_file(struct musubi_job *j, const char *path);

/* Of an option, which must be in the table; NULL: it is not set. */
const struct musubi_setting *musubi_find(const struct musubi_job *j, const char *name);
const char *musubi_text(const struct musubi_job *j, const char *name);
bool musubi_flag(const struct musubi_job *j, const char *name);
/* A number of steps of all the steps; or `preset`, if it is not set. */
int64_t musubi_int(const struct musubi_job *j, const char *name, int64_t preset);
int64_t musubi_share(const struct musubi_job *j, const char *name, int64_t all);
double musubi_real(const struct musubi_job *j, const char *name, double preset);

/* Adds a key whose value follows from the option; if the option is not set, it is musubi-tuner's default. */
void musubi_add(struct musubi_job *j, const char *name, const char *key, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Fails with the place of the option, and a remedy. */
int musubi_refuse(struct musubi_job *j, const char *name, const char *remedy, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
#define MUSUBI_CORRECT "correct it, or leave it out"
/* Puts that place before an error that is set already; the remedy is for one without. */
int musubi_wrap(struct musubi_job *j, const char *name, const char *remedy);
bool musubi_parse_real(const char *text, double *out);

/* ---- foreign_musubi_optim.c ---- */

/* The optimizer and the schedule of a job of so many steps. */
int musubi_make_optimizer(struct musubi_job *j);
int musubi_make_schedule(struct musubi_job *j, int64_t steps);

/* ---- foreign_musubi_lora.c ---- */

int musubi_make_lora(struct musubi_job *j);
/* Reads "name=value" of a list option; false: it is not of this form. */
bool musubi_pair(const struct musubi_job *j, const char *text, const char **name, const char **value);

#endif
