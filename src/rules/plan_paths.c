/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/plan_work.h"

#include "base/str.h"
#include "rules/env_sources.h"
#include <string.h>

/* A wheel that bundles HIP, one that uses the system's, or unknown. */
enum runtime { RUNTIME_UNKNOWN, RUNTIME_BUNDLED, RUNTIME_SYSTEM };

static enum runtime torch_runtime(const struct work *w)
{
    const struct torch_facts *t = w->s.lists;
    if (!t)
        return RUNTIME_UNKNOWN;
    bool own = t->hip_library.s && t->site && str_starts(t->hip_library.s, t->site);
    return t->therock || own ? RUNTIME_BUNDLED : RUNTIME_SYSTEM;
}

static bool is_runtime_name(const char *file)
{
    return str_starts(file, "libamdhip64.so") || str_starts(file, "libhsa-runtime64.so");
}

/* LD_PRELOAD applies to every process, so a kernel library there is as bad as a runtime. */
static bool is_rocm_name(const char *file)
{
    static const char *const others[] = { "librocblas.so", "libhipblaslt.so", "libMIOpen.so" };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (str_starts(file, others[i]))
            return true;
    return is_runtime_name(file);
}

/* Does the directory contain a HIP or HSA runtime? A captured tree may lack files of its machine, so there
 * the name decides. */
static bool holds_runtime(struct work *w, const char *dir)
{
    char **names;
    size_t n;
    if (*dir != '/')
        return false;
    if (root_list(&w->f->root, w->a, dir, &names, &n))
        return !w->f->root.live && str_starts(dir, "/opt/rocm");
    for (size_t i = 0; i < n; i++)
        if (is_runtime_name(names[i]))
            return true;
    return false;
}

static bool is_torch_dir(const struct work *w, const char *dir)
{
    const char *lib = w->s.lists ? w->s.lists->hip_library.s : NULL;
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    const char *slash = lib ? strrchr(lib, '/') : NULL;
    return slash && (size_t)(slash - lib) == n && !strncmp(lib, dir, n);
}

static bool shadows_by_dir(struct work *w, const char *dir)
{
    return holds_runtime(w, dir) && !is_torch_dir(w, dir);
}

static bool shadows_by_file(struct work *w, const char *file)
{
    (void)w;
    const char *slash = strrchr(file, '/');
    return is_rocm_name(slash ? slash + 1 : file);
}

/* The installation that contains the path; NULL: none. */
static const struct rocm_facts *rocm_at(const struct work *w, const char *path)
{
    for (size_t i = 0; i < w->f->n_rocms; i++) {
        size_t n = strlen(w->f->rocms[i].path);
        if (str_starts(path, w->f->rocms[i].path) && (path[n] == '/' || !path[n]))
            return &w->f->rocms[i];
    }
    return NULL;
}

/* A PyTorch without a bundled runtime uses the one it finds, which must have the major version it was built
 * for. */
static bool is_other_major(struct work *w, const char *path)
{
    const struct rocm_facts *r = rocm_at(w, path);
    const struct torch_facts *t = w->s.lists;
    return r && t && r->parsed.n && t->hip_parsed.n && r->parsed.part[0] != t->hip_parsed.part[0];
}

/* The list without the entries that put a second runtime in front; *bad names those entries. */
static const char *without_runtimes(struct work *w, const char *list, const char *separators,
                                    bool (*shadows)(struct work *, const char *), const char **bad)
{
    const char *rest = NULL;
    for (const char *p = list; *p; p += strspn(p, separators)) {
        size_t n = strcspn(p, separators);
        const char *entry = arena_strndup(w->a, p, n);
        p += n;
        if (!n)
            continue;
        if (shadows(w, entry))
            *bad = *bad ? arena_printf(w->a, "%s and %s", *bad, entry) : entry;
        else
            rest = rest ? arena_printf(w->a, "%s%c%s", rest, separators[0], entry) : entry;
    }
    return rest;
}

static void judge_loader(struct work *w, const char *name, const char *separators,
                         bool (*shadows)(struct work *, const char *))
{
    struct env_var *v = work_var(w, name);
    const char *bad = NULL;
    if (!v)
        return;
    enum runtime runtime = torch_runtime(w);
    bool system = runtime == RUNTIME_SYSTEM;
    const char *rest = without_runtimes(w, v->value, separators, system ? is_other_major : shadows, &bad);
    if (!bad) {
        work_accept(w, v, system ? "this PyTorch uses the system's ROCm" : "no second ROCm in it");
        return;
    }
    const char *which = runtime == RUNTIME_BUNDLED ? "this PyTorch bundles its own"
                        : system ? "its major version differs from the one this PyTorch was built for"
                                 : "PyTorch wheels bundle their own, and cairn found no PyTorch that uses it";
    const char *what = str_eq(name, "LD_PRELOAD") ? "ROCm library" : "HIP and HSA runtime";
    if (work_refuse_by_torch(w, v, DOC_RUNTIMES,
                             "%s puts a second %s in front (%s): symbol errors or crashes", bad, what,
                             which) &&
        rest)
        work_set(w, name, rest, "your value without the second runtime", DOC_RUNTIMES);
}

/* Does a kernel directory have an index for the target? */
static bool has_kernels(struct work *w, const char *dir, const char *gfx)
{
    char **names;
    size_t n;
    if (root_list(&w->f->root, w->a, dir, &names, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!gfx || (str_starts(names[i], "TensileLibrary") && strstr(names[i], gfx)))
            return true;
    return false;
}

static void judge_kernel_dir(struct work *w, const char *name, const char *result, bool aborts)
{
    struct env_var *v = work_var(w, name);
    if (!v)
        return;
    v->fatal = aborts;
    if (!root_exists(&w->f->root, v->value))
        work_refuse(w, v, v->row->source, "no such directory: %s", result);
    else if (!has_kernels(w, v->value, w->s.gfx))
        work_refuse(w, v, v->row->source, "no kernels for %s in it: %s", w->s.gfx ? w->s.gfx : "any chip",
                    result);
    else
        work_accept(w, v, "your kernel directory; it has kernels for the chip");
}

static void judge_path(struct work *w, const char *name, const char *fine, const char *result)
{
    struct env_var *v = work_var(w, name);
    if (!v)
        return;
    if (v->value[0] != '/' || !root_exists(&w->f->root, v->value))
        work_refuse(w, v, v->row->source, "no such path: %s", result);
    else
        work_accept(w, v, "%s", fine);
}

static void judge_home(struct work *w, const char *name)
{
    struct env_var *v = work_var(w, name);
    if (!v)
        return;
    bool there = v->value[0] == '/' && root_exists(&w->f->root, v->value);
    work_accept(w, v, "%s%s", v->row->effect, there || w->o->windows ? "" : "; no such directory");
}

static bool path_finds(struct work *w, const char *path, const char *program)
{
    for (const char *p = path; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        if (n && *p == '/' && root_exists(&w->f->root, arena_printf(w->a, "%.*s/%s", (int)n, p, program)))
            return true;
        p += n;
    }
    return false;
}

static const char *rocminfo_dir(struct work *w)
{
    for (size_t i = 0; i < w->f->n_rocms; i++) {
        const char *dir = arena_printf(w->a, "%s/bin", w->f->rocms[i].path);
        if (w->f->rocms[i].has_rocminfo && root_exists(&w->f->root, arena_printf(w->a, "%s/rocminfo", dir)))
            return dir;
    }
    return NULL;
}

static void judge_program_path(struct work *w)
{
    struct env_var *v = work_var(w, "PATH");
    if (!v || v->given)
        return;
    bool needed = w->s.lists && w->s.lists->bitsandbytes.version.s;
    const char *dir = needed && !path_finds(w, v->value, "rocminfo") ? rocminfo_dir(w) : NULL;
    if (dir)
        w->computed[ENV_VALUE_PATH].value = arena_printf(w->a, "%s:%s", v->value, dir);
    if (!dir && strstr(v->value, "rocm"))
        work_accept(w, v, "finds ROCm's tools; PyTorch itself does not need them");
    else
        v->state = VAR_QUIET;
}

void paths_plan(struct work *w)
{
    judge_program_path(w);
    judge_home(w, "ROCM_PATH");
    judge_home(w, "ROCM_HOME");
    judge_home(w, "HIP_PATH");
    if (w->o->windows)
        return;
    judge_loader(w, "LD_LIBRARY_PATH", ":", shadows_by_dir);
    judge_loader(w, "LD_PRELOAD", ": ", shadows_by_file);
    judge_kernel_dir(w, "ROCBLAS_TENSILE_LIBPATH", "rocBLAS aborts", true);
    judge_kernel_dir(w, "HIPBLASLT_TENSILE_LIBPATH", "hipBLASLt cannot start", false);
    judge_path(w, "HIPBLASLT_EXT_OP_LIBRARY_PATH", "your library file",
               "hipBLASLt loses its extra operations");
    judge_path(w, "TRITON_LIBHIP_PATH", "your HIP library for Triton", "Triton cannot start");
    judge_path(w, "DEVICE_LIB_PATH", "for compilers only; a prebuilt wheel does not read it",
               "compilers fail");
    judge_path(w, "HIP_DEVICE_LIB_PATH", "for compilers only; a prebuilt wheel does not read it",
               "compilers fail");
}
