/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint.h"
#include "base/int.h"
#include "base/str.h"
#include "gpu/transfer.h"
#include "nn/tensor_load.h"
#include "tensor/safetensors.h"
#include "train/checkpoint_file.h"
#include "base/file.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/path.h"
#include "os/thread.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_MOST = 4096 };

/* A host copy of everything that goes into a checkpoint.  The next checkpoint reuses its memory. */
struct copy {
    void *bytes;
    size_t size;
    struct copy_set {
        struct weights weights; /* points into bytes, not to device memory */
        void **arrays;          /* of the optimizer */
    } sets[MODEL_SETS];
};

struct checkpoints {
    char *dir; /* RUN/checkpoints */
    size_t keep;
    bool async;
    struct copy copy;
    struct checkpoint_model model;
    struct checkpoint_state state;
    struct checkpoint_watcher watcher;
    pthread_t thread;
    bool running;
    int result; /* of the thread */
    struct cairn_error error;
    uint64_t newest;
};

/* ---- listing ---- */

static bool is_step(const char *name)
{
    return checkpoint_step_of(name) != 0;
}

static bool is_left_over(const char *name)
{
    return str_starts(name, ".new-") || str_starts(name, ".old-");
}

static int by_step(const void *a, const void *b)
{
    uint64_t x = checkpoint_step_of(*(char *const *)a), y = checkpoint_step_of(*(char *const *)b);
    return (x > y) - (x < y);
}

/* Calls fn with the path of every entry that `is` picks, newest first; stops when fn returns 1. */
static int for_each(const char *dir, bool (*is)(const char *name),
                    int (*fn)(void *to, const char *path, size_t from_last), void *to)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    char **names;
    size_t n, from_last = 0;
    int r = 0;
    if (file_names(dir, &a, &names, &n))
        return 0;
    if (n)
        qsort(names, n, sizeof(*names), by_step);
    for (size_t i = n; i-- > 0 && !r;)
        if (is(names[i]))
            r = fn(to, arena_printf(&a, "%s/%s", dir, names[i]), from_last++);
    return r;
}

static int remove_one(void *to, const char *path, size_t from_last)
{
    struct cairn_error ignored;
    (void)to, (void)from_last;
    checkpoint_remove(path, &ignored);
    return 0;
}

/* ---- writing ---- */

/* Reads the values of one set. */
struct set_reader {
    const struct checkpoints *c;
    size_t set;
};

static int weights_of(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    const struct set_reader *r = context;
    (void)err;
    weights_read(&r->c->copy.sets[r->set].weights, p, into);
    return 0;
}

/* The moving average in the copy, or NULL. */
static const float *find_average(const struct set_reader *r, enum param_kind kind)
{
    size_t n;
    const struct optim_array *arrays = optim_arrays(r->c->model.optim[r->set], &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(arrays[i].name, kind == PARAM_VECTOR ? "vector.ema" : "matrix.ema"))
            return r->c->copy.sets[r->set].arrays[i];
    return NULL;
}

static int averages_of(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    (void)err;
    memcpy(into, find_average(context, p->kind) + p->at, p->rows * p->columns * sizeof(*into));
    return 0;
}

/* Writes the model's files, and those of its moving average if it has one. */
static int write_model(struct checkpoints *c, const char *dir, struct cairn_error *err)
{
    const struct model *m = c->model.model;
    struct set_reader readers[MODEL_SETS];
    struct param_getter weights[MODEL_SETS], averages[MODEL_SETS];
    for (size_t i = 0; i < MODEL_SETS; i++) {
        readers[i] = (struct set_reader){ c, i };
        weights[i] = (struct param_getter){ weights_of, &readers[i] };
        averages[i] = (struct param_getter){ averages_of, &readers[i] };
    }
    for (size_t i = 0; i < model_sets(m); i++) {
        struct model_save save = {
            .set = i,
            .dir = dir,
            .dtype = storage_dtype(c->copy.sets[i].weights.storage),
            .from = weights,
            .base = c->model.base,
            .step = c->state.step,
        };
        if (m->ops->save(m, &save, err))
            return -1;
        save.average = true;
        save.from = averages;
        if (find_average(&readers[i], PARAM_MATRIX) && m->ops->save(m, &save, err))
            return -1;
    }
    return 0;
}

/* Arrays of the first set have the optimizer's own names; those of later sets are prefixed with the set's
 * index. */
static const char *array_name(struct arena *a, size_t set, const char *name)
{
    return set ? arena_printf(a, "%zu.%s", set, name) : name;
}

/* The weights of a set, where the model's own files may be rounded.  Such a model has matrices alone. */
static struct optim_array values_of(const struct model *m, size_t set)
{
    const struct weights *w = model_trained_weights(m, set);
    return (struct optim_array){
        .name = "matrix.values",
        .at = w->matrices,
        .n = model_trained(m, set)->numbers[PARAM_MATRIX],
        .dtype = storage_dtype(w->storage),
    };
}

/* Tensors to write, and where they are. */
struct contents {
    struct arena arena;
    struct st_tensor *tensors;
    const void **from;
    size_t n, n_from;
};

static void add_array(struct contents *k, size_t set, const struct optim_array *a, const void *from)
{
    uint64_t *shape = ARENA_NEW(&k->arena, uint64_t, 1);
    *shape = a->n;
    *ARENA_PUSH(&k->arena, k->tensors, k->n) = (struct st_tensor){
        .name = array_name(&k->arena, set, a->name),
        .dtype = a->dtype,
        .dtype_text = dtype_safetensors(a->dtype),
        .shape = shape,
        .rank = 1,
        .elements = a->n,
        .bytes = a->n * dtype_size(a->dtype),
    };
    *ARENA_PUSH(&k->arena, k->from, k->n_from) = from;
}

static void list_contents(const struct checkpoints *c, struct contents *k)
{
    const struct model *m = c->model.model;
    for (size_t set = 0; set < model_sets(m); set++) {
        size_t n;
        const struct optim_array *arrays = optim_arrays(c->model.optim[set], &n), values = values_of(m, set);
        for (size_t i = 0; i < n; i++)
            add_array(k, set, &arrays[i], c->copy.sets[set].arrays[i]);
        if (m->ops->has_rounded_files)
            add_array(k, set, &values, c->copy.sets[set].weights.matrices);
    }
}

static int write_optim(struct checkpoints *c, const char *dir, struct cairn_error *err)
{
    struct contents k = { 0 };
    char path[PATH_MOST];
    list_contents(c, &k);
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_OPTIM, dir);
    struct st_writer w = { 0 };
    const struct st_contents contents = { .tensors = k.tensors, .n = k.n, .order = ST_ORDER_ALIGNED };
    int r = st_writer_open(&w, path, &contents, true, err);
    for (size_t i = 0; i < k.n && !r; i++)
        r = st_writer_put(&w, i, 0, k.from[i], k.tensors[i].bytes, err);
    r = r ? r : st_writer_commit(&w, err);
    st_writer_close(&w);
    arena_release(&k.arena);
    return r;
}

/* Replaces `latest` atomically. */
static int point_latest(const struct checkpoints *c, const char *name, struct cairn_error *err)
{
    char link[PATH_MOST], temp[PATH_MOST];
    snprintf(link, sizeof(link), "%s/latest", c->dir);
    snprintf(temp, sizeof(temp), "%s/.latest", c->dir);
    os_remove(temp);
    if (!os_make_link(name, temp) && !os_rename(temp, link))
        return 0;
    cairn_fail_errno(err, "link %s", link);
    os_remove(temp);
    return -1;
}

struct keeping {
    const struct checkpoints *c;
    size_t newer;
};

/* Checkpoints of later steps were incomplete, or the run would have resumed from them.  The folder is renamed
 * first, so that a half-removed one never looks like a checkpoint. */
static int drop_old(void *to, const char *path, size_t from_last)
{
    struct keeping *k = to;
    char gone[PATH_MOST];
    struct cairn_error ignored;
    if (checkpoint_step_of(path_name(path)) > k->c->state.step)
        k->newer++;
    else if (!k->c->keep || from_last - k->newer < k->c->keep)
        return 0;
    snprintf(gone, sizeof(gone), "%s/.old-%s", k->c->dir, path_name(path));
    if (!os_rename(path, gone))
        checkpoint_remove(gone, &ignored);
    return 0;
}

/* Replaces an existing checkpoint of the same step, if any.  The two are exchanged where the file system
 * supports that, so that one always exists. */
static int put(const char *temp, const char *path)
{
    struct cairn_error ignored;
    bool exchanged = !os_exchange(temp, path);
    checkpoint_remove(exchanged ? temp : path, &ignored);
    return exchanged ? 0 : os_rename(temp, path);
}

static int publish(struct checkpoints *c, const char *temp, struct cairn_error *err)
{
    char name[32], path[PATH_MOST];
    snprintf(name, sizeof(name), "step-%llu", (unsigned long long)c->state.step);
    snprintf(path, sizeof(path), "%s/%s", c->dir, name);
    if (put(temp, path))
        return cairn_fail_errno(err, "rename %s to %s", temp, name);
    if (checkpoint_flush_folder(c->dir, err) || point_latest(c, name, err))
        return -1;
    c->newest = c->state.step;
    for_each(c->dir, is_step, drop_old, &(struct keeping){ c, 0 });
    return c->watcher.complete ? c->watcher.complete(c->watcher.to, path, c->state.step, err) : 0;
}

static int write_all(struct checkpoints *c, struct cairn_error *err)
{
    char temp[PATH_MOST];
    struct cairn_error ignored;
    snprintf(temp, sizeof(temp), "%s/.new-%llu", c->dir, (unsigned long long)c->state.step);
    checkpoint_remove(temp, &ignored);
    if (os_make_dir(temp, 0777))
        return cairn_fail_errno(err, "make the folder %s", temp);
    if (write_model(c, temp, err) || write_optim(c, temp, err) ||
        checkpoint_state_write(temp, &c->state, err) || checkpoint_flush_folder(temp, err) ||
        publish(c, temp, err)) {
        checkpoint_remove(temp, &ignored);
        return -1;
    }
    return 0;
}

static void *write_in_thread(void *arg)
{
    struct checkpoints *c = arg;
    c->result = write_all(c, &c->error);
    return NULL;
}

/* ---- copying ---- */

enum { ALIGN = 256 };

static size_t set_bytes(const struct checkpoint_model *m, size_t set, size_t *n_arrays)
{
    const struct params *p = model_trained(m->model, set);
    const struct weights *w = model_trained_weights(m->model, set);
    const struct optim_array *arrays = optim_arrays(m->optim[set], n_arrays);
    size_t size = align_up(p->numbers[PARAM_MATRIX] * storage_size(w->storage), ALIGN) +
                  align_up(p->numbers[PARAM_VECTOR] * sizeof(float), ALIGN);
    for (size_t i = 0; i < *n_arrays; i++)
        size += align_up(arrays[i].n * dtype_size(arrays[i].dtype), ALIGN);
    return size;
}

static void free_copy(struct copy *k)
{
    os_free_aligned(k->bytes);
    for (size_t i = 0; i < MODEL_SETS; i++)
        free(k->sets[i].arrays);
    *k = (struct copy){ 0 };
}

/* One allocation for everything: the matrices, vectors and optimizer arrays of each set. */
static int reserve(struct copy *k, const struct checkpoint_model *m, struct cairn_error *err)
{
    size_t size = 0, n;
    for (size_t i = 0; i < model_sets(m->model); i++)
        size += set_bytes(m, i, &n);
    if (size > k->size) {
        free_copy(k);
        k->bytes = os_aligned(256, size);
        bool lacks = !k->bytes;
        for (size_t i = 0; i < model_sets(m->model); i++) {
            set_bytes(m, i, &n);
            k->sets[i].arrays = calloc(n + 1, sizeof(void *));
            lacks = lacks || !k->sets[i].arrays;
        }
        if (lacks)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory to copy %zu bytes for a checkpoint", size);
        k->size = size;
    }
    char *at = k->bytes;
    for (size_t set = 0; set < model_sets(m->model); set++) {
        const struct params *p = model_trained(m->model, set);
        const struct weights *w = model_trained_weights(m->model, set);
        const struct optim_array *arrays = optim_arrays(m->optim[set], &n);
        struct copy_set *s = &k->sets[set];
        s->weights = (struct weights){ .storage = w->storage, .matrices = at };
        at += align_up(p->numbers[PARAM_MATRIX] * storage_size(w->storage), ALIGN);
        s->weights.vectors = (float *)(void *)at;
        at += align_up(p->numbers[PARAM_VECTOR] * sizeof(float), ALIGN);
        for (size_t i = 0; i < n; i++) {
            s->arrays[i] = at;
            at += align_up(arrays[i].n * dtype_size(arrays[i].dtype), ALIGN);
        }
    }
    return 0;
}

static struct transfer_part copy_of(void *device, void *host, size_t bytes)
{
    return (struct transfer_part){
        .device = device, .bytes = bytes, .move = transfer_move_into, .context = host
    };
}

static int copy_all(struct checkpoints *c, struct cairn_error *err)
{
    const struct checkpoint_model *m = &c->model;
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct transfer_part *parts = NULL;
    size_t n_parts = 0;
    if (reserve(&c->copy, m, err))
        return -1;
    for (size_t set = 0; set < model_sets(m->model); set++) {
        const struct params *p = model_trained(m->model, set);
        const struct weights *w = model_trained_weights(m->model, set);
        struct copy_set *k = &c->copy.sets[set];
        size_t n;
        const struct optim_array *arrays = optim_arrays(m->optim[set], &n);
        *ARENA_PUSH(&arena, parts, n_parts) =
            copy_of(w->matrices, k->weights.matrices, p->numbers[PARAM_MATRIX] * storage_size(w->storage));
        *ARENA_PUSH(&arena, parts, n_parts) =
            copy_of(w->vectors, k->weights.vectors, p->numbers[PARAM_VECTOR] * sizeof(float));
        for (size_t i = 0; i < n; i++) {
            struct transfer_part part =
                copy_of(arrays[i].at, k->arrays[i], arrays[i].n * dtype_size(arrays[i].dtype));
            part.on_host = arrays[i].on_host;
            *ARENA_PUSH(&arena, parts, n_parts) = part;
        }
        if (optim_settle(m->optim[set], err))
            return -1;
    }
    struct transfer_options after = { .after = m->model->nn->stream };
    return transfer_down(gpu_transfer(m->model->nn->g), parts, n_parts, &after, err);
}

/* ---- interface ---- */

int checkpoints_open(const char *run_dir, size_t keep, bool async, struct checkpoints **out,
                     struct cairn_error *err)
{
    struct checkpoints *c = calloc(1, sizeof(*c));
    if (!c || asprintf(&c->dir, "%s/checkpoints", run_dir) < 0) {
        free(c);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    }
    c->keep = keep;
    c->async = async;
    if (os_make_dir(c->dir, 0777) && errno != EEXIST) {
        cairn_fail_errno(err, "make the folder %s", c->dir);
        checkpoints_close(c);
        return -1;
    }
    for_each(c->dir, is_left_over, remove_one, NULL);
    *out = c;
    return 0;
}

void checkpoints_watch(struct checkpoints *c, struct checkpoint_watcher watcher)
{
    c->watcher = watcher;
}

int checkpoints_wait(struct checkpoints *c, uint64_t *step, struct cairn_error *err)
{
    if (c->running) {
        pthread_join(c->thread, NULL);
        c->running = false;
    }
    if (step)
        *step = c->newest;
    int r = c->result;
    c->result = 0;
    if (r)
        *err = c->error;
    return r;
}

void checkpoints_close(struct checkpoints *c)
{
    struct cairn_error ignored;
    if (!c)
        return;
    checkpoints_wait(c, NULL, &ignored);
    free_copy(&c->copy);
    free(c->dir);
    free(c);
}

int checkpoints_save(struct checkpoints *c, const struct checkpoint_model *m,
                     const struct checkpoint_state *s, struct cairn_error *err)
{
    int before = checkpoints_wait(c, NULL, err);
    struct cairn_error *mine = before ? &(struct cairn_error){ 0 } : err; /* the older error is reported */
    c->model = *m;
    c->state = *s;
    if (copy_all(c, mine))
        return -1;
    if (c->async && !os_thread_start(&c->thread, write_in_thread, c))
        c->running = true;
    else if (write_all(c, mine))
        return -1;
    return before;
}

/* ---- reading ---- */

struct search {
    struct arena *a;
    char **path;
    struct checkpoint_state *state;
    void (*skipped)(void *to, const char *path, const char *why);
    void *to;
};

static int try_one(void *to, const char *path, size_t from_last)
{
    struct search *s = to;
    struct cairn_error why = { 0 };
    (void)from_last;
    if (checkpoint_state_read(path, s->state, &why)) {
        s->skipped(s->to, path, why.msg);
        return 0;
    }
    *s->path = arena_strdup(s->a, path);
    return 1;
}

int checkpoints_newest(const char *run_dir, struct arena *a, char **path, struct checkpoint_state *out,
                       void (*skipped)(void *to, const char *path, const char *why), void *to,
                       struct cairn_error *err)
{
    struct search s = { a, path, out, skipped, to };
    if (for_each(arena_printf(a, "%s/checkpoints", run_dir), is_step, try_one, &s) == 1)
        return 0;
    return cairn_fail(err, CAIRN_ELACK, "%s has no complete checkpoint", run_dir);
}

static int find_array(const struct tensor_source *s, const char *name, const struct optim_array *a,
                      struct tensor_want *out, struct cairn_error *err)
{
    const struct st_tensor *t = source_find(s, name);
    if (!t || t->dtype != a->dtype || t->elements != a->n)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: optimizer array %s[%zu] is missing: the checkpoint belongs to another job",
                          s->path, name, a->n);
    *out = (struct tensor_want){ t, t->dtype, a->at, a->on_host };
    return 0;
}

static int load_optim(const char *path, const struct checkpoint_model *m, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct tensor_want *wants = NULL;
    size_t n_wants = 0;
    if (source_open(&source, arena_printf(&arena, "%s/" CHECKPOINT_OPTIM, path), err))
        return -1;
    for (size_t set = 0; set < model_sets(m->model); set++) {
        size_t n;
        const struct optim_array *arrays = optim_arrays(m->optim[set], &n);
        for (size_t i = 0; i < n; i++)
            if (find_array(&source, array_name(&arena, set, arrays[i].name), &arrays[i],
                           ARENA_PUSH(&arena, wants, n_wants), err))
                return -1;
    }
    return tensor_load(m->model->nn->g, &source, wants, n_wants, NULL, err);
}

/* The trained weights of a set, from the optimizer's file. */
static int load_values(const char *path, struct model *m, size_t set, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct optim_array values = values_of(m, set);
    if (source_open(&source, arena_printf(&arena, "%s/" CHECKPOINT_OPTIM, path), err))
        return -1;
    const char *name = array_name(&arena, set, values.name);
    const struct st_tensor *t = source_find(&source, name);
    if (!t || t->elements != values.n || !dtype_is_float(t->dtype))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s[%zu] is missing: the checkpoint belongs to another job",
                          source.path, name, values.n);
    struct tensor_want want = { t, values.dtype, values.at, false };
    return tensor_load(m->nn->g, &source, &want, 1, NULL, err);
}

static int load_file(const char *path, struct model *m, size_t set, struct cairn_error *err)
{
    char file[PATH_MOST];
    struct param_report report = { 0 };
    snprintf(file, sizeof(file), "%s/%s", path, m->ops->file_name(m, set, false));
    int r = m->ops->load(m, set, file, &report, err);
    param_report_release(&report);
    return r;
}

int checkpoints_load(const char *path, const struct checkpoint_model *m, const struct checkpoint_state *s,
                     struct cairn_error *err)
{
    struct model *model = m->model;
    for (size_t set = 0; set < model_sets(model); set++) {
        bool rounded = model->ops->has_rounded_files;
        if ((rounded ? load_values(path, model, set, err) : load_file(path, model, set, err)) ||
            optim_start(m->optim[set], err))
            return -1;
    }
    if (load_optim(path, m, err))
        return -1;
    for (size_t set = 0; set < model_sets(model); set++)
        optim_resume(m->optim[set], s->applied[set], s->attempted[set]);
    return 0;
}
