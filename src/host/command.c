/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command.h"

#include "os/fault.h"
#include "base/str.h"
#include "host/command_work.h"
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* Programs that start the command given after their options. */
static const struct wrapper {
    const char *name;
    const char *with_value; /* options whose value is a separate word */
    size_t n_words;         /* that come between options and command */
    bool assigns;           /* NAME=value may come there */
    const char *until;      /* the command begins after this word */
    const char *path;       /* the PATH that the command gets */
} wrappers[] = {
    { .name = "env", .with_value = "-u --unset -C --chdir -S --split-string", .assigns = true },
    { .name = "exec", .with_value = "-a" },
    { .name = "command" },
    { .name = "nice", .with_value = "-n --adjustment" },
    { .name = "ionice", .with_value = "-c --class -n --classdata" },
    { .name = "chrt", .with_value = "-T -P -D", .n_words = 1 },
    { .name = "nohup" },
    { .name = "setsid" },
    { .name = "time", .with_value = "-f --format -o --output" },
    { .name = "timeout", .with_value = "-k --kill-after -s --signal", .n_words = 1 },
    { .name = "stdbuf", .with_value = "-i -o -e --input --output --error" },
    { .name = "unbuffer" },
    { .name = "taskset", .n_words = 1 },
    { .name = "numactl",
      .with_value = "-i --interleave -p --preferred -P -m --membind -N --cpunodebind -C --physcpubind -w" },
    { .name = "prlimit" },
    { .name = "systemd-inhibit" },
    { .name = "catchsegv" },
    { .name = "xvfb-run",
      .with_value = "-n -s -e -f -p -w --server-num --server-args --error-file --auth-file" },
    { .name = "strace", .with_value = "-o -e -s -E -P -I -u -a -O -S -X --output --trace --string-limit" },
    { .name = "mpirun", .with_value = "-n -np -c -N -H -x --host --hostfile -hostfile --np" },
    { .name = "mpiexec", .with_value = "-n -np -c -N -H -x --host --hostfile -hostfile --np" },
    { .name = "gdb", .until = "--args" },
    { .name = "rocgdb", .until = "--args" },
    { .name = "rocprof", .until = "--" },
    { .name = "rocprofv3", .until = "--" },
    { .name = "cairn", .until = "--" },
    { .name = "sudo",
      .with_value = "-u --user -g --group -h --host -p --prompt -r -t -C -D --chdir -R -T",
      .assigns = true,
      .path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
};

/* What they start runs elsewhere, or in an environment that is made for it. */
static const struct {
    const char *names, *why;
    bool away; /* and is no process below this one */
} closed[] = {
    { "docker podman nerdctl distrobox toolbox lxc-attach machinectl", "runs it in a container", true },
    { "apptainer singularity", "runs it in a container", false },
    { "ssh srun kubectl", "runs it elsewhere", true },
    { "systemd-run", "starts it as a service", true },
    { "uvx pipx", "creates a separate environment for it", false },
};

bool command_is_remote(const char *program)
{
    for (size_t i = 0; i < ARRAY_LEN(closed); i++)
        if (closed[i].away && str_list_has(closed[i].names, ' ', str_file_name(program)))
            return true;
    return false;
}

bool walk_spend(const struct walk *w, size_t bytes)
{
    size_t n = 1 + bytes / WALK_STEP_BYTES;
    *w->steps = n < (size_t)*w->steps ? *w->steps - (int)n : 0;
    return *w->steps > 0;
}

const char *walk_read(const struct walk *w, const char *path)
{
    size_t n = 0;
    const char *text = *w->steps > 0 ? root_read(w->root, w->a, path, &n) : NULL;
    return text && walk_spend(w, n) ? text : NULL;
}

const struct walk_var *walk_var(const struct walk *w, const char *name)
{
    const struct walk_var *v = w->vars;
    while (v && strcmp(v->name, name))
        v = v->next;
    return v;
}

const char *walk_get(const struct walk *w, const char *name)
{
    const struct walk_var *v = walk_var(w, name);
    return v ? v->value : str_env(w->env, name);
}

void walk_set(struct walk *w, const char *name, const char *value, bool unknown)
{
    if (!walk_spend(w, 0))
        return;
    struct walk_var *v = ARENA_NEW(w->a, struct walk_var, 1);
    *v = (struct walk_var){ .name = name, .value = value, .unknown = unknown, .next = w->vars };
    w->vars = v;
}

const char *walk_path(const struct walk *w, const char *path)
{
    if (*path != '/' && !w->cwd)
        return NULL;
    char *out = *path == '/' ? arena_strdup(w->a, path) : path_join(w->a, w->cwd, path), *to = out;
    for (const char *from = out; *from;) {
        from += strspn(from, "/");
        size_t n = strcspn(from, "/");
        if (n == 2 && !strncmp(from, "..", 2)) {
            while (to > out && *--to != '/')
                ;
        } else if (n && !(n == 1 && *from == '.')) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    if (to == out)
        *to++ = '/';
    *to = '\0';
    return out;
}

static bool is_program(const struct walk *w, const char *path)
{
    struct stat st;
    if (root_stat(w->root, path, &st)) /* a link may lead out of a captured tree */
        return !w->root->live && root_link(w->root, w->a, path);
    return S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

const char *walk_program(const struct walk *w, const char *name)
{
    if (strchr(name, '/')) {
        const char *path = walk_path(w, name);
        return path && is_program(w, path) ? path : NULL;
    }
    const char *list = walk_get(w, "PATH");
    if (list && !walk_spend(w, strlen(list)))
        return NULL;
    for (const char *p = list ? list : "/bin:/usr/bin"; *name; p++) {
        size_t n = strcspn(p, ":");
        const char *dir = walk_path(w, n ? arena_strndup(w->a, p, n) : ".");
        const char *path = dir ? path_join(w->a, dir, name) : NULL;
        if (path && is_program(w, path))
            return path;
        p += n;
        if (!*p)
            break;
    }
    return NULL;
}

const char *walk_prefix_exe(const struct walk *w, const char *prefix)
{
    static const char *const names[] = { "python", "python3" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *exe = arena_printf(w->a, "%s/bin/%s", prefix, names[i]);
        if (is_program(w, exe) || root_link(w->root, w->a, exe))
            return exe;
    }
    return NULL;
}

bool walk_activate(struct walk *w, const char *prefix, const char *how)
{
    prefix = walk_path(w, prefix);
    if (!prefix || !walk_prefix_exe(w, prefix))
        return false;
    const char *path = walk_get(w, "PATH");
    walk_set(w, "PATH", arena_printf(w->a, "%s/bin:%s", prefix, path ? path : "/usr/bin:/bin"), false);
    bool conda = root_is_dir(w->root, path_join(w->a, prefix, "conda-meta"));
    walk_set(w, conda ? "CONDA_PREFIX" : "VIRTUAL_ENV", prefix, false);
    w->prefix = prefix;
    w->prefix_how = how;
    return true;
}

bool walk_found(struct walk *w, const char *exe)
{
    bool activated = w->prefix && str_starts(exe, w->prefix) && exe[strlen(w->prefix)] == '/';
    *w->out = (struct command_python){
        .sure = w->maybe ? COMMAND_GUESS : COMMAND_SURE,
        .exe = exe,
        .how = activated   ? w->prefix_how
               : w->script ? arena_printf(w->a, "%s starts it", w->script)
                           : "the command starts it",
    };
    return true;
}

bool walk_lost(struct walk *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *w->out = (struct command_python){ .how = arena_vprintf(w->a, fmt, ap) };
    va_end(ap);
    return false;
}

bool walk_is_python_name(const char *name)
{
    if (!str_starts(name, "python") && !str_starts(name, "pypy"))
        return false;
    const char *rest = name + (str_starts(name, "python") ? strlen("python") : strlen("pypy"));
    rest += strspn(rest, "0123456789.");
    return !*rest || !strcmp(rest, "t") || !strcmp(rest, "d") || !strcmp(rest, "w");
}

bool walk_option_is(const char *list, const char *option)
{
    return list && str_list_has(list, ' ', option);
}

size_t walk_skip_options(const char *const *argv, size_t at, const char *with_value)
{
    for (; argv[at] && argv[at][0] == '-' && argv[at][1]; at++) {
        if (!strcmp(argv[at], "--"))
            return at + 1;
        if (walk_option_is(with_value, argv[at]) && argv[at + 1])
            at++;
    }
    return at;
}

static const char *const *split_words(struct walk *w, const char *text, const char *const *more)
{
    const char **out = NULL;
    size_t n = 0;
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        size_t len = strcspn(text, " \t");
        *ARENA_PUSH(w->a, out, n) = arena_strndup(w->a, text, len);
        text += len;
    }
    for (; more && *more; more++)
        *ARENA_PUSH(w->a, out, n) = *more;
    *ARENA_PUSH(w->a, out, n) = NULL;
    return out;
}

/* The options of env that change what follows. */
static const char *const *env_options(struct walk *w, const char *const *argv, size_t end)
{
    for (size_t i = 1; i < end; i++) {
        const char *o = argv[i], *next = argv[i + 1];
        if (!strcmp(o, "-") || !strcmp(o, "-i") || !strcmp(o, "--ignore-environment")) {
            w->env = NULL;
            w->vars = NULL;
        } else if ((!strcmp(o, "-u") || !strcmp(o, "--unset")) && next)
            walk_set(w, argv[++i], NULL, false);
        else if (str_starts(o, "--unset="))
            walk_set(w, o + strlen("--unset="), NULL, false);
        else if ((!strcmp(o, "-C") || !strcmp(o, "--chdir")) && next)
            w->cwd = walk_path(w, argv[++i]);
        else if (str_starts(o, "--chdir="))
            w->cwd = walk_path(w, o + strlen("--chdir="));
        else if ((!strcmp(o, "-S") || !strcmp(o, "--split-string")) && next)
            return split_words(w, next, argv + i + 2);
        else if (str_starts(o, "-S"))
            return split_words(w, o + 2, argv + i + 1);
    }
    return argv + end;
}

static const char *const *take_assignments(struct walk *w, const char *const *argv)
{
    for (; *argv && **argv != '=' && strchr(*argv, '='); argv++) {
        size_t n = strcspn(*argv, "=");
        walk_set(w, arena_strndup(w->a, *argv, n), *argv + n + 1, false);
    }
    return argv;
}

static bool follow_wrapper(struct walk *w, const struct wrapper *row, const char *const *argv)
{
    const char *const *rest = argv;
    size_t at = walk_skip_options(argv, 1, row->with_value);
    if (row->until) {
        while (*rest && strcmp(*rest, row->until))
            rest++;
        rest += *rest != NULL;
    } else if (!strcmp(row->name, "env")) {
        if (argv[at] && !strcmp(argv[at], "-")) /* as -i */
            at = walk_skip_options(argv, at + 1, row->with_value);
        rest = env_options(w, argv, at);
    } else {
        for (size_t i = 0; i < row->n_words && argv[at]; i++)
            at++;
        rest = argv + at;
    }
    if (row->path)
        walk_set(w, "PATH", row->path, false);
    if (row->assigns)
        rest = take_assignments(w, rest);
    return *rest ? walk_command(w, rest) : walk_lost(w, "%s starts no command", argv[0]);
}

/* The words of the command itself, where a script or a runner led to it. */
static bool keep_argv(struct walk *w, const char *const *argv, bool found)
{
    const char **out = NULL;
    size_t n = 0;
    for (; found && *argv; argv++) {
        const char *path = str_ends(*argv, ".py") ? walk_path(w, *argv) : NULL;
        *ARENA_PUSH(w->a, out, n) = path ? path : *argv;
    }
    if (found) {
        *ARENA_PUSH(w->a, out, n) = NULL;
        w->out->argv = out;
    }
    return found;
}

/* --- scripts
 * -------------------------------------------------------------------------------------------------- */

static bool is_shell_name(const char *name)
{
    return str_list_has("sh bash dash zsh ksh ash", ' ', name);
}

/* Where the path of a Python is too long for a first line, or relative to the script, pip and uv write a
 * script that is one of sh and of Python: the shell reads no further than this line. NULL: it is not that. */
static const char *exec_line(struct walk *w, const char *text)
{
    const char *line = str_next_line(text);
    return line && str_starts(line, "'''exec' ") ? arena_strndup(w->a, line, strcspn(line, "\n")) : NULL;
}

static bool follow_shell_file(struct walk *w, const char *path, const char *text, const char *const *args)
{
    const char *line = exec_line(w, text);
    return script_follow(w, line ? line : text, path, args);
}

/* What the first line names starts the script: a Python, or a shell that starts one. */
static bool follow_script(struct walk *w, const char *path, const char *const *argv)
{
    const char *text = walk_read(w, path);
    if (!text || text[0] != '#' || text[1] != '!')
        return walk_lost(w, "%s is a program; cairn cannot tell which Python it starts", path);
    const char *line = arena_strndup(w->a, text + 2, strcspn(text + 2, "\r\n"));
    const char *const *words = split_words(w, line, NULL);
    if (!words[0])
        return walk_lost(w, "%s names no interpreter", path);
    const char *const *last = words;
    while (*last && !is_shell_name(str_file_name(*last)))
        last++;
    if (*last)
        return follow_shell_file(w, path, text, argv + 1);
    return keep_argv(w, argv, walk_command(w, words));
}

/* `bash [options] FILE [arguments]`, or with -c a text. */
static bool follow_shell(struct walk *w, const char *const *argv)
{
    size_t at = 1;
    bool is_text = false;
    for (; argv[at] && argv[at][0] == '-' && argv[at][1]; at++) {
        bool is_long = argv[at][1] == '-';
        if (walk_option_is("-o -O --rcfile --init-file", argv[at]) && argv[at + 1])
            at++;
        else if (!is_long && strchr(argv[at], 'c'))
            is_text = true;
        else if (!strcmp(argv[at], "--")) {
            at++;
            break;
        }
    }
    if (!argv[at])
        return walk_lost(w, "%s reads its commands from standard input", argv[0]);
    if (is_text)
        return script_follow(w, argv[at], NULL, argv[at + 1] ? argv + at + 2 : argv + at + 1);
    const char *path = walk_path(w, argv[at]);
    const char *text = path ? walk_read(w, path) : NULL;
    return text ? follow_shell_file(w, path, text, argv + at + 1)
                : walk_lost(w, "%s is not readable", argv[at]);
}

/* pyenv's shims select the Python version that pyenv is set to. */
static const char *shim_python(struct walk *w, const char *path)
{
    const char *dir = path_parent(w->a, path);
    return strcmp(str_file_name(dir), "shims") ? NULL : path_join(w->a, dir, "python3");
}

static const struct wrapper *wrapper_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
        if (!strcmp(wrappers[i].name, name))
            return &wrappers[i];
    return NULL;
}

static bool follow(struct walk *w, const char *const *argv)
{
    const char *name = str_file_name(argv[0]);
    const struct wrapper *wrapper = wrapper_find(name);
    bool is_one = false;
    if (wrapper)
        return follow_wrapper(w, wrapper, argv);
    for (size_t i = 0; i < ARRAY_LEN(closed); i++)
        if (str_list_has(closed[i].names, ' ', name))
            return walk_lost(w, "%s %s", name, closed[i].why);
    if (environments_run(w, argv, &is_one) || is_one)
        return w->out->exe != NULL;
    const char *path = walk_program(w, argv[0]);
    if (!path)
        return walk_lost(w, "%s: no such program", argv[0]);
    if (walk_is_python_name(name))
        return keep_argv(w, argv, walk_found(w, path));
    if (is_shell_name(name))
        return follow_shell(w, argv);
    const char *shim = shim_python(w, path);
    return shim ? walk_found(w, shim) : follow_script(w, path, argv);
}

bool walk_command(struct walk *w, const char *const *argv)
{
    if (w->depth >= WALK_DEPTH || !walk_spend(w, 0))
        return walk_lost(w, "it goes through too many scripts");
    w->depth++;
    bool found = follow(w, argv);
    w->depth--;
    return found;
}

void command_python(const struct root *r, struct arena *a, const char *const *argv, const char *const *env,
                    const char *cwd, struct command_python *out)
{
    int steps = WALK_STEPS;
    struct walk w = { .root = r, .a = a, .env = env, .cwd = cwd, .steps = &steps, .out = out };
    *out = (struct command_python){ .how = "there is no command" };
    if (argv && argv[0] && *argv[0])
        walk_command(&w, argv);
}
