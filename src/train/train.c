/* SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"
#include "base/file.h"
#include "base/str.h"
#include "record/plot.h"
#include "record/runs.h"
#include "train/job.h"
#include "os/path.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* f16: the loss is multiplied by a power of 2 that is halved when a gradient overflows. */
static const double scale_first = 65536;

/* Where to start: the newest complete checkpoint, or step 0; of rank 0. */
static int find_checkpoint(struct job *j, char **from, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    *from = NULL;
    job_set_start(j);
    if (!j->o->resume || !job_is_first_rank(j))
        return 0;
    struct checkpoint_state found;
    struct task_env e = job_task_env(j);
    if (!checkpoints_newest(j->o->dir, &j->arena, from, &found, task_say_skipped, &e, &why)) {
        uint64_t all = (uint64_t)(j->c->train.batch * j->c->train.accumulate);
        if (!found.layout.micro || all % found.layout.micro)
            return cairn_fail(err, CAIRN_EUSAGE,
                              "%s was saved with micro-batches of %" PRIu64
                              ", which does not divide %" PRIu64,
                              *from, found.layout.micro, all);
        j->state = found;
        if (all / (uint64_t)comm_size(j->o->comm) % found.layout.micro) /* saved by fewer ranks */
            j->state.layout.micro = (uint64_t)j->c->train.batch;
        return 0;
    }
    if (why.code != CAIRN_ELACK) {
        *err = why;
        return -1;
    }
    job_say(j, "no complete checkpoint in %s: starting at step 0", j->o->dir);
    return 0;
}

/* Whether the run in this folder had another configuration.  If the hash in the checkpoint differs, its
 * config.yaml decides: older versions hashed the comments too. */
static bool is_other_config(struct job *j)
{
    struct job_config then;
    struct cairn_error ignored = { 0 };
    char hash[33];
    if (!strcmp(j->state.config, j->config_hash))
        return false;
    config_init(&then, &j->arena);
    if (config_read(&then, arena_printf(&j->arena, "%s/config.yaml", j->o->dir), &ignored) ||
        config_fill(&then, &ignored))
        return true;
    config_hash(&then, hash);
    return strcmp(hash, j->config_hash) != 0;
}

static int write_config(struct job *j, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    char *path = arena_printf(&j->arena, "%s/config.yaml", j->o->dir);
    j->c->run.dir = j->o->dir; /* so that --resume with this file finds the run */
    config_write(j->c, &text);
    return file_write(path, text.s, text.len, err);
}

static const char *run_name(const struct job *j)
{
    return j->c->run.name[0] ? j->c->run.name : path_name(j->o->dir);
}

int job_write_info(struct job *j, enum run_state state, struct cairn_error *err)
{
    if (!job_is_first_rank(j))
        return 0;
    CLEANUP(arena_release) struct arena a = { 0 };
    struct run_info info = {
        .name = run_name(j),
        .config_hash = j->config_hash,
        .model = j->task->ops->label(j->task, &a),
        .device = gpu_info(j->o->g)->name,
        .workaround = j->o->workaround,
        .folder = j->c->folder ? j->c->folder : config_cwd(&j->arena),
        .cairn_version = j->o->version,
        .parameters = model_parameters(j->task->model),
        .steps = (uint64_t)j->c->train.steps,
        .control_seq = j->control.obeyed,
        .stop_at_step = j->stop_at,
        .started = j->started,
        .finished = state == RUN_RUNNING ? 0 : (int64_t)time(NULL),
        .pid = getpid(),
        .state = state,
    };
    return run_info_write(j->o->dir, &info, err);
}

static int open_all(struct job *j, const char *from, bool resumes, struct cairn_error *err)
{
    if (job_open_task(j, err) || job_fit(j, err))
        return -1;
    job_warm_pool(j);
    if (!resumes && j->nn.storage == GPU_F16)
        j->state.loss_scale = scale_first;
    if (job_load(j, from, err) || job_share_model(j, err) || job_open_work(j, err))
        return -1;
    j->schedule = schedule_of(&j->c->train);
    config_hash(j->c, j->config_hash);
    j->other_config = from && is_other_config(j);
    return 0;
}

static int finish(struct job *j, enum train_end end, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    if (!job_is_first_rank(j))
        return 0;
    if (run_log_close(j->log, &why))
        job_say(j, "cannot write the log, part of it is lost: %s", why.msg);
    j->log = NULL;
    if (plot_write_run(j->o->dir, run_name(j), err))
        return -1;
    job_say_used(j);
    job_say(j, "%s at step %" PRIu64 " of %lld; %s/checkpoints/latest, %s/loss.svg",
            end == TRAIN_STOPPED ? "stopped" : "finished", j->state.step, (long long)j->c->train.steps,
            j->o->dir, j->o->dir);
    CLEANUP(str_release) struct str dir = { 0 };
    str_add_word(&dir, j->o->dir);
    if (end == TRAIN_STOPPED)
        job_say(j, "to resume: cairn train --resume=%s", dir.s);
    job_say(j, "to see it: cairn plot %s", dir.s);
    if (j->task->ops->try_command)
        job_say(j, "to try it: %s %s", j->task->ops->try_command, dir.s);
    if (j->task->ops->use)
        job_say(j, "to use it: %s", j->task->ops->use(j->task, end != TRAIN_STOPPED, &j->arena));
    return 0;
}

static int publish(void *to, const char *path, uint64_t step, struct cairn_error *err)
{
    const struct job *j = to;
    return j->task->ops->publish(j->task, path, step, err);
}

/* A process that was killed may have left the files of its last checkpoint out. */
static void watch_checkpoints(struct job *j, const char *from)
{
    struct cairn_error why = { 0 };
    if (!j->task->ops->publish)
        return;
    checkpoints_watch(j->checkpoints, (struct checkpoint_watcher){ publish, j });
    if (from && publish(j, from, j->state.step, &why))
        job_say(j, "warning: %s", why.msg);
}

/* Of the run's folder. */
static int open_files(struct job *j, const char *from, struct cairn_error *err)
{
    job_open_control(j);
    if (run_log_open(j->o->dir, j->state.step + 1, &j->log, err) || write_config(j, err) ||
        (j->task->ops->keep && j->task->ops->keep(j->task, err)) || job_write_info(j, RUN_RUNNING, err) ||
        checkpoints_open(j->o->dir, (size_t)j->c->checkpoint.keep, j->c->checkpoint.async, &j->checkpoints,
                         err))
        return -1;
    watch_checkpoints(j, from);
    return 0;
}

static int run_open_job(struct job *j, const char *from, enum train_end *end, struct cairn_error *err)
{
    struct cairn_error ignored;
    j->started = (int64_t)time(NULL);
    if (job_is_first_rank(j) && open_files(j, from, err))
        return -1;
    if (from)
        job_say(j, "resuming from %s%s", from,
                j->other_config ? ", which was saved with another configuration" : "");
    if (j->o->restarted)
        job_event(j, "restart", "%s", j->o->restarted);
    j->saved_step = j->state.step;
    ticker_start(&j->ticker, j->o->talk, (uint64_t)j->c->train.steps);
    int r = !from && j->c->sample.every && !j->task->no_first_sample && job_try_sample(j, err)
                ? -1
                : job_run_steps(j, end, err);
    if (r) {
        job_fail_ranks(j, err);
        job_save_after_failure(j, err);
    }
    ticker_end(&j->ticker);
    j->ticker.out = NULL;
    if (!r && j->state.step >= j->stop_at)
        j->stop_at = 0;
    job_write_info(j, r ? RUN_CRASHED : *end == TRAIN_STOPPED ? RUN_STOPPED : RUN_FINISHED, &ignored);
    return r ? r : finish(j, *end, err);
}

static bool is_finished(struct job *j)
{
    struct run_info info;
    struct cairn_error ignored;
    return !run_info_read(j->o->dir, &j->arena, &info, &ignored) && info.state == RUN_FINISHED;
}

static int run_job(struct job *j, enum train_end *end, struct cairn_error *err)
{
    char *from;
    bool writes = !j->o->dry_run && !j->o->profile && job_is_first_rank(j);
    job_watch_ranks(j);
    if (job_resolve(j, err) || job_check_ranks(j, err) || (writes && run_log_check(j->o->dir, err)) ||
        find_checkpoint(j, &from, err))
        return -1;
    struct job_start start = { .resumes = from };
    start.is_finished = from && j->state.step >= (uint64_t)j->c->train.steps && is_finished(j);
    if (job_share_start(j, &start, err))
        return -1;
    if (start.is_finished) {
        job_say(j, "%s is already finished (%lld steps); more steps: --set train.steps=N", j->o->dir,
                (long long)j->c->train.steps);
        *end = TRAIN_WAS_FINISHED;
        return 0;
    }
    if (open_all(j, from, start.resumes, err)) {
        if (!j->o->is_stopped || !j->o->is_stopped())
            return -1;
        job_fail_ranks(j, err);
        job_say(j, "stopped before the first step (%s)", err->msg);
        *end = TRAIN_STOPPED;
        return 0;
    }
    job_summary(j);
    *end = TRAIN_FINISHED;
    if (j->o->dry_run)
        return 0;
    return j->o->profile ? job_profile(j, err) : run_open_job(j, from, end, err);
}

int train_run(const struct train_options *o, enum train_end *end, struct cairn_error *err)
{
    struct job j = { .o = o, .c = o->config };
    int r = -1;
    if (!o->debug || !gpu_set_debug(o->g, err))
        r = run_job(&j, end, err);
    if (r)
        job_fail_ranks(&j, err);
    if (r && j.torn)
        *end = TRAIN_TORN;
    if (j.log)
        run_log_close(j.log, &(struct cairn_error){ 0 });
    job_close(&j);
    return r;
}
