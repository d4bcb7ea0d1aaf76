/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/compile.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/own.h"
#include "base/str.h"
#include "config.h"
#include "gpu/libraries.h"
#include "os/path.h"
#include "os/process.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_S = 120, KEPT_LOG = 4096 };

void compile_text_hash(const struct kernel_text *t, char out[33])
{
    const char *const parts[] = { kernel_types, t->args, kernel_prelude, t->body };
    struct hash h;
    hash_init(&h);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        hash_add(&h, parts[i], strlen(parts[i]));
    hash_end_text(&h, out);
}

/* ---- the cache ---- */

struct entry_head {
    char magic[8];
    uint64_t size;
    uint64_t hash[2];
};
static const char magic[8] = "cairnkc1";

static void hash_code(const void *code, size_t size, uint64_t out[2])
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, code, size);
    hash_end(&h, out);
}

/* The cache key: everything that the code depends on. */
static void entry_name(const struct compile_job *job, const char *source, struct str *out)
{
    char hash[33];
    struct hash h;
    hash_init(&h);
    hash_add_text(&h, CAIRN_VERSION);
    hash_add_text(&h, job->arch);
    hash_add_u64(&h, (uint64_t)job->api);
    hash_add_u64(&h, (uint64_t)job->version);
    hash_add_text(&h, source);
    hash_end_text(&h, hash);
    str_addf(out, "%s-%s-%.20s-%s.co", job->text->file, gpu_storage_name(job->storage), job->arch, hash);
}

static int entry_read(const struct own_dir *d, const char *name, void **code, size_t *size)
{
    struct cairn_error err;
    CLEANUP(fd_close) int fd = -1;
    CLEANUP(mem_free) void *bytes = NULL;
    struct entry_head head;
    struct stat st;
    if (own_file_open(d, name, OS_READ, &fd, &err) || fstat(fd, &st) || (size_t)st.st_size < sizeof(head) ||
        file_read_at(fd, name, &head, sizeof(head), 0, &err) || memcmp(head.magic, magic, sizeof(magic)) ||
        head.size != (size_t)st.st_size - sizeof(head))
        return -1;
    bytes = malloc(head.size + 1);
    uint64_t hash[2];
    if (!bytes || file_read_at(fd, name, bytes, head.size, sizeof(head), &err))
        return -1;
    hash_code(bytes, head.size, hash);
    if (memcmp(hash, head.hash, sizeof(hash)))
        return -1;
    *code = TAKE(bytes);
    *size = head.size;
    return 0;
}

/* A failure here only costs the next start some time. */
static void entry_write(const struct own_dir *d, const char *name, const void *code, size_t size)
{
    struct cairn_error err;
    struct entry_head head = { .size = size };
    memcpy(head.magic, magic, sizeof(magic));
    hash_code(code, size, head.hash);
    CLEANUP(file_out_close) struct file_out f = FILE_OUT_NONE;
    if (file_out_open_at(&f, d->fd, name, sizeof(head) + size, true, &err) ||
        file_out_write(&f, &head, sizeof(head), 0, &err) ||
        file_out_write(&f, code, size, sizeof(head), &err))
        return;
    file_out_commit(&f, &err);
}

/* ---- the child ---- */

/* The path in CAIRN_KC; else beside the program (a build folder, an unpacked archive), else where `make
 * install` puts it. */
static int find_compiler(char *path, size_t size, struct cairn_error *err)
{
    const char *value = getenv("CAIRN_KC");
    if (value && value[0]) {
        snprintf(path, size, "%s", value);
        return access(path, X_OK) ? cairn_fail_errno(err, "CAIRN_KC: %s", value) : 0;
    }
    static const char *const places[] = { "", "../libexec/cairn" };
    char self[512];
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (!path_beside_program(places[i], "cairn-kc", path, size) && !access(path, X_OK))
            return 0;
    return cairn_fail(err, CAIRN_ELACK,
                      "the kernel compiler cairn-kc is neither beside %s nor in ../libexec/cairn",
                      path_program(self, sizeof(self)) ? "the program" : self);
}

struct child {
    int in, out, log; /* memory files */
};

static void child_close(struct child *c)
{
    fd_close(&c->in);
    fd_close(&c->out);
    fd_close(&c->log);
}

static int child_files(struct child *c, const char *source, struct cairn_error *err)
{
    c->in = os_open_memory("kernel text");
    c->out = os_open_memory("kernel code");
    c->log = os_open_memory("compiler's log");
    size_t n = strlen(source);
    if (c->in < 0 || c->out < 0 || c->log < 0 || os_write_at(c->in, source, n, 0) != (ssize_t)n)
        return cairn_fail_errno(err, "memory for the compiler's files");
    return 0;
}

/* What the child is to do, and with which files. */
struct child_task {
    const char *mode, *target, *name;
    enum library library;
};

static int child_spawn(const struct child *c, const struct child_task *t, pid_t *pid, struct cairn_error *err)
{
    char path[600], parent[16];
    if (find_compiler(path, sizeof(path), err))
        return -1;
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    const char *argv[] = {
        path, t->mode, t->target, t->name, parent, library_file(LIBRARY_HIP), library_file(t->library), NULL
    };
    const int files[] = { c->in, c->out, c->log };
    return os_spawn(path, argv, files, pid) ? cairn_fail_errno(err, "start %s", path) : 0;
}

static int child_verdict(const struct child *c, const struct compile_job *job, const struct os_end *end,
                         struct cairn_error *err)
{
    char log[KEPT_LOG];
    ssize_t n = os_read_at(c->log, log, sizeof(log) - 1, 0);
    log[n > 0 ? n : 0] = '\0';
    log[strcspn(log, "\n")] = '\0'; /* the first error causes the rest */
    if (end->signal) {
        cairn_fail(err, CAIRN_ELACK, "compile %s for %s: the compiler was killed by signal %d%s%s",
                   job->text->file, job->arch, end->signal, log[0] ? ": " : "", log);
        return cairn_hint(err, end->signal == SIGKILL
                                   ? "`dmesg` shows whether the kernel's OOM killer did it; try again"
                                   : "this ROCm may be older than the chip; try a newer one");
    }
    return cairn_fail(err, CAIRN_ELACK, "compile %s for %s: %s", job->text->file, job->arch,
                      log[0] ? log : "the compiler gave no reason");
}

static int run_compiler(const struct compile_job *job, const char *source, void **code, size_t *size,
                        struct cairn_error *err)
{
    CLEANUP(child_close) struct child c = { -1, -1, -1 };
    pid_t pid;
    struct os_end end;
    bool hip = job->api == GPU_API_HIP;
    const struct child_task task = { hip ? "hip" : "cuda", job->arch, job->text->file,
                                     hip ? LIBRARY_HIPRTC : LIBRARY_NVRTC };
    if (child_files(&c, source, err) || child_spawn(&c, &task, &pid, err))
        return -1;
    if (os_wait(pid, LIMIT_S, &end))
        return cairn_fail(err, CAIRN_ELACK, "compile %s for %s: timed out after %d s", job->text->file,
                          job->arch, LIMIT_S);
    if (end.signal || end.code)
        return child_verdict(&c, job, &end, err);
    struct stat st;
    if (fstat(c.out, &st) || st.st_size <= 0)
        return cairn_fail(err, CAIRN_ELACK, "compile %s for %s: the compiler wrote no code", job->text->file,
                          job->arch);
    CLEANUP(mem_free) void *bytes = malloc((size_t)st.st_size);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %lld bytes of code", (long long)st.st_size);
    if (file_read_at(c.out, "the compiler's output", bytes, (size_t)st.st_size, 0, err))
        return -1;
    *code = TAKE(bytes);
    *size = (size_t)st.st_size;
    return 0;
}

int compile_kernels(const struct compile_job *job, void **code, size_t *size, struct cairn_error *err)
{
    CLEANUP(str_release) struct str source = { 0 }, name = { 0 };
    CLEANUP(own_dir_close) struct own_dir cache = OWN_DIR_NONE;
    struct cairn_error none;
    str_addf(&source, "#define K_STORAGE %d\n%s", (int)job->storage, job->debug ? "#define K_DEBUG 1\n" : "");
    str_addf(&source, "#line 1 \"types.h\"\n%s#line 1 \"%s.h\"\n%s", kernel_types, job->text->file,
             job->text->args);
    str_addf(&source, "#line 1 \"prelude.k\"\n%s#line 1 \"%s.k\"\n%s", kernel_prelude, job->text->file,
             job->text->body);
    bool keep = !own_cache_open(&cache, "kernels", &none);
    entry_name(job, source.s, &name);
    if (keep && !entry_read(&cache, name.s, code, size))
        return 0;
    if (run_compiler(job, source.s, code, size, err))
        return -1;
    if (keep)
        entry_write(&cache, name.s, *code, *size);
    return 0;
}

/* ---- libraries that may abort the process ---- */

static enum library library_of(const char *name)
{
    return !strcmp(name, "rocblas")  ? LIBRARY_ROCBLAS
           : !strcmp(name, "hiprtc") ? LIBRARY_HIPRTC
                                     : LIBRARY_HIPBLASLT;
}

/* What a child process found out, for one chip and driver.  Valid while the library and its folder of kernels
 * are unchanged. */
struct finding {
    char verdict[8], file[512], stamp[80], why[256];
};

static void make_stamp(const char *file, const char *library, char out[80])
{
    struct stat lib = { 0 }, kernels = { 0 };
    char folder[700];
    snprintf(folder, sizeof(folder), "%.*s/%s/library", (int)(path_name(file) - file), file, library);
    if (stat(file, &lib))
        lib.st_size = -1;
    stat(folder, &kernels);
    snprintf(out, 80, "%lld %lld %lld", (long long)lib.st_size, (long long)lib.st_mtime,
             (long long)kernels.st_mtime);
}

/* Does not cover a kernel folder that an environment variable names. */
static bool open_findings(struct own_dir *d)
{
    struct cairn_error none;
    return !getenv("ROCBLAS_TENSILE_LIBPATH") && !getenv("HIPBLASLT_TENSILE_LIBPATH") &&
           !own_cache_open(d, "probe", &none);
}

static bool finding_read(const struct own_dir *d, const char *name, const char *library, struct finding *out)
{
    char now[80];
    struct cairn_error none;
    int fd;
    *out = (struct finding){ 0 };
    FILE *f = own_file_open(d, name, OS_READ, &fd, &none) ? NULL : fdopen(fd, "r");
    int n = f ? fscanf(f, "%7[a-z]\n%511[^\n]\n%79[^\n]\n%255[^\n]", out->verdict, out->file, out->stamp,
                       out->why)
              : 0;
    if (f)
        fclose(f);
    if (n < 3)
        return false;
    make_stamp(out->file, library, now);
    const char *file = library_file(library_of(library)); /* another ROCm may have been probed last */
    return !strcmp(now, out->stamp) && (!file[0] || !strcmp(file, out->file));
}

static void finding_write(const struct own_dir *d, const char *name, const char *library,
                          struct finding *found)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct cairn_error none;
    if (!found->file[0])
        return;
    make_stamp(found->file, library, found->stamp);
    str_addf(&text, "%s\n%s\n%s\n%s\n", found->verdict, found->file, found->stamp, found->why);
    own_file_write(d, name, text.s, text.len, &none);
}

/* The first line of what the child wrote. */
static void read_line(int fd, char *out, size_t size)
{
    ssize_t n = os_read_at(fd, out, size - 1, 0);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* info is NULL for the compiler, which needs no device. */
static int probe_in_child(const struct gpu_info *info, const char *library, struct finding *out,
                          struct cairn_error *err)
{
    CLEANUP(child_close) struct child c = { -1, -1, -1 };
    char device[16], log[200];
    pid_t pid;
    struct os_end end;
    snprintf(device, sizeof(device), "%d", info ? info->index : 0);
    const struct child_task task = { "probe", device, library, library_of(library) };
    if (child_files(&c, "", err) || child_spawn(&c, &task, &pid, err))
        return -1;
    if (os_wait(pid, LIMIT_S, &end))
        return cairn_fail(err, CAIRN_ELACK, "%s: timed out after %d s", library, LIMIT_S);
    read_line(c.out, out->file, sizeof(out->file));
    read_line(c.log, log, sizeof(log));
    bool good = !end.signal && !end.code;
    snprintf(out->verdict, sizeof(out->verdict), good ? "good" : "bad");
    if (end.signal)
        snprintf(out->why, sizeof(out->why), "aborts the process%s%s (signal %d)", info ? " on " : "",
                 info ? info->arch : "", end.signal);
    else if (!good)
        snprintf(out->why, sizeof(out->why), "%s", log[0] ? log : "it gave no reason");
    return 0;
}

/* What a child finds out, or found out before; -1: it could not be asked. */
static int find_out(const struct gpu_info *info, const char *library, const char *name, struct finding *f,
                    struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir cache = OWN_DIR_NONE;
    bool keep = open_findings(&cache);
    if (keep && finding_read(&cache, name, library, f))
        return 0;
    *f = (struct finding){ 0 };
    if (probe_in_child(info, library, f, err))
        return -1;
    if (keep)
        finding_write(&cache, name, library, f);
    return 0;
}

int compile_probe(const struct gpu_info *info, const char *library, struct cairn_error *err)
{
    char name[128];
    struct finding f;
    if (library_chosen() && !library_file(library_of(library))[0]) /* another ROCm's would not fit */
        return cairn_fail(err, CAIRN_ELACK, "%s has no %s", library_chosen()->what, library);
    snprintf(name, sizeof(name), "%.40s-%.40s-%d", library, info->arch, info->driver);
    if (find_out(info, library, name, &f, err))
        return -1;
    return strcmp(f.verdict, "good") ? cairn_fail(err, CAIRN_ELACK, "%s: %s", library, f.why) : 0;
}

int compile_opens(struct cairn_error *err)
{
    const char *file = library_file(LIBRARY_HIPRTC);
    struct hash h;
    char name[64] = "hiprtc-";
    struct cairn_error ignored = { 0 };
    struct finding f;
    hash_init(&h);
    hash_add_text(&h, file);
    hash_end_text(&h, name + strlen(name));
    if (!file[0] || find_out(NULL, "hiprtc", name, &f, &ignored) || !strcmp(f.verdict, "good"))
        return 0;
    return cairn_fail(err, CAIRN_ELACK, "%s: %s", file, f.why);
}
