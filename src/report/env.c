/* SPDX-License-Identifier: Apache-2.0 */
#include "report/env.h"

static void add_vars(struct json *root, const char *key, const struct plan_var *vars, size_t n, bool source)
{
    struct json *list = json_add_array(root, key);
    for (size_t i = 0; i < n; i++) {
        struct json *v = json_add_object(list, NULL);
        json_add_text(v, "name", vars[i].name);
        json_add_text(v, "value", vars[i].value);
        json_add_text(v, "why", vars[i].why);
        if (source)
            json_add_text(v, "source", vars[i].source);
    }
}

struct json *report_env(const struct plan *p)
{
    struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    if (p->gpu)
        json_add_int(root, "gpu", p->gpu->hip_index);
    else
        json_add_null(root, "gpu");
    add_vars(root, "set", p->set, p->n_set, true);
    add_vars(root, "unset", p->unset, p->n_unset, true);
    add_vars(root, "keep", p->keep, p->n_keep, false);
    struct json *warnings = json_add_array(root, "warnings");
    for (size_t i = 0; i < p->warnings.n; i++)
        json_add_text(warnings, NULL, p->warnings.text[i]);
    return root;
}

struct env_explanation env_explain(const char *name, const struct facts *f, const struct plan *p)
{
    const struct plan_var *set = plan_find(p->set, p->n_set, name),
                          *unset = plan_find(p->unset, p->n_unset, name),
                          *keep = plan_find(p->keep, p->n_keep, name);
    struct env_explanation e = { .name = name, .row = env_name_find(name), .value = facts_env(f, name) };
    if (!e.row)
        e.n_near = env_name_nearest(name, e.near, ARRAY_LEN(e.near));
    e.action = set ? "set" : unset ? "unset" : keep ? "keep" : NULL;
    e.var = set ? set : unset ? unset : keep;
    e.instead_of = set ? unset : NULL;
    return e;
}

static void add_row(struct json *v, const struct env_name *r)
{
    json_add_text(v, "verdict", env_verdict_name(r->verdict));
    json_add_text(v, "reader", r->reader);
    json_add_text(v, "since", r->since);
    json_add_text(v, "values", r->values);
    json_add_text(v, "effect", r->effect);
    json_add_text(v, "advice", r->advice);
    json_add_text(v, "source", r->source);
}

struct json *report_env_name(const struct env_explanation *e)
{
    struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    json_add_text(root, "name", e->name);
    json_add_bool(root, "known", e->row != NULL);
    if (e->row)
        add_row(root, e->row);
    struct json *list = e->row ? NULL : json_add_array(root, "nearest");
    for (size_t i = 0; i < e->n_near && list; i++)
        json_add_text(list, NULL, e->near[i]);
    json_add_text(root, "here", e->action);
    json_add_text(root, "here_value", e->var ? e->var->value : NULL);
    json_add_text(root, "here_why", e->var ? e->var->why : NULL);
    return root;
}

struct json *report_env_names(void)
{
    struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    struct json *list = json_add_array(root, "variables");
    const struct env_name *r;
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        struct json *v = json_add_object(list, NULL);
        json_add_text(v, "name", r->name);
        add_row(v, r);
    }
    return root;
}
