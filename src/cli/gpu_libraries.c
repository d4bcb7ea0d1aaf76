/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gpu_libraries.h"

#include "base/str.h"
#include "gpu/libraries.h"
#include "host/prefix.h"
#include "host/soname.h"
#include <stdio.h>
#include <string.h>

/* The files of this machine, the same for every GPU. */
struct installed {
    const char *hip, *hiprtc, *hipblaslt, *rocblas;
    struct targets hipblaslt_for, rocblas_for;
};

const char *library_use_name(enum library_use use)
{
    static const char *const names[] = { "no", "if it opens", "yes" };
    return names[use];
}

static const char *find(const struct root *r, const struct facts *f, struct arena *a, enum library l)
{
    char folder[256];
    library_folder(l, facts_env(f, library_variable(l)), folder, sizeof(folder));
    return soname_find(r, a, f, library_names(l), folder);
}

/* The prefix of "/opt/rocm/lib/librocblas.so.4" is /opt/rocm. */
static const char *prefix_of(struct arena *a, const char *path)
{
    size_t folder = (size_t)(strrchr(path, '/') - path);
    for (size_t i = 0; prefix_lib_dirs[i]; i++) {
        size_t n = strlen(prefix_lib_dirs[i]);
        if (folder > n && path[folder - n - 1] == '/' && !strncmp(path + folder - n, prefix_lib_dirs[i], n))
            return arena_strndup(a, path, folder > n + 1 ? folder - n - 1 : 1);
    }
    return NULL;
}

/* Both libraries mostly lie in one prefix, which is read once. */
static void read_kernels(const struct root *r, struct arena *a, struct installed *in)
{
    const char *lt = in->hipblaslt ? prefix_of(a, in->hipblaslt) : NULL;
    const char *roc = in->rocblas ? prefix_of(a, in->rocblas) : NULL;
    struct prefix_facts one = { 0 }, other = { 0 };
    if (lt)
        prefix_read(r, a, lt, &one);
    if (roc && !str_eq(roc, lt))
        prefix_read(r, a, roc, &other);
    in->hipblaslt_for = one.hipblaslt;
    in->rocblas_for = str_eq(roc, lt) ? one.rocblas : other.rocblas;
}

static void add(struct gpu_libraries *l, struct arena *a, const char *purpose, const char *name,
                const char *path, enum library_use use, const char *why)
{
    *ARENA_PUSH(a, l->row, l->n) =
        (struct gpu_library){ purpose, name, path, path || use == USE_YES ? use : USE_NO, why };
}

static bool is_rocm_5(const char *hip)
{
    return str_ends(hip, ".so.5");
}

static void add_gemm(struct gpu_libraries *l, struct arena *a, const char *name, const char *path,
                     const struct targets *t, const char *gfx)
{
    if (!path)
        add(l, a, "gemm", name, NULL, USE_NO, "not installed");
    else if (t->from && !targets_has(t, gfx))
        add(l, a, "gemm", name, path, USE_NO, arena_printf(a, "has no kernels for %s in %s", gfx, t->from));
    else
        add(l, a, "gemm", name, path, USE_IF_IT_OPENS,
            "tried in a process of its own first; of those that open, the fastest for each shape is used");
}

static void fill(struct gpu_libraries *l, struct arena *a, const struct installed *in, const char *gfx)
{
    add(l, a, "runtime", "hip", in->hip, USE_IF_IT_OPENS,
        in->hip ? "the first of the names that cairn tries" : "libamdhip64 is not installed");
    add(l, a, "compile", "hiprtc", in->hip ? in->hiprtc : NULL, USE_IF_IT_OPENS,
        in->hiprtc ? arena_printf(a, "in a process of its own; a ROCm older than %s does not know it", gfx)
                   : "libhiprtc is not installed");
    if (in->hip && is_rocm_5(in->hip))
        add(l, a, "gemm", "hipblaslt", in->hipblaslt, USE_NO, "cairn uses that of ROCm 6 and newer");
    else
        add_gemm(l, a, "hipblaslt", in->hip ? in->hipblaslt : NULL, &in->hipblaslt_for, gfx);
    add_gemm(l, a, "rocblas", in->hip ? in->rocblas : NULL, &in->rocblas_for, gfx);
    add(l, a, "gemm", "cairn", NULL, in->hip ? USE_YES : USE_NO,
        in->hip ? "cairn's own kernels, where no library is faster" : "they need the runtime");
    add(l, a, "collectives", NULL, NULL, USE_NO, "cairn computes on one GPU at a time");
}

struct gpu_libraries *gpu_libraries_find(const struct facts *f, const char *root, struct arena *a)
{
    struct gpu_libraries *all = arena_alloc(a, (f->n_gpus + 1) * sizeof(*all));
    struct cairn_error err;
    struct root r;
    memset(all, 0, (f->n_gpus + 1) * sizeof(*all));
    if (root_open(&r, root, &err))
        return all;
    struct installed in = {
        .hip = find(&r, f, a, LIBRARY_HIP),
        .hiprtc = find(&r, f, a, LIBRARY_HIPRTC),
        .hipblaslt = find(&r, f, a, LIBRARY_HIPBLASLT),
        .rocblas = find(&r, f, a, LIBRARY_ROCBLAS),
    };
    read_kernels(&r, a, &in);
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].rocm_capable && f->gpus[i].gfx.s)
            fill(&all[i], a, &in, f->gpus[i].gfx.s);
    root_close(&r);
    return all;
}

const char *gpu_libraries_text(const struct gpu_libraries *l, struct arena *a)
{
    CLEANUP(str_release) struct str gemm = { 0 };
    const char *compiler = NULL;
    bool hip = false;
    for (size_t i = 0; i < l->n; i++) {
        const struct gpu_library *row = &l->row[i];
        hip |= str_eq(row->purpose, "runtime") && row->path;
        if (str_eq(row->purpose, "compile"))
            compiler = row->path;
        if (str_eq(row->purpose, "gemm") && row->use == USE_IF_IT_OPENS)
            str_addf(&gemm, "%s if it opens, ", row->path);
    }
    if (!hip || !compiler)
        return arena_printf(a, "cairn cannot compute on it: %s is not installed",
                            hip ? "the compiler libhiprtc" : "the runtime libamdhip64");
    return arena_printf(a,
                        "compiles with %s if it opens; matrices by %scairn's own kernels%s; no collectives",
                        compiler, gemm.len ? gemm.s : "", gemm.len ? ", whichever is fastest" : "");
}
