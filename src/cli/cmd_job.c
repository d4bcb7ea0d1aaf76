/* SPDX-License-Identifier: Apache-2.0
 * cairn job: the queue of trainings. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/job_commands.h"
#include "cli/subcommands.h"

/* The only list of sub-commands. */
static const struct subcommand rows[] = {
    { "add", cmd_job_add, "put a configuration or a command into the queue" },
    { "list", cmd_job_list, "list the jobs, and the runs that were started in a terminal" },
    { "show", cmd_job_show, "print all about a job" },
    { "log", cmd_job_log, "print the log of a job; --follow goes on while it runs" },
    { "start", cmd_job_start, "put a draft, or a job that ended, into the queue" },
    { "stop", cmd_job_stop, "ask a job to save and end" },
    { "pause", cmd_job_pause, "the same, and keep its place in the queue" },
    { "resume", cmd_job_resume, "go on with a job where it stopped" },
    { "kill", cmd_job_kill, "end all processes of a job at once" },
    { "clone", cmd_job_clone, "copy a job as a draft" },
    { "edit", cmd_job_edit, "change the name, note, GPU or configuration of a job" },
    { "move", cmd_job_move, "change the order of the queue" },
    { "rm", cmd_job_rm, "remove a job; its folder goes to the trash" },
    { "abandon", cmd_job_abandon, "give up on a job whose processes do not end" },
    { "queue", cmd_job_queue, "pause the queue, or let it go on" },
    { "rebuild", cmd_job_rebuild, "make the database anew from the folders of the jobs" },
    { "exec", cmd_job_run_supervisor, NULL },
};

int cmd_job(int argc, char **argv)
{
    static const struct subcommands commands = {
        .row = rows,
        .n = ARRAY_LEN(rows),
        .synopsis = "cairn job COMMAND [options] [JOB]",
        .about = "A queue of trainings that needs no server: jobs run one after the other on each GPU, in "
                 "the background, with the care of `cairn run`, and go on when the terminal is closed. JOB "
                 "is an ID, the end of one, or a name. \"cairn help job COMMAND\" shows the help of one "
                 "command; `cairn ui` shows the same jobs in a browser.",
    };
    return subcommands_run(&commands, argc, argv);
}
