/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job_commands.h"
#include "cli/messages.h"
#include "run/state_dir.h"

extern char **environ;

int job_session_open(struct job_session *s, const char *root, struct cairn_error *err)
{
    const struct machine_options m = { .root = root };
    *s = (struct job_session){ .facts.root.fd = -1 };
    if (state_dir((const char *const *)environ, &s->arena, &s->state, err))
        return -1;
    if (machine_read(&m, &s->facts, err))
        return -1;
    const struct queue_options o = { .state = s->state, .root = root, .facts = &s->facts };
    if (queue_open(&o, &s->queue, err))
        return -1;
    if (s->queue.note)
        messages_say(s->queue.note);
    return queue_heal(&s->queue, err);
}

void job_session_close(struct job_session *s)
{
    queue_close(&s->queue);
    facts_release(&s->facts);
    arena_release(&s->arena);
}
