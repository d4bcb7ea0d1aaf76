/* SPDX-License-Identifier: Apache-2.0
 * The LoRA of a job of musubi-tuner: rank, arguments, and patterns that choose its modules. */
#include "tensor/adapter_pattern.h"
#include "train/foreign_musubi_inside.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool musubi_pair(const struct musubi_job *j, const char *text, const char **name, const char **value)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    *name = arena_strndup(j->a, text, (size_t)(equals - text));
    *value = equals + 1;
    return true;
}

/* ---- modules ---- */

static const char *const modules[] = {
    "self_attn.q",  "self_attn.k",  "self_attn.v", "self_attn.o", "cross_attn.q",     "cross_attn.k",
    "cross_attn.v", "cross_attn.o", "ffn.0",       "ffn.2",       "cross_attn.k_img", "cross_attn.v_img"
};

struct patterns {
    regex_t *list;
    size_t n;
};

static void patterns_release(struct patterns *p)
{
    for (size_t i = 0; i < p->n; i++)
        regfree(&p->list[i]);
    p->n = 0;
}

static bool fits(const struct patterns *p, const char *module)
{
    for (size_t i = 0; i < p->n; i++)
        if (adapter_pattern_fits(&p->list[i], module))
            return true;
    return false;
}

/* The next text of a Python list: ['a', r"b"]; NULL: there is none.  *at becomes NULL if it is no list. */
static const char *next_text(struct arena *a, const char **at)
{
    const char *p = *at + strspn(*at, "[(, ");
    if (*p == ']' || *p == ')' || !*p)
        return NULL;
    p += *p == 'r' || *p == 'R';
    const char *end = *p == '\'' || *p == '"' ? strchr(p + 1, *p) : NULL;
    *at = end ? end + 1 : NULL;
    return end ? arena_strndup(a, p + 1, (size_t)(end - p - 1)) : NULL;
}

static int read_patterns(struct musubi_job *j, const char *name, const char *text, struct patterns *out)
{
    const char *at = text, *pattern;
    struct cairn_error why = { 0 };
    if (*text != '[' && *text != '(')
        at = NULL;
    while (at && (pattern = next_text(j->a, &at))) {
        regex_t one;
        if (adapter_pattern_make_whole(pattern, &one, &why))
            return musubi_refuse(j, "network_args", "write it without lookaheads and back references",
                                 "%s: %s", name, why.msg);
        *ARENA_PUSH(j->a, out->list, out->n) = one;
    }
    return at ? 0
              : musubi_refuse(j, "network_args", "such as \"exclude_patterns=['.*ffn.*']\"",
                              "%s: expected a list", name);
}

/* musubi-tuner trains a module unless it is excluded, and not included again. */
static bool is_chosen(const struct patterns *exclude, const struct patterns *include, size_t block,
                      size_t module)
{
    char name[64];
    snprintf(name, sizeof(name), "blocks.%zu.%s", block, modules[module]);
    return !fits(exclude, name) || fits(include, name);
}

static int add_targets(struct musubi_job *j, const struct patterns *exclude, const struct patterns *include)
{
    const char *task = musubi_text(j, "task"), **list = NULL;
    size_t blocks = str_eq(task, "t2v-1.3B") ? 30 : 40, n = 0, whole = 0;
    size_t kinds = str_eq(task, "i2v-14B") ? ARRAY_LEN(modules) : ARRAY_LEN(modules) - 2;
    for (size_t m = 0; m < kinds; m++) {
        size_t chosen = 0;
        for (size_t b = 0; b < blocks; b++)
            chosen += is_chosen(exclude, include, b, m);
        if (chosen == blocks) {
            *ARENA_PUSH(j->a, list, n) = arena_printf(j->a, "blocks.*.%s", modules[m]);
            whole++;
            continue;
        }
        for (size_t b = 0; chosen && b < blocks; b++)
            if (is_chosen(exclude, include, b, m))
                *ARENA_PUSH(j->a, list, n) = arena_printf(j->a, "blocks.%zu.%s", b, modules[m]);
    }
    if (!n)
        return musubi_refuse(j, "network_args", "patterns match whole names, such as blocks.0.self_attn.q",
                             "exclude_patterns leaves no module to train");
    const struct musubi_setting *s = musubi_find(j, "network_args");
    if (whole < kinds)
        foreign_add_list(j->out, j->a, "lora.targets", list, n, s->place, s->name);
    return 0;
}

/* ---- arguments ---- */

static int refuse_arg(struct musubi_job *j, const char *name, const char *value)
{
    static const char *const known[] = { "rank_dropout", "module_dropout", "conv_dim", "conv_alpha",
                                         "use_dora",     "dora_wd",        "algo",     "factor" };
    double v;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcmp(name, known[i])) {
            if (!strcasecmp(value, "none") || !strcasecmp(value, "false") ||
                (musubi_parse_real(value, &v) && v == 0))
                return 0;
            return musubi_refuse(j, "network_args",
                                 "remove it: cairn trains plain LoRA, not LoKr, LoHa or DoRA",
                                 "cairn cannot do %s=%.60s", name, value);
        }
    if (!strcmp(name, "verbose"))
        return 0;
    return musubi_refuse(j, "network_args", "use exclude_patterns, include_patterns or loraplus_lr_ratio",
                         "there is no argument \"%.60s\"", name);
}

static int read_args(struct musubi_job *j, struct patterns *exclude, struct patterns *include)
{
    const struct musubi_setting *s = musubi_find(j, "network_args");
    double v;
    for (size_t i = 0; s && i < s->n; i++) {
        const char *name, *value;
        int r = 0;
        if (!musubi_pair(j, s->value[i], &name, &value))
            return musubi_refuse(j, "network_args", "such as loraplus_lr_ratio=4",
                                 "\"%.60s\" is not NAME=VALUE", s->value[i]);
        if (!strcmp(name, "exclude_patterns") || !strcmp(name, "include_patterns"))
            r = read_patterns(j, name, value, *name == 'e' ? exclude : include);
        else if (strcmp(name, "loraplus_lr_ratio"))
            r = refuse_arg(j, name, value);
        else if (!musubi_parse_real(value, &v))
            r = musubi_refuse(j, "network_args", "4 and 16 are usual",
                              "loraplus_lr_ratio: \"%.60s\" is not a number", value);
        else
            musubi_add(j, "network_args", "lora.plus", "%g", v);
        if (r)
            return -1;
    }
    return 0;
}

int musubi_make_lora(struct musubi_job *j)
{
    CLEANUP(patterns_release) struct patterns exclude = { 0 }, include = { 0 };
    const char *module = musubi_text(j, "network_module"), *dot = module ? strrchr(module, '.') : NULL;
    if (module && strcmp(dot ? dot + 1 : module, "lora_wan"))
        return musubi_refuse(j, "network_module",
                             "use networks.lora_wan: cairn trains plain LoRA, not LoKr, LoHa or DoRA",
                             "cairn cannot train %.60s", module);
    if (musubi_flag(j, "dim_from_weights") && !musubi_text(j, "network_weights"))
        return musubi_refuse(j, "dim_from_weights", "name the LoRA to start from, or use --network_dim",
                             "it needs --network_weights");
    if (musubi_flag(j, "dim_from_weights"))
        musubi_add(j, "dim_from_weights", "lora.rank", "0");
    else
        musubi_add(j, "network_dim", "lora.rank", "%lld", (long long)musubi_int(j, "network_dim", 4));
    musubi_add(j, "network_alpha", "lora.alpha", "%g", musubi_real(j, "network_alpha", 1));
    if (musubi_real(j, "network_dropout", 0) != 0) {
        musubi_add(j, "network_dropout", "lora.dropout", "%g", musubi_real(j, "network_dropout", 0));
        foreign_note(
            j->out, j->a,
            "--network_dropout drops inputs of the LoRA here, and values between its two matrices in "
            "musubi-tuner");
    }
    if (read_args(j, &exclude, &include))
        return -1;
    return exclude.n ? add_targets(j, &exclude, &include) : 0;
}
