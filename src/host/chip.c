/* SPDX-License-Identifier: Apache-2.0 */
#include "host/chip.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

/* The kernel's amdgpu_discovery.c and kfd_device.c. */
static const struct gc_row {
    int major, minor, revision;
    const char *gfx;
} gc_rows[] = {
    { 9, 0, 1, "gfx900" },   { 9, 1, 0, "gfx902" },   { 9, 2, 2, "gfx902" },   { 9, 2, 1, "gfx904" },
    { 9, 3, 0, "gfx90c" },   { 9, 4, 0, "gfx906" },   { 9, 4, 1, "gfx908" },   { 9, 4, 2, "gfx90a" },
    { 9, 4, 3, "gfx942" },   { 9, 4, 4, "gfx942" },   { 9, 5, 0, "gfx950" },   { 10, 1, 10, "gfx1010" },
    { 10, 1, 2, "gfx1011" }, { 10, 1, 1, "gfx1012" }, { 10, 1, 3, "gfx1013" }, { 10, 1, 4, "gfx1013" },
    { 10, 3, 0, "gfx1030" }, { 10, 3, 2, "gfx1031" }, { 10, 3, 4, "gfx1032" }, { 10, 3, 1, "gfx1033" },
    { 10, 3, 5, "gfx1034" }, { 10, 3, 3, "gfx1035" }, { 10, 3, 6, "gfx1036" }, { 10, 3, 7, "gfx1036" },
    { 11, 0, 0, "gfx1100" }, { 11, 0, 3, "gfx1101" }, { 11, 0, 2, "gfx1102" }, { 11, 0, 1, "gfx1103" },
    { 11, 0, 4, "gfx1103" }, { 11, 5, 0, "gfx1150" }, { 11, 5, 1, "gfx1151" }, { 11, 5, 2, "gfx1152" },
    { 11, 5, 3, "gfx1153" }, { 12, 0, 0, "gfx1200" }, { 12, 0, 1, "gfx1201" },
};

const char *chip_from_gc(int major, int minor, int revision)
{
    for (size_t i = 0; i < ARRAY_LEN(gc_rows); i++) {
        const struct gc_row *row = &gc_rows[i];
        if (row->major == major && row->minor == minor && row->revision == revision)
            return row->gfx;
    }
    return NULL;
}

/* libhsakmt's gfxip_lookup_table for kernels without gfx_target_version, and pci.ids for newer parts. */
static const struct id_row {
    uint16_t first, last;
    const char *gfx;
} id_rows[] = {
    { 0x1304, 0x131d, "gfx700" },  { 0x9870, 0x9877, "gfx801" },  { 0x67a0, 0x67be, "gfx701" },
    { 0x6920, 0x6939, "gfx802" },  { 0x7300, 0x730f, "gfx803" },  { 0x67c0, 0x67df, "gfx803" },
    { 0x67e0, 0x67ff, "gfx803" },  { 0x6980, 0x699f, "gfx803" },  { 0x694c, 0x694f, "gfx803" },
    { 0x6fdf, 0x6fdf, "gfx803" },  { 0x6860, 0x687f, "gfx900" },  { 0x15dd, 0x15dd, "gfx902" },
    { 0x15d8, 0x15d8, "gfx902" },  { 0x69a0, 0x69a3, "gfx904" },  { 0x69af, 0x69af, "gfx904" },
    { 0x66a0, 0x66a7, "gfx906" },  { 0x66af, 0x66af, "gfx906" },  { 0x7388, 0x7388, "gfx908" },
    { 0x738c, 0x738c, "gfx908" },  { 0x738e, 0x738e, "gfx908" },  { 0x7390, 0x7390, "gfx908" },
    { 0x7408, 0x7408, "gfx90a" },  { 0x740c, 0x740c, "gfx90a" },  { 0x740f, 0x7410, "gfx90a" },
    { 0x15e7, 0x15e7, "gfx90c" },  { 0x1636, 0x1636, "gfx90c" },  { 0x1638, 0x1638, "gfx90c" },
    { 0x164c, 0x164c, "gfx90c" },  { 0x74a0, 0x74a2, "gfx942" },  { 0x74a5, 0x74a5, "gfx942" },
    { 0x74a8, 0x74a9, "gfx942" },  { 0x74b5, 0x74b6, "gfx942" },  { 0x74b9, 0x74b9, "gfx942" },
    { 0x74bd, 0x74bd, "gfx942" },  { 0x75a0, 0x75a0, "gfx950" },  { 0x75a3, 0x75a3, "gfx950" },
    { 0x73f0, 0x73f0, "gfx1102" }, /* Navi 33 among the ids of Navi 23 */
    { 0x7310, 0x731f, "gfx1010" }, { 0x7360, 0x7360, "gfx1011" }, { 0x7362, 0x7362, "gfx1011" },
    { 0x7340, 0x7341, "gfx1012" }, { 0x7347, 0x7347, "gfx1012" }, { 0x734f, 0x734f, "gfx1012" },
    { 0x13f9, 0x13fe, "gfx1013" }, { 0x143f, 0x143f, "gfx1013" }, { 0x73a0, 0x73bf, "gfx1030" },
    { 0x73c0, 0x73df, "gfx1031" }, { 0x73e0, 0x73ff, "gfx1032" }, { 0x163f, 0x163f, "gfx1033" },
    { 0x1435, 0x1435, "gfx1033" }, { 0x7420, 0x743f, "gfx1034" }, { 0x164d, 0x164d, "gfx1035" },
    { 0x1681, 0x1681, "gfx1035" }, { 0x164e, 0x164e, "gfx1036" }, { 0x13c0, 0x13c0, "gfx1036" },
    { 0x1506, 0x1506, "gfx1036" }, { 0x7440, 0x745f, "gfx1100" }, { 0x7460, 0x747f, "gfx1101" },
    { 0x7480, 0x749f, "gfx1102" }, { 0x15bf, 0x15bf, "gfx1103" }, { 0x15c8, 0x15c8, "gfx1103" },
    { 0x1900, 0x1901, "gfx1103" }, { 0x150e, 0x150e, "gfx1150" }, { 0x1586, 0x1586, "gfx1151" },
    { 0x1114, 0x1114, "gfx1152" }, { 0x1902, 0x1902, "gfx1152" }, { 0x7590, 0x759f, "gfx1200" },
    { 0x7550, 0x755f, "gfx1201" },
};

const char *chip_from_device_id(uint64_t device_id)
{
    for (size_t i = 0; i < ARRAY_LEN(id_rows); i++)
        if (device_id >= id_rows[i].first && device_id <= id_rows[i].last)
            return id_rows[i].gfx;
    return NULL;
}

/* The chips for which the kernel sets its own APU flag. */
static const char apus[] = "gfx700 gfx801 gfx902 gfx909 gfx90c gfx1013 gfx1033 gfx1035 gfx1036 gfx1103 "
                           "gfx1150 gfx1151 gfx1152 gfx1153";
static const char cards[] =
    "gfx701 gfx802 gfx803 gfx900 gfx904 gfx906 gfx908 gfx90a gfx950 gfx1010 gfx1011 gfx1012 "
    "gfx1030 gfx1031 gfx1032 gfx1034 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201";

enum gpu_kind chip_kind(const char *gfx, struct num device_id)
{
    enum { MI300A = 0x74a0 };
    if (!strcmp(gfx, "gfx942")) {
        if (!device_id.from)
            return GPU_KIND_UNKNOWN;
        return device_id.v == MI300A ? GPU_INTEGRATED : GPU_DISCRETE;
    }
    if (str_list_has(apus, ' ', gfx))
        return GPU_INTEGRATED;
    return str_list_has(cards, ' ', gfx) ? GPU_DISCRETE : GPU_KIND_UNKNOWN;
}
