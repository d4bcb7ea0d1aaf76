/* SPDX-License-Identifier: Apache-2.0
 * What gpu_cuda.c believes of the CUDA driver against its own header. */
#include <cuda.h>

#define CALLS "cuda_calls.def"
#define RESULT CUresult
#define DEVICE CUdevice
#define ATTRIBUTE CUdevice_attribute
#define CAPTURE_MODE CUstreamCaptureMode
#define ADDRESS CUdeviceptr
#define SOURCE const void *
#define STREAM CUstream
#define EVENT CUevent
#define MODULE CUmodule
#define FUNCTION CUfunction
#define GRAPH CUgraph
#define GRAPH_EXEC CUgraphExec
#include "prototypes.def"

#include "check.h"
#include "gpu/gpu_cuda.c"
#include "header_codes.h"

static void numbers_are_those_of_the_header(void)
{
    CHECK_INT(codes.no_memory, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_INT(codes.none[0], CUDA_ERROR_NO_DEVICE);
    CHECK_INT(codes.none[1], CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(codes.units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    CHECK_INT(codes.wave, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    CHECK_INT(codes.unified, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    CHECK_INT(ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    CHECK_INT(ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    CHECK_INT(FUNCTION_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    CHECK_INT(MAP_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
    CHECK_INT(MAP_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
    CHECK_INT(MAP_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
    CHECK_INT(MAP_SWIZZLE_128, CU_TENSOR_MAP_SWIZZLE_128B);
    CHECK_INT(MAP_CACHE_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
    CHECK_INT(GPU_BOX_BYTES, sizeof(CUtensorMap));
    CHECK_INT(codes.bad_memory, CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK_INT(codes.not_ready, CUDA_ERROR_NOT_READY);
    CHECK_INT(1, CU_STREAM_NON_BLOCKING);
    CHECK_INT(0, CU_EVENT_DEFAULT);
}

/* Those that the header says leave the process in a state that only a new one mends, and those of a driver that is gone. */
static void a_lost_device_is_known_by_its_code(void)
{
    const int lost[] = {
        CUDA_ERROR_DEINITIALIZED,
        CUDA_ERROR_DEVICE_UNAVAILABLE,
        CUDA_ERROR_NO_DEVICE,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_UNKNOWN,
    };
    check_codes(lost, ARRAY_LEN(lost), codes.lost, ARRAY_LEN(codes.lost));
}

int main(void)
{
    RUN(numbers_are_those_of_the_header);
    RUN(a_lost_device_is_known_by_its_code);
    return check_done();
}
