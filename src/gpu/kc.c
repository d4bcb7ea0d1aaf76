/* SPDX-License-Identifier: Apache-2.0
 * cairn-kc: compiles kernels in a process of its own, because the vendors' compilers may abort.
 *
 *     cairn-kc hip|cuda ARCH NAME PARENT HIP LIBRARY <text >code
 *     cairn-kc probe DEVICE rocblas|hipblaslt PARENT HIP LIBRARY
 *     cairn-kc probe - hiprtc PARENT HIP LIBRARY
 *
 * The second opens a library that may abort the process on an unknown chip, to see whether it does, and
 * prints the path of its file; the third does so with the compiler.  HIP and LIBRARY are the files of the
 * runtime and of the compiler or library to open; empty: they are found by name. Exit: 0 done, 1 the text
 * does not compile, 3 no compiler on this machine.  Not for people; cairn starts it. */
#include "gpu/dl.h"
#include "gpu/libraries.h"
#include "os/file.h"
#include "os/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct rtc {
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*code_size)(void *, size_t *);
    int (*code)(void *, char *);
    const char *(*error)(int);
};

#define ROW(field, name)                         \
    {                                            \
        name, offsetof(struct rtc, field), false \
    }
static const struct dl_symbol hip_symbols[] = {
    ROW(create, "hiprtcCreateProgram"),       ROW(compile, "hiprtcCompileProgram"),
    ROW(log_size, "hiprtcGetProgramLogSize"), ROW(log, "hiprtcGetProgramLog"),
    ROW(code_size, "hiprtcGetCodeSize"),      ROW(code, "hiprtcGetCode"),
    ROW(error, "hiprtcGetErrorString"),
};
static const struct dl_symbol cuda_symbols[] = {
    ROW(create, "nvrtcCreateProgram"),       ROW(compile, "nvrtcCompileProgram"),
    ROW(log_size, "nvrtcGetProgramLogSize"), ROW(log, "nvrtcGetProgramLog"),
    ROW(code_size, "nvrtcGetCUBINSize"),     ROW(code, "nvrtcGetCUBIN"),
    ROW(error, "nvrtcGetErrorString"),
};

enum { DONE = 0, BAD_TEXT = 1, NO_COMPILER = 3 };

static int fail(int code, const char *what)
{
    fprintf(stderr, "%s\n", what);
    return code;
}

static char *read_text(void)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) || st.st_size <= 0)
        return NULL;
    char *text = calloc(1, (size_t)st.st_size + 1);
    if (text && os_read_at(STDIN_FILENO, text, (size_t)st.st_size, 0) != st.st_size) {
        free(text);
        return NULL;
    }
    return text;
}

/* What cairn chose, for library_open. */
static void offer(const char *hip, const char *file, enum library l)
{
    static struct library_set set = { .what = "this ROCm" };
    set.file[LIBRARY_HIP] = hip[0] ? hip : NULL;
    set.file[l] = file[0] ? file : NULL;
    if (file[0])
        library_offer(&set, 1);
}

static int load(struct rtc *rtc, bool hip, struct cairn_error *err)
{
    char path[512];
    void *library;
    if (library_open(hip ? LIBRARY_HIPRTC : LIBRARY_NVRTC, &library, path, sizeof(path), err))
        return -1;
    return hip ? dl_resolve(library, path, hip_symbols, sizeof(hip_symbols) / sizeof(hip_symbols[0]), rtc,
                            err)
               : dl_resolve(library, path, cuda_symbols, sizeof(cuda_symbols) / sizeof(cuda_symbols[0]), rtc,
                            err);
}

static int write_all(const char *bytes, size_t n)
{
    while (n) {
        ssize_t w = write(STDOUT_FILENO, bytes, n);
        if (w <= 0)
            return -1;
        bytes += w, n -= (size_t)w;
    }
    return 0;
}

static void show_log(const struct rtc *rtc, void *program)
{
    size_t n = 0;
    if (rtc->log_size(program, &n) || n < 2)
        return;
    char *log = calloc(1, n + 1);
    if (log && !rtc->log(program, log))
        fprintf(stderr, "%s", log);
    free(log);
}

static int compile(const struct rtc *rtc, bool hip, const char *arch, const char *name, const char *text)
{
    char target[96];
    snprintf(target, sizeof(target), hip ? "--offload-arch=%s" : "--gpu-architecture=%s", arch);
    const char *const hip_options[] = { target, "-O3", "-ffp-contract=off" };
    const char *const cuda_options[] = { target, "--fmad=false", "--extra-device-vectorization" };
    void *program;
    int r = rtc->create(&program, text, name, 0, NULL, NULL);
    if (!r)
        r = rtc->compile(program, 3, hip ? hip_options : cuda_options);
    if (r) {
        show_log(rtc, program);
        return fail(BAD_TEXT, rtc->error(r));
    }
    size_t n = 0;
    char *code = rtc->code_size(program, &n) || !n ? NULL : malloc(n);
    if (!code || rtc->code(program, code) || write_all(code, n))
        return fail(BAD_TEXT, "cannot write the code");
    return DONE;
}

/* ---- libraries that may abort ---- */

struct probed {
    int (*set_device)(int);
    int (*create)(void **handle);
    void (*initialize)(void); /* rocBLAS loads its files for the chip here */
};

static int probe(int device, const char *library, const char *hip, const char *file)
{
    static const struct dl_symbol hip_rows[] = { { "hipSetDevice", offsetof(struct probed, set_device),
                                                   false } };
    static const struct dl_symbol rocblas_rows[] = {
        { "rocblas_create_handle", offsetof(struct probed, create), false },
        { "rocblas_initialize", offsetof(struct probed, initialize), false },
    };
    static const struct dl_symbol hipblaslt_rows[] = {
        { "hipblasLtCreate", offsetof(struct probed, create), false },
    };
    bool roc = !strcmp(library, "rocblas");
    char path[512];
    struct cairn_error err = { 0 };
    struct probed p = { 0 };
    void *handle, *opened;
    offer(hip, file, roc ? LIBRARY_ROCBLAS : LIBRARY_HIPBLASLT);
    if (library_open(LIBRARY_HIP, &opened, path, sizeof(path), &err) ||
        dl_resolve(opened, path, hip_rows, 1, &p, &err) ||
        library_open(roc ? LIBRARY_ROCBLAS : LIBRARY_HIPBLASLT, &opened, path, sizeof(path), &err) ||
        (roc ? dl_resolve(opened, path, rocblas_rows, 2, &p, &err)
             : dl_resolve(opened, path, hipblaslt_rows, 1, &p, &err)))
        return fail(NO_COMPILER, err.msg);
    puts(path); /* which file it is about */
    fflush(stdout);
    if (p.set_device(device))
        return fail(BAD_TEXT, "cannot select the device");
    if (p.create(&handle))
        return fail(BAD_TEXT, "cannot initialize the library for the device");
    if (p.initialize)
        p.initialize();
    return DONE;
}

static int probe_compiler(const char *hip, const char *file)
{
    struct cairn_error err = { 0 };
    struct rtc rtc;
    offer(hip, file, LIBRARY_HIPRTC);
    puts(file);
    fflush(stdout);
    return load(&rtc, true, &err) ? fail(NO_COMPILER, err.msg) : DONE;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return fail(2, "cairn-kc is run by cairn, not by hand");
    if (os_follow_parent(atoi(argv[4])))
        return fail(2, "cairn has ended");
    if (!strcmp(argv[1], "probe"))
        _exit(!strcmp(argv[3], "hiprtc") ? probe_compiler(argv[5], argv[6])
                                         : probe(atoi(argv[2]), argv[3], argv[5], argv[6]));
    bool hip = !strcmp(argv[1], "hip");
    struct cairn_error err = { 0 };
    struct rtc rtc;
    char *text = read_text();
    if (hip)
        offer(argv[5], argv[6], LIBRARY_HIPRTC);
    if (!text)
        return fail(BAD_TEXT, "no kernel source on standard input");
    if (load(&rtc, hip, &err))
        return fail(NO_COMPILER, err.msg);
    /* Skips the compiler's own cleanup: ROCm 5's may crash there. */
    int code = compile(&rtc, hip, argv[2], argv[3], text);
    fflush(stderr);
    _exit(code);
}
