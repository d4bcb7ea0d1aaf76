/* SPDX-License-Identifier: Apache-2.0
 * The configuration of a training job: from a YAML file and --set to one checked struct.
 *
 *     struct job_config c;
 *     config_init(&c, &arena);                                 the defaults
 *     config_read(&c, path, err);                              the file
 *     config_set(&c, "--set train.lr=1e-4", "train.lr", "1e-4", err);   in the order given
 *     config_check(&c, err);                                   contradictions
 *     …                                                        the shape of the model in model.path, if any
 *     config_fill(&c, err);                                    values for keys where 0 means "automatic"
 *
 * Keys that every job has are rows of config_keys.  model.kind chooses a schema, which adds keys in a struct
 * of its own and may change the defaults of shared keys.  Parsing, defaults, a run's config.yaml and
 * docs/config.md all come from these tables.  All strings live in the arena.  An error names file, line and
 * column, or the option. */
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
enum config_schedule {
    CONFIG_SCHEDULE_COSINE,
    CONFIG_SCHEDULE_LINEAR,
    CONFIG_SCHEDULE_CONSTANT,
    CONFIG_SCHEDULE_RESTARTS,
    CONFIG_SCHEDULE_POLYNOMIAL,
    CONFIG_SCHEDULE_REX,
    CONFIG_SCHEDULES,
};
enum config_dtype { CONFIG_DTYPE_AUTO, CONFIG_DTYPE_F32, CONFIG_DTYPE_BF16, CONFIG_DTYPE_F16 };
enum config_master { CONFIG_MASTER_F32, CONFIG_MASTER_NONE, CONFIG_MASTER_STOCHASTIC };
enum config_recompute { CONFIG_RECOMPUTE_NONE, CONFIG_RECOMPUTE_BLOCKS };
enum config_reduce { CONFIG_REDUCE_FAST, CONFIG_REDUCE_EXACT };

enum config_place { CONFIG_PLACE_AUTO, CONFIG_PLACE_DEVICE, CONFIG_PLACE_HOST, CONFIG_PLACE_FILE };

/* A word, or a number instead of one. */
struct config_count {
    int word; /* -1: it is the number */
    int64_t n;
};

struct config_list {
    const char **item;
    size_t n;
};

/* Integers are int64_t, so that multiplying them does not overflow. */
struct config_model {
    int kind;         /* which task: an index of config_kinds */
    const char *path; /* "": new weights */
    enum config_quantize quantize;
};

struct config_lora {
    int64_t rank; /* 0: off, or that of the file in path */
    double alpha, dropout;
    struct config_list targets; /* globs; none: every linear layer of the blocks */
    double plus;                /* LoRA+: the rate of B matrices divided by that of A; 1: off */
    const char *path;           /* a LoRA to start from; "": a new one */
};

struct config_train {
    int64_t steps, batch, accumulate;
    double lr, min_lr; /* min_lr is a share of lr */
    int64_t warmup;
    enum config_schedule schedule;
    int64_t cycles; /* of "restarts" */
    double power;   /* of "polynomial" */
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
    const char *device; /* "auto", or a name for gpu_open */
    bool allow_cpu;
};

struct config_memory {
    double limit; /* GiB; 0: all that is available */
    bool low_vram;
    enum config_place optimizer, inputs, idle;
    struct config_count blocks; /* the words are those of enum config_place; the number: streamed blocks */
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

struct config_dist {
    enum config_reduce reduce;
    int64_t timeout; /* seconds */
};

struct config_run {
    const char *dir, *name;
};

struct config_schema;
struct config_key;
struct foreign_job;

/* A key that config_read could not take. */
struct config_trouble {
    const char *key; /* as in the file, with its section: "train.stpes" */
    int line, column;
    const char *message; /* begins with its place, as every error does */
    const char *hint;    /* may be "" */
};

/* A key whose paths were found from another folder: as written in the file, and as they are now. */
struct config_moved {
    const struct config_key *key;
    struct config_list was, now; /* a string is a list of one */
};

struct job_config {
    struct config_model model;
    struct config_lora lora;
    struct config_train train;
    struct config_memory memory;
    struct config_eval eval;
    struct config_sample sample;
    struct config_checkpoint checkpoint;
    struct config_dist dist;
    struct config_run run;

    const struct config_schema *schema; /* the keys that model.kind adds */
    void *own;                          /* their values, in the struct of that kind */
    /* One for each shared key, and for each key of the kind: "job.yaml:3:10" or "--set …"; NULL: the
     * default. */
    const char **place, **own_place;
    const char *file;                /* read last; NULL: none */
    struct config_trouble *troubles; /* all that config_read found, of which err names the first ones */
    size_t n_troubles;
    const char *folder; /* that of its relative paths; NULL: the current one */
    struct config_moved *moved;
    size_t n_moved;
    const struct foreign_job *foreign; /* the job of another trainer that it was; NULL: none */
    struct arena *arena;
};

/* Sets the defaults; cannot fail. */
void config_init(struct job_config *c, struct arena *arena);
/* A copy that can be changed; it shares the arena. */
void config_copy(struct job_config *to, const struct job_config *from);
int config_read(struct job_config *c, const char *path, struct cairn_error *err);
/* The same for text in memory; messages call it `name`. */
int config_read_text(struct job_config *c, const char *name, const char *text, size_t len,
                     struct cairn_error *err);
/* Sets one key by its dotted name.  A list may be written [a, b]; any other text is a list of one item.
 * `option` is what the user typed; messages begin with it. */
int config_set(struct job_config *c, const char *option, const char *key, const char *value,
               struct cairn_error *err);
/* The argument of --set, "train.lr=1e-4". */
int config_set_pair(struct job_config *c, const char *pair, struct cairn_error *err);
/* A list from the command line. */
void config_set_list(struct job_config *c, const char *option, const char *key, struct config_list list);
/* Call it after the file was read and before options: relative paths of the file belong to this folder, if it exists and is
 * not the current one.  A file that is only in the current folder is found there.  What config_write writes does not
 * change, and paths that are set later are written as absolute ones. */
void config_use_folder(struct job_config *c, const char *folder);
/* The same for a path that is part of a value. */
const char *config_find(const struct job_config *c, const char *path);
const char *config_cwd(struct arena *a); /* the current folder */
/* Whether the file or an option set the key.  The name must be in the table. */
bool config_is_set(const struct job_config *c, const char *key);
/* Where it was set; NULL: nowhere. */
const char *config_place(const struct job_config *c, const char *key);

/* Fails for keys that are missing or contradict each other.  The model's shape may come from the files in
 * model.path, so config_fill checks it. */
int config_check(const struct job_config *c, struct cairn_error *err);
/* Computes values for keys where 0 means "automatic", then checks the shape.  Call it after shape keys that
 * are not set got their values from the files in model.path. */
int config_fill(struct job_config *c, struct cairn_error *err);

/* Writes a file with all keys in the table's order and their descriptions; reading it gives the same
 * struct. */
void config_write(const struct job_config *c, struct str *out);
/* Writes one line per key that affects the results of a run (not run.* and memory.*), without
 * descriptions; and the hash of these lines. */
void config_write_values(const struct job_config *c, struct str *out);
void config_hash(const struct job_config *c, char out[33]);

enum config_type {
    CONFIG_INT,
    CONFIG_REAL,
    CONFIG_BOOL,
    CONFIG_WORD,
    CONFIG_COUNT,
    CONFIG_TEXT,
    CONFIG_LIST
};

/* Whether a string, or each of a list, is a path; or may be one or a word. */
enum config_path { CONFIG_NO_PATH, CONFIG_PATH, CONFIG_MAYBE_PATH };

struct config_key {
    const char *name; /* "train.steps" */
    enum config_type type;
    enum config_path path;
    size_t at;                /* offset in struct job_config */
    const char *preset;       /* the default, as in a file */
    double least, most;       /* range of a number */
    bool above, below;        /* the range excludes least, excludes most */
    const char *const *words; /* the index is the enum's value; NULL at the end */
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

/* Another default for a shared key. */
struct config_preset {
    const char *key, *value;
};

/* The keys and defaults that a kind of job adds to the shared keys. */
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
/* The words for model.kind; NULL at the end.  task.c has the table. */
extern const char *config_kinds[];
const struct config_schema *config_schema(int kind);

/* For the checks of a kind: fails with the position of the first of the two keys that is set. */
int config_clash(const struct job_config *c, const char *key, const char *other, struct cairn_error *err,
                 const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Puts the place and the name of a key before an error about the file that it names, unless the message begins with
 * another key.  `remedy` is for an error without one; it may be NULL. */
int config_wrap(const struct job_config *c, const char *key, const char *remedy, struct cairn_error *err);

/* The row of a key, by its dotted name; NULL: there is none. */
const struct config_key *config_key_find(const struct job_config *c, const char *name);
/* The i-th of all keys: the shared ones, then those of the kind.  NULL after the last. */
const struct config_key *config_key_at(const struct job_config *c, size_t i);
/* Address of a key's value as config_write writes it; a string by the key's name. */
const void *config_written(const struct job_config *c, const struct config_key *k);
const char *config_written_text(const struct job_config *c, const char *key);
/* Address of a key's value; the i-th section, those of the kind last, then NULL. */
void *config_value(const struct job_config *c, const struct config_key *k);
const struct config_section *config_section_at(const struct job_config *c, size_t i);
/* "a whole number, at least 1" */
void config_allowed(const struct config_key *key, struct str *out);
/* The tables of docs/config.md. */
void config_write_markdown(struct str *out);

#endif
