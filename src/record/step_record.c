/* SPDX-License-Identifier: Apache-2.0 */
#include "record/step_record.h"

#include "base/json.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[METRIC_COUNT] = {
    [METRIC_LOSS] = "loss",
    [METRIC_VAL_LOSS] = "val_loss",
    [METRIC_VAL_LOSS_Q1] = "val_loss_q1",
    [METRIC_VAL_LOSS_Q2] = "val_loss_q2",
    [METRIC_VAL_LOSS_Q3] = "val_loss_q3",
    [METRIC_VAL_LOSS_Q4] = "val_loss_q4",
    [METRIC_LR] = "lr",
    [METRIC_GRAD_NORM] = "grad_norm",
    [METRIC_TOKENS_PER_S] = "tokens_per_s",
    [METRIC_S_PER_IT] = "s_per_it",
    [METRIC_MEM_BYTES] = "mem_bytes",
    [METRIC_MEM_ALLOCATED] = "mem_allocated_bytes",
    [METRIC_MEM_RESERVED] = "mem_reserved_bytes",
    [METRIC_MEM_PEAK] = "mem_peak_bytes",
    [METRIC_MEM_HOST] = "mem_host_bytes",
    [METRIC_MEM_HOLE] = "mem_hole_bytes",
    [METRIC_MEM_FRAGMENTATION] = "mem_fragmentation",
    [METRIC_MEM_RELEASED] = "mem_released",
    [METRIC_MEM_COMPACTED] = "mem_compacted",
    [METRIC_MEM_EVICTED] = "mem_evicted",
    [METRIC_MEM_REFUSED] = "mem_refused",
    [METRIC_COPY_SMALL_RING] = "copy_small_ring",
    [METRIC_COPY_PAGEABLE] = "copy_pageable",
    [METRIC_COPY_STEPS] = "copy_steps",
    [METRIC_COPY_PIECES] = "copy_pieces",
    [METRIC_COPY_REFUSED] = "copy_refused",
    [METRIC_LOSS_SCALE] = "loss_scale",
    [METRIC_ELAPSED_S] = "elapsed_s",
};

const char *metric_key(enum metric m)
{
    return keys[m];
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
    str_addf(out, ",\"%s\":", keys[which]);
    if (!isfinite(v))
        str_addf(out, "null,\"%s_is\":\"%s\"", keys[which], isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
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
        double number = json_number(json_get(v, keys[i]), NAN);
        snprintf(word, sizeof(word), "%s_is", keys[i]);
        if (!isnan(number))
            step_record_set(out, i, number);
        else
            set_word(out, i, json_text(json_get(v, word)));
    }
    const char *event = json_text(json_get(v, "event"));
    out->event = event ? find_event(event, strlen(event)) : NULL;
    return 0;
}

/* The metric of a key, and the suffix after its name ("_is"); METRIC_COUNT if there is none. */
static enum metric find_key(const char *key, size_t len, const char *behind)
{
    size_t more = strlen(behind);
    for (int i = 0; i < METRIC_COUNT; i++) {
        size_t n = strlen(keys[i]);
        if (len == n + more && !memcmp(key, keys[i], n) && !memcmp(key + n, behind, more))
            return i;
    }
    return METRIC_COUNT;
}

/* A number that ends where its characters end. */
static const char *scan_number(const char *at, double *out)
{
    size_t n = strspn(at, "0123456789+-.eE");
    char *end;
    *out = strtod(at, &end);
    return n && end == at + n ? end : NULL;
}

static const char *scan_word(const char *key, size_t len, const char *at, struct step_record *out)
{
    size_t n = strcspn(at, "\"\\\n");
    enum metric which = find_key(key, len, "_is");
    char word[8] = "";
    if (len == 5 && !memcmp(key, "event", 5))
        out->event = find_event(at, n);
    memcpy(word, at, n < sizeof(word) ? n : 0);
    if (which < METRIC_COUNT && !step_record_has(out, which))
        set_word(out, which, word);
    return at[n] == '"' ? at + n + 1 : NULL;
}

static const char *scan_step(const char *at, struct step_record *out)
{
    char *end;
    out->step = strtoull(at, &end, 10);
    return end;
}

/* Parses the value of a key, if it is of a kind that step_record_add_line writes; returns the text after
 * it. */
static const char *scan_value(const char *key, size_t len, const char *at, struct step_record *out)
{
    double number;
    if (*at == '"')
        return scan_word(key, len, at + 1, out);
    if (str_starts(at, "null"))
        return at + 4;
    if (len == 4 && !memcmp(key, "step", 4))
        return scan_step(at, out);
    enum metric which = find_key(key, len, "");
    at = scan_number(at, &number);
    if (at && which < METRIC_COUNT)
        step_record_set(out, which, number);
    return at;
}

/* A fast path for lines that step_record_add_line wrote: logs are long, and building a JSON value per line is
 * slow. False: the line has another form.  Never reads beyond its line feed. */
static bool scan_line(const char *at, struct step_record *out)
{
    if (!str_starts(at, "{\"step\":") || at[8] < '0' || at[8] > '9')
        return false;
    do {
        if (at[1] != '"')
            return false;
        const char *key = at + 2;
        size_t n = strcspn(key, "\"\\\n");
        if (key[n] != '"' || key[n + 1] != ':' || !(at = scan_value(key, n, key + n + 2, out)))
            return false;
    } while (*at == ',');
    return at[0] == '}' && at[1] == '\n';
}

int step_record_parse(const char *line, size_t len, struct step_record *out, struct cairn_error *err)
{
    struct step_record m = { 0 };
    if (!len || line[len - 1] != '\n' || memchr(line, 0, len) || !scan_line(line, &m)) {
        m = (struct step_record){ 0 };
        if (parse_json(line, len, &m, err))
            return -1;
    }
    *out = m;
    return 0;
}
