/* SPDX-License-Identifier: Apache-2.0
 * Which GPU a failure is about, where a machine has several or the environment hides some. */
#include "rules/diagnose.h"

#include "asking.h"
#include "base/cleanup.h"
#include "check.h"
#include "machine.h"

static void the_other_gpu_is_named(void)
{
    struct machine m;
    machine_both(&m);
    ANSWER a = ask("rocBLAS error: Cannot read TensileLibrary.dat: Illegal seek for GPU arch : gfx1036\n",
                   (struct diagnose_context){ .exit_code = 134, .facts = &m.facts });
    CHECK_STR(a.d.class_id, "wrong-gpu");
    CHECK_INT(a.d.fixes[0].action, DIAGNOSE_ACT_OTHER_GPU);
    CHECK_STR(a.d.fixes[0].set[0].name, "ROCR_VISIBLE_DEVICES");
    CHECK_STR(a.d.fixes[0].set[0].value, "0");
    machine_release(&m);
}

/* Without a card the small GPU is the right one. */
static void a_small_gpu_alone(void)
{
    static const char missing[] = "RuntimeError: HIP error: invalid device function\n";
    struct machine m;
    machine_both(&m);
    m.facts.env = NULL;
    struct diagnose_context ctx = { .exit_code = 1, .facts = &m.facts };
    m.gpus[0] = m.gpus[1];
    m.gpus[0].hip_index = 0;
    m.facts.n_gpus = 1;
    m.facts.default_gpu = 0;
    check_class(missing, ctx, "no-kernel-image");
    check_class(
        "rocBLAS error: Cannot read TensileLibrary.dat: No such file or directory for GPU arch : gfx1036\n",
        ctx, "tensile-missing");
    machine_release(&m);
    check_class(missing, (struct diagnose_context){ .exit_code = 1, .gfx = "gfx1036" }, "wrong-gpu");
}

/* Variables that leave no card in sight are proof, those that hide the other one are none. */
static void a_gpu_that_is_hidden(void)
{
    static const char missing[] = "RuntimeError: HIP error: invalid device function\n";
    static const struct {
        const char *env[3], *want;
    } rows[] = {
        { { "HIP_VISIBLE_DEVICES=1" }, "wrong-gpu" },
        { { "ROCR_VISIBLE_DEVICES=1" }, "wrong-gpu" },
        { { "ROCR_VISIBLE_DEVICES=1,0", "HIP_VISIBLE_DEVICES=0" }, "wrong-gpu" },
        { { "HIP_VISIBLE_DEVICES=1,0" }, "wrong-gpu" }, /* it comes first */
        { { "HIP_VISIBLE_DEVICES=0,1" }, "no-kernel-image" },
        { { "HIP_VISIBLE_DEVICES=0" }, "no-kernel-image" },
        { { "CUDA_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES=0" }, "no-kernel-image" },
    };
    struct machine m;
    machine_both(&m);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_class(missing,
                    (struct diagnose_context){ .exit_code = 1, .facts = &m.facts, .env = rows[i].env },
                    rows[i].want);
    machine_release(&m);
}

int main(void)
{
    RUN(the_other_gpu_is_named);
    RUN(a_small_gpu_alone);
    RUN(a_gpu_that_is_hidden);
    return check_done();
}
