/* SPDX-License-Identifier: Apache-2.0 */
#include "run/mismatch.h"

#include "base/str.h"
#include "host/root.h"
#include "rules/env_names.h"
#include <string.h>

/* Shells extend these variables; the plan judges their content. */
static bool is_list(const char *name)
{
    return str_list_has("PATH LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH", ' ', name);
}

/* ---- where it is set ---- */

/* NAME=, NAME", NAME']: an assignment in shell or Python, not in a comment. */
static bool sets(const char *line, size_t n, const char *name)
{
    size_t len = strlen(name);
    const char *at = memmem(line, n, name, len), *mark = memchr(line, '#', n);
    if (!at || (mark && mark < at) || at + len >= line + n)
        return false;
    bool whole =
        at == line || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", at[-1]);
    return whole && strchr("='\"", at[len]) && memchr(at + len, '=', (size_t)(line + n - at) - len);
}

static int line_that_sets(const char *text, const char *name)
{
    int number = 1;
    for (const char *line = text; line; line = str_next_line(line), number++)
        if (sets(line, strcspn(line, "\n"), name))
            return number;
    return 0;
}

const char *mismatch_place(char *const *argv, const char *name, struct arena *a)
{
    CLEANUP(root_close) struct root here = { .fd = -1 };
    struct cairn_error err = { 0 };
    if (root_open(&here, NULL, &err))
        return NULL;
    for (; *argv; argv++) {
        const char *text = root_read(&here, a, *argv, NULL);
        int line = text ? line_that_sets(text, name) : 0;
        if (line)
            return arena_printf(a, "%s, line %d", *argv, line);
        if (!text && line_that_sets(*argv, name))
            return "the command line";
    }
    return NULL;
}

/* ---- what differs ---- */

struct finding_list {
    const struct mismatch_view *v;
    struct arena *a;
    struct mismatch *item;
    size_t n;
};

static void add(struct finding_list *l, const char *name, const char *value, const char *why)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->item[i].name, name))
            return;
    *ARENA_PUSH(l->a, l->item, l->n) = (struct mismatch){
        .name = name,
        .value = value,
        .given = str_env(l->v->given, name),
        .why = why,
        .where = value ? mismatch_place(l->v->argv, name, l->a) : NULL,
    };
}

/* Variables that the plan removed and the command restored. */
static void add_harmful(struct finding_list *l, const struct observed *o)
{
    struct facts seen = *l->v->facts;
    struct plan plan;
    struct cairn_error ignored = { 0 };
    seen.env = o->env;
    if (plan_build(&seen, l->v->planning, l->a, &plan, &ignored))
        return;
    for (size_t i = 0; i < plan.n_unset; i++)
        if (!str_eq(str_env(l->v->given, plan.unset[i].name), plan.unset[i].value))
            add(l, plan.unset[i].name, plan.unset[i].value, plan.unset[i].why);
}

/* Variables that the plan set and the trainer has changed or removed.  A helper process may have fewer. */
static void add_changed(struct finding_list *l, const struct observed *o)
{
    const struct plan *p = l->v->plan;
    for (size_t i = 0; i < p->n_set; i++) {
        const char *given = str_env(l->v->given, p->set[i].name), *has = str_env(o->env, p->set[i].name);
        if (given && !is_list(p->set[i].name) && env_name_find(p->set[i].name) && !str_eq(given, has) &&
            (has || o->on_gpu))
            add(l, p->set[i].name, has, p->set[i].why);
    }
}

size_t mismatch_find(const struct mismatch_view *v, const struct observed *o, struct arena *a,
                     struct mismatch **out)
{
    struct finding_list l = { .v = v, .a = a };
    add_harmful(&l, o);
    add_changed(&l, o);
    *out = l.item;
    return l.n;
}

const char *const *mismatch_env(const char *const *given, const struct observed *o, struct arena *a)
{
    struct plan_var *set = NULL;
    const char **unset = NULL;
    size_t n_set = 0, n_unset = 0;
    for (const char *const *e = o->env; e && *e; e++) {
        size_t n = strcspn(*e, "=");
        *ARENA_PUSH(a, set, n_set) =
            (struct plan_var){ .name = arena_strndup(a, *e, n), .value = *e + n + 1 };
    }
    for (const char *const *e = given; e && *e; e++) {
        const char *name = arena_strndup(a, *e, strcspn(*e, "="));
        if (env_name_find(name) && !str_env(o->env, name))
            *ARENA_PUSH(a, unset, n_unset) = name;
    }
    return plan_change(given, set, n_set, unset, n_unset, a);
}

/* ---- another PyTorch ---- */

static bool is_among(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (!strcmp(*names, name))
            return true;
    return false;
}

/* Changes one variable to the value of the new plan or the user. */
static void settle(const struct mismatch_view *v, const char *const *changed, const char *name,
                   const char *want, struct arena *a, struct replan *out)
{
    const char *now = str_env(v->given, name);
    if (str_eq(now, want) || is_list(name) || is_among(changed, name))
        return;
    if (want)
        *ARENA_PUSH(a, out->set, out->n_set) = (struct plan_var){ .name = name, .value = want };
    else
        *ARENA_PUSH(a, out->unset, out->n_unset) = name;
}

bool mismatch_replan(const struct mismatch_view *v, const struct facts *seen, const char *const *changed,
                     struct arena *a, struct replan *out)
{
    struct plan before;
    struct cairn_error ignored = { 0 };
    *out = (struct replan){ 0 };
    if (plan_build(v->facts, v->planning, a, &before, &ignored) ||
        plan_build(seen, v->planning, a, &out->plan, &ignored))
        return false;
    const struct plan *now = &out->plan;
    for (size_t i = 0; i < now->n_set; i++)
        settle(v, changed, now->set[i].name, now->set[i].value, a, out);
    for (size_t i = 0; i < now->n_unset; i++)
        if (!plan_find(now->set, now->n_set, now->unset[i].name))
            settle(v, changed, now->unset[i].name, NULL, a, out);
    const struct plan_var *lists[] = { before.set, before.unset };
    const size_t counts[] = { before.n_set, before.n_unset };
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < counts[k]; i++) {
            const char *name = lists[k][i].name;
            if (!plan_find(now->set, now->n_set, name) && !plan_find(now->unset, now->n_unset, name))
                settle(v, changed, name, facts_env(v->facts, name), a, out);
        }
    return out->n_set || out->n_unset;
}
