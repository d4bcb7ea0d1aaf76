/* SPDX-License-Identifier: Apache-2.0
 * A run of a terminal becomes a job. */
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "job/command.h"
#include "job/life.h"
#include "job/queue.h"
#include "os/info.h"
#include "record/runs.h"
#include <string.h>

static int refuse(const struct job_row *run, const char *why, const char *hint, struct cairn_error *err)
{
    cairn_fail(err, CAIRN_EUSAGE, "the run %s %s", run->name, why);
    return cairn_hint(err, "%s", hint);
}

/* Native training: its configuration is in its folder. */
static int of_training(const struct job_row *run, bool goes_on, struct arena *a, struct job_row *wish,
                       struct cairn_error *err)
{
    const char *why, *file = arena_printf(a, "%s/config.yaml", run->run_dir);
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    if (goes_on && !queue_can_resume(NULL, run, a, &why))
        return refuse(run, arena_printf(a, "cannot be resumed: %s", why),
                      "clone it to start from the beginning", err);
    if (file_read_settings(file, &text, &n, err))
        return -1;
    wish->config = arena_strndup(a, text, n);
    wish->run_dir = goes_on ? run->run_dir : NULL;
    return 0;
}

/* Another trainer: the same command, or the one that names its newest state. */
static int of_command(const struct job_row *run, bool goes_on, struct arena *a, struct job_row *wish,
                      struct cairn_error *err)
{
    struct resume r;
    if (!run->argv)
        return refuse(run, "has a damaged journal", "add its command: cairn job add -- COMMAND", err);
    if (!run->cwd)
        return refuse(run, "does not say in which folder its command ran",
                      "add the command there: cairn job add -- COMMAND", err);
    wish->argv = run->argv;
    if (!goes_on)
        return 0;
    life_find_resume(run, a, &r);
    if (r.way == RESUME_UNKNOWN)
        return refuse(run, arena_printf(a, "cannot be resumed: %s", r.why),
                      "clone it to start from the beginning", err);
    return r.argv ? job_command_text(r.argv, a, &wish->argv, err) : 0;
}

int queue_adopt(struct queue *q, const struct job_row *run, bool goes_on, const char *env, struct arena *a,
                struct job_row *out, struct cairn_error *err)
{
    struct job_row wish = {
        .name = run->name, .kind = run->kind, .cwd = run->cwd, .env = env, .gpu = run->gpu
    };
    if (goes_on && run->state == JOB_ACTIVE)
        return refuse(run, "has not ended", arena_printf(a, "stop it first: cairn job stop %s", run->uid),
                      err);
    if (run->kind == JOB_TRAIN ? of_training(run, goes_on, a, &wish, err)
                               : of_command(run, goes_on, a, &wish, err))
        return -1;
    if (run->kind == JOB_RUN)
        wish.name = NULL; /* the whole command */
    if (queue_add(q, &wish, goes_on, a, out, err))
        return -1;
    if (wish.run_dir)
        runs_unregister(wish.run_dir);
    return 0;
}
