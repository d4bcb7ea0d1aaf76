/* SPDX-License-Identifier: Apache-2.0 */
#include "web/job_texts.h"

#include "report/jobs.h"
#include "web/job_told.h"
#include <stdlib.h>
#include <string.h>

/* A text has one of so many neighboring slots. */
enum { NEAR = 8 };

struct job_text {
    uint64_t hash; /* 0: free */
    char *text;
    size_t n;
};

void job_texts_release(struct job_texts *t)
{
    for (size_t i = 0; t->slot && i < JOB_TEXTS_MOST; i++)
        free(t->slot[i].text);
    free(t->slot);
    *t = (struct job_texts){ 0 };
}

/* The slot that has the text, else a free one near its place, else the one at its place. */
static struct job_text *slot_of(struct job_texts *t, uint64_t hash)
{
    size_t place = (size_t)(hash >> 32);
    struct job_text *out = &t->slot[place % JOB_TEXTS_MOST], *free_one = NULL;
    for (size_t i = 0; i < NEAR; i++) {
        struct job_text *s = &t->slot[(place + i) % JOB_TEXTS_MOST];
        if (s->hash == hash)
            return s;
        if (!s->hash && !free_one)
            free_one = s;
    }
    return free_one ? free_one : out;
}

static char *make(const char *state, const struct job_row *row)
{
    CLEANUP(json_cleanup) struct json *v = report_job(state, row, false, NULL);
    return json_to_short(v);
}

void job_texts_add(struct job_texts *t, const char *state, const struct job_row *row, struct str *out)
{
    uint64_t hash = job_told_hash(row);
    if (hash)
        hash += queue_is_resumable(row); /* its checkpoints may have been removed */
    if (!hash) {
        CLEANUP(mem_free) char *text = make(state, row);
        str_add(out, text);
        return;
    }
    if (!t->slot && !(t->slot = calloc(JOB_TEXTS_MOST, sizeof(*t->slot))))
        abort();
    struct job_text *s = slot_of(t, hash);
    if (s->hash != hash) {
        free(s->text);
        s->text = make(state, row);
        s->n = strlen(s->text);
        s->hash = hash;
        t->made++;
    }
    str_addn(out, s->text, s->n);
}
