/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "os/terminal.h"
#include "chip/gfx_table.h"
#include "gpu/gemm_cpu.h"
#include "gpu/transfer.h"
#include "os/file.h"
#include "os/memory.h"
#include "train/average.h"
#include "train/load_line.h"
#include "train/lora_start.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* ---- output ---- */

enum { LABEL = 10 };

/* "device    hip:0": continuation lines are indented to the text, not to the label. */
static bool is_labelled(const char *line)
{
    size_t n = strlen(line);
    return n > LABEL && line[LABEL - 2] == ' ' && line[LABEL - 1] == ' ' && line[LABEL] != ' ';
}

static void say_line(void *to, const char *line)
{
    struct job *j = to;
    CLEANUP(str_release) struct str shown = { 0 };
    if (isatty(fileno(j->o->talk))) /* lines in a file are not wrapped: they may be grepped */
        str_add_wrapped(&shown, line, 0, is_labelled(line) ? LABEL : 2, (size_t)tty_width(j->o->talk));
    else
        str_add(&shown, line);
    if (j->ticker.out)
        ticker_say(&j->ticker, "%s", shown.s);
    else
        fprintf(j->o->talk, "%s\n", shown.s);
}

void job_say(struct job *j, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    say_line(j, line);
}

void job_event(struct job *j, const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(j->note, sizeof(j->note), fmt, ap);
    va_end(ap);
    j->event = event;
}

void job_log(struct job *j, const struct step_record *m)
{
    CLEANUP(str_release) struct str line = { 0 };
    run_log_add(j->log, m);
    if (!j->o->events)
        return;
    step_record_add_line(m, &line);
    bool was_lost = ferror(j->o->events);
    fputs(line.s, j->o->events);
    if (fflush(j->o->events) && !was_lost)
        job_say(j, "cannot write --json-events, lines are lost: %s", strerror(errno));
}

/* ---- the task ---- */

struct task_env job_task_env(struct job *j)
{
    return (struct task_env){
        .config = j->c,
        .nn = &j->nn,
        .dir = j->o->dir ? j->o->dir : "",
        .talk = j->o->talk,
        .sink = { .say = say_line, .context = j },
        .stop = j->o->stop,
        .version = j->o->version,
        .arena = &j->arena,
        .only_plan = j->only_plan || j->o->dry_run,
        .budget_bytes = j->o->budget_bytes,
        .host_bytes = j->o->host_available ? j->o->host_available() : 0,
    };
}

int job_resolve(struct job *j, struct cairn_error *err)
{
    struct task_env e = job_task_env(j);
    return lora_start_resolve(j->c, err) || task_of(j->c)->resolve(j->c, &e, err) ? -1 : 0;
}

void job_set_start(struct job *j)
{
    j->state = (struct checkpoint_state){
        .loss_scale = 1,
        .layout.micro = (uint64_t)j->c->train.batch,
        .layout.recompute = j->c->train.recompute == CONFIG_RECOMPUTE_BLOCKS,
        .best_val = NAN,
    };
}

/* bf16 wherever the chip computes in it; f16 on RDNA 2, which has packed f16 dot products and no bf16. */
static enum gpu_storage choose_storage(struct job *j)
{
    const struct gpu_info *g = train_device(j->o);
    enum config_dtype asked = j->c->train.dtype;
    j->why_storage = "as configured";
    if (asked != CONFIG_DTYPE_AUTO)
        return asked == CONFIG_DTYPE_F32 ? GPU_F32 : asked == CONFIG_DTYPE_BF16 ? GPU_BF16 : GPU_F16;
    if (g->api == GPU_API_HOST) {
        j->why_storage = "the CPU has no faster format";
        return GPU_F32;
    }
    if (g->chip && g->chip->train_f16) {
        j->why_storage = "this chip is fast in f16 and has no bf16; with loss scaling";
        return GPU_F16;
    }
    j->why_storage = "with an f32 master copy of the weights";
    return GPU_BF16;
}

static struct optim_options optim_options(const struct job_config *c)
{
    const struct config_train *t = &c->train;
    return (struct optim_options){
        .kind = t->optimizer,
        .beta1 = t->beta1,
        .beta2 = t->beta2,
        .epsilon = t->eps,
        .decay = t->weight_decay,
        .clip = t->clip,
        .master = t->master == CONFIG_MASTER_F32,
        .stochastic = t->master == CONFIG_MASTER_STOCHASTIC,
        .ema = t->ema,
        .seed = (uint64_t)t->seed,
        .relative = t->relative_step,
        .scaled = t->scale_parameter,
        .d0 = t->d0,
        .d_coef = t->d_coef,
        .growth = t->growth_rate,
        .warm = t->safeguard_warmup,
        .corrected = t->bias_correction,
        .plus = c->lora.rank ? c->lora.plus : 1,
    };
}

static uint64_t used_now(const struct job *j)
{
    return gpu_allocated(j->o->g).bytes;
}

const struct gpu_info *train_device(const struct train_options *o)
{
    return o->machine ? &o->machine->gpu : gpu_info(o->g);
}

/* Once the task has its model. */
static void set_memory_job(struct job *j)
{
    const struct gpu_info *g = train_device(j->o);
    j->nn.packed_bytes = gemm_cpu_reserved(j->o->g) * sizeof(float); /* for the task's own networks */
    j->memory.job = (struct memory_job){
        .task = j->task,
        .optim = optim_options(j->c),
        .step_samples = (uint64_t)(j->c->train.batch * j->c->train.accumulate / comm_size(j->o->comm)),
        .ranks = (size_t)comm_size(j->o->comm),
        .exact = j->c->dist.reduce == CONFIG_REDUCE_EXACT,
        .fixed_bytes = used_now(j) - j->nn.sums_bytes - j->nn.packed_bytes +
                       (j->o->machine ? blas_device_bytes(g->api) : 0),
        .reserved = { .sums = j->nn.sums_bytes, .packed = j->nn.packed_bytes },
        .samples = j->c->sample.every > 0,
        .is_cpu = g->api == GPU_API_HOST,
        .is_unified = g->unified,
    };
}

int job_open_task(struct job *j, struct cairn_error *err)
{
    if (nn_open(&j->nn, j->o->g, choose_storage(j), err))
        return -1;
    if (j->c->dist.reduce == CONFIG_REDUCE_EXACT)
        blas_fix(j->nn.blas);
    j->nn.as = j->o->machine ? &j->o->machine->gpu : NULL;
    struct task_env e = job_task_env(j);
    if (job_compare_devices(j, err) || job_wait_for_turn(j, false, err) ||
        task_of(j->c)->open(&e, &j->task, err) || job_wait_for_turn(j, true, err) ||
        job_compare_data(j, err) || j->task->ops->new_model(j->task, err))
        return -1;
    set_memory_job(j);
    return 0;
}

int job_open_saved(struct job *j, const struct task_saved *s, struct cairn_error *err)
{
    struct task_env e = job_task_env(j);
    if (nn_open(&j->nn, j->o->g, choose_storage(j), err) || task_of(j->c)->open_saved(&e, s, &j->task, err) ||
        j->task->ops->new_model(j->task, err))
        return -1;
    set_memory_job(j);
    j->memory.job.samples = j->memory.job.only_samples = true;
    job_set_start(j);
    return job_fit(j, err);
}

size_t job_set(const struct job *j)
{
    const struct task_ops *ops = j->task->ops;
    size_t set = ops->set_of_step ? ops->set_of_step(j->task, j->state.step) : 0;
    assert(set < model_sets(j->task->model));
    return set;
}

/* ---- the model and its optimizers ---- */

static int open_optimizers(struct job *j, struct cairn_error *err)
{
    struct model *m = j->task->model;
    struct optim_options o = j->memory.job.optim;
    o.on_host = j->state.layout.optim_on_host;
    uint64_t before = used_now(j), grads = 0;
    for (size_t i = 0; i < model_sets(m); i++) {
        o.seed = j->memory.job.optim.seed + i * 0x9e3779b97f4a7c15u; /* each set draws its own numbers */
        if (optim_open(j->o->g, model_trained(m, i), model_trained_weights(m, i), &o, &j->optim[i], err))
            return -1;
        grads += weights_size(model_trained(m, i), GPU_F32);
    }
    j->memory.used_bytes[MEMORY_GRADIENTS] = grads;
    j->memory.used_bytes[MEMORY_OPTIMIZER] = used_now(j) - before - grads;
    return 0;
}

static int alloc_memory(struct job *j, struct cairn_error *err)
{
    uint64_t before = used_now(j);
    int r = model_alloc(j->task->model, &j->state.layout.weights, err);
    j->memory.used_bytes[MEMORY_WEIGHTS] = used_now(j) - before;
    return r || (!j->memory.job.only_samples && open_optimizers(j, err)) ? -1 : 0;
}

static void release_memory(struct job *j)
{
    for (size_t i = 0; i < MODEL_SETS; i++) {
        optim_close(j->optim[i]);
        j->optim[i] = NULL;
    }
    if (j->task && j->task->model)
        model_release(j->task->model);
}

/* Applies fallbacks if the device has less memory than it reported. */
static int open_model(struct job *j, struct cairn_error *err)
{
    for (;;) {
        struct cairn_error why = { 0 };
        if (!alloc_memory(j, &why))
            return 0;
        release_memory(j);
        if (job_cancel_offload(j, &why)) {
            if (job_fit_again(j, err))
                return -1;
            continue;
        }
        if (why.code != CAIRN_ENOMEM || gpu_lost(j->o->g)) {
            *err = why;
            return -1;
        }
        if (job_fallback(j, &why, err))
            return -1;
    }
}

static int fill_all(struct job *j, const void *to, struct cairn_error *err)
{
    const char *from = to;
    if (open_model(j, err) || (!from && lora_start_load(j, false, err)) ||
        j->task->ops->fill_model(j->task, err) || (!from && lora_start_load(j, true, err)))
        return -1;
    for (size_t i = 0; i < model_sets(j->task->model); i++)
        if (optim_start(j->optim[i], err))
            return -1;
    struct checkpoint_model m = job_checkpoint_model(j);
    return from ? checkpoints_load(from, &m, &j->state, err) : 0;
}

/* The base that a LoRA was trained on comes from model.path. */
static int fill_saved(struct job *j, const void *to, struct cairn_error *err)
{
    const char *const *files = to;
    struct model *m = j->task->model;
    if (open_model(j, err) || ((!files || m->n_loras) && j->task->ops->fill_model(j->task, err)))
        return -1;
    for (size_t i = 0; files && i < model_sets(m); i++) {
        struct param_report report = { 0 };
        int r = m->ops->load(m, i, files[i], &report, err);
        param_report_release(&report);
        if (r)
            return -1;
    }
    return 0;
}

/* In debug mode, transfers are read back and compared. */
static void say_verified(struct job *j)
{
    struct transfer_stats st;
    char hash[33];
    transfer_stats_get(gpu_transfer(j->o->g), &st);
    hash_text(st.verified_hash, hash);
    if (st.verified_bytes)
        job_say(j, "load      verified %" PRIu64 " bytes on the device, hash %s", st.verified_bytes, hash);
}

/* Parts that the device refuses stay on the host, if they can be offloaded. */
static int load(struct job *j, int (*fill)(struct job *j, const void *to, struct cairn_error *err),
                const void *to, struct cairn_error *err)
{
    struct load_line line;
    int r;
    load_line_start(&line, j->o->g, j->o->talk, j->o->stop);
    for (;;) {
        struct cairn_error why = { 0 };
        uint64_t refused = job_refused_transfers(j);
        r = fill(j, to, &why);
        if (!r || job_refused_transfers(j) == refused || !job_offload_next(j, &why)) {
            *err = r ? why : *err;
            break;
        }
        release_memory(j);
    }
    load_line_end(&line);
    if (!r)
        say_verified(j);
    return r;
}

int job_load(struct job *j, const char *from, struct cairn_error *err)
{
    return load(j, fill_all, from, err);
}

int job_load_saved(struct job *j, const char *const *files, struct cairn_error *err)
{
    return load(j, fill_saved, files, err);
}

struct checkpoint_model job_checkpoint_model(struct job *j)
{
    struct checkpoint_model m = { .model = j->task->model, .base = config_written_text(j->c, "model.path") };
    memcpy(m.optim, j->optim, sizeof(m.optim));
    return m;
}

/* ---- the workspace of a step ---- */

size_t job_micros(const struct job *j)
{
    return memory_micros(&j->memory.job, &j->state.layout);
}

static void close_work(struct job *j)
{
    if (j->work)
        j->task->model->ops->work_close(j->work);
    j->work = NULL;
    grad_tree_close(j->tree);
    j->tree = NULL;
    j->memory.used_bytes[MEMORY_GRADIENTS] -= j->memory.tree_bytes;
    j->memory.tree_bytes = 0;
}

static int open_tree(struct job *j, struct cairn_error *err)
{
    uint64_t before = used_now(j);
    if (grad_tree_open(j->task->model, job_micros(j), (size_t)comm_size(j->o->comm), &j->tree, err))
        return -1;
    j->memory.tree_bytes = used_now(j) - before;
    j->memory.used_bytes[MEMORY_GRADIENTS] += j->memory.tree_bytes;
    return 0;
}

static int open_work(struct job *j, struct cairn_error *err)
{
    const struct work_options o = memory_work_options(&j->memory.job, &j->state.layout);
    struct model *m = j->task->model;
    if (j->memory.job.exact && open_tree(j, err))
        return -1;
    if (!m->ops->work_open(m, &o, &j->work, err))
        return 0;
    close_work(j);
    return -1;
}

int job_open_work(struct job *j, struct cairn_error *err)
{
    struct model *m = j->task->model;
    close_work(j);
    for (;;) {
        struct work_options o = memory_work_options(&j->memory.job, &j->state.layout);
        struct cairn_error why = { 0 };
        memory_plan(&j->memory.job, &j->state.layout, &j->memory.plan);
        if (!open_work(j, &why)) {
            j->memory.used_bytes[MEMORY_ACTIVATIONS] = m->ops->work_bytes(m, &o).own;
            j->memory.used_bytes[MEMORY_WORK] =
                j->memory.job.fixed_bytes + j->nn.sums_bytes + j->nn.packed_bytes;
            return 0;
        }
        if (job_cancel_inputs(j, &why))
            continue;
        if (why.code != CAIRN_ENOMEM) {
            *err = why;
            return -1;
        }
        if (job_fallback(j, &why, err))
            return -1;
    }
}

/* ---- samples ---- */

/* Where there is a moving average of the weights, samples show it, as in ai-toolkit. */
static int sample_average(struct job *j, const char *dir, struct str *text, struct cairn_error *err)
{
    struct average *a = NULL;
    struct cairn_error why = { 0 };
    int r = (j->c->train.ema > 0 && average_use(j->task->model, j->optim, &a, err)) ||
                    j->task->ops->sample(j->task, dir, j->state.step, text, err)
                ? -1
                : 0;
    if (!average_drop(a, &why))
        return r;
    j->averaged = true;
    *err = why;
    return -1;
}

static int sample(struct job *j, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 }, clean = { 0 };
    char dir[4096];
    snprintf(dir, sizeof(dir), "%s/samples", j->o->dir);
    uint64_t before = used_now(j);
    bool was_open = j->task->ops->sample_is_open(j->task);
    if (os_make_dir(dir, 0777) && errno != EEXIST)
        return cairn_fail_errno(err, "make the folder %s", dir);
    if (sample_average(j, dir, &text, err))
        return -1;
    if (!was_open)
        j->memory.used_bytes[MEMORY_SAMPLER] = used_now(j) - before;
    run_log_add_text(j->log, j->state.step, "sample", text.s ? text.s : "");
    job_say(j, "---- sample at step %" PRIu64 "%s", j->state.step,
            j->c->train.ema > 0 ? ", moving average of the weights" : "");
    for (const char *line = text.s; line; line = str_next_line(line)) {
        clean.len = 0;
        str_add_clean(&clean, line, strcspn(line, "\n"));
        job_say(j, "  %s", clean.len ? clean.s : "");
    }
    job_say(j, "----");
    return 0;
}

/* The workspace of a step comes back whether there is a sample or not. */
int job_sample(struct job *j, void *to, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    (void)to;
    if (!j->task->sample_alone)
        return sample(j, err);
    close_work(j);
    int r = sample(j, &why);
    j->task->ops->sample_close(j->task);
    j->memory.used_bytes[MEMORY_SAMPLER] = 0;
    if (job_open_work(j, err))
        return -1;
    if (r)
        *err = why;
    return r;
}

void job_close(struct job *j)
{
    checkpoints_close(j->checkpoints);
    if (j->task)
        close_work(j);
    for (size_t i = 0; i < MODEL_SETS; i++)
        optim_close(j->optim[i]);
    if (j->task)
        j->task->ops->close(j->task);
    if (j->bucket.at)
        gpu_staging_close(j->o->g, &j->bucket);
    nn_close(&j->nn);
    arena_release(&j->arena);
}

/* ---- summary ---- */

uint64_t job_memory_bytes(const struct job *j)
{
    uint64_t free_bytes, total;
    struct cairn_error ignored;
    if (gpu_info(j->o->g)->api != GPU_API_HOST)
        return gpu_memory(j->o->g, &free_bytes, &total, &ignored) ? 0 : total - free_bytes;
    return os_memory_use().resident;
}

void job_summary(struct job *j)
{
    const struct gpu_info *g = gpu_info(j->o->g);
    job_say(j, "device    %s, %s (%s): %s", g->name, g->title, g->arch, j->o->why_device);
    if (g->api != GPU_API_HOST && g->library[0])
        job_say(j, "runtime   %s%s%s%s", g->library, g->source[0] ? " (" : "", g->source,
                g->source[0] ? ")" : "");
    if (g->passed_over[0])
        job_say(j, "not used  %s", g->passed_over);
    j->task->ops->summary(j->task);
    job_say_ranks(j);
    job_say(j, "step      %zu micro-batch%s of %" PRIu64 " sample%s%s", job_micros(j),
            job_micros(j) == 1 ? "" : "es", j->state.layout.micro, j->state.layout.micro == 1 ? "" : "s",
            j->o->comm ? " on each rank" : "");
    job_say(j, "dtype     %s: %s", gpu_storage_name(j->nn.storage), j->why_storage);
    job_say_plan(j);
    const struct optim_method *m = optim_methods[j->c->train.optimizer];
    if (j->c->train.lr < m->low_lr)
        job_say(j, "lr        %s (%g); %g is the usual value", m->lr_remark, j->c->train.lr, m->default_lr);
    job_say(j, "run       %s", j->o->dir);
}
