/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_messages.h"

#include "base/str.h"
#include "rules/fast_paths.h"
#include <stdio.h>
#include <string.h>

/* If the command may import another PyTorch, findings about this one and its libraries are not certain. */
static bool is_guessed(const struct facts *f, const struct check *c)
{
    const struct torch_facts *t = facts_torch(f);
    return t && t->guess && str_list_has("pytorch libraries rocm", ' ', c->group);
}

size_t run_say_preflight(const struct doctor *d, const struct facts *f, bool strict, bool quiet,
                         const struct message_sink *m)
{
    size_t failures = 0;
    if (d->lacks_gpu && quiet && !strict)
        return 1;
    if (d->lacks_gpu) {
        message_say(m, "this machine has no usable AMD GPU%s", strict ? "" : "; running the command anyway");
        return 1;
    }
    for (size_t i = 0; i < d->n; i++) {
        const struct finding *found = &d->lines[i].found;
        bool guessed = is_guessed(f, d->lines[i].check);
        if (found->status != CHECK_FAIL)
            continue;
        message_say(m, "%s %s: %s%s%s", guessed ? "if the command imports that PyTorch, FAIL" : "FAIL",
                    d->lines[i].check->id, found->fact, found->why ? ": " : "", found->why ? found->why : "");
        if (found->remedy && !guessed)
            message_commands(m, found->remedy);
        failures += !guessed;
    }
    return failures;
}

static const char *gpu_line(const struct gpu_facts *g, struct arena *a)
{
    char usable[24];
    return arena_printf(a, "GPU %d: %s (%s)%s%s%s%s", g->hip_index, g->name.s ? g->name.s : "unnamed",
                        g->gfx.s ? g->gfx.s : "chip unknown", g->usable_bytes.from ? ", " : "",
                        g->usable_bytes.from ? bytes_text(g->usable_bytes.v, usable) : "",
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
        add_line(s, a,
                 arena_printf(
                     a, "the command starts %s, which has no PyTorch%s", c->python,
                     t ? "; cairn plans for another PyTorch in case the command starts another Python" : ""));
    else if (c->given && (!t || t->guess))
        add_line(s, a,
                 arena_printf(a, "unknown which PyTorch the command imports: %s (set it with --torch DIR)",
                              c->how));
    if (t)
        add_line(s, a,
                 arena_printf(a, "PyTorch %s in %s (%s%s)", version, t->site, t->guess ? "a guess: " : "",
                              t->how));
}

/* Only for a PyTorch that is certain. */
static void add_fast_paths(struct run_summary *s, const struct facts *f, const struct plan *p,
                           struct arena *a)
{
    const struct torch_facts *t = facts_torch(f);
    const struct fast_paths paths = fast_paths_find(f, p, a);
    const char *text = t && !t->guess ? fast_paths_text(&paths, a) : NULL;
    if (text)
        add_line(s, a, text);
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
        add_line(&s, a, "the environment needs no change");
    const char *count = applied ? count_all(p, removed, notes, a) : NULL;
    if (count && s.n >= WORTH_SHORTENING)
        s.again = arena_printf(a, "%s%s%s, as in the last run (cairn env shows them)",
                               p->gpu ? gpu_line(p->gpu, a) : "", p->gpu ? "; " : "", count);
    return s;
}

void run_say_summary(const struct run_summary *s, bool again, const struct message_sink *m)
{
    if (again && s->again) {
        message_say(m, "%s", s->again);
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        message_say(m, "%s", s->line[i]);
}

static void say_peak(const struct memory_monitor_reading *peak, const struct message_sink *m)
{
    CLEANUP(str_release) struct str used = { 0 };
    char size[24];
    if (peak->vram_used_bytes >= 0)
        str_addf(&used, "%s of VRAM", bytes_text(peak->vram_used_bytes, size));
    if (peak->gtt_used_bytes >= 0)
        str_addf(&used, "%s%s of GTT", used.len ? " and " : "", bytes_text(peak->gtt_used_bytes, size));
    if (used.len)
        message_say(m, "peak GPU memory: %s", used.s);
    if (peak->host_available_bytes >= 0)
        message_say(m, "lowest available host memory: %s", bytes_text(peak->host_available_bytes, size));
}

static void say_last(const struct supervise_result *r, char *const *argv, const struct message_sink *m)
{
    const struct attempt *last = &r->tries[r->n_tries - 1].attempt;
    if (last->end == ATTEMPT_NOT_STARTED) {
        message_say(m, "cannot run %s: %s", argv[0], strerror(last->error));
        return;
    }
    char which[32] = "";
    if (r->n_tries > 1)
        snprintf(which, sizeof(which), " in attempt %zu", r->n_tries);
    message_say(m, "exit status %d after %.1f s%s%s", r->code, last->seconds, which,
                last->end == ATTEMPT_INTERRUPTED ? " (interrupted)" : "");
}

void run_say_end(const struct supervise_result *r, char *const *argv, const struct journal *j,
                 const struct message_sink *m)
{
    say_last(r, argv, m);
    if (r->tries[r->n_tries - 1].attempt.end == ATTEMPT_NOT_STARTED)
        return;
    say_peak(&r->peak, m);
    if (j->dir)
        message_say(m, "journal: %s", j->dir);
}

void run_say_outputs(const struct outputs *o, bool quiet, const struct message_sink *m)
{
    for (size_t i = 0; i < o->n_damaged; i++) {
        const struct outputs_finding *f = &o->damaged[i];
        message_say(m, "DAMAGED %s: %s%s%s", f->path, f->verdict, f->why ? ": " : "", f->why ? f->why : "");
        if (f->todo)
            message_say(m, "  %s", f->todo);
    }
    if (o->n_files && (!quiet || o->n_damaged))
        message_say(m, "checked %zu written safetensors file%s%s: %zu damaged", o->n_files,
                    o->n_files == 1 ? "" : "s", o->cut ? " (not all)" : "", o->n_damaged);
    if (o->n_left)
        message_say(m, "not checked: %zu written safetensors file%s (--check-outputs checks all of them)",
                    o->n_left, o->n_left == 1 ? "" : "s");
}
