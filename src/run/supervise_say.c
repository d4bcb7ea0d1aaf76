/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "run/job_file.h"
#include "run/optimizer.h"
#include "run/supervise_work.h"
#include <signal.h>
#include <string.h>

enum { MOST_REMEDIES = 3 };

/* --- how an attempt ended ------------------------------------------------------------------------------------- */

/* As a shell counts them; a program's own status may lie beyond. */
static bool is_signal(int code)
{
    return code > 128 && code - 128 <= SIGRTMAX;
}

const struct gpu_call *supervise_culprit(const struct supervise_try *t)
{
    return gpu_calls_culprit(&t->calls, t->attempt.end == ATTEMPT_HUNG || is_signal(t->attempt.code));
}

/* Launches do not wait for their kernels, unless they are told to. */
static void say_kernel(struct run *r, const struct supervise_try *t, const struct gpu_call *culprit)
{
    const struct gpu_call *last = gpu_calls_last_kernel(&t->calls, culprit);
    bool waits = str_eq(str_env(r->env, "AMD_SERIALIZE_KERNEL"), "3");
    if (waits && culprit && culprit->kernel)
        message_say(r->o->messages, "the kernel that failed: %s", gpu_calls_readable(culprit->kernel, r->a));
    else if (last && (is_signal(t->attempt.code) || t->attempt.end == ATTEMPT_HUNG || culprit))
        message_say(r->o->messages,
                    "the last launch that was recorded: %s (it need not be the one that failed%s)",
                    gpu_calls_readable(last->kernel, r->a), waits ? "" : "; --debug tells which");
}

/* What a person would look for elsewhere. */
static void say_refused(struct run *r, const struct gpu_calls *c)
{
    bool many = c->refused_bytes >= 1 << 30;
    if (c->refused)
        message_say(
            r->o->messages,
            "the memory guard inside the trainer refused %llu GPU allocation%s (%.1f %s in all), which "
            "would have left the host too little; --preload=record switches it off",
            (unsigned long long)c->refused, c->refused == 1 ? "" : "s",
            (double)c->refused_bytes / (many ? 1 << 30 : 1 << 20), many ? "GiB" : "MiB");
}

static void say_calls(struct run *r, const struct supervise_try *t)
{
    const struct gpu_call *culprit = supervise_culprit(t);
    if (culprit)
        message_say(r->o->messages, "its last GPU call that %s: %s",
                    culprit->returned ? "failed" : "did not return", gpu_calls_say(culprit, r->a));
    say_kernel(r, t, culprit);
}

void supervise_say_verdict(struct run *r, const struct supervise_try *t)
{
    const struct diagnosis *d = &t->diagnosis;
    const struct attempt *a = &t->attempt;
    if (!a->clean)
        message_say(r->o->messages,
                    "some process of the run is stuck inside the kernel and could not be ended");
    if (!d->class_id)
        return;
    if (a->end == ATTEMPT_HUNG)
        message_say(r->o->messages, "the trainer hung, and cairn ended it");
    else if (is_signal(a->code))
        message_say(r->o->messages, "the trainer was ended by signal %d (%s)", a->code - 128,
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

/* --- what comes next ------------------------------------------------------------------------------------------ */

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

/* The first of two settings counts, so what is to be tried comes before what was tried and the user's own. */
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

/* The words of the attempt that would be next. */
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

/* The command that a person would type to try it. */
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

/* What a person would type stands behind the sentence, in lines of its own. */
static int sentence_span(const struct diagnose_fix *fix)
{
    size_t n = strcspn(fix->text, "\n");
    return (int)(n - (n && fix->text[n] && fix->text[n - 1] == ':'));
}

static void say_suggestion(struct run *r, const struct ladder_step *step, const struct resume *resume)
{
    message_say(r->o->messages, "the next thing to try: %.*s (%s)", sentence_span(step->fix), step->fix->text,
                step->why);
    if (r->trained && resume->way == RESUME_UNKNOWN)
        message_say(r->o->messages, "%s", resume->why);
    message_say(r->o->messages, "to try it:");
    say_commands(r, suggestion(r, step->fix));
}

/* The sentence alone: what a person would type behind it cairn does itself. */
void supervise_say_retry(struct run *r, const struct diagnose_fix *fix)
{
    message_say(r->o->messages, "trying again%s %s", changes_something(fix) ? " with" : ":", r->change);
    message_say(r->o->messages, "  %.*s", sentence_span(fix), fix->text);
    if (r->resumed)
        message_say(r->o->messages, "  %s", r->resumed);
}

/* One that only a person can take: also where the command has no option for what cairn would change. */
static bool is_for_person(struct run *r, const struct diagnose_fix *fix)
{
    return !fix->automatic ||
           (fix->action == DIAGNOSE_ACT_OPTIMIZER && !optimizer_replace(r->original, r->a).argv);
}

/* What the command sets itself has to be changed where it does so. */
static void say_own(struct run *r, const char *name, const char *wanted, bool *said)
{
    const char *where;
    if (*said || !actual_sets(&r->actual, name, &where))
        return;
    *said = true;
    message_say(r->o->messages, "the next thing to try is %s%s%s%s, but the command sets it itself: edit %s",
                wanted ? "" : "without ", name, wanted ? "=" : "", wanted ? wanted : "",
                where ? where : "what it starts");
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

/* The line of the job's file to change, where the optimizer is chosen there. */
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

/* What is left for a person: a sentence, and behind it what to type. */
static void say_remedies(struct run *r, const struct diagnosis *d, const char *title)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_fixes; i++) {
        if (!is_for_person(r, &d->fixes[i]))
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
