/* SPDX-License-Identifier: Apache-2.0
 * The trainer of tests/preload/test_preload.c: opens what stands for PyTorch as Python would, does what the word in its
 * first argument says, and prints what came of it. */
#include "child.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

const struct torch *t;
static int stream_a;
static char **arguments;
extern char **environ;

static void open_torch(const char *path)
{
    void *torch = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    t = torch ? dlsym(torch, "torch") : NULL;
    if (!t) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
}

char *device(size_t n)
{
    void *p = NULL;
    if (t->hipMalloc(&p, n))
        printf("no device memory\n");
    return p;
}

char *filled(char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)((i * 2654435761U + seed) >> 11);
    return p;
}

char *mapped(size_t n, int protection, unsigned seed)
{
    char *bytes = filled(malloc(n), n, seed);
    int fd = memfd_create("weights", MFD_CLOEXEC);
    if (write(fd, bytes, n) != (ssize_t)n)
        exit(3);
    free(bytes);
    return mmap(NULL, n, protection, protection & PROT_WRITE ? MAP_PRIVATE : MAP_SHARED, fd, 0);
}

int arrived(const char *on_device, size_t n, unsigned seed)
{
    void *back = NULL;
    char *wanted = filled(malloc(n), n, seed);
    bool pinned = !t->hipHostMalloc(&back, n, 0);
    if (!pinned && t->hipGetLastError())
        back = malloc(n);
    int code = t->hipMemcpy(back, on_device, n, D2H);
    int same = !code && !memcmp(back, wanted, n);
    free(wanted);
    if (pinned)
        t->hipHostFree(back);
    else
        free(back);
    return same;
}

/* --- what it does --- */

static void do_calls(void)
{
    const struct fake_kernel good = { "_ZN2at6native4gemmIfEEvPT_", 0, 0 },
                             bad = { "attention_backward", 719, 0 };
    const struct size3 grid = { 3, 2, 1 }, block = { 64, 1, 1 };
    char *p = device(5000), text[5000] = "";
    printf("copy %d\n", t->hipMemcpyWithStream(p, text, sizeof(text), H2D, &stream_a));
    printf("launch %d\n", t->hipLaunchKernel(&good, grid, block, NULL, 0, NULL));
    printf("launch %d\n", t->hipLaunchKernel(&bad, grid, block, NULL, 0, NULL));
    printf("launch %d\n", t->hipLaunchKernel(&good, grid, block, NULL, 0, NULL));
    printf("free %d\n", t->hipFree(p));
}

/* Another program in the same process. */
static void do_exec(void)
{
    char word[] = "calls";
    char *const argv[] = { arguments[0], word, arguments[2], NULL };
    device(5000);
    execv(arguments[0], argv);
}

static void report(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    printf("status %d\n", status);
}

/* Programs that are started in other ways than by fork, the last with nothing in its environment. */
static void do_spawn(void)
{
    char word[] = "calls";
    char *const argv[] = { arguments[0], word, arguments[2], NULL }, *nothing[] = { NULL };
    pid_t pid = -1;
    do_calls();
    fflush(stdout);
    if (!posix_spawn(&pid, arguments[0], NULL, NULL, argv, environ))
        report(pid);
    fflush(stdout);
    if (!(pid = vfork())) {
        execv(arguments[0], argv);
        _exit(126);
    }
    report(pid);
    fflush(stdout);
    if (!posix_spawn(&pid, arguments[0], NULL, NULL, argv, nothing))
        report(pid);
    do_calls();
}

static const struct torch *other_torch(const char *name)
{
    const struct torch *first = t, *other;
    char *path = strdup(arguments[2]);
    strcpy(strstr(path, "libtorch6.so"), name);
    open_torch(path);
    other = t;
    t = first;
    return other;
}

/* Another library brought a runtime of its own along. */
static void do_two(void)
{
    const struct torch *other = other_torch("libtorch7.so");
    for (int i = 0; i < 3; i++) {
        const struct torch *through = i == 1 ? other : t;
        printf("%d", through->copy_some());
        printf(" pinned %zu\n", through->fake_pinned_for_copy());
    }
}

/* The first one is there for all. */
static void do_two_shared(void)
{
    if (dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD))
        do_two();
}

/* Each library brought one. */
static void do_five(void)
{
    static const char *const names[] = { "libtorch6.so", "libtorch7.so", "libtorch8.so", "libtorch9.so",
                                         "libtorch-hashed.so" };
    for (size_t i = 0; i < 5; i++) {
        const struct torch *through = other_torch(names[i]);
        printf("%d", through->copy_some());
        printf(" pinned %zu\n", through->fake_pinned_for_copy());
    }
}

static size_t n_asked; /* times that the loader was asked where something is */

int dladdr(const void *p, Dl_info *info)
{
    int (*real)(const void *, Dl_info *) = (int (*)(const void *, Dl_info *))dlsym(RTLD_NEXT, "dladdr");
    n_asked++;
    return real(p, info);
}

static void do_once(void)
{
    printf("%d\n", t->call_once());
}

/* More libraries than most processes have; none is forgotten. */
static void do_callers(void)
{
    enum { CALLERS = 200 };
    const struct torch *through[CALLERS];
    size_t before = 0;
    char name[16];
    for (int i = 0; i < CALLERS; i++) {
        snprintf(name, sizeof(name), "%d.so", i);
        through[i] = other_torch(name);
    }
    for (int i = 0; i < 2 * CALLERS; i++) {
        before = i == CALLERS ? n_asked : before;
        if (through[i % CALLERS]->call_once())
            exit(4);
    }
    printf("%d %zu\n", n_asked >= CALLERS, n_asked - before);
}

/* Many pages of code that is in no file call, and then a library with a runtime of its own. */
static void do_made(void)
{
    enum { PAGES = 100, PAGE = 4096 };
    /* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
    static const unsigned char code[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3 };
    char *made = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    t->copy_some();
    for (size_t i = 0; i < PAGES; i++)
        memcpy(made + i * PAGE, code, sizeof(code));
    if (mprotect(made, PAGES * PAGE, PROT_READ | PROT_EXEC))
        exit(3);
    for (size_t i = 0; i < PAGES; i++) {
        int (*call)(int (*)(void *));
        memcpy(&call, &(char *){ made + i * PAGE }, sizeof(call));
        if (call(t->hipStreamSynchronize))
            exit(4);
    }
    const struct torch *other = other_torch("libtorch7.so");
    printf("%d", other->copy_some());
    printf(" pinned %zu\n", other->fake_pinned_for_copy());
}

/* A function that this runtime has not. */
static void do_lacking(void)
{
    int (*wait)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "hipGraphLaunch");
    printf("%d\n", wait ? wait(NULL) : -1);
}

static void do_cleared(void)
{
    clearenv();
    do_calls();
}

/* Where neither the file's folder nor /proc is. */
static void do_chroot(void)
{
    size_t free_bytes, total;
    if (chroot("/usr") || chdir("/")) {
        printf("no chroot\n");
        return;
    }
    do_calls();
    printf("asked %d\n", t->hipMemGetInfo(&free_bytes, &total));
}

static void *ask_cancelled(void *context)
{
    size_t free_bytes, total;
    pthread_cancel(pthread_self());
    t->hipMemGetInfo(&free_bytes, &total);
    return context;
}

/* A thread that ends at its first chance must not take a lock along. */
static void do_cancel(void)
{
    size_t free_bytes, total;
    pthread_t thread;
    alarm(10);
    pthread_create(&thread, NULL, ask_cancelled, NULL);
    pthread_join(thread, NULL);
    printf("asked %d\n", t->hipMemGetInfo(&free_bytes, &total));
}

/* In a child, since device memory is a file here too. */
static void do_limited(void)
{
    const struct rlimit small = { 4096, 4096 };
    int status = 0;
    device(5000);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_FSIZE, &small);
        void *p = NULL;
        _exit(t->hipMalloc(&p, 5000));
    }
    waitpid(pid, &status, 0);
    printf("status %d\n", status);
}

/* The same kernel at two places. */
static void do_twice(void)
{
    const struct fake_kernel a = { "gemm", 0, 0 }, b = a;
    const struct size3 one = { 1, 1, 1 };
    t->hipLaunchKernel(&a, one, one, NULL, 0, NULL);
    t->hipLaunchKernel(&b, one, one, NULL, 0, NULL);
}

/* A module is gone, and a kernel of another one has the place of its own. */
static void do_reloaded(void)
{
    struct fake_kernel k = { "gemm", 0, 0 };
    const struct size3 one = { 1, 1, 1 };
    t->hipLaunchKernel(&k, one, one, NULL, 0, NULL);
    t->hipModuleUnload(&k);
    k.name = "softmax";
    t->hipLaunchKernel(&k, one, one, NULL, 0, NULL);
}

static void do_hang(void)
{
    const struct fake_kernel stuck = { "never_ends", 0, 1 };
    const struct size3 one = { 1, 1, 1 };
    printf("begun\n");
    fflush(stdout);
    t->hipLaunchKernel(&stuck, one, one, NULL, 0, NULL);
}

/* A kernel never ends, and the loss is fetched. */
static void do_item(void)
{
    const struct fake_kernel k = { "attention_bwd", 0, 0 };
    const struct size3 one = { 1, 1, 1 };
    static int stream;
    float *p = (float *)device(4096), loss;
    t->hipLaunchKernel(&k, one, one, NULL, 0, &stream);
    t->fake_break_stream(&stream, 0);
    printf("begun\n");
    fflush(stdout);
    t->hipMemcpyWithStream(&loss, p, sizeof(loss), 2, &stream);
}

static int stay_there(struct dl_phdr_info *object, size_t size, void *reached)
{
    (void)object, (void)size;
    pthread_barrier_wait(reached);
    pause();
    return 0;
}

static void *walk_objects(void *reached)
{
    dl_iterate_phdr(stay_there, reached);
    return NULL;
}

static void copy_in_child(const struct torch *through)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(5);
        _exit(through->copy_some());
    }
    report(pid);
}

/* Another thread is in the loader's list when it forks. */
static void do_fork_loader(void)
{
    pthread_t thread;
    pthread_barrier_t reached;
    const struct torch *other = other_torch("libtorch7.so");
    alarm(10);
    pthread_barrier_init(&reached, NULL, 2);
    pthread_create(&thread, NULL, walk_objects, &reached);
    pthread_barrier_wait(&reached);
    copy_in_child(t); /* the first calls of all */
    printf("%d\n", t->copy_some());
    fflush(stdout);
    copy_in_child(other);
    fflush(stdout);
    _exit(0);
}

static bool has_alarms; /* a profiler's, which come faster than a file is made */

/* As older kernels do it on a tmpfs: a signal that may be delivered ends it. */
int take_blocks(int fd, off_t at,
                off_t n) __asm__("posix_fallocate"); /* the headers have another name for it */
int take_blocks(int fd, off_t at, off_t n)
{
    int (*real)(int, off_t, off_t) = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    return has_alarms && !sigismember(&blocked, SIGALRM) ? EINTR : real(fd, at, n);
}

static void do_alarms(void)
{
    sigset_t blocked;
    void *p;
    has_alarms = true;
    printf("%d", t->hipMalloc(&p, 5000));
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    printf(" %d\n", sigismember(&blocked, SIGALRM));
}

static void do_many(void)
{
    static struct fake_kernel kernels[3000];
    static char names[3000][400];
    const struct size3 one = { 1, 1, 1 };
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < 3000; i++) {
            snprintf(names[i], sizeof(names[i]), "kernel_%zu_%0*d", i, (int)(i % 380), 0);
            kernels[i].name = names[i];
            t->hipLaunchKernel(&kernels[i], one, one, NULL, 0, NULL);
        }
    printf("done\n");
}

static const struct word words[] = {
    { "calls", do_calls },
    { "hang", do_hang },
    { "item", do_item },
    { "many", do_many },
    { "alarms", do_alarms },
    { "exec", do_exec },
    { "limited", do_limited },
    { "twice", do_twice },
    { "spawn", do_spawn },
    { "two", do_two },
    { "two-shared", do_two_shared },
    { "cleared", do_cleared },
    { "chroot", do_chroot },
    { "cancel", do_cancel },
    { "five", do_five },
    { "callers", do_callers },
    { "once", do_once },
    { "made", do_made },
    { "lacking", do_lacking },
    { "fork-loader", do_fork_loader },
    { "reloaded", do_reloaded },
};

static void run_word(const struct word *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(of[i].name, arguments[1]))
            of[i].run();
}

int main(int argc, char **argv)
{
    arguments = argv;
    if (argc != 3)
        return 2;
    open_torch(argv[2]);
    run_word(copy_words, N_COPY_WORDS);
    run_word(fork_words, N_FORK_WORDS);
    run_word(memory_words, N_MEMORY_WORDS);
    run_word(words, sizeof(words) / sizeof(words[0]));
    return 0;
}
