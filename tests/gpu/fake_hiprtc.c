/* SPDX-License-Identifier: Apache-2.0
 * A libhiprtc.so.7 for tests: "compiles" a text to a token with the names of its kernels.  compile=error, abort,
 * killed or garbage in CAIRN_FAKE_HIP make it fail; code=BYTES adds so many to what it
 * makes. */
#include "fake.h"
#include <signal.h>
#include <stdio.h>

int hiprtcCreateProgram(void **program, const char *text, const char *name, int n, const char **headers,
                        const char **names);
int hiprtcCompileProgram(void *program, int n, const char **options);
int hiprtcGetProgramLogSize(void *program, size_t *n);
int hiprtcGetProgramLog(void *program, char *log);
int hiprtcGetCodeSize(void *program, size_t *n);
int hiprtcGetCode(void *program, char *code);
const char *hiprtcGetErrorString(int code);

enum { COMPILATION = 6 };
static const char log_text[] = "norm.k:7:3: error: told to fail\n";
static char *source, *token;
static size_t token_size;

int hiprtcCreateProgram(void **program, const char *text, const char *name, int n, const char **headers,
                        const char **names)
{
    (void)name, (void)n, (void)headers, (void)names;
    source = strdup(text);
    *program = &source;
    return 0;
}

/* Kernels of 16-bit formats only are named by the texts of the others too; nobody asks for them. */
static void write_names(FILE *out)
{
    static const char *const suffixes[] = { "_f32", "_bf16", "_f16" };
    const char *storage = strstr(source, "#define K_STORAGE ");
    const char *size = strstr(source, "#define K_SIZE ");
    int s = storage ? storage[strlen("#define K_STORAGE ")] - '0' : 0;
    for (const char *at = source; (at = strstr(at, "\nK_KERNEL")); at++) {
        const char *name = strchr(at, '(') + 1;
        fprintf(out, "%.*s", (int)strcspn(name, ",)"), name);
        if (size && !strncmp(at, "\nK_KERNEL_SIZED", strlen("\nK_KERNEL_SIZED")))
            fprintf(out, "_%d", atoi(size + strlen("#define K_SIZE ")));
        fprintf(out, "%s\n", suffixes[s]);
    }
    if (strstr(source, "#define K_DEBUG 1\n"))
        fputs(&FAKE_DEBUG[1], out);
}

int hiprtcCompileProgram(void *program, int n, const char **options)
{
    (void)program;
    const char *how = fake_word("compile"), *more = fake_word("code"), *arch = NULL;
    for (int i = 0; i < n; i++)
        if (!strncmp(options[i], "--offload-arch=", 15))
            arch = options[i] + 15;
    if (how && !strncmp(how, "abort", 5))
        abort();
    if (how && !strncmp(how, "killed", 6))
        raise(SIGKILL);
    if (!arch || (how && !strncmp(how, "error", 5)))
        return COMPILATION;
    FILE *out = open_memstream(&token, &token_size);
    fprintf(out, FAKE_MAGIC "%s\n", how && !strncmp(how, "garbage", 7) ? "garbage" : arch);
    write_names(out);
    fputc('\0', out);
    for (long left = more ? atol(more) : 0; left > 0; left--)
        fputc('x', out);
    fclose(out);
    return 0;
}

int hiprtcGetProgramLogSize(void *program, size_t *n)
{
    (void)program;
    *n = sizeof(log_text);
    return 0;
}

int hiprtcGetProgramLog(void *program, char *log)
{
    (void)program;
    memcpy(log, log_text, sizeof(log_text));
    return 0;
}

int hiprtcGetCodeSize(void *program, size_t *n)
{
    (void)program;
    *n = token_size;
    return 0;
}

int hiprtcGetCode(void *program, char *code)
{
    (void)program;
    memcpy(code, token, token_size);
    return 0;
}

const char *hiprtcGetErrorString(int code)
{
    return code == COMPILATION ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_SUCCESS";
}
