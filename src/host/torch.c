/* SPDX-License-Identifier: Apache-2.0 */
#include "host/torch.h"

#include "base/str.h"
#include "host/codeobj.h"
#include "chip/gfxname.h"
#include "host/packages.h"
#include "host/rocm_prefix.h"
#include "host/python.h"
#include "host/python_site.h"
#include "host/wheels.h"
#include <errno.h>
#include <string.h>

/* One torch while it is read. */
struct reading {
    struct torch_facts *t;
    struct arena *a;
    const struct root *root;
    const struct python_site *site; /* the one torch is in */
    const char *dir;                /* …/torch */
    struct python_site lib;         /* …/torch/lib */
};

/* The value of "name = 'text'", "name: Optional[str] = 'text'" or "name = None" at the start of a line;
 * `found` tells None from absent. */
static const char *python_value(struct arena *a, const char *text, const char *name, bool *found)
{
    size_t n = strlen(name);
    *found = false;
    for (const char *line = text; line; line = str_next_line(line)) {
        if (strncmp(line, name, n) || !strchr(" \t:=", line[n]))
            continue;
        const char *p = line + n + strcspn(line + n, "=\n");
        if (*p++ != '=')
            continue;
        p += strspn(p, " \t");
        *found = true;
        if (*p != '\'' && *p != '"')
            return NULL;
        const char quote[] = { *p, '\n', '\0' };
        size_t len = strcspn(p + 1, quote);
        return p[1 + len] == *p && len ? arena_strndup(a, p + 1, len) : NULL;
    }
    return NULL;
}

static struct text value_from(struct arena *a, const char *text, const char *name, const char *path,
                              bool *found)
{
    const char *v = python_value(a, text, name, found);
    return v ? (struct text){ v, path } : (struct text){ 0 };
}

/* The local version, after "+": "+rocm6.4", "+cu128", "+cpu", "+xpu". */
static enum torch_build build_from_version(const char *version)
{
    static const struct {
        const char *mark;
        enum torch_build build;
    } marks[] = {
        { "rocm", TORCH_ROCM },
        { "cu1", TORCH_CUDA },
        { "cpu", TORCH_CPU },
        { "xpu", TORCH_XPU },
    };
    const char *local = version ? strchr(version, '+') : NULL;
    for (size_t i = 0; local && i < ARRAY_LEN(marks); i++)
        if (strstr(local, marks[i].mark))
            return marks[i].build;
    return TORCH_BUILD_UNKNOWN;
}

/* Reads torch/version.py. Its HIP and CUDA fields decide; a wheel's name can be anything. */
static void read_version(struct reading *r)
{
    struct torch_facts *t = r->t;
    const char *path = arena_printf(r->a, "%s/version.py", r->dir);
    const char *text = root_read(r->root, r->a, path, NULL);
    bool has_version = false, has_hip = false, has_cuda = false, has_xpu = false;
    if (!text)
        problems_add(&t->problems, r->a, "%s: %s", path, strerror(errno));
    else
        t->version = value_from(r->a, text, "__version__", path, &has_version);
    if (!t->version.s)
        t->version = python_site_version(r->site, "torch");
    if (text && !has_version)
        problems_add(&t->problems, r->a, "%s: has no __version__", path);
    t->build = build_from_version(t->version.s);
    if (t->version.s)
        version_parse(t->version.s, &t->parsed);
    if (!text)
        return;
    t->hip = value_from(r->a, text, "hip", path, &has_hip);
    t->cuda = value_from(r->a, text, "cuda", path, &has_cuda);
    struct text xpu = value_from(r->a, text, "xpu", path, &has_xpu);
    if (t->hip.s)
        version_parse(t->hip.s, &t->hip_parsed);
    if (t->hip.s || t->cuda.s || xpu.s)
        t->build = t->hip.s ? TORCH_ROCM : t->cuda.s ? TORCH_CUDA : TORCH_XPU;
    else if (has_hip || has_cuda)
        t->build = TORCH_CPU;
}

/* Opens a library; one that exists but is not readable is a problem. */
static int open_library(struct reading *r, const char *name, const char **path)
{
    if (!python_site_has(&r->lib, name))
        return -1;
    *path = python_site_path(&r->lib, name);
    int fd = root_open_file(r->root, *path);
    if (fd < 0)
        problems_add(&r->t->problems, r->a, "%s: %s", *path, strerror(errno));
    return fd;
}

static void read_arch_list(struct reading *r)
{
    const char *path;
    struct cairn_error err = { 0 };
    CLEANUP(fd_close) int fd = open_library(r, "libtorch_python.so", &path);
    if (fd >= 0 && codeobj_arch_list(fd, path, r->a, &r->t->compiled, &err))
        problems_add(&r->t->problems, r->a, "%s", err.msg);
}

/* Examined even if the targets are known: it shows whether the device code is elsewhere, and a damaged one is
 * worth reporting. */
static void read_hip_library(struct reading *r)
{
    const char *path;
    struct cairn_error err = { 0 };
    struct codeobj c;
    CLEANUP(fd_close) int fd = open_library(r, "libtorch_hip.so", &path);
    if (fd < 0)
        return;
    bool known = r->t->compiled.from != NULL;
    if (known ? codeobj_inspect(fd, path, r->a, &c, &err) : codeobj_read(fd, path, r->a, &c, &err)) {
        problems_add(&r->t->problems, r->a, "%s", err.msg);
        return;
    }
    r->t->kpack = c.kind == CODEOBJ_SPLIT;
    if (!known && c.targets.n)
        r->t->compiled = c.targets;
}

struct wheel_list {
    struct reading *r;
    struct targets targets;
    bool any; /* a wheel of this kind is installed, whole or not */
};

/* A device wheel is its .kpack archive; where hidden files were lost in a copy only the metadata is left. */
static bool archive_is_lost(struct reading *r, const char *info)
{
    const char *record = root_read(r->root, r->a, arena_printf(r->a, "%s/RECORD", info), NULL);
    for (const char *line = record; line && *line; line = str_next_line(line)) {
        size_t n = strcspn(line, ",\n");
        if (n < 6 || strncmp(line + n - 6, ".kpack", 6))
            continue;
        const char *name = arena_strndup(r->a, line, n);
        if (!python_site_lacks(r->site, name))
            continue;
        problems_add(&r->t->problems, r->a, "%s: missing, although its wheel is installed",
                     python_site_path(r->site, name));
        return true;
    }
    return false;
}

/* "gfx1151"; wheels of a family ("gfx115x", "gfx12_0") contain only attention kernels. */
static void take_wheel(void *context, const char *rest, size_t len, const char *info)
{
    struct wheel_list *w = context;
    w->any = true;
    if (gfxname_span(rest, len) == len && !archive_is_lost(w->r, info))
        targets_add(&w->targets, w->r->a, rest, len);
}

static void take_archives(struct reading *r, struct targets *out)
{
    struct python_site archives;
    python_site_read(&archives, r->root, r->a, arena_printf(r->a, "%s/.kpack", r->dir));
    for (size_t i = 0; i < archives.n; i++) {
        size_t len;
        const char *target = gfxname_find(archives.names[i], strlen(archives.names[i]), &len);
        if (target && str_ends(archives.names[i], ".kpack"))
            targets_add(out, r->a, target, len);
    }
}

static void read_device_wheels(struct reading *r)
{
    struct wheel_list torch = { .r = r }, rocm = { .r = r };
    python_site_each(r->site, "amd_torch_device_", take_wheel, &torch);
    take_archives(r, &torch.targets);
    python_site_each(r->site, "rocm_sdk_device_", take_wheel, &rocm);
    /* Before torch's own code was split off there were only ROCm's device wheels. */
    struct targets *found = torch.any || torch.targets.n ? &torch.targets : &rocm.targets;
    if (!found->n && !r->t->kpack)
        return;
    found->from = r->site->path;
    r->t->device_wheels = *found;
    if (!r->t->compiled.from && found->n)
        r->t->compiled = *found;
}

/* The ROCm libraries that this torch loads: its own, or those of the rocm_sdk wheels beside it. */
static void read_libraries(struct reading *r)
{
    struct torch_facts *t = r->t;
    struct rocm_prefix_facts p = { 0 };
    rocm_prefix_read(r->root, r->a, r->dir, &p);
    t->therock = root_exists(r->root, arena_printf(r->a, "%s/_rocm_init.py", r->dir)) ||
                 (!p.hip_library.s && python_site_has(r->site, "_rocm_sdk_core"));
    for (size_t i = 0; t->therock && i < r->site->n; i++)
        if (!strcmp(r->site->names[i], "_rocm_sdk_core") ||
            str_starts(r->site->names[i], "_rocm_sdk_libraries"))
            rocm_prefix_read(r->root, r->a, python_site_path(r->site, r->site->names[i]), &p);
    t->hip_library = p.hip_library;
    t->files = p.files;
    t->miopen_version =
        p.miopen_version.s ? p.miopen_version : rocm_prefix_miopen_by_rocm(r->a, t->hip_parsed);
    t->rocblas = p.rocblas;
    t->hipblaslt = p.hipblaslt;
    t->miopen = p.miopen;
}

/* libaotriton_v2.so.0.11.1 */
static const char *aotriton_in_names(const struct reading *r, const char **file)
{
    for (size_t i = 0; i < r->lib.n; i++) {
        const char *so = str_starts(r->lib.names[i], "libaotriton") ? strstr(r->lib.names[i], ".so.") : NULL;
        if (so) {
            *file = python_site_path(&r->lib, r->lib.names[i]);
            return so + strlen(".so.");
        }
    }
    return NULL;
}

static void read_aotriton(struct reading *r)
{
    struct torch_facts *t = r->t;
    const char *file, *version = aotriton_in_names(r, &file);
    struct version parsed = { 0 };
    t->aotriton_version = version ? (struct text){ version, file } : wheels_aotriton(r->a, t->parsed);
    if (t->aotriton_version.s)
        version_parse(t->aotriton_version.s, &parsed);
    char **images;
    size_t n;
    const char *dir = python_site_path(&r->lib, "aotriton.images");
    if (!python_site_has(&r->lib, "aotriton.images")) {
        if (version) /* the library without its images */
            t->aotriton.from = dir;
        return;
    }
    if (root_list(r->root, r->a, dir, &images, &n)) { /* unreadable is not empty */
        problems_add(&t->problems, r->a, "%s: %s", dir, strerror(errno));
        return;
    }
    t->aotriton.from = dir;
    for (size_t i = 0; i < n; i++)
        wheels_aotriton_targets(r->a, images[i], parsed, &t->aotriton);
}

static void read_rocm_parts(struct reading *r)
{
    read_arch_list(r);
    read_hip_library(r);
    read_libraries(r);
    read_device_wheels(r);
    read_aotriton(r);
    if (!r->t->compiled.from && r->t->version.s && !r->t->therock)
        wheels_targets(r->a, r->t->version.s, &r->t->compiled);
}

static void torch_read(struct facts *f, struct torch_facts *t, const struct python *p,
                       struct python_site *sites, size_t which)
{
    struct reading r = { .t = t, .a = &f->arena, .root = p->root, .site = &sites[which] };
    t->site = sites[which].path;
    t->python = p->exe;
    t->how = p->how;
    t->guess = p->guess;
    r.dir = python_site_path(r.site, "torch");
    python_site_read(&r.lib, r.root, r.a, python_site_path(r.site, "torch/lib"));
    read_version(&r);
    if (t->build == TORCH_ROCM || t->build == TORCH_BUILD_UNKNOWN)
        read_rocm_parts(&r);
    packages_read(t, sites, p->n_sites, facts_env(f, "BNB_ROCM_VERSION"));
}

static bool has_torch(const struct python_site *s)
{
    return python_site_has(s, "torch") && python_is_torch(s->root, s->a, python_site_path(s, "torch"));
}

/* The path with links resolved, or unchanged if that fails. */
static const char *real_path(const struct python_site *s, const char *path)
{
    const char *real = root_resolve(s->root, s->a, path);
    return real ? real : path;
}

static bool is_listed(struct facts *f, const struct python_site *s)
{
    const char *real = real_path(s, s->path);
    for (size_t i = 0; i < f->n_torches; i++)
        if (str_eq(f->torches[i].site, s->path) || str_eq(real_path(s, f->torches[i].site), real))
            return true;
    return false;
}

/* Adds the torch that this Python would import, unless another path led to it before. */
static void add_torch(struct facts *f, const struct python *p)
{
    struct python_site *sites = ARENA_NEW(&f->arena, struct python_site, p->n_sites);
    size_t which = p->n_sites;
    for (size_t i = p->n_sites; i-- > 0;) {
        python_site_read(&sites[i], p->root, &f->arena, p->sites[i]);
        if (has_torch(&sites[i]))
            which = i;
    }
    if (which < p->n_sites && !is_listed(f, &sites[which]))
        torch_read(f, ARENA_PUSH(&f->arena, f->torches, f->n_torches), p, sites, which);
}

int torch_find(struct facts *f, const struct facts_options *o, struct cairn_error *err)
{
    CLEANUP(root_close) struct root live = { .fd = -1 };
    struct pythons found = { 0 };
    if ((o->torch_dir || o->command) && root_open(&live, NULL, err))
        return -1;
    if (pythons_find(f, o, &live, &found, err))
        return -1;
    bool is_known = false; /* the command's own, and no other matters */
    for (size_t i = 0; i < found.n && !is_known; i++) {
        add_torch(f, &found.item[i]);
        is_known = f->command.sure && f->n_torches && !found.item[i].guess;
    }
    if (!o->torch_dir || f->n_torches)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "--torch %s: contains no PyTorch", o->torch_dir);
    return cairn_hint(err, "name a virtual environment, a site-packages directory or the torch directory");
}

bool torch_prefer(struct facts *f, const char *site, const char *how)
{
    CLEANUP(root_close) struct root live = { .fd = -1 };
    struct facts_options o = { .torch_dir = site };
    struct pythons found = { 0 };
    struct cairn_error unused = { 0 };
    struct torch_facts *before = f->torches;
    size_t n = f->n_torches;
    if (root_open(&live, NULL, &unused) || pythons_find(f, &o, &live, &found, &unused) || !found.n)
        return false;
    f->torches = NULL;
    f->n_torches = 0;
    found.item[0].how = how;
    add_torch(f, &found.item[0]);
    bool is_there = f->n_torches > 0;
    for (size_t i = 0; i < n; i++)
        if (!is_there || !str_eq(before[i].site, f->torches[0].site))
            *ARENA_PUSH(&f->arena, f->torches, f->n_torches) = before[i];
    return is_there;
}

struct version torch_rocm(const struct torch_facts *t)
{
    struct version v = { 0 };
    const char *local = t->version.s ? strstr(t->version.s, "+rocm") : NULL;
    if (local && version_parse(local + strlen("+rocm"), &v))
        return v;
    /* HIP's third number counts commits; it is not ROCm's patch level. */
    if (t->hip_parsed.n >= 2)
        v = (struct version){ 2, { t->hip_parsed.part[0], t->hip_parsed.part[1], 0 }, false };
    return v;
}
