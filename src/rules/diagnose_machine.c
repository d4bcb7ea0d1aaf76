/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs and which PyTorch the log is about: given by the user, stated in the log, or this machine's.
 * GPUs that the environment hides do not count. */
#include "rules/diagnose_work.h"

#include "base/parse.h"
#include "base/str.h"
#include "host/wheels.h"
#include <string.h>

bool judge_is_integrated(const struct gfx_chip *c)
{
    return c && gfx_kind(c->gfx, 0) == GPU_INTEGRATED;
}

static void add_chip(struct judgement *j, const char *gfx)
{
    const struct gfx_chip *c = gfx_find(gfx);
    for (size_t i = 0; c && i < j->n_chips; i++)
        if (j->chips[i] == c)
            return;
    if (c && j->n_chips < LOG_MOST_GFX)
        j->chips[j->n_chips++] = c;
}

/* "gfx120X": any chip whose name starts like this matches. */
static void add_family(struct judgement *j, const char *name)
{
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (!strncmp(c->gfx, name, strlen(name) - 1)) {
            j->family = true;
            add_chip(j, c->gfx);
            return;
        }
}

static void add_told(struct judgement *j)
{
    for (const char *p = j->ctx->gfx; p && *p;) {
        size_t len = strcspn(p, "+");
        const char *name = arena_strndup(j->a, p, len);
        if (len && (name[len - 1] == 'X' || name[len - 1] == 'x'))
            add_family(j, name);
        else
            add_chip(j, name);
        p += len + (p[len] == '+');
    }
}

static bool machine_has(const struct facts *f, const char *gfx)
{
    for (size_t i = 0; f && i < f->n_gpus; i++)
        if (str_eq(f->gpus[i].gfx.s, gfx))
            return true;
    return false;
}

/* The log may be from this machine: what the user or the log says about the GPU is true here. */
static bool is_same_machine(const struct judgement *j)
{
    const struct facts *f = j->ctx->facts;
    const struct log_gfx *log = &j->log->devices;
    bool foreign = !j->n_chips && log->n;
    if (!f || !f->n_gpus || j->windows || j->family || (j->ctx->gfx && !j->n_chips))
        return false;
    for (size_t i = 0; i < j->n_chips; i++) /* so far those that the user gave */
        if (!machine_has(f, j->chips[i]->gfx))
            return false;
    for (size_t i = 0; i < log->n; i++)
        foreign &= !machine_has(f, log->name[i]);
    return !foreign;
}

/* Of the two names that HIP reads, the value that takes precedence. */
static const char *hip_visible(const struct judgement *j)
{
    const char *hip = judge_var(j, LOG_HIP_VISIBLE);
    return hip ? hip : judge_var(j, LOG_CUDA_VISIBLE);
}

static bool is_shown(const struct gpu_facts **shown, size_t n, const char *gfx)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(shown[i]->gfx.s, gfx))
            return true;
    return false;
}

/* Removes this machine's chips that the program did not see, and adds those that it did. */
static void see_machine(struct judgement *j)
{
    const struct gpu_facts **shown = NULL;
    const char *rocr = j->windows ? NULL : judge_var(j, LOG_ROCR_VISIBLE);
    size_t n = plan_visible(j->ctx->facts, rocr, hip_visible(j), j->a, &shown), kept = 0;
    if (!n) { /* a mistake: use the intended value */
        shown = j->plan.visible;
        n = j->plan.n_visible;
    }
    if (!n)
        n = plan_visible(j->ctx->facts, NULL, NULL, j->a, &shown);
    bool cards = false, small = false;
    for (size_t i = 0; i < j->ctx->facts->n_gpus; i++)
        cards |= j->ctx->facts->gpus[i].kind == GPU_DISCRETE && j->ctx->facts->gpus[i].hip_index >= 0;
    j->has_card = cards;
    for (size_t i = 0; i < n; i++) {
        small |= shown[i]->kind == GPU_INTEGRATED;
        cards &= shown[i]->kind == GPU_INTEGRATED;
        j->igpu_first |= i == 0 && n > 1 && small;
    }
    j->card_hidden = cards && small;
    for (size_t i = 0; i < j->n_chips; i++)
        if (!machine_has(j->ctx->facts, j->chips[i]->gfx) || is_shown(shown, n, j->chips[i]->gfx))
            j->chips[kept++] = j->chips[i];
    j->n_chips = kept;
    for (size_t i = 0; i < n && !j->ctx->gfx; i++)
        if (shown[i]->gfx.s)
            add_chip(j, shown[i]->gfx.s);
    /* GPUs that the runtime never shows are better than none. */
    for (size_t i = 0; i < j->ctx->facts->n_gpus && !j->n_chips; i++)
        if (j->ctx->facts->gpus[i].gfx.s)
            add_chip(j, j->ctx->facts->gpus[i].gfx.s);
}

/* If the user gave several, an index selects one, in the given order. */
static void choose_told(struct judgement *j)
{
    const char *rocr = j->windows ? NULL : judge_var(j, LOG_ROCR_VISIBLE);
    const char *value = rocr ? rocr : hip_visible(j);
    uint64_t index;
    if (!value || !cairn_parse_u64(value, &index) || index >= j->n_chips || j->n_chips < 2)
        return;
    j->card_hidden = judge_is_integrated(j->chips[index]);
    j->chips[0] = j->chips[index];
    j->n_chips = 1;
}

static void find_chips(struct judgement *j)
{
    const struct log_gfx *log = &j->log->devices;
    add_told(j);
    j->same_machine = is_same_machine(j);
    if (j->ctx->gfx && !j->same_machine)
        choose_told(j);
    for (size_t i = 0; i < log->n; i++)
        add_chip(j, log->name[i]);
}

static void pick_chip(struct judgement *j)
{
    const struct gfx_chip *card = NULL, *small = NULL;
    for (size_t i = j->n_chips; i-- > 0;)
        *(judge_is_integrated(j->chips[i]) ? &small : &card) = j->chips[i];
    j->igpu = card ? small : NULL;
    if (j->log->misnamed && !j->ctx->gfx)
        return; /* the log's name for it is not its real one */
    j->chip = j->log->failing[0] ? gfx_find(j->log->failing) : card ? card : small;
}

static void find_wheel(struct judgement *j)
{
    const char *said = j->log->torch;
    j->torch = j->same_machine || (j->ctx->own_torch && j->ctx->facts) ? facts_torch(j->ctx->facts) : NULL;
    if (j->torch && j->torch->build == TORCH_ROCM && (!said[0] || str_eq(j->torch->version.s, said)))
        j->wheel = override_wheel_of(j->torch);
    else if (said[0])
        wheels_targets(j->a, said, &j->wheel.code);
}

/* Of several alike that the program saw, none of them named: the one that cairn would have chosen. */
static void prefer_planned(struct judgement *j)
{
    const char *gfx = j->same_machine && j->plan.gpu ? j->plan.gpu->gfx.s : NULL;
    bool named = !j->chip || j->log->failing[0] || j->ctx->gfx;
    for (size_t i = 0; gfx && !named && i < j->n_chips; i++)
        if (str_eq(j->chips[i]->gfx, gfx) && judge_is_integrated(j->chips[i]) == judge_is_integrated(j->chip))
            j->chip = j->chips[i];
}

void judge_machine(struct judgement *j)
{
    find_chips(j);
    find_wheel(j);
    if (j->same_machine) {
        judge_plan(j);
        see_machine(j);
    }
    pick_chip(j);
    prefer_planned(j);
    judge_plan(j); /* now that the GPU in question is known */
    j->carried = j->chip && !j->family ? override_has_code(&j->wheel, j->chip->gfx) : TRI_UNKNOWN;
}
