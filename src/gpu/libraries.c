/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/libraries.h"

#include "gpu/dl.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const hip[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                   "libamdhip64.so", NULL };
/* ROCm 5 and 6 have the compiler in the runtime as well. */
static const char *const hiprtc[] = { "libhiprtc.so.7",
                                      "libhiprtc.so.6",
                                      "libhiprtc.so.5",
                                      "libhiprtc.so",
                                      "libamdhip64.so.6",
                                      "libamdhip64.so.5",
                                      NULL };
static const char *const hipblaslt[] = { "libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so", NULL };
static const char *const rocblas[] = { "librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                       "librocblas.so.0", "librocblas.so",   NULL };
static const char *const nvrtc[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                                     NULL };
static const char *const cublaslt[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", NULL };

static const char *const open_mpi[] = { "libmpi.so.40", NULL };
/* Debian's name is the second; the last is MPI 5's own interface. */
static const char *const mpich[] = { "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", NULL };

static const char *const *names_of(enum library l)
{
    static const char *const *const names[] = { hip,   hiprtc,   hipblaslt, rocblas,
                                                nvrtc, cublaslt, open_mpi,  mpich };
    return names[l];
}

static void folder_of(enum library l, char *out, size_t size)
{
    bool rocm = l <= LIBRARY_ROCBLAS;
    const char *root = getenv(rocm ? "ROCM_PATH" : "CUDA_HOME");
    snprintf(out, size, "%s/%s",
             root && root[0] ? root
             : rocm          ? "/opt/rocm"
                             : "/usr/local/cuda",
             rocm ? "lib" : "lib64");
}

static struct {
    const struct library_set *sets;
    size_t n, chosen;
} offered;

void library_offer(const struct library_set *sets, size_t n)
{
    offered.sets = sets;
    offered.n = n;
    offered.chosen = 0;
}

size_t library_offered(void)
{
    return offered.n;
}

void library_choose(size_t set)
{
    offered.chosen = set;
}

const struct library_set *library_chosen(void)
{
    return offered.chosen < offered.n ? &offered.sets[offered.chosen] : NULL;
}

const char *library_file(enum library l)
{
    const struct library_set *set = l <= LIBRARY_ROCBLAS ? library_chosen() : NULL;
    return set && set->file[l] ? set->file[l] : "";
}

int library_open(enum library l, void **handle, char *path, size_t size, struct cairn_error *err)
{
    char folder[256];
    const struct library_set *set = l <= LIBRARY_ROCBLAS ? library_chosen() : NULL;
    if (set && !set->file[l])
        return cairn_fail(err, CAIRN_ELACK, "%s has no %s", set->what, names_of(l)[0]);
    if (set) {
        snprintf(path, size, "%s", set->file[l]);
        return dl_open_file(set->file[l], handle, err);
    }
    folder_of(l, folder, sizeof(folder));
    const char *const folders[] = { l < LIBRARY_OPEN_MPI ? folder : NULL, NULL };
    return dl_open(names_of(l), folders, handle, path, size, err);
}
