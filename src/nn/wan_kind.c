/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_kind.h"
#include "base/suggest.h"
#include "os/info.h"
#include "os/path.h"
#include "tensor/fp8_scaled.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- released models ---- */

#define SIZE_1_3B .width = 1536, .ffn = 8960, .heads = 12, .layers = 30
#define SIZE_14B .width = 5120, .ffn = 13824, .heads = 40, .layers = 40
#define SIZE_5B .width = 3072, .ffn = 14336, .heads = 24, .layers = 30
#define COMMON .text_width = 4096, .text_rows = 512, .time_width = 256, .clip_rows = 257

static const struct wan_task_info tasks[WAN_TASKS] = {
    [WAN_T2V_1_3B] = { "t2v-1.3B",
                       "Wan 2.1 T2V-1.3B",
                       { SIZE_1_3B, COMMON, .in = 16, .out = 16 },
                       0,
                       "wan2.1_t2v_1.3B_bf16.safetensors or the folder Wan2.1-T2V-1.3B" },
    [WAN_T2V_14B] = { "t2v-14B",
                      "Wan 2.1 T2V-14B",
                      { SIZE_14B, COMMON, .in = 16, .out = 16 },
                      0,
                      "wan2.1_t2v_14B_fp8_scaled.safetensors or the folder Wan2.1-T2V-14B" },
    [WAN_I2V_14B] = { "i2v-14B",
                      "Wan 2.1 I2V-14B",
                      { SIZE_14B, COMMON, .in = 36, .out = 16, .clip_width = 1280 },
                      0,
                      "wan2.1_i2v_480p_14B_fp8_scaled.safetensors or the folder Wan2.1-I2V-14B-480P" },
    [WAN_T2V_A14B] = { "t2v-A14B",
                       "Wan 2.2 T2V-A14B",
                       { SIZE_14B, COMMON, .in = 16, .out = 16 },
                       0.875,
                       "wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors and "
                       "wan2.2_t2v_high_noise_14B_fp8_scaled.safetensors, or the folder Wan2.2-T2V-A14B" },
    [WAN_I2V_A14B] = { "i2v-A14B",
                       "Wan 2.2 I2V-A14B",
                       { SIZE_14B, COMMON, .in = 36, .out = 16 },
                       0.9,
                       "wan2.2_i2v_low_noise_14B_fp8_scaled.safetensors and "
                       "wan2.2_i2v_high_noise_14B_fp8_scaled.safetensors, or the folder Wan2.2-I2V-A14B" },
    [WAN_TI2V_5B] = { "ti2v-5B",
                      "Wan 2.2 TI2V-5B",
                      { SIZE_5B, COMMON, .in = 48, .out = 48 },
                      0,
                      "wan2.2_ti2v_5B_fp16.safetensors or the folder Wan2.2-TI2V-5B" },
};

const struct wan_task_info *wan_task_info(enum wan_task t)
{
    return &tasks[t];
}

int wan_task_parse(const char *name, enum wan_task *out, struct cairn_error *err)
{
    struct suggestion nearest = { .word = name };
    CLEANUP(str_release) struct str all = { 0 };
    for (int i = 0; i < WAN_TASKS; i++) {
        if (!strcasecmp(name, tasks[i].name)) {
            *out = (enum wan_task)i;
            return 0;
        }
        suggest_try(&nearest, tasks[i].name);
        str_addf(&all, "%s%s", !i ? "" : i + 1 < WAN_TASKS ? ", " : " or ", tasks[i].name);
    }
    cairn_fail(err, CAIRN_EUSAGE, "model.task \"%s\" is not known; it must be %s", name, all.s);
    return nearest.best ? cairn_hint(err, "did you mean %s?", nearest.best) : -1;
}

const char *wan_expert_name(enum wan_expert e)
{
    return e == WAN_EXPERT_LOW    ? "low-noise expert"
           : e == WAN_EXPERT_HIGH ? "high-noise expert"
                                  : "no expert";
}

/* ---- names of files ---- */

enum { PARTS = 3 /* of a path that are looked at: the file's name and two folders */, NAME_MAX_BYTES = 256 };

/* A part of a path, from its end, and where it begins; false: there are no more. */
static bool part_of(const char *path, size_t from_end, char out[NAME_MAX_BYTES], size_t *at)
{
    size_t end = strlen(path);
    for (size_t i = 0;; i++) {
        while (end && path_separator(path + end - 1) == path + end - 1)
            end--;
        size_t begin = end;
        while (begin && path_separator(path + begin - 1) != path + begin - 1)
            begin--;
        if (begin == end)
            return false;
        if (i == from_end) {
            size_t n = end - begin < NAME_MAX_BYTES ? end - begin : NAME_MAX_BYTES - 1;
            memcpy(out, path + begin, n);
            out[n] = '\0';
            *at = begin;
            return true;
        }
        end = begin;
    }
}

/* The next word of a name, in lower case.  It ends at a sign, at a digit, and before a capital that follows
 * or precedes a small letter ("HighNoise", "T2VHigh"). */
static const char *next_word(const char *name, char *word, size_t size)
{
    size_t n = 0;
    while (*name && !isalpha((unsigned char)*name))
        name++;
    for (const char *from = name; isalpha((unsigned char)*name); name++) {
        if (name > from && isupper((unsigned char)*name) &&
            (islower((unsigned char)name[-1]) || islower((unsigned char)name[1])))
            break;
        if (n + 1 < size)
            word[n++] = (char)tolower((unsigned char)*name);
    }
    word[n] = '\0';
    return n ? name : NULL;
}

/* "low" before one of these is of something else. */
static const char not_noise[] = "vram ram memory mem res resolution rank quality speed light poly fps";

static enum wan_expert expert_word(const char *word, const char *next)
{
    static const struct {
        const char *alone, *joined;
        enum wan_expert expert;
    } rows[] = { { "high", "highnoise", WAN_EXPERT_HIGH }, { "low", "lownoise", WAN_EXPERT_LOW } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!strcmp(word, rows[i].joined) ||
            (!strcmp(word, rows[i].alone) && !(*next && str_list_has(not_noise, ' ', next))))
            return rows[i].expert;
    return WAN_EXPERT_NONE;
}

/* A folder must say "noise" too, or consist of the one word: people have disks called "high-speed". */
static enum wan_expert expert_of_part(const char *name, bool is_folder)
{
    char word[32], next[32];
    enum wan_expert found = WAN_EXPERT_NONE;
    for (const char *at = next_word(name, word, sizeof(word)); at;) {
        const char *after = next_word(at, next, sizeof(next));
        enum wan_expert e = expert_word(word, after ? next : "");
        bool says_noise =
            strlen(word) > 4 || (after && !strcmp(next, "noise")) || strlen(name) == strlen(word);
        if (e && (!is_folder || says_noise)) {
            if (found && found != e)
                return WAN_EXPERT_NONE; /* it names both */
            found = e;
        }
        at = after;
        strcpy(word, next);
    }
    return found;
}

/* In the folders of diffusers "transformer" is the high-noise expert if there is a "transformer_2". */
static enum wan_expert expert_of_diffusers(const char *path, size_t at, const char *name)
{
    if (!strcmp(name, "transformer_2"))
        return WAN_EXPERT_LOW;
    if (strcmp(name, "transformer"))
        return WAN_EXPERT_NONE;
    CLEANUP(str_release) struct str sibling = { 0 };
    str_addn(&sibling, path, at);
    str_add(&sibling, "transformer_2");
    return os_is_folder(sibling.s) ? WAN_EXPERT_HIGH : WAN_EXPERT_NONE;
}

enum wan_expert wan_expert_by_name(const char *path)
{
    char name[NAME_MAX_BYTES];
    size_t at;
    for (size_t i = 0; i < PARTS && part_of(path, i, name, &at); i++) {
        enum wan_expert e = expert_of_part(name, i > 0);
        if (!e)
            e = expert_of_diffusers(path, at, name);
        if (e)
            return e;
    }
    return WAN_EXPERT_NONE;
}

/* "wan2.2", "Wan2_2", "wan22", "Wan-2.1": returns 21, 22 or 0. */
static int version_at(const char *p)
{
    p += *p && strchr("-_ .", *p) ? 1 : 0;
    if (*p++ != '2')
        return 0;
    bool apart = *p && strchr("._-", *p);
    p += apart;
    if ((*p != '1' && *p != '2') || (isdigit((unsigned char)p[1]) && (apart || *p == '1')))
        return 0; /* "wan_2_14B" has no minor version */
    return *p == '2' ? 22 : 21;
}

int wan_version_by_name(const char *path)
{
    char name[NAME_MAX_BYTES];
    size_t at;
    for (size_t i = 0; i < PARTS && part_of(path, i, name, &at); i++)
        for (const char *p = name; *p; p++) {
            if (!strncasecmp(p, "a14b", 4))
                return 22;
            int version = strncasecmp(p, "wan", 3) ? 0 : version_at(p + 3);
            if (version)
                return version;
        }
    return 0;
}

/* ---- the kind ---- */

/* Models that take and give the same things. */
enum family { FAMILY_T2V, FAMILY_I2V_CLIP, FAMILY_I2V, FAMILY_TI2V };

static enum family family_of(const struct wan_shape *s)
{
    if (s->clip_width)
        return FAMILY_I2V_CLIP;
    if (s->out == 48)
        return FAMILY_TI2V;
    bool control = s->in == 48 && s->out == 16;
    return s->in > s->out && !control ? FAMILY_I2V : FAMILY_T2V;
}

static bool is_released_width(size_t width)
{
    for (int i = 0; i < WAN_TASKS; i++)
        if (tasks[i].shape.width == width)
            return true;
    return false;
}

/* The task of a family, of the size of a released model if it has one. */
static enum wan_task task_by_tensors(const struct wan_shape *s, bool second)
{
    switch (family_of(s)) {
    case FAMILY_I2V_CLIP:
        return WAN_I2V_14B;
    case FAMILY_I2V:
        return WAN_I2V_A14B;
    case FAMILY_TI2V:
        return WAN_TI2V_5B;
    case FAMILY_T2V:
        break;
    }
    return second ? WAN_T2V_A14B : s->width == tasks[WAN_T2V_14B].shape.width ? WAN_T2V_14B : WAN_T2V_1_3B;
}

static int check_task(const struct wan_evidence *e, enum wan_task t, struct cairn_error *err)
{
    const struct wan_shape *s = &e->info->shape, *want = &tasks[t].shape;
    const char *like = tasks[task_by_tensors(s, t == WAN_T2V_A14B)].name;
    if (family_of(s) != family_of(want)) {
        cairn_fail(err, CAIRN_EUSAGE,
                   "%s is not %s: it has %zu input channels, %zu output channels and %s CLIP branch, like %s",
                   e->path, tasks[t].name, s->in, s->out, s->clip_width ? "a" : "no", like);
        return cairn_hint(err, "set model.task to %s, or model.path to another file", like);
    }
    if (s->width != want->width && is_released_width(s->width)) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is not %s: its hidden size is %zu, not %zu", e->path, tasks[t].name,
                   s->width, want->width);
        return cairn_hint(err, "set model.task to %s, or model.path to another file", like);
    }
    if (e->both && !tasks[t].boundary) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is one model, but there are files of two experts", tasks[t].name);
        return cairn_hint(err, "leave model.high_noise_path or model.task out");
    }
    return 0;
}

static void guess_task(const struct wan_evidence *e, struct wan_kind *out)
{
    const struct wan_shape *s = &e->info->shape;
    int version = wan_version_by_name(e->path);
    bool experts = e->both || e->expert;
    *out = (struct wan_kind){ .task = task_by_tensors(s, false), .by = WAN_BY_TENSORS };
    if (family_of(s) != FAMILY_T2V || s->width == tasks[WAN_T2V_1_3B].shape.width)
        return;
    out->task = task_by_tensors(s, experts || version == 22);
    out->by = e->both                                     ? WAN_BY_TENSORS
              : experts && e->expert_by == WAN_BY_SETTING ? WAN_BY_SETTING
              : experts || version                        ? WAN_BY_NAME
                                                          : WAN_BY_NOTHING;
}

/* Which expert a file is, and what is worth a warning. */
static void settle_expert(const struct wan_evidence *e, struct wan_kind *k, struct str *warning)
{
    bool has_experts = tasks[k->task].boundary > 0;
    k->expert = has_experts ? e->expert : WAN_EXPERT_NONE;
    k->expert_by = e->expert_by;
    if (!has_experts && e->expert)
        str_addf(warning, "%s: %s says %s, but %s has none", e->path,
                 e->expert_by == WAN_BY_SETTING ? "model.expert" : "its name", wan_expert_name(e->expert),
                 tasks[k->task].title);
    if (k->by == WAN_BY_NOTHING && e->info->shape.width == tasks[WAN_T2V_14B].shape.width)
        str_addf(warning, "%s could be %s or an expert of %s; it is taken for %s. Set model.task", e->path,
                 tasks[WAN_T2V_14B].name, tasks[WAN_T2V_A14B].name, tasks[k->task].name);
}

int wan_kind_of(const struct wan_evidence *e, struct wan_kind *out, struct str *warning,
                struct cairn_error *err)
{
    guess_task(e, out);
    if (e->task && *e->task) {
        if (wan_task_parse(e->task, &out->task, err) || check_task(e, out->task, err))
            return -1;
        out->by = WAN_BY_SETTING;
    }
    if (e->both && !tasks[out->task].boundary) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is like %s, which has no experts, but model.high_noise_path is set",
                   e->path, tasks[out->task].title);
        return cairn_hint(err, "leave model.high_noise_path out");
    }
    settle_expert(e, out, warning);
    return 0;
}

static const char *how_known(enum wan_known by, const char *setting)
{
    return by == WAN_BY_NAME ? "by its name" : by == WAN_BY_SETTING ? setting : "assumed";
}

void wan_kind_say(const struct wan_kind *k, const struct wan_file_info *info, struct str *out)
{
    str_add(out, tasks[k->task].title);
    if (k->by != WAN_BY_TENSORS && !k->expert)
        str_addf(out, " (%s)", how_known(k->by, "model.task"));
    if (k->expert)
        str_addf(out, ", %s (%s)", wan_expert_name(k->expert), how_known(k->expert_by, "as set"));
    str_addf(out, ", %s%s, %zu blocks, hidden size %zu, %s names", dtype_name(info->dtype),
             info->scaled ? " with scales" : "", info->shape.layers, info->shape.width,
             info->diffusers ? "diffusers" : "official");
    if (info->control)
        str_add(out, ", Fun-Control");
    if (info->files > 1)
        str_addf(out, ", %zu files", info->files);
}
