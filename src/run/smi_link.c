/* SPDX-License-Identifier: Apache-2.0 */
#include "run/smi_link.h"

#include "base/file.h"
#include "base/str.h"
#include "host/drm.h"
#include "rules/plan.h"
#include "os/file.h"
#include "os/path.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first nvidia-smi of a PATH; NULL if it has none. */
static const char *find_in_path(const struct root *r, const char *path, struct arena *a)
{
    for (const char *at = path; at && *at;) {
        size_t n = strcspn(at, ":");
        const char *file = path_join(a, arena_strndup(a, at, n), "nvidia-smi");
        if (n && *at == '/' && root_exists(r, file))
            return file;
        at += n + (at[n] == ':');
    }
    return NULL;
}

const char *smi_link_objection(const struct facts *f, struct arena *a)
{
    const struct gpu_facts **gpus;
    const char *own = find_in_path(&f->root, facts_env(f, "PATH"), a);
    if (own && drm_has_nvidia(&f->root, a))
        return arena_printf(a, "this machine has an NVIDIA GPU, which needs its own %s", own);
    if (!plan_shown(f, a, &gpus))
        return "no AMD GPU to report";
    return NULL;
}

static int make_link(const char *dir, struct arena *a, struct cairn_error *err)
{
    char self[PATH_MAX];
    const char *link = path_join(a, dir, "nvidia-smi");
    if (path_program(self, sizeof(self)))
        return cairn_fail_errno(err, "find the running program");
    if (os_make_link(self, link))
        return cairn_fail_errno(err, "make the link %s", link);
    return 0;
}

int smi_link_make(const char *run, const struct root *r, const char *const *env, struct arena *a,
                  const char *const **out, struct cairn_error *err)
{
    const char *dir = path_join(a, run, "bin"), *path = str_env(env, "PATH");
    if (file_make_dir(dir, 0700, err) || make_link(dir, a, err))
        return -1;
    CLEANUP(mem_free) char *root = r->live ? NULL : realpath(r->path, NULL);
    const struct plan_var set[] = {
        { .name = "PATH", .value = path ? arena_printf(a, "%s:%s", dir, path) : dir },
        { .name = "CAIRN_SMI_ROOT", .value = root ? arena_strdup(a, root) : NULL },
    };
    *out = plan_change(env, set, root ? 2 : 1, NULL, 0, a);
    return 0;
}

void smi_link_remove(const char *run)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    if (!run)
        return;
    const char *dir = path_join(&a, run, "bin");
    CLEANUP(fd_close) int fd = os_open(dir, OS_PLACE | OS_FOLDER | OS_NO_LINK);
    if (fd < 0)
        return;
    os_remove_at(fd, "nvidia-smi");
    os_remove_dir(dir);
}
