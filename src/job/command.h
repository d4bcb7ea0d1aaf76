/* SPDX-License-Identifier: Apache-2.0
 * What a job runs: the command of a row and the options of `cairn run` for it.
 *
 * The options of a row are a JSON object:
 *     file          the name of the configuration's file, as the user gave it
 *     set           [KEY=VALUE…] for `cairn train --set`
 *     steps         for `cairn train --steps`
 *     grace_s       how long its trainer may take to save when it is asked to stop
 *     trainer, resume_cmd, retries, hang_after_s, allow_cpu, no_env, debug, no_preflight, with_smi
 *                   as the options of `cairn run`
 *     last          {step, steps, loss, …}: how far the last attempt came (progress.h) */
#ifndef CAIRN_JOB_COMMAND_H
#define CAIRN_JOB_COMMAND_H

#include "base/arena.h"
#include "base/error.h"
#include "job/job_row.h"
#include "run/resume.h"
#include <stdbool.h>

struct job_command {
    char **argv;      /* NULL-terminated; empty for JOB_TRAIN, JOB_CACHE and JOB_SAMPLE without arguments */
    const char **set; /* NULL-terminated */
    const char *trainer, *resume_cmd; /* NULL: not given */
    int64_t steps;                    /* -1: not given */
    int retries;                      /* -1: not given */
    int hang_after_s;                 /* -1: not given */
    int grace_s;                      /* given, or what its kind gets */
    bool allow_cpu, no_env, debug, no_preflight, with_smi;
};

/* Fails on a row that does not make sense: argv is no array of texts, or empty where a command is needed. */
int job_command_parse(const struct job_row *row, struct arena *a, struct job_command *out,
                      struct cairn_error *err);
/* The command line of an attempt: for native kinds `cairn train CONFIG …`, which goes on where there is a
 * run folder with a configuration.  `config` is the path of the configuration, `program` that of cairn,
 * `device` the value of --device or NULL. */
char **job_command_line(const struct job_row *row, const struct job_command *c, const char *program,
                        const char *config, const char *device, struct arena *a);
/* How that command goes on from where an earlier attempt of it stopped.  The working folder must be the job's. */
void job_command_resume(const struct job_command *c, struct arena *a, struct resume *out);
/* argv as a JSON array.  Fails on a word that is not UTF-8, which JSON cannot hold. */
int job_command_text(char *const *argv, struct arena *a, const char **out, struct cairn_error *err);
/* argv in one line, for people. */
const char *job_command_say(const struct job_row *row, struct arena *a);

#endif
