/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run_folder.h"
#include "base/own.h"
#include "base/str.h"
#include "os/path.h"
#include "record/runs.h"
#include <string.h>

void run_folder_use(struct job_config *c, const char *file)
{
    struct run_info info;
    struct cairn_error ignored = { 0 };
    if (strcmp(path_name(file), "config.yaml") != 0)
        return;
    CLEANUP(mem_free) char *dir = path_folder(file);
    if (!run_info_read(dir, c->arena, &info, &ignored))
        config_use_folder(c, info.folder);
}

void run_folder_hint(const struct job_config *c, struct cairn_error *err)
{
    CLEANUP(str_release) struct str hint = { 0 };
    if (!c->folder || !strstr(err->msg, c->folder))
        return;
    str_addf(&hint, "relative paths of the run are looked up in %s, where it was started", c->folder);
    if (err->hint[0])
        str_addf(&hint, "; %s", err->hint);
    cairn_hint(err, "%s", hint.s);
}
