/* SPDX-License-Identifier: Apache-2.0
 * A program in which the library is, or is not, and what came of it.  A test's arguments: the library, the program child, the
 * folder with what stands for PyTorch. */
#ifndef CAIRN_TESTS_PRELOAD_TRIAL_H
#define CAIRN_TESTS_PRELOAD_TRIAL_H

#include "check.h"
#include "preload/record.h"
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library, *child, *folder;
static char place[] = "/tmp/cairn-preload-XXXXXX";

struct trial {
    const char *word;
    const char *switches;           /* NULL: the library is not there */
    const char *fake, *file, *more; /* FAKE_HIP, CAIRN_PRELOAD_FILE, another variable */
    bool budget;                    /* CAIRN_PRELOAD_BUDGET: 1 GiB */
    const char *program;            /* other than child */
    const char *libraries;          /* LD_PRELOAD, if not ours alone */
    const char *torch;              /* NULL: the one with this runtime */
    int major;                      /* of it; 0: 6 */
    bool nobody;                    /* runs as nobody */
    int kill_after_line;            /* a signal */
};
struct outcome {
    char out[2048];
    int status, pid;
};

static inline char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline char *text(const char *format, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0)
        abort();
    va_end(ap);
    return s;
}

static inline void become(const struct trial *t)
{
    char *torch = t->torch ? text("%s", t->torch) : text("%s/libtorch%d.so", folder, t->major ? t->major : 6);
    char *env[8], **at = env;
    if (t->switches) {
        *at++ = text("LD_PRELOAD=%s", t->libraries ? t->libraries : library);
        *at++ = text("CAIRN_PRELOAD=%s", t->switches);
        *at++ = text("CAIRN_PRELOAD_FILE=%s", t->file ? t->file : text("%s/calls", place));
    }
    if (t->fake)
        *at++ = text("FAKE_HIP=%s", t->fake);
    if (t->more)
        *at++ = (char *)(uintptr_t)t->more;
    if (t->budget)
        *at++ = text("CAIRN_PRELOAD_BUDGET=%d", 1 << 30);
    *at = NULL;
    const char *program = t->program ? t->program : child;
    char *const argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)t->word, torch[0] ? torch : NULL,
                           NULL };
    if (t->nobody && (setgid(65534) || setuid(65534)))
        _exit(125);
    execve(program, argv, env);
    _exit(126);
}

static inline struct outcome try(const struct trial *t)
{
    struct outcome o = { "", 0, 0 };
    int fds[2];
    if (pipe(fds))
        abort();
    fflush(stdout);
    o.pid = fork();
    if (o.pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        close(fds[0]);
        close(fds[1]);
        become(t);
    }
    close(fds[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < sizeof(o.out) && (got = read(fds[0], o.out + n, sizeof(o.out) - 1 - n)) > 0;) {
        n += (size_t)got;
        if (t->kill_after_line && strchr(o.out, '\n')) {
            usleep(50000);
            kill(o.pid, t->kill_after_line);
        }
    }
    close(fds[0]);
    waitpid(o.pid, &o.status, 0);
    return o;
}
#define TRY(a, b, ...) try(&(const struct trial){ .word = a, .switches = b, ##__VA_ARGS__ })

/* What a process left, or NULL. */
static inline struct record *record_of(int pid)
{
    char *path = text("%s/calls.%d", place, pid);
    int fd = open(path, O_RDWR);
    free(path);
    if (fd < 0)
        return NULL;
    void *p = mmap(NULL, sizeof(struct record), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED || memcmp(p, RECORD_MAGIC, 8) ? NULL : p;
}

static inline size_t n_files(void)
{
    glob_t g;
    char *pattern = text("%s/calls*", place);
    size_t n = glob(pattern, 0, NULL, &g) ? 0 : g.gl_pathc;
    globfree(&g);
    free(pattern);
    return n;
}

static inline bool trial_begin(int argc, char **argv)
{
    if (argc != 4 || !mkdtemp(place))
        return false;
    library = realpath(argv[1], NULL);
    child = realpath(argv[2], NULL);
    folder = argv[3];
    return library && child;
}

static inline int trial_done(void)
{
    char *command = text("rm -rf %s", place);
    int left = system(command);
    free(command);
    return check_done() || left;
}

#endif
