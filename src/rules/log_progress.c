/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_progress.h"

#include "base/cleanup.h"
#include "base/match.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct log_find nothing;

/* 0 for a number that is zero, 1 for one above, -1 for anything else: all that most questions need. */
static int number_kind(const char *s, size_t n)
{
    size_t digits = 0;
    for (size_t i = 0; i < n && (isdigit((unsigned char)s[i]) || s[i] == '.'); i++) {
        if (s[i] > '0' && s[i] <= '9')
            return 1;
        digits += s[i] == '0';
    }
    return digits ? 0 : -1;
}

static bool has_title_of_training(const char *s, size_t n)
{
    return match_any(s, n, "step|poch|rain|iter");
}

static bool has_title_of_loading(const char *s, size_t n)
{
    return match_any(
        s, n,
        "load|fetch|shard|compil|warm|cach|captur|init|map|scan|token|filter|extract|.safetensors|.bin");
}

static bool has_letters(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isalpha((unsigned char)s[i]))
            return true;
    return false;
}

static void count_step(struct log_progress *p)
{
    p->steps++;
    p->stage = LOG_STAGE_STEPS;
}

/* A bar without a title, or with one of training, that has passed its first step. */
void log_progress_bar(struct log_progress *p, const char *s, size_t n, size_t at)
{
    const char *bar = memchr(s, '|', at), *count = memrchr(s, '|', at);
    if (!bar || count == bar)
        return;
    size_t title = (size_t)(bar - s);
    for (count++; count < s + n && *count == ' ';)
        count++;
    int done = number_kind(count, n - (size_t)(count - s));
    if (done == 1 && (!has_letters(s, title) || has_title_of_training(s, title)))
        count_step(p);
    else if (done >= 0)
        log_progress_stage(p, done == 0 || has_title_of_loading(s, title) ? LOG_STAGE_BUSY : LOG_STAGE_STEPS);
}

/* "step=510", "Step 7/20", "epoch [3/100]": a number above 0.  Settings that are only named so have no such number, or it
 * belongs to a longer word. */
void log_progress_count(struct log_progress *p, const char *s, size_t n, size_t after)
{
    size_t i = after;
    while (i < n && strchr(" :=#[(", s[i]))
        i++;
    if (i == after || number_kind(s + i, n - i) != 1)
        return;
    while (i < n && isdigit((unsigned char)s[i]))
        i++;
    bool of = i < n && (s[i] == '/' || match_any(s + i, n - i < 4 ? n - i : 4, "| |of "));
    if (of || match_any(s, after, "step"))
        p->stage = LOG_STAGE_STEPS;
}

/* "     1/1000      6.73G      1.081     0.4706" */
static void see_row(struct log_progress *p, const char *s, size_t n)
{
    size_t i = 0;
    p->table = false;
    while (i < n && s[i] == ' ')
        i++;
    size_t digits = i;
    while (i < n && isdigit((unsigned char)s[i]))
        i++;
    if (i > digits && i < n && s[i] == '/')
        count_step(p);
}

/* "Preparing the text ...": something began, unless steps say more. */
void log_progress_line(struct log_progress *p, const char *s, size_t n)
{
    enum { DOTS = 3, SHORTEST = 8 };
    p->behind_busy += n > 0;
    if (p->table)
        see_row(p, s, n);
    bool dots =
        n >= SHORTEST && s[n - 1] == '.' && !memcmp(s + n - DOTS, "...", DOTS) && s[n - DOTS - 1] != '.';
    if (dots && p->stage != LOG_STAGE_STEPS)
        log_progress_stage(p, LOG_STAGE_BUSY);
}

void log_progress_stage(struct log_progress *p, enum log_stage stage)
{
    p->stage = stage;
    p->ends += stage == LOG_STAGE_DONE;
    if (stage == LOG_STAGE_BUSY)
        p->behind_busy = 0;
}

/* Or infinite. */
static bool is_nan(const char *s, size_t n)
{
    if (n && (*s == '-' || *s == '+'))
        s++, n--;
    if (n < 3 || ((*s | 0x20) != 'n' && (*s | 0x20) != 'i'))
        return false;
    return (!strncasecmp(s, "nan", 3) || !strncasecmp(s, "inf", 3)) &&
           (n == 3 || !isalpha((unsigned char)s[3])); /* two streams may run into each other */
}

/* Where the value of 'key': 0.5, key=0.5, key: 0.5 or "key 0.5" starts; n: nowhere. */
static size_t value_of(const char *s, size_t n, size_t after)
{
    size_t i = after;
    while (i < n && strchr("'\" ", s[i]))
        i++;
    if (i < n && (s[i] == ':' || s[i] == '='))
        i++;
    else if (i == after)
        return n;
    while (i < n && strchr(" ('\"", s[i]))
        i++;
    return i;
}

struct log_find log_progress_grad_norm(const char *s, size_t n, size_t at)
{
    size_t v = value_of(s, n, at + strlen("grad_norm"));
    return v < n && is_nan(s + v, n - v) ? (struct log_find){ ISSUE_NAN, 80, RULE_CUDA } : nothing;
}

/* "logits nan: 32016"; a setting is called "skip_nan: 1". */
struct log_find log_progress_nan_count(const char *s, size_t n, size_t at)
{
    const char *colon = memchr(s + at, ':', n - at);
    size_t v = colon ? (size_t)(colon - s) + 1 : n;
    while (v < n && s[v] == ' ')
        v++;
    bool setting = match_any(s, n, "skip|allow|ignore|check|filter|detect|max|limit");
    return !setting && number_kind(s + v, n - v) == 1 ? (struct log_find){ ISSUE_NAN, 78, 0 } : nothing;
}

static bool is_zero_at(const char *s, size_t n, const char *key)
{
    const char *at = memmem(s, n, key, strlen(key));
    size_t v = at ? value_of(s, n, (size_t)(at - s) + strlen(key)) : n;
    return v < n && number_kind(s + v, n - v) == 0;
}

/* Is it the loss itself?  Its parts, such as an auxiliary loss, may well be 0. */
static bool is_whole_loss(const char *s, size_t at)
{
    static const char *const before[] = { "avr_",  "avg_",   "train_", "train/",
                                          "mean_", "total_", "step_",  "running_" };
    size_t from = at;
    while (from && (isalnum((unsigned char)s[from - 1]) || strchr("_/.-", s[from - 1])))
        from--;
    if (from == at)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        if (at - from == strlen(before[i]) && !strncasecmp(s + from, before[i], at - from))
            return true;
    return false;
}

/* "0.0012" or "8.1e-05". */
static bool is_tiny(const char *s, size_t n)
{
    if (n >= 4 && !memcmp(s, "0.00", 4))
        return true;
    size_t i = 0;
    while (i < n && (isdigit((unsigned char)s[i]) || s[i] == '.'))
        i++;
    return n - i >= 2 && s[i] == 'e' && s[i + 1] == '-';
}

/* Again and again exactly 0 is no success: the numbers are lost. */
static struct log_find see_zero_loss(struct log_progress *p, const char *s, size_t n, size_t at)
{
    enum { TWICE = 2 };
    if (!is_whole_loss(s, at) || p->loss_tiny)
        return nothing;
    p->loss_fine = false;
    p->zero_losses++;
    if (is_zero_at(s, n, "grad_norm"))
        return (struct log_find){ ISSUE_NAN, 82, RULE_CUDA };
    return p->zero_losses >= TWICE ? (struct log_find){ ISSUE_NAN, 72, RULE_CUDA } : nothing;
}

/* "loss_gen=nan", "loss/mel: nan"; other parts of a loss may well be 0. */
static struct log_find see_part(struct log_progress *p, const char *s, size_t n, size_t at)
{
    size_t end = at;
    while (end < n && (isalnum((unsigned char)s[end]) || s[end] == '_' || s[end] == '/'))
        end++;
    size_t v = value_of(s, n, end);
    if (v >= n || !is_nan(s + v, n - v) || match_any(s + at, end - at, "val|test|scale"))
        return nothing;
    p->loss_fine = false;
    return (struct log_find){ ISSUE_NAN, 86, RULE_CUDA };
}

/* The loss of a training step; that of an evaluation over nothing may well be nan. */
struct log_find log_progress_loss(struct log_progress *p, const char *s, size_t n, size_t at)
{
    if (at + 4 < n && (s[at + 4] == '_' || s[at + 4] == '/'))
        return see_part(p, s, n, at + 4);
    size_t v = value_of(s, n, at + 4);
    bool evaluation = at >= 4 && (s[at - 2] | 0x20) == 'l' && !strncasecmp(s + at - 4, "val", 3);
    if (v >= n || evaluation)
        return nothing;
    p->table = isalpha((unsigned char)s[v]) && match_any(s, at, "epoch|step|iter");
    if (is_nan(s + v, n - v)) {
        p->loss_fine = false;
        return (struct log_find){ ISSUE_NAN, 86, RULE_CUDA };
    }
    int loss = number_kind(s + v, n - v);
    if (loss < 0)
        return nothing;
    count_step(p);
    if (!loss)
        return see_zero_loss(p, s, n, at);
    p->loss_fine = true;
    p->loss_tiny = is_tiny(s + v, n - v);
    p->zero_losses = 0;
    return nothing;
}
