/* SPDX-License-Identifier: Apache-2.0 */
#include "host/rocm_prefix.h"

#include "base/str.h"
#include "chip/gfxname.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const rocm_prefix_lib_dirs[] = { "lib", "lib64", "lib/x86_64-linux-gnu", NULL };

/* A directory with the names in it, in memory that lives as long as one prefix is looked at. */
struct dir {
    const struct root *root;
    struct arena *a;       /* of the facts */
    struct arena *scratch; /* of the names: a library's kernels are thousands of files */
    const char *path;
    char **names;
    size_t n;
};

static bool dir_list(struct dir *d, const char *path)
{
    d->path = path;
    return !root_list(d->root, d->scratch, path, &d->names, &d->n);
}

/* The same in no order, for folders of kernels. */
static bool dir_list_unsorted(struct dir *d, const char *path)
{
    d->path = path;
    return !root_list_unsorted(d->root, d->scratch, path, &d->names, &d->n);
}

static int compare_targets(const void *a, const void *b)
{
    return str_compare_natural(*(const char *const *)a, *(const char *const *)b);
}

/* Joins: a list that was not known becomes known. Sorts what is added, which comes from an unsorted
 * folder. */
static void targets_join(struct targets *t, struct arena *a, struct targets *more)
{
    if (!t->from)
        t->from = arena_strdup(a, more->from);
    if (more->n > 1)
        qsort(more->name, more->n, sizeof(*more->name), compare_targets);
    for (size_t i = 0; i < more->n; i++)
        targets_add(t, a, more->name[i], strlen(more->name[i]));
}

/* rocBLAS opens the index of its target, or aborts; https://github.com/ROCm/rocm-libraries,
 * rocblas/library/src/tensile_host.cpp. */
static bool is_index(const char *name, const char *target, size_t len)
{
    static const char before[] = "_lazy_";
    size_t n = sizeof(before) - 1;
    return (size_t)(target - name) >= n && !memcmp(target - n, before, n) && !strcmp(target + len, ".dat");
}

static bool is_kernel_file(const char *name)
{
    return str_ends(name, ".dat") || str_ends(name, ".co") || str_ends(name, ".hsaco");
}

/* Newer releases have a directory for each target, with anything in it. */
static bool is_target_dir(const struct dir *d, const char *name)
{
    struct dir inside = *d;
    return gfxname_span(name, strlen(name)) == strlen(name) &&
           dir_list(&inside, arena_printf(d->scratch, "%s/%s", d->path, name)) && inside.n;
}

/* The kernels of rocBLAS and hipBLASLt.  Where there are indexes only they count; old releases have none. */
static bool read_tensile(struct dir *d, const char *path, struct targets *out)
{
    if (!dir_list_unsorted(d, path))
        return false;
    struct targets indexed = { .from = path }, named = { .from = path };
    for (size_t i = 0; i < d->n; i++) {
        const char *name = d->names[i];
        size_t len, n = strlen(name);
        const char *target = gfxname_find(name, n, &len);
        if (!target)
            continue;
        if (is_index(name, target, len) || is_target_dir(d, name))
            targets_add(&indexed, d->scratch, target, len);
        else if (is_kernel_file(name))
            targets_add(&named, d->scratch, target, len);
    }
    targets_join(out, d->a, indexed.n ? &indexed : &named);
    return true;
}

/* "<lib>/rocblas/library", and "<lib>/rocblas/<version>/library" as on Debian. False only if there is no such
 * directory: an unreadable one may contain anything. */
static bool read_kernels(struct dir *d, const char *lib, const char *name, struct targets *out)
{
    const char *top = arena_printf(d->scratch, "%s/%s", lib, name);
    if (read_tensile(d, arena_printf(d->scratch, "%s/library", top), out) || errno != ENOENT)
        return true;
    struct dir versions = *d;
    if (!dir_list(&versions, top))
        return errno != ENOENT;
    bool any = false;
    for (size_t i = 0; i < versions.n; i++)
        any |= read_tensile(d, arena_printf(d->scratch, "%s/%s/library", top, versions.names[i]), out);
    return any;
}

static void read_miopen_db(struct dir *d, const char *prefix, struct targets *out)
{
    if (!dir_list_unsorted(d, arena_printf(d->scratch, "%s/share/miopen/db", prefix)))
        return;
    struct targets t = { .from = d->path };
    for (size_t i = 0; i < d->n; i++) {
        size_t len = gfxname_span_glued(d->names[i], strlen(d->names[i]));
        if (len)
            targets_add(&t, d->scratch, d->names[i], len);
    }
    targets_join(out, d->a, &t);
}

/* Whether a file is this library, and the part of its name after ".so". Wheels may put a hash into it:
 * "libamdhip64-1a2b3c4d.so". */
static bool is_library(const char *file, const char *name, const char **rest)
{
    size_t n = strlen(name);
    if (strncmp(file, name, n))
        return false;
    file += n;
    if (*file == '-') {
        size_t hash = strspn(file + 1, "0123456789abcdef");
        if (hash < 8)
            return false;
        file += 1 + hash;
    }
    *rest = file + strlen(".so");
    return str_starts(file, ".so") && (!**rest || **rest == '.');
}

/* A library in a listed directory, named without ".so": the name with one number is what programs are linked
 * to, so it is preferred, and of several the newest; else the plain name, or any. */
static const char *find_library(const struct dir *d, const char *name)
{
    const char *best = NULL, *any = NULL, *rest;
    for (size_t i = 0; i < d->n; i++) {
        if (!is_library(d->names[i], name, &rest))
            continue;
        bool one_number = *rest && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
        if (one_number && (!best || str_compare_natural(d->names[i], best) > 0))
            best = d->names[i];
        if (!any)
            any = d->names[i];
    }
    return best ? best : any;
}

/* The version after ".so." of the file that a name resolves to: "6.4.60401". */
static const char *library_version(const struct dir *d, const char *name)
{
    const char *real = root_resolve(d->root, d->scratch, arena_printf(d->scratch, "%s/%s", d->path, name));
    const char *so = real ? strstr(strrchr(real, '/'), ".so.") : NULL;
    return so ? so + strlen(".so.") : NULL;
}

/* The third number of AMD's libraries is the ROCm release: 60401 is 6.4.1. */
static bool rocm_from_number(int number, struct version *out)
{
    if (number < 40000 || number > 999999)
        return false;
    *out = (struct version){ 3, { number / 10000, number / 100 % 100, number % 100 }, false };
    return true;
}

static void read_hip(struct dir *d, struct rocm_prefix_facts *io)
{
    const char *name = find_library(d, "libamdhip64");
    struct version v, rocm;
    if (!name || io->hip_library.s)
        return;
    const char *path = arena_printf(d->a, "%s/%s", d->path, name);
    io->hip_library = (struct text){ path, path };
    const char *text = library_version(d, name);
    if (!text || !version_parse(text, &v) || v.n < 2)
        return;
    bool encoded = v.n == 3 && rocm_from_number(v.part[2], &rocm) && rocm.part[0] == v.part[0] &&
                   rocm.part[1] == v.part[1];
    const char *version = encoded ? arena_printf(d->a, "%d.%d.%d", v.part[0], v.part[1], rocm.part[2])
                                  : arena_printf(d->a, "%d.%d", v.part[0], v.part[1]);
    io->hip_version = (struct text){ version, path };
}

/* AMD's compatibility matrices:
 * https://rocm.docs.amd.com/en/latest/compatibility/compatibility-matrix.html */
static const struct {
    int major, minor;
    const char *miopen;
} miopen_releases[] = {
    { 6, 0, "3.0.0" }, { 6, 1, "3.1.0" }, { 6, 2, "3.2.0" }, { 6, 3, "3.3.0" },
    { 6, 4, "3.4.0" }, { 7, 0, "3.5.0" }, { 7, 1, "3.5.1" }, { 7, 2, "3.5.1" },
};

struct text rocm_prefix_miopen_by_rocm(struct arena *a, struct version rocm)
{
    for (size_t i = 0; rocm.n >= 2 && i < ARRAY_LEN(miopen_releases); i++)
        if (miopen_releases[i].major == rocm.part[0] && miopen_releases[i].minor == rocm.part[1])
            return (struct text){ miopen_releases[i].miopen,
                                  arena_printf(a, FROM_VERSION "MIOpen of ROCm %d.%d", rocm.part[0],
                                               rocm.part[1]) };
    return (struct text){ 0 };
}

/* The number in "#define MIOPEN_VERSION_MAJOR 3"; -1 if it is missing. */
static int header_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at)
        return -1;
    at += strlen(name);
    at += strspn(at, " \t(");
    size_t digits = strspn(at, "0123456789");
    return digits && digits < 6 ? atoi(at) : -1;
}

static struct text miopen_from_header(const struct dir *d, const char *prefix)
{
    const char *path = arena_printf(d->a, "%s/include/miopen/version.h", prefix);
    const char *text = root_read(d->root, d->scratch, path, NULL);
    if (!text)
        return (struct text){ 0 };
    int major = header_number(text, "MIOPEN_VERSION_MAJOR"),
        minor = header_number(text, "MIOPEN_VERSION_MINOR");
    int patch = header_number(text, "MIOPEN_VERSION_PATCH");
    if (major < 0 || minor < 0 || patch < 0)
        return (struct text){ 0 };
    return (struct text){ arena_printf(d->a, "%d.%d.%d", major, minor, patch), path };
}

/* set(PACKAGE_VERSION "3.4.0") */
static struct text miopen_from_cmake(const struct dir *d, const char *lib)
{
    static const char mark[] = "PACKAGE_VERSION \"";
    const char *path = arena_printf(d->a, "%s/cmake/miopen/miopen-config-version.cmake", lib);
    const char *text = root_read(d->root, d->scratch, path, NULL);
    const char *at = text ? strstr(text, mark) : NULL;
    struct version v;
    if (!at || !version_parse(at + strlen(mark), &v))
        return (struct text){ 0 };
    at += strlen(mark);
    return (struct text){ arena_strndup(d->a, at, strcspn(at, "\"\n")), path };
}

/* libMIOpen.so.1.0.60400: not MIOpen's own version, but the release it came with. */
static struct text miopen_from_library(const struct dir *d)
{
    const char *name = find_library(d, "libMIOpen");
    const char *text = name ? library_version(d, name) : NULL;
    struct version v, rocm;
    if (!text || !version_parse(text, &v) || v.n < 3 || !rocm_from_number(v.part[2], &rocm))
        return (struct text){ 0 };
    return rocm_prefix_miopen_by_rocm(d->a, rocm);
}

static void read_lib(struct dir *d, const char *path, struct rocm_prefix_facts *io)
{
    struct dir libraries = *d;
    if (!dir_list(&libraries, path))
        return;
    read_hip(&libraries, io);
    if (!io->miopen_version.s)
        io->miopen_version = miopen_from_cmake(&libraries, path);
    if (!io->miopen_version.s)
        io->miopen_version = miopen_from_library(&libraries);
    struct {
        const char *name, *file;
        const char **found;
        struct targets *t; /* NULL: it has no kernels of its own */
    } beside[] = {
        { "hiprtc", "libhiprtc", &io->files.hiprtc, NULL },
        { "rocblas", "librocblas", &io->files.rocblas, &io->rocblas },
        { "hipblaslt", "libhipblaslt", &io->files.hipblaslt, &io->hipblaslt },
    };
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        const char *file = find_library(&libraries, beside[i].file);
        bool there = beside[i].t && read_kernels(d, path, beside[i].name, beside[i].t);
        if (file && !*beside[i].found)
            *beside[i].found = arena_printf(d->a, "%s/%s", path, file);
        if (file && beside[i].t && !there && !beside[i].t->from)
            beside[i].t->from = arena_printf(d->a, "%s/%s", path, beside[i].name);
    }
}

void rocm_prefix_read_folder(const struct root *r, struct arena *a, const char *folder,
                             struct rocm_prefix_facts *io)
{
    CLEANUP(arena_release) struct arena scratch = { 0 };
    struct dir d = { .root = r, .a = a, .scratch = &scratch };
    read_lib(&d, folder, io);
}

/* The first numbers of libamdhip64.so.N; only a few exist. */
bool rocm_prefix_has_hip(const struct root *r, struct arena *a, const char *folder)
{
    enum { OLDEST = 4, NEWEST = 12 };
    if (!root_exists(r, folder))
        return false;
    if (root_exists(r, path_join(a, folder, "libamdhip64.so")))
        return true;
    for (int n = OLDEST; n <= NEWEST; n++)
        if (root_exists(r, arena_printf(a, "%s/libamdhip64.so.%d", folder, n)))
            return true;
    return false;
}

void rocm_prefix_read(const struct root *r, struct arena *a, const char *path, struct rocm_prefix_facts *io)
{
    CLEANUP(arena_release) struct arena scratch = { 0 };
    struct dir d = { .root = r, .a = a, .scratch = &scratch };
    if (!io->miopen_version.s)
        io->miopen_version = miopen_from_header(&d, path);
    for (size_t i = 0; rocm_prefix_lib_dirs[i]; i++)
        read_lib(&d, arena_printf(a, "%s/%s", path, rocm_prefix_lib_dirs[i]), io);
    read_miopen_db(&d, path, &io->miopen);
}
