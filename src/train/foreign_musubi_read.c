/* SPDX-License-Identifier: Apache-2.0
 * Options of wan_train_network.py from a command line, as argparse reads it, and from a TOML file. */
#include "base/parse.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "os/path.h"
#include "train/foreign_musubi_inside.h"
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is set ---- */

static size_t index_of(const char *name)
{
    for (size_t i = 0; i < n_musubi_options; i++)
        if (!strcmp(musubi_options[i].name, name))
            return i;
    return n_musubi_options;
}

const struct musubi_setting *musubi_find(const struct musubi_job *j, const char *name)
{
    const struct musubi_setting *s = &j->set[index_of(name)];
    return s->value ? s : NULL;
}

const char *musubi_text(const struct musubi_job *j, const char *name)
{
    const struct musubi_setting *s = musubi_find(j, name);
    return s && s->n && s->value[0][0] ? s->value[0] : NULL;
}

bool musubi_flag(const struct musubi_job *j, const char *name)
{
    return str_eq(musubi_text(j, name), "true");
}

bool musubi_parse_real(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text && !isspace((unsigned char)*text) && !*end && isfinite(*out);
}

double musubi_real(const struct musubi_job *j, const char *name, double preset)
{
    const char *text = musubi_text(j, name);
    double v;
    return text && musubi_parse_real(text, &v) ? v : preset;
}

int64_t musubi_int(const struct musubi_job *j, const char *name, int64_t preset)
{
    const char *text = musubi_text(j, name);
    int64_t v;
    return text && cairn_parse_i64(text, &v) ? v : preset;
}

static bool parse_share(const char *text, double *out)
{
    size_t n = strlen(text);
    char number[64];
    if (!n || n >= sizeof(number))
        return false;
    bool percent = text[n - 1] == '%';
    snprintf(number, sizeof(number), "%.*s", (int)(n - percent), text);
    if (!musubi_parse_real(number, out) || *out < 0)
        return false;
    *out /= percent ? 100 : 1;
    return true;
}

int64_t musubi_share(const struct musubi_job *j, const char *name, int64_t all)
{
    const char *text = musubi_text(j, name);
    double v = 0;
    if (!text || !parse_share(text, &v))
        return 0;
    return v < 1 || strchr(text, '%') ? (int64_t)(v * (double)all) : (int64_t)v;
}

void musubi_add(struct musubi_job *j, const char *name, const char *key, const char *fmt, ...)
{
    const struct musubi_setting *s = musubi_find(j, name);
    va_list ap;
    va_start(ap, fmt);
    const char *value = arena_vprintf(j->a, fmt, ap);
    va_end(ap);
    foreign_add(j->out, j->a, key, value, s ? s->place : NULL, s ? s->name : NULL);
}

/* "--dit", "job.toml:3:1: dit"; "job.toml: dit" of one that the file lacks */
static const char *place_of(const struct musubi_job *j, const char *name)
{
    const struct musubi_setting *s = musubi_find(j, name);
    if (!s)
        return j->out->file ? arena_printf(j->a, "%s: %s", j->out->file, name)
                            : arena_printf(j->a, "--%s", name);
    return strcmp(s->place, s->name) ? arena_printf(j->a, "%s: %s", s->place, s->name) : s->place;
}

int musubi_refuse(struct musubi_job *j, const char *name, const char *remedy, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(j->a, fmt, ap);
    va_end(ap);
    cairn_fail(j->err, CAIRN_EUSAGE, "%s: %s", place_of(j, name), text);
    return cairn_hint(j->err, "%s", remedy);
}

int musubi_wrap(struct musubi_job *j, const char *name, const char *remedy)
{
    cairn_wrap(j->err, "%s", place_of(j, name));
    return j->err->hint[0] ? -1 : cairn_hint(j->err, "%s", remedy);
}

/* ---- values ---- */

static bool is_right(const struct musubi_option *o, const char *text)
{
    double real;
    int64_t whole;
    switch (o->type) {
    case MUSUBI_INT:
        return cairn_parse_i64(text, &whole);
    case MUSUBI_REAL:
        return musubi_parse_real(text, &real);
    case MUSUBI_SHARE:
        return parse_share(text, &real);
    case MUSUBI_WORD:
        return !strchr(text, ' ') && str_list_has(o->words, ' ', text);
    case MUSUBI_FLAG:
        return !strcmp(text, "true") || !strcmp(text, "false");
    case MUSUBI_TEXT:
    case MUSUBI_LIST:
        break;
    }
    return true;
}

static const char *expected(const struct musubi_option *o, struct arena *a)
{
    static const char *const texts[] = {
        [MUSUBI_FLAG] = "true or false",
        [MUSUBI_TEXT] = "a text",
        [MUSUBI_INT] = "a whole number",
        [MUSUBI_REAL] = "a number",
        [MUSUBI_SHARE] = "a number of steps, or a share such as 0.1 or 10%",
        [MUSUBI_LIST] = "a list of texts",
    };
    return o->type == MUSUBI_WORD ? arena_printf(a, "one of %s", o->words) : texts[o->type];
}

static int check(struct musubi_job *j, size_t index)
{
    const struct musubi_option *o = &musubi_options[index];
    struct musubi_setting *s = &j->set[index];
    for (size_t i = 0; i < s->n; i++)
        if (!is_right(o, s->value[i])) {
            CLEANUP(str_release) struct str shown = { 0 };
            str_add_clean(&shown, s->value[i], strlen(s->value[i]));
            struct suggestion near = { .word = s->value[i] };
            for (const char *p = o->words; p && *p; p += strcspn(p, " "), p += *p == ' ')
                suggest_try(&near, arena_strndup(j->a, p, strcspn(p, " ")));
            const char *remedy =
                near.best ? arena_printf(j->a, "did you mean %s?", near.best) : MUSUBI_CORRECT;
            return musubi_refuse(j, o->name, remedy, "\"%.60s\" is not %s", shown.s ? shown.s : "",
                                 expected(o, j->a));
        }
    return 0;
}

/* ---- the command line ---- */

/* An option by its name or a prefix that no other has; n_musubi_options after an error. */
static size_t find_option(struct musubi_job *j, const char *word, size_t len)
{
    size_t found = n_musubi_options, matches = 0;
    const char *typed = arena_strndup(j->a, word, len);
    CLEANUP(str_release) struct str names = { 0 };
    for (size_t i = 0; i < n_musubi_options; i++) {
        if (!str_starts(musubi_options[i].name, typed) || !len)
            continue;
        if (!strcmp(musubi_options[i].name, typed))
            return i;
        str_addf(&names, "%s--%s", matches++ ? ", " : "", musubi_options[i].name);
        found = i;
    }
    if (matches == 1)
        return found;
    if (matches) {
        cairn_fail(j->err, CAIRN_EUSAGE, "--%s: it may be %.200s", typed, names.s);
        cairn_hint(j->err, "write the whole name");
        return n_musubi_options;
    }
    struct suggestion near = { .word = typed };
    for (size_t i = 0; i < n_musubi_options; i++)
        suggest_try(&near, musubi_options[i].name);
    cairn_fail(j->err, CAIRN_EUSAGE, "--%.80s: wan_train_network.py has no such option", typed);
    if (near.best)
        cairn_hint(j->err, "did you mean --%s?", near.best);
    else
        cairn_hint(j->err, "remove it");
    return n_musubi_options;
}

/* A word that is no option; numbers may be negative. */
static bool is_value(const char *word)
{
    double v;
    return word[0] != '-' || !word[1] || musubi_parse_real(word, &v);
}

/* Reads the option at words[0]; returns how many words it has, 0 after an error. */
static size_t read_option(struct musubi_job *j, const char *const *words, size_t n)
{
    const char *equals = strchr(words[0], '=');
    size_t len = equals ? (size_t)(equals - words[0]) - 2 : strlen(words[0]) - 2, used = 1;
    size_t index = find_option(j, words[0] + 2, len);
    if (index == n_musubi_options)
        return 0;
    const struct musubi_option *o = &musubi_options[index];
    struct musubi_setting *s = &j->set[index];
    *s = (struct musubi_setting){ .value = ARENA_NEW(j->a, const char *, n + 1) };
    s->place = s->name = arena_printf(j->a, "--%s", o->name);
    if (o->type == MUSUBI_FLAG)
        s->value[s->n++] = "true";
    if (equals && o->type == MUSUBI_FLAG)
        return musubi_refuse(j, o->name, "write the option alone, or leave it out", "it takes no value"), 0;
    if (equals)
        s->value[s->n++] = equals + 1;
    while (!equals && used < n && o->type != MUSUBI_FLAG && is_value(words[used]) &&
           (o->type == MUSUBI_LIST || !s->n))
        s->value[s->n++] = words[used++];
    if (!s->n && o->type != MUSUBI_LIST)
        return musubi_refuse(j, o->name, arena_printf(j->a, "give it %s", expected(o, j->a)),
                             "its value is missing"),
               0;
    return check(j, index) ? 0 : used;
}

static int read_options(struct musubi_job *j, const char *const *words, size_t n)
{
    for (size_t i = 0, used; i < n; i += used) {
        if (strncmp(words[i], "--", 2)) {
            CLEANUP(str_release) struct str shown = { 0 };
            str_add_clean(&shown, words[i], strlen(words[i]));
            cairn_fail(j->err, CAIRN_EUSAGE, "\"%.80s\" belongs to no option of wan_train_network.py",
                       shown.s ? shown.s : "");
            return cairn_hint(j->err, "remove it, or put the value in quotes");
        }
        used = read_option(j, words + i, n - i);
        if (!used)
            return -1;
    }
    return 0;
}

/* ---- what starts the script ---- */

static bool is_assignment(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals && str_is_variable(word, (size_t)(equals - word));
}

/* "wan_train_network" of a path, or of a module after -m; NULL: the word is no script. */
static const char *script_of(const char *const *words, size_t i, struct arena *a)
{
    const char *name = str_file_name(words[i]), *dot = strrchr(words[i], '.');
    if (str_ends(name, ".py"))
        return arena_strndup(a, name, strlen(name) - 3);
    if (i && !strcmp(words[i - 1], "-m") && strcmp(words[i], "accelerate.commands.launch"))
        return dot ? dot + 1 : words[i];
    return NULL;
}

/* accelerate takes --num-processes for --num_processes. */
static bool begins_with_option(const char *word, const char *name, size_t len)
{
    size_t dashes = strlen("--");
    for (size_t i = 0; i < len; i++)
        if ((i >= dashes && word[i] == '-' ? '_' : word[i]) != name[i])
            return false;
    return true;
}

/* The value of a launcher's option; NULL: the word is another. */
static const char *launch_value(const char *const *words, size_t n, size_t i, const char *name)
{
    size_t len = strlen(name);
    if (!begins_with_option(words[i], name, len))
        return NULL;
    if (words[i][len] == '=')
        return words[i] + len + 1;
    return !words[i][len] && i + 1 < n ? words[i + 1] : NULL;
}

/* Several processes would make the batch larger. */
static int refuse_processes(struct musubi_job *j, const char *option)
{
    cairn_fail(j->err, CAIRN_EUSAGE, "%s: cairn trains in one process, on one GPU", option);
    return cairn_hint(j->err,
                      "use one process, and multiply --gradient_accumulation_steps for the same batch");
}

static int read_launcher(struct musubi_job *j, const char *const *words, size_t n)
{
    static const char *const counts[] = { "--num_processes", "--num_machines" };
    for (size_t i = 0; i < n; i++) {
        const char *precision = launch_value(words, n, i, "--mixed_precision");
        j->mixed_precision = precision ? precision : j->mixed_precision;
        for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
            const char *value = launch_value(words, n, i, counts[k]);
            if (value && strcmp(value, "1"))
                return refuse_processes(j, arena_printf(j->a, "%s %s", counts[k], value));
        }
        if (begins_with_option(words[i], "--multi_gpu", sizeof("--multi_gpu")))
            return refuse_processes(j, words[i]);
    }
    return 0;
}

static int wrong_script(struct musubi_job *j, const char *script)
{
    cairn_fail(j->err, CAIRN_EUSAGE, "%.80s is not wan_train_network.py of musubi-tuner", script);
    if (str_starts(script, "wan_cache"))
        return cairn_hint(j->err, "`cairn cache` makes caches, and `cairn train` those that are missing");
    return cairn_hint(j->err, "`cairn run -- COMMAND` runs other trainers");
}

int musubi_read_command(struct musubi_job *j, const char *const *words, size_t n)
{
    size_t first = 0, at;
    while (first < n && is_assignment(words[first]))
        first++;
    if (first < n && str_starts(words[first], "--"))
        return read_options(j, words + first, n - first);
    for (at = first; at < n; at++) {
        const char *script = script_of(words, at, j->a);
        if (script && strcmp(script, "wan_train_network"))
            return wrong_script(j, script);
        if (script)
            break;
    }
    if (at >= n) {
        cairn_fail(j->err, CAIRN_EUSAGE, "the command does not name wan_train_network.py");
        return cairn_hint(
            j->err, "cairn train --from-musubi -- accelerate launch ... wan_train_network.py --task ...");
    }
    return read_launcher(j, words + first, at - first) || read_options(j, words + at + 1, n - at - 1) ? -1
                                                                                                      : 0;
}

/* ---- the file ---- */

static int fail_at(struct musubi_job *j, const char *path, const struct yaml_node *n, const char *what)
{
    return cairn_fail(j->err, CAIRN_EFORMAT, "%s:%d:%d: %s: %s", path, n->key->line, n->key->column,
                      n->key->text, what);
}

/* In a file a text is in quotes, and a number or true is not; a share such as "10%" may be either. */
static bool has_quotes_of(const struct yaml_node *n, enum musubi_type type)
{
    bool quoted = n->style != YAML_PLAIN;
    if (type == MUSUBI_SHARE)
        return true;
    return quoted == (type == MUSUBI_TEXT || type == MUSUBI_WORD || type == MUSUBI_LIST);
}

static bool has_kind_of(const struct yaml_node *n, enum musubi_type type)
{
    if (n->kind == YAML_SCALAR)
        return has_quotes_of(n, type);
    for (const struct yaml_node *i = n->kind == YAML_LIST ? n->first : NULL; i; i = i->next)
        if (i->kind != YAML_SCALAR || !has_quotes_of(i, type))
            return false;
    return n->kind == YAML_LIST && type == MUSUBI_LIST;
}

static int read_member(struct musubi_job *j, const char *path, const struct yaml_node *n)
{
    size_t index = index_of(n->key->text);
    if (index == n_musubi_options) {
        struct suggestion near = { .word = n->key->text };
        for (size_t i = 0; i < n_musubi_options; i++)
            suggest_try(&near, musubi_options[i].name);
        fail_at(j, path, n, "wan_train_network.py has no such option");
        return near.best ? cairn_hint(j->err, "did you mean %s?", near.best)
                         : cairn_hint(j->err, "remove it");
    }
    const struct musubi_option *o = &musubi_options[index];
    struct musubi_setting *s = &j->set[index];
    if (!has_kind_of(n, o->type)) {
        fail_at(j, path, n, arena_printf(j->a, "expected %s", expected(o, j->a)));
        if (n->kind != YAML_SCALAR)
            return cairn_hint(j->err, "correct it, or leave it out");
        return cairn_hint(j->err, n->style == YAML_PLAIN ? "put it in quotes, or leave it out"
                                                         : "write it without quotes, or leave it out");
    }
    if (s->value) /* the command line wins */
        return 0;
    s->value = ARENA_NEW(j->a, const char *, 1);
    s->place = arena_printf(j->a, "%s:%d:%d", path, n->key->line, n->key->column);
    s->name = o->name;
    if (n->kind == YAML_SCALAR)
        s->value[s->n++] = n->text;
    for (const struct yaml_node *item = n->kind == YAML_LIST ? n->first : NULL; item; item = item->next)
        *ARENA_PUSH(j->a, s->value, s->n) = item->text;
    return check(j, index);
}

/* Names of sections do not count. */
int musubi_read_file(struct musubi_job *j, const char *path)
{
    struct yaml_node *root;
    const char *file = str_ends(path, ".toml") ? path : arena_printf(j->a, "%s.toml", path);
    if (toml_read(file, j->a, &root, j->err)) /* of the command line, or the file that the user named */
        return musubi_find(j, "config_file")
                   ? musubi_wrap(j, "config_file", "it takes a file of options (TOML)")
                   : -1;
    for (const struct yaml_node *n = root->first; n; n = n->next) {
        bool is_section = n->kind == YAML_MAP && index_of(n->key->text) == n_musubi_options;
        if (!is_section && read_member(j, file, n))
            return -1;
        for (const struct yaml_node *m = is_section ? n->first : NULL; m; m = m->next)
            if (read_member(j, file, m))
                return -1;
    }
    return 0;
}
