/* SPDX-License-Identifier: Apache-2.0 */
#include "run/evidence.h"

#include "check.h"
#include "scratch.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tree_process processes[] = { { .pid = 10, .state = 'S', .name = "python3" },
                                           { .pid = 11, .state = 'S', .name = "pt_data_worker" } };
static const struct tree both = { processes, 2 };

static void open_file(const char *link, const char *target)
{
    scratch_file(link, "");
    REQUIRE(!unlink(scratch(link)) && !symlink(target, scratch(link)));
}

static enum diagnose_gpu_use use(void)
{
    return evidence_gpu_use(&both, scratch("proc"), NULL);
}

static void whoever_has_a_gpu_open_uses_it(void)
{
    CHECK_INT(use(), DIAGNOSE_GPU_UNKNOWN); /* nothing can be read */
    open_file("proc/10/fd/0", "/dev/null");
    open_file("proc/11/fd/0", "/dev/dri/card0"); /* a display */
    scratch_file("proc/10/maps", "7f00-7f01 r-xp 0 fe:00 1 /usr/lib/libc.so.6\n");
    CHECK_INT(use(), DIAGNOSE_GPU_UNKNOWN); /* of one the maps are missing */
    scratch_file("proc/11/maps", "7f00-7f01 r-xp 0 fe:00 1 /home/u/libamdhip64-notes/lib.so\n");
    CHECK_INT(use(), DIAGNOSE_GPU_USED); /* who is in doubt does not deny it */
    scratch_file("proc/11/maps", "7f00-7f01 r-xp 0 fe:00 1 /usr/lib/libc.so.6\n");
    CHECK_INT(use(), DIAGNOSE_GPU_NEVER);
    scratch_file("proc/11/maps", "7f00-7f01 r-xp 0 fe:00 1 /venv/torch/lib/libamdhip64.so\n");
    CHECK_INT(use(), DIAGNOSE_GPU_USED);
    scratch_file("proc/11/maps", "");
    open_file("proc/11/fd/1", "/dev/kfd");
    CHECK_INT(use(), DIAGNOSE_GPU_USED);
    CHECK_INT(evidence_gpu_use(&(struct tree){ 0 }, scratch("proc"), NULL), DIAGNOSE_GPU_UNKNOWN);
}

static void every_thread_is_written_down(void)
{
    struct memory_monitor g = { .now = { -1, -1, -1, -1 } };
    CLEANUP(str_release) struct str text = { 0 };
    scratch_file("proc/10/task/10/comm", "python3\n");
    scratch_file("proc/10/task/10/wchan", "futex_wait_queue");
    scratch_file("proc/10/task/12/comm", "the-loader\n");
    scratch_file("proc/10/task/12/wchan", "do_epoll_wait");
    const struct evidence e = { .tree = &both, .proc = scratch("proc"), .monitor = &g };
    evidence_collect(&e, &text);
    CHECK_HAS(text.s, "the-loader  do_epoll_wait");
    CHECK_HAS(text.s, "futex_wait_queue");
}

/* A script of Python's, and after much else: the stacks have limits of their own. */
static void the_stack_of_a_python_is_asked_for(void)
{
    struct memory_monitor g = { .now = { -1, -1, -1, -1 } };
    struct tree_process launcher = { .pid = 12, .state = 'S', .name = "accelerate" };
    CLEANUP(str_release) struct str text = { 0 };
    open_file("proc/12/exe", "/usr/bin/python3.11");
    scratch_file("bin/py-spy", "#!/bin/sh\necho stack of $3\n");
    REQUIRE(!chmod(scratch("bin/py-spy"), 0755) && !setenv("PATH", scratch("bin"), 1));
    str_addf(&text, "%*s\n", 1 << 20, "much");
    struct evidence e = { .tree = &(struct tree){ &launcher, 1 }, .proc = scratch("proc"), .monitor = &g };
    evidence_collect(&e, &text);
    CHECK(!strstr(text.s, "stack of 12"));
    e.stacks = true;
    evidence_collect(&e, &text);
    CHECK_HAS(text.s, "stack of 12");
}

static void work_may_be_handed_on(void)
{
    struct tree_process p[] = { { .name = "bash" }, { .name = "docker" } };
    CHECK(!evidence_leads_away(&both));
    CHECK(evidence_leads_away(&(struct tree){ p, 2 }) && !evidence_leads_away(&(struct tree){ p, 1 }));
}

int main(void)
{
    RUN(whoever_has_a_gpu_open_uses_it);
    RUN(every_thread_is_written_down);
    RUN(the_stack_of_a_python_is_asked_for);
    RUN(work_may_be_handed_on);
    return check_done();
}
