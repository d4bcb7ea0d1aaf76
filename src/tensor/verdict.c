/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/verdict.h"

#include "base/str.h"
#include "os/path.h"
#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum part {
    PART_WEIGHT,
    PART_CACHE, /* computed once and cached by a trainer: never zero, never constant */
    PART_LORA,
    PART_LORA_UP, /* zero until the first step */
    PART_STATE,   /* of an optimizer, and gradients: any size of number, zero at first */
    PART_MASK,    /* zeros and -inf by right */
    PART_FREE,    /* may be zero or constant: biases, running means */
};

/* Numbers that a healthy tensor keeps to.  The bands are wide on purpose: a normalised latent has a deviation
 * near 1, that of a single picture may be some way off. */
struct band {
    double zeros; /* at most this share of exact zeros */
    double least_std, most_std, most_mean, most_abs;
};
static const struct band latent_band = { 0.01, 0.02, 10, 5, 200 };
/* Four of twenty channels are a mask of zeros and ones. */
static const struct band image_band = { 0.21, 0.02, 10, 5, 200 };
static const struct band text_band = { 0.01, 1e-5, 100, 50, 1e5 };
/* Padded to a fixed length. */
static const struct band padded_band = { 1, 0, 100, 50, 1e5 };
static const struct band free_band = { 0.25, 0, INFINITY, INFINITY, INFINITY };

/* The first row that matches a name tells what it is. */
static const struct {
    const char *glob;
    enum part part;
    const struct band *band;
} parts[] = {
    { "latents_image_*x*x*_*", PART_CACHE, &image_band },
    { "latents_*x*x*_*", PART_CACHE, &latent_band },
    { "varlen_t5_*", PART_CACHE, &text_band },
    { "t5_*float*", PART_CACHE, &text_band },
    { "clip_*float*", PART_CACHE, &text_band },
    { "latent", PART_CACHE, &free_band },
    { "latents", PART_CACHE, &free_band },
    { "context", PART_CACHE, &padded_band },
    { "*.context", PART_CACHE, &padded_band },
    { "prompt_embeds", PART_CACHE, &padded_band },
    { "text_embeds", PART_CACHE, &padded_band },
    { "*lora_up*", PART_LORA_UP, NULL },
    { "*lora_B*", PART_LORA_UP, NULL },
    { "*hada_w2_a*", PART_LORA_UP, NULL },
    { "*lokr_w2*", PART_LORA_UP, NULL },
    { "*.oft_*", PART_LORA_UP, NULL },
    { "*lora_*", PART_LORA, NULL },
    { "*lokr_*", PART_LORA, NULL },
    { "*hada_*", PART_LORA, NULL },
    { "*.alpha", PART_FREE, NULL },
    { "grad.*", PART_STATE, NULL },
    { "*exp_avg*", PART_STATE, NULL },
    { "*momentum*", PART_STATE, NULL },
    { "*state1*", PART_STATE, NULL },
    { "*state2*", PART_STATE, NULL },
    { "*mask*", PART_MASK, NULL },
    { "*bias", PART_FREE, NULL },
    { "*running_mean", PART_FREE, NULL },
    { "*zero_conv*", PART_FREE, NULL },
    { "*scale_weight", PART_FREE, NULL },
    { "*weight_scale", PART_FREE, NULL },
    { "*scaled_fp8", PART_FREE, NULL },
};

static const char *const names[TENSOR_COUNT] = {
    [TENSOR_OK] = "ok",
    [TENSOR_SKIPPED] = "skipped",
    [TENSOR_SUSPICIOUS] = "suspicious",
    [TENSOR_CONSTANT] = "constant",
    [TENSOR_ALL_ZERO] = "all-zero",
    [TENSOR_HAS_INF] = "has-inf",
    [TENSOR_HAS_NAN] = "has-nan",
    [TENSOR_BAD_CHECKSUM] = "bad-checksum",
    [TENSOR_TRUNCATED] = "truncated",
    [TENSOR_UNREADABLE] = "unreadable",
};

const char *tensor_health_name(enum tensor_health v)
{
    return names[v];
}

/* One tensor with all that is known about it. */
struct tensor_facts {
    const struct st_tensor *t;
    const struct scan_stats *s;
    enum part part;
    const struct band *band; /* NULL: none */
    int dims;                /* that are larger than 1 */
};

static struct tensor_facts look_at(const struct st_tensor *t, const struct scan_stats *s)
{
    struct tensor_facts l = { .t = t, .s = s };
    for (int i = 0; i < t->rank; i++)
        l.dims += t->shape[i] > 1;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (fnmatch(parts[i].glob, t->name, 0))
            continue;
        l.part = parts[i].part;
        l.band = parts[i].band;
        break;
    }
    return l;
}

static double share(uint64_t n, const struct scan_stats *s)
{
    return (double)n / (double)s->n;
}

static const char *count_text(struct arena *a, uint64_t n, const struct scan_stats *s, const char *what)
{
    return arena_printf(a, "%" PRIu64 " of %" PRIu64 " values %s %s", n, s->n, n == 1 ? "is" : "are", what);
}

typedef bool rule(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v);

/* Sets a verdict; returns true: the rule applied. */
static bool say(struct tensor_verdict *v, enum tensor_health verdict, bool damaged, const char *why)
{
    *v = (struct tensor_verdict){ verdict, damaged, why };
    return true;
}

static bool has_wrong_sum(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    return l->s->wrong_sum &&
           say(v, TENSOR_BAD_CHECKSUM, true,
               arena_printf(a, "the entry %s does not match its CRC-32 in the archive", l->s->wrong_sum));
}

static bool cannot_scan(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    struct scan_kind kind;
    if (scan_kind_of(l->t, &kind))
        return false;
    return say(v, TENSOR_SKIPPED, false,
               arena_printf(a, "values of dtype %s are not checked", l->t->dtype_text));
}

static bool not_judged(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    (void)a;
    bool whole_number = l->t->dtype != DTYPE_OTHER && !dtype_is_float(l->t->dtype);
    return (l->s->n == 0 || whole_number) && say(v, TENSOR_OK, false, NULL);
}

/* Of complex numbers, bare exponents and the like nobody knows what is usual. */
static bool is_odd_kind(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    (void)a;
    return l->t->dtype == DTYPE_OTHER && say(v, TENSOR_OK, false, NULL);
}

static bool has_nan(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    return l->s->nan && say(v, TENSOR_HAS_NAN, true, count_text(a, l->s->nan, l->s, "NaN"));
}

static bool has_inf(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    return l->s->inf &&
           say(v, TENSOR_HAS_INF, l->part != PART_MASK, count_text(a, l->s->inf, l->s, "infinite"));
}

static bool is_scalar(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    (void)a;
    return l->s->n == 1 && say(v, TENSOR_OK, false, NULL);
}

static bool is_zero(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    if (l->s->zero != l->s->n)
        return false;
    return say(v, TENSOR_ALL_ZERO, l->part == PART_CACHE,
               arena_printf(a, "all %" PRIu64 " values are zero", l->s->n));
}

static bool is_constant(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    if (l->s->min != l->s->max)
        return false;
    return say(v, TENSOR_CONSTANT, l->part == PART_CACHE,
               arena_printf(a, "all %" PRIu64 " values are %.6g", l->s->n, l->s->min));
}

/* In bf16 and f32 an encoder's output is never exactly zero by chance; trainers write 0 in place of NaN.  fp8
 * is coarse. */
static bool cache_has_zeros(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    enum { BY_CHANCE = 8 };
    if (!l->band)
        return false;
    double most = dtype_size(l->t->dtype) == 1 ? fmax(l->band->zeros, 0.25) : l->band->zeros;
    if (l->s->zero <= BY_CHANCE || share(l->s->zero, l->s) <= most)
        return false;
    return say(
        v, TENSOR_SUSPICIOUS, true,
        arena_printf(a, "%.1f %% of the values are exactly zero, as if NaN was replaced or a copy stopped",
                     100 * share(l->s->zero, l->s)));
}

static bool cache_is_off(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    enum { TOO_FEW = 64 };
    if (!l->band || l->s->n < TOO_FEW)
        return false;
    double mean = scan_mean(l->s), std = scan_std(l->s), absmax = scan_absmax(l->s);
    if (std >= l->band->least_std && std <= l->band->most_std && fabs(mean) <= l->band->most_mean &&
        absmax <= l->band->most_abs)
        return false;
    return say(v, TENSOR_SUSPICIOUS, true,
               arena_printf(
                   a,
                   "mean %.3g, standard deviation %.3g, largest %.3g are impossible for an encoder's output",
                   mean, std, absmax));
}

static bool is_matrix(const struct tensor_facts *l)
{
    return l->dims >= 2 && (l->part == PART_WEIGHT || l->part == PART_LORA);
}

static bool is_half_zero(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    enum { TOO_FEW = 64 };
    uint64_t edge = l->s->zero_head > l->s->zero_tail ? l->s->zero_head : l->s->zero_tail;
    if (!is_matrix(l) || l->s->n < TOO_FEW || edge < l->s->n / 2)
        return false;
    return say(v, TENSOR_SUSPICIOUS, true,
               arena_printf(a, "the %s %.0f %% is zero, as if a copy stopped",
                            edge == l->s->zero_tail ? "last" : "first", 100 * share(edge, l->s)));
}

/* Formats with eight exponent bits or more can represent values that no weight has; bytes of another format,
 * read as one of these, give them. */
static bool is_absurd(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    static const double most = 1e15, most_subnormal = 0.01;
    bool wide = l->t->dtype == DTYPE_BF16 || l->t->dtype == DTYPE_F32 || l->t->dtype == DTYPE_F64;
    if (!wide || l->part == PART_MASK || l->part == PART_STATE)
        return false;
    if (scan_absmax(l->s) > most)
        return say(v, TENSOR_SUSPICIOUS, true,
                   arena_printf(a, "the largest value is %.3g: bytes of another dtype, or garbage",
                                scan_absmax(l->s)));
    if (l->part == PART_LORA_UP || share(l->s->subnormal, l->s) <= most_subnormal)
        return false;
    return say(v, TENSOR_SUSPICIOUS, true,
               arena_printf(a, "%.1f %% of the values are subnormal: bytes of another dtype, or garbage",
                            100 * share(l->s->subnormal, l->s)));
}

/* The first rule that applies decides. */
static rule *const rules[] = {
    has_wrong_sum, cannot_scan, not_judged,      has_nan,      has_inf,      is_scalar, is_zero,
    is_constant,   is_odd_kind, cache_has_zeros, cache_is_off, is_half_zero, is_absurd,
};

static void judge_tensor(const struct tensor_facts *l, struct arena *a, struct tensor_verdict *v)
{
    *v = (struct tensor_verdict){ TENSOR_OK, false, NULL };
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i](l, a, v))
            return;
}

static bool is_flat(const struct tensor_verdict *v)
{
    return v->verdict == TENSOR_ALL_ZERO || v->verdict == TENSOR_CONSTANT;
}

/* Tensors that represent the file: several floating-point values that must not all be zero. */
static bool counts(const struct tensor_facts *l)
{
    return l->s->n > 1 && dtype_is_float(l->t->dtype) && (l->part == PART_WEIGHT || l->part == PART_LORA);
}

static void judge_all_flat(const struct tensor_facts *facts, size_t n, struct tensor_verdict *v)
{
    size_t weights = 0, flat = 0;
    for (size_t i = 0; i < n; i++) {
        weights += counts(&facts[i]);
        flat += counts(&facts[i]) && is_flat(&v[i]);
    }
    if (!weights || flat != weights)
        return;
    for (size_t i = 0; i < n; i++)
        if (counts(&facts[i]))
            v[i].damaged = true;
}

/* "blocks.12.ffn.0.weight" and "blocks.3.ffn.0.weight" are twins: both are "blocks.#.ffn.#.weight". */
struct twin {
    char *pattern;
    size_t index;
};

static char *pattern_of(struct arena *a, const char *name)
{
    char *out = arena_strdup(a, name), *to = out;
    for (const char *p = name; *p; p++) {
        bool digit = isdigit((unsigned char)*p);
        if (!digit || p == name || !isdigit((unsigned char)p[-1]))
            *to++ = digit ? '#' : *p;
    }
    *to = '\0';
    return out;
}

static int by_pattern(const void *a, const void *b)
{
    const struct twin *x = a, *y = b;
    int c = strcmp(x->pattern, y->pattern);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

static void judge_group(const struct twin *group, size_t n, struct arena *a, struct tensor_verdict *v)
{
    size_t flat = 0;
    for (size_t i = 0; i < n; i++)
        flat += is_flat(&v[group[i].index]);
    if (!flat || n - flat < 2)
        return;
    for (size_t i = 0; i < n; i++) {
        struct tensor_verdict *one = &v[group[i].index];
        if (!is_flat(one))
            continue;
        one->damaged = true;
        one->why =
            arena_printf(a, "%s; those of the same tensor in %zu other blocks are not", one->why, n - flat);
    }
}

static void judge_twins(const struct tensor_facts *facts, size_t n, struct arena *a, struct tensor_verdict *v)
{
    struct twin *twins = ARENA_NEW(a, struct twin, n + 1);
    size_t m = 0, flat = 0;
    for (size_t i = 0; i < n; i++)
        flat += is_matrix(&facts[i]) && is_flat(&v[i]);
    for (size_t i = 0; i < n && flat; i++)
        if (is_matrix(&facts[i]) && facts[i].s->n > 1)
            twins[m++] = (struct twin){ pattern_of(a, facts[i].t->name), i };
    qsort(twins, m, sizeof(*twins), by_pattern);
    for (size_t at = 0, end; at < m; at = end) {
        for (end = at + 1; end < m && !strcmp(twins[at].pattern, twins[end].pattern);)
            end++;
        judge_group(twins + at, end - at, a, v);
    }
}

/* What to do; the first row that fits.  TENSOR_COUNT and -1 stand for any. */
static const struct {
    enum tensor_health verdict;
    int part;
    const char *text;
} remedies[] = {
    { TENSOR_COUNT, PART_CACHE, "re-encode this cache file: delete it and let the trainer cache again" },
    { TENSOR_HAS_NAN, PART_LORA, "training diverged; go back to an earlier checkpoint" },
    { TENSOR_HAS_NAN, PART_LORA_UP, "training diverged; go back to an earlier checkpoint" },
    { TENSOR_HAS_INF, PART_LORA, "training diverged; go back to an earlier checkpoint" },
    { TENSOR_HAS_INF, PART_LORA_UP, "training diverged; go back to an earlier checkpoint" },
    { TENSOR_TRUNCATED, -1, "download this file again, or copy it again: its end is missing" },
    { TENSOR_UNREADABLE, -1,
      "download this file again, or copy it again: it is damaged, or not a tensor file" },
    { TENSOR_COUNT, -1, "download this file again, or convert it again from its source" },
};

/* "model-repaired.safetensors" for "model.pth"; convert writes that format. */
static void add_new_name(struct str *to, const char *path)
{
    const char *dot = strrchr(path_name(path), '.');
    CLEANUP(str_release) struct str name = { 0 };
    str_addn(&name, path, dot && dot > path_name(path) ? (size_t)(dot - path) : strlen(path));
    str_add(&name, "-repaired.safetensors");
    str_add_word(to, name.s);
}

/* The command that repairs all that is NaN or Inf in the file.  Infinities become the largest of its other
 * values: the largest that the dtype can hold would be as wrong as they are. */
static const char *repair(const struct tensor_facts *facts, size_t n, const char *path, struct arena *a)
{
    CLEANUP(str_release) struct str text = { 0 };
    bool nan = false, inf = false;
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        bool floating = dtype_is_float(facts[i].t->dtype);
        nan |= floating && facts[i].s->nan;
        inf |= floating && facts[i].s->inf;
        if (floating && facts[i].part != PART_MASK)
            most = fmax(most, scan_absmax(facts[i].s));
    }
    if (!nan && !inf)
        return NULL;
    str_add(&text, "download this file again, or repair it: cairn tensor convert ");
    str_add_word(&text, path);
    str_add(&text, " ");
    add_new_name(&text, path);
    str_add(&text, nan ? " --nan 0" : "");
    if (inf && most > 0)
        str_addf(&text, " --clamp=%.9g", most);
    else if (inf)
        str_add(&text, " --clamp");
    return arena_strdup(a, text.s);
}

static const char *remedy(enum tensor_health v, enum part part)
{
    for (size_t i = 0; i < ARRAY_LEN(remedies); i++)
        if ((remedies[i].verdict == TENSOR_COUNT || remedies[i].verdict == v) &&
            (remedies[i].part < 0 || remedies[i].part == (int)part))
            return remedies[i].text;
    return NULL;
}

void verdict_judge(const struct tensor_source *src, const struct scan_stats *stats, struct arena *a,
                   struct tensor_verdict *out, struct file_verdict *file)
{
    size_t n = src->n_tensors, worst = n;
    struct tensor_facts *facts = ARENA_NEW(a, struct tensor_facts, n + 1);
    for (size_t i = 0; i < n; i++) {
        facts[i] = look_at(&src->tensors[i], &stats[i]);
        judge_tensor(&facts[i], a, &out[i]);
    }
    judge_all_flat(facts, n, out);
    judge_twins(facts, n, a, out);
    *file = (struct file_verdict){ .verdict = TENSOR_OK };
    for (size_t i = 0; i < n; i++) {
        file->n_skipped += out[i].verdict == TENSOR_SKIPPED;
        if (!out[i].damaged)
            continue;
        file->n_damaged++;
        worst = worst == n || out[i].verdict > out[worst].verdict ? i : worst;
    }
    if (worst == n) {
        file->verdict = file->n_skipped ? TENSOR_SKIPPED : TENSOR_OK;
        return;
    }
    file->damaged = true;
    file->verdict = out[worst].verdict;
    file->name = arena_strdup(a, src->tensors[worst].name);
    file->why = out[worst].why;
    const char *command = file->verdict == TENSOR_HAS_NAN || file->verdict == TENSOR_HAS_INF
                              ? repair(facts, n, src->path, a)
                              : NULL;
    bool weights = facts[worst].part != PART_CACHE && facts[worst].part != PART_LORA &&
                   facts[worst].part != PART_LORA_UP;
    file->todo = command && weights ? command : remedy(file->verdict, facts[worst].part);
}

/* Names that musubi-tuner gives to its cache files. */
static bool is_cache_path(const char *path)
{
    return str_ends(path, "_wan.safetensors") || str_ends(path, "_te.safetensors");
}

/* The readers have one error code for all defects of a file; their messages say which. */
static bool is_cut(const struct cairn_error *err)
{
    static const char *const words[] = { "truncated", "too few" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (err->code == CAIRN_EFORMAT && strstr(err->msg, words[i]))
            return true;
    return false;
}

void verdict_unread(const char *path, const struct cairn_error *err, struct arena *a,
                    struct file_verdict *file)
{
    enum tensor_health v = is_cut(err) ? TENSOR_TRUNCATED : TENSOR_UNREADABLE;
    bool cache = err->code == CAIRN_EFORMAT && is_cache_path(path);
    /* The path is printed beside the verdict already. */
    size_t n = strlen(path);
    bool has_path = str_starts(err->msg, path) && str_starts(err->msg + n, ": ");
    *file = (struct file_verdict){
        .verdict = v,
        .damaged = true,
        .why = arena_strdup(a, has_path ? err->msg + n + 2 : err->msg),
        .todo = err->code != CAIRN_EFORMAT ? "check the path and its permissions"
                : v == TENSOR_UNREADABLE && err->hint[0]
                    ? arena_strdup(a, err->hint) /* a reader that knows */
                    : remedy(v, cache ? PART_CACHE : PART_WEIGHT),
    };
}
