/* SPDX-License-Identifier: Apache-2.0
 * The sub-commands of `cairn job`; the table of them is in cmd_job.c.
 *
 * argv[0] is "job NAME".  Each returns the exit code. */
#ifndef CAIRN_CLI_JOB_COMMANDS_H
#define CAIRN_CLI_JOB_COMMANDS_H

#include "base/exit_code.h"
#include "cli/options.h"
#include "job/queue.h"

int cmd_job_add(int argc, char **argv);
int cmd_job_list(int argc, char **argv);
int cmd_job_show(int argc, char **argv);
int cmd_job_log(int argc, char **argv);
int cmd_job_start(int argc, char **argv);
int cmd_job_stop(int argc, char **argv);
int cmd_job_pause(int argc, char **argv);
int cmd_job_resume(int argc, char **argv);
int cmd_job_kill(int argc, char **argv);
int cmd_job_clone(int argc, char **argv);
int cmd_job_edit(int argc, char **argv);
int cmd_job_move(int argc, char **argv);
int cmd_job_rm(int argc, char **argv);
int cmd_job_abandon(int argc, char **argv);
int cmd_job_queue(int argc, char **argv);
int cmd_job_rebuild(int argc, char **argv);
int cmd_job_run_supervisor(int argc, char **argv);

/* The queue of this user, healed, with the machine whose GPUs it fills. */
struct job_session {
    struct queue queue;
    struct facts facts;
    struct arena arena;
    const char *state;
};
/* root NULL: this machine. */
int job_session_open(struct job_session *s, const char *root, struct cairn_error *err);
/* The job or the run from a terminal that the user means. */
int job_session_find(struct job_session *s, const char *word, struct job_row *out, struct cairn_error *err);
void job_session_close(struct job_session *s);

#define OPT_JOB_ROOT(p) OPT_STR(0, "root", p, "DIR", "read the tree DIR instead of this machine's /")

/* A mistake in a configuration shows when the job is added or edited, not when it starts at night.  changes
 * NULL: none. */
struct config_changes;
int job_check_config(const struct config_changes *changes, const char *file, struct arena *a,
                     struct cairn_error *err);

/* Prints a job in a line or as JSON, after something was done with it; what NULL: its state. */
void job_print_done(struct job_session *s, const char *uid, const char *what, bool json);
void job_print_row(const struct job_session *s, const struct job_row *row, const char *what, bool json);
void job_print_list(const char *state, const struct job_row *rows, size_t n, bool paused);
void job_print_one(const char *state, const struct job_row *row);

#endif
