/* SPDX-License-Identifier: Apache-2.0 */
#include "web/sample_index.h"

#include "base/arena.h"
#include "base/str.h"
#include <string.h>

static void add_sample(struct json *list, const char *line, size_t n, const char *folder)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    if (!n || json_parse(line, n, &v, &ignored) || !json_text(json_get(v, "file")))
        return;
    struct json *o = json_add_object(list, NULL);
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m))
        json_add_copy(o, m.key, m.value);
    json_add_text(o, "folder", folder);
    json_add_text(o, "path", arena_printf(&a, "samples/%s", json_text(json_get(v, "file"))));
}

void sample_index_add(const char *text, int64_t from, int64_t limit, const char *folder, struct json *list)
{
    int64_t i = 0;
    for (const char *line = text; line && *line && i - from < limit; line = str_next_line(line), i++)
        if (i >= from)
            add_sample(list, line, strcspn(line, "\n"), folder);
}
