/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_print.h"

#include "base/shell_text.h"
#include "base/str.h"
#include "cli/messages.h"
#include "cli/print.h"
#include "rules/fast_paths.h"
#include <stdio.h>
#include <string.h>

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void say(const char *fmt, ...)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    va_list ap;
    va_start(ap, fmt);
    messages_say(arena_vprintf(&a, fmt, ap));
    va_end(ap);
}

/* Of a PyTorch that the command may not import, and of what comes with it, nothing is sure. */
static bool is_guessed(const struct facts *f, const struct check *c)
{
    const struct torch_facts *t = facts_torch(f);
    return t && t->guess && str_list_has("pytorch libraries rocm", ' ', c->group);
}

size_t run_print_preflight(const struct doctor *d, const struct facts *f, bool strict, bool quiet)
{
    size_t failures = 0;
    if (d->lacks_gpu && quiet && !strict)
        return 1;
    if (d->lacks_gpu) {
        say("this machine has no AMD GPU that can be used%s",
            strict ? "" : "; running the command all the same");
        return 1;
    }
    for (size_t i = 0; i < d->n; i++) {
        const struct finding *found = &d->lines[i].found;
        bool guessed = is_guessed(f, d->lines[i].check);
        if (found->status != CHECK_FAIL)
            continue;
        say("%s %s: %s%s%s", guessed ? "if the command imports that PyTorch, FAIL" : "FAIL",
            d->lines[i].check->id, found->fact, found->why ? ": " : "", found->why ? found->why : "");
        if (found->remedy && !guessed)
            messages_commands(found->remedy);
        failures += !guessed;
    }
    return failures;
}

static const char *gpu_line(const struct gpu_facts *g, struct arena *a)
{
    char usable[24];
    return arena_printf(a, "GPU %d: %s (%s)%s%s%s%s", g->hip_index, g->name.s ? g->name.s : "unnamed",
                        g->gfx.s ? g->gfx.s : "chip not known", g->usable_bytes.from ? ", " : "",
                        g->usable_bytes.from ? print_bytes(g->usable_bytes.v, usable) : "",
                        g->usable_bytes.from ? " for training" : "",
                        g->kind == GPU_INTEGRATED ? ", shared with the system" : "");
}

static void add_line(struct run_summary *s, struct arena *a, const char *line)
{
    *ARENA_PUSH(a, s->line, s->n) = line;
}

static void add_torch_lines(struct run_summary *s, const struct facts *f, struct arena *a)
{
    const struct torch_facts *t = facts_torch(f);
    const struct command_facts *c = &f->command;
    const char *version = t && t->version.s ? t->version.s : "of unknown version";
    bool lacks = c->given && c->sure && c->python && (!t || t->guess);
    if (lacks)
        add_line(
            s, a,
            arena_printf(a, "the command starts %s, which has no PyTorch%s", c->python,
                         t ? "; cairn plans for another one, in case it starts a different Python" : ""));
    else if (c->given && (!t || t->guess))
        add_line(s, a,
                 arena_printf(a, "which PyTorch the command imports is not known: %s (--torch DIR tells it)",
                              c->how));
    if (t)
        add_line(s, a,
                 arena_printf(a, "PyTorch %s in %s (%s%s)", version, t->site, t->guess ? "a guess: " : "",
                              t->how));
}

/* Of a PyTorch that is a guess it would be one, too. */
static void add_fast_paths(struct run_summary *s, const struct facts *f, const struct plan *p,
                           struct arena *a)
{
    const struct torch_facts *t = facts_torch(f);
    const struct fast_paths paths = fast_paths_find(f, p, a);
    const char *text = t && !t->guess ? fast_paths_text(&paths, a) : NULL;
    if (text)
        add_line(s, a, text);
}

void run_add_torch(struct json *into, const struct facts *f)
{
    const struct torch_facts *t = facts_torch(f);
    if (!t) {
        json_add_null(into, "torch");
        return;
    }
    struct json *o = json_add_object(into, "torch");
    json_add_text(o, "dir", t->site);
    json_add_text(o, "version", t->version.s);
    json_add_text(o, "python", t->python);
    json_add_text(o, "how", t->how);
    json_add_bool(o, "sure", !t->guess);
}

/* "2 variables set, 1 removed, 3 notes" */
static const char *count_all(const struct plan *p, size_t removed, size_t notes, struct arena *a)
{
    CLEANUP(str_release) struct str text = { 0 };
    if (p->n_set)
        str_addf(&text, ", %zu variable%s set", p->n_set, p->n_set == 1 ? "" : "s");
    if (removed)
        str_addf(&text,
                 p->n_set       ? ", %zu removed"
                 : removed == 1 ? ", %zu variable removed"
                                : ", %zu variables removed",
                 removed);
    if (notes)
        str_addf(&text, ", %zu note%s", notes, notes == 1 ? "" : "s");
    return text.len ? arena_strdup(a, text.s + 2) : NULL;
}

struct run_summary run_summarize(const struct facts *f, const struct plan *p, bool applied, struct arena *a)
{
    enum { WORTH_SHORTENING = 3 }; /* lines */
    struct run_summary s = { 0 };
    size_t removed = 0, notes = applied && p->gpu ? p->warnings.n : 0;
    if (p->gpu)
        add_line(&s, a, gpu_line(p->gpu, a));
    if (p->gpu)
        add_torch_lines(&s, f, a);
    if (applied && p->gpu)
        add_fast_paths(&s, f, p, a);
    for (size_t i = 0; applied && i < p->n_set; i++)
        add_line(&s, a, arena_printf(a, "set %s=%s: %s", p->set[i].name, p->set[i].value, p->set[i].why));
    for (size_t i = 0; applied && i < p->n_unset; i++) {
        if (plan_find(p->set, p->n_set, p->unset[i].name))
            continue;
        add_line(&s, a,
                 arena_printf(a, "without %s=%s: %s", p->unset[i].name, p->unset[i].value, p->unset[i].why));
        removed++;
    }
    for (size_t i = 0; i < notes; i++)
        add_line(&s, a, arena_printf(a, "note: %s", p->warnings.text[i]));
    if (applied && p->gpu && !p->n_set && !p->n_unset)
        add_line(&s, a, "the environment is as it should be");
    const char *count = applied ? count_all(p, removed, notes, a) : NULL;
    if (count && s.n >= WORTH_SHORTENING)
        s.again = arena_printf(a, "%s%s%s, as at the last start (cairn env shows them)",
                               p->gpu ? gpu_line(p->gpu, a) : "", p->gpu ? "; " : "", count);
    return s;
}

void run_print_summary(const struct run_summary *s, bool again)
{
    if (again && s->again) {
        messages_say(s->again);
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        messages_say(s->line[i]);
}

static void say_peak(const struct gauge_reading *peak)
{
    CLEANUP(str_release) struct str used = { 0 };
    char size[24];
    if (peak->vram_used_bytes >= 0)
        str_addf(&used, "%s of VRAM", print_bytes(peak->vram_used_bytes, size));
    if (peak->gtt_used_bytes >= 0)
        str_addf(&used, "%s%s of GTT", used.len ? " and " : "", print_bytes(peak->gtt_used_bytes, size));
    if (used.len)
        say("at most %s were in use", used.s);
    if (peak->host_available_bytes >= 0)
        say("the host had at least %s of memory left", print_bytes(peak->host_available_bytes, size));
}

static void say_last(const struct supervise_result *r, char *const *argv)
{
    const struct attempt *last = &r->tries[r->n_tries - 1].attempt;
    if (last->end == ATTEMPT_NOT_STARTED) {
        say("cannot run %s: %s", argv[0], strerror(last->error));
        return;
    }
    char which[32] = "";
    if (r->n_tries > 1)
        snprintf(which, sizeof(which), " in attempt %zu", r->n_tries);
    say("exit status %d after %.1f s%s%s", r->code, last->seconds, which,
        last->end == ATTEMPT_INTERRUPTED ? " (interrupted)" : "");
}

void run_print_end(const struct supervise_result *r, char *const *argv, const struct journal *j)
{
    say_last(r, argv);
    if (r->tries[r->n_tries - 1].attempt.end == ATTEMPT_NOT_STARTED)
        return;
    say_peak(&r->peak);
    if (j->dir)
        say("journal: %s", j->dir);
}

void run_print_outputs(const struct outputs *o, bool quiet)
{
    for (size_t i = 0; i < o->n_damaged; i++) {
        const struct outputs_finding *f = &o->damaged[i];
        say("DAMAGED %s: %s%s%s", f->path, f->verdict, f->why ? ": " : "", f->why ? f->why : "");
        if (f->todo)
            say("  %s", f->todo);
    }
    if (o->n_files && (!quiet || o->n_damaged))
        say("checked %zu written safetensors file%s%s: %zu damaged", o->n_files, o->n_files == 1 ? "" : "s",
            o->cut ? " (there are more)" : "", o->n_damaged);
    if (o->n_left)
        say("not checked: %zu written safetensors file%s (--check-outputs checks them all)", o->n_left,
            o->n_left == 1 ? "" : "s");
}

/* name: room for it. */
static const char *split(const char *variable, char *name, size_t size)
{
    size_t n = strcspn(variable, "=");
    snprintf(name, size, "%.*s", (int)n, variable);
    return n < size && variable[n] ? variable + n + 1 : NULL;
}

char *run_env_text(const char *const *before, const char *const *after)
{
    const char *const *was = before;
    struct str text = { 0 };
    char name[256];
    for (; before && *before; before++)
        if (split(*before, name, sizeof(name)) && !str_env(after, name))
            shell_unset(SHELL_SH, name, &text);
    for (; *after; after++) {
        const char *value = split(*after, name, sizeof(name));
        if (value && !str_eq(str_env(was, name), value))
            shell_set(SHELL_SH, name, value, &text);
    }
    str_add(&text, "");
    return text.s;
}

static void add_try(struct json *list, const struct supervise_try *t)
{
    struct json *v = json_add_object(list, NULL);
    json_add_text(v, "end", attempt_end_name(t->attempt.end));
    json_add_int(v, "code", t->attempt.code);
    json_add_real(v, "seconds", t->attempt.seconds);
    json_add_bool(v, "saw_step", t->attempt.saw_step);
    json_add_int(v, "log_offset_bytes", t->log_offset_bytes);
    json_add_text(v, "change", t->change);
    json_add_text(v, "resumed", t->resumed);
    json_add_text(v, "class", t->diagnosis.class_id);
    json_add_real(v, "confidence", t->diagnosis.confidence);
    json_add_text(v, "cause", t->diagnosis.cause);
    struct json *evidence = json_add_array(v, "evidence");
    for (size_t i = 0; i < t->diagnosis.n_evidence; i++)
        json_add_text(evidence, NULL, t->diagnosis.evidence[i].text);
    json_add_int(v, "refused", (int64_t)t->calls.refused);
    json_add_int(v, "refused_bytes", (int64_t)t->calls.refused_bytes);
    calls_json(&t->calls, json_add_array(v, "gpu_calls"));
    json_add_text(v, "gpu_use", diagnose_gpu_use_name(t->attempt.gpu_use));
    if (t->attempt.memory.watched)
        gauge_memory_json(&t->attempt.memory, json_add_object(v, "memory"));
}

static void add_undone(struct json *list, const struct supervise_result *r)
{
    for (size_t i = 0; i < r->n_undone; i++) {
        struct json *v = json_add_object(list, NULL);
        json_add_text(v, "name", r->undone[i].name);
        json_add_text(v, "value", r->undone[i].value);
        json_add_text(v, "given", r->undone[i].given);
        json_add_text(v, "where", r->undone[i].where);
    }
}

struct json *run_verdict_json(const struct supervise_result *r, const struct outputs *o, char *const *argv,
                              const struct facts *f)
{
    struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    json_add_int(root, "code", r->code);
    struct json *command = json_add_array(root, "command");
    for (; *argv; argv++)
        json_add_text(command, NULL, *argv);
    json_add_text(root, "trainer", r->trainer);
    run_add_torch(root, f);
    json_add_text(root, "torch_loaded", r->torch);
    add_undone(json_add_array(root, "environment"), r);
    struct json *tries = json_add_array(root, "attempts");
    for (size_t i = 0; i < r->n_tries; i++)
        add_try(tries, &r->tries[i]);
    gauge_json(&r->peak, json_add_object(root, "peak"));
    json_add_int(root, "outputs_checked", (int64_t)o->n_files);
    json_add_int(root, "outputs_left", (int64_t)o->n_left);
    struct json *damaged = json_add_array(root, "outputs_damaged");
    for (size_t i = 0; i < o->n_damaged; i++)
        json_add_text(damaged, NULL, o->damaged[i].path);
    return root;
}
