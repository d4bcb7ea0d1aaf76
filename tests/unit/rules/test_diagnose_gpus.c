/* SPDX-License-Identifier: Apache-2.0
 * Which GPU a failure is about, where a machine has several or the environment hides some. */
#include "rules/diagnose.h"

#include "asking.h"
#include "base/cleanup.h"
#include "base/str.h"
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

static const struct diagnose_fix *fix_that_sets(const struct diagnosis *d, const char *name)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        if (plan_find(d->fixes[i].set, d->fixes[i].n_set, name))
            return &d->fixes[i];
    return NULL;
}

/* Does a step take the override away, and no more? */
static bool drops_override(const struct diagnosis *d)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        for (size_t k = 0; k < d->fixes[i].n_unset && !d->fixes[i].n_set; k++)
            if (override_is_name(d->fixes[i].unset[k]))
                return true;
    return false;
}

/* A card that PyTorch has no code for, beside one that it has, both shown: only the one is renamed. */
static void one_card_of_two_is_renamed(void)
{
    static const char *const stale[] = { "HIP_VISIBLE_DEVICES=0,1", "HSA_OVERRIDE_GFX_VERSION=10.3.0", NULL };
    static const char missing[] = "RuntimeError: HIP error: invalid device function\n";
    struct machine m;
    machine_both(&m);
    m.gpus[0].kfd_node = num_of(1);
    m.gpus[1].kfd_node = num_of(2);
    m.gpus[1].gfx = text_of("gfx1031");
    m.gpus[1].kind = GPU_DISCRETE;
    const struct diagnose_context ctx = { .exit_code = 1, .facts = &m.facts, .env = stale };
    ANSWER a = ask(missing, ctx);
    const struct diagnose_fix *fix = fix_that_sets(&a.d, "HSA_OVERRIDE_GFX_VERSION_2");
    REQUIRE(fix);
    CHECK_STR(fix->set[0].value, "10.3.0");
    CHECK(fix->n_set == 1 && fix->n_unset == 1 && str_eq(fix->unset[0], "HSA_OVERRIDE_GFX_VERSION"));
    CHECK(!fix_that_sets(&a.d, "HSA_OVERRIDE_GFX_VERSION"));
    machine_release(&m);
}

/* Without any override a PyTorch that lacks the chip has no code to run: there the value is mended, or the wheel. */
static void an_override_that_is_needed_stays(void)
{
    static const struct {
        const char *log, *value, *class_id;
        bool mended;
    } rows[] = {
        { "RuntimeError: HIP error: invalid device function\n", "11.0.0", "hsa-override-bad", true },
        { "RuntimeError: No HIP GPUs are available\n", "gfx1031", "hsa-override-bad", true },
        { "Memory access fault by GPU node-1 on address 0x7f2a. Reason: Page not present.\n", "10.3.0",
          "gpu-memory-fault", false },
        { "Fatal Python error: Segmentation fault\n", "10.3.0", "native-crash", false },
    };
    struct machine m;
    machine_card(&m);
    m.gpus[0].gfx = text_of("gfx1031");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char variable[64];
        snprintf(variable, sizeof(variable), "HSA_OVERRIDE_GFX_VERSION=%s", rows[i].value);
        const char *const env[] = { variable, NULL };
        ANSWER a =
            ask(rows[i].log, (struct diagnose_context){ .exit_code = 134, .facts = &m.facts, .env = env });
        CHECK_STR(a.d.class_id, rows[i].class_id);
        CHECK(!drops_override(&a.d));
        const struct diagnose_fix *fix = fix_that_sets(&a.d, "HSA_OVERRIDE_GFX_VERSION");
        CHECK_INT(fix != NULL, rows[i].mended);
        CHECK(!fix || str_eq(fix->set[0].value, "10.3.0"));
    }
    m.torches[0].compiled = targets_of(&m, "gfx1030 gfx1031"); /* with the chip's own code it may go */
    ANSWER a =
        ask(rows[0].log,
            (struct diagnose_context){ .exit_code = 1,
                                       .facts = &m.facts,
                                       .env = (const char *[]){ "HSA_OVERRIDE_GFX_VERSION=11.0.0", NULL } });
    CHECK(drops_override(&a.d));
    machine_release(&m);
}

int main(void)
{
    RUN(one_card_of_two_is_renamed);
    RUN(an_override_that_is_needed_stays);
    RUN(the_other_gpu_is_named);
    RUN(a_small_gpu_alone);
    RUN(a_gpu_that_is_hidden);
    return check_done();
}
