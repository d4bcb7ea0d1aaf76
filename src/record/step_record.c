/* SPDX-License-Identifier: Apache-2.0 */
#include "record/step_record.h"

#include "base/json.h"
#include "base/parse.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(word)               \
    {                           \
        word, sizeof(word) - 1, \
    }
static const struct {
    const char *text;
    size_t length;
} keys[METRIC_COUNT] = {
    [METRIC_LOSS] = KEY("loss"),
    [METRIC_VAL_LOSS] = KEY("val_loss"),
    [METRIC_VAL_LOSS_Q1] = KEY("val_loss_q1"),
    [METRIC_VAL_LOSS_Q2] = KEY("val_loss_q2"),
    [METRIC_VAL_LOSS_Q3] = KEY("val_loss_q3"),
    [METRIC_VAL_LOSS_Q4] = KEY("val_loss_q4"),
    [METRIC_LR] = KEY("lr"),
    [METRIC_GRAD_NORM] = KEY("grad_norm"),
    [METRIC_TOKENS_PER_S] = KEY("tokens_per_s"),
    [METRIC_S_PER_IT] = KEY("s_per_it"),
    [METRIC_MEM_BYTES] = KEY("mem_bytes"),
    [METRIC_MEM_ALLOCATED] = KEY("mem_allocated_bytes"),
    [METRIC_MEM_RESERVED] = KEY("mem_reserved_bytes"),
    [METRIC_MEM_PEAK] = KEY("mem_peak_bytes"),
    [METRIC_MEM_HOST] = KEY("mem_host_bytes"),
    [METRIC_MEM_HOLE] = KEY("mem_hole_bytes"),
    [METRIC_MEM_FRAGMENTATION] = KEY("mem_fragmentation"),
    [METRIC_MEM_RELEASED] = KEY("mem_released"),
    [METRIC_MEM_COMPACTED] = KEY("mem_compacted"),
    [METRIC_MEM_EVICTED] = KEY("mem_evicted"),
    [METRIC_MEM_REFUSED] = KEY("mem_refused"),
    [METRIC_COPY_SMALL_RING] = KEY("copy_small_ring"),
    [METRIC_COPY_PAGEABLE] = KEY("copy_pageable"),
    [METRIC_COPY_STEPS] = KEY("copy_steps"),
    [METRIC_COPY_PIECES] = KEY("copy_pieces"),
    [METRIC_COPY_REFUSED] = KEY("copy_refused"),
    [METRIC_LOSS_SCALE] = KEY("loss_scale"),
    [METRIC_ELAPSED_S] = KEY("elapsed_s"),
};

const char *metric_key(enum metric m)
{
    return keys[m].text;
}

_Static_assert(METRIC_COUNT <= 8 * sizeof(((struct step_record *)0)->has), "a bit for each metric");

void step_record_set(struct step_record *m, enum metric which, double value)
{
    m->has |= 1u << which;
    m->value[which] = value;
}

bool step_record_has(const struct step_record *m, enum metric which)
{
    return m->has >> which & 1;
}

/* The shortest text that reads back as the same value: as a float if it is one. */
static void add_number(struct str *out, double v)
{
    char text[40];
    bool is_float = (double)(float)v == v;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v || (is_float && strtof(text, NULL) == (float)v))
            break;
    }
    str_add(out, text);
}

static void add_metric(struct str *out, enum metric which, double v)
{
    str_addf(out, ",\"%s\":", keys[which].text);
    if (!isfinite(v))
        str_addf(out, "null,\"%s_is\":\"%s\"", keys[which].text, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    else if (which >= METRIC_MEM_BYTES && which <= METRIC_MEM_HOLE)
        str_addf(out, "%.0f", v);
    else if (which == METRIC_ELAPSED_S)
        str_addf(out, "%.3f", v);
    else
        add_number(out, v);
}

/* The members of a small object, without its braces: the JSON library escapes strings. */
static void add_words(struct str *out, const char *event, const char *note)
{
    CLEANUP(json_cleanup) struct json *words = json_new_object();
    if (event)
        json_add_text(words, "event", event);
    if (note)
        json_add_text(words, "note", note);
    CLEANUP(mem_free) char *text = json_to_string(words);
    str_add(out, ",");
    str_addn(out, text + 1, strlen(text) - 2);
}

void step_record_add_line(const struct step_record *m, struct str *out)
{
    str_addf(out, "{\"step\":%" PRIu64, m->step);
    for (int i = 0; i < METRIC_COUNT; i++)
        if (step_record_has(m, i))
            add_metric(out, i, m->value[i]);
    if (m->event || m->note)
        add_words(out, m->event, m->note);
    str_add(out, "}\n");
}

/* NULL: not an event that plots mark. */
static const char *find_event(const char *word, size_t len)
{
    static const char *const events[] = { "oom",       "memory-back",  "fragmentation",     "host-memory",
                                          "slow-step", "restart",      "checkpoint-failed", "weights-by-host",
                                          "copies",    "sample-failed" };
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (strlen(events[i]) == len && !memcmp(events[i], word, len))
            return events[i];
    return NULL;
}

/* "nan", "inf" and "-inf" accompany a null. */
static void set_word(struct step_record *out, enum metric which, const char *word)
{
    if (str_eq(word, "nan"))
        step_record_set(out, which, NAN);
    else if (str_eq(word, "inf") || str_eq(word, "-inf"))
        step_record_set(out, which, *word == '-' ? -INFINITY : INFINITY);
}

static int parse_json(const char *line, size_t len, struct step_record *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    char word[32];
    if (json_parse(line, len, &v, err))
        return -1;
    if (!json_to_u64(json_get(v, "step"), &out->step))
        return cairn_fail(err, CAIRN_EFORMAT, "the line has no step");
    for (int i = 0; i < METRIC_COUNT; i++) {
        double number = json_number(json_get(v, keys[i].text), NAN);
        snprintf(word, sizeof(word), "%s_is", keys[i].text);
        if (!isnan(number))
            step_record_set(out, i, number);
        else
            set_word(out, i, json_text(json_get(v, word)));
    }
    const char *event = json_text(json_get(v, "event"));
    out->event = event ? find_event(event, strlen(event)) : NULL;
    return 0;
}

/* ---- the fast path: lines that step_record_add_line wrote.  Logs are long, and building a JSON value per line is
 * slow ---- */

/* Where a scan is: metrics come in the order of the enum, so each is looked for behind the one before. */
struct scan {
    struct step_record *out;
    unsigned wanted;
    enum metric next;
    const char *end; /* of the line */
};

static bool is_key(int i, const char *key, size_t len)
{
    return len == keys[i].length && !memcmp(key, keys[i].text, len);
}

/* METRIC_COUNT: none. */
static enum metric find_key(const char *key, size_t len)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (is_key(i, key, len))
            return i;
    return METRIC_COUNT;
}

/* The next metric whose key comes here; METRIC_COUNT: none of the few that are likely. */
static enum metric expect_key(const struct scan *s, const char *at)
{
    enum { AHEAD = 8 };
    for (int i = s->next; i < METRIC_COUNT && i < (int)s->next + AHEAD; i++) {
        const char *key = keys[i].text;
        if (at[0] == key[0] && (size_t)(s->end - at) > keys[i].length + 1 &&
            !memcmp(at, key, keys[i].length) && at[keys[i].length] == '"' && at[keys[i].length + 1] == ':')
            return i;
    }
    return METRIC_COUNT;
}

static const char *scan_word(struct scan *s, const char *key, size_t len, const char *at)
{
    size_t n = strcspn(at, "\"\\\n");
    enum metric which = len > 3 && !memcmp(key + len - 3, "_is", 3) ? find_key(key, len - 3) : METRIC_COUNT;
    char word[8] = "";
    if (len == 5 && !memcmp(key, "event", 5))
        s->out->event = find_event(at, n);
    memcpy(word, at, n < sizeof(word) ? n : 0);
    if (which < METRIC_COUNT && !step_record_has(s->out, which))
        set_word(s->out, which, word);
    return at[n] == '"' ? at + n + 1 : NULL;
}

static const char *scan_step(const char *at, struct step_record *out)
{
    const char *first = at;
    uint64_t step = 0;
    for (unsigned digit; (digit = (unsigned)*at - '0') < 10; at++)
        step = step * 10 + digit;
    out->step = step;
    return at - first < 20 ? at : NULL; /* else it may not fit */
}

static const char *scan_metric(struct scan *s, enum metric which, const char *at)
{
    double number;
    at = cairn_scan_real(at, &number);
    if (at && which < METRIC_COUNT) {
        step_record_set(s->out, which, number);
        s->next = which + 1;
    }
    return at;
}

/* Parses the value of a key, if it is of a kind that step_record_add_line writes; returns the text after
 * it. */
static const char *scan_value(struct scan *s, const char *key, size_t len, const char *at)
{
    if (*at == '"')
        return scan_word(s, key, len, at + 1);
    if (*at == 'n')
        return str_starts(at, "null") ? at + 4 : NULL;
    if (len == 4 && !memcmp(key, "step", 4))
        return scan_step(at, s->out);
    return scan_metric(s, find_key(key, len), at);
}

/* A key and its value; returns the text after them. */
static const char *scan_member(struct scan *s, const char *key)
{
    enum metric which = expect_key(s, key);
    size_t n = 0;
    if (which < METRIC_COUNT) {
        n = keys[which].length;
        char first = key[n + 2];
        if (first == '-' || (first >= '0' && first <= '9'))
            return scan_metric(s, which, key + n + 2);
    }
    while (key[n] != '"' && key[n] != '\\' && key[n] != '\n')
        n++;
    return key[n] == '"' && key[n + 1] == ':' ? scan_value(s, key, n, key + n + 2) : NULL;
}

/* Whether the rest of the line has nothing that is wanted: no further metric, and no word. */
static bool is_enough(const struct scan *s, const char *line, size_t len)
{
    return s->next < METRIC_COUNT && !(s->wanted >> s->next) && len > 3 && line[len - 2] == '}' &&
           line[len - 3] != '"';
}

/* False: the line has another form.  Never reads beyond its line feed. */
static bool scan_line(const char *line, size_t len, unsigned wanted, struct step_record *out)
{
    struct scan s = { .out = out, .wanted = wanted, .end = line + len };
    const char *at = line;
    if (len < 10 || memcmp(at, "{\"step\":", 8) != 0 || at[8] < '0' || at[8] > '9')
        return false;
    do {
        if (at[1] != '"' || !(at = scan_member(&s, at + 2)))
            return false;
        if (*at == ',' && is_enough(&s, line, len))
            return true;
    } while (*at == ',');
    return at[0] == '}' && at[1] == '\n';
}

int step_record_parse_some(const char *line, size_t len, unsigned wanted, struct step_record *out,
                           struct cairn_error *err)
{
    struct step_record m = { 0 };
    if (!len || line[len - 1] != '\n' || memchr(line, 0, len) || !scan_line(line, len, wanted, &m)) {
        m = (struct step_record){ 0 };
        if (parse_json(line, len, &m, err))
            return -1;
    }
    *out = m;
    return 0;
}

int step_record_parse(const char *line, size_t len, struct step_record *out, struct cairn_error *err)
{
    return step_record_parse_some(line, len, ~0u, out, err);
}
