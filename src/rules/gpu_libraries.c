/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/gpu_libraries.h"

#include "base/str.h"
#include "host/runtimes.h"
#include <string.h>

const char *library_use_name(enum library_use use)
{
    static const char *const names[] = { "no", "if it opens", "yes" };
    return names[use];
}

static void add(struct gpu_libraries *l, struct arena *a, const char *purpose, const char *name,
                const char *path, enum library_use use, const char *why)
{
    *ARENA_PUSH(a, l->row, l->n) =
        (struct gpu_library){ purpose, name, path, path || use == USE_YES ? use : USE_NO, why };
}

static void add_gemm(struct gpu_libraries *l, struct arena *a, const char *name, const char *path,
                     const struct targets *t, const char *gfx)
{
    if (!path)
        add(l, a, "gemm", name, NULL, USE_NO, "not installed");
    else if (t && t->from && !targets_has(t, gfx))
        add(l, a, "gemm", name, path, USE_NO, arena_printf(a, "has no kernels for %s in %s", gfx, t->from));
    else
        add(l, a, "gemm", name, path, USE_IF_IT_OPENS,
            "tested in a separate process first; cairn uses the fastest one that opens, per shape");
}

/* r is NULL: there is no runtime. */
static void fill(struct gpu_libraries *l, struct arena *a, const struct hip_runtime *r, const char *gfx)
{
    static const struct rocm_files none;
    const struct rocm_files *f = r ? &r->files : &none;
    add(l, a, "runtime", "hip", r ? r->hip : NULL, USE_IF_IT_OPENS,
        r ? runtime_text(r, a) : "libamdhip64 is not installed");
    add(l, a, "compile", "hiprtc", f->hiprtc, USE_IF_IT_OPENS,
        f->hiprtc ? arena_printf(a, "in a separate process; a ROCm older than %s does not support it", gfx)
                  : "libhiprtc is not installed");
    if (r && r->version.n && r->version.part[0] < 6)
        add(l, a, "gemm", "hipblaslt", f->hipblaslt, USE_NO, "cairn uses the one of ROCm 6 and newer");
    else
        add_gemm(l, a, "hipblaslt", f->hipblaslt, r ? &r->hipblaslt : NULL, gfx);
    add_gemm(l, a, "rocblas", f->rocblas, r ? &r->rocblas : NULL, gfx);
    add(l, a, "gemm", "cairn", NULL, r ? USE_YES : USE_NO,
        r ? "cairn's own kernels, where no library is faster" : "they need the runtime");
    add(l, a, "collectives", NULL, NULL, USE_NO, "cairn computes on one GPU at a time");
}

struct gpu_libraries *gpu_libraries_find(const struct facts *f, struct arena *a)
{
    struct gpu_libraries *all = arena_alloc(a, (f->n_gpus + 1) * sizeof(*all));
    memset(all, 0, (f->n_gpus + 1) * sizeof(*all));
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].rocm_capable && f->gpus[i].gfx.s)
            fill(&all[i], a, f->n_runtimes ? &f->runtimes[0] : NULL, f->gpus[i].gfx.s);
    return all;
}

const char *gpu_libraries_text(const struct gpu_libraries *l, struct arena *a)
{
    CLEANUP(str_release) struct str gemm = { 0 };
    const char *compiler = NULL, *hip = NULL, *from = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const struct gpu_library *row = &l->row[i];
        if (str_eq(row->purpose, "runtime")) {
            hip = row->path;
            from = row->why;
        }
        if (str_eq(row->purpose, "compile"))
            compiler = row->path;
        if (str_eq(row->purpose, "gemm") && row->use == USE_IF_IT_OPENS)
            str_addf(&gemm, "%s, ", row->name);
    }
    if (!hip || !compiler)
        return arena_printf(a, "cairn train cannot use it: no %s found",
                            hip ? "compiler (libhiprtc)" : "HIP runtime (libamdhip64)");
    return arena_printf(
        a, "cairn train computes with %s (%s); compiles with %s; matrices by %scairn's own kernels", hip,
        from, compiler, gemm.s ? gemm.s : "");
}
