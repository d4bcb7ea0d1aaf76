/* SPDX-License-Identifier: Apache-2.0 */
#include "train/wan_prompts.h"
#include "base/str.h"

#include <string.h>

/* ai-toolkit, too, adds the word only where a prompt asks for it. */
static const char *with_trigger(const char *text, const char *trigger, struct arena *a)
{
    static const char place[] = "[trigger]";
    const char *at = strstr(text, place);
    if (!at)
        return text;
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, trigger,
                        with_trigger(at + strlen(place), trigger, a));
}

/* Those of the command line belong to the current folder. */
static bool is_typed(const struct job_config *c)
{
    const char *place = config_place(c, "sample.prompts");
    return place && str_starts(place, "--");
}

static void complete(const struct job_config *c, struct sample_prompt *p, size_t index, struct arena *a)
{
    const struct wan_keys *k = wan_keys(c);
    if (p->image && !is_typed(c))
        p->image = config_find(c, p->image);
    p->text = with_trigger(p->text, k->data.trigger, a);
    if (!p->negative)
        p->negative = k->sample.negative;
    if (p->fps <= 0)
        p->fps = k->sample.fps;
    if (!p->steps)
        p->steps = (size_t)k->sample.steps;
    if (p->seed < 0)
        p->seed = k->sample.seed + (k->sample.walk_seed ? (int64_t)index : 0);
}

int wan_prompts_of(const struct job_config *c, const char *const *lines, size_t n_lines, struct arena *a,
                   struct sample_prompt **out, size_t *n, struct cairn_error *err)
{
    *out = NULL;
    *n = 0;
    for (size_t i = 0; i < n_lines; i++) {
        struct sample_prompt *p = ARENA_PUSH(a, *out, *n);
        if (prompt_parse(lines[i], a, p, err))
            return -1;
        complete(c, p, i, a);
    }
    return 0;
}

int wan_prompts(const struct job_config *c, struct arena *a, struct sample_prompt **out, size_t *n,
                struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct sample_prompt *from_file = NULL;
    size_t n_file = 0;
    if (wan_prompts_of(c, k->sample.prompts.item, k->sample.prompts.n, a, out, n, err))
        return config_wrap(c, "sample.prompts", NULL, err);
    if (k->sample.file[0] && prompts_read(k->sample.file, a, &from_file, &n_file, err))
        return config_wrap(c, "sample.file", "it takes a file with a prompt on each line", err);
    for (size_t i = 0; i < n_file; i++) {
        complete(c, &from_file[i], *n, a);
        *ARENA_PUSH(a, *out, *n) = from_file[i];
    }
    return 0;
}

const char **wan_prompts_texts(const struct sample_prompt *prompts, size_t n, struct arena *a,
                               size_t *n_texts)
{
    const char **texts = ARENA_NEW(a, const char *, 2 * n + 1);
    *n_texts = 0;
    texts[(*n_texts)++] = "";
    for (size_t i = 0; i < 2 * n; i++) {
        const char *text = i % 2 ? prompts[i / 2].negative : prompts[i / 2].text;
        bool known = false;
        for (size_t k = 0; k < *n_texts; k++)
            known = known || !strcmp(texts[k], text);
        if (!known)
            texts[(*n_texts)++] = text;
    }
    return texts;
}
