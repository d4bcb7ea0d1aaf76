/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/diagnose.h"

#include "base/cleanup.h"
#include <stdlib.h>
#include <string.h>

struct diagnoser {
    bool saw_step;
};

const char *diagnose_severity_name(enum diagnose_severity s)
{
    static const char *const names[] = { "none", "warning", "error" };
    return (size_t)s < ARRAY_LEN(names) ? names[s] : NULL;
}

const char *diagnose_action_name(enum diagnose_action a)
{
    static const char *const names[] = { "none",      "env", "restart",  "clear-caches",
                                         "other-gpu", "cpu", "optimizer" };
    return (size_t)a < ARRAY_LEN(names) ? names[a] : NULL;
}

const struct diagnose_class *diagnose_classes(void)
{
    static const struct diagnose_class classes[] = {
        { "unknown", "nothing that is known explains it" },
        { NULL, NULL },
    };
    return classes;
}

int diagnoser_new(struct diagnoser **out, struct cairn_error *err)
{
    struct diagnoser *d = calloc(1, sizeof(*d));
    if (!d)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read a log");
    *out = d;
    return 0;
}

void diagnoser_feed(struct diagnoser *d, const char *bytes, size_t n)
{
    d->saw_step |= memmem(bytes, n, "it/s]", 5) || memmem(bytes, n, "s/it", 4);
}

void diagnoser_mark_file(struct diagnoser *d, const char *name)
{
    (void)d;
    (void)name;
}

bool diagnoser_saw_step(const struct diagnoser *d)
{
    return d->saw_step;
}

void diagnoser_finish(struct diagnoser *d, const struct diagnose_context *ctx, struct arena *a,
                      struct diagnosis *out)
{
    (void)d;
    (void)ctx;
    (void)a;
    *out = (struct diagnosis){ .class_id = "unknown",
                               .severity = DIAGNOSE_ERROR,
                               .cause = "nothing that is known explains it" };
}

void diagnoser_free(struct diagnoser *d)
{
    free(d);
}
