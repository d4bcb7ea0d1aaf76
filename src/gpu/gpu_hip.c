/* SPDX-License-Identifier: Apache-2.0
 * AMD GPUs through HIP, whichever of ROCm 5 to 7 is installed.
 *
 * Of the structs only one text is read, gcnArchName, whose place is known in both layouts; of the constants
 * only those that never changed since HIP 5.0. */
#include "base/str.h"
#include "chip/gfx_table.h"
#include "gpu/compile.h"
#include "gpu/device_api.h"
#include "gpu/libraries.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device_codes codes = {
    .no_memory = 2,
    .none = { 100, 101 }, /* hipInit answers "invalid device" where there is none */
    .lost = { 3, 4, 100, 101, 214, 700, 702, 709, 710, 719, 999 },
    .gone = { 3, 4, 100, 101 },
    .bad_memory = 214,
    .not_ready = 600,
    .units = 63,
    .wave = 87,
    .unified = 16,
};
enum { ATTRIBUTE_PHYSICAL_UNITS = 10015, LEAST_VERSION = 50000000 };
enum { PROPERTIES_BYTES = 8192, ARCH_AT_R0600 = 1160, ARCH_AT_R0000 = 396 };

static struct {
    struct device_api api;
    int (*set_device)(int);
    int (*runtime_version)(int *);
    const char *(*error_name)(int);
    int (*properties)(void *, int);        /* 6.0 and newer */
    int (*properties_before)(void *, int); /* in the old layout, also in newer libraries */
    bool tried;
    struct cairn_error failed;
} hip;

#define AS_ROW(field, hip_name, cuda_name, args) \
    { #hip_name, offsetof(__typeof__(hip), api) + offsetof(struct device_api, field), false },
#define AS_OPTIONAL_ROW(field, hip_name, cuda_name, args) \
    { #hip_name, offsetof(__typeof__(hip), api) + offsetof(struct device_api, field), true },
static const struct dl_symbol symbols[] = {
    DEVICE_SYMBOLS(AS_ROW)
        DEVICE_GRAPH_SYMBOLS(AS_OPTIONAL_ROW){ "hipSetDevice", offsetof(__typeof__(hip), set_device), false },
    { "hipRuntimeGetVersion", offsetof(__typeof__(hip), runtime_version), false },
    { "hipGetErrorName", offsetof(__typeof__(hip), error_name), false },
    { "hipGetDevicePropertiesR0600", offsetof(__typeof__(hip), properties), true },
    { "hipGetDeviceProperties", offsetof(__typeof__(hip), properties_before), true },
};

static const char *error_name(int code)
{
    return code < 0 ? "failure for a test" : hip.error_name(code);
}

static int bind(struct gpu *g, struct cairn_error *err)
{
    int code = hip.set_device(g->info.index);
    return code ? device_fail(g, &hip.api, code, "choose the device", err) : 0;
}

static void unbind(struct gpu *g)
{
    (void)g;
}

/* Only text that begins with "gfx" is accepted. */
static int describe(struct gpu_info *info, struct cairn_error *err)
{
    CLEANUP(mem_free) char *properties = calloc(1, PROPERTIES_BYTES);
    const char *arch = NULL;
    if (properties && hip.properties && !hip.properties(properties, info->index))
        arch = properties + ARCH_AT_R0600;
    else if (properties && hip.properties_before && !hip.properties_before(properties, info->index))
        arch = properties + ARCH_AT_R0000;
    if (!arch || strncmp(arch, "gfx", 3))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the runtime does not report the chip", info->name);
    snprintf(info->arch, sizeof(info->arch), "%s", arch);
    info->chip = gfx_find_arch(info->arch);
    hip.api.driver_version(&info->driver);
    hip.runtime_version(&info->runtime);
    int units;
    if (!hip.api.device_attribute(&units, ATTRIBUTE_PHYSICAL_UNITS, info->index) && units > 0)
        info->units = units;
    return 0;
}

static int load_set(struct cairn_error *err)
{
    void *library;
    if (library_open(LIBRARY_HIP, &library, hip.api.library, sizeof(hip.api.library), err))
        return -1;
    if (dl_resolve(library, hip.api.library, symbols, ARRAY_LEN(symbols), &hip, err))
        return -1;
    int version = 0;
    if (hip.runtime_version(&version) || version < LEAST_VERSION)
        return cairn_fail(err, CAIRN_ELACK, "%s is version %d.%d; cairn needs 5.0 or newer", hip.api.library,
                          version / 10000000, version / 100000 % 100);
    hip.api.codes = &codes;
    hip.api.prefix = "hip";
    hip.api.bind = bind;
    hip.api.unbind = unbind;
    hip.api.describe = describe;
    hip.api.error_name = error_name;
    return 0;
}

/* Opens the first usable ROCm; hip.api.passed_over says why earlier ones were not. */
static int load(struct cairn_error *err)
{
    CLEANUP(str_release) struct str passed = { 0 };
    size_t n = library_offered();
    for (size_t i = 0; i <= n; i++) {
        struct cairn_error why = { 0 };
        library_choose(i);
        /* A runtime cannot be closed again, so its compiler is tested first if there is an alternative. */
        if (!(i + 1 < n && compile_opens(&why)) && !load_set(&why)) {
            const struct library_set *set = library_chosen();
            snprintf(hip.api.passed_over, sizeof(hip.api.passed_over), "%s", passed.len ? passed.s : "");
            snprintf(hip.api.source, sizeof(hip.api.source), "%s", set ? set->what : "");
            return 0;
        }
        if (i < n || !n)
            str_addf(&passed, "%s%s", passed.len ? "; " : "", why.msg);
    }
    return cairn_fail(err, CAIRN_ELACK, "%s", passed.s);
}

static int ready(struct cairn_error *err)
{
    if (!hip.tried) {
        hip.tried = true;
        load(&hip.failed);
    }
    if (hip.failed.code)
        *err = hip.failed;
    return hip.failed.code ? -1 : 0;
}

static int list(struct arena *a, struct gpu_info **infos, size_t *n, struct cairn_error *err)
{
    if (ready(err))
        return -1;
    int r = device_list(&hip.api, GPU_API_HIP, a, infos, n, err);
    if (r && hip.api.passed_over[0] && !err->hint[0])
        cairn_hint(err, "not used: %s", hip.api.passed_over);
    return r;
}

static int open_device(struct gpu *g, struct cairn_error *err)
{
    return ready(err) ? -1 : device_open(g, &hip.api, err);
}

const struct gpu_backend gpu_hip = { .api = GPU_API_HIP, .list = list, .open = open_device, DEVICE_BACKEND };
