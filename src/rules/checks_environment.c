/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/looks.h"

#include "base/str.h"
#include <string.h>

static bool is_override(const char *name)
{
    return str_starts(name, "HSA_OVERRIDE_GFX_VERSION");
}

static bool is_selection(const char *name)
{
    return str_ends(name, "_VISIBLE_DEVICES");
}

static bool is_loader(const char *name)
{
    return str_eq(name, "LD_LIBRARY_PATH") || str_eq(name, "LD_PRELOAD");
}

static const struct plan_var *find_harmful(const struct look *l, bool (*is)(const char *))
{
    for (size_t i = 0; i < l->plan->n_unset; i++)
        if (is(l->plan->unset[i].name))
            return &l->plan->unset[i];
    return NULL;
}

/* "unset NAME", or the value that the plan puts in its place. */
static const char *replace_line(const struct look *l, const struct plan_var *bad)
{
    const struct plan_var *v = plan_find(l->plan->set, l->plan->n_set, bad->name);
    return v ? say(l, "export %s=%s", v->name, say_word(l, v->value)) : say(l, "unset %s", bad->name);
}

/* Is it fatal rather than useless?  Malformed, of another generic family, or a target without code here. */
static bool override_is_fatal(const struct look *l, const char *value)
{
    const char *gfx = l->gpu ? l->gpu->gfx.s : NULL;
    const struct gfx_chip *as = gfx_find_override(value);
    if (!as || (l->chip && !str_eq(as->generic, l->chip->generic)))
        return true;
    if (str_eq(as->gfx, gfx) || !l->torch || !l->torch->compiled.from)
        return false;
    return !look_carries(&l->torch->compiled, as->gfx);
}

struct finding check_override(const struct look *l)
{
    const struct plan_var *bad = find_harmful(l, is_override);
    if (bad)
        return found(override_is_fatal(l, bad->value) ? CHECK_FAIL : CHECK_WARN,
                     say(l, "%s=%s", bad->name, bad->value), bad->why, replace_line(l, bad));
    const char *v = facts_env(l->facts, "HSA_OVERRIDE_GFX_VERSION");
    return v ? found_ok(l, "HSA_OVERRIDE_GFX_VERSION=%s fits this chip and this PyTorch", v)
             : found_ok(l, "HSA_OVERRIDE_GFX_VERSION is not set");
}

struct finding check_visible_devices(const struct look *l)
{
    const struct plan_var *bad = find_harmful(l, is_selection);
    if (bad)
        return found(l->gpu ? CHECK_FAIL : CHECK_WARN, say(l, "%s='%s'", bad->name, bad->value), bad->why,
                     replace_line(l, bad));
    for (size_t i = 0; i < PLAN_N_SELECTORS; i++)
        if (facts_env(l->facts, plan_selectors[i]))
            return found_ok(l, "%s=%s", plan_selectors[i], facts_env(l->facts, plan_selectors[i]));
    return found_ok(l, "no variable hides a GPU");
}

struct finding check_env_harmful(const struct look *l)
{
    CLEANUP(str_release) struct str names = { 0 }, facts = { 0 }, why = { 0 };
    for (size_t i = 0; i < l->plan->n_unset; i++) {
        const struct plan_var *v = &l->plan->unset[i];
        if (is_override(v->name) || is_selection(v->name) || is_loader(v->name))
            continue;
        str_addf(&names, " %s", v->name);
        str_addf(&facts, "%s%s=%s", facts.len ? ", " : "", v->name, v->value);
        str_addf(&why, "%s%s: %s", why.len ? "; " : "", v->name, v->why);
    }
    if (!names.len)
        return found_ok(l, "no variable that harms is set");
    return found(CHECK_WARN, say(l, "%s", facts.s), say(l, "%s", why.s), say(l, "unset%s", names.s));
}

struct finding check_env_planned(const struct look *l)
{
    CLEANUP(str_release) struct str names = { 0 };
    if (!l->plan->gpu)
        return found_skip("no GPU to plan for");
    for (size_t i = 0; i < l->plan->n_set; i++) {
        const struct plan_var *v = &l->plan->set[i];
        if (is_override(v->name) || is_selection(v->name) || str_eq(facts_env(l->facts, v->name), v->value))
            continue;
        str_addf(&names, "%s%s", names.len ? ", " : "", v->name);
        if (strlen(v->value) < 60) /* a list of folders would fill the screen */
            str_addf(&names, "=%s", v->value);
    }
    if (!names.len)
        return found_ok(l, "nothing is missing in the environment");
    return found(CHECK_WARN, say(l, "not set yet: %s", names.s),
                 "cairn env --explain gives the reason for each", "eval \"$(cairn env)\"");
}

/* The plan also notes what other checks say; here counts what is about a variable the user has set. */
static bool is_about_environment(const struct look *l, const char *warning)
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

struct finding check_env_warnings(const struct look *l)
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
        return found_ok(l, "nothing in the environment is doubtful");
    return found(CHECK_WARN, first,
                 more.len ? say(l, "%s", more.s) : "the plan for this GPU met it on the way",
                 "cairn env    # shows the plan with what it met");
}

/* The first entry of LD_LIBRARY_PATH that leads into a ROCm which is not the one torch loads. */
static const char *foreign_entry(const struct look *l, const char *path)
{
    const char *own = l->torch->hip_library.s;
    for (const char *at = path; at; at = strchr(at, ':'), at = at ? at + 1 : NULL) {
        size_t n = strcspn(at, ":");
        bool rocm = look_rocm_of(l, at, n) || (n >= 9 && !strncmp(at, "/opt/rocm", 9));
        if (rocm && !(own && !strncmp(own, at, n) && own[n] == '/'))
            return arena_strndup(l->arena, at, n);
    }
    return NULL;
}

struct finding check_ld_library_path(const struct look *l)
{
    const char *path = facts_env(l->facts, "LD_LIBRARY_PATH");
    if (!path || !*path)
        return found_ok(l, "LD_LIBRARY_PATH is not set");
    const struct plan_var *bad = plan_find(l->plan->unset, l->plan->n_unset, "LD_LIBRARY_PATH");
    if (!bad && (!l->torch || l->torch->build != TORCH_ROCM))
        return found_skip("no ROCm build of PyTorch");
    const char *entry = bad ? NULL : foreign_entry(l, path);
    if (!bad && !entry)
        return found_ok(l, "LD_LIBRARY_PATH leads to no second ROCm");
    return found(
        CHECK_WARN, bad ? say(l, "LD_LIBRARY_PATH=%s", path) : say(l, "LD_LIBRARY_PATH has %s", entry),
        bad ? bad->why
            : "it puts a second HIP and HSA runtime before the one PyTorch brings; mixed majors crash",
        bad ? replace_line(l, bad) : "unset LD_LIBRARY_PATH");
}

struct finding check_ld_preload(const struct look *l)
{
    static const char *const runtimes[] = { "libamdhip64", "libhsa-runtime64", "librocblas", "libhipblaslt",
                                            "libMIOpen" };
    const char *v = facts_env(l->facts, "LD_PRELOAD");
    if (!v || !*v)
        return found_ok(l, "LD_PRELOAD is not set");
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
        if (strstr(v, runtimes[i]))
            return found(
                CHECK_WARN, say(l, "LD_PRELOAD=%s", v),
                say(l, "it forces another %s into PyTorch than the one it was built with", runtimes[i]),
                "unset LD_PRELOAD");
    return found_ok(l, "LD_PRELOAD=%s names no ROCm library", v);
}
