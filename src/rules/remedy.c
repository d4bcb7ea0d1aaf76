/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/remedy.h"

#include "base/str.h"
#include "host/memory.h"
#include "rules/check_ctx.h"
#include <string.h>

/* Where a distribution keeps the kernel command line. */
enum boot_tool {
    BOOT_OTHER,
    BOOT_GRUB_FILE,
    BOOT_GRUBBY,
    BOOT_KERNELSTUB,
    BOOT_RPM_OSTREE,
    BOOT_NIXOS,
    BOOT_ENTRIES, /* systemd-boot, one file per kernel */
    BOOT_CMDLINE, /* /etc/kernel/cmdline, from which the entries are generated */
};

#define BACKPORTS "\"$(. /etc/os-release; echo $VERSION_CODENAME)-backports\""
#define INITRAMFS " && sudo update-initramfs -u && sudo reboot"

/* One row per group of distributions that are maintained the same way. */
static const struct distro {
    const char *ids; /* ID of os-release */
    enum boot_tool boot;
    const char *grub_update;
    const char *install;
    const char *newer_kernel, *newer_firmware;
} distros[] = {
    {
        .ids = "debian proxmox",
        .boot = BOOT_GRUB_FILE,
        .grub_update = "sudo update-grub",
        .install = "sudo apt install",
        .newer_kernel =
            "echo deb http://deb.debian.org/debian " BACKPORTS
            " main | sudo tee /etc/apt/sources.list.d/backports.list && sudo apt update && sudo apt install "
            "-t " BACKPORTS " linux-image-amd64 && sudo reboot",
        .newer_firmware = "sudo apt update && sudo apt install firmware-amd-graphics" INITRAMFS,
    },
    {
        .ids = "raspbian devuan kali",
        .boot = BOOT_GRUB_FILE,
        .grub_update = "sudo update-grub",
        .install = "sudo apt install",
        .newer_kernel = "sudo apt update && sudo apt full-upgrade && sudo reboot",
        .newer_firmware = "sudo apt update && sudo apt install firmware-amd-graphics" INITRAMFS,
    },
    /* These have version numbers of their own; the codename is that of the Ubuntu they are based on. */
    {
        .ids = "linuxmint zorin elementary",
        .boot = BOOT_GRUB_FILE,
        .grub_update = "sudo update-grub",
        .install = "sudo apt install",
        .newer_kernel =
            "sudo apt update && sudo apt install --install-recommends \"linux-generic-hwe-$(. "
            "/etc/os-release; case $UBUNTU_CODENAME in jammy) echo 22.04;; *) echo 24.04;; esac)\" && "
            "sudo reboot",
        .newer_firmware = "sudo apt update && sudo apt install --reinstall linux-firmware" INITRAMFS,
    },
    {
        .ids = "ubuntu neon",
        .boot = BOOT_GRUB_FILE,
        .grub_update = "sudo update-grub",
        .install = "sudo apt install",
        .newer_kernel = "sudo apt update && sudo apt install --install-recommends \"linux-generic-hwe-$(. "
                        "/etc/os-release; echo $VERSION_ID)\" && sudo reboot",
        .newer_firmware =
            "sudo apt purge -y amdgpu-dkms-firmware; sudo apt update && sudo apt install --reinstall "
            "linux-firmware" INITRAMFS,
    },
    {
        .ids = "pop",
        .boot = BOOT_KERNELSTUB,
        .install = "sudo apt install",
        .newer_kernel = "sudo apt update && sudo apt full-upgrade && sudo reboot",
        .newer_firmware = "sudo apt update && sudo apt install --reinstall linux-firmware" INITRAMFS,
    },
    {
        .ids = "bazzite aurora bluefin ublue fedora-atomic",
        .boot = BOOT_RPM_OSTREE,
        .install = "rpm-ostree install",
        .newer_kernel = "rpm-ostree upgrade && systemctl reboot",
        .newer_firmware = "rpm-ostree upgrade && systemctl reboot",
    },
    {
        .ids = "fedora rhel centos rocky almalinux nobara ol",
        .boot = BOOT_GRUBBY,
        .install = "sudo dnf install",
        .newer_kernel = "sudo dnf upgrade --refresh kernel && sudo reboot",
        .newer_firmware = "sudo dnf upgrade --refresh amd-gpu-firmware && sudo dracut -f && sudo reboot",
    },
    {
        .ids = "arch manjaro endeavouros cachyos garuda",
        .boot = BOOT_GRUB_FILE,
        .grub_update = "sudo grub-mkconfig -o /boot/grub/grub.cfg",
        .install = "sudo pacman -S",
        .newer_kernel = "sudo pacman -Syu && sudo reboot",
        .newer_firmware = "sudo pacman -Syu linux-firmware-amdgpu && sudo mkinitcpio -P && sudo reboot",
    },
    {
        .ids = "opensuse-tumbleweed opensuse-leap opensuse-slowroll sles",
        .boot = BOOT_GRUB_FILE,
        .grub_update = "sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
        .install = "sudo zypper install",
        .newer_kernel = "sudo zypper refresh && sudo zypper update kernel-default && sudo reboot",
        .newer_firmware = "sudo zypper update kernel-firmware-amdgpu && sudo dracut -f && sudo reboot",
    },
    {
        .ids = "nixos",
        .boot = BOOT_NIXOS,
        .install = "nix-shell -p",
        .newer_kernel =
            "# in configuration.nix: boot.kernelPackages = pkgs.linuxPackages_latest;\nsudo nixos-rebuild "
            "boot",
        .newer_firmware = "sudo nix-channel --update && sudo nixos-rebuild boot && sudo reboot",
    },
    /* Anything else: describe the step in words. */
    {
        .boot = BOOT_OTHER,
        .install = "# install the package",
        .newer_kernel = "# install a newer kernel with the distribution's own tools, and reboot",
        .newer_firmware =
            "# update linux-firmware with the distribution's own tools, rebuild the initramfs, and reboot",
    },
};

/* Fedora's image-based editions share its ID. */
static const char *distro_id(const struct host_facts *h)
{
    static const char *const atomic[] = { "Silverblue", "Kinoite", "Atomic", "CoreOS" };
    if (h->ostree && str_eq(h->os_id.s, "fedora"))
        return "fedora-atomic";
    for (size_t i = 0; i < ARRAY_LEN(atomic); i++)
        if (str_eq(h->os_id.s, "fedora") && h->os_name.s && strstr(h->os_name.s, atomic[i]))
            return "fedora-atomic";
    return h->os_id.s;
}

static const struct distro *distro_of(const char *id)
{
    const struct distro *d = distros;
    while (d->ids && !(id && str_list_has(d->ids, ' ', id)))
        d++;
    return d;
}

/* A distribution without a row is treated like the one it derives from ("ubuntu debian"), nearest first. */
static const struct distro *distro_find(const struct check_ctx *l)
{
    const struct distro *d = distro_of(distro_id(&l->facts->host));
    for (const char *at = l->facts->host.os_like.s; at && *at && !d->ids; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        d = distro_of(arena_strndup(l->arena, at, n));
        at += n;
    }
    return d;
}

/* If the distribution leaves the choice of boot loader to the user, the existing files decide. */
static enum boot_tool boot_tool_of(const struct host_facts *h, const struct distro *d)
{
    if (h->ostree)
        return BOOT_RPM_OSTREE;
    if ((d->boot != BOOT_GRUB_FILE && d->boot != BOOT_OTHER) || h->grub_defaults)
        return d->boot == BOOT_OTHER && h->grub_defaults ? BOOT_GRUB_FILE : d->boot;
    return h->boot_cmdline ? BOOT_CMDLINE : h->boot_entries ? BOOT_ENTRIES : d->boot;
}

/* This cannot be done inside a container. */
const char *remedy_on_host(const struct check_ctx *l, const char *words, const char *line)
{
    return l->facts->host.container.s ? ctx_text(l, "# on the host, not in this container: %s", words) : line;
}

/* For sed: the dot of "amdgpu.gttsize" must not match anything else. */
static const char *escape_dots(const struct check_ctx *l, const char *s)
{
    char *out = arena_alloc(l->arena, 2 * strlen(s) + 1);
    for (char *p = out; *s; s++) {
        if (*s == '.')
            *p++ = '\\';
        *p++ = *s;
    }
    return out;
}

/* The sed script that edits the command line in /etc/default/grub. */
static const char *grub_script(const struct check_ctx *l, const char *name, const char *params)
{
    const char *drop = name ? ctx_text(l, "s/ *\\b%s=[^ \"]*//g", escape_dots(l, name)) : "";
    const char *add =
        params ? ctx_text(l, "s/^\\(GRUB_CMDLINE_LINUX_DEFAULT=\"[^\"]*\\)\"/\\1 %s\"/", params) : "";
    return ctx_text(l, "%s%s%s", drop, name && params ? "; " : "", add);
}

/* "--delete-if-present=… --append-if-missing=…", one for each parameter. */
static const char *kargs(const struct check_ctx *l, const char *name, const char *params)
{
    CLEANUP(str_release) struct str s = { 0 };
    if (name)
        str_addf(&s, " --delete-if-present=%s", name);
    for (const char *at = params; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        str_addf(&s, " --append-if-missing=%.*s", (int)n, at);
        at += n;
    }
    return ctx_text(l, "sudo rpm-ostree kargs%s && systemctl reboot", s.s ? s.s : "");
}

static const char *in_words(const struct check_ctx *l, const char *name, const char *params)
{
    if (name && params)
        return ctx_text(l, "replace %s with %s on the kernel command line, and reboot", name, params);
    if (name)
        return ctx_text(l, "remove %s from the kernel command line, and reboot", name);
    return ctx_text(l, "add %s to the kernel command line, and reboot", params);
}

static const char *other_loader(const struct check_ctx *l, const char *name, const char *params)
{
    return ctx_text(l,
                    "# %s; GRUB keeps it in /etc/default/grub (then run grub-mkconfig -o "
                    "/boot/grub/grub.cfg), systemd-boot in /boot/loader/entries or /etc/kernel/cmdline",
                    in_words(l, name, params));
}

/* A file of systemd-boot: in an entry the line "options ...", else the only line. */
static const char *boot_file(const struct check_ctx *l, bool entries, const char *name, const char *params)
{
    const char *on = entries ? "/^options/ " : "";
    const char *drop = name ? ctx_text(l, "%ss/ *\\b%s=[^ ]*//g", on, escape_dots(l, name)) : "";
    const char *add = params ? ctx_text(l, "%ss/$/ %s/", on, params) : "";
    const char *script = ctx_text(l, "%s%s%s", drop, name && params ? "; " : "", add);
    if (entries) /* only root may be able to list the folder */
        return ctx_text(
            l, "sudo find /boot/loader/entries -name '*.conf' -exec sed -i '%s' {} + && sudo reboot", script);
    return ctx_text(l, "sudo sed -i '%s' /etc/kernel/cmdline && sudo kernel-install add-all && sudo reboot",
                    script);
}

/* "amdgpu.gttsize=131072" as it appears on the command line, because the tools need the value too. NULL:
 * absent. */
static const char *on_cmdline(const struct check_ctx *l, const char *name)
{
    const char *line = l->facts->host.cmdline.s;
    size_t n = strlen(name);
    for (const char *at = line; at && (at = strstr(at, name)) != NULL; at += n) {
        if ((at != line && at[-1] != ' ') || (at[n] != '=' && at[n] != ' ' && at[n]))
            continue;
        const char *whole = arena_strndup(l->arena, at, strcspn(at, " \n"));
        return ctx_shell_word(l, whole) == whole ? whole
                                                 : name; /* do not paste a value with quotes into a shell */
    }
    return NULL;
}

static const char *kernel_line(const struct check_ctx *l, const char *name, const char *params)
{
    const struct distro *d = distro_find(l);
    const char *gone = name ? on_cmdline(l, name) : "", *added = params ? params : "";
    /* Active, but not on the command line: a modprobe file sets it. */
    if (!gone && l->facts->host.cmdline.s) {
        const char *dot = strchr(name, '.');
        const char *where =
            ctx_text(l, "grep -rn '%s' /etc/modprobe.d    # remove it there", dot ? dot + 1 : name);
        return params ? ctx_text(l, "%s\n%s", where, kernel_line(l, NULL, params)) : where;
    }
    gone = gone ? gone : name;
    enum boot_tool tool = boot_tool_of(&l->facts->host, d);
    switch (tool) {
    case BOOT_GRUB_FILE:
        return ctx_text(l, "sudo sed -i '%s' /etc/default/grub && %s && sudo reboot",
                        grub_script(l, name, params),
                        d->grub_update ? d->grub_update : "sudo grub-mkconfig -o /boot/grub/grub.cfg");
    case BOOT_ENTRIES:
    case BOOT_CMDLINE:
        return boot_file(l, tool == BOOT_ENTRIES, name, params);
    case BOOT_KERNELSTUB:
        return ctx_text(l, "sudo kernelstub%s%s && sudo reboot", name ? ctx_text(l, " -d %s", gone) : "",
                        params ? ctx_text(l, " -a \"%s\"", added) : "");
    case BOOT_GRUBBY:
        return ctx_text(l, "sudo grubby --update-kernel=ALL%s%s && sudo reboot",
                        name ? ctx_text(l, " --remove-args=\"%s\"", gone) : "",
                        params ? ctx_text(l, " --args=\"%s\"", added) : "");
    case BOOT_RPM_OSTREE:
        return kargs(l, name ? gone : NULL, params);
    case BOOT_NIXOS:
        if (!params)
            return ctx_text(
                l, "# in configuration.nix: remove \"%s\" from boot.kernelParams\nsudo nixos-rebuild boot",
                gone);
        return ctx_text(
            l, "# in configuration.nix: boot.kernelParams = [ \"%s\" ];%s%s\nsudo nixos-rebuild boot", added,
            name ? "    # without " : "", gone);
    case BOOT_OTHER:
        break;
    }
    return other_loader(l, name, params);
}

const char *remedy_kernel_replace(const struct check_ctx *l, const char *name, const char *params)
{
    return remedy_on_host(l, in_words(l, name, params), kernel_line(l, name, params));
}

const char *remedy_kernel_add(const struct check_ctx *l, const char *params)
{
    return remedy_kernel_replace(l, NULL, params);
}

const char *remedy_limit(const struct check_ctx *l, int64_t bytes)
{
    const char *name = ctx_text(l, "%s.pages_limit", memory_ttm_module(&l->facts->host));
    const char *param = ctx_text(l, "%s=%lld", name, (long long)(bytes / PAGE_BYTES));
    return on_cmdline(l, name) ? remedy_kernel_replace(l, name, param) : remedy_kernel_add(l, param);
}

const char *remedy_kernel_newer(const struct check_ctx *l)
{
    return remedy_on_host(l, "install a newer kernel, and reboot", distro_find(l)->newer_kernel);
}

const char *remedy_firmware_newer(const struct check_ctx *l)
{
    return remedy_on_host(l, "update linux-firmware, rebuild the initramfs, and reboot",
                          distro_find(l)->newer_firmware);
}

const char *remedy_install(const struct check_ctx *l, const char *package)
{
    return ctx_text(l, "%s %s", distro_find(l)->install, package);
}

/* The packages with headers, by package manager; the first row is for unknown ones. */
static const struct {
    const char *tool, *cxx, *python;
} headers[] = {
    { "apt", "\"libstdc++-$(ls /usr/lib/gcc/x86_64-linux-gnu | sort -n | tail -1)-dev\"", "python3-dev" },
    { "dnf", "libstdc++-devel", "python3-devel" },
    { "rpm-ostree", "libstdc++-devel", "python3-devel" },
    { "zypper", "libstdc++-devel", "python3-devel" },
    { "pacman", "gcc", "python" },
};

static const char *install_headers(const struct check_ctx *l, bool cxx)
{
    const char *install = distro_find(l)->install;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (strstr(install, headers[i].tool))
            return remedy_install(l, cxx ? headers[i].cxx : headers[i].python);
    return ctx_text(l,
                    "sudo apt install %s    # Debian and derivatives; elsewhere, install the package with "
                    "these headers",
                    cxx ? headers[0].cxx : headers[0].python);
}

const char *remedy_cxx_headers(const struct check_ctx *l)
{
    return install_headers(l, true);
}

const char *remedy_python_headers(const struct check_ctx *l)
{
    return install_headers(l, false);
}

const char *remedy_container(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    const struct dev_node *render = l->gpu ? &l->gpu->render : NULL;
    int64_t gid = render && render->gid >= 0 ? render->gid : h->render_gid;
    if (str_eq(h->container.s, "podman"))
        return "podman run --device=/dev/kfd --device=/dev/dri --group-add keep-groups --security-opt "
               "seccomp=unconfined --ipc=host IMAGE";
    if (str_eq(h->container.s, "lxc"))
        return "# in the container's configuration on the host: dev0: /dev/kfd,gid=G and dev1: "
               "/dev/dri/renderD128,gid=G, where G is the gid of the container's render group";
    /* By gid: inside, the name may belong to another group. */
    const char *group =
        gid >= 0 ? ctx_text(l, "%lld", (long long)gid) : "\"$(stat -c %g /dev/dri/renderD128)\"";
    return ctx_text(
        l,
        "docker run --device=/dev/kfd --device=/dev/dri --group-add %s --security-opt seccomp=unconfined "
        "--ipc=host IMAGE",
        group);
}

const char *remedy_node_access(const struct check_ctx *l, const struct dev_node *node)
{
    const struct host_facts *h = &l->facts->host;
    const char *user = h->user ? ctx_shell_word(l, h->user) : "$USER";
    if (h->container.s)
        return remedy_container(l);
    const char *group = node->group;
    if (!group || str_eq(group, "root"))
        return ctx_text(
            l,
            "echo 'SUBSYSTEM==\"kfd\", KERNEL==\"kfd\", GROUP=\"render\", MODE=\"0660\"' | sudo tee "
            "/etc/udev/rules.d/70-kfd.rules && sudo udevadm control --reload && sudo udevadm trigger && sudo "
            "usermod -aG render %s",
            user);
    group = ctx_shell_word(l, group);
    return ctx_text(l, "sudo usermod -aG %s %s && newgrp %s    # or log out and in again", group, user,
                    group);
}

/* pip refuses to modify a Python that belongs to the distribution (PEP 668), so that one gets a virtual
 * environment. */
static bool python_is_system(const char *python)
{
    return !python || str_starts(python, "/usr/bin/") || str_starts(python, "/bin/");
}

/* The active environment, if its Python exists. */
static const char *active_python(const struct check_ctx *l)
{
    static const char *const variables[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *prefix = facts_env(l->facts, variables[i]);
        const char *exe = prefix && *prefix == '/' ? ctx_text(l, "%s/bin/python", prefix) : NULL;
        if (exe && (root_exists(&l->facts->root, exe) || root_link(&l->facts->root, l->arena, exe)))
            return exe;
    }
    return NULL;
}

static const char *known_python(const struct check_ctx *l)
{
    if (l->python)
        return l->python;
    if (l->torch)
        return l->torch->python;
    if (l->foreign)
        return NULL;
    return l->facts->command.python && !python_is_system(l->facts->command.python) ? l->facts->command.python
                                                                                   : active_python(l);
}

const char *remedy_pip(const struct check_ctx *l, const char *arguments)
{
    const char *python = known_python(l);
    if (python && !python_is_system(python))
        return ctx_text(l, "%s -m pip install %s", ctx_shell_word(l, python), arguments);
    if (l->foreign)
        return ctx_text(
            l, "# with the Python of the environment that the trainer runs in:\npython3 -m pip install %s",
            arguments);
    const char *sees = l->torch && !strstr(arguments, "torch") ? "--system-site-packages " : "";
    return ctx_text(l, "python3 -m venv %s.venv && .venv/bin/python3 -m pip install %s", sees, arguments);
}

/* PowerShell starts a quoted program only after an ampersand. The path may come from a stranger's log: single
 * quotes prevent expansion, and a path that contains one, or a character that PowerShell treats as one, is
 * not repeated. */
const char *remedy_pip_windows(const struct check_ctx *l, const char *arguments)
{
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:\\._-";
    const char *python = l->python;
    if (!python || !strchr(python, '\\') || strchr(python, '\'') || strstr(python, "\xe2\x80"))
        python = "python";
    return ctx_text(l, python[strspn(python, bare)] ? "& '%s' -m pip install %s" : "%s -m pip install %s",
                    python, arguments);
}

/* pytorch.org's newest ROCm index, and AMD's own with one device package per chip (TheRock's RELEASES.md). */
#define PYTORCH_INDEX "https://download.pytorch.org/whl/rocm7.2"
#define AMD_INDEX "https://repo.amd.com/rocm/whl-multi-arch/"

const char *remedy_torch(const struct check_ctx *l)
{
    const struct gfx_chip *c = l->chip;
    if (c && !c->wheel_major && !c->therock)
        return NULL;
    bool amd = c && c->therock && (!c->wheel_major || (l->torch && l->torch->therock));
    const char *again = l->torch ? "--force-reinstall " : "";
    if (!amd)
        return remedy_pip(l, ctx_text(l, "%storch torchvision torchaudio --index-url " PYTORCH_INDEX, again));
    return remedy_pip(
        l, ctx_text(l, "%s\"torch[device-%s]\" \"torchvision[device-%s]\" torchaudio --index-url " AMD_INDEX,
                    again, c->gfx, c->gfx));
}

const char *remedy_torch_windows(const struct check_ctx *l)
{
    const struct gfx_chip *c = l->chip;
    if (!c || !c->therock)
        return NULL;
    return remedy_pip_windows(
        l,
        ctx_text(
            l,
            "--force-reinstall \"torch[device-%s]\" \"torchvision[device-%s]\" torchaudio --index-url " AMD_INDEX,
            c->gfx, c->gfx));
}
