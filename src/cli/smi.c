/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi.h"

#include "rules/plan.h"
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

extern char **environ;

static void read_clock(char *buf, size_t size)
{
    struct timeval now;
    struct tm tm;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &tm);
    size_t n = strftime(buf, size, "%Y/%m/%d %H:%M:%S", &tm);
    snprintf(buf + n, size - n, ".%03d", (int)(now.tv_usec / 1000));
}

int smi_read(struct smi *s, const char *root, struct cairn_error *err)
{
    const struct facts_options o = { .root = root,
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
    read_clock(s->now, sizeof(s->now));
    return 0;
}

void smi_release(struct smi *s)
{
    facts_release(&s->facts);
    s->n_gpus = 0;
}
