/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pages.h"

#include "base/str.h"
#include <string.h>

/* What follows "folder/" in a page's name; NULL: it is in another folder. */
static const char *below(const char *folder, const struct page *p)
{
    size_t n = strlen(folder);
    return !strncmp(p->name, folder, n) && p->name[n] == '/' ? p->name + n + 1 : NULL;
}

const char *page_find(const char *folder, const char *name)
{
    for (const struct page *p = pages; p->name; p++)
        if (str_eq(below(folder, p), name))
            return p->text;
    return NULL;
}

char *page_names(const char *folder)
{
    struct str s = { 0 };
    for (const struct page *p = pages; p->name; p++)
        if (below(folder, p))
            str_addf(&s, "%s%s", s.len ? ", " : "", below(folder, p));
    return s.s;
}
