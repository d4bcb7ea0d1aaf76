/* SPDX-License-Identifier: Apache-2.0
 * What a training job is told: a YAML file and --set in, one checked struct out.
 *
 *     struct job_config c;
 *     config_init(&c, &arena);                                 the defaults
 *     config_read(&c, path, err);                              the file
 *     config_set(&c, "--set train.lr=1e-4", "train.lr", "1e-4", err);   in the order given
 *     config_check(&c, err);                                   what cannot be together
 *     …                                                        the shape of the model in model.path, if any
 *     config_fill(&c, err);                                    zeros that mean "work it out"
 *
 * Keys that every job has are rows of config_keys; model.kind chooses a schema with further keys, which live in a struct
 * of that kind, and with other defaults for shared keys.  Reading, defaults, the file that a run keeps, and docs/config.md come
 * from these tables.  Every text lives in the arena.  An error names file, line and column, or the option. */
#ifndef CAIRN_TRAIN_CONFIG_H
#define CAIRN_TRAIN_CONFIG_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "train/optim_methods.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_quantize { CONFIG_QUANTIZE_NONE, CONFIG_QUANTIZE_INT8, CONFIG_QUANTIZE_FP8 };
enum config_schedule { CONFIG_SCHEDULE_COSINE, CONFIG_SCHEDULE_LINEAR, CONFIG_SCHEDULE_CONSTANT };
enum config_dtype { CONFIG_DTYPE_AUTO, CONFIG_DTYPE_F32, CONFIG_DTYPE_BF16, CONFIG_DTYPE_F16 };
enum config_master { CONFIG_MASTER_F32, CONFIG_MASTER_NONE, CONFIG_MASTER_STOCHASTIC };
enum config_recompute { CONFIG_RECOMPUTE_NONE, CONFIG_RECOMPUTE_BLOCKS };

enum config_place { CONFIG_PLACE_AUTO, CONFIG_PLACE_DEVICE, CONFIG_PLACE_HOST };

struct config_list {
    const char **item;
    size_t n;
};

/* Whole numbers are int64_t, so that products of them do not overflow by surprise. */
struct config_model {
    int kind;         /* which task: an index of config_kinds */
    const char *path; /* "": new weights */
    enum config_quantize quantize;
};

struct config_lora {
    int64_t rank; /* 0: off */
    double alpha, dropout;
    struct config_list targets; /* globs; none: every linear of the blocks */
};

struct config_train {
    int64_t steps, batch, accumulate;
    double lr, min_lr; /* min_lr is a share of lr */
    int64_t warmup;
    enum config_schedule schedule;
    enum optim_kind optimizer;
    double beta1, beta2, eps, weight_decay, clip;
    bool relative_step, scale_parameter; /* Adafactor */
    double d0, d_coef, growth_rate;      /* Prodigy */
    bool safeguard_warmup, bias_correction;
    int64_t seed;
    enum config_dtype dtype;
    enum config_master master;
    enum config_recompute recompute;
    double ema;
    int64_t patience;
    const char *device; /* "auto", or what gpu_open takes */
    bool allow_cpu;
};

struct config_memory {
    double limit; /* GiB; 0: what there is */
    bool low_vram;
    enum config_place optimizer, blocks;
};

struct config_eval {
    int64_t every, batches;
};

struct config_sample {
    int64_t every;
};

struct config_checkpoint {
    int64_t every, keep;
    bool async;
};

struct config_run {
    const char *dir, *name;
};

struct config_schema;

struct job_config {
    struct config_model model;
    struct config_lora lora;
    struct config_train train;
    struct config_memory memory;
    struct config_eval eval;
    struct config_sample sample;
    struct config_checkpoint checkpoint;
    struct config_run run;

    const struct config_schema *schema; /* the keys that model.kind adds */
    void *own;                          /* their values, in the struct of that kind */
    /* One for each shared key, and for each key of the kind: "job.yaml:3:10" or "--set …"; NULL: the default. */
    const char **place, **own_place;
    const char *file; /* that was read last; NULL: none */
    struct arena *arena;
};

/* Never fails: the defaults are right. */
void config_init(struct job_config *c, struct arena *arena);
int config_read(struct job_config *c, const char *path, struct cairn_error *err);
/* The same for a file's text that is in memory already; name stands for it in messages. */
int config_read_text(struct job_config *c, const char *name, const char *text, size_t len,
                     struct cairn_error *err);
/* One key by its dotted name.  A list may be written [a, b]; anything else is its only item.  `option` is what the
 * user typed; messages begin with it. */
int config_set(struct job_config *c, const char *option, const char *key, const char *value,
               struct cairn_error *err);
/* The argument of --set, "train.lr=1e-4". */
int config_set_pair(struct job_config *c, const char *pair, struct cairn_error *err);
/* Did the file or an option say it?  A name that is not in the table is a bug. */
bool config_is_set(const struct job_config *c, const char *key);
/* Where; NULL if nobody did. */
const char *config_place(const struct job_config *c, const char *key);

/* Keys that contradict each other, or that are missing.  config_fill checks the shape of the model, which may come from
 * the files in model.path. */
int config_check(const struct job_config *c, struct cairn_error *err);
/* Puts numbers where 0 means "work it out", then checks the shape.  Called once the keys of the shape that nobody set
 * have the values of the files in model.path. */
int config_fill(struct job_config *c, struct cairn_error *err);

/* A file with all keys in the table's order, each with its description; reading it gives the same struct. */
void config_write(const struct job_config *c, struct str *out);
/* A line per key that decides the numbers of a run (run.* and memory.* do not), without words that may change. */
void config_write_values(const struct job_config *c, struct str *out);

enum config_type { CONFIG_INT, CONFIG_REAL, CONFIG_BOOL, CONFIG_WORD, CONFIG_TEXT, CONFIG_LIST };

struct config_key {
    const char *name; /* "train.steps" */
    enum config_type type;
    size_t at;                /* offset in struct job_config */
    const char *preset;       /* the default, as one would write it */
    double least, most;       /* numbers */
    bool above, below;        /* …without least, without most */
    const char *const *words; /* their index is the enum's value; NULL at the end */
    const char *unit;         /* NULL: none */
    const char *about;
};
extern const struct config_key config_keys[]; /* of every job */
extern const size_t n_config_keys;

/* In the order of the keys. */
struct config_section {
    const char *name, *about;
};
extern const struct config_section config_sections[];
extern const size_t n_config_sections;

/* A shared key whose default is another for this kind. */
struct config_preset {
    const char *key, *value;
};

/* What a kind of job adds to the shared keys. */
struct config_schema {
    const char *kind;
    const struct config_key *keys; /* `at` is an offset in the kind's own struct */
    size_t n_keys;
    const struct config_section *sections; /* that only this kind has */
    size_t n_sections;
    const struct config_preset *presets;
    size_t n_presets;
    size_t bytes;                                                      /* of the struct */
    int (*check)(const struct job_config *c, struct cairn_error *err); /* may be NULL, and so may fill */
    int (*fill)(struct job_config *c, struct cairn_error *err);
};
/* The kinds there are, by the words for model.kind; NULL at the end.  task.c has the table. */
extern const char *config_kinds[];
const struct config_schema *config_schema(int kind);

/* For the checks of a kind: an error that blames the first of two keys that somebody wrote. */
int config_clash(const struct job_config *c, const char *key, const char *other, struct cairn_error *err,
                 const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Where a key's value lies; and the sections, those of the kind last, NULL after them. */
void *config_value(const struct job_config *c, const struct config_key *k);
const struct config_section *config_section_at(const struct job_config *c, size_t i);
/* "a whole number, at least 1" */
void config_allowed(const struct config_key *key, struct str *out);
/* The tables of docs/config.md. */
void config_write_markdown(struct str *out);

#endif
