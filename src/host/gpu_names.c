/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gpu_names.h"

#include "os/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANY = -1 };

/* After libdrm's amdgpu.ids.  Rows with a revision or a compute unit count come before the row for any. */
static const struct name_row {
    uint16_t device;
    int revision, compute_units;
    const char *name;
} rows[] = {
    { 0x1586, ANY, 40, "AMD Radeon 8060S" },
    { 0x1586, ANY, 32, "AMD Radeon 8050S" },
    { 0x1586, ANY, 16, "AMD Radeon 8040S" },
    { 0x1586, ANY, ANY, "AMD Radeon 8060S/8050S/8040S" },
    { 0x150e, ANY, 16, "AMD Radeon 890M" },
    { 0x150e, ANY, 12, "AMD Radeon 880M" },
    { 0x150e, ANY, ANY, "AMD Radeon 890M/880M" },
    { 0x1114, ANY, 8, "AMD Radeon 860M" },
    { 0x1114, ANY, 4, "AMD Radeon 840M" },
    { 0x1114, ANY, ANY, "AMD Radeon 860M/840M" },
    { 0x15bf, ANY, 12, "AMD Radeon 780M" },
    { 0x15bf, ANY, 8, "AMD Radeon 760M" },
    { 0x15bf, ANY, 4, "AMD Radeon 740M" },
    { 0x15bf, ANY, ANY, "AMD Radeon 780M/760M/740M" },
    { 0x15c8, ANY, ANY, "AMD Radeon 740M" },
    { 0x1900, ANY, 12, "AMD Radeon 780M" },
    { 0x1900, ANY, 8, "AMD Radeon 760M" },
    { 0x1900, ANY, ANY, "AMD Radeon 780M/760M" },
    { 0x1901, ANY, ANY, "AMD Radeon 740M" },
    { 0x1681, ANY, 12, "AMD Radeon 680M" },
    { 0x1681, ANY, 6, "AMD Radeon 660M" },
    { 0x1681, ANY, ANY, "AMD Radeon 680M/660M" },
    { 0x164e, ANY, ANY, "AMD Radeon Graphics (Raphael)" },
    { 0x13c0, ANY, ANY, "AMD Radeon Graphics (Granite Ridge)" },
    { 0x1506, ANY, ANY, "AMD Radeon 610M" },
    { 0x163f, ANY, ANY, "AMD Custom GPU 0405" },
    { 0x1435, ANY, ANY, "AMD Custom GPU 0932" },
    { 0x13fe, ANY, ANY, "AMD BC-250" },
    { 0x1636, ANY, ANY, "AMD Radeon Graphics (Renoir)" },
    { 0x1638, ANY, ANY, "AMD Radeon Graphics (Cezanne)" },
    { 0x164c, ANY, ANY, "AMD Radeon Graphics (Lucienne)" },
    { 0x15e7, ANY, ANY, "AMD Radeon Graphics (Barcelo)" },
    { 0x15dd, ANY, ANY, "AMD Radeon Vega Graphics (Raven Ridge)" },
    { 0x15d8, ANY, ANY, "AMD Radeon Vega Graphics (Picasso)" },
    { 0x9874, ANY, ANY, "AMD Radeon R7 Graphics (Carrizo/Bristol Ridge)" },
    { 0x7550, 0xc0, ANY, "AMD Radeon RX 9070 XT" },
    { 0x7550, 0xc2, ANY, "AMD Radeon RX 9070 GRE" },
    { 0x7550, 0xc3, ANY, "AMD Radeon RX 9070" },
    { 0x7550, ANY, 64, "AMD Radeon RX 9070 XT" },
    { 0x7550, ANY, 56, "AMD Radeon RX 9070" },
    { 0x7550, ANY, ANY, "AMD Radeon RX 9070/9070 XT" },
    { 0x7551, ANY, ANY, "AMD Radeon AI PRO R9700" },
    { 0x7590, 0xc0, ANY, "AMD Radeon RX 9060 XT" },
    { 0x7590, 0xc7, ANY, "AMD Radeon RX 9060" },
    { 0x7590, ANY, 32, "AMD Radeon RX 9060 XT" },
    { 0x7590, ANY, ANY, "AMD Radeon RX 9060/9060 XT" },
    { 0x744c, 0xc8, ANY, "AMD Radeon RX 7900 XTX" },
    { 0x744c, 0xcc, ANY, "AMD Radeon RX 7900 XT" },
    { 0x744c, 0xce, ANY, "AMD Radeon RX 7900 GRE" },
    { 0x744c, 0xcf, ANY, "AMD Radeon RX 7900M" },
    { 0x744c, ANY, 96, "AMD Radeon RX 7900 XTX" },
    { 0x744c, ANY, 84, "AMD Radeon RX 7900 XT" },
    { 0x744c, ANY, 80, "AMD Radeon RX 7900 GRE" },
    { 0x744c, ANY, ANY, "AMD Radeon RX 7900 XT/XTX/GRE" },
    { 0x7448, ANY, ANY, "AMD Radeon PRO W7900" },
    { 0x7449, ANY, ANY, "AMD Radeon PRO W7800 48GB" },
    { 0x745e, ANY, ANY, "AMD Radeon PRO W7800" },
    { 0x747e, 0xc8, ANY, "AMD Radeon RX 7800 XT" },
    { 0x747e, 0xff, ANY, "AMD Radeon RX 7700 XT" },
    { 0x747e, ANY, 60, "AMD Radeon RX 7800 XT" },
    { 0x747e, ANY, 54, "AMD Radeon RX 7700 XT" },
    { 0x747e, ANY, ANY, "AMD Radeon RX 7700 XT/7800 XT" },
    { 0x7470, ANY, ANY, "AMD Radeon PRO W7700" },
    { 0x7461, ANY, ANY, "AMD Radeon PRO V710" },
    { 0x7480, 0x00, ANY, "AMD Radeon PRO W7600" },
    { 0x7480, 0xc0, ANY, "AMD Radeon RX 7600 XT" },
    { 0x7480, 0xc1, ANY, "AMD Radeon RX 7700S" },
    { 0x7480, 0xc3, ANY, "AMD Radeon RX 7600S" },
    { 0x7480, 0xc7, ANY, "AMD Radeon RX 7600M XT" },
    { 0x7480, 0xcf, ANY, "AMD Radeon RX 7600" },
    { 0x7480, ANY, ANY, "AMD Radeon RX 7600/7600 XT" },
    { 0x7483, ANY, ANY, "AMD Radeon RX 7600M" },
    { 0x7489, ANY, ANY, "AMD Radeon PRO W7500" },
    { 0x73a1, ANY, ANY, "AMD Radeon PRO V620" },
    { 0x73a3, ANY, ANY, "AMD Radeon PRO W6800" },
    { 0x73a5, ANY, ANY, "AMD Radeon RX 6950 XT" },
    { 0x73af, ANY, ANY, "AMD Radeon RX 6900 XT" },
    { 0x73bf, 0xc0, ANY, "AMD Radeon RX 6900 XT" },
    { 0x73bf, 0xc1, ANY, "AMD Radeon RX 6800 XT" },
    { 0x73bf, 0xc3, ANY, "AMD Radeon RX 6800" },
    { 0x73bf, ANY, 80, "AMD Radeon RX 6900 XT" },
    { 0x73bf, ANY, 72, "AMD Radeon RX 6800 XT" },
    { 0x73bf, ANY, 60, "AMD Radeon RX 6800" },
    { 0x73bf, ANY, ANY, "AMD Radeon RX 6800/6800 XT/6900 XT" },
    { 0x73df, 0xc0, ANY, "AMD Radeon RX 6750 XT" },
    { 0x73df, 0xc1, ANY, "AMD Radeon RX 6700 XT" },
    { 0x73df, 0xc5, ANY, "AMD Radeon RX 6700 XT" },
    { 0x73df, 0xc3, ANY, "AMD Radeon RX 6800M" },
    { 0x73df, 0xcf, ANY, "AMD Radeon RX 6700M" },
    { 0x73df, ANY, ANY, "AMD Radeon RX 6700 XT/6750 XT" },
    { 0x73e3, ANY, ANY, "AMD Radeon PRO W6600" },
    { 0x73ef, 0xc1, ANY, "AMD Radeon RX 6650 XT" },
    { 0x73ef, ANY, ANY, "AMD Radeon RX 6650 XT/6700S/6800S" },
    { 0x73ff, 0xc1, ANY, "AMD Radeon RX 6600 XT" },
    { 0x73ff, 0xc7, ANY, "AMD Radeon RX 6600" },
    { 0x73ff, 0xc3, ANY, "AMD Radeon RX 6600M" },
    { 0x73ff, ANY, 32, "AMD Radeon RX 6600 XT" },
    { 0x73ff, ANY, 28, "AMD Radeon RX 6600" },
    { 0x73ff, ANY, ANY, "AMD Radeon RX 6600/6600 XT" },
    { 0x743f, ANY, 16, "AMD Radeon RX 6500 XT" },
    { 0x743f, ANY, 12, "AMD Radeon RX 6400" },
    { 0x743f, ANY, ANY, "AMD Radeon RX 6400/6500 XT" },
    { 0x731f, ANY, 40, "AMD Radeon RX 5700 XT" },
    { 0x731f, ANY, ANY, "AMD Radeon RX 5600 XT/5700/5700 XT" },
    { 0x7340, ANY, ANY, "AMD Radeon RX 5500 series" },
    { 0x687f, ANY, 64, "AMD Radeon RX Vega 64" },
    { 0x687f, ANY, 56, "AMD Radeon RX Vega 56" },
    { 0x687f, 0xc1, ANY, "AMD Radeon RX Vega 64" },
    { 0x687f, 0xc3, ANY, "AMD Radeon RX Vega 56" },
    { 0x687f, ANY, ANY, "AMD Radeon RX Vega 56/64" },
    { 0x6860, ANY, ANY, "AMD Radeon Instinct MI25" },
    { 0x66a1, ANY, ANY, "AMD Radeon Pro VII/Instinct MI50" },
    { 0x66af, ANY, ANY, "AMD Radeon VII" },
    { 0x67df, ANY, ANY, "AMD Radeon RX 470/480/570/580/590" },
    { 0x67ef, ANY, ANY, "AMD Radeon RX 460/560" },
    { 0x6617, ANY, ANY, "AMD Radeon R7 240" },
    { 0x6818, ANY, ANY, "AMD Radeon HD 7870" },
    { 0x738c, ANY, ANY, "AMD Instinct MI100" },
    { 0x738e, ANY, ANY, "AMD Instinct MI100" },
    { 0x7408, ANY, ANY, "AMD Instinct MI250X" },
    { 0x740c, ANY, ANY, "AMD Instinct MI250X/MI250" },
    { 0x740f, ANY, ANY, "AMD Instinct MI210" },
    { 0x74a0, ANY, ANY, "AMD Instinct MI300A" },
    { 0x74a1, ANY, ANY, "AMD Instinct MI300X" },
    { 0x74a2, ANY, ANY, "AMD Instinct MI308X" },
    { 0x74a5, ANY, ANY, "AMD Instinct MI325X" },
    { 0x75a0, ANY, ANY, "AMD Instinct MI350X" },
    { 0x75a3, ANY, ANY, "AMD Instinct MI355X" },
};

static bool row_fits(int wanted, struct num v)
{
    return wanted == ANY || (v.from && v.v == wanted);
}

static const char *find_builtin(struct num device, struct num revision, struct num compute_units)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].device == device.v && row_fits(rows[i].revision, revision) &&
            row_fits(rows[i].compute_units, compute_units))
            return rows[i].name;
    return NULL;
}

/* "1586,\tC1,\tAMD Radeon 8060S Graphics" */
static const char *find_in_amdgpu_ids(struct arena *a, const char *text, struct num device,
                                      struct num revision)
{
    char key[32];
    snprintf(key, sizeof(key), "\n%04X,\t%02X,", (unsigned)device.v & 0xffff, (unsigned)revision.v & 0xff);
    const char *at = strstr(text, key);
    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " \t");
    size_t n = strcspn(at, "\r\n");
    return n ? arena_strndup(a, at, n) : NULL;
}

static struct text from_amdgpu_ids(const struct root *r, struct arena *a, struct num device,
                                   struct num revision)
{
    static const char *const paths[] = { "/usr/share/libdrm/amdgpu.ids",
                                         "/opt/amdgpu/share/libdrm/amdgpu.ids" };
    for (size_t i = 0; i < ARRAY_LEN(paths) && revision.from; i++) {
        const char *text = root_read(r, a, paths[i], NULL);
        const char *name = text ? find_in_amdgpu_ids(a, text, device, revision) : NULL;
        if (name)
            return (struct text){ name, paths[i] };
    }
    return (struct text){ 0 };
}

/* The vendor's section, then the device's line: "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]".  The part in
 * brackets is the product; without it the line is only a code name. */
static const char *find_in_pci_ids(struct arena *a, const char *map, size_t len, struct num device)
{
    const char *section = memmem(map, len, "\n1002  ", 7);
    if (!section)
        return NULL;
    char key[16];
    int n = snprintf(key, sizeof(key), "\n\t%04x  ", (unsigned)device.v & 0xffff);
    const char *stop = map + len, *at = memmem(section, (size_t)(stop - section), key, (size_t)n);
    const char *next = memmem(section + 1, (size_t)(stop - section) - 1, "\n1003  ", 7);
    if (!at || (next && at > next))
        return NULL;
    const char *end = memchr(at + 1, '\n', (size_t)(stop - at) - 1);
    const char *open = end ? memchr(at, '[', (size_t)(end - at)) : NULL;
    const char *close = open ? memrchr(open, ']', (size_t)(end - open)) : NULL;
    return close ? arena_printf(a, "AMD %.*s", (int)(close - open - 1), open + 1) : NULL;
}

static struct text from_pci_ids(const struct root *r, struct arena *a, struct num device)
{
    static const char *const paths[] = { "/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CLEANUP(fd_close) int fd = root_open_file(r, paths[i]);
        struct stat st;
        enum { SANE = 64 << 20 };
        if (fd < 0 || fstat(fd, &st) || st.st_size <= 0 || st.st_size > SANE)
            continue;
        size_t len = (size_t)st.st_size;
        const char *map = os_map(fd, len);
        if (!map)
            continue;
        const char *name = find_in_pci_ids(a, map, len, device);
        os_unmap(map, len);
        if (name)
            return (struct text){ name, paths[i] };
    }
    return (struct text){ 0 };
}

struct text gpu_name_find(const struct root *r, struct arena *a, struct num device, struct num revision,
                          struct num compute_units)
{
    if (!device.from)
        return (struct text){ 0 };
    struct text exact = from_amdgpu_ids(r, a, device, revision);
    if (exact.s)
        return exact;
    const char *builtin = find_builtin(device, revision, compute_units);
    struct text listed = from_pci_ids(r, a, device);
    /* pci.ids lists all products of an id at once; our row may know which of them it is. */
    if (listed.s && (!builtin || !strchr(listed.s, '/')))
        return listed;
    return builtin ? (struct text){ builtin, "built-in table" } : (struct text){ 0 };
}
