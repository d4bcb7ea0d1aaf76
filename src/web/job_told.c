/* SPDX-License-Identifier: Apache-2.0 */
#include "web/job_told.h"

#include "base/hash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void job_told_release(struct job_told *t)
{
    free(t->job);
    *t = (struct job_told){ 0 };
}

/* The first that is not before it. */
static size_t place_of(const struct job_told *t, const char *uid)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(t->job[middle].uid, uid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct told *job_told_of(struct job_told *t, const char *uid)
{
    size_t at = place_of(t, uid);
    if (at < t->n && !strcmp(t->job[at].uid, uid))
        return &t->job[at];
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->job = realloc(t->job, t->room * sizeof(*t->job));
        if (!t->job)
            abort();
    }
    memmove(&t->job[at + 1], &t->job[at], (t->n++ - at) * sizeof(*t->job));
    t->job[at] = (struct told){ 0 };
    snprintf(t->job[at].uid, sizeof(t->job[at].uid), "%s", uid);
    return &t->job[at];
}

void job_told_forget(struct job_told *t, const char *uid)
{
    size_t at = place_of(t, uid);
    if (at == t->n || strcmp(t->job[at].uid, uid))
        return;
    t->n--;
    memmove(&t->job[at], &t->job[at + 1], (t->n - at) * sizeof(*t->job));
}

static void add_text(struct hash *h, const char *text)
{
    hash_add_u64(h, text ? strlen(text) + 1 : 0);
    hash_add(h, text ? text : "", text ? strlen(text) : 0);
}

uint64_t job_told_hash(const struct job_row *row)
{
    const char *const texts[] = { row->uid,     row->name,     row->argv,     row->options,
                                  row->gpu,     row->gpu_used, row->class_id, row->cause,
                                  row->run_dir, row->parent,   row->note };
    const int64_t numbers[] = { row->kind,     row->state,     row->want,          row->attempt,
                                row->has_exit, row->exit_code, row->created,       row->started,
                                row->finished, row->version,   (int64_t)row->mark, row->pid };
    uint64_t position, out[2];
    struct hash h;
    if (row->adopted ? !row->mark : row->pid || job_state_is_running(row->state))
        return 0;
    hash_init(&h);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        add_text(&h, texts[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        hash_add_u64(&h, (uint64_t)numbers[i]);
    memcpy(&position, &row->position, sizeof(position));
    hash_add_u64(&h, position);
    hash_end(&h, out);
    return out[0] | 1;
}
