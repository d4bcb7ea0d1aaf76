/* SPDX-License-Identifier: Apache-2.0
 * Relative paths of a configuration that was written in another folder. */
#include "os/info.h"
#include "os/path.h"
#include "train/config.h"
#include <string.h>
#include <unistd.h>

/* A LoRA's strength may follow its path. */
static bool exists(struct arena *a, const char *path)
{
    const char *colon = strrchr(path, ':');
    return !access(path, F_OK) || (colon && !access(arena_strndup(a, path, (size_t)(colon - path)), F_OK));
}

static const char *below(struct arena *a, const char *folder, const char *path)
{
    return arena_printf(a, "%s/%s", folder, path);
}

static bool is_relative(const char *path)
{
    return *path && !path_is_absolute(path);
}

/* A file that is in neither folder is missing in that of the configuration. */
static const char *find(const struct job_config *c, enum config_path kind, const char *path)
{
    const char *there = below(c->arena, c->folder, path);
    if (exists(c->arena, there))
        return there;
    return kind == CONFIG_MAYBE_PATH || exists(c->arena, path) ? path : there;
}

const char *config_find(const struct job_config *c, const char *path)
{
    return c->folder && is_relative(path) ? find(c, CONFIG_PATH, path) : path;
}

const char *config_cwd(struct arena *a)
{
    char cwd[4096];
    return getcwd(cwd, sizeof(cwd)) ? arena_strdup(a, cwd) : ".";
}

static bool is_here(const char *folder)
{
    struct os_info one, other;
    return !os_info(folder, &one) && !os_info(".", &other) && os_info_is_same(&one, &other);
}

/* was: as it is written, so that it holds from the configuration's folder. */
static struct config_list move_list(const struct job_config *c, const struct config_key *k,
                                    const struct config_list *from, struct config_list *was)
{
    struct config_list now = { ARENA_NEW(c->arena, const char *, from->n + 1), from->n };
    *was = (struct config_list){ ARENA_NEW(c->arena, const char *, from->n + 1), from->n };
    for (size_t i = 0; i < from->n; i++) {
        const char *item = from->item[i];
        now.item[i] = is_relative(item) ? find(c, k->path, item) : item;
        bool stays = now.item[i] == item && is_relative(item) && k->path == CONFIG_PATH;
        was->item[i] = stays ? below(c->arena, config_cwd(c->arena), item) : item;
    }
    return now;
}

static void move_key(struct job_config *c, const struct config_key *k)
{
    struct config_moved *m = ARENA_PUSH(c->arena, c->moved, c->n_moved);
    void *at = config_value(c, k);
    m->key = k;
    if (k->type == CONFIG_LIST) {
        m->now = move_list(c, k, at, &m->was);
        memcpy(at, &m->now, sizeof(m->now));
        return;
    }
    struct config_list one = { (const char **)at, 1 };
    m->now = move_list(c, k, &one, &m->was);
    *(const char **)at = m->now.item[0];
}

void config_use_folder(struct job_config *c, const char *folder)
{
    const struct config_key *k;
    if (!folder || !path_is_absolute(folder) || !os_is_folder(folder) || is_here(folder))
        return;
    c->folder = arena_strdup(c->arena, folder);
    for (size_t i = 0; (k = config_key_at(c, i)); i++)
        if (k->path)
            move_key(c, k);
}

/* What was set after the file was read belongs to the current folder. */
static const void *absolute(const struct job_config *c, const struct config_key *k, const void *at)
{
    const char *path = k->type == CONFIG_TEXT ? *(const char *const *)at : "";
    if (k->type == CONFIG_TEXT && is_relative(path)) {
        const char **text = ARENA_NEW(c->arena, const char *, 1);
        *text = below(c->arena, config_cwd(c->arena), path);
        return text;
    }
    if (k->type != CONFIG_LIST)
        return at;
    const struct config_list *from = at;
    struct config_list *list = ARENA_NEW(c->arena, struct config_list, 1);
    *list = (struct config_list){ ARENA_NEW(c->arena, const char *, from->n + 1), from->n };
    for (size_t i = 0; i < from->n; i++)
        list->item[i] =
            is_relative(from->item[i]) ? below(c->arena, config_cwd(c->arena), from->item[i]) : from->item[i];
    return list;
}

const void *config_written(const struct job_config *c, const struct config_key *k)
{
    const void *at = config_value(c, k);
    if (!c->folder || !k->path)
        return at;
    for (size_t i = 0; i < c->n_moved; i++) {
        const struct config_moved *m = &c->moved[i];
        bool is_list = k->type == CONFIG_LIST;
        if (m->key == k && (is_list ? ((const struct config_list *)at)->item == m->now.item
                                    : *(const char *const *)at == m->now.item[0]))
            return is_list ? (const void *)&m->was : &m->was.item[0];
    }
    return k->path == CONFIG_PATH ? absolute(c, k, at) : at;
}

const char *config_written_text(const struct job_config *c, const char *key)
{
    const struct config_key *k;
    for (size_t i = 0; (k = config_key_at(c, i)); i++)
        if (!strcmp(k->name, key))
            return *(const char *const *)config_written(c, k);
    return "";
}
