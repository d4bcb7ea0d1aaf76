/* SPDX-License-Identifier: Apache-2.0 */
#include "web/settings.h"

#include "base/str.h"
#include "base/suggest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct setting settings[] = {
    { "queue.paused", SETTING_BOOL, "false", NULL, "start no job from the queue" },
    { "queue.wait_idle", SETTING_BOOL, "true", NULL, "wait while another program uses the GPU" },
    { "ui.theme", SETTING_WORD, "system", "system|light|dark", "colors of the page" },
    { "ui.language", SETTING_WORD, "en", "en", "language of the page" },
    { "ui.notify", SETTING_BOOL, "false", NULL, "notify by the browser when a job ends" },
    { "ui.smoothing", SETTING_SHARE, "0.6", NULL, "smoothing of curves" },
    { "ui.axis", SETTING_WORD, "step", "step|time", "the horizontal axis of curves" },
};
const size_t n_settings = ARRAY_LEN(settings);

static const struct setting *find(const char *key)
{
    for (size_t i = 0; i < n_settings; i++)
        if (!strcmp(settings[i].key, key))
            return &settings[i];
    return NULL;
}

/* ---- values as they are stored ---- */

static bool is_valid(const struct setting *s, const char *value)
{
    char *end;
    if (s->type == SETTING_BOOL)
        return !strcmp(value, "true") || !strcmp(value, "false");
    if (s->type == SETTING_WORD)
        return *value && !strchr(value, '|') && str_list_has(s->words, '|', value);
    double v = strtod(value, &end);
    return end != value && !*end && v >= 0 && v < 1;
}

/* NULL: the value has another type, or is out of range. */
static const char *stored(const struct setting *s, const struct json *v, struct arena *a)
{
    const char *text = json_text(v);
    if (s->type == SETTING_BOOL)
        text = json_bool(v, true) == json_bool(v, false) ? json_bool(v, false) ? "true" : "false" : NULL;
    else if (s->type == SETTING_SHARE)
        text = json_number(v, -1) >= 0 ? arena_printf(a, "%.9g", json_number(v, -1)) : NULL;
    return text && is_valid(s, text) ? text : NULL;
}

static void add_value(struct json *o, const char *key, const struct setting *s, const char *value)
{
    if (s->type == SETTING_BOOL)
        json_add_bool(o, key, !strcmp(value, "true"));
    else if (s->type == SETTING_WORD)
        json_add_text(o, key, value);
    else
        json_add_real(o, key, strtod(value, NULL));
}

/* ---- reading ---- */

static void add_words(struct json *o, const struct setting *s)
{
    struct json *list = json_add_array(o, "words");
    for (const char *at = s->words; at && *at;) {
        char word[32];
        size_t n = strcspn(at, "|");
        snprintf(word, sizeof(word), "%.*s", (int)n, at);
        json_add_text(list, NULL, word);
        at += n + (at[n] == '|');
    }
}

static void add_key(struct json *list, const struct setting *s)
{
    static const char *const types[] = {
        [SETTING_BOOL] = "bool", [SETTING_WORD] = "word", [SETTING_SHARE] = "share"
    };
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "key", s->key);
    json_add_text(o, "type", types[s->type]);
    add_value(o, "default", s, s->preset);
    add_words(o, s);
    json_add_text(o, "about", s->about);
}

int settings_report(struct store *store, struct json **out, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    struct json *values = json_add_object(v, "settings"), *keys = json_add_array(v, "keys");
    for (size_t i = 0; i < n_settings; i++) {
        const struct setting *s = &settings[i];
        const char *value;
        if (store_setting(store, s->key, &a, &value, err))
            return -1;
        add_value(values, s->key, s, value && is_valid(s, value) ? value : s->preset);
        add_key(keys, s);
    }
    *out = TAKE(v);
    return 0;
}

/* ---- changing ---- */

static int unknown(const char *key, struct cairn_error *err)
{
    struct suggestion near = { .word = key };
    for (size_t i = 0; i < n_settings; i++)
        suggest_try(&near, settings[i].key);
    cairn_fail(err, CAIRN_EUSAGE, "there is no setting \"%.60s\"", key);
    return near.best ? cairn_hint(err, "did you mean %s?", near.best) : -1;
}

static int check(const struct json_member *m, struct arena *a, struct cairn_error *err)
{
    const struct setting *s = find(m->key);
    if (!s)
        return unknown(m->key, err);
    if (stored(s, m->value, a))
        return 0;
    return cairn_fail(err, CAIRN_EUSAGE, "%s must be %s%s", s->key,
                      s->type == SETTING_BOOL   ? "true or false"
                      : s->type == SETTING_WORD ? "one of "
                                                : "a number from 0 to below 1",
                      s->type == SETTING_WORD ? s->words : "");
}

int settings_change(struct store *store, const struct json *wanted, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (struct json_member m = json_first(wanted); m.key; m = json_next(wanted, m))
        if (check(&m, &a, err))
            return -1;
    for (struct json_member m = json_first(wanted); m.key; m = json_next(wanted, m))
        if (store_set_setting(store, m.key, stored(find(m.key), m.value, &a), err))
            return -1;
    return 0;
}
