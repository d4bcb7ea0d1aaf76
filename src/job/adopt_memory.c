/* SPDX-License-Identifier: Apache-2.0 */
#include "job/adopt_memory.h"

#include <stdlib.h>
#include <string.h>

/* What a run of a terminal has; the other texts of its row are the same for all. */
struct adopt_known {
    struct job_row row;
    char *text[6];
    bool exists; /* in the list that is made */
};

/* Where the texts of a row are, the folder first. */
static const size_t places[] = { offsetof(struct job_row, run_dir),  offsetof(struct job_row, uid),
                                 offsetof(struct job_row, name),     offsetof(struct job_row, argv),
                                 offsetof(struct job_row, class_id), offsetof(struct job_row, cwd) };

static const char **text_of(struct job_row *row, size_t i)
{
    return (const char **)(void *)((char *)row + places[i]);
}

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

static void forget(struct adopt_known *k)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        free(k->text[i]);
}

void adopt_memory_release(struct adopt_memory *m)
{
    for (size_t i = 0; i < m->n; i++)
        forget(&m->known[i]);
    free(m->known);
    *m = (struct adopt_memory){ 0 };
}

void adopt_memory_begin(struct adopt_memory *m)
{
    for (size_t i = 0; i < m->n; i++)
        m->known[i].exists = false;
}

static int by_folder(const void *dir, const void *known)
{
    return strcmp(dir, ((const struct adopt_known *)known)->text[0]);
}

bool adopt_memory_get(struct adopt_memory *m, const char *dir, uint64_t mark, struct arena *a,
                      struct job_row *out)
{
    struct adopt_known *k = m->sorted ? bsearch(dir, m->known, m->sorted, sizeof(*k), by_folder) : NULL;
    if (!k || k->row.mark != mark)
        return false;
    k->exists = true;
    *out = k->row;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        *text_of(out, i) = arena_strdup(a, k->text[i]);
    return true;
}

void adopt_memory_put(struct adopt_memory *m, const struct job_row *row)
{
    if (m->n == m->room) {
        m->room = m->room ? 2 * m->room : 64;
        m->known = need(realloc(m->known, m->room * sizeof(*m->known)));
    }
    struct adopt_known *k = &m->known[m->n++];
    *k = (struct adopt_known){ .row = *row, .exists = true };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *text = *text_of(&k->row, i);
        k->text[i] = text ? need(strdup(text)) : NULL;
    }
}

static int compare(const void *a, const void *b)
{
    return by_folder(((const struct adopt_known *)a)->text[0], b);
}

void adopt_memory_end(struct adopt_memory *m)
{
    bool any_new = m->n > m->sorted;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->known[i].exists)
            m->known[n++] = m->known[i];
        else
            forget(&m->known[i]);
    m->n = m->sorted = n;
    if (any_new)
        qsort(m->known, n, sizeof(*m->known), compare);
}
