/* SPDX-License-Identifier: Apache-2.0 */
#include "host/drm.h"

#include "base/parse.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>

enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03 };

/* "0000:c5:00.0"? */
static bool is_pci_address(const char *s)
{
    return strspn(s, "0123456789abcdef") >= 4 && s[4] == ':' && strlen(s) == 12 && s[7] == ':' &&
           s[10] == '.';
}

struct num drm_read_num(const struct root *r, struct arena *a, const char *path, struct problems *p)
{
    const char *text = root_read(r, a, path, NULL);
    struct num v = { 0, path };
    if (text && cairn_parse_i64(text, &v.v))
        return v;
    if (text && p)
        problems_add(p, a, "%s: expected a number", path);
    return (struct num){ 0 };
}

static struct num read_hex(const struct root *r, struct arena *a, const char *path, uint64_t most)
{
    const char *text = root_read(r, a, path, NULL);
    uint64_t v;
    if (!text || !cairn_parse_hex(text, &v) || v > most)
        return (struct num){ 0 };
    return (struct num){ (int64_t)v, path };
}

/* "KEY=value" lines. */
static const char *uevent_value(struct arena *a, const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = str_next_line(line))
        if (!strncmp(line, key, n) && line[n] == '=')
            return arena_strndup(a, line + n + 1, strcspn(line + n + 1, "\r\n"));
    return NULL;
}

/* "1002:744C" */
static bool parse_pci_id(struct arena *a, const char *pci_id, uint64_t *vendor, uint64_t *device)
{
    const char *colon = pci_id ? strchr(pci_id, ':') : NULL;
    return colon && cairn_parse_hex(arena_strndup(a, pci_id, (size_t)(colon - pci_id)), vendor) &&
           cairn_parse_hex(colon + 1, device) && *vendor <= 0xffff && *device <= 0xffff;
}

static void take_pci_ids(struct arena *a, const char *text, const char *from, struct drm_device *d)
{
    uint64_t vendor, device;
    if (parse_pci_id(a, uevent_value(a, text, "PCI_ID"), &vendor, &device)) {
        d->vendor_id = (struct num){ (int64_t)vendor, from };
        d->device_id = (struct num){ (int64_t)device, from };
    }
    if (parse_pci_id(a, uevent_value(a, text, "PCI_SUBSYS_ID"), &vendor, &device))
        d->subsystem = (struct num){ (int64_t)(device << 16 | vendor), from };
}

/* True if the PCI class is a display controller, or is missing. */
static bool read_uevent(const struct root *r, struct arena *a, struct drm_device *d)
{
    const char *path = arena_printf(a, "%s/uevent", d->dir);
    const char *text = root_read(r, a, path, NULL);
    if (!text)
        return true;
    d->driver.s = uevent_value(a, text, "DRIVER");
    d->driver.from = d->driver.s ? path : NULL;
    d->pci.s = uevent_value(a, text, "PCI_SLOT_NAME");
    d->pci.from = d->pci.s ? path : NULL;
    if (d->pci.s && !is_pci_address(d->pci.s))
        d->pci = (struct text){ 0 };
    take_pci_ids(a, text, path, d);
    const char *class = uevent_value(a, text, "PCI_CLASS");
    uint64_t v;
    if (!class || !cairn_parse_hex(class, &v))
        return true;
    if (v >> 16 == CLASS_DISPLAY)
        d->pci_class = (struct num){ (int64_t)v, path };
    return v >> 16 == CLASS_DISPLAY;
}

/* The graphics block, GC, has the hardware id 11; the kernel links its name to that, and a capture may have
 * followed the link. */
static void read_graphics_block(const struct root *r, struct arena *a, struct drm_device *d)
{
    static const char *const blocks[] = { "11", "GC" }, *const part[] = { "major", "minor", "revision" };
    for (size_t b = 0; b < ARRAY_LEN(blocks) && !d->gfx.s; b++) {
        uint64_t v[3];
        size_t i = 0;
        for (; i < 3; i++) {
            const char *text = root_read(
                r, a, arena_printf(a, "%s/ip_discovery/die/0/%s/0/%s", d->dir, blocks[b], part[i]), NULL);
            if (!text || !cairn_parse_u64(text, &v[i]) || v[i] > 255)
                break;
        }
        if (i == 3)
            d->gfx.s = gfx_from_gc((int)v[0], (int)v[1], (int)v[2]);
    }
    d->gfx.from = d->gfx.s ? "ip_discovery" : NULL;
}

static bool read_device(const struct root *r, struct arena *a, struct drm_device *d)
{
    bool display = read_uevent(r, a, d);
    /* The device's own files are read only where the uevent leaves a gap: each read costs a system call. */
    if (!d->pci.s) {
        const char *link = root_link(r, a, d->dir);
        const char *base = link ? strrchr(link, '/') : NULL;
        if (base && is_pci_address(base + 1))
            d->pci = (struct text){ base + 1, d->dir };
    }
    if (!d->vendor_id.from)
        d->vendor_id = read_hex(r, a, arena_printf(a, "%s/vendor", d->dir), 0xffff);
    if (!d->device_id.from)
        d->device_id = read_hex(r, a, arena_printf(a, "%s/device", d->dir), 0xffff);
    if (d->vendor_id.from)
        return display && d->vendor_id.v == VENDOR_AMD;
    /* Only amdgpu has this file. */
    return root_exists(r, arena_printf(a, "%s/mem_info_vram_total", d->dir));
}

static int minor_of(const char *name, const char *prefix)
{
    uint64_t v;
    if (!str_starts(name, prefix) || !cairn_parse_u64(name + strlen(prefix), &v) || v > 1 << 20)
        return -1;
    return (int)v;
}

static bool same_num(struct num a, struct num b)
{
    return !a.from == !b.from && a.v == b.v;
}

/* Is this render node the same device as the card?  By PCI address; where an address is missing (a partial
 * capture), by all that is known of them. */
static bool same_device(const struct drm_device *card, const struct drm_device *render)
{
    if (card->pci.s && render->pci.s)
        return !strcmp(card->pci.s, render->pci.s);
    return card->render_minor < 0 && same_num(card->vendor_id, render->vendor_id) &&
           same_num(card->device_id, render->device_id) && same_num(card->revision, render->revision);
}

static void finish_device(const struct root *r, struct arena *a, struct drm_device *d)
{
    d->revision = read_hex(r, a, arena_printf(a, "%s/revision", d->dir), 0xff);
    read_graphics_block(r, a, d);
}

/* Cards first, then render nodes, so that a render node finds its card.  "card0-DP-1" is a connector. */
static void read_drm_names(const struct root *r, struct arena *a, char **names, size_t n_names,
                           const char *prefix, struct drm_device **list, size_t *n)
{
    for (size_t i = 0; i < n_names; i++) {
        int minor = minor_of(names[i], prefix);
        if (minor < 0)
            continue;
        struct drm_device d = { .dir = arena_printf(a, "/sys/class/drm/%s/device", names[i]),
                                .render_minor = prefix[0] == 'r' ? minor : -1 };
        if (!read_device(r, a, &d))
            continue;
        finish_device(r, a, &d);
        struct drm_device *known = NULL;
        for (size_t k = 0; k < *n && !known; k++)
            if (d.render_minor >= 0 && same_device(&(*list)[k], &d))
                known = &(*list)[k];
        if (known)
            known->render_minor = d.render_minor;
        else
            *ARENA_PUSH(a, *list, *n) = d;
    }
}

/* A PCI device by its own files, where it has no uevent. */
static bool read_pci_files(const struct root *r, struct arena *a, const char *address, struct drm_device *d)
{
    struct num class = read_hex(r, a, arena_printf(a, "%s/class", d->dir), 0xffffff);
    d->vendor_id = read_hex(r, a, arena_printf(a, "%s/vendor", d->dir), 0xffff);
    d->device_id = read_hex(r, a, arena_printf(a, "%s/device", d->dir), 0xffff);
    d->pci = (struct text){ address, d->dir };
    return class.from && class.v >> 16 == CLASS_DISPLAY;
}

static bool is_display(const struct root *r, struct arena *a, const char *address, int vendor,
                       struct drm_device *d)
{
    bool display = read_uevent(r, a, d);
    if (!d->vendor_id.from)
        display = read_pci_files(r, a, address, d);
    return display && d->vendor_id.from && d->vendor_id.v == vendor;
}

/* AMD display controllers that DRM does not know: no driver, or given to a virtual machine. */
static void read_pci_rest(const struct root *r, struct arena *a, struct drm_device **list, size_t *n)
{
    char **names;
    size_t n_names;
    if (root_list(r, a, "/sys/bus/pci/devices", &names, &n_names))
        return;
    for (size_t i = 0; i < n_names; i++) {
        bool known = false;
        for (size_t k = 0; k < *n && !known; k++)
            known = str_eq((*list)[k].pci.s, names[i]);
        struct drm_device d = { .dir = arena_printf(a, "/sys/bus/pci/devices/%s", names[i]),
                                .render_minor = -1 };
        if (known || !is_pci_address(names[i]) || !is_display(r, a, names[i], VENDOR_AMD, &d))
            continue;
        finish_device(r, a, &d);
        *ARENA_PUSH(a, *list, *n) = d;
    }
}

void drm_read(const struct root *r, struct arena *a, struct drm_device **out, size_t *n, struct problems *p)
{
    char **names;
    size_t n_names;
    *out = NULL;
    *n = 0;
    if (!root_list(r, a, "/sys/class/drm", &names, &n_names)) {
        read_drm_names(r, a, names, n_names, "card", out, n);
        read_drm_names(r, a, names, n_names, "renderD", out, n);
    } else if (errno != ENOENT) {
        problems_add(p, a, "list /sys/class/drm: %s", strerror(errno));
    }
    read_pci_rest(r, a, out, n);
}

bool drm_has_nvidia(const struct root *r, struct arena *a)
{
    char **names;
    size_t n;
    if (root_list(r, a, "/sys/bus/pci/devices", &names, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct drm_device d = { .dir = arena_printf(a, "/sys/bus/pci/devices/%s", names[i]) };
        if (is_display(r, a, names[i], VENDOR_NVIDIA, &d))
            return true;
    }
    return false;
}
