/* SPDX-License-Identifier: Apache-2.0
 * How far another trainer is, from the end of its log: the progress bar of its training, and its last loss.
 *
 * A log has other bars: loading, caching, and samples or evaluations in the middle of the training. */
#include "base/cleanup.h"
#include "base/match.h"
#include "base/str.h"
#include "job/progress.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DIGITS_MOST = 12 };

/* What a bar is about. */
enum about {
    ABOUT_NOTHING,  /* no bar yet */
    ABOUT_UNKNOWN,  /* a bar without a title, or with the name of a job */
    ABOUT_TRAINING, /* its title or a loss in it says so */
};

struct reading {
    struct job_progress bar;
    enum about about;
    bool has_step; /* `bar` is from the last line */
    bool has_loss;
    double loss;
};

static bool is_of_training(const char *title, size_t n)
{
    return match_any(title, n, "step|epoch|train|iter");
}

static bool is_of_something_else(const char *title, size_t n)
{
    return match_any(
        title, n,
        "loading|fetching|shards|compiling|warm|caching|cache|capturing|scanning|mapping|map:|map (|"
        "tokeniz|filter|extract|sampling|generating|saving|validat|evaluat|quantiz|convert|"
        "safetensors|.bin|total progress|benchmark");
}

/* Digits from s on, at most `n`; -1: none, or too many. */
static int64_t number_at(const char *s, size_t n)
{
    size_t i = 0;
    int64_t v = 0;
    for (; i < n && isdigit((unsigned char)s[i]); i++)
        v = i < DIGITS_MOST ? v * 10 + (s[i] - '0') : -1;
    return i && i <= DIGITS_MOST ? v : -1;
}

/* "01:02:03", "02:03"; -1: no time, such as "?". */
static double clock_time(const char *s, const char *end)
{
    double sum = 0;
    for (int parts = 0; parts < 3; parts++) {
        int64_t v = number_at(s, (size_t)(end - s));
        if (v < 0)
            return -1;
        sum = sum * 60 + (double)v;
        while (s < end && isdigit((unsigned char)*s))
            s++;
        if (s == end || *s != ':')
            return parts ? sum : -1;
        s++;
    }
    return -1;
}

/* "00:31<20:11, 2.48s/it, loss=0.5" */
static void read_times(const char *s, const char *end, struct job_progress *out)
{
    const char *left = memchr(s, '<', (size_t)(end - s)), *rate = memchr(s, ',', (size_t)(end - s));
    char *unit;
    if (left)
        out->eta_s = clock_time(left + 1, end);
    if (!rate)
        return;
    double v = strtod(rate + 1, &unit);
    if (v > 0 && isfinite(v) && str_starts(unit, "s/it"))
        out->s_per_it = v;
    else if (v > 0 && isfinite(v) && str_starts(unit, "it/s"))
        out->s_per_it = 1 / v;
}

/* A bar inside another, of an evaluation for instance, is the shorter one. */
static bool is_inside(const struct job_progress *bar, const struct job_progress *outer)
{
    return bar->steps < outer->steps && outer->step < outer->steps;
}

/* "title:  12%|##   | 12/500 [00:31<20:11, 2.48s/it, loss=0.5]"; slash is that of the count. */
static void read_bar(const char *line, const char *slash, const char *end, struct reading *r)
{
    const char *at = slash, *behind = slash + 1;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    while (behind < end && isdigit((unsigned char)*behind))
        behind++;
    struct job_progress bar = { .step = number_at(at, (size_t)(slash - at)),
                                .steps = number_at(slash + 1, (size_t)(end - slash - 1)),
                                .s_per_it = -1,
                                .eta_s = -1,
                                .mem_bytes = -1 };
    if (bar.step < 0 || bar.steps <= 0 || end - behind < 3 || memcmp(behind, " [", 2) != 0 ||
        !strchr("0123456789=>.", behind[2])) /* a time, or the bar of Keras */
        return;
    const char *percent = memchr(line, '|', (size_t)(at - line));
    size_t title = (size_t)((percent ? percent : at) - line);
    bool training = is_of_training(line, title) || match_any(behind, (size_t)(end - behind), "loss");
    if (!training && is_of_something_else(line, title))
        return;
    enum about about = training ? ABOUT_TRAINING : ABOUT_UNKNOWN;
    if (about < r->about || (about == r->about && is_inside(&bar, &r->bar)))
        return;
    read_times(behind + 2, end, &bar);
    r->bar = bar;
    r->about = about;
    r->has_step = true;
}

/* "Step 85700/300000; ...", "iteration       50/    1000 | ..." */
static void read_count(const char *line, const char *slash, const char *end, struct reading *r)
{
    static const char *const words[] = { "step", "steps", "iter", "iteration" };
    const char *at = slash, *total = slash + 1;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    const char *word_end = at;
    while (word_end > line && strchr(" :=#[(", word_end[-1]))
        word_end--;
    while (total < end && *total == ' ')
        total++;
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(words) && word_end < at; i++) {
        size_t n = strlen(words[i]);
        found |= (size_t)(word_end - line) >= n && !strncasecmp(word_end - n, words[i], n);
    }
    int64_t step = number_at(at, (size_t)(slash - at)), steps = number_at(total, (size_t)(end - total));
    if (!found || step < 0 || steps <= 0 || step > steps)
        return;
    r->bar =
        (struct job_progress){ .step = step, .steps = steps, .s_per_it = -1, .eta_s = -1, .mem_bytes = -1 };
    r->about = ABOUT_TRAINING;
    r->has_step = true;
}

/* Its parts and those of other data are not the loss of the training. */
static bool is_whole_loss(const char *line, const char *word)
{
    static const char *const before[] = { "avr_",  "avg_",   "train_", "train/",
                                          "mean_", "total_", "step_",  "running_" },
                             *const others[] = { "val ", "eval ", "valid ", "validation ", "test " };
    const char *from = word;
    while (from > line && (isalnum((unsigned char)from[-1]) || strchr("_/.-", from[-1])))
        from--;
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        if ((size_t)(word - from) == strlen(before[i]) && !memcmp(from, before[i], (size_t)(word - from)))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if ((size_t)(from - line) >= strlen(others[i]) &&
            !memcmp(from - strlen(others[i]), others[i], strlen(others[i])))
            return false;
    return from == word;
}

/* "loss: 1.2e-01", "avr_loss=0.12", "'loss': 0.5", "loss nan" */
static void read_loss(const char *line, const char *word, struct reading *r)
{
    char *end;
    const char *at = word + strlen("loss");
    size_t between = strspn(at, "'\": =");
    if (!between || !is_whole_loss(line, word))
        return;
    double v = strtod(at + between, &end);
    if (end == at + between || isalpha((unsigned char)*end))
        return;
    r->has_loss = true;
    r->loss = v;
}

static void read_line(const char *line, const char *end, struct reading *r)
{
    for (const char *p = line; p < end; p++)
        if (*p == '/') {
            read_bar(line, p, end, r);
            read_count(line, p, end, r);
        } else if ((*p == 'l' || *p == 'L') && end - p > 4 && !memcmp(p + 1, "oss", 3))
            read_loss(line, p, r);
}

void job_progress_of_text(const char *text, size_t n, struct job_progress *out)
{
    struct reading r = { .bar = job_progress_unknown };
    CLEANUP(mem_free) char *copy = n ? strndup(text, n) : NULL; /* ends with a NUL, which strtod needs */
    for (char *line = copy; line && *line;) {
        char *end = line + strcspn(line, "\r\n");
        bool last = !*end;
        *end = '\0';
        read_line(line, end, &r);
        line = last ? NULL : end + 1;
    }
    *out = r.bar;
    out->has_loss = r.has_loss;
    out->loss = r.loss;
    if (out->eta_s < 0 && out->s_per_it > 0 && out->step >= 0 && out->steps >= out->step)
        out->eta_s = out->s_per_it * (double)(out->steps - out->step);
}

/* ---- whole logs ---- */

struct job_progress_lines {
    struct reading r;
};

struct job_progress_lines *job_progress_lines_new(void)
{
    struct job_progress_lines *p = calloc(1, sizeof(*p));
    if (!p)
        abort();
    p->r.bar = job_progress_unknown;
    return p;
}

void job_progress_lines_free(struct job_progress_lines *p)
{
    free(p);
}

/* Some trainers print the loss in a line of its own, after the bar. */
bool job_progress_line(struct job_progress_lines *p, const char *line, struct job_progress *out)
{
    struct reading *r = &p->r;
    r->has_step = r->has_loss = false;
    read_line(line, line + strlen(line), r);
    *out = r->bar;
    out->has_loss = r->has_loss;
    out->loss = r->loss;
    return r->has_step || (r->has_loss && r->bar.step >= 0);
}
