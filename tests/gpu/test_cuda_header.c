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

static void numbers_are_those_of_the_header(void)
{
    CHECK_INT(codes.no_memory, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_INT(codes.none[0], CUDA_ERROR_NO_DEVICE);
    CHECK_INT(codes.none[1], CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(codes.units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    CHECK_INT(codes.wave, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    CHECK_INT(codes.shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    CHECK_INT(codes.unified, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    CHECK_INT(ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    CHECK_INT(ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    CHECK_INT(codes.bad_memory, CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK_INT(codes.not_ready, CUDA_ERROR_NOT_READY);
    CHECK_INT(1, CU_STREAM_NON_BLOCKING);
    CHECK_INT(0, CU_EVENT_DEFAULT);
}

int main(void)
{
    RUN(numbers_are_those_of_the_header);
    return check_done();
}
