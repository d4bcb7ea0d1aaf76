/* SPDX-License-Identifier: Apache-2.0
 * The ways in which kernels are run here find what they are for: each planted fault is found by the ways that its row
 * names, and a kernel without a fault by none. */
#include "check.h"
#include "fiber.h"
#include "gpu/kernel_rows.h"
#include "order.h"
#include "planted.h"
#include <sys/wait.h>
#include <unistd.h>

enum way { FORWARD, REVERSED, STRIDED, FIBER, FIBER_REVERSED, WAYS };
/* The first three are also names of orders. */
static const char *const way_names[] = { "forward", "reversed", "strided", "fiber", "fiber, last first" };
enum { AS_ORDER, AS_FIBER }; /* the variants that the table of kernels was made with */
enum { GROUP = 64, FOUND = 3 /* exit status */ };
#ifdef SANITIZED
enum { BY_SANITIZER = true };
#else
enum { BY_SANITIZER = false };
#endif

/* In a child: a fault may end the process. */
static void run_child(const struct kernel_row *row, enum way way)
{
    float *x = malloc(GROUP * sizeof(*x)), *y = malloc(GROUP * sizeof(*y));
    if (!x || !y)
        _exit(FOUND + 1);
    for (int i = 0; i < GROUP; i++)
        x[i] = (float)(i + 1), y[i] = 0;
    bool is_fiber = !k_order_set(way_names[way]);
    k_fiber_set_reversed(way == FIBER_REVERSED);
    struct planted_args args = { .y = y, .x = x };
    row->host[GPU_F32][is_fiber ? AS_FIBER : AS_ORDER](&args, (struct k_place){ 0, 0, 0 });
    bool wrong = false;
    for (int i = 0; i < GROUP; i++)
        wrong |= y[i] != (float)(GROUP + 1);
    _exit(wrong ? FOUND : 0);
}

static bool is_found(const char *kernel, enum way way)
{
    const struct kernel_row *row = kernel_find(kernel);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(FOUND + 1);
        run_child(row, way);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const struct {
    const char *kernel;
    bool by[WAYS];
} rows[] = {
    { "planted_none", { false, false, false, false, false } },
    { "planted_no_barrier", { false, false, false, true, true } },
    { "planted_no_barrier_before_reuse", { false, false, false, true, true } },
    { "planted_race", { false, true, true, false, true } },
    { "planted_past_the_end", { BY_SANITIZER, BY_SANITIZER, BY_SANITIZER, BY_SANITIZER, BY_SANITIZER } },
    { "planted_not_written", { true, true, true, true, true } },
    { "planted_half_at_barrier", { false, false, false, true, true } },
    { "planted_two_barriers", { false, false, false, true, true } },
};

static void each_fault_is_found(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int w = 0; w < WAYS; w++)
            if (is_found(rows[i].kernel, (enum way)w) != rows[i].by[w])
                CHECK_FAIL_("%s, %s: %s", rows[i].kernel, way_names[w],
                            rows[i].by[w] ? "not found" : "found where there is nothing to find");
}

static void every_planted_kernel_has_a_row(void)
{
    CHECK_INT(n_kernel_rows, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
    RUN(every_planted_kernel_has_a_row);
    RUN(each_fault_is_found);
    return check_done();
}
