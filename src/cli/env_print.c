/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/env_print.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/print.h"
#include "cli/run_print.h"
#include "rules/env_names.h"
#include <string.h>
#include <unistd.h>

static void remark(enum shell s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void remark(enum shell s, const char *fmt, ...)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    va_list ap;
    va_start(ap, fmt);
    shell_remark(s, arena_vprintf(&a, fmt, ap), print_width(), stdout);
    va_end(ap);
}

/* A page of our own is printed by the program itself; anything else is an address. */
static const char *source_text(const char *source, struct arena *a)
{
    static const char folder[] = "docs/rules/";
    if (!source || !str_starts(source, folder) || !str_ends(source, ".md"))
        return source;
    const char *name = source + strlen(folder);
    return arena_printf(a, "cairn help rules/%.*s", (int)strlen(name) - 3, name);
}

static void print_header(const struct facts *f, const struct plan *p, enum shell s)
{
    const struct torch_facts *t = facts_torch(f);
    if (p->gpu)
        remark(s, "GPU %d: %s%s%s", p->gpu->hip_index, p->gpu->gfx.s ? p->gpu->gfx.s : "chip unknown",
               p->gpu->name.s ? ", " : "", p->gpu->name.s ? p->gpu->name.s : "");
    if (t)
        remark(s, "PyTorch %s in %s%s%s", t->version.s ? t->version.s : "of unknown version", t->site,
               t->how ? ", found through " : "", t->how ? t->how : "");
    if (p->gpu && !p->n_set && !p->n_unset)
        remark(s, "nothing to set");
}

static void print_unset(const struct plan *p, enum shell s)
{
    for (size_t i = 0; i < p->n_unset; i++) {
        CLEANUP(str_release) struct str line = { 0 };
        CLEANUP(arena_release) struct arena a = { 0 };
        const struct plan_var *v = &p->unset[i];
        remark(s, "%s=%s is removed: %s [%s]", v->name, v->value, v->why, source_text(v->source, &a));
        shell_unset(s, v->name, &line);
        fputs(line.s, stdout);
    }
}

static void print_set(const struct plan *p, enum shell s)
{
    for (size_t i = 0; i < p->n_set; i++) {
        CLEANUP(str_release) struct str line = { 0 };
        CLEANUP(arena_release) struct arena a = { 0 };
        const struct plan_var *v = &p->set[i];
        remark(s, "%s [%s]", v->why, source_text(v->source, &a));
        shell_set(s, v->name, v->value, &line);
        fputs(line.s, stdout);
    }
}

/* Where a shell evaluates the lines, nobody sees the remarks in them. */
static void say_aloud(const struct plan *p)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < p->n_unset; i++)
        run_say(
            arena_printf(&a, "%s=%s is removed: %s", p->unset[i].name, p->unset[i].value, p->unset[i].why));
    for (size_t i = 0; i < p->warnings.n; i++)
        run_say(arena_printf(&a, "warning: %s", p->warnings.text[i]));
}

void env_print_shell(const struct facts *f, const struct plan *p, enum shell s)
{
    if (!isatty(STDOUT_FILENO))
        say_aloud(p);
    print_header(f, p, s);
    print_unset(p, s);
    print_set(p, s);
    for (size_t i = 0; i < p->n_keep; i++)
        remark(s, "kept: %s=%s: %s", p->keep[i].name, p->keep[i].value, p->keep[i].why);
    for (size_t i = 0; i < p->warnings.n; i++)
        remark(s, "warning: %s", p->warnings.text[i]);
}

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

void env_print_json(const struct plan *p)
{
    CLEANUP(json_cleanup) struct json *root = json_new_object();
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
    json_print(root, stdout);
}

struct here {
    const char *action; /* "set", "unset", "keep", or NULL */
    const struct plan_var *var;
    const struct plan_var
        *instead_of;   /* the user's own value, removed for the one that is set; may be NULL */
    const char *value; /* what the user has, whatever the plan says of it; or NULL */
};

static struct here find_here(const struct plan *p, const char *name)
{
    const struct plan_var *set = plan_find(p->set, p->n_set, name),
                          *unset = plan_find(p->unset, p->n_unset, name);
    const struct plan_var *keep = plan_find(p->keep, p->n_keep, name);
    if (set)
        return (struct here){ .action = "set", .var = set, .instead_of = unset };
    return (struct here){ .action = unset ? "unset" : keep ? "keep" : NULL, .var = unset ? unset : keep };
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

static void explain_json(const char *name, const struct env_name *r, const struct here *h, const char **near,
                         size_t n)
{
    CLEANUP(json_cleanup) struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    json_add_text(root, "name", name);
    json_add_bool(root, "known", r != NULL);
    if (r)
        add_row(root, r);
    struct json *list = r ? NULL : json_add_array(root, "nearest");
    for (size_t i = 0; i < n && list; i++)
        json_add_text(list, NULL, near[i]);
    json_add_text(root, "here", h->action);
    json_add_text(root, "here_value", h->var ? h->var->value : NULL);
    json_add_text(root, "here_why", h->var ? h->var->why : NULL);
    json_print(root, stdout);
}

static void print_field(const char *name, const char *text)
{
    if (!text)
        return;
    printf("  %s%-9s%s ", print_color(COLOR_DIM), name, print_color(COLOR_PLAIN));
    print_wrapped(stdout, text, 12, print_width());
}

static void print_here(const struct here *h)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    if (h->instead_of)
        print_field("yours", arena_printf(&a, "unset '%s': %s", h->instead_of->value, h->instead_of->why));
    if (h->action)
        print_field("here", arena_printf(&a, "%s '%s': %s", h->action, h->var->value, h->var->why));
    else
        print_field("here", !h->value ? "not set, and nothing to set"
                            : strlen(h->value) > 40
                                ? "set by you; nothing to change"
                                : arena_printf(&a, "'%s', set by you; nothing to change", h->value));
}

static void explain_text(const char *name, const struct env_name *r, const struct here *h, const char **near,
                         size_t n)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    printf("%s%s%s\n", print_color(COLOR_BOLD), name, print_color(COLOR_PLAIN));
    if (!r) {
        puts("  not known to cairn: no reader of this name was found in the sources it was made from");
        for (size_t i = 0; i < n; i++)
            printf("%s%s%s", i ? ", " : "  did you mean: ", near[i], i + 1 == n ? "\n" : "");
        return;
    }
    print_field("cairn", env_verdict_text(r->verdict));
    print_field("read by", r->reader);
    print_field("since", r->since);
    print_field("values", r->values);
    print_field("effect", r->effect);
    print_field("advice", r->advice);
    print_here(h);
    print_field("source", source_text(r->source, &a));
}

bool env_explain(const char *name, const struct facts *f, const struct plan *p, bool json)
{
    const char *near[3] = { 0 };
    const struct env_name *r = env_name_find(name);
    size_t n = r ? 0 : env_name_nearest(name, near, ARRAY_LEN(near));
    struct here h = find_here(p, name);
    h.value = facts_env(f, name);
    (json ? explain_json : explain_text)(name, r, &h, near, n);
    return r != NULL;
}

static void explain_all_json(void)
{
    CLEANUP(json_cleanup) struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    struct json *list = json_add_array(root, "variables");
    const struct env_name *r;
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        struct json *v = json_add_object(list, NULL);
        json_add_text(v, "name", r->name);
        add_row(v, r);
    }
    json_print(root, stdout);
}

void env_explain_all(bool json)
{
    if (json) {
        explain_all_json();
        return;
    }
    printf("%s%-43s %-18s %s%s\n", print_color(COLOR_BOLD), "VARIABLE", "CAIRN", "EFFECT",
           print_color(COLOR_PLAIN));
    const struct env_name *r;
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        printf("%-43s %-18s ", r->name, env_verdict_name(r->verdict));
        print_wrapped(stdout, r->effect, 63, print_width() < 90 ? 90 : print_width());
    }
}
