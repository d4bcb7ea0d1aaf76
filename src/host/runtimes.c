/* SPDX-License-Identifier: Apache-2.0 */
#include "host/runtimes.h"

#include "base/str.h"
#include "host/rocm_prefix.h"
#include "host/torch.h"
#include <stdlib.h>
#include <string.h>

/* In the order of trial among those of the same version. */
enum rank { NAMED_BY_VARIABLE, NAMED_TO_LOADER, IN_OPT, IN_TORCH, OF_LOADER };

struct candidate {
    struct hip_runtime r;
    enum rank rank;
    size_t nth; /* sorting must not change the order of equals */
};

struct search {
    const struct facts *f;
    struct arena *a;
    struct candidate *item;
    size_t n;
};

/* ---- the loader's folders ---- */

struct places {
    const struct root *root;
    struct arena *a;
    const char **path;
    size_t n;
};

static void add_place(struct places *p, const char *path, size_t len)
{
    if (len && path[0] == '/')
        *ARENA_PUSH(p->a, p->path, p->n) = arena_strndup(p->a, path, len);
}

static void add_list(struct places *p, const char *list)
{
    while (list && *list) {
        size_t len = strcspn(list, ":;");
        add_place(p, list, len);
        list += len + (list[len] != '\0');
    }
}

/* A folder a line; "include" lines name the files that are read anyway. */
static void add_conf(struct places *p, const char *path)
{
    const char *at = root_read(p->root, p->a, path, NULL);
    while (at && *at) {
        size_t line = strcspn(at, "\n"), len;
        size_t blank = strspn(at, " \t");
        len = strcspn(at + blank, " \t#\n");
        add_place(p, at + blank, len);
        at += line + (at[line] != '\0');
    }
}

/* The loader's cache is not read, so that a library that was installed without ldconfig is found, too. */
static void find_places(struct places *p)
{
    static const char *const own[] = { "/lib/x86_64-linux-gnu", "/lib64", "/lib" };
    char **names;
    size_t n;
    add_conf(p, "/etc/ld.so.conf");
    if (!root_list(p->root, p->a, "/etc/ld.so.conf.d", &names, &n))
        for (size_t i = 0; i < n; i++)
            if (str_ends(names[i], ".conf"))
                add_conf(p, arena_printf(p->a, "/etc/ld.so.conf.d/%s", names[i]));
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        add_place(p, own[i], strlen(own[i]));
}

/* ---- what there is ---- */

/* The number in "libamdhip64.so.7", for a ROCm without other version information. */
static struct version version_of_file(const char *hip)
{
    struct version v = { 0 };
    const char *so = strstr(str_file_name(hip), ".so.");
    if (so)
        version_parse(so + strlen(".so."), &v);
    return v;
}

static bool is_listed(const struct search *s, const char *hip)
{
    const char *real = root_resolve(&s->f->root, s->a, hip);
    for (size_t i = 0; i < s->n; i++) {
        const char *other = s->item[i].r.hip;
        if (str_eq(other, hip) || (real && str_eq(root_resolve(&s->f->root, s->a, other), real)))
            return true;
    }
    return false;
}

static void add(struct search *s, enum rank rank, struct hip_runtime r)
{
    if (!r.hip || is_listed(s, r.hip))
        return;
    if (!r.version.n)
        r.version = version_of_file(r.hip);
    r.named = rank <= NAMED_TO_LOADER;
    /* ROCm 5 and 6 have the compiler in the runtime as well. */
    if (!r.files.hiprtc && r.version.n && r.version.part[0] < 7)
        r.files.hiprtc = r.hip;
    *ARENA_PUSH(s->a, s->item, s->n) = (struct candidate){ r, rank, s->n };
}

static void add_rocm(struct search *s, const struct rocm_facts *r)
{
    enum rank rank = r->how                   ? NAMED_BY_VARIABLE
                     : r->kind == ROCM_WHEEL  ? IN_TORCH
                     : r->kind == ROCM_DISTRO ? OF_LOADER
                                              : IN_OPT;
    add(s, rank,
        (struct hip_runtime){ .what = r->how ? arena_printf(s->a, "%s, %s", r->how, r->path) : r->path,
                              .version = r->parsed,
                              .hip = r->hip_library.s,
                              .files = r->files,
                              .rocblas = r->rocblas,
                              .hipblaslt = r->hipblaslt });
}

static void add_torch(struct search *s, const struct torch_facts *t)
{
    if (t->build != TORCH_ROCM)
        return;
    add(s, IN_TORCH,
        (struct hip_runtime){
            .what = arena_printf(s->a, "PyTorch %s", t->version.s ? t->version.s : "of unknown version"),
            .version = torch_rocm(t),
            .hip = t->hip_library.s,
            .files = t->files,
            .rocblas = t->rocblas,
            .hipblaslt = t->hipblaslt });
}

static void add_folders(struct search *s, enum rank rank, const char *what, const char *const *folder,
                        size_t n)
{
    struct rocm_prefix_facts p = { 0 };
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= rocm_prefix_has_hip(&s->f->root, s->a, folder[i]);
    for (size_t i = 0; any && i < n; i++)
        rocm_prefix_read_folder(&s->f->root, s->a, folder[i], &p);
    struct hip_runtime r = { .what = what, .hip = p.hip_library.s, .files = p.files };
    r.rocblas = p.rocblas, r.hipblaslt = p.hipblaslt;
    if (p.hip_version.s)
        version_parse(p.hip_version.s, &r.version);
    add(s, rank, r);
}

static void add_loader(struct search *s)
{
    struct places p = { .root = &s->f->root, .a = s->a };
    find_places(&p);
    for (size_t i = 0; i < p.n; i++)
        add_folders(s, OF_LOADER, p.path[i], &p.path[i], 1);
}

/* ---- their order ---- */

static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->r.named != b->r.named)
        return a->r.named ? -1 : 1;
    if (!a->r.named) {
        bool compiles = a->r.files.hiprtc, other = b->r.files.hiprtc;
        int newer = version_compare(b->r.version, a->r.version);
        if (compiles != other)
            return compiles ? -1 : 1;
        if (newer)
            return newer;
    }
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->nth < b->nth ? -1 : 1;
}

static bool has_parts(struct version a, struct version b, int parts)
{
    for (int i = 0; i < parts; i++)
        if (a.n <= i || b.n <= i || a.part[i] != b.part[i])
            return false;
    return true;
}

/* What is missing comes from the nearest relative. */
static void complete(struct search *s, struct hip_runtime *r)
{
    enum { SAME_MAJOR = 1, SAME_RELEASE = 2 };
    for (int parts = SAME_RELEASE; parts >= SAME_MAJOR; parts--)
        for (size_t i = 0; i < s->n; i++) {
            const struct hip_runtime *other = &s->item[i].r;
            if (!has_parts(r->version, other->version, parts))
                continue;
            if (!r->files.hiprtc)
                r->files.hiprtc = other->files.hiprtc;
            if (parts == SAME_RELEASE && !r->files.rocblas) {
                r->files.rocblas = other->files.rocblas;
                r->rocblas = other->rocblas;
            }
            if (parts == SAME_RELEASE && !r->files.hipblaslt) {
                r->files.hipblaslt = other->files.hipblaslt;
                r->hipblaslt = other->hipblaslt;
            }
        }
}

void runtimes_find(struct facts *f)
{
    struct search s = { .f = f, .a = &f->arena };
    struct places own = { .root = &f->root, .a = &f->arena };
    add_list(&own, facts_env(f, "LD_LIBRARY_PATH"));
    for (size_t i = 0; i < f->n_rocms; i++)
        if (f->rocms[i].how)
            add_rocm(&s, &f->rocms[i]);
    add_folders(&s, NAMED_TO_LOADER, "LD_LIBRARY_PATH", own.path, own.n);
    for (size_t i = 0; i < f->n_torches;
         i++) /* before the wheels that it loads, which have no name of their own */
        add_torch(&s, &f->torches[i]);
    for (size_t i = 0; i < f->n_rocms; i++)
        if (!f->rocms[i].how)
            add_rocm(&s, &f->rocms[i]);
    add_loader(&s);
    if (s.n > 1)
        qsort(s.item, s.n, sizeof(*s.item), compare);
    for (size_t i = 0; i < s.n; i++) {
        struct hip_runtime r = s.item[i].r;
        complete(&s, &r);
        *ARENA_PUSH(&f->arena, f->runtimes, f->n_runtimes) = r;
    }
}

const char *runtime_text(const struct hip_runtime *r, struct arena *a)
{
    const struct version *v = &r->version;
    if (!v->n)
        return arena_printf(a, "ROCm of unknown version, of %s", r->what);
    if (v->n == 1)
        return arena_printf(a, "ROCm %d, of %s", v->part[0], r->what);
    if (v->n == 2)
        return arena_printf(a, "ROCm %d.%d, of %s", v->part[0], v->part[1], r->what);
    return arena_printf(a, "ROCm %d.%d.%d, of %s", v->part[0], v->part[1], v->part[2], r->what);
}
