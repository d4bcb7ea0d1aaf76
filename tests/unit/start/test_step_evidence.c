/* SPDX-License-Identifier: Apache-2.0 */
#include "start/step_evidence.h"

#include "check.h"
#include "tree.h"

static void the_gpu_by_its_files(void)
{
    struct str brief = { 0 }, full = { 0 };
    char root[PATH_MAX];
    snprintf(root, sizeof(root), "%s/gfx1030-rx6900xt-desktop-drm-only", check_data("sysfs"));
    step_evidence(root, "0000:0c:00.0", &brief, &full);
    CHECK_HAS(brief.s, "; GPU ");
    CHECK_HAS(brief.s, "0.7 GB of VRAM in use");
    CHECK_HAS(full.s, "GPU 0000:0c:00.0: ");
    str_release(&brief);
    str_release(&full);
}

static void the_host(void)
{
    struct str brief = { 0 }, full = { 0 };
    struct tree t;
    tree_make(&t);
    tree_put(&t, "proc/loadavg", "7.25 3.10 1.00 2/345 6789\n");
    tree_put(&t, "proc/meminfo",
             "MemTotal: 16000000 kB\nMemAvailable: 250000 kB\nSwapTotal: 8000000 kB\nSwapFree: 2000000 kB\n");
    tree_put(
        &t, "proc/pressure/memory",
        "some avg10=83.20 avg60=40.00 avg300=9.00 total=1\nfull avg10=61.00 avg60=30.00 avg300=8.00 total=1\n");
    tree_put(&t, "proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    tree_put(&t, "proc/self/task/12/stat", "12 (a (b) c) D 1 12 12\n");
    tree_put(&t, "proc/self/task/12/wchan", "svm_range_restore_work");
    step_evidence(t.dir, "", &brief, &full);
    CHECK_STR(brief.s,
              "; load 7.25; 0.3 of 16.4 GB host memory available, 6.1 GB swapped; 83 % memory pressure");
    CHECK_HAS(full.s, "swap: 6.1 of 8.2 GB in use\n");
    CHECK_HAS(full.s, "memory pressure: full avg10=61.00");
    CHECK_HAS(full.s, "thread 12 (a (b) c): state D, svm_range_restore_work\n");
    str_release(&brief);
    str_release(&full);
    tree_remove(&t);
}

/* Files that are not there are not spoken of. */
static void nothing_known(void)
{
    struct str brief = { 0 }, full = { 0 };
    struct tree t;
    tree_make(&t);
    step_evidence(t.dir, "0000:0c:00.0", &brief, &full);
    CHECK(!brief.len && !full.len);
    tree_remove(&t);
}

int main(void)
{
    RUN(the_gpu_by_its_files);
    RUN(the_host);
    RUN(nothing_known);
    return check_done();
}
