/* SPDX-License-Identifier: Apache-2.0
 * The list of jobs, with the runs that were started in a terminal. */
#include "base/str.h"
#include "job/adopt.h"
#include "report/jobs.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/jobs.h"
#include <stdlib.h>
#include <string.h>

enum { LIST_MOST = 2000 };

static int newest_first(const void *a, const void *b)
{
    return strcmp(((const struct job_row *)b)->uid, ((const struct job_row *)a)->uid);
}

/* Jobs, and runs of a terminal, in one list. */
static int read_list(struct request *r, struct queue *q, const struct store_query *query,
                     struct job_row **rows, size_t *n, struct cairn_error *err)
{
    struct job_row *runs;
    size_t n_runs;
    if (store_list(q->store, query, &r->arena, rows, n, err) ||
        adopt_list(&q->adopted, q->o.state, &r->arena, &runs, &n_runs, err))
        return -1;
    for (size_t i = 0; i < n_runs; i++)
        if ((!query->states || query->states & 1u << runs[i].state) &&
            (!query->before || strcmp(runs[i].uid, query->before) < 0) &&
            (!query->text || strcasestr(runs[i].name, query->text)))
            *ARENA_PUSH(&r->arena, *rows, *n) = runs[i];
    if (*n)
        qsort(*rows, *n, sizeof(**rows), newest_first);
    return 0;
}

static bool parse_states(struct request *r, unsigned *out)
{
    const char *list = request_query(r, "state");
    *out = 0;
    for (const char *at = list; at && *at; at += strspn(at, ",")) {
        size_t n = strcspn(at, ",");
        enum job_state state;
        if (!job_state_parse(arena_strndup(&r->arena, at, n), &state)) {
            answer_problem(r, 400, "there is no state \"%.*s\"", (int)(n < 40 ? n : 40), at);
            return false;
        }
        *out |= 1u << state;
        at += n;
    }
    return true;
}

/* As report_jobs, with the texts of jobs that did not change. */
static void answer_list(struct request *r, const char *state, const struct job_row *rows, size_t n, bool more,
                        bool paused)
{
    CLEANUP(json_cleanup) struct json *rest = json_new_object();
    struct str text = { 0 };
    str_add(&text, "{\"schema\":1,\"jobs\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_add(&text, ",");
        job_texts_add(&r->web->texts, state, &rows[i], &text);
    }
    report_jobs_end(rest, more && n ? rows[n - 1].uid : NULL, paused);
    CLEANUP(mem_free) char *end = json_to_short(rest);
    str_addf(&text, "],%s", end + 1);
    answer_json_text(r, 200, text.s, text.len, text.s);
}

void api_jobs_list(struct request *r)
{
    struct store_query query = { .text = request_query(r, "q"), .before = request_query(r, "before") };
    struct queue *q = jobs_queue(r);
    struct cairn_error err = { 0 };
    struct job_row *rows;
    size_t n;
    int64_t limit;
    bool paused;
    if (!q || !parse_states(r, &query.states) || !request_query_int(r, "limit", 1, LIST_MOST, 100, &limit))
        return;
    query.limit = (int)limit + 1; /* one more tells whether there are more */
    if (query.text && !*query.text)
        query.text = NULL;
    if (read_list(r, q, &query, &rows, &n, &err) || queue_is_paused(q, &paused, &err)) {
        answer_error(r, &err);
        return;
    }
    bool more = n > (size_t)limit;
    answer_list(r, q->o.state, rows, more ? (size_t)limit : n, more, paused);
}
