/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/diagnose.h"

#include "base/cleanup.h"
#include "rules/diagnose_work.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct issue_rule *const tables[] = { issue_rules_device, issue_rules_fault,
                                                   issue_rules_memory, issue_rules_library,
                                                   issue_rules_other,  issue_rules_not_rocm };

const char *diagnose_severity_name(enum diagnose_severity s)
{
    static const char *const names[] = {
        [DIAGNOSE_NONE] = "none", [DIAGNOSE_WARNING] = "warning", [DIAGNOSE_ERROR] = "error"
    };
    return (size_t)s < ARRAY_LEN(names) ? names[s] : NULL;
}

const char *diagnose_action_name(enum diagnose_action a)
{
    static const char *const names[] = {
        [DIAGNOSE_ACT_NONE] = "none",
        [DIAGNOSE_ACT_ENV] = "env",
        [DIAGNOSE_ACT_RESTART] = "restart",
        [DIAGNOSE_ACT_RESUME] = "resume",
        [DIAGNOSE_ACT_CLEAR_CACHES] = "clear-caches",
        [DIAGNOSE_ACT_OTHER_GPU] = "other-gpu",
        [DIAGNOSE_ACT_CPU] = "cpu",
        [DIAGNOSE_ACT_OPTIMIZER] = "optimizer",
    };
    return (size_t)a < ARRAY_LEN(names) ? names[a] : NULL;
}

const char *diagnose_gpu_use_name(enum diagnose_gpu_use u)
{
    static const char *const names[] = {
        [DIAGNOSE_GPU_UNKNOWN] = "unknown", [DIAGNOSE_GPU_NEVER] = "never", [DIAGNOSE_GPU_USED] = "used"
    };
    return (size_t)u < ARRAY_LEN(names) ? names[u] : NULL;
}

struct diagnose_class diagnose_class(size_t i)
{
    if (i >= N_ISSUES)
        return (struct diagnose_class){ 0 };
    return (struct diagnose_class){ issue_classes[i].id, issue_classes[i].about };
}

static bool conditions_met(const struct diagnoser *d, const char *with, const char *without)
{
    return (!with || match_any(d->text, d->n, with)) && (!without || !match_any(d->text, d->n, without));
}

/* A word that is the whole line after some prefix ("[rank0]: ", "web-1 | ", "… ERROR "), or a shell's report
 * on a job: "run.sh: line 3: 61044 Killed python train.py", "zsh: killed python", "[1]+ Killed …". */
static bool is_report(const char *s, size_t n, size_t at, size_t len)
{
    size_t before = at, after = at + len;
    while (before && s[before - 1] == ' ')
        before--;
    while (after < n && s[after] == ' ')
        after++;
    if (after == n)
        return !before || strchr(":|]>+-", s[before - 1]) || isupper((unsigned char)s[before - 1]);
    if (before == at || after < at + len + 2)
        return before >= 4 && !memcmp(s + before - 4, "zsh:", 4);
    return isdigit((unsigned char)s[before - 1]) || s[before - 1] == '+' || s[before - 1] == '-' ||
           s[before - 1] == ':';
}

static void keep_text(char to[HIT_TEXT], const char *s, size_t n, size_t at)
{
    /* Of a long line, the part around the match. */
    size_t from = n < HIT_TEXT || at < 60 ? 0 : at - 60;
    size_t len = n - from < HIT_TEXT - 1 ? n - from : HIT_TEXT - 1;
    memcpy(to, s + from, len);
    to[len] = '\0';
}

/* A line that the HIP runtime writes at AMD_LOG_LEVEL 2 and above, ":3:hip_module.cpp ...": healthy runs have
 * them too. */
static bool is_runtime_trace(const char *s, size_t n)
{
    return n > 4 && s[0] == ':' && s[1] >= '2' && s[1] <= '9' && s[2] == ':' && isalpha((unsigned char)s[3]);
}

static void add_hit(struct diagnoser *d, enum issue issue, uint8_t score, uint16_t flags, size_t at)
{
    bool echo = flags & RULE_ECHO || is_runtime_trace(d->text, d->n);
    /* Python's own word for what it went on from. */
    if (issue_classes[issue].often_caught && match_any(d->text, d->n, "UserWarning: |FutureWarning: "))
        flags |= RULE_SOFT;
    enum weight w = flags & RULE_WARN   ? WEIGHT_WARN
                    : echo              ? WEIGHT_ECHO
                    : flags & RULE_SOFT ? WEIGHT_SOFT
                                        : WEIGHT_HARD;
    struct hits *h = &d->hits[issue][w][flags & RULE_CUDA ? WORDING_SHARED : WORDING_ROCM];
    h->last_file = d->n_files;
    h->last_steps = d->facts.progress.steps;
    h->last_ends = d->facts.progress.ends;
    h->recovered = false;
    h->any |= flags;
    h->all = h->seen ? h->all & flags : flags;
    bool source = d->facts.trace.open;       /* a line of the program that a traceback quotes */
    bool better = h->best.source && !source; /* the exception itself is the best evidence */
    if (h->seen && (score < h->best.score || (score == h->best.score && !better)))
        return;
    struct hit hit = {
        .line = d->line,
        .order = ++d->order,
        .file = d->n_files,
        .score = score,
        .kernel = (flags & RULE_KERNEL) != 0,
        .source = source,
    };
    keep_text(hit.text, d->text, d->n, at);
    h->best = hit;
    if (!h->seen || (h->first.source && !source))
        h->first = hit;
    h->seen = true;
}

/* Only for classes that such lines are mistaken for. */
static bool is_harmless(const struct diagnoser *d, enum issue i)
{
    if (i != ISSUE_LIB_LOAD && i != ISSUE_TORCH_NOT_ROCM && i != ISSUE_NOT_ROCM && i != ISSUE_UNKNOWN)
        return false;
    for (const struct issue_noise *n = issue_noises; n->words; n++)
        if (match_any(d->text, d->n, n->words))
            return true;
    return false;
}

/* "ownership failure" does not tell of HIP. */
static bool ends_a_word(const struct diagnoser *d, const char *text, size_t at)
{
    return !strncmp(text, "HIP", 3) && at && isalpha((unsigned char)d->text[at - 1]);
}

static void try_rule(struct diagnoser *d, const struct issue_rule *r, size_t at)
{
    if (ends_a_word(d, r->text, at) || !conditions_met(d, r->with, r->without) || is_harmless(d, r->issue))
        return;
    if (r->flags & RULE_WORD && !is_report(d->text, d->n, at, strlen(r->text)))
        return;
    add_hit(d, r->issue, r->score, r->flags, at);
}

static void add_find(struct diagnoser *d, struct log_find f, size_t at)
{
    if (f.score && !is_harmless(d, f.issue))
        add_hit(d, f.issue, f.score, f.flags, at);
}

static void found(void *to, size_t i, size_t at)
{
    struct diagnoser *d = to;
    if (i < d->n_rules) {
        try_rule(d, d->rules[i], at);
        return;
    }
    i -= d->n_rules;
    if (i < d->n_signs) {
        if (!d->signs[i] && !ends_a_word(d, issue_signs[i].text, at))
            d->signs[i] = conditions_met(d, issue_signs[i].with, issue_signs[i].without);
        return;
    }
    if (d->joined && !log_facts_spans_lines(i - d->n_signs))
        return;
    bool header = d->facts.header[0];
    add_find(d, log_facts_see(&d->facts, i - d->n_signs, d->text, d->n, at), at);
    if (!header && d->facts.header[0]) {
        d->header = (struct hit){ .line = d->line, .file = d->n_files };
        keep_text(d->header.text, d->text, d->n, at);
    }
}

static void see_piece(void *to, uint64_t line, const char *text, size_t n)
{
    struct diagnoser *d = to;
    d->text = text;
    d->n = n;
    d->line = line;
    d->any_text |= n != 0;
    log_progress_line(&d->facts.progress, text, n);
    if (d->facts.asked_for > 0)
        add_find(d, log_facts_answer(&d->facts, text, n), 0);
    if (d->facts.trace.open)
        add_find(d, log_trace_line(&d->facts.trace, text, n), 0);
    match_set_find(d->set, text, n, found, d);
    bool joined = log_join_line(&d->join, text, n, d->facts.oom.seen && !log_oom_is_complete(&d->facts.oom));
    for (int b = 0; joined && b < LOG_N_BREAKS; b++) {
        d->text = d->join.text[b];
        d->n = d->join.n[b];
        d->joined = true;
        match_set_find(d->set, d->text, d->n, found, d);
        d->joined = false;
    }
}

static int build_set(struct diagnoser *d, struct cairn_error *err)
{
    const char *texts[MATCH_MOST];
    size_t n = 0;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct issue_rule *r = tables[t]; r->text; r++) {
            assert(d->n_rules < MOST_RULES);
            d->rules[d->n_rules++] = r;
            texts[n++] = r->text;
        }
    for (; issue_signs[d->n_signs].text; d->n_signs++) {
        assert(d->n_signs < MOST_SIGNS);
        texts[n++] = issue_signs[d->n_signs].text;
    }
    for (size_t i = 0; log_facts_text(i); i++)
        texts[n++] = log_facts_text(i);
    return match_set_new(texts, n, &d->set, err);
}

int diagnoser_new(struct diagnoser **out, struct cairn_error *err)
{
    struct diagnoser *d = calloc(1, sizeof(*d));
    if (!d)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read a log");
    d->lines.piece = see_piece;
    d->lines.to = d;
    if (build_set(d, err)) {
        diagnoser_free(d);
        return -1;
    }
    *out = d;
    return 0;
}

void diagnoser_feed(struct diagnoser *d, const char *bytes, size_t n)
{
    log_lines_feed(&d->lines, bytes, n);
}

/* At the end of a file: errors in it that training survived did no lasting harm. */
static void end_file(struct diagnoser *d)
{
    enum { STEPS_BEHIND = 3 };
    log_lines_end(&d->lines);
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = 0; w < N_WEIGHTS; w++)
            for (int c = 0; c < N_WORDINGS; c++) {
                struct hits *h = &d->hits[i][w][c];
                if (!h->seen || h->last_file != d->n_files)
                    continue;
                h->recovered = d->facts.progress.steps >= h->last_steps + STEPS_BEHIND;
                h->outlived = d->facts.progress.ends > h->last_ends;
            }
    d->facts.asked_for = 0;
    d->join.open = false;
    d->facts.trace.cut = d->facts.trace.open;
    d->facts.trace.open = false;
}

void diagnoser_mark_file(struct diagnoser *d, const char *name)
{
    end_file(d);
    char **grown = realloc(d->files, (d->n_files + 1) * sizeof(*grown));
    char *copy = strdup(name);
    if (!grown || !copy)
        abort();
    d->files = grown;
    d->files[d->n_files++] = copy;
}

bool diagnoser_saw_step(const struct diagnoser *d)
{
    return d->facts.progress.steps > 0;
}

void diagnoser_finish(struct diagnoser *d, const struct diagnose_context *ctx, struct arena *a,
                      struct diagnosis *out)
{
    end_file(d);
    struct judgement j = { .d = d, .ctx = ctx, .a = a, .log = &d->facts };
    judge(&j);
    diagnose_say(&j, out);
}

void diagnoser_free(struct diagnoser *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_files; i++)
        free(d->files[i]);
    free(d->files);
    match_set_free(d->set);
    free(d);
}
