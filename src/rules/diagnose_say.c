/* SPDX-License-Identifier: Apache-2.0
 * Sentences for a person, built from the tables' texts and what is known about the machine. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A value may come from the log; a remedy may have several lines. */
static void add_value(struct str *to, const char *value)
{
    for (;;) {
        size_t n = strcspn(value, "\n");
        str_add_clean(to, value, n);
        if (!value[n])
            return;
        str_add(to, "\n");
        value += n + 1;
    }
}

/* Adds the text with its {keys} filled in; false if one is unknown. */
static bool fill(const struct judgement *j, struct str *to, const char *text, size_t n)
{
    for (const char *end = text + n; text < end;) {
        const char *open = memchr(text, '{', (size_t)(end - text));
        const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        if (!close) {
            str_addn(to, text, (size_t)(end - text));
            return true;
        }
        const char *value = diagnose_key(j, open + 1, (size_t)(close - open - 1));
        if (!value)
            return false;
        str_addn(to, text, (size_t)(open - text));
        add_value(to, value);
        text = close + 1;
    }
    return true;
}

/* Text in brackets is omitted if a key in it is unknown; true if all those outside are known. */
static bool fill_sentence(const struct judgement *j, struct str *to, const char *text)
{
    bool known = true;
    while (*text) {
        size_t plain = strcspn(text, "["), before;
        known &= fill(j, to, text, plain);
        text += plain;
        if (!*text)
            break;
        size_t inner = strcspn(text, "]");
        before = to->len;
        if (!fill(j, to, text + 1, inner - 1) && to->s)
            to->s[to->len = before] = '\0';
        text += inner + (text[inner] == ']');
    }
    return known;
}

/* NULL if a key is unknown. */
static const char *filled(const struct judgement *j, const char *text)
{
    CLEANUP(str_release) struct str s = { 0 };
    return fill_sentence(j, &s, text) ? arena_strdup(j->a, s.s ? s.s : "") : NULL;
}

static const char *sentence(const struct judgement *j, const char *text)
{
    const char *s = filled(j, text);
    assert(s); /* a cause must be printed whatever is known */
    return s;
}

/* Fixes. */

static void add_set(const struct judgement *j, struct diagnose_fix *fix, const char *assignment)
{
    const char *eq = strchr(assignment, '=');
    *ARENA_PUSH(j->a, fix->set, fix->n_set) = (struct plan_var){
        .name = arena_strndup(j->a, assignment, (size_t)(eq - assignment)),
        .value = eq + 1,
        .why = fix->text,
    };
}

static void add_unset(const struct judgement *j, struct diagnose_fix *fix, const char *names)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, " ");
        *ARENA_PUSH(j->a, fix->unset, fix->n_unset) = arena_strndup(j->a, p, n);
        p += n + (p[n] == ' ');
    }
}

/* Two rows with the same text are two positions for one fix, depending on the facts; it goes to the first. */
static bool stands_already(const struct diagnosis *out, const char *text)
{
    for (size_t i = 0; i < out->n_fixes; i++)
        if (str_eq(out->fixes[i].text, text))
            return true;
    return false;
}

static void add_fix(const struct judgement *j, const struct issue_fix *row, struct diagnosis *out)
{
    const char *text = filled(j, row->text), *set = row->set ? filled(j, row->set) : NULL;
    const char *unset = row->unset ? filled(j, row->unset) : NULL;
    if (!text || (row->set && !set) || (row->unset && !unset) || !diagnose_applies(j, row) ||
        stands_already(out, text))
        return;
    struct diagnose_fix *fix = ARENA_PUSH(j->a, out->fixes, out->n_fixes);
    *fix = (struct diagnose_fix){ .text = text,
                                  .action = row->action,
                                  .automatic = row->action != DIAGNOSE_ACT_NONE };
    if (str_eq(row->set, FIX_OVERRIDE))
        diagnose_add_override(j, fix);
    else if (set)
        add_set(j, fix, set);
    if (unset)
        add_unset(j, fix, unset);
}

/* Evidence. */

static void add_evidence(const struct judgement *j, struct diagnosis *out, const struct hit *h)
{
    const char *file = h->file ? j->d->files[h->file - 1] : NULL;
    for (size_t i = 0; i < out->n_evidence; i++)
        if (out->evidence[i].line == h->line && str_eq(out->evidence[i].file, file))
            return;
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, h->text, strlen(h->text));
    *ARENA_PUSH(j->a, out->evidence, out->n_evidence) =
        (struct diagnose_evidence){ h->line, arena_strdup(j->a, clean.s ? clean.s : ""), file };
}

static bool speaks_for(const struct judgement *j, int issue, enum weight w)
{
    bool quiet = w == WEIGHT_WARN || w == WEIGHT_ECHO;
    /* "Not ROCm" because of a line that only looks like an error. */
    bool own_words =
        j->verdict == ISSUE_NOT_ROCM && issue == ISSUE_UNKNOWN && j->score[ISSUE_NOT_ROCM] < JUDGE_LEAST;
    return issue == (int)j->verdict || own_words ||
           (j->verdict == ISSUE_NOT_ROCM && !quiet && !issue_classes[issue].any_machine &&
            !kernel_reports_another(j, issue));
}

bool diagnose_has_evidence(const struct judgement *j)
{
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = 0; w < N_WEIGHTS; w++)
            for (int c = 0; c < N_WORDINGS; c++)
                if (j->d->hits[i][w][c].seen && speaks_for(j, i, w))
                    return true;
    return false;
}

static void find_evidence(const struct judgement *j, struct diagnosis *out)
{
    for (int w = 0; w < N_WEIGHTS; w++)
        for (int i = 0; i < N_ISSUES; i++)
            for (int c = 0; c < N_WORDINGS; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (!h->seen || !speaks_for(j, i, w))
                    continue;
                add_evidence(j, out, &h->first);
                add_evidence(j, out, &h->best);
            }
}

/* For a verdict that a ruling made, the evidence is that of the class it replaced. */
static void borrow_evidence(const struct judgement *j, struct diagnosis *out)
{
    const struct hits *best = NULL;
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = 0; w < N_WEIGHTS; w++)
            for (int c = 0; c < N_WORDINGS; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (h->seen && (!best || h->best.score > best->best.score))
                    best = h;
            }
    if (best)
        add_evidence(j, out, &best->best);
}

/* The runners-up. */

static int compare_other(const void *a, const void *b)
{
    const struct diagnose_other *x = a, *y = b;
    return (x->confidence < y->confidence) - (x->confidence > y->confidence);
}

static void add_other(const struct judgement *j, struct diagnosis *out, enum issue i, double confidence)
{
    *ARENA_PUSH(j->a, out->also, out->n_also) = (struct diagnose_other){ issue_classes[i].id, confidence };
}

static void find_others(const struct judgement *j, struct diagnosis *out)
{
    enum { MOST = 3, WORTH = 35 };
    const double SURE = 0.7;
    if (j->severity == DIAGNOSE_WARNING)
        add_other(j, out, ISSUE_NO_FAILURE, 1 - j->confidence);
    if (j->verdict == ISSUE_NO_FAILURE && j->ctx->exit_code < 0 && j->confidence < SURE)
        add_other(j, out, ISSUE_UNKNOWN, 1 - j->confidence);
    if (j->if_amd != ISSUE_UNKNOWN && j->score[j->if_amd] < WORTH)
        add_other(j, out, j->if_amd, 1 - j->confidence);
    for (int i = 0; i < ISSUE_NO_FAILURE; i++)
        if (i != (int)j->verdict && j->score[i] >= WORTH)
            add_other(j, out, i, (1 - j->confidence) * j->score[i] / 100.0);
    if (out->n_also)
        qsort(out->also, out->n_also, sizeof(out->also[0]), compare_other);
    out->n_also = out->n_also < MOST ? out->n_also : MOST;
}

static void use_fact(const struct judgement *j, struct diagnosis *out, const char *text)
{
    if (text)
        *ARENA_PUSH(j->a, out->facts_used, out->n_facts_used) = text;
}

static const char *exit_text(const struct judgement *j)
{
    long long code = j->ctx->exit_code;
    if (code > 128 && code < 192)
        return arena_printf(j->a, "exit status %lld (signal %lld)", code, code - 128);
    return code > 255 ? arena_printf(j->a, "exit status %lld (0x%llX)", code, code)
                      : arena_printf(j->a, "exit status %lld", code);
}

static void find_facts(const struct judgement *j, struct diagnosis *out)
{
    if (j->ctx->exit_code >= 0)
        use_fact(j, out, exit_text(j));
    if (j->verdict == ISSUE_NO_FAILURE || j->verdict == ISSUE_UNKNOWN)
        return;
    for (size_t i = 0; i < j->n_chips; i++)
        use_fact(j, out, j->chips[i]->gfx);
    const char *torch = diagnose_key(j, "torch", strlen("torch"));
    if (torch)
        use_fact(j, out, arena_printf(j->a, "torch %s", torch));
    if (j->override)
        use_fact(j, out, arena_printf(j->a, "%s=%s", j->override->name, j->override->value));
    const struct facts *f = j->ctx->facts;
    if (f && f->n_gpus && j->log->devices.n && !j->same_machine && !j->ctx->gfx)
        use_fact(j, out,
                 arena_printf(j->a,
                              "the log names %s, which this machine does not have; cairn goes by the "
                              "log",
                              j->log->devices.name[0]));
}

static const char *cause_of(const struct judgement *j)
{
    const struct issue_class *class = &issue_classes[j->verdict];
    if (judge_may_hang(j))
        return class->cause_may;
    return judge_by_guard(j) ? class->cause_guard : judge_by_watch(j) ? class->cause_watch : class->cause;
}

void diagnose_say(const struct judgement *j, struct diagnosis *out)
{
    const struct issue_class *class = &issue_classes[j->verdict];
    *out = (struct diagnosis){
        .class_id = class->id,
        .severity = j->severity,
        .confidence = j->confidence,
        .windows = j->windows,
        .cause = sentence(j, cause_of(j)),
    };
    if (j->log->header[0] && (j->verdict == ISSUE_TRITON || j->verdict == ISSUE_MIOPEN))
        add_evidence(j, out, &j->d->header);
    find_evidence(j, out);
    if (!out->n_evidence && j->severity != DIAGNOSE_NONE && j->verdict != ISSUE_NOT_ROCM)
        borrow_evidence(j, out);
    for (const struct issue_fix *f = issue_fixes; f->text; f++)
        if (f->issue == j->verdict && (j->severity != DIAGNOSE_WARNING || f->action != DIAGNOSE_ACT_CPU))
            add_fix(j, f, out);
    find_others(j, out);
    find_facts(j, out);
}
