/* SPDX-License-Identifier: Apache-2.0
 * Would the loss of a barrier be noticed?  Each barrier of the kernels' text is left out in turn, with a fiber for each
 * work-item (fiber.h), and a check of a kernel that it is in must fail.
 *
 *     barriers [NAME]      only cases with NAME in their name
 *
 * Prints TAP, a line for each barrier; addr2line (binutils) tells where it stands. */
#include "fiber.h"

#include "base/str.h"
#include "gpu/check.h"
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096, LIMIT_S = 300 };

/* Shared with the children: a case runs in a process of its own, since it may crash or hang. */
static struct seen {
    unsigned n;
    const void *place[MOST];
} * seen;

/* A barrier of the text may be in several places of the program. */
static struct barrier {
    const void *place;
    char where[64]; /* "norm.k:243" */
    bool noticed;
} barriers[MOST];
static size_t n_barriers;

static void note(const void *place)
{
    unsigned n = __atomic_load_n(&seen->n, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++)
        if (seen->place[i] == place)
            return;
    n = __atomic_fetch_add(&seen->n, 1, __ATOMIC_ACQ_REL);
    if (n < MOST)
        seen->place[n] = place;
}

/* What the child answers. */
enum { FINE, WRONG, ABSENT /* for this format */, BROKEN /* could not be run */ };
static int run_here(const struct check_case *row, enum gpu_storage s, bool reversed)
{
    struct cairn_error err;
    struct check_result result;
    struct gpu *g;
    k_fiber_set_reversed(reversed);
    if (gpu_open("cpu", &g, &err))
        return BROKEN;
    return !check_run(g, row, s, &result) ? ABSENT : result.ok ? FINE : WRONG;
}

static int run_case(const struct check_case *row, enum gpu_storage s, bool reversed, const void *without)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(BROKEN);
        alarm(LIMIT_S);
        k_fiber_leave_out(without);
        k_fiber_set_seen(without ? NULL : note);
        _exit(run_here(row, s, reversed));
    }
    int status = 0;
    bool is_run = pid > 0 && waitpid(pid, &status, 0) == pid;
    bool is_broken = WIFEXITED(status) ? WEXITSTATUS(status) == BROKEN
                                       : WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGALRM;
    if (!is_run || is_broken) {
        printf("Bail out! %s: cannot be run, or not in %d s\n", row->kernel, LIMIT_S);
        exit(1);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

/* Where barriers stand, from number `first` on: addr2line says the address, and the innermost place of the text first. */
static void find_places(size_t first)
{
    CLEANUP(str_release) struct str command = { 0 };
    uintptr_t base = 0;
    char line[512];
    dl_iterate_phdr(first_object, &base);
    str_addf(&command, "addr2line -a -i -s -e /proc/%d/exe", (int)getpid());
    for (size_t i = first; i < n_barriers; i++)
        str_addf(&command, " 0x%lx", (unsigned long)((uintptr_t)barriers[i].place - base - 1));
    FILE *p = first < n_barriers ? popen(command.s, "r") : NULL;
    for (size_t i = first; p && fgets(line, sizeof(line), p);) {
        line[strcspn(line, " \n")] = '\0';
        if (!strncmp(line, "0x", 2) && fgets(line, sizeof(line), p))
            snprintf(barriers[i++].where, sizeof(barriers[0].where), "%.*s", (int)strcspn(line, " \n"), line);
    }
    if (p)
        pclose(p);
}

static void add_barriers(void)
{
    size_t first = n_barriers, n = seen->n < MOST ? seen->n : MOST;
    for (size_t k = 0; k < n; k++) {
        bool known = false;
        for (size_t i = 0; i < n_barriers; i++)
            known |= barriers[i].place == seen->place[k];
        if (!known && n_barriers < MOST)
            barriers[n_barriers++].place = seen->place[k];
    }
    find_places(first);
}

static bool is_seen(const struct barrier *b)
{
    for (size_t i = 0; i < seen->n && i < MOST; i++)
        if (seen->place[i] == b->place)
            return true;
    return false;
}

static bool is_noticed(const struct barrier *b)
{
    for (size_t i = 0; i < n_barriers; i++)
        if (barriers[i].noticed && !strcmp(barriers[i].where, b->where))
            return true;
    return false;
}

/* False: it is wrong with all its barriers. */
static bool try_case(const struct check_case *row, enum gpu_storage s)
{
    seen->n = 0;
    int r = run_case(row, s, false, NULL);
    if (r == ABSENT)
        return true;
    if (r)
        printf("# %s fails with all its barriers\n", row->kernel);
    add_barriers();
    for (size_t i = 0; i < n_barriers && !r; i++)
        for (int reversed = 0; reversed < 2 && is_seen(&barriers[i]) && !is_noticed(&barriers[i]); reversed++)
            barriers[i].noticed = run_case(row, s, reversed, barriers[i].place) != 0;
    return !r;
}

static bool is_told(size_t nth)
{
    for (size_t i = 0; i < nth; i++)
        if (!strcmp(barriers[i].where, barriers[nth].where))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const struct check_case *row;
    int bad = 0, n = 0;
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (size_t i = 0; (row = check_nth(i)); i++)
        if (argc < 2 || strstr(row->kernel, argv[1]))
            bad |= !try_case(row, row->f32_only ? GPU_F32 : GPU_BF16);
    for (size_t i = 0; i < n_barriers; i++)
        if (!is_told(i)) {
            bool ok = is_noticed(&barriers[i]);
            printf("%sok %d - the barrier of %s\n", ok ? "" : "not ", ++n, barriers[i].where);
            bad |= !ok;
        }
    printf("1..%d\n", n);
    return bad || !n;
}
