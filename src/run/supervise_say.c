/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "run/job_file.h"
#include "run/optimizer.h"
#include "run/supervise_work.h"
#include <signal.h>
#include <string.h>

enum { MOST_REMEDIES = 3 };

/* ---- how an attempt ended ---- */

/* As in a shell; a program may also exit with a larger status. */
static bool is_signal(int code)
{
    return code > 128 && code - 128 <= SIGRTMAX;
}

const struct gpu_call *supervise_culprit(const struct supervise_try *t)
{
    return gpu_calls_culprit(&t->calls, t->attempt.end == ATTEMPT_HUNG || is_signal(t->attempt.code));
}

/* Launches are asynchronous unless AMD_SERIALIZE_KERNEL is 3. */
static void say_kernel(struct run *r, const struct supervise_try *t, const struct gpu_call *culprit)
{
    const struct gpu_call *last = gpu_calls_last_kernel(&t->calls, culprit);
    bool waits = str_eq(str_env(r->env, "AMD_SERIALIZE_KERNEL"), "3");
    if (waits && culprit && culprit->kernel)
        message_say(r->o->messages, "failed kernel: %s", gpu_calls_readable(culprit->kernel, r->a));
    else if (last && (is_signal(t->attempt.code) || t->attempt.end == ATTEMPT_HUNG || culprit))
        message_say(r->o->messages, "last recorded kernel launch: %s (not necessarily the one that failed%s)",
                    gpu_calls_readable(last->kernel, r->a), waits ? "" : "; --debug finds it");
}

/* The user would look for the cause elsewhere. */
static void say_refused(struct run *r, const struct gpu_calls *c)
{
    bool many = c->refused_bytes >= 1 << 30;
    if (c->refused)
        message_say(
            r->o->messages,
            "the memory guard refused %llu GPU allocation%s (%.1f %s), which would have left the host too "
            "little memory; --preload=record switches the guard off",
            (unsigned long long)c->refused, c->refused == 1 ? "" : "s",
            (double)c->refused_bytes / (many ? 1 << 30 : 1 << 20), many ? "GiB" : "MiB");
}

static void say_calls(struct run *r, const struct supervise_try *t)
{
    const struct gpu_call *culprit = supervise_culprit(t);
    if (culprit)
        message_say(r->o->messages, "last GPU call that %s: %s",
                    culprit->returned ? "failed" : "did not return", gpu_calls_say(culprit, r->a));
    say_kernel(r, t, culprit);
}

void supervise_say_verdict(struct run *r, const struct supervise_try *t)
{
    const struct diagnosis *d = &t->diagnosis;
    const struct attempt *a = &t->attempt;
    if (!a->clean)
        message_say(r->o->messages, "cannot kill a process of the run: it is stuck in the kernel");
    if (!d->class_id)
        return;
    if (a->end == ATTEMPT_HUNG)
        message_say(r->o->messages, "the trainer hung, and cairn stopped it");
    else if (is_signal(a->code))
        message_say(r->o->messages, "the trainer was killed by signal %d (%s)", a->code - 128,
                    strsignal(a->code - 128));
    else
        message_say(r->o->messages, "the trainer failed with exit status %d", a->code);
    say_refused(r, &t->calls);
    if (str_eq(d->class_id, "unknown"))
        message_say(r->o->messages, "diagnosis: %s", d->cause);
    else if (d->confidence > 0)
        message_say(r->o->messages, "diagnosis: %s, %.0f %% sure: %s", d->class_id, d->confidence * 100,
                    d->cause);
    else
        message_say(r->o->messages, "%s", d->cause);
    if (d->n_evidence)
        message_say(r->o->messages, "its output says:");
    for (size_t i = 0; i < d->n_evidence && i < 3; i++)
        message_say(r->o->messages, "  %s", d->evidence[i].text + strspn(d->evidence[i].text, " \t"));
    say_calls(r, t);
}

/* ---- what comes next ---- */

static bool changes_something(const struct diagnose_fix *fix)
{
    return fix->action != DIAGNOSE_ACT_RESTART && fix->action != DIAGNOSE_ACT_RESUME;
}

static void add_words(struct str *text, char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        str_add(text, " ");
        str_add_word(text, words[i]);
    }
}

static void add_setting(struct str *text, const struct plan_var *v)
{
    if (str_eq(v->name, "CAIRN_PRELOAD"))
        str_add(text, " --preload=");
    else
        str_addf(text, " --with %s=", v->name);
    str_add_word(text, v->value);
}

/* The first of two settings wins, so the new one precedes those already tried and the user's own. */
static void add_settings(struct str *text, struct run *r, const struct diagnose_fix *fix)
{
    const struct supervise_result *before = &r->result;
    for (size_t i = 0; i < fix->n_set; i++)
        add_setting(text, &fix->set[i]);
    if (fix->action == DIAGNOSE_ACT_CPU)
        add_setting(text, &supervise_no_gpu);
    for (size_t i = 0; i < before->n_set; i++)
        if (!plan_find(fix->set, fix->n_set, before->set[i].name))
            add_setting(text, &before->set[i]);
}

/* The command of the next attempt. */
static char *const *next_argv(struct run *r, const struct diagnose_fix *fix)
{
    char *const *argv = r->original;
    struct resume resume;
    if (fix->action == DIAGNOSE_ACT_OPTIMIZER)
        argv = optimizer_replace(argv, r->a).argv;
    if (!r->trained)
        return argv;
    resume_find(argv, r->o->trainer, r->o->resume_cmd, r->a, &resume);
    return resume.way == RESUME_UNKNOWN ? argv : resume.argv;
}

/* The command that tries the fix. */
static const char *suggestion(struct run *r, const struct diagnose_fix *fix)
{
    CLEANUP(str_release) struct str text = { 0 };
    char *const *argv = next_argv(r, fix);
    size_t n = 0;
    while (argv[n])
        n++;
    for (size_t i = 0; i < r->result.n_unset; i++)
        str_addf(&text, "%s -u %s", text.len ? "" : "env", r->result.unset[i]);
    for (size_t i = 0; i < fix->n_unset; i++)
        str_addf(&text, "%s -u %s", text.len ? "" : "env", fix->unset[i]);
    str_addf(&text, "%scairn run", text.len ? " " : "");
    add_settings(&text, r, fix);
    add_words(&text, r->o->options, r->o->n_options);
    str_add(&text, " --");
    add_words(&text, argv, n);
    return arena_strdup(r->a, text.s);
}

static void say_commands(struct run *r, const char *lines)
{
    message_commands(r->o->messages, lines);
}

/* Length of the sentence; commands follow it on lines of their own. */
static int sentence_span(const struct diagnose_fix *fix)
{
    size_t n = strcspn(fix->text, "\n");
    return (int)(n - (n && fix->text[n] && fix->text[n - 1] == ':'));
}

static void say_suggestion(struct run *r, const struct ladder_step *step, const struct resume *resume)
{
    message_say(r->o->messages, "not retrying: %s", step->why);
    message_say(r->o->messages, "next fix to try: %.*s", sentence_span(step->fix), step->fix->text);
    if (r->trained && resume->way == RESUME_UNKNOWN)
        message_say(r->o->messages, "%s", resume->why);
    message_say(r->o->messages, "to try it:");
    say_commands(r, suggestion(r, step->fix));
}

/* The sentence only: cairn itself does what the commands after it would do. */
void supervise_say_retry(struct run *r, const struct diagnose_fix *fix)
{
    bool with = changes_something(fix) && !str_starts(r->change, "without ");
    message_say(r->o->messages, "retrying%s %s", with ? " with" : "", r->change);
    message_say(r->o->messages, "  %.*s", sentence_span(fix), fix->text);
    if (r->resumed)
        message_say(r->o->messages, "  %s", r->resumed);
}

/* A fix that only the user can apply, for instance because the command has no option for it. */
static bool is_for_user(struct run *r, const struct diagnose_fix *fix)
{
    return !fix->automatic ||
           (fix->action == DIAGNOSE_ACT_OPTIMIZER && !optimizer_replace(r->original, r->a).argv);
}

/* A variable that the command sets itself must be changed in the command. */
static void say_own(struct run *r, const char *name, const char *wanted, bool *said)
{
    const char *where;
    if (*said || !actual_sets(&r->actual, name, &where))
        return;
    *said = true;
    message_say(r->o->messages, "cannot retry %s%s%s%s: the command sets it itself; edit %s",
                wanted ? "with " : "without ", name, wanted ? "=" : "", wanted ? wanted : "",
                where ? where : "the scripts that it starts");
}

static void say_own_settings(struct run *r, const struct diagnosis *d)
{
    bool said = false;
    for (size_t i = 0; i < d->n_fixes; i++) {
        const struct diagnose_fix *fix = &d->fixes[i];
        for (size_t k = 0; k < fix->n_unset && fix->automatic; k++)
            say_own(r, fix->unset[k], NULL, &said);
        for (size_t k = 0; k < fix->n_set && fix->automatic; k++)
            say_own(r, fix->set[k].name, fix->set[k].value, &said);
    }
}

/* The line to change in the job file, if it selects the optimizer. */
static const char *job_advice(struct run *r, const struct diagnose_fix *fix)
{
    struct job_file *job;
    const char *text = NULL;
    if (fix->action != DIAGNOSE_ACT_OPTIMIZER)
        return NULL;
    size_t n = job_files_of(r->original, r->a, &job);
    for (size_t i = 0; i < n && !text; i++)
        text = job_file_optimizer(&job[i], r->a);
    return text;
}

/* Fixes for the user: each a sentence, then the commands. */
static void say_remedies(struct run *r, const struct diagnosis *d, const char *title)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_fixes; i++) {
        if (!is_for_user(r, &d->fixes[i]))
            continue;
        const char *text = d->fixes[i].text;
        if (!n)
            message_say(r->o->messages, "%s:", title);
        if (n == MOST_REMEDIES) {
            if (r->o->journal->dir)
                message_say(r->o->messages, "  - more: cairn diagnose last");
            return;
        }
        const char *job = job_advice(r, &d->fixes[i]);
        message_say(r->o->messages, "  - %.*s", (int)strcspn(job ? job : text, "\n"), job ? job : text);
        if (str_next_line(text))
            say_commands(r, str_next_line(text));
        n++;
    }
}

void supervise_say_end(struct run *r, const struct diagnosis *d, const struct ladder_step *step,
                       const struct resume *resume)
{
    if (step->word == LADDER_SUGGEST)
        say_suggestion(r, step, resume);
    say_own_settings(r, d);
    say_remedies(r, d, step->fix ? "what else you can do" : "what you can do");
}
