/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"
#include <string.h>

static bool is_library_path(const char *name)
{
    return str_eq(name, "LD_LIBRARY_PATH");
}

static bool is_preload(const char *name)
{
    return str_eq(name, "LD_PRELOAD");
}

/* "unset NAME", or the value that the plan sets instead. */
static const char *replace_line(const struct check_ctx *l, const struct plan_var *bad)
{
    const struct plan_var *v = plan_find(l->plan->set, l->plan->n_set, bad->name);
    return v ? ctx_text(l, "export %s=%s", v->name, ctx_shell_word(l, v->value))
             : ctx_text(l, "unset %s", bad->name);
}

/* The user's variables of one kind that the plan removes: one finding with one line to paste per variable.
 * False: there is none. */
static bool found_harmful(const struct check_ctx *l, bool (*is)(const char *), struct finding *out)
{
    CLEANUP(str_release) struct str facts = { 0 }, why = { 0 }, remedy = { 0 };
    enum check_status status = CHECK_WARN;
    size_t n = 0;
    for (size_t i = 0; i < l->plan->n_unset; i++)
        n += is(l->plan->unset[i].name);
    for (size_t i = 0; i < l->plan->n_unset; i++) {
        const struct plan_var *v = &l->plan->unset[i];
        if (!is(v->name))
            continue;
        const char *between = facts.len ? "; " : "";
        str_addf(&facts, "%s%s=%s", facts.len ? ", " : "", v->name, ctx_shell_word(l, v->value));
        str_addf(&why, "%s%s%s%s", between, n > 1 ? v->name : "", n > 1 ? ": " : "", v->why);
        str_addf(&remedy, "%s%s", remedy.len ? "\n" : "", replace_line(l, v));
        if (v->fatal && l->gpu)
            status = CHECK_FAIL;
    }
    if (n)
        *out =
            found(status, ctx_text(l, "%s", facts.s), ctx_text(l, "%s", why.s), ctx_text(l, "%s", remedy.s));
    return n;
}

/* A variable of this kind that the user has set and may keep; NULL: none. */
static const struct plan_var *find_kept(const struct check_ctx *l, bool (*is)(const char *))
{
    for (size_t i = 0; i < l->plan->n_keep; i++)
        if (is(l->plan->keep[i].name))
            return &l->plan->keep[i];
    return NULL;
}

struct finding check_override(const struct check_ctx *l)
{
    struct finding bad;
    if (found_harmful(l, override_is_name, &bad))
        return bad;
    const struct plan_var *kept = find_kept(l, override_is_name);
    return kept ? found_ok(l, "%s=%s: %s", kept->name, kept->value, kept->why)
                : found_ok(l, "HSA_OVERRIDE_GFX_VERSION is not set");
}

struct finding check_visible_devices(const struct check_ctx *l)
{
    struct finding bad;
    if (found_harmful(l, plan_is_selector, &bad))
        return bad;
    const struct plan_var *kept = find_kept(l, plan_is_selector);
    return kept ? found_ok(l, "%s=%s", kept->name, kept->value) : found_ok(l, "no variable hides a GPU");
}

static bool is_other(const char *name)
{
    return !override_is_name(name) && !plan_is_selector(name) && !is_library_path(name) && !is_preload(name);
}

struct finding check_env_harmful(const struct check_ctx *l)
{
    struct finding bad;
    return found_harmful(l, is_other, &bad) ? bad : found_ok(l, "no harmful variable is set");
}

struct finding check_env_planned(const struct check_ctx *l)
{
    CLEANUP(str_release) struct str names = { 0 };
    if (!l->plan->gpu)
        return found_skip("no GPU to plan for");
    for (size_t i = 0; i < l->plan->n_set; i++) {
        const struct plan_var *v = &l->plan->set[i];
        str_addf(&names, "%s%s", names.len ? ", " : "", v->name);
        if (strlen(v->value) < 60) /* a list of folders would fill the screen */
            str_addf(&names, "=%s", v->value);
    }
    if (!names.len)
        return found_ok(l, "every variable that this GPU needs is set");
    return found(
        CHECK_WARN, ctx_text(l, "not set yet: %s", names.s),
        ctx_text(
            l, "`cairn run%s -- COMMAND` sets them for you; `cairn env --explain` gives the reason for each",
            ctx_gpu_option(l)),
        ctx_text(l, "eval \"$(cairn env%s)\"", ctx_gpu_option(l)));
}

/* The plan also warns about what other checks cover; this check takes only warnings about the user's
 * variables. */
static bool is_about_environment(const struct check_ctx *l, const char *warning)
{
    if (str_starts(warning, "your choice"))
        return true;
    for (const char *const *e = l->facts->env; e && *e; e++) {
        const char *name = arena_strndup(l->arena, *e, strcspn(*e, "="));
        if (strlen(name) > 4 && strstr(warning, name))
            return true;
    }
    return false;
}

struct finding check_env_warnings(const struct check_ctx *l)
{
    CLEANUP(str_release) struct str more = { 0 };
    const char *first = NULL;
    for (size_t i = 0; i < l->plan->warnings.n; i++) {
        const char *text = l->plan->warnings.text[i];
        if (!is_about_environment(l, text))
            continue;
        if (first)
            str_addf(&more, "%s%s", more.len ? "; " : "", text);
        else
            first = text;
    }
    if (!first)
        return found_ok(l, "the environment raises no warning");
    return found(CHECK_WARN, first,
                 more.len ? ctx_text(l, "%s", more.s)
                          : "cairn found this while it planned the environment "
                            "for this GPU",
                 "cairn env    # prints the plan and its warnings");
}

struct finding check_ld_library_path(const struct check_ctx *l)
{
    struct finding bad;
    const char *path = facts_env(l->facts, "LD_LIBRARY_PATH");
    if (found_harmful(l, is_library_path, &bad))
        return bad;
    return path && *path ? found_ok(l, "LD_LIBRARY_PATH contains no second ROCm")
                         : found_ok(l, "LD_LIBRARY_PATH is not set");
}

struct finding check_ld_preload(const struct check_ctx *l)
{
    struct finding bad;
    const char *v = facts_env(l->facts, "LD_PRELOAD");
    if (found_harmful(l, is_preload, &bad))
        return bad;
    return v && *v ? found_ok(l, "LD_PRELOAD=%s names no ROCm library", v)
                   : found_ok(l, "LD_PRELOAD is not set");
}
