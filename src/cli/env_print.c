/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/env_print.h"

#include "base/str.h"
#include "cli/messages.h"
#include "cli/print.h"
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

/* The program itself prints cairn's own pages; other sources are addresses. */
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

/* If a shell evaluates the lines, the user does not see the comments in them. */
static void say_aloud(const struct plan *p)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < p->n_unset; i++)
        messages_say(
            arena_printf(&a, "%s=%s is removed: %s", p->unset[i].name, p->unset[i].value, p->unset[i].why));
    for (size_t i = 0; i < p->warnings.n; i++)
        messages_say(arena_printf(&a, "warning: %s", p->warnings.text[i]));
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

static void print_field(const char *name, const char *text)
{
    if (!text)
        return;
    printf("  %s%-9s%s ", print_color(COLOR_DIM), name, print_color(COLOR_PLAIN));
    print_wrapped(stdout, text, 12, print_width());
}

static void print_here(const struct env_explanation *e)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    if (e->instead_of)
        print_field("yours", arena_printf(&a, "unset '%s': %s", e->instead_of->value, e->instead_of->why));
    if (e->action)
        print_field("here", arena_printf(&a, "%s '%s': %s", e->action, e->var->value, e->var->why));
    else
        print_field("here", !e->value ? "not set, and nothing to set"
                            : strlen(e->value) > 40
                                ? "set by you; nothing to change"
                                : arena_printf(&a, "'%s', set by you; nothing to change", e->value));
}

void env_explain_text(const struct env_explanation *e)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    printf("%s%s%s\n", print_color(COLOR_BOLD), e->name, print_color(COLOR_PLAIN));
    if (!e->row) {
        puts("  unknown to cairn: it found no program that reads this variable");
        for (size_t i = 0; i < e->n_near; i++)
            printf("%s%s%s", i ? ", " : "  did you mean: ", e->near[i], i + 1 == e->n_near ? "\n" : "");
        return;
    }
    print_field("cairn", env_verdict_text(e->row->verdict));
    print_field("read by", e->row->reader);
    print_field("since", e->row->since);
    print_field("values", e->row->values);
    print_field("effect", e->row->effect);
    print_field("advice", e->row->advice);
    print_here(e);
    print_field("source", source_text(e->row->source, &a));
}

void env_names_text(void)
{
    printf("%s%-43s %-18s %s%s\n", print_color(COLOR_BOLD), "VARIABLE", "CAIRN", "EFFECT",
           print_color(COLOR_PLAIN));
    const struct env_name *r;
    bool narrow = print_width() < 90; /* the effect gets a line of its own */
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        printf("%-43s %-18s%s", r->name, env_verdict_name(r->verdict), narrow ? "\n    " : " ");
        print_wrapped(stdout, r->effect, narrow ? 4 : 63, print_width());
    }
}
