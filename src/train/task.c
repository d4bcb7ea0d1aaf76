/* SPDX-License-Identifier: Apache-2.0
 * The table of tasks. */
#include "train/task.h"
#include "base/clock.h"
#include "gpu/pool.h"
#include "train/task_gpt.h"
#include "train/task_wan.h"
#include <assert.h>

/* X(kind) has task_kind of task_kind.h; the first is the default. */
#define TASKS(X) X(gpt) X(wan)

#define TASK_OPS(kind) &task_##kind,
#define TASK_WORD(kind) #kind,
enum { TASKS_MOST = 16 };
static const struct task_ops *tasks[TASKS_MOST] = { TASKS(TASK_OPS) };
const char *config_kinds[TASKS_MOST + 1] = { TASKS(TASK_WORD) };

const struct config_schema *config_schema(int kind)
{
    return tasks[kind]->schema;
}

const struct task_ops *task_of(const struct job_config *c)
{
    return tasks[c->model.kind];
}

void task_add(const struct task_ops *ops)
{
    size_t n = 0;
    while (tasks[n])
        n++;
    assert(n + 1 < TASKS_MOST);
    tasks[n] = ops;
    config_kinds[n] = ops->schema->kind;
}

int task_use_base(struct task *t, size_t base, double *seconds, struct cairn_error *err)
{
    struct model *m = t->model;
    bool was_there = m->layout.idle == MODEL_IDLE_DEVICE || (m->used == base && m->used_is_loaded), load;
    double begin = clock_s();
    *seconds = 0;
    if (was_there)
        return 0;
    if (model_use_base(m, base, &load, err))
        return -1;
    if (load && t->ops->reload_base(t, base, err)) {
        t->data_failed = err->code == CAIRN_EIO || err->code == CAIRN_EFORMAT;
        return t->data_failed ? cairn_hint(err, "the model's files must stay in place: memory.idle is file")
                              : -1;
    }
    model_is_loaded(m);
    *seconds = clock_s() - begin;
    return 0;
}

uint64_t task_free_bytes(const struct task_env *e)
{
    uint64_t there = 0, total = 0;
    struct cairn_error ignored;
    struct pool_stats st;
    pool_stats_get(gpu_pool(e->nn->g), &st);
    if (gpu_memory(e->nn->g, &there, &total, &ignored))
        return 0;
    there += st.cached_bytes;
    uint64_t left = e->budget_bytes > st.allocated_bytes ? e->budget_bytes - st.allocated_bytes : 0;
    return e->budget_bytes && left < there ? left : there;
}

const char *task_count_text(struct arena *a, uint64_t n)
{
    if (n < 1000000)
        return arena_printf(a, "%.1f k", (double)n / 1e3);
    return n < 1000000000 ? arena_printf(a, "%.1f M", (double)n / 1e6)
                          : arena_printf(a, "%.1f B", (double)n / 1e9);
}

void task_say_skipped(void *env, const char *path, const char *why)
{
    message_say(&((const struct task_env *)env)->sink, "%s is incomplete (%s); trying an older checkpoint",
                path, why);
}
