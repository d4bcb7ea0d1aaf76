/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint.h"
#include "base/str.h"
#include "gpu/transfer.h"
#include "nn/gpt_file.h"
#include "nn/tensor_load.h"
#include "tensor/safetensors.h"
#include "train/checkpoint_file.h"
#include "base/file.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/path.h"
#include "os/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MOST = 4096 };

/* A copy on the host of all that goes into a checkpoint; its memory is kept for the next. */
struct copy {
    void *bytes;
    size_t size;
    struct weights weights; /* pointers into bytes; of no device */
    void **arrays;          /* of the optimizer */
};

struct checkpoints {
    char *dir; /* RUN/checkpoints */
    size_t keep;
    bool async;
    struct copy copy;
    struct checkpoint_model model;
    struct checkpoint_state state;
    pthread_t thread;
    bool running;
    int result; /* of the thread */
    struct cairn_error error;
    uint64_t newest;
};

/* ---- what is there ---- */

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

/* Calls fn with the path of every entry that `is` picks, newest first; stops at the first that says 1. */
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

static int numbers_of(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    const struct checkpoints *c = context;
    (void)err;
    weights_read(&c->copy.weights, p, into);
    return 0;
}

static int write_model(struct checkpoints *c, const char *dir, struct cairn_error *err)
{
    struct param_getter from = { numbers_of, c };
    struct gpt_lora_file lora = {
        .options = c->model.lora,
        .base = c->model.base,
        .copy = CHECKPOINT_LORA,
        .dtype = storage_dtype(c->copy.weights.storage),
        .from = &from,
    };
    if (c->model.lora)
        return gpt_file_save_lora(c->model.m, dir, &lora, err);
    return gpt_file_save(c->model.m, dir, storage_dtype(c->copy.weights.storage), &from, err);
}

/* Of the moving average in the copy; NULL: there is none. */
static const float *find_average(const struct checkpoints *c, enum param_kind kind)
{
    size_t n;
    const struct optim_array *arrays = optim_arrays(c->model.optim, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(arrays[i].name, kind == PARAM_VECTOR ? "vector.ema" : "matrix.ema"))
            return c->copy.arrays[i];
    return NULL;
}

static int averages_of(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    (void)err;
    memcpy(into, find_average(context, p->kind) + p->at, p->rows * p->columns * sizeof(*into));
    return 0;
}

static int write_average(struct checkpoints *c, const char *dir, struct cairn_error *err)
{
    struct param_getter from = { averages_of, c };
    enum dtype dtype = storage_dtype(c->copy.weights.storage);
    char path[PATH_MOST];
    if (!find_average(c, PARAM_MATRIX))
        return 0;
    snprintf(path, sizeof(path), "%s/%s", dir, c->model.lora ? CHECKPOINT_LORA_EMA : CHECKPOINT_MODEL_EMA);
    if (c->model.lora)
        return gpt_file_save_lora_tensors(c->model.m, path, dtype, &from, err);
    return gpt_file_save_tensors(c->model.m, path, dtype, &from, err);
}

static int write_optim(struct checkpoints *c, const char *dir, struct cairn_error *err)
{
    struct arena arena = { 0 };
    struct st_writer w = { 0 };
    char path[PATH_MOST];
    size_t n;
    const struct optim_array *arrays = optim_arrays(c->model.optim, &n);
    struct st_tensor *tensors = ARENA_NEW(&arena, struct st_tensor, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t *shape = ARENA_NEW(&arena, uint64_t, 1);
        *shape = arrays[i].n;
        tensors[i] = (struct st_tensor){
            .name = arrays[i].name,
            .dtype = arrays[i].dtype,
            .dtype_text = dtype_safetensors(arrays[i].dtype),
            .shape = shape,
            .rank = 1,
            .elements = arrays[i].n,
            .bytes = arrays[i].n * dtype_size(arrays[i].dtype),
        };
    }
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_OPTIM, dir);
    int r = st_writer_open(&w, path, tensors, n, NULL, 0, ST_ORDER_ALIGNED, true, err);
    for (size_t i = 0; i < n && !r; i++)
        r = st_writer_put(&w, i, 0, c->copy.arrays[i], arrays[i].n * dtype_size(arrays[i].dtype), err);
    r = r ? r : st_writer_commit(&w, err);
    st_writer_close(&w);
    arena_release(&arena);
    return r;
}

/* `latest` is replaced in one step too. */
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

/* Those of later steps were not whole, or the run would have gone on from there.  Renamed first: what is half removed
 * must not look like a checkpoint. */
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

/* In the place of one that may be there: of an earlier start and found to be damaged, or the same step again.  The two are
 * exchanged where the file system can do that, so that there is always one. */
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
    return 0;
}

static int write_all(struct checkpoints *c, struct cairn_error *err)
{
    char temp[PATH_MOST];
    struct cairn_error ignored;
    snprintf(temp, sizeof(temp), "%s/.new-%llu", c->dir, (unsigned long long)c->state.step);
    checkpoint_remove(temp, &ignored);
    if (os_make_dir(temp, 0777))
        return cairn_fail_errno(err, "make the folder %s", temp);
    if (write_model(c, temp, err) || write_average(c, temp, err) || write_optim(c, temp, err) ||
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

static size_t aligned(size_t n)
{
    return (n + 255) / 256 * 256;
}

/* All of it in one piece of memory: matrices, vectors, the optimizer's arrays. */
static int reserve(struct copy *k, const struct params *p, const struct weights *w, const struct optim *o,
                   struct cairn_error *err)
{
    size_t n, matrices = aligned(p->numbers[PARAM_MATRIX] * storage_size(w->storage));
    size_t size = matrices + aligned(p->numbers[PARAM_VECTOR] * sizeof(float));
    const struct optim_array *arrays = optim_arrays(o, &n);
    size_t first = size;
    for (size_t i = 0; i < n; i++)
        size += aligned(arrays[i].n * dtype_size(arrays[i].dtype));
    if (size > k->size) {
        os_free_aligned(k->bytes);
        free(k->arrays);
        *k = (struct copy){ .bytes = os_aligned(256, size), .arrays = calloc(n + 1, sizeof(void *)) };
        if (!k->bytes || !k->arrays)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for a copy of %zu bytes to save", size);
        k->size = size;
    }
    k->weights = (struct weights){ .storage = w->storage, .matrices = k->bytes };
    k->weights.vectors = (float *)((char *)k->bytes + matrices);
    for (size_t i = 0; i < n; i++) {
        k->arrays[i] = (char *)k->bytes + first;
        first += aligned(arrays[i].n * dtype_size(arrays[i].dtype));
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
    const struct params *p = gpt_trained(c->model.m);
    const struct weights *w = gpt_trained_weights(c->model.m);
    struct gpu *g = c->model.m->nn->g;
    struct copy *k = &c->copy;
    size_t n;
    const struct optim_array *arrays = optim_arrays(c->model.optim, &n);
    if (reserve(k, p, w, c->model.optim, err))
        return -1;
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct transfer_part *parts = ARENA_NEW(&arena, struct transfer_part, n + 2);
    parts[0] = copy_of(w->matrices, k->weights.matrices, p->numbers[PARAM_MATRIX] * storage_size(w->storage));
    parts[1] = copy_of(w->vectors, k->weights.vectors, p->numbers[PARAM_VECTOR] * sizeof(float));
    for (size_t i = 0; i < n; i++)
        parts[2 + i] = copy_of(arrays[i].at, k->arrays[i], arrays[i].n * dtype_size(arrays[i].dtype));
    for (size_t i = 0; i < n; i++)
        parts[2 + i].on_host = arrays[i].on_host;
    if (optim_settle(c->model.optim, err))
        return -1;
    struct transfer_options after = { .after = c->model.m->nn->stream };
    return transfer_down(gpu_transfer(g), parts, n + 2, &after, err);
}

/* ---- from outside ---- */

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
    os_free_aligned(c->copy.bytes);
    free(c->copy.arrays);
    free(c->dir);
    free(c);
}

int checkpoints_save(struct checkpoints *c, const struct checkpoint_model *m,
                     const struct checkpoint_state *s, struct cairn_error *err)
{
    int before = checkpoints_wait(c, NULL, err);
    struct cairn_error *mine =
        before ? &(struct cairn_error){ 0 } : err; /* the older error is the one to tell */
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
    return cairn_fail(err, CAIRN_ELACK, "%s holds no whole checkpoint", run_dir);
}

static int find_array(const struct tensor_source *s, const struct optim_array *a, struct tensor_want *out,
                      struct cairn_error *err)
{
    const struct st_tensor *t = source_find(s, a->name);
    if (!t || t->dtype != a->dtype || t->elements != a->n)
        return cairn_fail(err, CAIRN_EFORMAT, "%s has no %s of %zu numbers: it is of another job", s->path,
                          a->name, a->n);
    *out = (struct tensor_want){ t, t->dtype, a->at, a->on_host };
    return 0;
}

static int load_optim(const char *path, struct gpu *g, const struct optim *o, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(arena_release) struct arena arena = { 0 };
    if (source_open(&source, arena_printf(&arena, "%s/" CHECKPOINT_OPTIM, path), err))
        return -1;
    size_t n;
    const struct optim_array *arrays = optim_arrays(o, &n);
    struct tensor_want *wants = ARENA_NEW(&arena, struct tensor_want, n + 1);
    for (size_t i = 0; i < n; i++)
        if (find_array(&source, &arrays[i], &wants[i], err))
            return -1;
    return tensor_load(g, &source, wants, n, NULL, err);
}

int checkpoints_load(const char *path, const struct checkpoint_model *m, const struct checkpoint_state *s,
                     struct cairn_error *err)
{
    char file[PATH_MOST];
    struct param_report report = { 0 };
    snprintf(file, sizeof(file), "%s/%s", path, m->lora ? CHECKPOINT_LORA : CHECKPOINT_MODEL);
    int r = m->lora ? gpt_file_load_lora(m->m, file, &report, err) : gpt_file_load(m->m, file, &report, err);
    param_report_release(&report);
    if (r || optim_start(m->optim, err) || load_optim(path, m->m->nn->g, m->optim, err))
        return -1;
    optim_resume(m->optim, s->applied, s->attempted);
    return 0;
}
