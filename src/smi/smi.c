/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/smi.h"

#include "base/parse.h"
#include "base/str.h"
#include "rules/plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>

extern char **environ;

static void read_clock(struct smi *s)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &s->time);
    size_t n = strftime(s->now, sizeof(s->now), "%Y/%m/%d %H:%M:%S", &s->time);
    snprintf(s->now + n, sizeof(s->now) - n, ".%03d", (int)(now.tv_usec / 1000));
    strftime(s->date, sizeof(s->date), "%a %b %e %H:%M:%S %Y", &s->time);
}

int smi_read(struct smi *s, const char *root, struct cairn_error *err)
{
    const struct facts_options o = { .root = root ? root : getenv("CAIRN_SMI_ROOT"),
                                     .env = (const char *const *)environ,
                                     .parts = FACTS_HARDWARE };
    *s = (struct smi){ .n_gpus = 0 };
    if (facts_read(&s->facts, &o, err))
        return -1;
    struct arena *a = &s->facts.arena;
    const struct gpu_facts **shown;
    s->n_gpus = s->count = plan_shown(&s->facts, a, &shown);
    s->gpus = ARENA_NEW(a, struct smi_gpu, s->n_gpus);
    for (size_t i = 0; i < s->n_gpus; i++)
        s->gpus[i] = (struct smi_gpu){ shown[i], i, memory_use(&s->facts.host, a, shown[i]) };
    read_clock(s);
    return 0;
}

void smi_release(struct smi *s)
{
    facts_release(&s->facts);
    s->n_gpus = 0;
}

/* Programs compare it as a version, so "6.17.0-12-generic" is cut to its number. */
const char *smi_driver_version(struct smi *s)
{
    const struct host_facts *h = &s->facts.host;
    const char *text = h->amdgpu_version.s ? h->amdgpu_version.s : h->kernel.s;
    size_t n = text ? strspn(text, "0123456789.") : 0;
    while (n && text[n - 1] == '.')
        n--;
    return n ? arena_strndup(&s->facts.arena, text, n) : NULL;
}

static bool shares_uuid(const struct smi *s, const struct gpu_facts *f)
{
    for (size_t i = 0; i < s->facts.n_gpus; i++)
        if (&s->facts.gpus[i] != f && str_eq(s->facts.gpus[i].uuid.s, f->uuid.s))
            return true;
    return false;
}

const char *smi_uuid(struct smi *s, const struct smi_gpu *g)
{
    const struct gpu_facts *f = g->facts;
    struct arena *a = &s->facts.arena;
    if (f->uuid.s)
        return shares_uuid(s, f) ? arena_printf(a, "%s-%d", f->uuid.s, (int)f->kfd_node.v) : f->uuid.s;
    if (!f->pci.s)
        return NULL;
    char *text = arena_printf(a, "GPU-%s", f->pci.s);
    for (char *c = text; *c; c++)
        if (*c == ':' || *c == '.')
            *c = '-';
    return text;
}

static bool same_address(const char *pci, const char *id)
{
    size_t n = strlen(id), have = pci ? strlen(pci) : 0;
    if (!strchr(id, ':') || !have)
        return false;
    return n >= have ? !strcasecmp(id + n - have, pci) && strspn(id, "0") >= n - have
                     : !strcasecmp(pci + have - n, id);
}

static bool is_gpu(struct smi *s, const struct smi_gpu *g, const char *id)
{
    uint64_t index;
    const struct gpu_facts *f = g->facts;
    const char *uuid = smi_uuid(s, g);
    if (cairn_parse_u64(id, &index) && index == g->index)
        return true;
    return (uuid && !strcasecmp(uuid, id)) || str_eq(f->serial.s, id) || same_address(f->pci.s, id);
}

const char *smi_next_word(const char *list)
{
    const char *comma = strchr(list, ',');
    return comma ? comma + 1 : NULL;
}

void smi_select(struct smi *s, const char *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_gpus; i++) {
        bool named = !ids;
        for (const char *at = ids; at && !named; at = smi_next_word(at))
            named = is_gpu(s, &s->gpus[i], arena_strndup(&s->facts.arena, at, strcspn(at, ",")));
        if (named)
            s->gpus[n++] = s->gpus[i];
    }
    s->n_gpus = n;
}
