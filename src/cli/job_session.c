/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job_commands.h"
#include "cli/messages.h"
#include "job/adopt.h"
#include "os/stop.h"
#include "run/state_dir.h"
#include <stdlib.h>

extern char **environ;

int job_session_open(struct job_session *s, const char *root, struct cairn_error *err)
{
    /* Supervisors have another working folder. */
    CLEANUP(mem_free) char *full = root ? realpath(root, NULL) : NULL;
    *s = (struct job_session){ .facts.root.fd = -1 };
    os_ignore_file_limit(); /* a write that fails says so */
    const struct facts_options machine = {
        .root = arena_strdup(&s->arena, full ? full : root),
        .env = (const char *const *)environ,
        .parts = FACTS_HARDWARE,
    };
    if (state_dir((const char *const *)environ, &s->arena, &s->state, err) ||
        facts_read(&s->facts, &machine, err))
        return -1;
    const struct queue_options o = { .state = s->state, .root = machine.root, .facts = &s->facts };
    if (queue_open(&o, &s->queue, err))
        return -1;
    if (s->queue.note)
        messages_say(s->queue.note);
    return queue_heal(&s->queue, err);
}

int job_session_find(struct job_session *s, const char *word, struct job_row *out, struct cairn_error *err)
{
    if (!store_find(s->queue.store, word, &s->arena, out, err))
        return 0;
    return adopt_find(NULL, s->state, word, &s->arena, out) ? 0 : -1;
}

void job_session_close(struct job_session *s)
{
    queue_close(&s->queue);
    facts_release(&s->facts);
    arena_release(&s->arena);
}
