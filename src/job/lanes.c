/* SPDX-License-Identifier: Apache-2.0 */
#include "job/lanes.h"

#include "base/parse.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

enum { MOST_GPUS = 64 };

/* A lane of "auto". */
static bool can_train(const struct gpu_facts *g)
{
    return g->rocm_capable && g->hip_index >= 0;
}

static bool exists(const struct facts *f, uint64_t index)
{
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].hip_index >= 0 && (uint64_t)f->gpus[i].hip_index == index)
            return true;
    return false;
}

/* The numbers as bits. */
static int parse_numbers(const char *wish, const struct facts *f, uint64_t *set, struct cairn_error *err)
{
    *set = 0;
    for (const char *at = wish;; at++) {
        char word[24];
        uint64_t index;
        size_t n = strcspn(at, ",");
        snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), at);
        if (!cairn_parse_u64(word, &index))
            return cairn_fail(err, CAIRN_EUSAGE,
                              "a GPU is auto, cpu or a number, or several such as 0,1; not \"%s\"", wish);
        if (index >= MOST_GPUS || !exists(f, index)) {
            cairn_fail(err, CAIRN_ELACK, "this machine has no GPU %s that can train", word);
            return cairn_hint(err, "`cairn gpu` lists the GPUs; --gpu cpu trains on the CPU");
        }
        *set |= (uint64_t)1 << index;
        at += n;
        if (!*at)
            return 0;
    }
}

int lanes_parse(const char *wish, enum job_kind kind, const struct facts *f, struct arena *a,
                const char **out, struct cairn_error *err)
{
    uint64_t set;
    const char *list = "";
    if (str_eq(wish, "auto") || str_eq(wish, "cpu")) {
        *out = arena_strdup(a, wish);
        return 0;
    }
    if (parse_numbers(wish, f, &set, err))
        return -1;
    if (kind != JOB_RUN && set & (set - 1)) {
        cairn_fail(err, CAIRN_EUSAGE, "`cairn %s` uses one GPU, not \"%s\"", job_kind_name(kind), wish);
        return cairn_hint(err, "give one number, or auto; a command after -- can have several");
    }
    for (int i = 0; i < MOST_GPUS; i++)
        if (set >> i & 1)
            list = arena_printf(a, "%s%s%d", list, *list ? "," : "", i);
    *out = list;
    return 0;
}

static bool is_taken(const char *lane, const char *const *taken, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_list_has(taken[i], ',', lane))
            return true;
    return false;
}

static bool any_is_taken(const char *lanes, const char *const *taken, size_t n)
{
    char lane[24];
    for (const char *at = lanes; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        snprintf(lane, sizeof(lane), "%.*s", (int)len, at);
        if (is_taken(lane, taken, n))
            return true;
        at += len;
    }
    return false;
}

/* The first free GPU, the one that cairn would choose before the others; without a GPU the CPU. */
static const char *choose_any(const struct facts *f, const char *const *taken, size_t n, struct arena *a)
{
    bool has_gpu = false;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < f->n_gpus; i++) {
            bool is_default = (int)i == f->default_gpu;
            if (!can_train(&f->gpus[i]) || is_default != (pass == 0))
                continue;
            const char *lane = arena_printf(a, "%d", f->gpus[i].hip_index);
            has_gpu = true;
            if (!is_taken(lane, taken, n))
                return lane;
        }
    return has_gpu || is_taken("cpu", taken, n) ? NULL : "cpu";
}

const char *lanes_choose(const char *wish, const struct facts *f, const char *const *taken, size_t n_taken,
                         struct arena *a)
{
    if (str_eq(wish, "auto"))
        return choose_any(f, taken, n_taken, a);
    return any_is_taken(wish, taken, n_taken) ? NULL : arena_strdup(a, wish);
}
