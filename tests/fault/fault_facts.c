/* SPDX-License-Identifier: Apache-2.0
 * Facts while the machine misbehaves: each outside call (open, read, list …) fails once, in turn.
 *
 * Whatever is lost, what remains is true: a value is the one of a healthy read, or not known.  Leaks are the
 * sanitizer build's to find. */
#include "os/fault.h"
#include "check.h"
#include "host/facts.h"
#include <errno.h>

static const char *const env[] = { "VIRTUAL_ENV=/venv", NULL };

/* Found again by address, since a lost directory moves the others up. */
static const struct gpu_facts *same_gpu(const struct facts *healthy, const struct gpu_facts *g)
{
    for (size_t i = 0; i < healthy->n_gpus; i++) {
        const struct gpu_facts *h = &healthy->gpus[i];
        if (g->pci.s ? h->pci.s && !strcmp(g->pci.s, h->pci.s)
                     : g->kfd_node.from && g->kfd_node.v == h->kfd_node.v)
            return h;
    }
    return NULL;
}

#define SAME_NUM(field)                                             \
    if (g->field.from && h->field.from && g->field.v != h->field.v) \
    CHECK_FAIL_("call %d: " #field " became %" PRId64 ", was %" PRId64, nth, g->field.v, h->field.v)
#define SAME_TEXT(field)                                                 \
    if (g->field.s && h->field.s && strcmp(g->field.s, h->field.s) != 0) \
    CHECK_FAIL_("call %d: " #field " became %s, was %s", nth, g->field.s, h->field.s)

static void check_gpu(const struct gpu_facts *g, const struct gpu_facts *h, int nth)
{
    SAME_NUM(compute_units);
    SAME_NUM(wave_size);
    SAME_NUM(device_id);
    SAME_NUM(vram_total_bytes);
    SAME_NUM(gtt_total_bytes);
    SAME_NUM(kfd_bank_bytes);
    SAME_TEXT(gfx);
    SAME_TEXT(card);
    SAME_TEXT(render_node);
    CHECK(g->kind == GPU_KIND_UNKNOWN || h->kind == GPU_KIND_UNKNOWN || g->kind == h->kind);
}

static void check_problems(const struct problems *p)
{
    for (size_t i = 0; i < p->n; i++)
        CHECK(p->text[i] && p->text[i][0]);
}

/* A device that has lost its address may stand beside the KFD node it belongs to; but then it has no name. */
static size_t identified(const struct facts *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_gpus; i++)
        n += f->gpus[i].pci.s || f->gpus[i].kfd_node.from || f->gpus[i].gfx.s;
    return n;
}

/* A list of targets is whole, or not known, or comes from elsewhere; half a list would be a wrong answer. */
static void check_targets(const char *what, const struct targets *t, const struct targets *h, int nth)
{
    if (!t->from || !h->from || strcmp(t->from, h->from) != 0)
        return;
    bool same = t->n == h->n;
    for (size_t i = 0; same && i < t->n; i++)
        same = targets_has(h, t->name[i]);
    if (!same)
        CHECK_FAIL_("call %d: %s of %s: %zu targets, %zu when healthy", nth, what, t->from, t->n, h->n);
}

static void check_torch(const struct torch_facts *t, const struct torch_facts *h, int nth)
{
    if (t->version.s && h->version.s && strcmp(t->version.s, h->version.s) != 0)
        CHECK_FAIL_("call %d: torch %s, was %s", nth, t->version.s, h->version.s);
    CHECK(t->build == TORCH_BUILD_UNKNOWN || t->build == h->build);
    check_targets("compiled", &t->compiled, &h->compiled, nth);
    check_targets("device wheels", &t->device_wheels, &h->device_wheels, nth);
    check_targets("rocblas", &t->rocblas, &h->rocblas, nth);
    check_targets("hipblaslt", &t->hipblaslt, &h->hipblaslt, nth);
    check_targets("miopen", &t->miopen, &h->miopen, nth);
    check_targets("aotriton", &t->aotriton, &h->aotriton, nth);
    check_problems(&t->problems);
}

static void check_software(const struct facts *f, const struct facts *healthy, int nth)
{
    CHECK(f->n_torches <= healthy->n_torches && f->n_rocms <= healthy->n_rocms);
    for (size_t i = 0; i < f->n_torches; i++)
        for (size_t k = 0; k < healthy->n_torches; k++)
            if (!strcmp(f->torches[i].site, healthy->torches[k].site))
                check_torch(&f->torches[i], &healthy->torches[k], nth);
}

static void check_facts(const struct facts *f, const struct facts *healthy, int nth)
{
    CHECK(f->default_gpu >= -1 && f->default_gpu < (int)f->n_gpus);
    if (identified(f) > identified(healthy))
        CHECK_FAIL_("call %d: %zu GPUs, %zu when healthy", nth, identified(f), identified(healthy));
    for (size_t i = 0; i < f->n_gpus; i++) {
        const struct gpu_facts *h = same_gpu(healthy, &f->gpus[i]);
        if (h)
            check_gpu(&f->gpus[i], h, nth);
        check_problems(&f->gpus[i].problems);
    }
    const struct gpu_facts wrap_g = { .vram_total_bytes = f->host.memory_total_bytes, .gfx = f->host.kernel };
    const struct gpu_facts wrap_h = { .vram_total_bytes = healthy->host.memory_total_bytes,
                                      .gfx = healthy->host.kernel };
    check_gpu(&wrap_g, &wrap_h, nth);
    check_software(f, healthy, nth);
    check_problems(&f->problems);
}

/* Returns how many outside calls a healthy read makes. */
static int fail_each_call(const char *machine, int error)
{
    struct cairn_error err = { 0 };
    struct facts_options o = { .root = machine, .env = env, .parts = FACTS_ALL };
    struct facts healthy;
    if (facts_read(&healthy, &o, &err)) {
        CHECK_FAIL_("%s: %s", machine, err.msg);
        return 0;
    }
    int nth = 1;
    for (bool reached = true; reached; nth++) {
        struct facts f;
        err = (struct cairn_error){ 0 };
        fault_arm(nth, error);
        int r = facts_read(&f, &o, &err);
        reached = fault_disarm();
        if (r)
            CHECK(reached && err.msg[0] && err.code != CAIRN_OK);
        else
            check_facts(&f, &healthy, nth);
        if (!r)
            facts_release(&f);
    }
    facts_release(&healthy);
    return nth - 2;
}

static const char *const captures[] = {
    "sysfs/gfx1103-phoenix-780m-laptop",
    "sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu",
    "sysfs/gfx1151-strixhalo-hal0-lxc-container",
    "sysfs/nokfd-r7-240-amdgpu-gcn1",
};

/* Trees with PyTorch in them, from the command line. */
static char **trees;

static void one_machine(const char *machine, int error)
{
    int calls = fail_each_call(machine, error);
    printf("# %s: %d calls\n", machine, calls);
    CHECK(calls > 10); /* otherwise the seam is not where the calls are */
}

static void every_machine(int error)
{
    for (size_t i = 0; i < ARRAY_LEN(captures); i++)
        one_machine(check_data(captures[i]), error);
    for (char **t = trees; *t; t++)
        one_machine(*t, error);
}

static void each_call_fails_with_eio(void)
{
    every_machine(EIO);
}

static void each_call_is_denied(void)
{
    every_machine(EPERM);
}

static void each_call_runs_out_of_files(void)
{
    every_machine(EMFILE);
}

static void trees_have_a_torch(void)
{
    REQUIRE(*trees);
    for (char **t = trees; *t; t++) {
        struct cairn_error err = { 0 };
        struct facts_options o = { .root = *t, .env = env, .parts = FACTS_ALL };
        struct facts f;
        REQUIRE(!facts_read(&f, &o, &err));
        CHECK(f.n_torches > 0 && f.torches[0].version.s && f.torches[0].compiled.n > 0);
        facts_release(&f);
    }
}

int main(int argc, char **argv)
{
    trees = argv + (argc > 0);
    RUN(trees_have_a_torch);
    RUN(each_call_fails_with_eio);
    RUN(each_call_is_denied);
    RUN(each_call_runs_out_of_files);
    return check_done();
}
