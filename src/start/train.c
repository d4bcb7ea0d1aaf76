/* SPDX-License-Identifier: Apache-2.0 */
#include "start/train.h"

#include "base/file.h"
#include "base/str.h"
#include "config.h"
#include "os/file.h"
#include "os/info.h"
#include "os/list.h"
#include "os/path.h"
#include "record/control.h"
#include "record/runs.h"
#include "run/journal.h"
#include "start/open_device.h"
#include "start/own_env.h"
#include "start/restart.h"
#include "start/step_evidence.h"
#include "start/watch_calls.h"
#include "train/foreign.h"
#include "train/foreign_musubi.h"
#include "train/fit.h"
#include "train/run_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool (*is_stopped)(void);
static bool has_ranks; /* of which none can be replaced by a new process */

/* ---- the folder of the run ---- */

/* An order for a run may be there before the run. */
static bool is_empty(const char *dir)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    for (const char *name; l && (name = os_list_next(l));)
        if (!str_eq(name, CONTROL_FILE))
            return false;
    return true;
}

/* runs/NAME, or runs/NAME-2 and so on if that is taken.  The folder is made, since two runs may start at once
 * with the same name. */
static const char *new_dir(const char *name, bool make, struct arena *a)
{
    struct cairn_error ignored;
    const char *dir = arena_printf(a, "runs/%s", name);
    if (make && file_make_dir("runs", 0777, &ignored))
        return dir; /* which fails too, with a message */
    for (int i = 2; make ? os_make_dir(dir, 0777) && errno == EEXIST : !is_empty(dir); i++)
        dir = arena_printf(a, "runs/%s-%d", name, i);
    return dir;
}

/* runs/NAME, where NAME is run.name or the file's. */
static const char *run_dir(const struct job_config *c, struct arena *a, const struct start_options *o)
{
    if (c->run.dir[0])
        return c->run.dir;
    if (c->run.name[0])
        return arena_printf(a, "runs/%s", c->run.name);
    if (o->name)
        return new_dir(o->name, !o->dry_run && !o->profile, a);
    if (!o->file)
        return "runs/musubi";
    const char *name = path_name(o->file), *dot = strrchr(name, '.');
    return arena_printf(a, "runs/%.*s", (int)(dot ? dot - name : (long)strlen(name)), name);
}

static int open_dir(const struct start_options *o, const char *dir, bool resume, struct cairn_error *err)
{
    if (o->profile) /* profiling writes nothing to it */
        return 0;
    if (o->resume && o->resume[0] && access(dir, F_OK))
        return cairn_fail_errno(err, "--resume=%s", dir);
    if (!resume && !is_empty(dir)) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is not empty", dir);
        return cairn_hint(err, "--resume continues that run; --set run.dir=DIR starts one elsewhere");
    }
    if (o->dry_run || !file_make_dir(dir, 0777, err))
        return 0;
    return cairn_hint(err, "--set run.dir=DIR puts the run elsewhere");
}

/* ---- the device, and a new process after it failed ---- */

/* A run that lost its GPU continues on the CPU only if the user allowed it. */
static int check_gpu_is_available(const struct gpu *g, bool allow_cpu, struct cairn_error *err)
{
    if (!restart_why() || gpu_info(g)->api != GPU_API_HOST || restart_wants_cpu() || allow_cpu)
        return 0;
    cairn_fail(err, CAIRN_ELACK, "the GPU of this run can no longer be opened");
    return cairn_hint(
        err, "use --resume when `cairn gpu` shows no problem; train.allow_cpu=true continues on the CPU");
}

static int open_device(const struct job_config *c, struct train_options *o, struct arena *a,
                       struct cairn_error *err)
{
    restart_set_device(GPU_API_HIP, c->train.allow_cpu); /* until it is open */
    if (start_open_device(c, a, o, err) || check_gpu_is_available(o->g, c->train.allow_cpu, err))
        return -1;
    restart_set_device(gpu_info(o->g)->api, c->train.allow_cpu);
    if (restart_wants_cpu())
        o->why_device = "the GPU failed repeatedly";
    return 0;
}

/* Called by the watchdog thread about a call that never returns: nothing can be closed. */
static void restart_hung(const struct cairn_error *why)
{
    if (!has_ranks && (!is_stopped || !is_stopped()))
        restart_now(why, false);
}

static void evidence(const struct gpu_info *g, struct str *brief, struct str *full)
{
    step_evidence(NULL, g->pci, brief, full);
}

/* After a restart, applies the workaround that is due. */
static int prepare_restart(const struct start_options *so, struct train_options *o, struct arena *a,
                           struct cairn_error *err)
{
    if (so->profile || so->dry_run || so->comm)
        return 0;
    restart_prepare(so->argc, so->argv, so->resume, o->dir, so->messages, a);
    restart_apply();
    o->workaround = restart_workaround();
    o->restarted = restart_why();
    if (restart_set_encoders(o->config, err))
        return -1;
    return restart_wants_cpu() ? config_set(o->config, "the workaround", "train.device", "cpu", err) : 0;
}

/* If no workaround can help, one restart is enough. */
static bool once_is_enough(const struct gpu *g, enum train_end end)
{
    return !g || end == TRAIN_TORN;
}

static bool restart_may_help(const struct gpu *g, enum train_end end, const struct cairn_error *err)
{
    if (has_ranks || (is_stopped && is_stopped()))
        return false;
    if (once_is_enough(g, end))
        return !restart_why() && (end == TRAIN_TORN || err->code == CAIRN_EDEVICE);
    return err->code == CAIRN_EDEVICE || gpu_lost(g);
}

/* "-" gets a stream of its own too, so that it is closed and its errors are reported like those of a file. */
static FILE *open_events(const char *name, struct cairn_error *err)
{
    bool standard = str_eq(name, "-");
    int fd = standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    FILE *f = standard ? fdopen(fd, "w") : os_stream(name, OS_APPEND | OS_CREATE);
    if (f)
        return f;
    cairn_fail_errno(err, "open %s", standard ? "standard output" : name);
    fd_close(&fd);
    return NULL;
}

/* A run that goes on keeps what was chosen when it began. */
static int fit(const struct start *s, struct cairn_error *err)
{
    const struct train_options *o = &s->train;
    struct train_fit f;
    if (!s->o->fit)
        return 0;
    const char *earlier = arena_printf(s->arena, "%s/config.yaml", o->dir);
    if (o->resume && !access(earlier, F_OK))
        return train_fit_as(o->config, earlier, err);
    if (train_fit(o, &f, err))
        return -1;
    for (size_t i = 0; i < f.n_lines; i++)
        fprintf(o->talk, "%-10s%s\n", i ? "" : "fit", f.lines[i]);
    if (!f.plan.lack.code)
        return 0;
    *err = f.plan.lack;
    return -1;
}

/* A job of ai-toolkit that is started again goes on, as it does there. */
static bool goes_on(const struct start *s, const struct start_options *so)
{
    const char *checkpoints = arena_printf(s->arena, "%s/checkpoints", s->train.dir);
    if (!s->config.foreign || !str_eq(s->config.foreign->program, "ai-toolkit") || so->profile ||
        !os_is_folder(checkpoints))
        return false;
    message_say(so->messages, "%s has checkpoints: the job goes on, as with %s", s->train.dir,
                s->config.foreign->program);
    return true;
}

static int read_command(const struct start_options *so, const struct config_changes *changes,
                        struct job_config *c, struct cairn_error *err)
{
    struct foreign_job job;
    if (foreign_musubi_command(so->musubi, so->n_musubi, c->arena, &job, err))
        return -1;
    for (size_t i = 0; i < job.n_notes; i++)
        message_say(so->messages, "%s: %s", job.program, job.notes[i]);
    return foreign_apply(c, &job, err) || start_change_config(changes, c, err) || config_check(c, err) ? -1
                                                                                                       : 0;
}

/* Of the run: on rank 0's disk alone. */
static int prepare_folder(struct start *s, struct cairn_error *err)
{
    const struct start_options *so = s->o;
    s->train.dir = so->resume && so->resume[0] ? so->resume : run_dir(&s->config, s->arena, so);
    s->train.resume = so->resume || goes_on(s, so);
    if (open_dir(so, s->train.dir, s->train.resume, err))
        return -1;
    const char *outer = getenv("CAIRN_RUN");
    if (!so->dry_run && !so->profile && outer)
        journal_tell_training(outer, s->train.dir);
    else if (!so->dry_run && !so->profile)
        runs_register(s->train.dir);
    if (so->events && !so->dry_run && !(s->train.events = open_events(so->events, err)))
        return -1;
    return 0;
}

/* Its name, which other ranks may want for what they read there. */
static int share_folder(struct start *s, struct cairn_error *err)
{
    char dir[4096] = "";
    snprintf(dir, sizeof(dir), "%s", s->train.dir ? s->train.dir : "");
    if (comm_broadcast(s->o->comm, dir, sizeof(dir), err) ||
        comm_broadcast(s->o->comm, &s->train.resume, sizeof(s->train.resume), err))
        return -1;
    if (comm_rank(s->o->comm))
        s->train.dir = arena_printf(s->arena, "%s", dir);
    return 0;
}

int start_prepare(struct start *s, const struct start_options *so, struct arena *a, struct cairn_error *err)
{
    *s = (struct start){ .o = so, .arena = a };
    has_ranks = so->comm;
    s->train = (struct train_options){
        .config = &s->config,
        .resume = so->resume != NULL,
        .dry_run = so->dry_run,
        .debug = so->debug,
        .profile = so->profile,
        .version = CAIRN_VERSION,
        .talk = so->talk,
        .is_stopped = so->is_stopped,
        .stop = so->stop,
        .comm = so->comm,
        .evidence = evidence,
    };
    config_init(&s->config, a);
    struct config_changes changes = so->changes;
    changes.only_plan = so->dry_run;
    if (so->musubi ? read_command(so, &changes, &s->config, err)
                   : start_read_config(&changes, so->file, &s->config, so->messages, err))
        return -1;
    if (!s->config.model.path[0] && start_check_weights(&s->config, err))
        return -1;
    if ((!comm_rank(so->comm) && prepare_folder(s, err)) || share_folder(s, err))
        return -1;
    own_env_apply(so->messages);
    return 0;
}

int start_run(struct start *s, enum train_end *end, struct cairn_error *err)
{
    const struct start_options *so = s->o;
    struct train_options *o = &s->train;
    *end = TRAIN_FINISHED;
    is_stopped = so->is_stopped;
    int r = prepare_restart(so, o, s->arena, err) ||
                    watch_calls(so->hang_after_s, restart_hung, so->messages, err) ||
                    open_device(&s->config, o, s->arena, err) || fit(s, err) || train_run(o, end, err)
                ? -1
                : 0;
    if (r)
        run_folder_hint(&s->config, err);
    bool again = r && restart_may_help(o->g, *end, err), once = once_is_enough(o->g, *end);
    gpu_close(o->g);
    if (o->events)
        fclose(o->events);
    if (again)
        restart_now(err, once);
    return r;
}
