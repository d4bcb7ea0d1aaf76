/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/plan_work.h"

#include "base/str.h"
#include "host/memory.h"
#include "rules/env_sources.h"
#include <string.h>
#include <strings.h>

const char *const plan_selectors[PLAN_N_SELECTORS] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                                       "CUDA_VISIBLE_DEVICES" };

bool plan_is_selector(const char *name)
{
    for (size_t i = 0; i < PLAN_N_SELECTORS; i++)
        if (!strcmp(plan_selectors[i], name))
            return true;
    return false;
}

struct gpu_list {
    const struct gpu_facts **gpu;
    size_t n;
};

static void list_add(struct work *w, struct gpu_list *l, const struct gpu_facts *g)
{
    *ARENA_PUSH(w->a, l->gpu, l->n) = g;
}

static bool list_has(const struct gpu_list *l, const struct gpu_facts *g)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->gpu[i] == g)
            return true;
    return false;
}

static bool list_same(const struct gpu_list *a, const struct gpu_list *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (a->gpu[i] != b->gpu[i])
            return false;
    return a->n == b->n;
}

static const char *list_text(struct work *w, const struct gpu_list *l)
{
    const char *text = "";
    for (size_t i = 0; i < l->n; i++)
        text = arena_printf(w->a, "%s%s%d", text, i ? "," : "", l->gpu[i]->hip_index);
    return text;
}

/* How a runtime reads its variable (ROCr amd_filter_device.cpp; clr rocdevice.cpp). */
struct dialect {
    bool trims;  /* spaces around a token are fine */
    bool counts; /* the GPUs are known, so an index can be checked */
};

struct reading {
    struct gpu_list shown; /* what the runtime shows: it stops at the first bad token */
    struct gpu_list meant; /* what was meant, without the mistakes */
    const char *flaw;      /* NULL: a good list */
};

static const struct gpu_facts *token_gpu(const char *token, const struct gpu_list *among)
{
    uint64_t index;
    if (cairn_parse_u64(token, &index))
        return index < among->n ? among->gpu[index] : NULL;
    for (size_t i = 0; i < among->n && strlen(token) > 4; i++)
        if (among->gpu[i]->uuid.s && !strncasecmp(among->gpu[i]->uuid.s, token, strlen(token)))
            return among->gpu[i];
    return NULL;
}

static bool token_is_plain(const char *token)
{
    uint64_t index;
    if (str_starts(token, "GPU-"))
        return true;
    return cairn_parse_u64(token, &index) && (token[0] != '0' || !token[1]);
}

static const char *token_flaw(struct work *w, const char *token, const char *trimmed, struct dialect d,
                              const struct gpu_list *among, const struct gpu_list *shown)
{
    if (!d.trims && strcmp(token, trimmed))
        return arena_printf(w->a, "the space before or after \"%s\" ends the list: spaces are not allowed",
                            trimmed);
    if (!*trimmed)
        return "an extra comma ends the list";
    if (!token_is_plain(trimmed))
        return arena_printf(w->a, "\"%s\" is neither an index nor a GPU- id; the list ends there", trimmed);
    if (!d.counts)
        return NULL;
    const struct gpu_facts *g = token_gpu(trimmed, among);
    if (!g)
        return arena_printf(w->a,
                            "there is no GPU %s (%zu to choose from, counted from 0); the list ends there",
                            trimmed, among->n);
    if (list_has(shown, g))
        return arena_printf(w->a, "GPU %s is listed twice; the list ends there", trimmed);
    return NULL;
}

static char *trim(struct work *w, const char *token)
{
    token += strspn(token, " \t");
    size_t n = strlen(token);
    while (n && (token[n - 1] == ' ' || token[n - 1] == '\t'))
        n--;
    return arena_strndup(w->a, token, n);
}

static void read_token(struct work *w, const char *token, struct dialect d, const struct gpu_list *among,
                       struct reading *r)
{
    const char *trimmed = trim(w, token);
    const char *flaw = token_flaw(w, token, trimmed, d, among, &r->shown);
    const struct gpu_facts *g = token_gpu(trimmed, among);
    if (flaw && !r->flaw)
        r->flaw = flaw;
    if (g && !r->flaw)
        list_add(w, &r->shown, g);
    if (g && !list_has(&r->meant, g))
        list_add(w, &r->meant, g);
}

static struct reading read_list(struct work *w, const char *text, struct dialect d,
                                const struct gpu_list *among)
{
    struct reading r = { 0 };
    if (!text[strspn(text, " \t")]) {
        r.flaw = "an empty value hides every GPU";
        return r;
    }
    for (const char *p = text;;) {
        size_t n = strcspn(p, ",");
        read_token(w, arena_strndup(w->a, p, n), d, among, &r);
        if (!p[n])
            return r;
        p += n + 1;
    }
}

/* What the user's own variables select. */
struct choice {
    struct gpu_list shown; /* at the end of the chain */
    struct gpu_list meant; /* by those removed because of a mistake; may be empty */
    bool in_force;         /* some variable selects */
    bool mistaken;         /* some variable was removed because of a mistake */
    bool anew;             /* two variables select together; one has to replace them */
};

static bool judge_list(struct work *w, struct env_var *v, bool trims, struct choice *c)
{
    struct dialect d = { .trims = trims, .counts = c->shown.n && !w->o->windows };
    struct reading r = read_list(w, v->value, d, &c->shown);
    /* A list that ends early still shows what comes before. */
    v->fatal = r.flaw && (d.counts ? !r.shown.n : !v->value[strspn(v->value, " \t")]);
    if (r.flaw && work_refuse(w, v, DOC_VISIBLE, "%s", r.flaw)) {
        c->mistaken = true;
        if (r.meant.n)
            c->meant = r.meant;
        return false;
    }
    if (!r.flaw)
        work_accept(w, v, "your choice of GPUs");
    if (d.counts)
        c->shown = r.shown;
    c->in_force = true;
    return true;
}

/* Of the two names that HIP reads, the one that takes precedence. */
static struct env_var *hip_variable(struct work *w)
{
    struct env_var *hip = work_var(w, "HIP_VISIBLE_DEVICES"), *cuda = work_var(w, "CUDA_VISIBLE_DEVICES");
    if (!hip || !cuda)
        return hip ? hip : cuda;
    if (str_eq(hip->value, cuda->value)) {
        work_accept(w, cuda, "same value as HIP_VISIBLE_DEVICES, which HIP reads first: redundant");
        return hip;
    }
    hip->fatal = !hip->value[0];
    if (hip->fatal && work_refuse(w, hip, DOC_VISIBLE, "an empty value hides every GPU"))
        return cuda;
    work_refuse(w, cuda, DOC_VISIBLE, "contradicts HIP_VISIBLE_DEVICES=%s, which HIP reads first",
                hip->value);
    return hip;
}

/* Both chained: HIP's indices count within ROCr's list, which is error-prone; one variable has to replace
 * them. */
static void judge_chain(struct work *w, struct env_var *rocr, struct env_var *hip,
                        const struct gpu_list *first, struct choice *c)
{
    if (str_eq(rocr->value, hip->value) && list_same(first, &c->shown)) {
        work_accept(w, hip, "no effect beside ROCR_VISIBLE_DEVICES: redundant");
        return;
    }
    for (struct env_var *v = hip; v; v = v == hip ? work_var(w, "CUDA_VISIBLE_DEVICES") : NULL)
        work_refuse(w, v, DOC_VISIBLE,
                    "its indices count within the list of ROCR_VISIBLE_DEVICES=%s; one variable is enough",
                    rocr->value);
    if (!list_same(first, &c->shown))
        c->anew = work_refuse(w, rocr, DOC_VISIBLE,
                              "%s narrows it further; cairn merges both into one "
                              "variable",
                              hip->name);
}

static struct choice user_choice(struct work *w, const struct gpu_list *all)
{
    struct choice c = { .shown = *all };
    struct env_var *rocr = work_var(w, "ROCR_VISIBLE_DEVICES");
    if (rocr && !judge_list(w, rocr, true, &c))
        rocr = NULL;
    struct gpu_list first = c.shown;
    struct env_var *hip = hip_variable(w);
    if (!hip || !judge_list(w, hip, false, &c)) {
        /* The same mistake in both names is reported for both. */
        struct env_var *twin = hip ? work_var(w, "CUDA_VISIBLE_DEVICES") : NULL;
        if (twin && twin != hip)
            judge_list(w, twin, false, &c);
        return c;
    }
    if (rocr && !w->o->windows)
        judge_chain(w, rocr, hip, &first, &c);
    return c;
}

/* What to show by default: the chosen GPU and others of its kind (a second card, the partitions of one, the
 * other sockets of an MI300A board). */
static struct gpu_list like_gpus(struct work *w, const struct gpu_list *all, const struct gpu_facts *chosen)
{
    struct gpu_list l = { 0 };
    bool alone = chosen->kind == GPU_INTEGRATED && !memory_is_one_pool(chosen);
    list_add(w, &l, chosen);
    for (size_t i = 0; i < all->n && !alone; i++)
        if (all->gpu[i] != chosen && all->gpu[i]->kind == chosen->kind &&
            str_eq(all->gpu[i]->gfx.s, chosen->gfx.s))
            list_add(w, &l, all->gpu[i]);
    return l;
}

static struct gpu_list intersect(struct work *w, const struct gpu_list *a, const struct gpu_list *b)
{
    struct gpu_list l = { 0 };
    for (size_t i = 0; i < a->n; i++)
        if (list_has(b, a->gpu[i]))
            list_add(w, &l, a->gpu[i]);
    return l;
}

static const char *hidden_text(struct work *w, const struct gpu_list *all, const struct gpu_list *shown)
{
    const char *text = NULL;
    for (size_t i = 0; i < all->n; i++)
        if (!list_has(shown, all->gpu[i]))
            text = arena_printf(w->a, "%s%s%s%s", text ? text : "hides ", text ? " and " : "",
                                all->gpu[i]->kind == GPU_INTEGRATED ? "the integrated " : "",
                                work_gpu_text(w, all->gpu[i]));
    return text;
}

static void show(struct work *w, const struct gpu_list *all, const struct gpu_list *shown,
                 const char *because)
{
    const char *hides = hidden_text(w, all, shown);
    struct computed *c = &w->computed[ENV_VALUE_VISIBLE];
    c->value = list_text(w, shown);
    if (because)
        c->why = hides ? arena_printf(w->a, "%s; %s", because, hides) : because;
    else if (hides)
        c->why =
            arena_printf(w->a,
                         "%s: beside the GPU to train on, it crashes libraries and disables hipBLASLt for "
                         "all GPUs",
                         hides);
    else
        c->why = "puts the GPU to train on first";
    if (w->o->windows)
        work_warn(w, "Windows may number the GPUs in another order than Linux: check which one is %s",
                  work_gpu_text(w, shown->gpu[0]));
}

static void use(struct work *w, const struct gpu_list *shown, const struct gpu_facts *preferred)
{
    w->visible = shown->gpu;
    w->n_visible = shown->n;
    w->plan->gpu = list_has(shown, preferred) || !shown->n ? preferred : shown->gpu[0];
}

static void warn_of_choice(struct work *w, const struct gpu_list *all, const struct gpu_list *shown)
{
    const struct gpu_facts *integrated = NULL, *discrete = NULL, *other = NULL;
    for (size_t i = 0; i < shown->n; i++)
        if (shown->gpu[i]->kind == GPU_INTEGRATED)
            integrated = shown->gpu[i];
        else
            discrete = shown->gpu[i];
    for (size_t i = 0; i < all->n; i++)
        if (all->gpu[i]->kind == GPU_DISCRETE && !list_has(shown, all->gpu[i]))
            other = all->gpu[i];
    if (integrated && discrete)
        work_warn(w,
                  "your choice leaves the integrated %s visible beside %s: it crashes libraries and disables "
                  "hipBLASLt for all GPUs",
                  work_gpu_text(w, integrated), work_gpu_text(w, discrete));
    else if (integrated && other)
        work_warn(w, "your choice is the integrated %s, although there is the discrete %s",
                  work_gpu_text(w, integrated), work_gpu_text(w, other));
    if (!shown->n)
        work_warn(w, "your choice of GPUs hides every GPU");
}

/* --gpu N takes precedence over the variables. */
static void use_asked(struct work *w, const struct gpu_list *all, struct choice *c,
                      const struct gpu_facts *asked)
{
    struct gpu_list only = { 0 };
    list_add(w, &only, asked);
    bool stays = c->in_force && !c->anew && list_same(&c->shown, &only) && !w->o->windows;
    for (size_t i = 0; i < PLAN_N_SELECTORS && !stays; i++) {
        struct env_var *v = work_var(w, plan_selectors[i]);
        if (v && !work_refuse(w, v, DOC_VISIBLE, "--gpu %d selects another GPU", asked->hip_index))
            stays = true;
    }
    use(w, &only, asked);
    if (!stays)
        show(w, all, &only, arena_printf(w->a, "--gpu %d", asked->hip_index));
}

static void use_own(struct work *w, const struct gpu_list *all, const struct choice *c,
                    const struct gpu_facts *preferred)
{
    struct gpu_list shown = like_gpus(w, all, preferred);
    bool corrected = false;
    if (c->mistaken && c->meant.n) {
        struct gpu_list both = intersect(w, &c->meant, &shown);
        corrected = both.n != shown.n || !both.n;
        shown = both.n ? both : c->meant;
    }
    use(w, &shown, preferred);
    if (!list_same(&shown, all))
        show(w, all, &shown, corrected ? "the corrected value of the variable with the mistake" : NULL);
}

static struct gpu_list usable_gpus(struct work *w)
{
    struct gpu_list all = { 0 };
    for (size_t i = 0; i < w->f->n_gpus; i++)
        if (w->f->gpus[i].rocm_capable && w->f->gpus[i].hip_index >= 0)
            list_add(w, &all, &w->f->gpus[i]);
    return all;
}

size_t plan_visible(const struct facts *f, const char *rocr, const char *hip, struct arena *a,
                    const struct gpu_facts ***out)
{
    struct work w = { .f = f, .a = a };
    struct gpu_list shown = usable_gpus(&w);
    if (rocr)
        shown = read_list(&w, rocr, (struct dialect){ .trims = true, .counts = true }, &shown).shown;
    if (hip)
        shown = read_list(&w, hip, (struct dialect){ .counts = true }, &shown).shown;
    *out = shown.gpu;
    return shown.n;
}

size_t plan_shown(const struct facts *f, struct arena *a, const struct gpu_facts ***out)
{
    return plan_visible(f, facts_env(f, plan_selectors[0]), NULL, a, out);
}

int devices_plan(struct work *w, struct cairn_error *err)
{
    struct gpu_list all = usable_gpus(w);
    const struct gpu_facts *preferred = w->f->default_gpu >= 0 ? &w->f->gpus[w->f->default_gpu] : NULL,
                           *asked = NULL;
    for (size_t i = 0; i < all.n; i++)
        if (all.gpu[i]->hip_index == w->o->gpu)
            asked = all.gpu[i];
    if (w->o->gpu >= 0 && all.n && !asked)
        return cairn_fail(err, CAIRN_EUSAGE, "no GPU %d: this machine has %zu, numbered from 0", w->o->gpu,
                          all.n);
    struct choice c = user_choice(w, &all);
    if (!all.n)
        return 0;
    if (!preferred || !list_has(&all, preferred))
        preferred = all.gpu[0];
    if (asked) {
        use_asked(w, &all, &c, asked);
    } else if (c.in_force && !w->o->windows) {
        warn_of_choice(w, &all, &c.shown);
        use(w, &c.shown, preferred);
        if (c.anew)
            show(w, &all, &c.shown, "replaces your two variables with one");
    } else if (c.in_force) {
        struct gpu_list only = { .gpu = &preferred, .n = 1 };
        struct gpu_list copy = intersect(w, &only, &all);
        use(w, &copy, preferred);
    } else {
        use_own(w, &all, &c, preferred);
    }
    return 0;
}
