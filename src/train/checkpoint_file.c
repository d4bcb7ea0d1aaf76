/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint_file.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "os/file.h"
#include "os/path.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 4 << 20, STATE_MOST = 1 << 20 };

static int hash_file(const char *path, uint64_t *size, char hash[33], struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    CLEANUP(mem_free) char *piece = malloc(PIECE);
    if (!piece)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to read the file", path);
    if (file_open(path, &fd, size, err))
        return -1;
    struct hash h;
    hash_init(&h);
    for (uint64_t at = 0; at < *size; at += PIECE) {
        size_t n = *size - at < PIECE ? (size_t)(*size - at) : PIECE;
        if (file_read_at(fd, path, piece, n, at, err))
            return -1;
        hash_add(&h, piece, n);
    }
    hash_end_text(&h, hash);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_files(const char *dir, struct json *list, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    char **names;
    size_t n;
    if (file_names(dir, &a, &names, &n))
        return cairn_fail_errno(err, "read %s", dir);
    if (n)
        qsort(names, n, sizeof(*names), by_name);
    for (size_t i = 0; i < n; i++) {
        char hash[33];
        uint64_t size;
        if (names[i][0] == '.' || !strcmp(names[i], CHECKPOINT_STATE))
            continue;
        if (hash_file(arena_printf(&a, "%s/%s", dir, names[i]), &size, hash, err))
            return -1;
        struct json *file = json_add_object(list, NULL);
        json_add_text(file, "name", names[i]);
        json_add_int(file, "bytes", (int64_t)size);
        json_add_text(file, "hash", hash);
    }
    return 0;
}

/* state.json ends with "sum", a hash of the text without that key. */
static const char sum_key[] = ",\"sum\":\"";
enum { HASH_LEN = 32, SUM_LEN = sizeof(sum_key) - 1 + HASH_LEN + 2 };

static void sum_text(const char *text, size_t n, char out[33])
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, text, n);
    hash_add(&h, "}", 1);
    hash_end_text(&h, out);
}

int checkpoint_state_write(const char *dir, const struct checkpoint_state *s, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_int(top, "step", (int64_t)s->step);
    json_add_int(top, "moves", (int64_t)s->applied[0]);
    json_add_int(top, "tries", (int64_t)s->attempted[0]);
    if (s->attempted[1]) { /* a second set */
        json_add_int(top, "moves_1", (int64_t)s->applied[1]);
        json_add_int(top, "tries_1", (int64_t)s->attempted[1]);
    }
    json_add_real(top, "loss_scale", s->loss_scale);
    json_add_int(top, "scale_good", (int64_t)s->scale_good);
    json_add_int(top, "micro_batch", (int64_t)s->layout.micro);
    json_add_bool(top, "recompute", s->layout.recompute);
    json_add_bool(top, "optimizer_on_host", s->layout.optim_on_host);
    json_add_bool(top, "blocks_on_host", s->layout.weights.streamed > 0);
    json_add_int(top, "blocks_streamed", (int64_t)s->layout.weights.streamed);
    json_add_bool(top, "inputs_on_host", s->layout.inputs_on_host);
    json_add_text(top, "idle", memory_idle_names[s->layout.weights.idle]);
    if (isfinite(s->best_val))
        json_add_real(top, "best_val", s->best_val);
    json_add_int(top, "waited", (int64_t)s->waited);
    json_add_bool(top, "evaluation_due", s->eval_due);
    json_add_bool(top, "sample_due", s->sample_due);
    json_add_text(top, "config", s->config);
    if (add_files(dir, json_add_array(top, "files"), err))
        return -1;
    char path[4096];
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_STATE, dir);
    CLEANUP(mem_free) char *text = json_to_string(top);
    if (!text)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", path);
    CLEANUP(str_release) struct str all = { 0 };
    char sum[33];
    size_t n = strlen(text) - 1; /* without the brace */
    sum_text(text, n, sum);
    str_addn(&all, text, n);
    str_addf(&all, "%s%s\"}", sum_key, sum);
    return file_write(path, all.s, all.len, err);
}

static bool sum_is_right(const char *text, size_t n)
{
    char sum[33];
    const char *tail = text + n - SUM_LEN;
    if (n <= SUM_LEN || memcmp(tail, sum_key, sizeof(sum_key) - 1) || memcmp(text + n - 2, "\"}", 2))
        return false;
    sum_text(text, n - SUM_LEN, sum);
    return !memcmp(sum, text + n - 2 - HASH_LEN, HASH_LEN);
}

/* *summed: the file has a sum, and it matches. */
static int read_json(const char *path, struct json **out, bool *summed, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t size;
    if (file_read_whole(path, STATE_MOST, &text, &size, err))
        return -1;
    if (json_parse(text, size, out, err))
        return cairn_wrap(err, "%s", path);
    *summed = sum_is_right(text, size);
    if (!*summed && json_get(*out, "sum"))
        return cairn_fail(err, CAIRN_EFORMAT, "%s is damaged: its hash does not match", path);
    return 0;
}

static int check_file(const char *dir, const struct json *file, struct cairn_error *err)
{
    const char *name = json_text(json_get(file, "name")), *want = json_text(json_get(file, "hash"));
    char path[4096], hash[33];
    uint64_t size;
    if (!name || !want || strchr(name, '/'))
        return cairn_fail(err, CAIRN_EFORMAT, "%s/" CHECKPOINT_STATE " does not list the checkpoint's files",
                          dir);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (hash_file(path, &size, hash, err))
        return -1;
    if (size != (uint64_t)json_int(json_get(file, "bytes"), -1) || strcmp(hash, want) != 0)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not what was written", path);
    return 0;
}

/* The keys of state.json.  A file without a sum is of an early version and may lack newer keys.  A file with
 * a sum has all of them, except the best loss, which exists only after an evaluation. */
enum field_kind { FIELD_U64, FIELD_REAL, FIELD_BOOL, FIELD_OTHER };
static const struct field {
    const char *name;
    enum field_kind kind;
    bool optional;
    size_t at;
} fields[] = {
    { "step", FIELD_U64, false, offsetof(struct checkpoint_state, step) },
    { "moves", FIELD_U64, false, offsetof(struct checkpoint_state, applied[0]) },
    { "tries", FIELD_U64, false, offsetof(struct checkpoint_state, attempted[0]) },
    { "moves_1", FIELD_U64, true, offsetof(struct checkpoint_state, applied[1]) },
    { "tries_1", FIELD_U64, true, offsetof(struct checkpoint_state, attempted[1]) },
    { "loss_scale", FIELD_REAL, false, offsetof(struct checkpoint_state, loss_scale) },
    { "scale_good", FIELD_U64, false, offsetof(struct checkpoint_state, scale_good) },
    { "micro_batch", FIELD_U64, false, offsetof(struct checkpoint_state, layout.micro) },
    { "recompute", FIELD_BOOL, false, offsetof(struct checkpoint_state, layout.recompute) },
    { "optimizer_on_host", FIELD_BOOL, true, offsetof(struct checkpoint_state, layout.optim_on_host) },
    { "blocks_on_host", FIELD_OTHER, true, 0 }, /* where the weights were is decided anew */
    { "blocks_streamed", FIELD_OTHER, true, 0 },
    { "inputs_on_host", FIELD_OTHER, true, 0 },
    { "idle", FIELD_OTHER, true, 0 },
    { "best_val", FIELD_REAL, true, offsetof(struct checkpoint_state, best_val) },
    { "waited", FIELD_U64, false, offsetof(struct checkpoint_state, waited) },
    { "evaluation_due", FIELD_BOOL, true, offsetof(struct checkpoint_state, eval_due) },
    { "sample_due", FIELD_BOOL, true, offsetof(struct checkpoint_state, sample_due) },
    { "schema", FIELD_OTHER, false, 0 },
    { "config", FIELD_OTHER, false, 0 },
    { "files", FIELD_OTHER, false, 0 },
};

static bool read_field(const struct field *f, const struct json *v, struct checkpoint_state *out)
{
    char *at = (char *)out + f->at;
    switch (f->kind) {
    case FIELD_U64:
        return json_to_u64(v, (uint64_t *)at);
    case FIELD_REAL:
        *(double *)at = json_number(v, NAN);
        return isfinite(*(double *)at);
    case FIELD_BOOL:
        *(bool *)at = json_bool(v, false);
        return json_bool(v, false) == json_bool(v, true);
    case FIELD_OTHER:
        break;
    }
    return true;
}

static bool is_field(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!strcmp(fields[i].name, key))
            return true;
    return false;
}

/* Fails for a key that is missing, has another type, or is unknown: a bit of its name may have flipped. */
static int read_fields(const struct json *top, bool summed, const char *path, struct checkpoint_state *out,
                       struct cairn_error *err)
{
    *out = (struct checkpoint_state){ .best_val = NAN };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct json *v = json_get(top, fields[i].name);
        if (v ? !read_field(&fields[i], v, out) : !fields[i].optional)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" is %s", path, fields[i].name,
                              v ? "of the wrong type or out of range" : "missing");
    }
    for (struct json_member m = json_first(top); m.key && !summed; m = json_next(top, m))
        if (!is_field(m.key))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: unknown key \"%.40s\"", path, m.key);
    return 0;
}

int checkpoint_state_read(const char *dir, struct checkpoint_state *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    struct checkpoint_state s;
    char path[4096];
    bool summed;
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_STATE, dir);
    if (read_json(path, &top, &summed, err))
        return -1;
    const struct json *files = json_get(top, "files");
    const char *config = json_text(json_get(top, "config"));
    if (json_int(json_get(top, "schema"), 0) != 1 || !json_length(files) || !config)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: unknown format or version", path);
    if (read_fields(top, summed, path, &s, err))
        return -1;
    uint64_t step = checkpoint_step_of(path_name(dir));
    if (!s.step || (step && s.step != step) || !s.layout.micro || s.loss_scale <= 0)
        return cairn_fail(err, CAIRN_EFORMAT, "%s belongs to another checkpoint: its step is %" PRIu64, path,
                          s.step);
    for (size_t i = 0; i < json_length(files); i++)
        if (check_file(dir, json_at(files, i), err))
            return -1;
    snprintf(s.config, sizeof(s.config), "%s", config);
    *out = s;
    return 0;
}

uint64_t checkpoint_step_of(const char *name)
{
    char *end;
    if (strncmp(name, "step-", 5) || name[5] < '1' || name[5] > '9')
        return 0;
    uint64_t step = strtoull(name + 5, &end, 10);
    return *end ? 0 : step;
}

int checkpoint_remove(const char *dir, struct cairn_error *err)
{
    return os_remove_folder(dir) ? cairn_fail_errno(err, "remove %s", dir) : 0;
}

int checkpoint_flush_folder(const char *dir, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = os_open(dir, OS_READ | OS_FOLDER);
    if (fd < 0 || os_sync(fd))
        return cairn_fail_errno(err, "flush %s", dir);
    return 0;
}
