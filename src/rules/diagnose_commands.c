/* SPDX-License-Identifier: Apache-2.0
 * The {keys} of the tables' texts that are commands to paste, and the values and names in them. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "host/memory.h"
#include "rules/check_ctx.h"
#include "rules/remedy.h"
#include <string.h>

static struct check_ctx ctx_of_log(const struct judgement *j)
{
    return check_ctx_of(j->ctx->facts, j->ctx->plan, j->a);
}

static int64_t ram_bytes(const struct judgement *j)
{
    const struct host_facts *h = j->same_machine ? &j->ctx->facts->host : NULL;
    return h && h->memory_total_bytes.from ? h->memory_total_bytes.v : 0;
}

static const char *key_ram(const struct judgement *j)
{
    return ram_bytes(j) ? diagnose_size(j, (double)ram_bytes(j)) : NULL;
}

static const char *key_limit(const struct judgement *j)
{
    return ram_bytes(j) ? diagnose_size(j, (double)memory_wanted_limit(ram_bytes(j))) : NULL;
}

bool diagnose_knows_ram(const struct judgement *j)
{
    return ram_bytes(j) > 0;
}

bool diagnose_limit_suffices(const struct judgement *j)
{
    int64_t limit;
    if (!ram_bytes(j))
        return false;
    struct check_ctx l = ctx_of_log(j);
    return ctx_ttm_limit(&l, &limit) && limit >= memory_wanted_limit(ram_bytes(j));
}

static const char *key_pages(const struct judgement *j)
{
    if (!ram_bytes(j))
        return NULL;
    return arena_printf(j->a, "%lld", (long long)(memory_wanted_limit(ram_bytes(j)) / PAGE_BYTES));
}

static const char *key_cmd_pages(const struct judgement *j)
{
    if (!ram_bytes(j))
        return NULL;
    struct check_ctx l = ctx_of_log(j);
    return remedy_limit(&l, memory_wanted_limit(ram_bytes(j)));
}

static const struct dev_node *denied_node(const struct judgement *j)
{
    const struct facts *f = j->ctx->facts;
    if (!j->same_machine)
        return NULL;
    if (f->host.kfd_node.access == NODE_DENIED)
        return &f->host.kfd_node;
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].render.access == NODE_DENIED)
            return &f->gpus[i].render;
    return NULL;
}

static const char *key_user(const struct judgement *j)
{
    return denied_node(j) ? j->ctx->facts->host.user : NULL;
}

static const char *key_group(const struct judgement *j)
{
    return denied_node(j) ? denied_node(j)->group : NULL;
}

static const char *key_cmd_node(const struct judgement *j)
{
    if (!denied_node(j))
        return NULL;
    struct check_ctx l = ctx_of_log(j);
    return remedy_node_access(&l, denied_node(j));
}

static const char *key_cmd_container(const struct judgement *j)
{
    static const struct facts nobody = { .host = { .render_gid = -1 } };
    struct check_ctx l = j->ctx->facts ? ctx_of_log(j) : check_ctx_of(&nobody, NULL, j->a);
    return remedy_container(&l);
}

/* Of this machine if the log is from it, else of none. */
static struct check_ctx ctx_of_log_or_none(const struct judgement *j)
{
    static const struct facts nobody;
    return j->same_machine ? ctx_of_log(j) : check_ctx_of(&nobody, NULL, j->a);
}

/* Where a package of the failing environment is installed. The log's own paths are the best source. */
static struct check_ctx ctx_for_pip(const struct judgement *j)
{
    struct check_ctx l = ctx_of_log_or_none(j);
    l.python = j->log->python.weight ? arena_strdup(j->a, j->log->python.exe) : NULL;
    l.torch = l.torch ? l.torch : j->torch;
    l.foreign = !l.torch;
    return l;
}

static const char *key_python(const struct judgement *j)
{
    struct check_ctx l = ctx_for_pip(j);
    const char *python = l.python ? l.python : l.torch ? l.torch->python : NULL;
    return python ? ctx_shell_word(&l, python) : "python3";
}

static const char *key_cmd_torch(const struct judgement *j)
{
    struct check_ctx l = ctx_for_pip(j);
    l.chip = j->family ? NULL : j->chip;
    return j->windows ? remedy_torch_windows(&l) : remedy_torch(&l);
}

static const char *key_cmd_bnb(const struct judgement *j)
{
    struct check_ctx l = ctx_for_pip(j);
    return (j->windows ? remedy_pip_windows : remedy_pip)(&l, "--upgrade bitsandbytes");
}

static const char *key_cmd_kernel(const struct judgement *j)
{
    if (!j->same_machine)
        return NULL;
    struct check_ctx l = ctx_of_log(j);
    return remedy_kernel_newer(&l);
}

static const char *key_cmd_firmware(const struct judgement *j)
{
    if (!j->same_machine)
        return NULL;
    struct check_ctx l = ctx_of_log(j);
    return remedy_firmware_newer(&l);
}

static const char *key_cmd_cxx_headers(const struct judgement *j)
{
    struct check_ctx l = ctx_of_log_or_none(j);
    return j->windows || !diagnose_lacks_cxx_header(j) ? NULL : remedy_cxx_headers(&l);
}

static const char *key_cmd_python_headers(const struct judgement *j)
{
    struct check_ctx l = ctx_of_log_or_none(j);
    return j->windows || !str_eq(j->log->header, "Python.h") ? NULL : remedy_python_headers(&l);
}

static const char *key_gpu_lister(const struct judgement *j)
{
    return j->windows ? "the Task Manager" : "cairn gpu";
}

static const char *key_cmd_doctor(const struct judgement *j)
{
    return j->windows ? NULL : "cairn doctor";
}

/* A folder that a variable may name, or else one below HOME; it belongs to the user, so it is moved, not
 * deleted. */
static const char *move_aside(const struct judgement *j, const char *variable, const char *below_home)
{
    const struct check_ctx l = { .arena = j->a };
    const char *own = j->ctx->env       ? str_env(j->ctx->env, variable)
                      : j->same_machine ? facts_env(j->ctx->facts, variable)
                                        : NULL;
    if (own && *own)
        return arena_printf(j->a, "mv %s %s", ctx_shell_word(&l, own),
                            ctx_shell_word(&l, arena_printf(j->a, "%s.old", own)));
    return arena_printf(j->a, "mv ~/%s ~/%s.old", below_home, below_home);
}

static const char *key_cmd_miopen_caches(const struct judgement *j)
{
    if (j->windows)
        return "Rename-Item $HOME\\.miopen .miopen.old";
    return arena_printf(j->a, "%s\n%s", move_aside(j, "MIOPEN_CUSTOM_CACHE_DIR", ".cache/miopen"),
                        move_aside(j, "MIOPEN_USER_DB_PATH", ".config/miopen"));
}

static const char *key_cmd_triton_cache(const struct judgement *j)
{
    return j->windows ? "Rename-Item $HOME\\.triton .triton.old"
                      : move_aside(j, "TRITON_CACHE_DIR", ".triton/cache");
}

static const char *key_cmd_caches(const struct judgement *j)
{
    return arena_printf(j->a, "%s\n%s", key_cmd_miopen_caches(j), key_cmd_triton_cache(j));
}

const struct diagnose_key_row diagnose_command_keys[] = {
    { "ram", key_ram },
    { "limit", key_limit },
    { "pages", key_pages },
    { "cmd_pages", key_cmd_pages },
    { "user", key_user },
    { "group", key_group },
    { "cmd_node", key_cmd_node },
    { "cmd_container", key_cmd_container },
    { "cmd_torch", key_cmd_torch },
    { "cmd_bnb", key_cmd_bnb },
    { "python", key_python },
    { "cmd_kernel", key_cmd_kernel },
    { "cmd_firmware", key_cmd_firmware },
    { "cmd_doctor", key_cmd_doctor },
    { "gpu_lister", key_gpu_lister },
    { "cmd_cxx_headers", key_cmd_cxx_headers },
    { "cmd_python_headers", key_cmd_python_headers },
    { "cmd_caches", key_cmd_caches },
    { "cmd_miopen_caches", key_cmd_miopen_caches },
    { "cmd_triton_cache", key_cmd_triton_cache },
    { NULL, NULL },
};
