/* SPDX-License-Identifier: Apache-2.0 */
#include "host/python.h"

#include "os/fault.h"
#include "base/str.h"
#include "host/command.h"
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* What the search works with. */
struct search {
    struct facts *f;
    struct arena *a;
    const struct root *root;
    const char *how; /* of what a path led to */
    bool guess;
    struct pythons found;
};

static const char *env(const struct search *s, const char *name)
{
    const char *v = facts_env(s->f, name);
    return v && *v ? v : NULL;
}

static void add_site(const struct search *s, struct python *p, const char *path)
{
    for (size_t i = 0; i < p->n_sites; i++)
        if (!strcmp(p->sites[i], path))
            return;
    if (root_is_dir(s->root, path))
        *ARENA_PUSH(s->a, p->sites, p->n_sites) = path;
}

/* Adds "<prefix>/<lib>/python3.X/<kind>" for one version ("3.11"), or for each that exists. */
static void add_sites(const struct search *s, struct python *p, const char *prefix, const char *lib,
                      const char *version, const char *kind)
{
    if (version) {
        add_site(s, p, arena_printf(s->a, "%s/%s/python%s/%s", prefix, lib, version, kind));
        return;
    }
    char **names;
    size_t n;
    if (root_list(s->root, s->a, arena_printf(s->a, "%s/%s", prefix, lib), &names, &n))
        return;
    for (size_t i = n; i-- > 0;) /* the newest first */
        if (str_starts(names[i], "python3."))
            add_site(s, p, arena_printf(s->a, "%s/%s/%s/%s", prefix, lib, names[i], kind));
}

/* "3.11" out of "3.11.2.final.0" or "python3.11"; NULL if it is not such a text. */
static const char *short_version(struct arena *a, const char *text)
{
    struct version v;
    if (str_starts(text, "python"))
        text += strlen("python");
    if (!version_parse(text, &v) || v.n < 2)
        return NULL;
    return arena_printf(a, "%d.%d", v.part[0], v.part[1]);
}

static void add_user_site(const struct search *s, struct python *p, const char *version)
{
    const char *base = env(s, "PYTHONUSERBASE"), *home = env(s, "HOME");
    if (env(s, "PYTHONNOUSERSITE") || (!base && !home))
        return;
    add_sites(s, p, base ? base : arena_printf(s->a, "%s/.local", home), "lib", version, "site-packages");
}

static void add_python_path(const struct search *s, struct python *p)
{
    const char *path = env(s, "PYTHONPATH");
    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        if (*path == '/')
            add_site(s, p, arena_strndup(s->a, path, n));
    }
}

/* The sites of an interpreter that belongs to no virtual environment, as its site.py orders them; Debian
 * has its own names for them. */
static void add_base_sites(const struct search *s, struct python *p, const char *prefix, const char *version)
{
    add_user_site(s, p, version);
    if (!strcmp(prefix, "/usr")) {
        add_sites(s, p, "/usr/local", "lib", version, "dist-packages");
        add_sites(s, p, "/usr/local", "lib64", version, "site-packages");
        add_sites(s, p, "/usr/local", "lib", version, "site-packages");
        add_site(s, p, "/usr/lib/python3/dist-packages");
        add_sites(s, p, prefix, "lib", version, "dist-packages");
    }
    add_sites(s, p, prefix, "lib", version, "site-packages");
    add_sites(s, p, prefix, "lib64", version, "site-packages");
}

/* The value of a "name = value" line of pyvenv.cfg; NULL if it has none. */
static const char *config_value(struct arena *a, const char *text, const char *name)
{
    for (const char *line = text; line; line = str_next_line(line)) {
        size_t n = strlen(name);
        line += strspn(line, " \t");
        if (strncmp(line, name, n) || !strchr(" \t=", line[n]))
            continue;
        const char *p = line + n + strspn(line + n, " \t");
        if (*p++ != '=')
            continue;
        p += strspn(p, " \t");
        size_t len = strcspn(p, "\r\n");
        while (len && strchr(" \t", p[len - 1]))
            len--;
        return arena_strndup(a, p, len);
    }
    return NULL;
}

/* An interpreter is named even where its link leads out of a captured tree. */
static const char *find_exe(const struct search *s, const char *prefix)
{
    static const char *const names[] = { "python3", "python" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *exe = arena_printf(s->a, "%s/bin/%s", prefix, names[i]);
        if (root_exists(s->root, exe) || root_link(s->root, s->a, exe))
            return exe;
    }
    return NULL;
}

/* The version and prefix of an interpreter that is a program, not a script. False if it does not exist. */
static bool resolve_exe(const struct search *s, const char *exe, const char **prefix, const char **version)
{
    const char *real = root_resolve(s->root, s->a, exe);
    if (!real)
        return false;
    *version = short_version(s->a, str_file_name(real));
    *prefix = path_parent(s->a, path_parent(s->a, real));
    return true;
}

static void add_venv_sites(const struct search *s, struct python *p, const char *prefix, const char *config)
{
    size_t before = p->n_sites;
    const char *version = config_value(s->a, config, "version");
    if (!version)
        version = config_value(s->a, config, "version_info");
    version = version ? short_version(s->a, version) : NULL;
    add_sites(s, p, prefix, "lib", version, "site-packages");
    add_sites(s, p, prefix, "lib64", version, "site-packages");
    if (p->n_sites == before) /* a version that was upgraded under it, or a text we do not know */
        add_sites(s, p, prefix, "lib", NULL, "site-packages");
    const char *system = config_value(s->a, config, "include-system-site-packages");
    const char *home = config_value(s->a, config, "home");
    const char *base, *base_version;
    if (system && !strcasecmp(system, "true") && home &&
        resolve_exe(s, path_join(s->a, home, "python3"), &base, &base_version))
        add_base_sites(s, p, base, base_version);
}

/* A prefix: a virtual environment if it has pyvenv.cfg, else an installation such as conda's. */
static struct python prefix_python(const struct search *s, const char *prefix, const char *how)
{
    struct python p = { .root = s->root, .how = how, .exe = find_exe(s, prefix) };
    const char *config = root_read(s->root, s->a, path_join(s->a, prefix, "pyvenv.cfg"), NULL);
    const char *unused, *version = NULL;
    add_python_path(s, &p);
    size_t before = p.n_sites;
    if (config) {
        add_venv_sites(s, &p, prefix, config);
        return p;
    }
    if (p.exe)
        resolve_exe(s, p.exe, &unused, &version);
    add_sites(s, &p, prefix, "lib", version, "site-packages");
    add_sites(s, &p, prefix, "lib64", version, "site-packages");
    if (p.n_sites == before)
        add_sites(s, &p, prefix, "lib", NULL, "site-packages");
    if (p.n_sites > before)
        add_user_site(s, &p, version);
    return p;
}

static void add_python(struct search *s, struct python p)
{
    p.guess = s->guess;
    if (p.n_sites)
        *ARENA_PUSH(s->a, s->found.item, s->found.n) = p;
}

static void add_prefix(struct search *s, const char *prefix, const char *how)
{
    size_t n = strlen(prefix);
    while (n > 1 && prefix[n - 1] == '/')
        n--;
    prefix = arena_strndup(s->a, prefix, n);
    if (*prefix == '/' && root_is_dir(s->root, prefix))
        add_python(s, prefix_python(s, prefix, how));
}

static bool is_script(const struct search *s, const char *path)
{
    char start[2] = { 0 };
    CLEANUP(fd_close) int fd = root_open_file(s->root, path);
    return fd >= 0 && !fault_hit() && read(fd, start, sizeof(start)) == 2 && start[0] == '#' &&
           start[1] == '!';
}

/* The first word of a pyenv version file; NULL if it does not exist. */
static const char *first_word(const struct search *s, const char *path)
{
    const char *text = root_read(s->root, s->a, path, NULL);
    if (!text)
        return NULL;
    text += strspn(text, " \t\r\n");
    size_t n = strcspn(text, " \t\r\n:");
    return n ? arena_strndup(s->a, text, n) : NULL;
}

/* Which version pyenv would run: its variable, .python-version here or above, its own file.
 * https://github.com/pyenv/pyenv, "Understanding Python version selection". */
static const char *pyenv_version(const struct search *s, const char *pyenv)
{
    const char *version = env(s, "PYENV_VERSION");
    if (version)
        return arena_strndup(s->a, version, strcspn(version, ":"));
    char cwd[PATH_MAX];
    bool here = s->root->live && !fault_hit() && getcwd(cwd, sizeof(cwd));
    for (const char *dir = cwd; here && !version; dir = path_parent(s->a, dir)) {
        version = first_word(s, path_join(s->a, dir, ".python-version"));
        here = strcmp(dir, "/") != 0;
    }
    return version ? version : first_word(s, path_join(s->a, pyenv, "version"));
}

/* "3.11" means the newest 3.11.x that is installed. */
static const char *pyenv_prefix(const struct search *s, const char *pyenv, const char *version)
{
    const char *dir = arena_printf(s->a, "%s/versions", pyenv), *best = NULL;
    const char *exact = arena_printf(s->a, "%s/%s", dir, version);
    char **names;
    size_t n, len = strlen(version);
    if (root_is_dir(s->root, exact))
        return exact;
    if (root_list(s->root, s->a, dir, &names, &n))
        return NULL;
    for (size_t i = 0; i < n; i++) /* in natural order */
        if (!strncmp(names[i], version, len) && names[i][len] == '.')
            best = names[i];
    return best ? arena_printf(s->a, "%s/%s", dir, best) : NULL;
}

/* A shim starts another interpreter; false if it defers to the rest of PATH ("system"). */
static bool add_shim(struct search *s, const char *exe)
{
    const char *shims = path_parent(s->a, exe), *pyenv = env(s, "PYENV_ROOT");
    if (strcmp(str_file_name(shims), "shims"))
        return false;
    if (!pyenv)
        pyenv = path_parent(s->a, shims);
    const char *version = pyenv_version(s, pyenv);
    const char *prefix = version ? pyenv_prefix(s, pyenv, version) : NULL;
    if (prefix)
        add_prefix(s, prefix, arena_printf(s->a, "%s (pyenv)", s->how));
    return prefix != NULL;
}

/* Python itself looks for pyvenv.cfg beside the path it was started by, before following links. */
static bool add_exe(struct search *s, const char *exe)
{
    const char *top = path_parent(s->a, path_parent(s->a, exe)), *prefix, *version;
    if (root_exists(s->root, path_join(s->a, top, "pyvenv.cfg"))) {
        add_prefix(s, top, s->how);
        return true;
    }
    if (is_script(s, exe))
        return add_shim(s, exe);
    if (!resolve_exe(s, exe, &prefix, &version))
        return false;
    struct python p = { .root = s->root, .exe = exe, .how = s->how };
    add_python_path(s, &p);
    add_base_sites(s, &p, prefix, version);
    add_python(s, p);
    return true;
}

static bool is_executable(const struct search *s, const char *path)
{
    struct stat st;
    return !root_stat(s->root, path, &st) && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

static void add_from_path(struct search *s)
{
    static const char *const names[] = { "python3", "python" };
    const char *path = env(s, "PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    s->how = "PATH";
    for (size_t k = 0; k < ARRAY_LEN(names); k++)
        for (const char *p = path; *p; p += *p == ':') {
            size_t n = strcspn(p, ":");
            const char *exe = arena_printf(s->a, "%.*s/%s", (int)n, p, names[k]);
            if (*exe == '/' && is_executable(s, exe) && add_exe(s, exe))
                return;
            p += n;
        }
}

static void add_from_here(struct search *s)
{
    static const char *const names[] = { "venv", ".venv" };
    char cwd[PATH_MAX];
    if (!s->root->live || fault_hit() || !getcwd(cwd, sizeof(cwd)))
        return;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        add_prefix(s, path_join(s->a, cwd, names[i]), arena_printf(s->a, "./%s", names[i]));
}

/* Directories in `dir` whose name has `part` in it. */
static void add_inside(struct search *s, const char *dir, const char *part)
{
    char **names;
    size_t n;
    if (root_list(s->root, s->a, dir, &names, &n))
        return;
    for (size_t i = 0; i < n; i++)
        if (strstr(names[i], part))
            add_prefix(s, path_join(s->a, dir, names[i]), "a common path in containers");
}

/* Nobody activated anything in a captured tree: these are where container images keep their Python. */
static void add_usual_places(struct search *s)
{
    static const char *const places[] = { "/venv", "/.venv", "/workspace/venv", "/workspace/.venv",
                                          "/app/venv" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        add_prefix(s, places[i], "a common path in containers");
    add_inside(s, "/opt", "venv");
    add_inside(s, "/opt", "conda");
    add_inside(s, "/opt/conda/envs", "");
}

static void search_all(struct search *s)
{
    const char *venv = env(s, "VIRTUAL_ENV"), *conda = env(s, "CONDA_PREFIX");
    if (venv)
        add_prefix(s, venv, "VIRTUAL_ENV");
    add_from_here(s);
    if (conda)
        add_prefix(s, conda, "CONDA_PREFIX");
    add_from_path(s);
    if (!s->root->live)
        add_usual_places(s);
}

bool python_is_torch(const struct root *r, struct arena *a, const char *dir)
{
    static const char *const marks[] = { "version.py", "__init__.py", "lib" };
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (root_exists(r, path_join(a, dir, marks[i])))
            return true;
    return false;
}

/* What the user gave: a prefix, a site or torch itself. */
static void add_given(struct search *s, const char *dir)
{
    const char *site = NULL;
    if (!strcmp(str_file_name(dir), "torch") && python_is_torch(s->root, s->a, dir))
        site = path_parent(s->a, dir);
    else if (python_is_torch(s->root, s->a, path_join(s->a, dir, "torch")))
        site = dir;
    if (!site) {
        add_prefix(s, dir, "--torch");
        return;
    }
    /* <prefix>/lib/python3.11/site-packages */
    const char *prefix = path_parent(s->a, path_parent(s->a, path_parent(s->a, site)));
    struct python p = { .root = s->root, .how = "--torch", .exe = find_exe(s, prefix) };
    add_site(s, &p, site);
    add_python(s, p);
}

/* The command's own Python comes first. In a captured tree the user has said where to look. */
static void add_command(struct search *s, const char *const *argv, const struct root *live)
{
    struct command_python found;
    char cwd[PATH_MAX];
    bool here = !fault_hit() && getcwd(cwd, sizeof(cwd));
    command_python(live, s->a, argv, s->f->env, here ? arena_strdup(s->a, cwd) : NULL, &found);
    s->f->command = (struct command_facts){ .given = true,
                                            .sure = found.sure == COMMAND_SURE,
                                            .python = found.exe,
                                            .how = found.how,
                                            .argv = found.argv };
    if (found.exe) {
        s->root = live;
        s->how = found.how;
        s->guess = !s->f->command.sure;
        if (!add_exe(s, found.exe)) /* a pyenv shim that defers to the next on PATH, or no Python at all */
            s->f->command = (struct command_facts){
                .given = true, .how = arena_printf(s->a, "cairn cannot tell what %s expands to", found.exe)
            };
    }
    s->root = &s->f->root;
    s->guess = s->f->root.live;
}

int pythons_find(struct facts *f, const struct facts_options *o, const struct root *live, struct pythons *out,
                 struct cairn_error *err)
{
    struct search s = { .f = f, .a = &f->arena, .root = o->torch_dir ? live : &f->root };
    if (!o->torch_dir) {
        if (o->command)
            add_command(&s, o->command, live);
        search_all(&s);
        *out = s.found;
        return 0;
    }
    const char *dir = root_resolve_dir(live, s.a, o->torch_dir);
    if (!dir)
        return cairn_fail(err, CAIRN_EUSAGE, "--torch %s: no such directory", o->torch_dir);
    add_given(&s, dir);
    *out = s.found;
    return 0;
}
