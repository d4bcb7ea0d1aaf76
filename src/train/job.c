/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "os/terminal.h"
#include "chip/gfx_table.h"
#include "gpu/transfer.h"
#include "nn/gpt_file.h"
#include "train/checkpoint_file.h"
#include "train/load_line.h"
#include "os/file.h"
#include "os/memory.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LABEL = 10 };

/* "device    hip:0": what goes on in the next line stands below the text, not below the label. */
static bool is_labelled(const char *line)
{
    size_t n = strlen(line);
    return n > LABEL && line[LABEL - 2] == ' ' && line[LABEL - 1] == ' ' && line[LABEL] != ' ';
}

void job_say(struct job *j, const char *fmt, ...)
{
    CLEANUP(str_release) struct str shown = { 0 };
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (isatty(fileno(j->o->talk))) /* a line that somebody searches in a file stays whole */
        str_add_wrapped(&shown, line, is_labelled(line) ? LABEL : 2, (size_t)tty_width(j->o->talk));
    else
        str_add(&shown, line);
    if (j->ticker.out)
        ticker_say(&j->ticker, "%s", shown.s);
    else
        fprintf(j->o->talk, "%s\n", shown.s);
}

void job_log(struct job *j, const struct step_record *m)
{
    CLEANUP(str_release) struct str line = { 0 };
    run_log_add(j->metrics, m);
    if (!j->o->events)
        return;
    step_record_add_line(m, &line);
    bool was_lost = ferror(j->o->events);
    fputs(line.s, j->o->events);
    if (fflush(j->o->events) && !was_lost)
        job_say(j, "lines of --json-events are lost: %s", strerror(errno));
}

/* ---- data ---- */

static struct data_options data_options(const struct job *j)
{
    const struct config_data *d = &j->c->data;
    return (struct data_options){
        .paths = d->path.item,
        .n_paths = d->path.n,
        .text_key = d->text_key,
        .val_path = d->val_path,
        .val_split = d->val_split,
        .seq = (size_t)j->c->train.seq,
        .batch = (size_t)(j->c->train.batch * j->c->train.accumulate),
        .seed = (uint64_t)j->c->train.seed,
        .talk = j->o->talk,
        .stop = j->o->stop,
    };
}

static const char *kept_tokenizer(struct job *j)
{
    return arena_printf(&j->arena, "%s/tokenizer.json", j->o->dir);
}

static int open_tokenizer(struct job *j, struct cairn_error *err)
{
    const char *kind = j->c->data.tokenizer, *kept = kept_tokenizer(j);
    struct data_options d = data_options(j);
    if (!strcmp(kind, "bytes"))
        return tokenizer_new_bytes(&j->tokenizer, err);
    if (j->o->dir[0] && !access(kept, F_OK))
        return tokenizer_open(kept, &j->tokenizer, err);
    if (strcmp(kind, "bpe") != 0 && access(kind, R_OK)) {
        cairn_fail_errno(err, "data.tokenizer: %s", kind);
        return cairn_hint(err, "it is bytes, bpe or the path of a tokenizer.json");
    }
    if (strcmp(kind, "bpe") != 0)
        return tokenizer_open(kind, &j->tokenizer, err);
    job_say(j, "learning a vocabulary of %lld tokens", (long long)j->c->data.vocab);
    return data_train_tokenizer(&d, (uint32_t)j->c->data.vocab, &j->tokenizer, err);
}

int job_keep_tokenizer(struct job *j, struct cairn_error *err)
{
    if (!strcmp(j->c->data.tokenizer, "bytes"))
        return 0;
    return tokenizer_save(j->tokenizer, kept_tokenizer(j), err);
}

/* Said with the key: many a file is named without its user having typed it. */
static int look_for_data(const struct data_options *d, struct cairn_error *err)
{
    for (size_t i = 0; i < d->n_paths; i++)
        if (access(d->paths[i], R_OK))
            return cairn_fail_errno(err, "data.path: %s", d->paths[i]),
                   cairn_hint(err, "--set data.path=FILE names the text to learn from");
    if (d->val_path && d->val_path[0] && access(d->val_path, R_OK))
        return cairn_fail_errno(err, "data.val_path: %s", d->val_path);
    return 0;
}

int job_open_data(struct job *j, struct cairn_error *err)
{
    struct data_options d = data_options(j);
    if (look_for_data(&d, err) || open_tokenizer(j, err) || data_open(&d, j->tokenizer, &j->data, err))
        return -1;
    if (!j->c->model.vocab)
        j->c->model.vocab = tokenizer_vocab(j->tokenizer);
    if (j->c->model.vocab < (int64_t)tokenizer_vocab(j->tokenizer))
        return cairn_fail(err, CAIRN_EUSAGE, "model.vocab is %lld, but the tokenizer has %u tokens",
                          (long long)j->c->model.vocab, tokenizer_vocab(j->tokenizer));
    return 0;
}

/* ---- the model ---- */

static struct gpt_shape shape_of(const struct config_model *m)
{
    return (struct gpt_shape){
        .layers = (size_t)m->layers,
        .heads = (size_t)m->heads,
        .kv_heads = (size_t)m->kv_heads,
        .width = (size_t)m->width,
        .ffn = (size_t)m->ffn,
        .context = (size_t)m->context,
        .vocab = (size_t)m->vocab,
        .norm = m->norm == CONFIG_NORM_RMS ? NN_NORM_RMS : NN_NORM_LAYER,
        .rope = m->position == CONFIG_POSITION_ROPE,
        .swiglu = m->mlp == CONFIG_MLP_SWIGLU,
        .bias = m->bias,
        .tied = m->tied,
        .norm_epsilon = (float)m->norm_eps,
        .rope_theta = (float)m->rope_theta,
        .dropout = (float)m->dropout,
    };
}

/* bf16 wherever the chip computes in it; f16 on RDNA2, which has products of f16 pairs and no bf16. */
static enum gpu_storage choose_storage(struct job *j)
{
    const struct gpu_info *g = gpu_info(j->o->g);
    enum config_dtype asked = j->c->train.dtype;
    j->why_storage = "as asked";
    if (asked != CONFIG_DTYPE_AUTO)
        return asked == CONFIG_DTYPE_F32 ? GPU_F32 : asked == CONFIG_DTYPE_BF16 ? GPU_BF16 : GPU_F16;
    if (g->api == GPU_API_HOST) {
        j->why_storage = "the CPU computes in it anyway";
        return GPU_F32;
    }
    if (g->chip && g->chip->train_f16) {
        j->why_storage = "this chip has fast products of f16 and none of bf16; the loss is scaled";
        return GPU_F16;
    }
    j->why_storage = "with a copy of the weights in f32, which is what moves";
    return GPU_BF16;
}

struct optim_options job_optim_options(const struct job *j)
{
    const struct config_train *t = &j->c->train;
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
        .on_host = j->state.optim_on_host,
    };
}

static int load_model(struct job *j, struct cairn_error *err)
{
    struct param_report report = { 0 };
    CLEANUP(str_release) struct str said = { 0 };
    int r = gpt_file_load(j->m, j->c->model.path, &report, err);
    param_report_say(&report, &said);
    if (!r)
        job_say(j, "%s: %s", j->c->model.path, said.s);
    param_report_release(&report);
    return r;
}

int job_fill_model(struct job *j, struct cairn_error *err)
{
    uint64_t seed = (uint64_t)j->c->train.seed;
    if (j->lora.rank && gpt_init_lora(j->m, seed, err))
        return -1;
    return j->c->model.path[0] ? load_model(j, err) : gpt_init(j->m, (float)j->c->model.init_std, seed, err);
}

static uint64_t taken(const struct job *j)
{
    return gpu_allocated(j->o->g).bytes;
}

static int open_optim(struct job *j, struct cairn_error *err)
{
    struct optim_options o = job_optim_options(j);
    uint64_t before = taken(j);
    int r = optim_open(j->o->g, gpt_trained(j->m), gpt_trained_weights(j->m), &o, &j->optim, err);
    j->taken_bytes[JOB_GRADIENTS] = weights_size(gpt_trained(j->m), GPU_F32);
    j->taken_bytes[JOB_OPTIMIZER] = r ? 0 : taken(j) - before - j->taken_bytes[JOB_GRADIENTS];
    return r;
}

static void say_skipped(void *to, const char *path, const char *why)
{
    job_say(to, "%s is not whole (%s); an older one is looked for", path, why);
}

/* The folder of a run stands for its newest checkpoint, which the new run then remembers. */
static int take_newest(struct job *j, struct cairn_error *err)
{
    struct config_model *m = &j->c->model;
    const char *whole = arena_printf(&j->arena, "%s/checkpoints", m->path);
    struct checkpoint_state state = { 0 };
    char *newest;
    if (access(whole, F_OK))
        return 0;
    if (checkpoints_newest(m->path, j->c->arena, &newest, &state, say_skipped, j, err))
        return -1;
    if (access(arena_printf(&j->arena, "%s/" CHECKPOINT_MODEL, newest), F_OK)) {
        cairn_fail(err, CAIRN_EUSAGE,
                   "model.path: %s is a run that trained a LoRA, and has no weights of its own", m->path);
        return cairn_hint(err, "cairn tensor merge adds its LoRA to the model that it was trained on");
    }
    m->path = newest;
    return 0;
}

/* What the files in model.path say of the shape holds where the configuration says nothing. */
int job_read_shape(struct job *j, struct cairn_error *err)
{
    struct config_model *m = &j->c->model;
    struct gpt_shape s = { .heads = config_is_set(j->c, "model.heads") ? (size_t)m->heads : 0 };
    if (!m->path[0])
        return config_fill(j->c, err);
    if (take_newest(j, err))
        return -1;
    if (gpt_file_shape(m->path, &s, err))
        return -1;
    const struct {
        const char *key;
        int64_t *at;
        size_t value;
    } sizes[] = {
        { "model.layers", &m->layers, s.layers },
        { "model.heads", &m->heads, s.heads },
        { "model.kv_heads", &m->kv_heads, s.kv_heads },
        { "model.width", &m->width, s.width },
        { "model.ffn", &m->ffn, s.ffn },
        { "model.context", &m->context, s.context },
        { "model.vocab", &m->vocab, s.vocab },
    };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (!config_is_set(j->c, sizes[i].key))
            *sizes[i].at = (int64_t)sizes[i].value;
    m->norm = s.norm == NN_NORM_RMS ? CONFIG_NORM_RMS : CONFIG_NORM_LAYER;
    m->position = s.rope ? CONFIG_POSITION_ROPE : CONFIG_POSITION_LEARNED;
    m->mlp = s.swiglu ? CONFIG_MLP_SWIGLU : CONFIG_MLP_GELU;
    m->bias = s.bias;
    m->tied = s.tied;
    m->norm_eps = (double)s.norm_epsilon;
    if (s.rope)
        m->rope_theta = (double)s.rope_theta;
    return config_fill(j->c, err);
}

void job_set_start(struct job *j)
{
    j->state = (struct checkpoint_state){
        .loss_scale = 1,
        .micro = (uint64_t)j->c->train.batch,
        .recompute = j->c->train.recompute == CONFIG_RECOMPUTE_BLOCKS,
        .best_val = NAN,
    };
}

static enum gpt_quantize quantize_of(const struct config_model *m)
{
    switch (m->quantize) {
    case CONFIG_QUANTIZE_INT8:
        return GPT_QUANTIZE_INT8;
    case CONFIG_QUANTIZE_FP8:
        return GPT_QUANTIZE_FP8;
    case CONFIG_QUANTIZE_NONE:
        break;
    }
    return GPT_QUANTIZE_NONE;
}

int job_new_network(struct job *j, struct cairn_error *err)
{
    struct gpt_shape shape = shape_of(&j->c->model);
    const struct config_lora *l = &j->c->lora;
    struct gpt_options options = { .quantize = quantize_of(&j->c->model) };
    if (l->rank) {
        j->lora = (struct lora_options){
            .rank = (size_t)l->rank,
            .alpha = (float)l->alpha,
            .dropout = (float)l->dropout,
            .targets = l->targets.item,
            .n_targets = l->targets.n,
        };
        options.lora = &j->lora;
    }
    if (nn_open(&j->nn, j->o->g, choose_storage(j), err))
        return -1;
    j->work_bytes = taken(j);
    return gpt_new(&j->nn, &shape, &options, &j->m, err);
}

int job_take_network(struct job *j, struct cairn_error *err)
{
    uint64_t before = taken(j);
    int r = gpt_alloc(j->m, j->state.blocks_on_host, err);
    j->taken_bytes[JOB_WEIGHTS] = taken(j) - before;
    return r;
}

static int alloc_memory(struct job *j, struct cairn_error *err)
{
    return job_take_network(j, err) || open_optim(j, err) ? -1 : 0;
}

static void release_memory(struct job *j)
{
    optim_close(j->optim);
    j->optim = NULL;
    gpt_release(j->m);
}

/* With less where the device has not what it told. */
static int open_model(struct job *j, struct cairn_error *err)
{
    for (;;) {
        struct cairn_error why = { 0 };
        if (!alloc_memory(j, &why))
            return 0;
        release_memory(j);
        if (job_keep_near(j, &why)) {
            if (job_fit_again(j, err))
                return -1;
            continue;
        }
        if (why.code != CAIRN_ENOMEM || gpu_lost(j->o->g)) {
            *err = why;
            return -1;
        }
        if (job_step_down(j, &why, err))
            return -1;
    }
}

static int fill_all(struct job *j, const char *from, struct cairn_error *err)
{
    if (open_model(j, err) || job_fill_model(j, err) || optim_start(j->optim, err))
        return -1;
    struct checkpoint_model m = job_checkpoint_model(j);
    return from ? checkpoints_load(from, &m, &j->state, err) : 0;
}

/* What the device does not take stays on the host, where it can. */
/* While debugging all that is sent is read back and compared. */
static void say_verified(struct job *j)
{
    struct transfer_stats st;
    char hash[33];
    transfer_stats_get(gpu_transfer(j->o->g), &st);
    hash_text(st.verified_hash, hash);
    if (st.verified_bytes)
        job_say(j, "load      %" PRIu64 " bytes arrived on the device as they were sent, hash %s",
                st.verified_bytes, hash);
}

int job_load(struct job *j, const char *from, struct cairn_error *err)
{
    struct load_line line;
    int r;
    load_line_start(&line, j->o->g, j->o->talk, j->o->stop);
    for (;;) {
        struct cairn_error why = { 0 };
        uint64_t refused = job_refused(j);
        r = fill_all(j, from, &why);
        if (!r || job_refused(j) == refused || !job_leave_on_host(j, &why)) {
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

int job_open_sampler(struct job *j, struct cairn_error *err)
{
    uint64_t before = taken(j);
    if (j->sampler)
        return 0;
    int r = sampler_open(j->m, j->tokenizer, j->m->shape.context, &j->sampler, err);
    j->taken_bytes[JOB_SAMPLER] = taken(j) - before;
    return r;
}

static int save_sample(struct job *j, const char *text, struct cairn_error *err)
{
    char *dir = arena_printf(&j->arena, "%s/samples", j->o->dir);
    char *path = arena_printf(&j->arena, "%s/step-%" PRIu64 ".txt", dir, j->state.step);
    if (os_make_dir(dir, 0777) && errno != EEXIST)
        return cairn_fail_errno(err, "make the folder %s", dir);
    return file_write(path, text, strlen(text), err);
}

int job_sample(struct job *j, void *to, struct cairn_error *err)
{
    (void)to;
    const struct config_sample *c = &j->c->sample;
    CLEANUP(str_release) struct str all = { 0 }, clean = { 0 };
    if (job_open_sampler(j, err))
        return -1;
    for (size_t i = 0; i < c->prompts.n; i++) {
        struct sample_options o = {
            .tokens = (size_t)c->tokens,
            .temperature = c->temperature,
            .top_k = (size_t)c->top_k,
            .seed = sample_seed((uint64_t)j->c->train.seed, i),
        };
        if (sampler_run(j->sampler, c->prompts.item[i], &o, &all, err))
            return -1;
        str_add(&all, "\n");
    }
    run_log_add_text(j->metrics, j->state.step, "sample", all.s);
    job_say(j, "---- sample at step %" PRIu64, j->state.step);
    for (const char *line = all.s; line; line = str_next_line(line)) {
        clean.len = 0;
        str_add_clean(&clean, line, strcspn(line, "\n"));
        job_say(j, "  %s", clean.len ? clean.s : "");
    }
    job_say(j, "----");
    return save_sample(j, all.s, err);
}

/* ---- the room of a step ---- */

size_t job_micros(const struct job *j)
{
    return (size_t)(j->c->train.batch * j->c->train.accumulate) / j->state.micro;
}

struct gpt_work_options job_work_options(const struct job *j)
{
    return (struct gpt_work_options){
        .samples = j->state.micro,
        .tokens = (size_t)j->c->train.seq,
        .slots = job_micros(j),
        .train = true,
        .recompute = j->state.recompute,
    };
}

static int open_buffers(struct job *j, struct cairn_error *err)
{
    size_t n = j->state.micro * (size_t)j->c->train.seq;
    free(j->ids);
    free(j->targets);
    j->ids = malloc(n * sizeof(*j->ids));
    j->targets = malloc(n * sizeof(*j->targets));
    if (!j->ids || !j->targets)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a batch of %zu tokens", n);
    return 0;
}

int job_open_work(struct job *j, struct cairn_error *err)
{
    gpt_work_close(j->room);
    j->room = NULL;
    for (;;) {
        struct gpt_work_options o = job_work_options(j);
        struct cairn_error why = { 0 };
        job_plan(j, &j->plan);
        if (!gpt_work_open(j->m, &o, &j->room, &why)) {
            j->taken_bytes[JOB_ACTIVATIONS] = gpt_work_bytes(j->m, &o);
            j->taken_bytes[JOB_WORK] = j->work_bytes + j->nn.sums_bytes + j->nn.packed_bytes;
            return open_buffers(j, err);
        }
        if (why.code != CAIRN_ENOMEM) {
            *err = why;
            return -1;
        }
        if (job_step_down(j, &why, err))
            return -1;
    }
}

struct checkpoint_model job_checkpoint_model(struct job *j)
{
    return (struct checkpoint_model){
        .m = j->m, .lora = j->lora.rank ? &j->lora : NULL, .base = j->c->model.path, .optim = j->optim
    };
}

void job_close(struct job *j)
{
    checkpoints_close(j->checkpoints);
    sampler_close(j->sampler);
    gpt_work_close(j->room);
    optim_close(j->optim);
    gpt_close(j->m);
    nn_close(&j->nn);
    data_close(j->data);
    tokenizer_free(j->tokenizer);
    free(j->ids);
    free(j->targets);
    arena_release(&j->arena);
}

/* ---- what is said ---- */

uint64_t job_memory(const struct job *j)
{
    uint64_t free_bytes, total;
    struct cairn_error ignored;
    if (gpu_info(j->o->g)->api != GPU_API_HOST)
        return gpu_memory(j->o->g, &free_bytes, &total, &ignored) ? 0 : total - free_bytes;
    return os_memory_use().resident;
}

/* 12.9 k, 124.4 M. */
static const char *count_text(struct job *j, uint64_t n)
{
    return n < 1000000 ? arena_printf(&j->arena, "%.1f k", (double)n / 1e3)
                       : arena_printf(&j->arena, "%.1f M", (double)n / 1e6);
}

void job_summary(struct job *j)
{
    const struct gpu_info *g = gpu_info(j->o->g);
    const struct gpt_shape *s = &j->m->shape;
    struct data_info d;
    data_info_get(j->data, &d);
    job_say(j, "device    %s, %s (%s): %s", g->name, g->title, g->arch, j->o->why_device);
    if (g->api != GPU_API_HOST && g->library[0])
        job_say(j, "runtime   %s%s%s%s", g->library, g->source[0] ? " (" : "", g->source,
                g->source[0] ? ")" : "");
    if (g->passed_over[0])
        job_say(j, "not used  %s", g->passed_over);
    job_say(
        j,
        "model     %s parameters: %zu layer%s of %zu heads, %zu wide, %zu tokens of context, vocabulary %zu",
        count_text(j, params_count(&j->m->params)), s->layers, s->layers == 1 ? "" : "s", s->heads, s->width,
        s->context, s->vocab);
    if (j->lora.rank)
        job_say(j, "lora      rank %zu, %s parameters in %zu matrices", j->lora.rank,
                count_text(j, params_count(&j->m->lora.params)), j->m->lora.params.n / 2);
    job_say(j, "data      %s tokens to learn from, %s to check with; %lld x %lld x %lld a step",
            count_text(j, d.tokens), count_text(j, d.val_tokens), (long long)j->state.micro,
            (long long)job_micros(j), (long long)j->c->train.seq);
    job_say(j, "numbers   %s: %s", gpu_storage_name(j->nn.storage), j->why_storage);
    job_say_plan(j);
    const struct optim_method *m = optim_methods[j->c->train.optimizer];
    if (j->c->train.lr < m->low_lr)
        job_say(j, "rate      %s, which is %g: %g is usual", m->lr_remark, j->c->train.lr, m->default_lr);
    job_say(j, "run       %s", j->o->dir);
}
