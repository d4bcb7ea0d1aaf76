/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hub.h"

#include "base/file.h"
#include "base/str.h"
#include "os/info.h"
#include "os/path.h"
#include <stdlib.h>
#include <string.h>

enum { REVISION_MOST = 200 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

const char *hub_folder(struct arena *a)
{
    const struct path_place_rule *cache = path_place(PLACE_CACHE);
    const char *hub = variable("HF_HUB_CACHE"), *home = variable("HF_HOME");
    if (!hub)
        hub = variable("HUGGINGFACE_HUB_CACHE");
    if (hub)
        return arena_strdup(a, hub);
    if (home)
        return arena_printf(a, "%s/hub", home);
    const char *xdg = variable(cache->variable), *user = variable(cache->home);
    if (xdg && path_is_absolute(xdg))
        return arena_printf(a, "%s/huggingface/hub", xdg);
    return arena_printf(a, "%s/%s/huggingface/hub", user ? user : ".", cache->below);
}

static bool is_name(const char *text, size_t n)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n && *text != '.' && strspn(text, allowed) >= n;
}

bool hub_is_id(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash && !strchr(slash + 1, '/') && is_name(text, (size_t)(slash - text)) &&
           is_name(slash + 1, strlen(slash + 1));
}

/* The revision of refs/main; NULL: there is none. */
static const char *main_revision(const char *repository, struct arena *a)
{
    CLEANUP(mem_free) char *text = NULL;
    struct cairn_error ignored;
    size_t n;
    if (file_read_whole(arena_printf(a, "%s/refs/main", repository), REVISION_MOST, &text, &n, &ignored))
        return NULL;
    n = strcspn(text, " \r\n");
    return is_name(text, n) ? arena_strndup(a, text, n) : NULL;
}

static const char *only_snapshot(const char *repository, struct arena *a)
{
    char **names;
    size_t n;
    if (file_names(arena_printf(a, "%s/snapshots", repository), a, &names, &n) || n != 1)
        return NULL;
    return names[0];
}

const char *hub_find(const char *id, struct arena *a)
{
    const char *slash = strchr(id, '/');
    if (!hub_is_id(id))
        return NULL;
    const char *repository =
        arena_printf(a, "%s/models--%.*s--%s", hub_folder(a), (int)(slash - id), id, slash + 1);
    const char *revision = main_revision(repository, a);
    if (!revision)
        revision = only_snapshot(repository, a);
    const char *folder = revision ? arena_printf(a, "%s/snapshots/%s", repository, revision) : NULL;
    return folder && os_is_folder(folder) ? folder : NULL;
}
