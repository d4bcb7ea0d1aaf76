/* SPDX-License-Identifier: Apache-2.0
 * GET and PUT /settings. */
#include "web/answer.h"
#include "web/api.h"
#include "web/settings.h"
#include "web/jobs.h"

static void answer_settings(struct request *r, struct store *s)
{
    struct cairn_error err = { 0 };
    struct json *v;
    if (settings_report(s, &v, &err))
        answer_error(r, &err);
    else
        answer_json(r, 200, v);
}

void api_settings_get(struct request *r)
{
    struct queue *q = jobs_queue(r);
    struct store *s = q ? q->store : NULL;
    if (s)
        answer_settings(r, s);
}

void api_settings_put(struct request *r)
{
    struct cairn_error err = { 0 };
    const struct json *wanted = request_json(r);
    struct queue *q = wanted ? jobs_queue(r) : NULL;
    struct store *s = q ? q->store : NULL;
    if (!s)
        return;
    if (settings_change(s, wanted, &err))
        answer_error(r, &err);
    else
        answer_settings(r, s);
}
