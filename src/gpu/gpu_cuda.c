/* SPDX-License-Identifier: Apache-2.0
 * NVIDIA GPUs through the driver's own library; the toolkit's runtime is not needed. */
#include "gpu/device_api.h"

#include <stdio.h>

static const struct device_codes codes = {
    .no_memory = 2,
    .none = { 100, 101 },
    .lost = { 4, 46, 100, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999 },
    .gone = { 4, 46, 100 },
    .bad_memory = 214,
    .not_ready = 600,
    .units = 16,
    .wave = 10,
    .unified = 18,
};
enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, FUNCTION_SHARED = 8 };

static struct {
    struct device_api api;
    int (*context_retain)(void **, int);
    int (*context_release)(int);
    int (*context_set)(void *);
    int (*error_name)(int, const char **);
    int (*function_set)(void *, int, int);
    int (*tensor_map)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                      const uint32_t *, int, int, int, int); /* NULL: the driver is older than CUDA 12 */
    bool tried;
    struct cairn_error failed;
} cuda;

#define AS_ROW(field, hip_name, cuda_name, args) \
    { #cuda_name, offsetof(__typeof__(cuda), api) + offsetof(struct device_api, field), false },
#define AS_OPTIONAL_ROW(field, hip_name, cuda_name, args) \
    { #cuda_name, offsetof(__typeof__(cuda), api) + offsetof(struct device_api, field), true },
static const struct dl_symbol symbols[] = {
    DEVICE_SYMBOLS(AS_ROW) DEVICE_GRAPH_SYMBOLS(AS_OPTIONAL_ROW){
        "cuDevicePrimaryCtxRetain", offsetof(__typeof__(cuda), context_retain), false },
    { "cuDevicePrimaryCtxRelease_v2", offsetof(__typeof__(cuda), context_release), false },
    { "cuCtxSetCurrent", offsetof(__typeof__(cuda), context_set), false },
    { "cuGetErrorName", offsetof(__typeof__(cuda), error_name), false },
    { "cuFuncSetAttribute", offsetof(__typeof__(cuda), function_set), false },
    { "cuTensorMapEncodeTiled", offsetof(__typeof__(cuda), tensor_map), true },
};

static const char *error_name(int code)
{
    const char *name = NULL;
    if (code < 0)
        return "failure for a test";
    return cuda.error_name(code, &name) || !name ? "an unknown error" : name;
}

static int bind(struct gpu *g, struct cairn_error *err)
{
    void *context;
    int code = cuda.context_retain(&context, g->info.index);
    if (!code)
        code = cuda.context_set(context);
    return code ? device_fail(g, &cuda.api, code, "choose the device", err) : 0;
}

static void unbind(struct gpu *g)
{
    cuda.context_set(NULL);
    cuda.context_release(g->info.index);
}

static int describe(struct gpu_info *info, struct cairn_error *err)
{
    int major = 0, minor = 0;
    if (cuda.api.device_attribute(&major, ATTRIBUTE_MAJOR, info->index) ||
        cuda.api.device_attribute(&minor, ATTRIBUTE_MINOR, info->index))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the driver does not report the chip", info->name);
    snprintf(info->arch, sizeof(info->arch), "sm_%d%d", major, minor);
    cuda.api.driver_version(&info->driver);
    info->runtime = info->driver;
    return 0;
}

static int allow_shared(void *function, unsigned bytes)
{
    return cuda.function_set(function, FUNCTION_SHARED, (int)bytes);
}

enum { MAP_F16 = 6, MAP_F32 = 7, MAP_BF16 = 9, MAP_SWIZZLE_128 = 3, MAP_CACHE_256 = 3 };

static int box_map(struct gpu *g, const struct gpu_box_map *map, void *out, struct cairn_error *err)
{
    static const int types[] = { [GPU_F32] = MAP_F32, [GPU_BF16] = MAP_BF16, [GPU_F16] = MAP_F16 };
    if (!cuda.tensor_map)
        return cairn_fail(err, CAIRN_ELACK, "%s: %s has no maps of tensors", g->info.name, cuda.api.library);
    int code = cuda.tensor_map(out, types[map->storage], map->rank, (void *)map->at, map->sizes, map->strides,
                               map->box, map->steps, 0, MAP_SWIZZLE_128, MAP_CACHE_256, 0);
    return code ? device_fail(g, &cuda.api, code, "describe a tensor", err) : 0;
}

static int load(struct cairn_error *err)
{
    static const char *const names[] = { "libcuda.so.1", NULL };
    void *library;
    if (dl_open(names, NULL, &library, cuda.api.library, sizeof(cuda.api.library), err))
        return -1;
    cuda.api.codes = &codes;
    cuda.api.prefix = "cuda";
    cuda.api.bind = bind;
    cuda.api.unbind = unbind;
    cuda.api.describe = describe;
    cuda.api.error_name = error_name;
    cuda.api.allow_shared = allow_shared;
    return dl_resolve(library, cuda.api.library, symbols, ARRAY_LEN(symbols), &cuda, err);
}

static int ready(struct cairn_error *err)
{
    if (!cuda.tried) {
        cuda.tried = true;
        load(&cuda.failed);
    }
    if (cuda.failed.code)
        *err = cuda.failed;
    return cuda.failed.code ? -1 : 0;
}

static int list(struct arena *a, struct gpu_info **infos, size_t *n, struct cairn_error *err)
{
    return ready(err) ? -1 : device_list(&cuda.api, GPU_API_CUDA, a, infos, n, err);
}

static int open_device(struct gpu *g, struct cairn_error *err)
{
    return ready(err) ? -1 : device_open(g, &cuda.api, err);
}

const struct gpu_backend gpu_cuda = {
    .api = GPU_API_CUDA, .list = list, .open = open_device, .box_map = box_map, DEVICE_BACKEND
};
