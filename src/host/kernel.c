/* SPDX-License-Identifier: Apache-2.0 */
#include "host/kernel.h"

#include "os/fault.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct text read_text(struct facts *f, const char *path)
{
    return text_read(&f->root, &f->arena, path);
}

static void read_version(struct facts *f)
{
    struct host_facts *h = &f->host;
    h->kernel = read_text(f, "/proc/sys/kernel/osrelease");
    if (!h->kernel.s) {
        struct text v = read_text(f, "/proc/version"); /* "Linux version 6.17.0-12-generic (…" */
        const char *mark = "Linux version ";
        if (v.s && str_starts(v.s, mark)) {
            const char *at = v.s + strlen(mark);
            h->kernel = (struct text){ arena_strndup(&f->arena, at, strcspn(at, " ")), v.from };
        }
    }
    if (h->kernel.s && !version_parse(h->kernel.s, &h->kernel_version))
        problems_add(&f->problems, &f->arena, "%s: \"%.40s\" is not a kernel version", h->kernel.from,
                     h->kernel.s);
}

/* NAME=value or NAME="value" of a shell-like file. */
static struct text read_assignment(struct arena *a, struct text file, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = file.s; line && *line; line = str_next_line(line)) {
        if (strncmp(line, name, n) || line[n] != '=')
            continue;
        const char *v = line + n + 1;
        bool quoted = *v == '"' || *v == '\'';
        char end[] = { quoted ? *v : '\n', '\r', '\n', '\0' };
        v += quoted;
        return (struct text){ arena_strndup(a, v, strcspn(v, end)), file.from };
    }
    return (struct text){ 0 };
}

static void read_os(struct facts *f)
{
    struct text file = read_text(f, "/etc/os-release");
    if (!file.s)
        file = read_text(f, "/usr/lib/os-release");
    f->host.os_id = read_assignment(&f->arena, file, "ID");
    f->host.os_like = read_assignment(&f->arena, file, "ID_LIKE");
    f->host.os_name = read_assignment(&f->arena, file, "PRETTY_NAME");
    f->host.grub_defaults = root_exists(&f->root, "/etc/default/grub");
    f->host.boot_entries = root_exists(&f->root, "/boot/loader/entries");
    f->host.boot_cmdline = root_exists(&f->root, "/etc/kernel/cmdline");
    f->host.ostree = root_exists(&f->root, "/run/ostree-booted");
}

const struct module_param *host_param(const struct host_facts *h, const char *module, const char *name)
{
    for (size_t i = 0; i < h->n_params; i++)
        if (!strcmp(h->params[i].module, module) && !strcmp(h->params[i].name, name))
            return &h->params[i];
    return NULL;
}

/* "module.name=value" on the command line; the last one wins, as in the kernel. */
static const char *cmdline_value(struct arena *a, const char *cmdline, const char *key)
{
    const char *found = NULL;
    size_t n = strlen(key);
    for (const char *at = cmdline; (at = strstr(at, key)) != NULL; at += n)
        if ((at == cmdline || at[-1] == ' ') && at[n] == '=')
            found = arena_strndup(a, at + n + 1, strcspn(at + n + 1, " \n"));
    return found;
}

/* /sys/module has the live values; parameters that are not exported there come from the command line. True if
 * the module is loaded. */
static bool read_module(struct facts *f, const char *module, const char *const *names)
{
    struct arena *a = &f->arena;
    bool loaded = root_exists(&f->root, arena_printf(a, "/sys/module/%s", module));
    for (; *names; names++) {
        struct text v = { 0 };
        if (loaded)
            v = read_text(f, arena_printf(a, "/sys/module/%s/parameters/%s", module, *names));
        if (!v.s && f->host.cmdline.s) {
            v.s = cmdline_value(a, f->host.cmdline.s, arena_printf(a, "%s.%s", module, *names));
            v.from = "/proc/cmdline";
        }
        if (v.s)
            *ARENA_PUSH(a, f->host.params, f->host.n_params) =
                (struct module_param){ module, *names, v.s, v.from };
    }
    return loaded;
}

static void read_params(struct facts *f)
{
    static const char *const amdgpu[] = { "gttsize",   "cwsr_enable",   "no_system_mem_limit",
                                          "vramlimit", "vis_vramlimit", NULL };
    static const char *const ttm[] = { "pages_limit", "page_pool_size", NULL };
    f->host.cmdline = read_text(f, "/proc/cmdline");
    bool loaded = read_module(f, "amdgpu", amdgpu);
    read_module(f, "ttm", ttm);
    read_module(f, "amdttm", ttm); /* the copy in AMD's DKMS driver */
    f->host.amdgpu_loaded = loaded ? TRI_YES : root_exists(&f->root, "/sys/module") ? TRI_NO : TRI_UNKNOWN;
    f->host.amdgpu_version = read_text(f, "/sys/module/amdgpu/version");
}

/* "always [madvise] never" */
static void read_thp(struct facts *f)
{
    struct text t = read_text(f, "/sys/kernel/mm/transparent_hugepage/enabled");
    const char *open = t.s ? strchr(t.s, '[') : NULL;
    const char *close = open ? strchr(open, ']') : NULL;
    if (close)
        f->host.thp = (struct text){ arena_strndup(&f->arena, open + 1, (size_t)(close - open) - 1), t.from };
}

static void read_container(struct facts *f)
{
    static const struct {
        const char *path, *name;
    } marks[] = { { "/run/.containerenv", "podman" },
                  { "/.dockerenv", "docker" },
                  { "/run/.toolboxenv", "toolbox" } };
    struct host_facts *h = &f->host;
    struct text v = read_text(f, "/proc/version");
    if (!v.s)
        v = h->kernel;
    h->wsl = v.s && (strcasestr(v.s, "microsoft") || strcasestr(v.s, "wsl2"));
    h->container = read_text(f, "/run/systemd/container"); /* systemd writes "lxc", "podman", … */
    for (size_t i = 0; i < ARRAY_LEN(marks) && !h->container.s; i++)
        if (root_exists(&f->root, marks[i].path))
            h->container = (struct text){ marks[i].name, marks[i].path };
    if (h->container.s)
        return;
    /* NUL-separated; readable only by root, which most containers run as. */
    size_t len;
    const char *env = root_read(&f->root, &f->arena, "/proc/1/environ", &len);
    for (size_t at = 0; env && at < len; at += strlen(env + at) + 1)
        if (str_starts(env + at, "container=") && env[at + 10])
            h->container = (struct text){ env + at + 10, "/proc/1/environ" };
}

/* A line of /etc/group, "render:x:110:alice,bob": the length of its name, and its number. False if it is
 * none. */
static bool group_read(const char *line, size_t *name_len, int64_t *gid)
{
    *name_len = strcspn(line, ":\n");
    const char *second = line + *name_len;
    second += *second == ':' ? 1 + strcspn(second + 1, ":\n") : 0;
    if (*second != ':' || second[1] < '0' || second[1] > '9')
        return false;
    *gid = strtol(second + 1, NULL, 10);
    return true;
}

static int64_t group_find(const char *text, const char *name)
{
    size_t n;
    int64_t gid;
    for (const char *line = text; line; line = str_next_line(line))
        if (group_read(line, &n, &gid) && n == strlen(name) && !strncmp(line, name, n))
            return gid;
    return -1;
}

static const char *group_name(struct arena *a, const char *text, int64_t wanted)
{
    size_t n;
    int64_t gid;
    for (const char *line = text; line; line = str_next_line(line))
        if (group_read(line, &n, &gid) && gid == wanted)
            return arena_strndup(a, line, n);
    return NULL;
}

static void read_user(struct facts *f)
{
    struct host_facts *h = &f->host;
    h->render_gid = group_find(root_read(&f->root, &f->arena, "/etc/group", NULL), "render");
    h->user = f->root.live ? facts_env(f, "USER") : NULL;
}

/* Would the mode bits alone grant access? If not, and access() succeeds, an ACL does. */
static bool mode_allows(const struct stat *st)
{
    if (geteuid() == 0)
        return true;
    if (st->st_uid == geteuid())
        return (st->st_mode & 0600) == 0600;
    if (group_member(st->st_gid))
        return (st->st_mode & 0060) == 0060;
    return (st->st_mode & 0006) == 0006;
}

struct dev_node kernel_dev_node(struct facts *f, const char *path)
{
    struct dev_node d = { .path = path, .gid = -1 };
    if (!root_exists(&f->root, "/dev"))
        return d;
    struct stat st;
    if (root_stat(&f->root, path, &st)) {
        d.access = errno == ENOENT ? NODE_MISSING : NODE_DENIED;
        return d;
    }
    d.gid = st.st_gid;
    d.mode = st.st_mode & 07777;
    d.group = group_name(&f->arena, root_read(&f->root, &f->arena, "/etc/group", NULL), d.gid);
    /* In a capture the owner and mode of the copied file say nothing about this user. */
    if (!f->root.live)
        return d;
    if (fault_hit() || faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS))
        d.access = NODE_DENIED;
    else
        d.access = mode_allows(&st) ? NODE_OPEN : NODE_OPEN_BY_ACL;
    return d;
}

void kernel_read(struct facts *f)
{
    if (!root_exists(&f->root, "/sys"))
        problems_add(&f->problems, &f->arena,
                     "%s%ssys does not exist: cairn can tell nothing about this machine's GPUs", f->root.path,
                     str_ends(f->root.path, "/") ? "" : "/");
    read_version(f);
    read_os(f);
    read_params(f);
    read_thp(f);
    read_container(f);
    read_user(f);
    f->host.kfd_node = kernel_dev_node(f, "/dev/kfd");
}
