/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command_work.h"

#include "base/str.h"
#include <string.h>

/* What `uv run` and its like were given. */
struct given {
    const char *const *argv;
    size_t end; /* where the wrapped command begins */
    const char *with_value;
    const char *const *command;
};

/* The value of one of these options; NULL: it was not given. */
static const char *option(const struct given *g, const char *names)
{
    for (size_t i = 1; i < g->end; i++) {
        const char *o = g->argv[i], *equals = strchr(o, '=');
        size_t n = equals ? (size_t)(equals - o) : strlen(o);
        char name[32];
        if (*o != '-' || n >= sizeof(name))
            continue;
        memcpy(name, o, n);
        name[n] = '\0';
        if (walk_option_is(names, name))
            return equals ? equals + 1 : i + 1 < g->end ? g->argv[i + 1] : "";
        if (!equals && walk_option_is(g->with_value, o))
            i++;
    }
    return NULL;
}

/* The nearest folder, from this one up, that has the file; NULL: none has. */
static const char *folder_with(struct walk *w, const char *dir, const char *file)
{
    for (; dir; dir = path_parent(w->a, dir)) {
        if (root_exists(w->root, path_join(w->a, dir, file)))
            return dir;
        if (!strcmp(dir, "/"))
            break;
    }
    return NULL;
}

static bool is_environment(struct walk *w, const char *prefix)
{
    return prefix && walk_prefix_exe(w, prefix);
}

static const char *active(struct walk *w)
{
    const char *venv = walk_get(w, "VIRTUAL_ENV");
    return venv && *venv ? venv : NULL;
}

/* "<dir>/.venv", if it exists. */
static const char *venv_in(struct walk *w, const char *dir)
{
    const char *prefix = dir ? path_join(w->a, dir, ".venv") : NULL;
    return is_environment(w, prefix) ? prefix : NULL;
}

static const char *home_path(struct walk *w, const char *relative)
{
    const char *home = walk_get(w, "HOME");
    return home && *home == '/' ? path_join(w->a, home, relative) : NULL;
}

/* --- uv
 * ------------------------------------------------------------------------------------------------------- */

/* https://docs.astral.sh/uv/concepts/projects/config/, "Project environment path". */
static const char *uv_prefix(struct walk *w, const struct given *g)
{
    const char *dir = option(g, "--directory"), *project = option(g, "--project");
    if (dir)
        w->cwd = walk_path(w, dir);
    const char *from = project ? walk_path(w, project) : w->cwd;
    const char *top = option(g, "--no-project") ? NULL : folder_with(w, from, "pyproject.toml");
    const char *named = walk_get(w, "UV_PROJECT_ENVIRONMENT");
    if (active(w) && (option(g, "--active") || !top))
        return active(w);
    if (!top)
        return venv_in(w, folder_with(w, from, ".venv"));
    if (named && *named)
        return *named == '/' ? named : path_join(w->a, top, named);
    return path_join(w->a, top, ".venv");
}

/* A script that lists what it needs gets an environment of its own. */
static bool is_self_contained(struct walk *w, const struct given *g)
{
    const char *path = g->command[0] ? walk_path(w, g->command[0]) : NULL;
    const char *text = path && str_ends(path, ".py") ? root_read(w->root, w->a, path, NULL) : NULL;
    return option(g, "--isolated -s --script") || (text && strstr(text, "# /// script"));
}

/* --- conda
 * ---------------------------------------------------------------------------------------------------- */

static bool is_conda_root(struct walk *w, const char *dir)
{
    return dir && root_is_dir(w->root, path_join(w->a, dir, "conda-meta")) && !strstr(dir, "/envs/");
}

const char *environments_conda_root(struct walk *w)
{
    static const char *const at_home[] = { "miniconda3", "anaconda3", "miniforge3", "mambaforge",
                                           "micromamba", ".conda",    "conda",      ".local/share/mamba" };
    static const char *const elsewhere[] = { "/opt/conda", "/opt/miniconda3", "/opt/anaconda3",
                                             "/opt/miniforge3" };
    static const char *const variables[] = { "MAMBA_ROOT_PREFIX", "CONDA_ROOT", "CONDA_PREFIX" };
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *dir = walk_get(w, variables[i]), *envs = dir ? strstr(dir, "/envs/") : NULL;
        dir = envs ? arena_strndup(w->a, dir, (size_t)(envs - dir)) : dir;
        if (is_conda_root(w, dir))
            return dir;
    }
    const char *exe = walk_get(w, "CONDA_EXE"), *program = exe && *exe ? exe : walk_program(w, "conda");
    const char *dir = program ? path_parent(w->a, path_parent(w->a, program)) : NULL;
    if (is_conda_root(w, dir))
        return dir;
    for (size_t i = 0; i < ARRAY_LEN(at_home); i++)
        if (is_conda_root(w, dir = home_path(w, at_home[i])))
            return dir;
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        if (is_conda_root(w, elsewhere[i]))
            return elsewhere[i];
    return NULL;
}

/* The entry of a list of folders that has the environment; NULL: none has. */
static const char *conda_in_list(struct walk *w, const char *list, const char *name)
{
    for (const char *p = list; p && *p; p += *p == ':') {
        size_t n = strcspn(p, ":");
        const char *prefix = arena_printf(w->a, "%.*s/%s", (int)n, p, name);
        if (*p == '/' && is_environment(w, prefix))
            return prefix;
        p += n;
    }
    return NULL;
}

/* conda keeps a list of every environment that it made. */
static const char *conda_listed(struct walk *w, const char *name)
{
    const char *path = home_path(w, ".conda/environments.txt");
    const char *text = path ? root_read(w->root, w->a, path, NULL) : NULL;
    for (const char *line = text; line; line = str_next_line(line)) {
        const char *prefix = arena_strndup(w->a, line, strcspn(line, "\r\n"));
        if (!strcmp(str_file_name(prefix), name) && is_environment(w, prefix))
            return prefix;
    }
    return NULL;
}

const char *environments_conda(struct walk *w, const char *name)
{
    if (strchr(name, '/') || !strcmp(name, "."))
        return walk_path(w, name);
    const char *root = environments_conda_root(w), *found;
    if (!strcmp(name, "base"))
        return root;
    if ((found = conda_in_list(w, walk_get(w, "CONDA_ENVS_PATH"), name)) ||
        (found = conda_in_list(w, walk_get(w, "CONDA_ENVS_DIRS"), name)) ||
        (root && (found = conda_in_list(w, path_join(w->a, root, "envs"), name))) ||
        (found = conda_in_list(w, home_path(w, ".conda/envs"), name)))
        return found;
    return conda_listed(w, name);
}

static const char *conda_prefix(struct walk *w, const struct given *g)
{
    const char *name = option(g, "-n --name"), *prefix = option(g, "-p --prefix"), *dir = option(g, "--cwd");
    const char *current = walk_get(w, "CONDA_PREFIX");
    if (dir)
        w->cwd = walk_path(w, dir);
    if (prefix)
        return walk_path(w, prefix);
    if (name)
        return environments_conda(w, name);
    return current && *current ? current : environments_conda_root(w);
}

/* --- projects
 * ------------------------------------------------------------------------------------------------- */

/* The name of a project out of its pyproject.toml: the first `name = "…"` of its tables. */
static const char *project_name(struct walk *w, const char *top)
{
    const char *text = root_read(w->root, w->a, path_join(w->a, top, "pyproject.toml"), NULL);
    bool inside = false;
    for (const char *line = text; line; line = str_next_line(line)) {
        line += strspn(line, " \t");
        if (*line == '[')
            inside = str_starts(line, "[project]") || str_starts(line, "[tool.poetry]");
        if (!inside || !str_starts(line, "name"))
            continue;
        const char *p = line + strlen("name");
        p += strspn(p, " \t");
        if (*p++ != '=')
            continue;
        p += strspn(p, " \t");
        if (*p == '"' || *p == '\'')
            return arena_strndup(w->a, p + 1, strcspn(p + 1, *p == '"' ? "\"\n" : "'\n"));
    }
    return NULL;
}

/* "wan-train-Ab3xYz9Q-py3.11" belongs to the project wan-train; a second one makes it unclear which. */
static bool belongs_to(const char *entry, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++) {
        char a = entry[i], b = name[i];
        a = a == '_' || a == ' ' ? '-' : a >= 'A' && a <= 'Z' ? (char)(a + 'a' - 'A') : a;
        b = b == '_' || b == ' ' ? '-' : b >= 'A' && b <= 'Z' ? (char)(b + 'a' - 'A') : b;
        if (a != b)
            return false;
    }
    const char *hash = entry + n;
    return *hash == '-' && strlen(hash) >= 9 && (!hash[9] || hash[9] == '-');
}

static const char *by_name(struct walk *w, const char *dir, const char *name)
{
    char **names;
    size_t n;
    const char *found = NULL;
    if (!dir || !name || root_list(w->root, w->a, dir, &names, &n))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (!belongs_to(names[i], name) || !is_environment(w, path_join(w->a, dir, names[i])))
            continue;
        w->maybe |= found != NULL;
        found = path_join(w->a, dir, names[i]);
    }
    w->maybe |= found != NULL; /* another project may have the same name */
    return found;
}

/* https://python-poetry.org/docs/configuration/, virtualenvs.path and cache-dir. */
static const char *poetry_prefix(struct walk *w, const struct given *g)
{
    const char *dir = option(g, "-C --directory -P --project");
    const char *top = folder_with(w, dir ? walk_path(w, dir) : w->cwd, "pyproject.toml");
    const char *own = venv_in(w, top), *path = walk_get(w, "POETRY_VIRTUALENVS_PATH");
    const char *cache = walk_get(w, "POETRY_CACHE_DIR"), *xdg = walk_get(w, "XDG_CACHE_HOME");
    if (option(g, "-C --directory"))
        w->cwd = walk_path(w, option(g, "-C --directory"));
    if (active(w))
        return active(w);
    if (own || !top)
        return own;
    if (!cache)
        cache = xdg && *xdg ? path_join(w->a, xdg, "pypoetry") : home_path(w, ".cache/pypoetry");
    if (!path && cache)
        path = path_join(w->a, cache, "virtualenvs");
    return by_name(w, path, project_name(w, top));
}

/* https://pipenv.pypa.io/en/latest/virtualenv.html; the name is that of the folder. */
static const char *pipenv_prefix(struct walk *w, const struct given *g)
{
    (void)g;
    const char *top = folder_with(w, w->cwd, "Pipfile"), *work = walk_get(w, "WORKON_HOME");
    if (active(w))
        return active(w);
    if (venv_in(w, top) || !top)
        return venv_in(w, top);
    return by_name(w, work && *work ? work : home_path(w, ".local/share/virtualenvs"), str_file_name(top));
}

/* pdm writes down which interpreter a project has. */
static const char *pdm_prefix(struct walk *w, const struct given *g)
{
    const char *dir = option(g, "-p --project");
    const char *top = folder_with(w, dir ? walk_path(w, dir) : w->cwd, "pyproject.toml");
    const char *python = top ? root_read(w->root, w->a, path_join(w->a, top, ".pdm-python"), NULL) : NULL;
    if (python && *python == '/')
        return path_parent(w->a, path_parent(w->a, python));
    return active(w) ? active(w) : venv_in(w, top);
}

static const char *pixi_prefix(struct walk *w, const struct given *g)
{
    const char *name = option(g, "-e --environment"), *manifest = option(g, "--manifest-path");
    const char *from = manifest ? walk_path(w, manifest) : w->cwd;
    const char *top = folder_with(w, from, ".pixi");
    return top ? arena_printf(w->a, "%s/.pixi/envs/%s", top, name ? name : "default") : NULL;
}

/* hatch, rye: an environment in the project, or one in an unknown place of their own. */
static const char *project_prefix(struct walk *w, const struct given *g)
{
    (void)g;
    return venv_in(w, folder_with(w, w->cwd, "pyproject.toml"));
}

#define UV_VALUES                                                                                          \
    "--with --with-editable --with-requirements --extra --no-extra --group --no-group --only-group "       \
    "--package -p --python --env-file --index --index-url -i --default-index --extra-index-url -f "        \
    "--find-links --cache-dir --config-file --project --directory --refresh-package -P --upgrade-package " \
    "--reinstall-package --resolution --prerelease --exclude-newer --link-mode -C --config-setting "       \
    "--keyring-provider --color --index-strategy --no-binary-package --no-build-package "                  \
    "--python-platform --allow-insecure-host"

/* Programs that run a command in an environment. */
static const struct runner {
    const char *names;
    const char *with_value; /* options whose value is a separate word */
    const char *(*prefix)(struct walk *w, const struct given *g);
} runners[] = {
    { "uv", UV_VALUES, uv_prefix },
    { "conda mamba micromamba", "-n --name -p --prefix --cwd -r --root-prefix -e --env -a --attach",
      conda_prefix },
    { "poetry", "-C --directory -P --project", poetry_prefix },
    { "pipenv", "--python --pypi-mirror", pipenv_prefix },
    { "pdm", "-p --project -c --config --venv -s --site-packages", pdm_prefix },
    { "pixi", "-e --environment --manifest-path", pixi_prefix },
    { "hatch", "-e --env -p --project", project_prefix },
    { "rye", "", project_prefix },
};

static const struct runner *runner_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(runners); i++)
        if (str_list_has(runners[i].names, ' ', name))
            return &runners[i];
    return NULL;
}

static bool run_inside(struct walk *w, const struct runner *r, const struct given *g, const char *name)
{
    bool is_uv = r->prefix == uv_prefix;
    if (is_uv && is_self_contained(w, g))
        return walk_lost(w, "uv creates a separate environment for it");
    const char *prefix = r->prefix(w, g);
    if (!prefix || !walk_activate(w, prefix, arena_printf(w->a, "%s runs it in %s", name, prefix)))
        return walk_lost(w, "the environment in which %s runs it was not found", name);
    w->maybe |= is_uv && option(g, "--with --with-requirements -p --python") != NULL;
    const char *command = g->command[0];
    if (!command)
        return walk_lost(w, "%s runs no command", name);
    if (!is_uv || !(str_ends(command, ".py") || option(g, "-m --module")))
        return walk_command(w, g->command);
    walk_found(w, walk_prefix_exe(w, prefix));
    w->out->argv = g->command;
    return true;
}

bool environments_run(struct walk *w, const char *const *argv, bool *is_one)
{
    const char *name = str_file_name(argv[0]);
    const struct runner *r = runner_find(name);
    if (!r)
        return false;
    *is_one = true;
    size_t verb = walk_skip_options(argv, 1, r->with_value);
    if (!argv[verb] || strcmp(argv[verb], "run"))
        return walk_lost(w, "%s %s: cannot tell which Python it uses", name, argv[verb] ? argv[verb] : "");
    struct given g = { .argv = argv, .end = walk_skip_options(argv, verb + 1, r->with_value) };
    g.with_value = r->with_value;
    g.command = argv + g.end;
    return run_inside(w, r, &g, name);
}
