/* SPDX-License-Identifier: Apache-2.0 */
#include "run/actual.h"

#include "base/str.h"
#include "host/torch.h"
#include "run/ladder.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_place(const char *a, const char *b)
{
    char one[PATH_MAX], other[PATH_MAX];
    return str_eq(a, b) || (realpath(a, one) && realpath(b, other) && !strcmp(one, other));
}

/* ---- variables ---- */

static void journal_undone(struct actual *x, int pid, const struct mismatch *m)
{
    struct json *event = journal_event("environment");
    json_add_int(event, "pid", pid);
    json_add_text(event, "name", m->name);
    json_add_text(event, "value", m->value);
    json_add_text(event, "given", m->given);
    json_add_text(event, "why", m->why);
    json_add_text(event, "where", m->where);
    journal_add(x->journal, event);
}

static void say_undone(struct actual *x, const struct mismatch *m)
{
    const char *edit =
        m->where ? arena_printf(x->a, "edit %s", m->where) : "search the scripts that the command starts";
    if (!m->value)
        message_say(x->messages,
                    "the trainer runs without %s=%s, which cairn had set: %s. The command removed it: %s",
                    m->name, m->given, m->why, edit);
    else if (m->given)
        message_say(x->messages,
                    "the trainer runs with %s=%s instead of %s=%s from cairn: %s. The command changed it: %s",
                    m->name, m->value, m->name, m->given, m->why, edit);
    else
        message_say(x->messages,
                    "the trainer runs with %s=%s, which cairn did not set: %s. The command sets it: %s",
                    m->name, m->value, m->why, edit);
}

static bool is_known(const struct actual *x, const char *name)
{
    for (size_t i = 0; i < x->n_undone; i++)
        if (!strcmp(x->undone[i].name, name))
            return true;
    return false;
}

static void compare(struct actual *x, const struct observed *o)
{
    struct mismatch *found;
    struct mismatch_view v = x->view;
    v.facts = &x->facts;
    size_t n = v.planning ? mismatch_find(&v, o, x->a, &found) : 0;
    for (size_t i = 0; i < n; i++) {
        if (is_known(x, found[i].name))
            continue;
        *ARENA_PUSH(x->a, x->undone, x->n_undone) = found[i];
        say_undone(x, &found[i]);
        journal_undone(x, o->pid, &found[i]);
    }
}

/* ---- PyTorch ---- */

/* These facts live as long as the run. */
static bool prefer(struct actual *x, const char *torch)
{
    x->facts.arena = *x->a;
    bool done = torch_prefer(&x->facts, torch, "loaded by the trainer");
    *x->a = x->facts.arena;
    x->facts.arena = (struct arena){ 0 };
    return done;
}

/* The trainer may still run, but slowly or with wrong results: say which variables are wrong for this
 * PyTorch. */
static void say_other_plan(struct actual *x)
{
    struct replan fresh;
    if (!x->view.planning || !mismatch_replan(&x->view, &x->facts, NULL, x->a, &fresh))
        return;
    const struct diagnose_fix fix = {
        .set = fresh.set, .n_set = fresh.n_set, .unset = fresh.unset, .n_unset = fresh.n_unset
    };
    message_say(x->messages, "this PyTorch needs %s; use --torch %s to plan for it from the start",
                ladder_describe(&fix, x->a), x->torch);
}

/* cairn may have found another PyTorch than the command imports. */
static void take_torch(struct actual *x, const struct observed *o)
{
    const struct torch_facts *planned = facts_torch(&x->facts);
    const char *before = planned ? planned->site : NULL;
    if (!o->torch || is_same_place(o->torch, x->torch))
        return;
    x->torch = o->torch;
    bool same = is_same_place(o->torch, before);
    if ((same && !planned->guess) || !prefer(x, o->torch))
        return;
    const struct torch_facts *loaded = facts_torch(&x->facts);
    x->other_torch = true; /* or the same one, now confirmed */
    struct json *event = journal_event("torch");
    json_add_int(event, "pid", o->pid);
    json_add_text(event, "dir", loaded->site);
    json_add_text(event, "version", loaded->version.s);
    json_add_text(event, "planned", before);
    journal_add(x->journal, event);
    if (!same)
        message_say(x->messages, "the trainer loaded PyTorch %s in %s, %s%s",
                    loaded->version.s ? loaded->version.s : "of unknown version", loaded->site,
                    before ? "not the one that cairn planned for, in " : "which cairn had not found",
                    before ? before : "");
    say_other_plan(x);
}

static void notice(void *context, const struct observed *o)
{
    struct actual *x = context;
    if (journal_has_inner(x->journal)) /* a nested `cairn run` sets its own environment */
        return;
    if (o->on_gpu + o->called >= x->last.on_gpu + x->last.called) /* prefer the process closest to the GPU */
        x->last = *o;
    take_torch(x, o);
    compare(x, o);
}

/* ---- for the supervisor ---- */

void actual_init(struct actual *x, const struct mismatch_view *v, struct journal *j,
                 const struct message_sink *t, const char *calls, struct arena *a)
{
    *x = (struct actual){ .view = *v, .a = a, .journal = j, .messages = t, .facts = *v->facts };
    x->facts.arena = (struct arena){ 0 };
    x->observe = (struct observe){ .a = a, .calls = calls, .notice = notice, .context = x };
}

void actual_begin(struct actual *x, char *const *argv, const char *const *given)
{
    x->view.argv = argv;
    x->view.given = given;
    x->last = (struct observed){ 0 };
    observe_begin(&x->observe);
}

const char *const *actual_env(const struct actual *x)
{
    return x->last.pid ? mismatch_env(x->view.given, &x->last, x->a) : x->view.given;
}

bool actual_sets(const struct actual *x, const char *name, const char **where)
{
    const char *has = x->last.pid ? str_env(x->last.env, name) : NULL;
    if (!has || str_eq(has, str_env(x->view.given, name)))
        return false;
    *where = mismatch_place(x->view.argv, name, x->a);
    return true;
}

const char *const *actual_kept(const struct actual *x, const char *const *keep)
{
    const char **names = NULL;
    size_t n = 0;
    for (; keep && *keep; keep++)
        *ARENA_PUSH(x->a, names, n) = *keep;
    for (const char *const *e = x->last.pid ? x->last.env : NULL; e && *e; e++) {
        const char *name = arena_strndup(x->a, *e, strcspn(*e, "="));
        if (!str_eq(*e + strlen(name) + 1, str_env(x->view.given, name)))
            *ARENA_PUSH(x->a, names, n) = name;
    }
    *ARENA_PUSH(x->a, names, n) = NULL;
    return names;
}

bool actual_replan(struct actual *x, const char *const *changed, struct replan *out)
{
    if (!x->view.planning || !x->other_torch || x->replanned)
        return false;
    x->replanned = true;
    return mismatch_replan(&x->view, &x->facts, changed, x->a, out);
}
