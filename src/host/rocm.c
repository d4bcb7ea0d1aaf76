/* SPDX-License-Identifier: Apache-2.0 */
#include "host/rocm.h"

#include "base/json.h"
#include "base/str.h"
#include "host/rocm_prefix.h"
#include "host/python.h"
#include "host/python_site.h"
#include <string.h>

struct search {
    struct facts *f;
    struct arena *a;
    const struct root *root;
    const char **seen; /* resolved paths */
    size_t n_seen;
};

static const char *join(const struct search *s, const char *dir, const char *name)
{
    return path_join(s->a, dir, name);
}

static bool has(const struct search *s, const char *dir, const char *name)
{
    return root_exists(s->root, join(s, dir, name));
}

static bool has_hip(const struct search *s, const char *dir)
{
    for (size_t i = 0; rocm_prefix_lib_dirs[i]; i++)
        if (rocm_prefix_has_hip(s->root, s->a, join(s, dir, rocm_prefix_lib_dirs[i])))
            return true;
    return false;
}

static struct text version_from_info(const struct search *s, const char *dir)
{
    static const char *const files[] = { ".info/version", ".info/version-rocm", ".info/version-utils",
                                         ".info/version-dev", ".info/version-hip-libraries" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const char *path = join(s, dir, files[i]), *text = root_read(s->root, s->a, path, NULL);
        struct version v;
        if (text && version_parse(text, &v))
            return (struct text){ arena_strndup(s->a, text, strcspn(text, " \t\r\n")), path };
    }
    return (struct text){ 0 };
}

static struct text version_from_manifest(const struct search *s, const char *dir)
{
    const char *path = join(s, dir, "share/therock/therock_manifest.json");
    size_t len;
    const char *text = root_read(s->root, s->a, path, &len);
    CLEANUP(json_cleanup) struct json *manifest = NULL;
    struct cairn_error unused = { 0 };
    struct version v;
    if (!text || json_parse(text, len, &manifest, &unused))
        return (struct text){ 0 };
    const char *version = json_text(json_get(manifest, "rocm_version"));
    if (!version || !version_parse(version, &v))
        version = json_text(json_get(manifest, "rocm_package_version"));
    if (!version || !version_parse(version, &v))
        return (struct text){ 0 };
    return (struct text){ arena_strdup(s->a, version), path };
}

/* "rocm-6.4.1", "core-7.14" */
static struct text version_from_name(const struct search *s, const char *dir)
{
    const char *real = root_resolve(s->root, s->a, dir);
    const char *dash = real ? strrchr(strrchr(real, '/'), '-') : NULL;
    struct version v;
    if (!dash || !version_parse(dash + 1, &v) || v.n < 2)
        return (struct text){ 0 };
    return (struct text){ dash + 1, real };
}

static void read_version(const struct search *s, const char *dir, const struct rocm_prefix_facts *p,
                         struct rocm_facts *r)
{
    if (!r->version.s)
        r->version = version_from_info(s, dir);
    if (!r->version.s)
        r->version = version_from_manifest(s, dir);
    if (!r->version.s && r->kind != ROCM_DISTRO)
        r->version = version_from_name(s, dir);
    if (!r->version.s)
        r->version = p->hip_version;
    if (r->version.s)
        version_parse(r->version.s, &r->parsed);
}

/* Was this directory, under any path, here before?  Remembers it. */
static bool is_seen(struct search *s, const char *dir)
{
    const char *real = root_resolve(s->root, s->a, dir);
    if (!real)
        return true;
    for (size_t i = 0; i < s->n_seen; i++)
        if (!strcmp(s->seen[i], real))
            return true;
    *ARENA_PUSH(s->a, s->seen, s->n_seen) = real;
    return false;
}

static void add(struct search *s, struct rocm_facts start, const struct rocm_prefix_facts *p)
{
    struct rocm_facts *r = ARENA_PUSH(s->a, s->f->rocms, s->f->n_rocms);
    *r = start;
    read_version(s, r->path, p, r);
    r->hip_library = p->hip_library;
    r->files = p->files;
    r->miopen_version = p->miopen_version.s ? p->miopen_version : rocm_prefix_miopen_by_rocm(s->a, r->parsed);
    r->rocblas = p->rocblas;
    r->hipblaslt = p->hipblaslt;
    r->has_rocminfo = has(s, r->path, "bin/rocminfo");
}

/* A directory counts as an installation by what is in it: an empty left-over of /opt/rocm is none. */
static bool add_prefix(struct search *s, const char *dir, const char *how)
{
    bool therock = has(s, dir, "share/therock");
    bool is_one = therock || has(s, dir, ".info") || has(s, dir, "bin/rocminfo") || has_hip(s, dir);
    if (!is_one)
        return false;
    if (is_seen(s, dir))
        return true;
    struct rocm_prefix_facts p = { 0 };
    rocm_prefix_read(s->root, s->a, dir, &p);
    add(s, (struct rocm_facts){ .path = dir, .how = how, .kind = therock ? ROCM_THEROCK : ROCM_CLASSIC }, &p);
    return true;
}

/* Directories in `dir` whose name has this prefix, newest first. */
static void add_inside(struct search *s, const char *dir, const char *start)
{
    char **names;
    size_t n;
    if (root_list(s->root, s->a, dir, &names, &n))
        return;
    for (size_t i = n; i-- > 0;)
        if (str_starts(names[i], start))
            add_prefix(s, join(s, dir, names[i]), NULL);
}

/* What the distribution packaged: libraries among all others in /usr.  Fedora keeps kernels of a family of
 * chips in a tree of its own. */
static void add_distribution(struct search *s, const char *how)
{
    struct rocm_prefix_facts p = { 0 };
    char **families;
    size_t n;
    if (!has_hip(s, "/usr"))
        return;
    rocm_prefix_read(s->root, s->a, "/usr", &p);
    if (!root_list(s->root, s->a, "/usr/lib64/rocm", &families, &n))
        for (size_t i = 0; i < n; i++)
            if (str_starts(families[i], "gfx"))
                rocm_prefix_read(s->root, s->a, join(s, "/usr/lib64/rocm", families[i]), &p);
    add(s, (struct rocm_facts){ .path = "/usr", .how = how, .kind = ROCM_DISTRO }, &p);
}

static void add_system(struct search *s)
{
    static const char *const variables[] = { "ROCM_PATH", "ROCM_HOME", "HIP_PATH" };
    const char *usr = NULL;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *dir = facts_env(s->f, variables[i]);
        size_t n = dir ? strlen(dir) : 0;
        while (n > 1 && dir[n - 1] == '/')
            n--;
        dir = dir ? arena_strndup(s->a, dir, n) : NULL;
        /* A variable may say /usr, where the distribution's libraries are. */
        if (str_eq(dir, "/usr"))
            usr = usr ? usr : variables[i];
        else if (dir && *dir == '/' && n > 1)
            add_prefix(s, dir, variables[i]);
    }
    add_prefix(s, "/opt/rocm", NULL);
    add_prefix(s, "/opt/rocm/core", NULL);
    add_inside(s, "/opt/rocm", "core-");
    add_inside(s, "/opt", "rocm-");
    add_distribution(s, usr);
}

/* The wheels: the runtime is in _rocm_sdk_core, the math libraries beside it. */
static void add_wheel(struct search *s, const char *site_dir)
{
    struct python_site site;
    python_site_read(&site, s->root, s->a, site_dir);
    const char *core = python_site_path(&site, "_rocm_sdk_core");
    if (!python_site_has(&site, "_rocm_sdk_core") || is_seen(s, core))
        return;
    struct rocm_prefix_facts p = { 0 };
    rocm_prefix_read(s->root, s->a, core, &p);
    for (size_t i = 0; i < site.n; i++)
        if (str_starts(site.names[i], "_rocm_sdk_libraries"))
            rocm_prefix_read(s->root, s->a, python_site_path(&site, site.names[i]), &p);
    add(s,
        (struct rocm_facts){
            .path = core, .kind = ROCM_WHEEL, .version = python_site_version(&site, "rocm_sdk_core") },
        &p);
}

static int add_given(struct search *s, const char *given, struct cairn_error *err)
{
    const char *dir = root_resolve_dir(s->root, s->a, given);
    if (!dir)
        return cairn_fail(err, CAIRN_EUSAGE, "--rocm %s: no such directory", given);
    /* TheRock's packages put the installation one level further down. */
    if (add_prefix(s, dir, "--rocm") ||
        (has(s, dir, "core") && add_prefix(s, join(s, dir, "core"), "--rocm")))
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "--rocm %s: not a ROCm installation", given);
    return cairn_hint(
        err, "name a directory such as /opt/rocm, which contains .info/version or lib/libamdhip64.so");
}

int rocm_find(struct facts *f, const struct facts_options *o, struct cairn_error *err)
{
    CLEANUP(root_close) struct root live = { .fd = -1 };
    struct search s = { .f = f, .a = &f->arena, .root = &f->root };
    if ((o->rocm_dir || o->torch_dir || o->command) && root_open(&live, NULL, err))
        return -1;
    if (o->rocm_dir) {
        s.root = &live;
        if (add_given(&s, o->rocm_dir, err))
            return -1;
    } else {
        add_system(&s);
    }
    struct pythons found = { 0 };
    struct cairn_error unused = { 0 };
    if (pythons_find(f, o, &live, &found, &unused)) /* torch_find reports a wrong --torch */
        return 0;
    for (size_t i = 0; i < found.n; i++)
        for (size_t k = 0; k < found.item[i].n_sites; k++) {
            s.root = found.item[i].root;
            add_wheel(&s, found.item[i].sites[k]);
        }
    return 0;
}
