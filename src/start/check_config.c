/* SPDX-License-Identifier: Apache-2.0 */
#include "start/check_config.h"

#include "start/read_config.h"

struct notes {
    struct config_findings *to;
    struct arena *arena;
};

static void take_note(void *context, const char *text)
{
    struct notes *n = context;
    *ARENA_PUSH(n->arena, n->to->notes, n->to->n_notes) = arena_strdup(n->arena, text);
}

static void take_error(void *context, const struct cairn_error *err)
{
    take_note(context, err->msg);
}

void start_check_config(const char *file, const char *shown, struct arena *a, struct config_findings *out)
{
    static const struct config_changes none = { .steps = -1, .only_plan = true };
    struct notes notes = { out, a };
    const struct message_sink sink = { take_note, take_note, take_error, &notes };
    struct cairn_error err = { 0 };
    struct job_config c;
    *out = (struct config_findings){ 0 };
    config_init(&c, a);
    if (start_read_config(&none, file, &c, &sink, &err))
        config_findings_add(out, &c, file, shown, &err);
}
