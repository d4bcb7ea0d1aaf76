/* SPDX-License-Identifier: Apache-2.0
 * What the ranks of a job do together: they begin with the same state, agree on each step, and sum gradients and losses.
 *
 * Every rank has the whole model.  Of a step's micro-batches each computes its share; then all have the same gradients, and make
 * the same update.  Rank 0 alone writes files and speaks. */
#include "base/hash.h"
#include "base/int.h"
#include "base/str.h"
#include "train/job.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of a device's memory at once, on the way to the others. */
enum { BUCKET = 32 << 20 };

static struct comm *comm_of(const struct job *j)
{
    return j->o->comm;
}

bool job_is_first_rank(const struct job *j)
{
    return !comm_rank(comm_of(j));
}

size_t job_first_micro(const struct job *j)
{
    return (size_t)comm_rank(comm_of(j)) * job_micros(j);
}

size_t job_all_micros(const struct job *j)
{
    return (size_t)comm_size(comm_of(j)) * job_micros(j);
}

/* Without data. */
static bool is_only_plan(const struct job *j)
{
    return j->only_plan || j->o->dry_run;
}

/* ---- the start ---- */

/* As many batches as ranks, or a multiple, of the same samples per step; 0: that is impossible. */
static int64_t nearest_accumulate(const struct config_train *t, int64_t ranks)
{
    int64_t samples = t->batch * t->accumulate;
    for (int64_t n = t->accumulate / ranks * ranks + ranks; n <= samples; n += ranks)
        if (samples % n == 0)
            return n;
    return 0;
}

static int check_shares(const struct job *j, struct cairn_error *err)
{
    const struct config_train *t = &j->c->train;
    int64_t ranks = comm_size(comm_of(j)), samples = t->batch * t->accumulate;
    if (j->c->dist.reduce == CONFIG_REDUCE_EXACT && ranks & (ranks - 1))
        return config_clash(j->c, "dist.reduce", "dist.reduce", err,
                            "dist.reduce is exact, which needs 2, 4, 8 ... ranks; there are %" PRId64, ranks);
    if (t->accumulate % ranks == 0)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE,
               "train.accumulate is %" PRId64 ", which %" PRId64
               " ranks cannot share: each takes the same number of batches of a step",
               t->accumulate, ranks);
    int64_t n = nearest_accumulate(t, ranks);
    if (n)
        return cairn_hint(err,
                          "--set train.accumulate=%" PRId64 " --set train.batch=%" PRId64
                          " are the same %" PRId64 " samples per step",
                          n, samples / n, samples);
    return cairn_hint(err, "--set train.accumulate=%" PRId64 " makes %" PRId64 " samples per step", ranks,
                      ranks * t->batch);
}

struct identity {
    char version[32], config[33];
};

/* Before anything large is read. */
static int compare_jobs(struct job *j, struct cairn_error *err)
{
    size_t n = (size_t)comm_size(comm_of(j));
    struct identity mine = { 0 }, *all = arena_alloc(&j->arena, n * sizeof(*all));
    snprintf(mine.version, sizeof(mine.version), "%s", j->o->version);
    config_hash(j->c, mine.config);
    if (comm_gather(comm_of(j), &mine, sizeof(mine), all, err))
        return -1;
    for (size_t r = 1; r < n; r++) {
        const char *host = comm_host(comm_of(j), (int)r);
        if (strcmp(all[r].version, all[0].version))
            return cairn_fail(err, CAIRN_EUSAGE, "rank %zu on %s is cairn %s, rank 0 is cairn %s", r, host,
                              all[r].version, all[0].version);
        if (strcmp(all[r].config, all[0].config))
            return cairn_fail(err, CAIRN_EUSAGE, "rank %zu on %s has another configuration than rank 0", r,
                              host),
                   cairn_hint(err, "start all ranks with the same file and options");
    }
    return 0;
}

int job_check_ranks(struct job *j, struct cairn_error *err)
{
    if (!comm_of(j))
        return check_shares(j, err);
    return check_shares(j, err) || compare_jobs(j, err) ? -1 : 0;
}

/* The first rank whose hash is not that of rank 0; 0: all are the same. */
static int find_other(struct job *j, const struct hash *h, size_t *other, struct cairn_error *err)
{
    size_t n = (size_t)comm_size(comm_of(j));
    uint64_t mine[2];
    hash_end(h, mine);
    CLEANUP(mem_free) uint64_t(*all)[2] = calloc(n, sizeof(mine));
    if (!all)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (comm_gather(comm_of(j), mine, sizeof(mine), all, err))
        return -1;
    for (*other = 1; *other < n && !memcmp(all[*other], all[0], sizeof(mine));)
        ++*other;
    *other %= n;
    return 0;
}

struct rank_device {
    char arch[64];
    int32_t api, storage;
};

/* All keep the same weights, in the same format; exact sums want the same instructions too. */
int job_compare_devices(struct job *j, struct cairn_error *err)
{
    const struct gpu_info *g = train_device(j->o);
    size_t n = (size_t)comm_size(comm_of(j));
    struct rank_device mine = { .api = (int32_t)g->api, .storage = (int32_t)j->nn.storage };
    if (!comm_of(j) || is_only_plan(j))
        return 0;
    snprintf(mine.arch, sizeof(mine.arch), "%s", g->arch);
    struct rank_device *all = arena_alloc(&j->arena, n * sizeof(*all));
    bool exact = j->c->dist.reduce == CONFIG_REDUCE_EXACT;
    if (comm_gather(comm_of(j), &mine, sizeof(mine), all, err))
        return -1;
    for (size_t r = 1; r < n; r++) {
        bool other = all[r].api != all[0].api || all[r].storage != all[0].storage;
        if (!other && !(exact && strcmp(all[r].arch, all[0].arch)))
            continue;
        cairn_fail(err, CAIRN_EUSAGE, "rank %zu on %s computes on %s in %s, rank 0 on %s in %s", r,
                   comm_host(comm_of(j), (int)r), all[r].arch, gpu_storage_name(all[r].storage), all[0].arch,
                   gpu_storage_name(all[0].storage));
        return cairn_hint(err, other ? "ranks need devices of one kind, and the same train.dtype"
                                     : "dist.reduce fast takes chips that differ");
    }
    return 0;
}

int job_compare_data(struct job *j, struct cairn_error *err)
{
    struct hash h;
    size_t other;
    if (!comm_of(j) || is_only_plan(j))
        return 0;
    hash_init(&h);
    j->task->ops->add_data(j->task, &h);
    if (find_other(j, &h, &other, err))
        return -1;
    if (!other)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "rank %zu on %s has other training data than rank 0", other,
               comm_host(comm_of(j), (int)other));
    return cairn_hint(err, "copy the same files to data.path on each machine");
}

int job_share_start(struct job *j, struct job_start *start, struct cairn_error *err)
{
    return comm_broadcast(comm_of(j), start, sizeof(*start), err) ||
                   comm_broadcast(comm_of(j), &j->state, sizeof(j->state), err)
               ? -1
               : 0;
}

int job_wait_for_turn(struct job *j, bool done, struct cairn_error *err)
{
    uint8_t mine = 0;
    struct comm *c = comm_of(j);
    if (!c || done != !comm_local_rank(c) || is_only_plan(j))
        return 0;
    CLEANUP(mem_free) uint8_t *all = malloc((size_t)comm_size(c));
    return all ? comm_gather(c, &mine, sizeof(mine), all, err) : cairn_fail(err, CAIRN_ENOMEM, "no memory");
}

/* ---- arrays on the device ---- */

static bool is_host(const struct job *j)
{
    return gpu_info(j->o->g)->api == GPU_API_HOST;
}

/* Calls fn with the bytes of an array, on the host, piece by piece; `writes`: it changes them. */
typedef int piece_fn(struct job *j, void *to, void *piece, size_t n, struct cairn_error *err);
static int each_piece(struct job *j, void *at, size_t n, bool on_host, bool writes, piece_fn *fn, void *to,
                      struct cairn_error *err)
{
    struct gpu *g = j->o->g;
    bool direct = on_host || is_host(j);
    if (gpu_wait(g, NULL, err) ||
        (n && !direct && !j->bucket.at && gpu_staging_open(g, BUCKET, &j->bucket, err)))
        return -1;
    for (size_t done = 0; done < n; done += BUCKET) {
        size_t size = at_most(n - done, BUCKET);
        char *piece = (char *)at + done;
        if (direct) { /* in the same pieces: another rank may have the array elsewhere */
            if (fn(j, to, piece, size, err))
                return -1;
            continue;
        }
        if (gpu_download(g, NULL, j->bucket.at, piece, size, err) || gpu_wait(g, NULL, err) ||
            fn(j, to, j->bucket.at, size, err) ||
            (writes && (gpu_upload(g, NULL, piece, j->bucket.at, size, err) || gpu_wait(g, NULL, err))))
            return -1;
    }
    return 0;
}

static int sum_piece(struct job *j, void *to, void *piece, size_t n, struct cairn_error *err)
{
    (void)to;
    return comm_sum(comm_of(j), piece, n / sizeof(float), err);
}

static int share_piece(struct job *j, void *to, void *piece, size_t n, struct cairn_error *err)
{
    (void)to;
    return comm_broadcast(comm_of(j), piece, n, err);
}

static int hash_piece(struct job *j, void *to, void *piece, size_t n, struct cairn_error *err)
{
    (void)j, (void)err;
    hash_add(to, piece, n);
    return 0;
}

/* ---- weights ---- */

/* While another rank does work of its own (samples), or compiles its first kernels, the others have patience. */
static void set_limit(struct job *j)
{
    enum { PATIENCE = 10 };
    uint64_t every = (uint64_t)j->c->sample.every, step = j->state.step;
    bool sampled = every && (step % every == 0 || step == (uint64_t)j->c->train.steps);
    bool patient = sampled || j->others_sample || !j->agreed;
    comm_set_limit(comm_of(j), (double)j->c->dist.timeout * (patient ? PATIENCE : 1));
}

/* Calls fn with all that a set trains. */
static int each_weight(struct job *j, size_t set, bool writes, piece_fn *fn, void *to,
                       struct cairn_error *err)
{
    const struct model *m = j->task->model;
    const struct params *p = model_trained(m, set);
    struct weights *w = model_trained_weights(m, set);
    size_t size = storage_size(w->storage);
    return each_piece(j, w->matrices, p->numbers[PARAM_MATRIX] * size, false, writes, fn, to, err) ||
                   each_piece(j, w->vectors, p->numbers[PARAM_VECTOR] * sizeof(float), false, writes, fn, to,
                              err)
               ? -1
               : 0;
}

static int share_optimizer(struct job *j, struct optim *o, struct cairn_error *err)
{
    size_t n;
    const struct optim_array *arrays = optim_arrays(o, &n);
    uint64_t steps[2] = { optim_applied(o), optim_attempted(o) };
    if (optim_settle(o, err) || comm_broadcast(comm_of(j), steps, sizeof(steps), err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (each_piece(j, arrays[i].at, arrays[i].n * dtype_size(arrays[i].dtype), arrays[i].on_host, true,
                       share_piece, NULL, err))
            return -1;
    optim_resume(o, steps[0], steps[1]);
    return 0;
}

int job_share_model(struct job *j, struct cairn_error *err)
{
    for (size_t set = 0; comm_of(j) && set < model_sets(j->task->model); set++)
        if (each_weight(j, set, true, share_piece, NULL, err) || share_optimizer(j, j->optim[set], err))
            return -1;
    return 0;
}

int job_compare_weights(struct job *j, struct cairn_error *err)
{
    struct hash h;
    size_t other;
    if (!comm_of(j))
        return 0;
    set_limit(j);
    hash_init(&h);
    for (size_t set = 0; set < model_sets(j->task->model); set++)
        if (each_weight(j, set, false, hash_piece, &h, err))
            return -1;
    if (find_other(j, &h, &other, err))
        return -1;
    if (!other)
        return 0;
    cairn_fail(err, CAIRN_EDEVICE, "step %" PRIu64 ": the weights of rank %zu on %s are not those of rank 0",
               j->state.step, other, comm_host(comm_of(j), (int)other));
    return cairn_hint(err,
                      "memory, a cable or a driver changed numbers on one of them: run `cairn selftest` on "
                      "both, and resume from the last checkpoint");
}

/* ---- a step ---- */

struct ballot {
    uint64_t step, micro, stop_at;
    uint64_t set, base; /* that the step trains */
    int32_t code;       /* of what failed; CAIRN_OK or CAIRN_ENOMEM */
    bool stop, sample;
};

static struct ballot ballot_of(struct job *j, bool no_memory)
{
    /* An order of control.json: the others must hear of it before the step ends. */
    const struct task_ops *ops = j->task->ops;
    if (job_is_first_rank(j) && !j->order.seq && j->log) {
        j->order = job_next_order(j);
        if (j->order.stop == CONTROL_STOP_AT && j->stop_at <= j->state.step)
            j->stop_at = j->state.step + 1; /* after this step */
    }
    return (struct ballot){
        .set = job_set(j),
        .base = ops->base_of_step ? ops->base_of_step(j->task, j->state.step) : 0,
        .step = j->state.step,
        .micro = j->state.layout.micro,
        .stop_at = j->stop_at,
        .code = no_memory ? CAIRN_ENOMEM : CAIRN_OK,
        .stop = j->o->is_stopped && j->o->is_stopped(),
        .sample = j->order.sample,
    };
}

/* With the smallest micro-batches that any rank has. */
static int take_micro(struct job *j, uint64_t micro, struct cairn_error *err)
{
    if (micro == j->state.layout.micro)
        return 0;
    j->state.layout.micro = micro;
    job_say(j, "another rank is short of memory: micro-batches of %" PRIu64 " on all", micro);
    job_event(j, "rank-oom", "micro-batches of %" PRIu64 " on all ranks", micro);
    return job_open_work(j, err);
}

static int count_votes(struct job *j, const struct ballot *all, bool *again, struct cairn_error *err)
{
    uint64_t least = j->state.layout.micro;
    j->stopping = j->others_sample = false;
    for (int r = 0; r < comm_size(comm_of(j)); r++) {
        if (all[r].step != j->state.step)
            return cairn_fail(err, CAIRN_EFORMAT, "rank %d is at step %" PRIu64 ", this one at %" PRIu64, r,
                              all[r].step, j->state.step);
        if (all[r].set != all[0].set || all[r].base != all[0].base) {
            cairn_fail(err, CAIRN_EUSAGE, "step %" PRIu64 ": rank %d trains another expert than rank 0",
                       j->state.step + 1, r);
            return cairn_hint(err,
                              "set train.switch_every and memory.idle, which each rank chose for its memory");
        }
        *again |= all[r].code != CAIRN_OK || all[r].micro != all[0].micro;
        least = all[r].micro < least ? all[r].micro : least;
        j->stopping |= all[r].stop;
        j->others_sample |= all[r].sample;
    }
    j->stop_at = all[0].stop_at;
    return take_micro(j, least, err);
}

int job_vote(struct job *j, bool no_memory, bool *again, struct cairn_error *err)
{
    struct comm *c = comm_of(j);
    *again = false;
    if (!c)
        return 0;
    struct ballot mine = ballot_of(j, no_memory);
    CLEANUP(mem_free) struct ballot *all = calloc((size_t)comm_size(c), sizeof(*all));
    if (!all)
        return cairn_fail(err, CAIRN_EIO, "no memory");
    set_limit(j);
    int r = comm_gather(c, &mine, sizeof(mine), all, err) || count_votes(j, all, again, err) ? -1 : 0;
    j->agreed = true;
    set_limit(j);
    return r;
}

int job_sum_grads(struct job *j, struct cairn_error *err)
{
    size_t set = job_set(j);
    const struct params *p = model_trained(j->task->model, set);
    const struct weights *grads = optim_grads(j->optim[set]);
    if (!comm_of(j))
        return 0;
    return each_piece(j, grads->matrices, p->numbers[PARAM_MATRIX] * sizeof(float), false, true, sum_piece,
                      NULL, err) ||
                   each_piece(j, grads->vectors, p->numbers[PARAM_VECTOR] * sizeof(float), false, true,
                              sum_piece, NULL, err)
               ? -1
               : 0;
}

int job_merge(struct job *j, double *numbers, size_t n, struct cairn_error *err)
{
    return comm_merge(comm_of(j), numbers, n, err);
}

int job_first_text(struct job *j, char *text, size_t size)
{
    struct cairn_error ignored;
    int n = comm_size(comm_of(j));
    char *all = arena_alloc(&j->arena, (size_t)n * size);
    if (comm_gather(comm_of(j), text, size, all, &ignored))
        return comm_rank(comm_of(j));
    for (int r = 0; r < n; r++)
        if (all[(size_t)r * size]) {
            memcpy(text, all + (size_t)r * size, size);
            return r;
        }
    return 0;
}

const char *job_rank_text(struct job *j, int rank)
{
    return comm_of(j) ? arena_printf(&j->arena, " on rank %d", rank) : "";
}

void job_fail_ranks(struct job *j, const struct cairn_error *why)
{
    comm_fail(comm_of(j), why);
}

/* ---- words ---- */

static void say_late(void *to, int rank, double seconds)
{
    struct job *j = to;
    if (job_is_first_rank(j))
        job_say(j, "waiting for rank %d of %d on %s for %.0f s", rank, comm_size(comm_of(j)),
                comm_host(comm_of(j), rank), seconds);
}

void job_watch_ranks(struct job *j)
{
    enum { LATE_S = 30 };
    comm_set_late(comm_of(j), (struct comm_late){ LATE_S, say_late, j });
    comm_set_limit(comm_of(j),
                   1e9); /* the first of a machine may make caches for hours, while the others wait */
}

void job_say_ranks(struct job *j)
{
    const struct comm *c = comm_of(j);
    bool exact = j->c->dist.reduce == CONFIG_REDUCE_EXACT;
    if (!c)
        return;
    job_say(j, "ranks     %d by %s%s; %s sums%s", comm_size(c), comm_version(c),
            comm_local_size(c) == comm_size(c) ? ", all on this machine" : "", exact ? "exact" : "fast",
            is_host(j) ? "" : ", through host memory");
}
