/* SPDX-License-Identifier: Apache-2.0
 * What gpu_hip.c believes of HIP against HIP's own header: prototypes when this is compiled, numbers when it runs. */
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define CALLS "hip_calls.def"
#define RESULT hipError_t
#define DEVICE hipDevice_t
#define ATTRIBUTE hipDeviceAttribute_t
#define CAPTURE_MODE hipStreamCaptureMode
#define ADDRESS hipDeviceptr_t
#define SOURCE void *
#define STREAM hipStream_t
#define EVENT hipEvent_t
#define MODULE hipModule_t
#define FUNCTION hipFunction_t
#define GRAPH hipGraph_t
#define GRAPH_EXEC hipGraphExec_t
#include "prototypes.def"

#define SAME(name, type) _Static_assert(__builtin_types_compatible_p(__typeof__(name), type), #name)
SAME(hipSetDevice, hipError_t(int));
SAME(hipRuntimeGetVersion, hipError_t(int *));
SAME(hipGetErrorName, const char *(hipError_t));
SAME(hipGetDeviceProperties, hipError_t(hipDeviceProp_t *, int));

#include "check.h"
#include "gpu/gpu_hip.c"
#include "header_codes.h"

static void numbers_are_those_of_the_header(void)
{
    CHECK_INT(codes.no_memory, hipErrorOutOfMemory);
    CHECK_INT(codes.none[0], hipErrorNoDevice);
    CHECK_INT(codes.none[1], hipErrorInvalidDevice);
    CHECK_INT(codes.units, hipDeviceAttributeMultiprocessorCount);
    CHECK_INT(codes.wave, hipDeviceAttributeWarpSize);
    CHECK_INT(codes.unified, hipDeviceAttributeIntegrated);
    CHECK_INT(ATTRIBUTE_PHYSICAL_UNITS, hipDeviceAttributePhysicalMultiProcessorCount);
    CHECK_INT(codes.bad_memory, hipErrorECCNotCorrectable);
    CHECK_INT(codes.not_ready, hipErrorNotReady);
    CHECK_INT(1, hipStreamNonBlocking);
    CHECK_INT(0, hipEventDefault);
}

static void a_lost_device_is_known_by_its_code(void)
{
    const int lost[] = {
        hipErrorNotInitialized,
        hipErrorDeinitialized,
        hipErrorNoDevice,
        hipErrorInvalidDevice,
        hipErrorECCNotCorrectable,
        hipErrorIllegalAddress,
        hipErrorLaunchTimeOut,
        hipErrorContextIsDestroyed,
        hipErrorAssert,
        hipErrorLaunchFailure,
        hipErrorUnknown,
    };
    check_codes(lost, ARRAY_LEN(lost), codes.lost, ARRAY_LEN(codes.lost));
}

static void the_chip_is_where_we_read_it(void)
{
    size_t at = offsetof(hipDeviceProp_t, gcnArchName);
    CHECK_INT(at, HIP_VERSION_MAJOR >= 6 ? ARCH_AT_R0600 : ARCH_AT_R0000);
    CHECK(sizeof(hipDeviceProp_t) <= PROPERTIES_BYTES);
}

int main(void)
{
    RUN(numbers_are_those_of_the_header);
    RUN(a_lost_device_is_known_by_its_code);
    RUN(the_chip_is_where_we_read_it);
    return check_done();
}
