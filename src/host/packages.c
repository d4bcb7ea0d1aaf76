/* SPDX-License-Identifier: Apache-2.0 */
#include "host/packages.h"

#include "base/str.h"
#include "host/codeobj.h"
#include <stdlib.h>
#include <string.h>

struct look {
    struct torch_facts *t;
    const struct python_site *sites;
    size_t n_sites;
    struct arena *a;
    const char *bnb_version;
};

/* The first site that has the distribution under one of its names; NULL if none has. */
static const struct python_site *find(const struct look *l, const char *const *names, struct package_facts *p)
{
    for (size_t i = 0; i < l->n_sites; i++)
        for (const char *const *name = names; *name; name++) {
            p->version = python_site_version(&l->sites[i], *name);
            if (p->version.s) {
                version_parse(p->version.s, &p->parsed);
                return &l->sites[i];
            }
        }
    return NULL;
}

/* Reads a binary; what is wrong with it goes to torch's problems. */
static bool read_binary(const struct look *l, const struct python_site *s, const char *path,
                        struct codeobj *out)
{
    struct cairn_error err = { 0 };
    CLEANUP(fd_close) int fd = root_open_file(s->root, path);
    if (fd < 0)
        cairn_fail_errno(&err, "open %s", path);
    else if (!codeobj_read(fd, path, l->a, out, &err))
        return true;
    problems_add(&l->t->problems, l->a, "%s", err.msg);
    return false;
}

/* For packages whose binary part only matters to a ROCm build. */
static bool is_rocm(const struct look *l, struct package_facts *p)
{
    if (l->t->build == TORCH_ROCM)
        return true;
    p->fits = TRI_UNKNOWN;
    p->why = "this torch is not a ROCm build";
    return false;
}

/* The digits of libbitsandbytes_rocm64.so or _rocm714.so: a major of one digit, then the minor. */
static bool rocm_library(const char *name, struct version *out)
{
    static const char before[] = "libbitsandbytes_rocm";
    if (!str_starts(name, before) || !str_ends(name, ".so"))
        return false;
    const char *digits = name + sizeof(before) - 1;
    size_t n = strspn(digits, "0123456789");
    if (n < 2 || n > 4 || strcmp(digits + n, ".so"))
        return false;
    *out = (struct version){ 2, { digits[0] - '0', atoi(digits + 1), 0 }, false };
    return true;
}

/* Of two libraries of torch's major version: the very one, else the highest lower one, else the lowest. */
static bool is_better(struct version v, struct version than, struct version hip)
{
    bool low = v.part[1] <= hip.part[1], than_low = than.part[1] <= hip.part[1];
    if (low != than_low)
        return low;
    return low ? v.part[1] > than.part[1] : v.part[1] < than.part[1];
}

static const char *nearest_library(const struct python_site *files, struct version hip)
{
    const char *best = NULL;
    struct version best_version = { 0 }, v;
    for (size_t i = 0; i < files->n; i++)
        if (rocm_library(files->names[i], &v) && v.part[0] == hip.part[0] &&
            (!best || is_better(v, best_version, hip))) {
            best = files->names[i];
            best_version = v;
        }
    return best;
}

/* Up to 0.49, bitsandbytes needs the exact file of torch's HIP version, writes 7.14 as 7 * 10 + 14 = 84, and
 * does not read BNB_ROCM_VERSION; see its cextension.py and cuda_specs.py, and
 * https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1980. */
static const char *pick_library(const struct look *l, const struct python_site *files,
                                const struct package_facts *p)
{
    const struct version hip = l->t->hip_parsed;
    bool old = version_below(p->parsed, 0, 50, 0);
    if (!old && !l->bnb_version)
        return nearest_library(files, hip);
    const char *want = old ? arena_printf(l->a, "libbitsandbytes_rocm%d.so", hip.part[0] * 10 + hip.part[1])
                           : arena_printf(l->a, "libbitsandbytes_rocm%s.so", l->bnb_version);
    return python_site_has(files, want) ? want : NULL;
}

static const char *rocm_libraries(const struct look *l, const struct python_site *files)
{
    CLEANUP(str_release) struct str list = { 0 };
    struct version v;
    for (size_t i = 0; i < files->n; i++)
        if (rocm_library(files->names[i], &v))
            str_addf(&list, "%s%d.%d", list.len ? ", " : "", v.part[0], v.part[1]);
    return list.len ? arena_strdup(l->a, list.s) : NULL;
}

static void judge_library(const struct look *l, const struct python_site *files, const char *library,
                          struct package_facts *p)
{
    const char *path = python_site_path(files, library);
    struct codeobj c;
    if (!read_binary(l, files, path, &c)) {
        p->fits = TRI_NO;
        p->why = arena_printf(l->a, "%s is not readable", path);
        return;
    }
    p->targets = c.targets;
    p->fits = TRI_YES;
    p->why = arena_printf(l->a, "it loads %s for HIP %s", library, l->t->hip.s);
}

static void read_bitsandbytes(const struct look *l)
{
    static const char *const names[] = { "bitsandbytes", NULL };
    struct package_facts *p = &l->t->bitsandbytes;
    const struct python_site *s = find(l, names, p);
    if (!s || !is_rocm(l, p))
        return;
    struct python_site files;
    python_site_read(&files, s->root, l->a, python_site_path(s, "bitsandbytes"));
    const char *has = rocm_libraries(l, &files), *nearest = nearest_library(&files, l->t->hip_parsed);
    if (nearest) {
        nearest += strcspn(nearest, "0123456789");
        l->t->bnb_rocm = arena_strndup(l->a, nearest, strspn(nearest, "0123456789"));
    }
    const char *library = l->t->hip_parsed.n >= 2 ? pick_library(l, &files, p) : NULL;
    if (library) {
        judge_library(l, &files, library, p);
    } else if (!has) {
        p->fits = files.unreadable ? TRI_UNKNOWN : TRI_NO;
        p->why = files.unreadable ? "its files are not listed" : "it has no library for ROCm";
    } else if (l->t->hip_parsed.n < 2) {
        p->fits = TRI_UNKNOWN;
        p->why = arena_printf(l->a, "it has libraries for ROCm %s; torch's HIP version is unknown", has);
    } else {
        p->fits = TRI_NO;
        p->why = arena_printf(l->a, "it has libraries for ROCm %s but none for HIP %s", has,
                              l->bnb_version ? l->bnb_version : l->t->hip.s);
    }
}

/* The text of "__version__ = '3.5.1'" in a package that has no metadata. */
static struct text version_in_source(const struct look *l, const struct python_site *s, const char *package)
{
    const char *path = python_site_path(s, arena_printf(l->a, "%s/__init__.py", package));
    const char *text = root_read(s->root, l->a, path, NULL);
    const char *at = text ? strstr(text, "__version__") : NULL;
    if (!at)
        return (struct text){ 0 };
    at += strcspn(at, "'\"\n");
    char quote = *at;
    if (quote != '\'' && quote != '"')
        return (struct text){ 0 };
    const char *end = strchr(at + 1, quote);
    return end ? (struct text){ arena_strndup(l->a, at + 1, (size_t)(end - at - 1)), path }
               : (struct text){ 0 };
}

static void read_triton(const struct look *l)
{
    static const char *const names[] = { "pytorch_triton_rocm", "triton_rocm", "triton", "pytorch_triton",
                                         NULL };
    struct package_facts *p = &l->t->triton;
    const struct python_site *s = find(l, names, p);
    for (size_t i = 0; !s && i < l->n_sites; i++) {
        p->version = python_site_has(&l->sites[i], "triton") ? version_in_source(l, &l->sites[i], "triton")
                                                             : p->version;
        s = p->version.s && version_parse(p->version.s, &p->parsed) ? &l->sites[i] : NULL;
    }
    if (!s || !is_rocm(l, p))
        return;
    bool amd = !python_site_lacks(s, "triton/backends/amd");
    /* Before 3.0 the back end was a file of another name. */
    if (!amd && version_below(p->parsed, 3, 0, 0)) {
        p->fits = TRI_UNKNOWN;
        p->why = "releases before 3.0 keep their backends elsewhere";
        return;
    }
    p->fits = amd ? TRI_YES : TRI_NO;
    p->why = amd ? "it has the AMD backend" : "it has no AMD backend (triton/backends/amd)";
}

static const char *flash_extension(const struct python_site *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_starts(s->names[i], "flash_attn_2_cuda") && str_ends(s->names[i], ".so"))
            return s->names[i];
    return NULL;
}

static void read_flash_attn(const struct look *l)
{
    static const char *const names[] = { "flash_attn", NULL };
    struct package_facts *p = &l->t->flash_attn;
    const struct python_site *s = find(l, names, p);
    if (!s || !is_rocm(l, p))
        return;
    const char *extension = flash_extension(s);
    struct codeobj c;
    if (!extension) {
        p->fits = TRI_YES;
        p->why = "it has no compiled part: only its Triton backend works, with "
                 "FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE";
    } else if (!read_binary(l, s, python_site_path(s, extension), &c)) {
        p->fits = TRI_UNKNOWN;
        p->why = arena_printf(l->a, "%s is not readable", extension);
    } else if (c.kind == CODEOBJ_FAT || c.kind == CODEOBJ_SPLIT || c.needs_hip) {
        p->fits = TRI_YES;
        p->why = arena_printf(l->a, "%s is built for ROCm", extension);
        p->targets = c.targets;
    } else {
        p->fits = TRI_NO;
        p->why = arena_printf(l->a, "%s is built for CUDA", extension);
    }
}

static void read_accelerate(const struct look *l)
{
    static const char *const names[] = { "accelerate", NULL };
    struct package_facts *p = &l->t->accelerate;
    if (!find(l, names, p))
        return;
    p->fits = TRI_YES;
    p->why = "it is pure Python";
}

void packages_read(struct torch_facts *t, const struct python_site *sites, size_t n_sites,
                   const char *bnb_version)
{
    if (!n_sites)
        return;
    struct look l = { t, sites, n_sites, sites[0].a, bnb_version && *bnb_version ? bnb_version : NULL };
    read_bitsandbytes(&l);
    read_triton(&l);
    read_flash_attn(&l);
    read_accelerate(&l);
}
