/* SPDX-License-Identifier: Apache-2.0 */
#include "video/prompts.h"

#include "base/file.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "os/info.h"
#include "os/path.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_SIDE = 16384, MOST_FRAMES = 1001, MOST_STEPS = 1000, MOST_PROMPTS = 1000 };

/* ---- options ---- */

enum option_type {
    OPTION_TEXT,
    OPTION_COUNT, /* 1 to most */
    OPTION_SEED,
    OPTION_REAL,    /* 0 to most */
    OPTION_UNUSED,  /* Wan has no use for it */
    OPTION_REFUSED, /* other models have it */
};

struct option {
    const char *name; /* in a line, behind -- */
    const char *key;  /* in a file */
    enum option_type type;
    size_t at;
    double most;
};

#define AT(field) offsetof(struct sample_prompt, field)
static const struct option options[] = {
    { "w", "width", OPTION_COUNT, AT(width), MOST_SIDE },
    { "h", "height", OPTION_COUNT, AT(height), MOST_SIDE },
    { "f", "frame_count", OPTION_COUNT, AT(frames), MOST_FRAMES },
    { "d", "seed", OPTION_SEED, AT(seed), 0 },
    { "s", "sample_steps", OPTION_COUNT, AT(steps), MOST_STEPS },
    { "l", "cfg_scale", OPTION_REAL, AT(cfg), 1000 },
    { "fs", "discrete_flow_shift", OPTION_REAL, AT(shift), 1000 },
    { "n", "negative_prompt", OPTION_TEXT, AT(negative), 0 },
    { "i", "image_path", OPTION_TEXT, AT(image), 0 },
    { "fps", "fps", OPTION_REAL, AT(fps), 1000 },
    { "lm", "network_multiplier", OPTION_REAL, AT(lora_scale), 100 },
    { "g", "guidance_scale", OPTION_UNUSED, 0, 0 },
    { "ei", "end_image_path", OPTION_REFUSED, 0, 0 },
    { "cn", "control_video_path", OPTION_REFUSED, 0, 0 },
    { "ci", "control_image_path", OPTION_REFUSED, 0, 0 },
    { "of", "one_frame", OPTION_REFUSED, 0, 0 },
};

static struct sample_prompt nothing_given(void)
{
    return (struct sample_prompt){ .seed = -1, .cfg = -1, .lora_scale = 1 };
}

static bool read_count(const char *text, double most, size_t *out)
{
    uint64_t v;
    if (!cairn_parse_u64(text, &v) || !v || v > (uint64_t)most)
        return false;
    *out = (size_t)v;
    return true;
}

static bool read_seed(const char *text, int64_t *out)
{
    uint64_t v;
    if (!cairn_parse_u64(text, &v) || v > INT64_MAX)
        return false;
    *out = (int64_t)v;
    return true;
}

static bool read_real(const char *text, double most, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < 0 || v > most)
        return false;
    *out = v;
    return true;
}

/* `name` is the option as the user wrote it. */
static int set_option(struct sample_prompt *p, const struct option *o, const char *name, const char *value,
                      struct arena *a, struct cairn_error *err)
{
    char *at = (char *)p + o->at;
    switch (o->type) {
    case OPTION_TEXT:
        *(const char **)(void *)at = arena_strdup(a, value);
        return 0;
    case OPTION_COUNT:
        return read_count(value, o->most, (size_t *)(void *)at)
                   ? 0
                   : cairn_fail(err, CAIRN_EUSAGE, "%s: \"%s\" is not a whole number from 1 to %.0f", name,
                                value, o->most);
    case OPTION_SEED:
        return read_seed(value, (int64_t *)(void *)at)
                   ? 0
                   : cairn_fail(err, CAIRN_EUSAGE, "%s: \"%s\" is not a seed: a whole number from 0", name,
                                value);
    case OPTION_REAL:
        return read_real(value, o->most, (double *)(void *)at)
                   ? 0
                   : cairn_fail(err, CAIRN_EUSAGE, "%s: \"%s\" is not a number from 0 to %.0f", name, value,
                                o->most);
    case OPTION_UNUSED:
        return 0;
    case OPTION_REFUSED:
        break;
    }
    return cairn_fail(err, CAIRN_EUSAGE, "%s is for other models; Wan's samples cannot use it (%s)", name,
                      o->key);
}

/* ---- lines ---- */

/* Where the next option begins: " --" and a letter; or the end of the line. */
static const char *next_option(const char *line)
{
    for (const char *at = line; (at = strstr(at, "--")); at += 2) {
        char letter = (char)(at[2] | 0x20);
        if ((at == line || at[-1] == ' ' || at[-1] == '\t') && letter >= 'a' && letter <= 'z')
            return at;
    }
    return line + strlen(line);
}

static char *trimmed(struct arena *a, const char *from, const char *to)
{
    while (from < to && strchr(" \t\r\n", *from))
        from++;
    while (to > from && strchr(" \t\r\n", to[-1]))
        to--;
    return arena_strndup(a, from, (size_t)(to - from));
}

static int unknown_option(const char *name, struct cairn_error *err)
{
    cairn_fail(err, CAIRN_EUSAGE, "unknown option --%s", name);
    return cairn_hint(err, "a prompt may have --w --h --f --d --s --l --fs --n --i --fps --lm");
}

static int read_option(const char *text, struct arena *a, struct sample_prompt *p, struct cairn_error *err)
{
    size_t len = strcspn(text, " \t=");
    const char *name = arena_strndup(a, text, len);
    const char *value = trimmed(a, text + len + (text[len] != '\0'), text + strlen(text));
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (!strcmp(options[i].name, name))
            return set_option(p, &options[i], arena_printf(a, "--%s", name), value, a, err);
    return unknown_option(name, err);
}

int prompt_parse(const char *line, struct arena *a, struct sample_prompt *out, struct cairn_error *err)
{
    const char *at = next_option(line);
    *out = nothing_given();
    if (!str_is_utf8(line))
        return cairn_fail(err, CAIRN_EUSAGE, "a prompt is not valid UTF-8");
    out->text = trimmed(a, line, at);
    while (*at) {
        const char *from = at + 2;
        at = next_option(from);
        if (read_option(trimmed(a, from, at), a, out, err))
            return -1;
    }
    return 0;
}

/* ---- files ---- */

struct prompt_file {
    const char *path;
    struct arena *arena;
    struct sample_prompt *prompts;
    size_t n;
};

static int add_prompt(struct prompt_file *f, int line, const struct sample_prompt *p, struct cairn_error *err)
{
    struct os_info info;
    if (f->n == MOST_PROMPTS)
        return cairn_fail(err, CAIRN_EUSAGE, "%s:%d: more than %d prompts", f->path, line, MOST_PROMPTS);
    struct sample_prompt *new = ARENA_PUSH(f->arena, f->prompts, f->n);
    *new = *p;
    if (!p->image || path_is_absolute(p->image) || !os_info(p->image, &info))
        return 0;
    CLEANUP(mem_free) char *folder = path_folder(f->path);
    const char *beside = arena_printf(f->arena, "%s/%s", folder ? folder : ".", p->image);
    if (!os_info(beside, &info))
        new->image = beside;
    return 0;
}

static int read_lines(struct prompt_file *f, const char *text, size_t len, struct cairn_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    const char *at = len >= 3 && !memcmp(text, bom, 3) ? text + 3 : text;
    for (int number = 1; at < text + len; number++) {
        size_t n = (size_t)(text + len - at);
        const char *feed = memchr(at, '\n', n), *end = feed ? feed : at + n;
        const char *line = trimmed(f->arena, at, end);
        struct sample_prompt p;
        at = feed ? feed + 1 : end;
        if (!*line || *line == '#')
            continue;
        if (prompt_parse(line, f->arena, &p, err))
            return cairn_wrap(err, "%s:%d", f->path, number);
        if (add_prompt(f, number, &p, err))
            return -1;
    }
    return 0;
}

static int wrong(const struct prompt_file *f, const struct yaml_node *n, const char *what,
                 struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EUSAGE, "%s:%d: %s", f->path, n->line, what);
}

static int unknown_key(const struct prompt_file *f, const struct yaml_node *n, struct cairn_error *err)
{
    struct suggestion s = { .word = n->key->text };
    suggest_try(&s, "prompt");
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        suggest_try(&s, options[i].key);
    cairn_fail(err, CAIRN_EUSAGE, "%s:%d: unknown key %s", f->path, n->key->line, n->key->text);
    return s.best ? cairn_hint(err, "did you mean %s?", s.best) : -1;
}

/* "enum" is what musubi-tuner numbers prompts by; a file that it wrote may have it. */
static int set_key(const struct prompt_file *f, const struct yaml_node *n, struct sample_prompt *p,
                   struct cairn_error *err)
{
    const char *key = n->key->text;
    if (!strcmp(key, "enum") || yaml_is_null(n))
        return 0;
    if (n->kind != YAML_SCALAR)
        return cairn_fail(err, CAIRN_EUSAGE, "%s:%d: %s must be a single value", f->path, n->line, key);
    bool quoted = n->style != YAML_PLAIN;
    if (!strcmp(key, "prompt")) {
        p->text = arena_strdup(f->arena, n->text);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (strcmp(options[i].key, key) != 0)
            continue;
        if (quoted && options[i].type != OPTION_TEXT && options[i].type != OPTION_REFUSED)
            return cairn_fail(err, CAIRN_EUSAGE, "%s:%d: %s must be a number, without quotes", f->path,
                              n->line, key);
        return set_option(p, &options[i], key, n->text, f->arena, err)
                   ? cairn_wrap(err, "%s:%d", f->path, n->line)
                   : 0;
    }
    return unknown_key(f, n, err);
}

static int set_keys(const struct prompt_file *f, const struct yaml_node *map, bool is_common,
                    struct sample_prompt *p, struct cairn_error *err)
{
    for (const struct yaml_node *n = map->first; n; n = n->next)
        if (!(is_common && !strcmp(n->key->text, "subset")) && set_key(f, n, p, err))
            return -1;
    return 0;
}

/* An entry of a list; `common` has what it does not say itself. */
static int add_node(struct prompt_file *f, const struct yaml_node *n, const struct sample_prompt *common,
                    struct cairn_error *err)
{
    struct sample_prompt p = *common;
    if (n->kind == YAML_SCALAR && n->text) {
        if (prompt_parse(n->text, f->arena, &p, err))
            return cairn_wrap(err, "%s:%d", f->path, n->line);
    } else if (n->kind != YAML_MAP)
        return wrong(f, n, "a prompt must be a text or a table", err);
    else if (set_keys(f, n, false, &p, err))
        return -1;
    if (!p.text)
        return wrong(f, n, "the key prompt is missing", err);
    return add_prompt(f, n->line, &p, err);
}

static int add_list(struct prompt_file *f, const struct yaml_node *list, const struct sample_prompt *common,
                    struct cairn_error *err)
{
    if (list->kind != YAML_LIST)
        return wrong(f, list, "it must be a list of prompts", err);
    for (const struct yaml_node *n = list->first; n; n = n->next)
        if (add_node(f, n, common, err))
            return -1;
    return 0;
}

static const struct yaml_node *member(const struct yaml_node *map, const char *key)
{
    for (const struct yaml_node *n = map->kind == YAML_MAP ? map->first : NULL; n; n = n->next)
        if (!strcmp(n->key->text, key))
            return n;
    return NULL;
}

static int read_toml(struct prompt_file *f, const struct yaml_node *root, struct cairn_error *err)
{
    const struct yaml_node *table = member(root, "prompt"), *subset = table ? member(table, "subset") : NULL;
    struct sample_prompt common = nothing_given();
    for (const struct yaml_node *n = root->first; n; n = n->next)
        if (n != table)
            return wrong(f, n, "only the tables [prompt] and [[prompt.subset]] belong here", err);
    if (!table || table->kind != YAML_MAP || !subset)
        return wrong(f, table ? table : root, "it needs [[prompt.subset]], one for each prompt", err);
    return set_keys(f, table, true, &common, err) || add_list(f, subset, &common, err) ? -1 : 0;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && !strcasecmp(path + n - m, suffix);
}

int prompts_parse(const char *path, const char *text, size_t len, struct arena *a, struct sample_prompt **out,
                  size_t *n, struct cairn_error *err)
{
    struct prompt_file f = { .path = path, .arena = a };
    struct sample_prompt common = nothing_given();
    struct yaml_node *root;
    int r;
    if (has_suffix(path, ".toml"))
        r = toml_parse(path, text, len, a, &root, err) || read_toml(&f, root, err);
    else if (has_suffix(path, ".json"))
        r = yaml_parse(path, text, len, a, &root, err) || add_list(&f, root, &common, err);
    else if (has_suffix(path, ".txt"))
        r = read_lines(&f, text, len, err);
    else
        return cairn_fail(err, CAIRN_EUSAGE, "%s: a prompt file must end with .txt, .toml or .json", path);
    if (r)
        return -1;
    if (!f.n)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: it has no prompts", path);
    *out = f.prompts;
    *n = f.n;
    return 0;
}

int prompts_read(const char *path, struct arena *a, struct sample_prompt **out, size_t *n,
                 struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t len;
    if (file_read_settings(path, &text, &len, err))
        return -1;
    return prompts_parse(path, text, len, a, out, n, err);
}
