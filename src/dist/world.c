/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/world.h"

#include "base/parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct launcher_row {
    const char *name;
    bool mpi;
    const char *step, *rank, *size, *other_size, *local_rank, *local_size;
} launchers[] = {
    { "none", false, NULL, NULL, NULL, NULL, NULL, NULL },
#define X(kind, ...) { __VA_ARGS__ },
#include "dist/launchers.def"
#undef X
};

const char *launcher_name(enum launcher l)
{
    return launchers[l].name;
}

bool launcher_has_mpi(enum launcher l)
{
    return launchers[l].mpi;
}

static bool is_set(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && value[0];
}

static bool applies(const struct launcher_row *l)
{
    return (!l->step || is_set(l->step)) && is_set(l->rank) && (is_set(l->size) || is_set(l->other_size));
}

/* A number of `least` or more; NULL or not set: it stays as it is. */
static int read_number(const struct launcher_row *l, const char *name, int least, int *out,
                       struct cairn_error *err)
{
    enum { MOST = 1 << 20 };
    int64_t value;
    if (!is_set(name))
        return 0;
    if (!cairn_parse_i64(getenv(name), &value) || value < least || value > MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is \"%.40s\": %s sets it to a whole number from %d", name,
                          getenv(name), l->name, least);
    *out = (int)value;
    return 0;
}

static int check(const struct launcher_row *l, const struct world *w, struct cairn_error *err)
{
    if (w->rank >= w->size)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is %d, but there are only %d ranks", l->rank, w->rank,
                          w->size);
    if (w->local_size > w->size || (w->local_size && w->local_rank >= w->local_size))
        return cairn_fail(err, CAIRN_EUSAGE, "%s is %d, but there are only %d ranks on this machine",
                          l->local_rank, w->local_rank, w->local_size);
    return 0;
}

int world_find(struct world *out, struct cairn_error *err)
{
    *out = (struct world){ .size = 1, .local_size = 1 };
    if (gethostname(out->host, sizeof(out->host) - 1))
        snprintf(out->host, sizeof(out->host), "?");
    for (size_t i = 1; i < ARRAY_LEN(launchers); i++) {
        const struct launcher_row *l = &launchers[i];
        struct world w = *out;
        if (!applies(l))
            continue;
        w.local_size = 0;
        if (read_number(l, is_set(l->size) ? l->size : l->other_size, 1, &w.size, err) ||
            read_number(l, l->rank, 0, &w.rank, err) ||
            read_number(l, l->local_rank, 0, &w.local_rank, err) ||
            read_number(l, l->local_size, 1, &w.local_size, err) || check(l, &w, err))
            return cairn_hint(err, "unset the variables of %s to train with one process", l->name);
        if (w.size == 1)
            return 0; /* one process is no set of ranks, whoever started it */
        w.launcher = (enum launcher)i;
        *out = w;
        return 0;
    }
    return 0;
}
