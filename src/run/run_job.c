/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_job.h"

#include "base/exit_code.h"
#include "base/str.h"
#include "os/file.h"
#include "os/stop.h"
#include "rules/checks.h"
#include "rules/trainers.h"
#include "run/job_file.h"
#include "run/known_good.h"
#include "run/resume.h"
#include "run/run_messages.h"
#include "run/smi_link.h"
#include "run/state_dir.h"
#include "run/supervise.h"
#include "run/shown_before.h"
#include "run/verdict.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The state of a run from start to end. */
struct stage {
    const struct run_job_options *o;
    struct facts *facts;
    struct plan_options planning;
    struct plan plan;
    const char *state;         /* the state folder; NULL: none */
    struct known_good_key key; /* trainer NULL: nothing to save */
    struct known_good known;   /* used from an earlier run; trainer NULL: none */
    struct timespec since;     /* newer files may be the trainer's */
    struct journal journal;
    const char *const *env; /* of the first attempt */
    const char *const *keep;
    struct preload preload;
    struct arena arena;
};

static void note(struct stage *s, const char *text)
{
    struct json *event = journal_event("note");
    json_add_text(event, "text", text);
    journal_add(&s->journal, event);
}

static void say_and_note(void *context, const char *text)
{
    struct stage *s = context;
    note(s, text);
    message_say(s->o->messages, "%s", text);
}

static void remedy_and_note(void *context, const char *text)
{
    struct stage *s = context;
    note(s, text);
    message_commands(s->o->messages, text);
}

/* A message that --quiet suppresses. */
static void remark(struct stage *s, const char *text)
{
    note(s, text);
    if (!s->o->quiet)
        message_say(s->o->messages, "%s", text);
}

/* Variables that worked before come first, except with --no-env. */
static void use_known_good(struct stage *s)
{
    const char *trainer = s->o->trainer ? trainer_find(s->o->trainer)->name : resume_name(s->o->argv);
    struct known_good *found;
    if (!trainer || !s->state || s->o->no_env)
        return;
    known_good_key_for(s->facts, s->plan.gpu, trainer, &s->arena, &s->key);
    size_t n = known_good_list(s->state, &s->key, &s->arena, &found);
    if (!n)
        return;
    s->known = found[n - 1];
    known_good_apply(&s->known, s->facts, &s->planning, &s->arena, &s->plan);
}

/* Where a crash writes its core file. */
static const char *core_hint(struct stage *s)
{
    const char *pattern = root_read(&s->facts->root, &s->arena, "/proc/sys/kernel/core_pattern", NULL);
    struct rlimit limit;
    if (!getrlimit(RLIMIT_CORE, &limit) && limit.rlim_cur == 0 && !(pattern && *pattern == '|'))
        return "a crash writes no core file; to allow it: ulimit -c unlimited";
    return arena_printf(&s->arena, "a crash writes a core file to kernel.core_pattern: %s",
                        pattern ? pattern : "unknown");
}

/* Python prints its stacks when it crashes, or when the watchdog asks for them. */
static void add_debugging(struct stage *s)
{
    if (!s->o->debug)
        return;
    message_say(s->o->messages, "%s", core_hint(s));
    if (facts_env(s->facts, "PYTHONFAULTHANDLER"))
        return;
    *ARENA_PUSH(&s->arena, s->plan.set, s->plan.n_set) =
        (struct plan_var){ .name = "PYTHONFAULTHANDLER",
                           .value = "1",
                           .why = "prints the stack of every thread when Python crashes or hangs",
                           .source = "https://docs.python.org/3/library/faulthandler.html" };
}

/* Whether bitsandbytes can serve the PyTorch that the command imports; `why` says why not. */
static bool lacks_bitsandbytes(const struct facts *f, struct arena *a, const char **why)
{
    const struct torch_facts *t = facts_torch(f);
    if (!t || t->build != TORCH_ROCM)
        return false;
    if (!t->bitsandbytes.version.s)
        *why = arena_printf(a, "bitsandbytes is not installed in %s", t->site);
    else if (t->bitsandbytes.fits == TRI_NO)
        *why = arena_printf(a, "bitsandbytes %s does not fit: %s", t->bitsandbytes.version.s,
                            t->bitsandbytes.why ? t->bitsandbytes.why : "no library for this ROCm");
    else
        return false;
    return true;
}

static bool is_on(const struct job_setting *s)
{
    return s->value && (!strcasecmp(s->value, "true") || !strcasecmp(s->value, "yes"));
}

/* Settings in the job file that this machine does not support or does not profit from. */
static void note_job_files(struct stage *s)
{
    struct job_file *job;
    const char *why;
    size_t n = job_files_of(s->o->argv, &s->arena, &job);
    for (size_t i = 0; i < n; i++) {
        const char *other = job_file_optimizer(&job[i], &s->arena);
        const struct job_setting *moves[] = { &job[i].low_vram, &job[i].offloading };
        if (other && lacks_bitsandbytes(s->facts, &s->arena, &why))
            problems_add(&s->plan.warnings, &s->arena, "%s; %s", why, other);
        for (size_t k = 0; k < ARRAY_LEN(moves); k++)
            if (is_on(moves[k]) && s->plan.gpu && s->plan.gpu->kind == GPU_INTEGRATED)
                problems_add(
                    &s->plan.warnings, &s->arena,
                    "%s:%d: %s offloads weights to the host, but GPU and host share memory here: it costs "
                    "time and saves nothing",
                    job[i].path, moves[k]->line, moves[k]->key);
    }
}

/* From --trainer, or from the command or the start script. */
static const char *trainer_of(const struct stage *s)
{
    const char *trainer = s->o->trainer ? s->o->trainer : resume_trainer(s->o->argv);
    const char *const *started = s->facts->command.argv;
    return trainer || !started ? trainer : resume_trainer((char *const *)started);
}

static int make_plan(struct stage *s, struct cairn_error *err)
{
    const struct run_job_options *o = s->o;
    struct cairn_error why = { 0 };
    s->planning = (struct plan_options){
        .gpu = o->gpu,
        .debug = o->debug,
        .trainer = trainer_of(s),
        .keep = o->keep,
        .with = o->with,
    };
    if (plan_build(s->facts, &s->planning, &s->arena, &s->plan, err))
        return -1;
    note_job_files(s);
    if (state_dir(s->facts->env, &s->arena, &s->state, &why))
        message_say(s->o->messages, "the journal is not written: %s%s%s", why.msg, why.hint[0] ? "; " : "",
                    why.hint);
    use_known_good(s);
    add_debugging(s);
    return 0;
}

/* False: --strict, and a check failed. */
static bool preflight(struct stage *s)
{
    struct doctor d = { 0 };
    if (s->o->no_preflight)
        return true;
    struct facts planned = *s->facts;
    if (!s->o->no_env)
        planned.env = plan_environment(s->facts, &s->plan, &s->arena);
    struct plan plan = { 0 };
    const struct plan_options po = { .gpu = s->o->gpu, .debug = s->o->debug };
    struct cairn_error ignored = { 0 };
    if (plan_build(&planned, &po, &s->arena, &plan, &ignored))
        plan = s->plan;
    doctor_run(&planned, &plan, &s->arena, &d);
    size_t failures = run_say_preflight(&d, s->facts, s->o->strict, s->o->quiet, s->o->messages);
    if (failures && s->o->strict)
        message_say(s->o->messages, "not starting the command, because of --strict");
    return !failures || !s->o->strict;
}

static void open_journal(struct stage *s)
{
    CLEANUP(json_cleanup) struct json *facts = s->o->describe_machine(s->facts);
    struct json *event = journal_event("start");
    struct json *command = json_add_array(event, "command");
    for (char **arg = s->o->argv; *arg; arg++)
        json_add_text(command, NULL, *arg);
    char folder[PATH_MAX];
    json_add_text(event, "cwd", getcwd(folder, sizeof(folder)));
    journal_add_process(event);
    verdict_add_torch(event, s->facts);
    verdict_add_torch(facts, s->facts);
    journal_add(&s->journal, event);
    journal_write(&s->journal, "facts.json", facts);
}

/* A failure that the environment may have caused, unlike an error in the script. */
static bool failed_here(const struct supervise_result *r)
{
    const struct supervise_try *last = &r->tries[r->n_tries - 1];
    return last->diagnosis.class_id && last->diagnosis.confidence > 0;
}

/* Saves variables that worked, and forgets saved ones that no longer work. */
static void learn(struct stage *s, const struct supervise_result *r)
{
    struct cairn_error err = { 0 };
    bool worked = supervise_worked(r);
    if (!s->key.trainer || (worked && !r->n_set && !r->n_unset) ||
        (!worked && !(s->known.trainer && failed_here(r))))
        return;
    struct known_good all = s->known;
    for (size_t i = 0; i < r->n_set; i++) {
        struct plan_var *old = (struct plan_var *)plan_find(all.set, all.n_set, r->set[i].name);
        *(old ? old : ARENA_PUSH(&s->arena, all.set, all.n_set)) = r->set[i];
    }
    for (size_t i = 0; i < r->n_unset; i++)
        *ARENA_PUSH(&s->arena, all.unset, all.n_unset) = r->unset[i];
    if (r->n_tries > 1)
        all.class_id = r->tries[0].diagnosis.class_id;
    int failed =
        worked ? known_good_keep(s->state, &s->key, &all, &err) : known_good_forget(s->state, &s->key, &err);
    if (failed)
        say_and_note(s, arena_printf(&s->arena, "cannot save the working environment: %s", err.msg));
    else if (worked)
        remark(s, "saved the working environment for the next run");
}

/* The check of the outputs after the trainer has ended.  A signal cuts it short; the exit status is known
 * already. */
struct output_check {
    struct stage *stage;
    const struct signals *signals;
    bool stopped; /* atomic */
};

static bool check_is_stopped(void *context)
{
    struct output_check *l = context;
    int sig = signals_read(l->signals);
    if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT)
        __atomic_store_n(&l->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&l->stopped, __ATOMIC_RELAXED);
}

static void check_is_slow(void *context)
{
    const struct output_check *l = context;
    if (!l->stage->o->quiet)
        message_say(l->stage->o->messages,
                    "checking the safetensors files that the trainer wrote; Ctrl-C skips the rest");
}

static void check_outputs(struct stage *s, const struct signals *signals, struct supervise_result *r,
                          struct outputs *out)
{
    struct output_check look = { .stage = s, .signals = signals };
    const struct outputs_options oo = {
        .argv = s->o->argv,
        .since = s->since,
        .all = s->o->check_outputs,
        .stopped = check_is_stopped,
        .slow = check_is_slow,
        .context = &look,
    };
    if (r->code)
        return;
    outputs_check(&oo, &s->arena, out);
    run_say_outputs(out, s->o->quiet, s->o->messages);
    if (out->n_damaged)
        r->code = EXIT_TROUBLE;
}

static void close_journal(struct stage *s, const struct supervise_result *r, const struct outputs *o)
{
    CLEANUP(json_cleanup) struct json *verdict = verdict_json(r, o, s->o->argv, s->facts);
    struct json *event = journal_event("end");
    json_add_int(event, "code", r->code);
    journal_add(&s->journal, event);
    journal_write(&s->journal, "verdict.json", verdict);
    const struct cairn_error *trouble = journal_trouble(&s->journal);
    if (trouble)
        say_and_note(s, trouble->msg);
}

/* A retry must not change what the user chose. */
static void keep_preload(struct stage *s)
{
    const char **keep = NULL;
    size_t n = 0;
    for (const char *const *name = s->o->keep; name && *name; name++)
        *ARENA_PUSH(&s->arena, keep, n) = *name;
    *ARENA_PUSH(&s->arena, keep, n) = "CAIRN_PRELOAD";
    *ARENA_PUSH(&s->arena, keep, n) = NULL;
    s->keep = keep;
}

static void add_preload(struct stage *s)
{
    struct preload *p = &s->preload;
    preload_prepare(&s->o->preload, s->facts, &s->plan, s->env, &s->arena, p);
    s->env = p->env;
    s->keep = s->o->keep;
    if (s->o->preload.way != PRELOAD_AUTO)
        keep_preload(s);
    if (p->trouble)
        say_and_note(s, arena_printf(&s->arena, "%s%s", p->list ? "" : "no preload library: ", p->trouble));
    if (p->list && !str_eq(p->list, "record"))
        remark(s, arena_printf(&s->arena, "preload library: %s%s%s", p->list, p->why ? ": " : "",
                               p->why ? p->why : ""));
}

/* The user's environment with --with only. */
static const char *const *given_environment(struct stage *s)
{
    struct plan_var *set = NULL;
    size_t n = 0;
    for (const char *const *g = s->o->with; g && *g; g++) {
        const char *name = arena_strndup(&s->arena, *g, strcspn(*g, "="));
        if (!plan_find(set, n, name)) /* the first one counts, as in a plan */
            *ARENA_PUSH(&s->arena, set, n) =
                (struct plan_var){ .name = name, .value = *g + strlen(name) + 1 };
    }
    return plan_change(s->facts->env, set, n, NULL, 0, &s->arena);
}

static void make_environment(struct stage *s)
{
    struct cairn_error err = { 0 };
    s->env = s->o->no_env ? given_environment(s) : plan_environment(s->facts, &s->plan, &s->arena);
    add_preload(s);
    if (!s->o->with_smi)
        return;
    const char *objection =
        s->journal.dir ? smi_link_objection(s->facts, &s->arena) : "no journal folder to put it in";
    if (!objection && smi_link_make(s->journal.dir, &s->facts->root, s->env, &s->arena, &s->env, &err))
        objection = err.msg;
    if (objection)
        say_and_note(s, arena_printf(&s->arena, "cairn's nvidia-smi is not available: %s", objection));
    else
        remark(s, "nvidia-smi is `cairn smi` for this run");
}

static void keep_environment(struct stage *s)
{
    CLEANUP(mem_free) char *text = verdict_env_text(s->facts->env, s->env);
    journal_write_text(&s->journal, "env", text);
}

/* Of two nested runs only the inner one may retry: it sees more. */
static void announce_nesting(struct stage *s)
{
    const char *outer = str_env(s->facts->env, "CAIRN_RUN");
    const struct plan_var ours = { .name = "CAIRN_RUN", .value = s->journal.dir };
    if (outer)
        journal_tell_outer(&s->journal, outer);
    if (s->journal.dir)
        s->env = plan_change(s->env, &ours, 1, NULL, 0, &s->arena);
}

static void say_detached(struct stage *s)
{
    message_say(s->o->messages, "running in the background as process %d, journal: %s", (int)getpid(),
                s->journal.dir ? s->journal.dir : "none, so the output is lost");
    if (s->journal.dir) {
        CLEANUP(str_release) struct str follow = { 0 };
        str_add(&follow, "tail -f ");
        str_add_word(&follow, path_join(&s->arena, s->journal.dir, "log"));
        message_say(s->o->messages, "to follow it:");
        message_commands(s->o->messages, follow.s);
    }
    message_say(s->o->messages, "to stop it:");
    message_commands(s->o->messages, arena_printf(&s->arena, "kill %d", (int)getpid()));
}

/* The parent may exit; from now on messages go to the journal only. */
static void detach(struct stage *s)
{
    if (s->o->parent < 0)
        return;
    say_detached(s);
    int null = os_open_null();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    (void)!write(s->o->parent, "", 1);
    close(s->o->parent);
}

static bool is_bad_end(const struct supervise_result *r)
{
    return r->code && r->tries[r->n_tries - 1].attempt.end != ATTEMPT_INTERRUPTED;
}

const int run_job_signals[RUN_JOB_N_SIGNALS] = { SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                                 SIGUSR2, SIGWINCH, SIGTSTP, SIGTTIN, SIGCONT };

static int train(struct stage *s, int *code, struct cairn_error *err)
{
    const struct run_job_options *o = s->o;
    const struct message_sink messages = { .say = say_and_note, .commands = remedy_and_note, .context = s };
    CLEANUP(signals_close) struct signals own = { .fd = -1 };
    const struct signals *signals = o->signals ? o->signals : &own;
    const struct supervise_options so = {
        .argv = o->argv,
        .options = o->options,
        .n_options = o->n_options,
        .facts = s->facts,
        .plan = &s->plan,
        .planning = o->no_env ? NULL : &s->planning,
        .env = s->env,
        .keep = s->keep,
        .gfx = o->gfx,
        .trainer = o->trainer,
        .resume_cmd = o->resume_cmd,
        .keep_log = o->keep_log,
        .calls = s->preload.file,
        .retries = o->retries,
        .hang_after_s = o->hang_after_s,
        .hang_explicit = o->hang_explicit,
        .allow_cpu = o->allow_cpu,
        .detached = o->detach,
        .lock = o->lock,
        .silent = o->silent,
        .stop_grace_s = o->stop_grace_s,
        .journal = &s->journal,
        .signals = signals,
        .messages = &messages,
    };
    struct supervise_result result;
    if ((!o->signals && signals_open(&own, run_job_signals, RUN_JOB_N_SIGNALS, err)) ||
        supervise(&so, &s->arena, &result, err))
        return -1;
    while (signals_read(signals))
        ; /* signals that came too late for the trainer */
    struct outputs outputs = { 0 };
    check_outputs(s, signals, &result, &outputs);
    if (!outputs.n_damaged) /* an environment that wrote zeros did not work */
        learn(s, &result);
    close_journal(s, &result, &outputs);
    if (!o->quiet || is_bad_end(&result))
        run_say_end(&result, o->argv, &s->journal, o->messages);
    while (signals_read(signals))
        ; /* nor do they end what is left to clean up */
    *code = result.code;
    return 0;
}

/* In full the first time and after any change. */
static void say_summary(struct stage *s)
{
    struct run_summary summary = run_summarize(s->facts, &s->plan, !s->o->no_env, &s->arena);
    CLEANUP(str_release) struct str text = { 0 };
    if (s->o->quiet)
        return;
    for (size_t i = 0; i < summary.n; i++)
        str_addf(&text, "%s\n", summary.line[i]);
    const char *trainer = s->key.trainer ? s->key.trainer : s->o->argv[0];
    run_say_summary(&summary, summary.again && shown_before(s->state, trainer, text.s), s->o->messages);
}

static int prepare_and_train(struct stage *s, int *code, struct cairn_error *err)
{
    if (make_plan(s, err))
        return -1;
    *code = EXIT_LACKS;
    if (!preflight(s))
        return 0;
    os_ignore_file_limit();
    if (s->o->journal ? journal_open_in(&s->journal, s->o->journal, s->o->json_events, err)
                      : journal_open(&s->journal, s->state, s->o->json_events, err))
        return -1;
    open_journal(s);
    say_summary(s);
    make_environment(s);
    keep_environment(s);
    announce_nesting(s);
    detach(s);
    os_ignore_closed_pipe();
    clock_gettime(CLOCK_REALTIME_COARSE, &s->since); /* the clock that stamps files */
    int r = train(s, code, err);
    smi_link_remove(s->journal.dir);
    preload_finish(&s->preload);
    if (s->state)
        journal_prune(s->state);
    return r;
}

int run_job(const struct run_job_options *o, struct facts *f, int *code, struct cairn_error *err)
{
    struct stage s = { .o = o, .facts = f };
    int r = prepare_and_train(&s, code, err);
    journal_close(&s.journal);
    arena_release(&s.arena);
    return r;
}
