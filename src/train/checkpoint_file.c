/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint_file.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to read it", path);
    if (file_open(path, &fd, size, err))
        return -1;
    struct hash h;
    uint64_t sum[2];
    hash_init(&h);
    for (uint64_t at = 0; at < *size; at += PIECE) {
        size_t n = *size - at < PIECE ? (size_t)(*size - at) : PIECE;
        if (file_read_at(fd, path, piece, n, at, err))
            return -1;
        hash_add(&h, piece, n);
    }
    hash_end(&h, sum);
    hash_text(sum, hash);
    return 0;
}

static int is_file(const struct dirent *e)
{
    return e->d_name[0] != '.' && strcmp(e->d_name, CHECKPOINT_STATE) != 0;
}

static int add_files(const char *dir, struct json *list, struct cairn_error *err)
{
    struct dirent **names;
    int n = scandir(dir, &names, is_file, alphasort), r = 0;
    if (n < 0)
        return cairn_fail_errno(err, "read %s", dir);
    for (int i = 0; i < n; i++) {
        char path[4096], hash[33];
        uint64_t size;
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
        r = r ? r : hash_file(path, &size, hash, err);
        if (!r) {
            struct json *file = json_add_object(list, NULL);
            json_add_text(file, "name", names[i]->d_name);
            json_add_int(file, "bytes", (int64_t)size);
            json_add_text(file, "hash", hash);
        }
        free(names[i]);
    }
    free(names);
    return r;
}

int checkpoint_state_write(const char *dir, const struct checkpoint_state *s, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_int(top, "step", (int64_t)s->step);
    json_add_int(top, "moves", (int64_t)s->moves);
    json_add_int(top, "tries", (int64_t)s->tries);
    json_add_real(top, "loss_scale", s->loss_scale);
    json_add_int(top, "scale_good", (int64_t)s->scale_good);
    json_add_int(top, "micro_batch", (int64_t)s->micro);
    json_add_bool(top, "recompute", s->recompute);
    json_add_bool(top, "optimizer_on_host", s->optim_on_host);
    json_add_bool(top, "blocks_on_host", s->blocks_on_host);
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
    return file_write(path, text, strlen(text), err);
}

static int read_json(const char *path, struct json **out, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    if (file_open(path, &fd, &size, err))
        return -1;
    if (size > STATE_MOST)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is too large", path);
    CLEANUP(mem_free) char *text = malloc(size + 1);
    if (!text)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", path);
    if (file_read_at(fd, path, text, size, 0, err))
        return -1;
    struct cairn_error why = { 0 };
    if (json_parse(text, size, out, &why))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s", path, why.msg);
    return 0;
}

static int check_file(const char *dir, const struct json *file, struct cairn_error *err)
{
    const char *name = json_text(json_get(file, "name")), *want = json_text(json_get(file, "hash"));
    char path[4096], hash[33];
    uint64_t size;
    if (!name || !want || strchr(name, '/'))
        return cairn_fail(err, CAIRN_EFORMAT, "%s/" CHECKPOINT_STATE " does not say what files there are",
                          dir);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (hash_file(path, &size, hash, err))
        return -1;
    if (size != (uint64_t)json_int(json_get(file, "bytes"), -1) || strcmp(hash, want) != 0)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not what was written", path);
    return 0;
}

static uint64_t whole(const struct json *top, const char *key)
{
    uint64_t v = 0;
    json_to_u64(json_get(top, key), &v);
    return v;
}

int checkpoint_state_read(const char *dir, struct checkpoint_state *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    char path[4096];
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_STATE, dir);
    if (read_json(path, &top, err))
        return -1;
    const struct json *files = json_get(top, "files");
    if (json_int(json_get(top, "schema"), 0) != 1 || !json_length(files))
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not of a kind that is known here", path);
    for (size_t i = 0; i < json_length(files); i++)
        if (check_file(dir, json_at(files, i), err))
            return -1;
    const char *config = json_text(json_get(top, "config"));
    *out = (struct checkpoint_state){
        .step = whole(top, "step"),
        .moves = whole(top, "moves"),
        .tries = whole(top, "tries"),
        .loss_scale = json_number(json_get(top, "loss_scale"), 1),
        .scale_good = whole(top, "scale_good"),
        .micro = whole(top, "micro_batch"),
        .recompute = json_bool(json_get(top, "recompute"), false),
        .optim_on_host = json_bool(json_get(top, "optimizer_on_host"), false),
        .blocks_on_host = json_bool(json_get(top, "blocks_on_host"), false),
        .best_val = json_number(json_get(top, "best_val"), NAN),
        .waited = whole(top, "waited"),
        .eval_due = json_bool(json_get(top, "evaluation_due"), false),
        .sample_due = json_bool(json_get(top, "sample_due"), false),
    };
    snprintf(out->config, sizeof(out->config), "%s", config ? config : "");
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
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOENT ? 0 : cairn_fail_errno(err, "open %s", dir);
    int r = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlinkat(dirfd(d), e->d_name, 0))
            r = cairn_fail_errno(err, "remove %s/%s", dir, e->d_name);
    closedir(d);
    if (!r && rmdir(dir))
        r = cairn_fail_errno(err, "remove %s", dir);
    return r;
}

int checkpoint_flush_folder(const char *dir, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = fault_hit() ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd))
        return cairn_fail_errno(err, "flush %s", dir);
    return 0;
}
