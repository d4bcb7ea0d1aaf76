/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/adapter_config.h"

#include "os/fault.h"
#include "base/json.h"
#include "base/str.h"
#include "tensor/adapter_pattern.h"
#include "os/path.h"
#include "os/info.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* PEFT's defaults for missing keys. */
static const double default_alpha = 8;

/* Each module is compared with each pattern; no model has more. */
/* The C library needs about 1 KiB per character of a pattern, and 100 characters per count. */
enum { PATTERNS_MAX = 1 << 16, PATTERNS_SIZE_MAX = 1 << 19, COUNT_SIZE = 200 };

struct adapter_pattern {
    regex_t regex;
    double value;
};

/* The keys of PEFT's LoraConfig.  Keys that matter only for training or loading are ignored. */
// clang-format off
static const struct {
    const char *key;
    enum { READ, IGNORED, REFUSED } what;
} keys[] = {
    { "peft_type", READ },        { "r", READ },               { "lora_alpha", READ },
    { "use_rslora", READ },       { "rank_pattern", READ },    { "alpha_pattern", READ },
    { "fan_in_fan_out", READ },   { "bias", READ },            { "lora_bias", READ },
    { "modules_to_save", READ },  { "init_lora_weights", READ },
    { "use_dora", REFUSED },      { "use_qalora", REFUSED },   { "use_bdlora", REFUSED },
    { "kasa_config", REFUSED },   { "arrow_config", REFUSED }, { "monteclora_config", REFUSED },
    { "layer_replication", REFUSED },                          { "target_parameters", REFUSED },
    { "trainable_token_indices", REFUSED },                    { "alora_invocation_tokens", REFUSED },
    { "alora_invocation_string", REFUSED },
    { "task_type", IGNORED },     { "auto_mapping", IGNORED }, { "base_model_name_or_path", IGNORED },
    { "revision", IGNORED },      { "inference_mode", IGNORED }, { "peft_version", IGNORED },
    { "target_modules", IGNORED }, { "exclude_modules", IGNORED }, { "lora_dropout", IGNORED },
    { "layers_to_transform", IGNORED },                        { "layers_pattern", IGNORED },
    { "megatron_config", IGNORED }, { "megatron_core", IGNORED }, { "runtime_config", IGNORED },
    { "loftq_config", IGNORED },  { "eva_config", IGNORED },   { "corda_config", IGNORED },
    { "lora_ga_config", IGNORED }, { "velora_config", IGNORED }, { "qalora_group_size", IGNORED },
    { "ensure_weight_tying", IGNORED },
};

/* Values of init_lora_weights besides true and false.  The others (pissa, olora, corda, loftq, lora_ga …)
 * derive the matrices from the base: the LoRA then needs a modified base that is in no file. */
static const char *const plain_inits[] = { "gaussian", "eva", "orthogonal" };
static const char *const weight_names[] = { "adapter_model.safetensors", "adapter_model.bin", "lora.safetensors",
                                            "pytorch_lora_weights.safetensors" };
// clang-format on

/* ---- finding the files ---- */

/* The first of these names that is in the folder, or NULL. */
static int find_in(struct arena *a, const char *folder, const char *const *names, size_t n, const char **out,
                   struct cairn_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < n && !*out; i++) {
        struct os_info info;
        const char *path = arena_printf(a, "%s%s%s", folder, str_ends(folder, "/") ? "" : "/", names[i]);
        if (!os_info(path, &info))
            *out = path;
        else if (errno != ENOENT && errno != ENOTDIR)
            return cairn_fail_errno(err, "open %s", path);
    }
    return 0;
}

static int find_weights(struct arena *a, const char *folder, const char *also, const char **out,
                        struct cairn_error *err)
{
    if (find_in(a, folder, weight_names, ARRAY_LEN(weight_names), out, err))
        return -1;
    return *out || !also ? 0 : find_in(a, folder, &also, 1, out, err);
}

int adapter_find(struct arena *a, const char *path, const char *also, const char **weights,
                 const char **config, struct cairn_error *err)
{
    static const char *const config_name = "adapter_config.json";
    struct os_info info;
    if (os_info(path, &info))
        return cairn_fail_errno(err, "open %s", path);
    const char *name = path_name(path);
    const char *folder = info.kind == OS_KIND_FOLDER ? path
                         : name == path              ? "."
                                                     : arena_strndup(a, path, (size_t)(name - path));
    *weights = arena_strdup(a, path);
    if (info.kind == OS_KIND_FOLDER && find_weights(a, folder, also, weights, err))
        return -1;
    if (!*weights) { /* a run of cairn's own */
        folder = arena_printf(a, "%s/checkpoints/latest", path);
        if (find_weights(a, folder, also, weights, err))
            return -1;
    }
    if (!*weights)
        return cairn_fail(err, CAIRN_EIO, "%s is a folder without tensor files (%s, %s, %s or %s)", path,
                          weight_names[0], weight_names[1], weight_names[2], weight_names[3]);
    return find_in(a, folder, &config_name, 1, config, err);
}

/* ---- keys ---- */

static int wrong(const struct adapter_config *c, const char *key, const char *want, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" must be %s", c->path, key, want);
}

static const struct json *get(const struct adapter_config *c, const struct json *top, const char *key)
{
    char full[120];
    snprintf(full, sizeof(full), "%s%s", c->prefix, key);
    return json_get(top, full);
}

static bool is_said(const struct json *v)
{
    return v && !json_is_null(v);
}

/* Anything but null, false, 0 and empty values. */
static bool is_set(const struct json *v)
{
    const char *text = json_text(v);
    return json_bool(v, false) || json_first(v).key || json_length(v) || (text && *text) ||
           json_number(v, 0) != 0;
}

static int read_flag(const struct adapter_config *c, const struct json *top, const char *key, bool *out,
                     struct cairn_error *err)
{
    const struct json *v = get(c, top, key);
    if (is_said(v) && json_bool(v, false) != json_bool(v, true))
        return wrong(c, key, "true or false", err);
    *out = json_bool(v, false);
    return 0;
}

static int read_rank(const struct adapter_config *c, const char *key, const struct json *v, double *out,
                     struct cairn_error *err)
{
    int64_t n = json_int(v, 0);
    if (n <= 0 || n > 1 << 24)
        return wrong(c, key, "an integer above 0", err);
    *out = (double)n;
    return 0;
}

static int read_alpha(const struct adapter_config *c, const char *key, const struct json *v, double *out,
                      struct cairn_error *err)
{
    *out = json_number(v, NAN);
    return isfinite(*out) ? 0 : wrong(c, key, "a number", err);
}

static int read_strength(struct adapter_config *c, const struct json *top, struct cairn_error *err)
{
    const struct json *rank = get(c, top, "r"), *alpha = get(c, top, "lora_alpha");
    double n = 0;
    c->alpha = default_alpha;
    c->alpha_is_said = is_said(alpha);
    if ((is_said(rank) && read_rank(c, "r", rank, &n, err)) ||
        (c->alpha_is_said && read_alpha(c, "lora_alpha", alpha, &c->alpha, err)))
        return -1;
    c->rank = (uint64_t)n;
    return read_flag(c, top, "use_rslora", &c->rslora, err) ||
                   read_flag(c, top, "lora_bias", &c->lora_bias, err)
               ? -1
               : 0;
}

static size_t pattern_size(const char *pattern)
{
    size_t n = strlen(pattern);
    for (const char *p = pattern; *p; p++)
        n += *p == '{' ? COUNT_SIZE : 0;
    return n;
}

static int read_patterns(struct adapter_config *c, const struct json *top, const char *key,
                         int (*read)(const struct adapter_config *c, const char *key, const struct json *v,
                                     double *out, struct cairn_error *err),
                         struct adapter_pattern **out, size_t *n, struct cairn_error *err)
{
    const struct json *v = get(c, top, key);
    size_t size = 0;
    if (is_said(v) && !json_is_object(v))
        return wrong(c, key, "an object that maps patterns to numbers", err);
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m)) {
        struct adapter_pattern p;
        if (*n == PATTERNS_MAX)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" has more than %d patterns", c->path, key,
                              PATTERNS_MAX);
        size += pattern_size(m.key);
        if (size > PATTERNS_SIZE_MAX)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: the patterns of \"%s\" are too long in total", c->path,
                              key);
        if (read(c, key, m.value, &p.value, err))
            return -1;
        if (adapter_pattern_make(m.key, &p.regex, err))
            return cairn_wrap(err, "%s: \"%s\"", c->path, key);
        *ARENA_PUSH(&c->arena, *out, *n) = p;
    }
    return 0;
}

static int read_layout(struct adapter_config *c, const struct json *top, struct cairn_error *err)
{
    static const char *const biases[] = { "none", "all", "lora_only" };
    const struct json *bias = get(c, top, "bias");
    const char *text = json_text(bias);
    bool turned;
    if (read_flag(c, top, "fan_in_fan_out", &turned, err))
        return -1;
    if (is_said(get(c, top, "fan_in_fan_out")))
        c->layout = turned ? ADAPTER_LAYOUT_IN_OUT : ADAPTER_LAYOUT_OUT_IN;
    if (!is_said(bias))
        return 0;
    for (size_t i = 0; text && i < ARRAY_LEN(biases); i++)
        if (!strcmp(text, biases[i])) {
            c->bias = (enum adapter_bias)i;
            return 0;
        }
    return wrong(c, "bias", "none, all or lora_only", err);
}

static int read_saved(struct adapter_config *c, const struct json *top, struct cairn_error *err)
{
    const struct json *v = get(c, top, "modules_to_save");
    if (is_said(v) && !json_is_array(v))
        return wrong(c, "modules_to_save", "a list of names", err);
    for (size_t i = 0; i < json_length(v); i++) {
        const char *name = json_text(json_at(v, i));
        if (!name || !*name)
            return wrong(c, "modules_to_save", "a list of names", err);
        *ARENA_PUSH(&c->arena, c->saved, c->n_saved) = arena_strdup(&c->arena, name);
    }
    return 0;
}

static int check_kind(const struct adapter_config *c, const struct json *top, struct cairn_error *err)
{
    const char *type = json_text(get(c, top, "peft_type"));
    const struct json *init = get(c, top, "init_lora_weights");
    const char *text = json_text(init);
    bool plain = !is_said(init) || json_bool(init, false) == json_bool(init, true);
    if (type ? strcmp(type, "LORA") : !*c->prefix)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"peft_type\" is %s%.40s%s, not \"LORA\"", c->path,
                          type ? "\"" : "", type ? type : "missing", type ? "\"" : "");
    for (size_t i = 0; text && i < ARRAY_LEN(plain_inits); i++)
        plain |= !strcmp(text, plain_inits[i]);
    if (plain)
        return 0;
    if (!text)
        return wrong(c, "init_lora_weights", "true, false or a name", err);
    cairn_fail(
        err, CAIRN_EFORMAT,
        "%s: \"init_lora_weights\" is \"%.40s\": this LoRA needs a base model that PEFT modified before training",
        c->path, text);
    return cairn_hint(err, "save it again with PEFT's path_initial_model_for_weight_conversion");
}

static size_t find_key(const char *key)
{
    size_t i = 0;
    while (i < ARRAY_LEN(keys) && strcmp(key, keys[i].key))
        i++;
    return i;
}

static int check_keys(struct adapter_config *c, const struct json *top, struct cairn_error *err)
{
    CLEANUP(str_release) struct str unknown = { 0 };
    for (struct json_member m = json_first(top); m.key; m = json_next(top, m)) {
        if (!is_set(m.value) || !str_starts(m.key, c->prefix))
            continue;
        size_t i = find_key(m.key + strlen(c->prefix));
        if (i == ARRAY_LEN(keys)) {
            str_addf(&unknown, "%s%.60s", unknown.len ? ", " : "", m.key);
        } else if (keys[i].what == REFUSED) {
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" is set, which is not supported", c->path,
                              m.key);
        }
    }
    c->unknown = arena_strdup(&c->arena, unknown.s);
    return 0;
}

static int read_all(struct adapter_config *c, const struct json *top, struct cairn_error *err)
{
    if (check_kind(c, top, err) || check_keys(c, top, err) || read_strength(c, top, err) ||
        read_layout(c, top, err) || read_saved(c, top, err))
        return -1;
    return read_patterns(c, top, "rank_pattern", read_rank, &c->ranks, &c->n_ranks, err) ||
                   read_patterns(c, top, "alpha_pattern", read_alpha, &c->alphas, &c->n_alphas, err)
               ? -1
               : 0;
}

static int read_or_release(struct adapter_config *c, const char *name, const char *prefix,
                           const struct json *top, struct cairn_error *err)
{
    c->path = arena_strdup(&c->arena, name);
    c->prefix = arena_strdup(&c->arena, prefix);
    if (!read_all(c, top, err))
        return 0;
    adapter_config_release(c);
    return -1;
}

int adapter_config_read(struct adapter_config *c, const char *path, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    *c = (struct adapter_config){ 0 };
    return json_read_object(path, &top, err) || read_or_release(c, path, "", top, err) ? -1 : 0;
}

/* diffusers writes the keys of one model without a prefix, those of a pipeline with. */
static const char *choose_prefix(const struct json *top, const char *prefix)
{
    for (struct json_member m = json_first(top); m.key; m = json_next(top, m))
        if (*prefix && str_starts(m.key, prefix))
            return prefix;
    return json_get(top, "peft_type") ? "" : NULL;
}

int adapter_config_parse(struct adapter_config *c, const char *name, const char *text, const char *prefix,
                         struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    *c = (struct adapter_config){ 0 };
    if (json_parse(text, strlen(text), &top, err))
        return cairn_wrap(err, "%s", name);
    if (!json_is_object(top))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: not an object", name);
    prefix = choose_prefix(top, prefix);
    return prefix ? read_or_release(c, name, prefix, top, err) : 0;
}

void adapter_config_release(struct adapter_config *c)
{
    for (size_t i = 0; i < c->n_ranks; i++)
        regfree(&c->ranks[i].regex);
    for (size_t i = 0; i < c->n_alphas; i++)
        regfree(&c->alphas[i].regex);
    arena_release(&c->arena);
    *c = (struct adapter_config){ 0 };
}

/* ---- queries ---- */

/* The first matching pattern in the order of the file decides. */
static double first_fit(const struct adapter_pattern *list, size_t n, const char *module, double otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (adapter_pattern_fits(&list[i].regex, module))
            return list[i].value;
    return otherwise;
}

uint64_t adapter_config_rank(const struct adapter_config *c, const char *module)
{
    return (uint64_t)first_fit(c->ranks, c->n_ranks, module, (double)c->rank);
}

double adapter_config_alpha(const struct adapter_config *c, const char *module)
{
    return first_fit(c->alphas, c->n_alphas, module, c->alpha);
}

double adapter_config_scale(const struct adapter_config *c, double alpha, uint64_t rank)
{
    return alpha / (c->rslora ? sqrt((double)rank) : (double)rank);
}

bool adapter_config_has_patterns(const struct adapter_config *c)
{
    return c->n_ranks || c->n_alphas;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len >= n && !memcmp(text + len - n, end, n);
}

/* As PEFT: the name of a module, or of one around it, ends with the entry. */
bool adapter_config_saves(const struct adapter_config *c, const char *module)
{
    for (size_t len = 1; len <= strlen(module); len++) {
        if (module[len] && module[len] != '.')
            continue;
        for (size_t i = 0; i < c->n_saved; i++)
            if (ends_with(module, len, c->saved[i]))
                return true;
    }
    return false;
}
