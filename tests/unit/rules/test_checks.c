/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "check.h"
#include "machine.h"

static const struct check_case *const case_tables[] = { hardware_cases, software_cases };

static const struct doctor_line *line_of(const struct doctor *d, const char *id)
{
    for (size_t i = 0; i < d->n; i++)
        if (!strcmp(d->lines[i].check->id, id))
            return &d->lines[i];
    return NULL;
}

static bool says(const struct finding *f, const char *text)
{
    return !text || (f->fact && strstr(f->fact, text)) || (f->why && strstr(f->why, text)) ||
           (f->remedy && strstr(f->remedy, text));
}

/* Runs one case; prints what came instead if it is not as wanted. */
static void run_case(const struct check_case *c, size_t row)
{
    struct machine m;
    c->make(&m);
    if (c->spoil)
        c->spoil(&m);
    struct doctor d;
    doctor_run(&m.facts, &m.plan, &m.arena, &d);
    const struct doctor_line *line = line_of(&d, c->id);
    if (!line)
        CHECK_FAIL_("case %zu: no check is called %s", row, c->id);
    else if (line->found.status != c->want || !says(&line->found, c->text))
        CHECK_FAIL_("case %zu, %s: %s (want %s \"%s\"): %s | %s | %s", row, c->id,
                    check_status_name(line->found.status), check_status_name(c->want), c->text ? c->text : "",
                    line->found.fact, line->found.why ? line->found.why : "-",
                    line->found.remedy ? line->found.remedy : "-");
    machine_release(&m);
}

static void every_case_holds(void)
{
    for (size_t t = 0; t < ARRAY_LEN(case_tables); t++)
        for (size_t i = 0; case_tables[t][i].id; i++)
            run_case(&case_tables[t][i], i);
}

static size_t count_cases(const char *id, bool speaks_up)
{
    size_t n = 0;
    for (size_t t = 0; t < ARRAY_LEN(case_tables); t++)
        for (const struct check_case *c = case_tables[t]; c->id; c++)
            n += !strcmp(c->id, id) && speaks_up == (c->want != CHECK_OK && c->want != CHECK_SKIP);
    return n;
}

static void every_check_has_cases_of_both_kinds(void)
{
    size_t n;
    const struct check *table = checks_table(&n);
    CHECK(n >= 40);
    for (size_t i = 0; i < n; i++) {
        if (!count_cases(table[i].id, true))
            CHECK_FAIL_("no case makes %s speak up", table[i].id);
        if (!count_cases(table[i].id, false))
            CHECK_FAIL_("no case leaves %s quiet", table[i].id);
    }
}

static void rows_are_whole_and_unique(void)
{
    size_t n;
    const struct check *t = checks_table(&n);
    for (size_t i = 0; i < n; i++) {
        CHECK(t[i].id && t[i].what && t[i].run && t[i].id[0] && t[i].what[0]);
        if (!t[i].source || !strstr(t[i].source, "https://"))
            CHECK_FAIL_("%s has no public source", t[i].id);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(t[i].id, t[k].id) != 0);
    }
}

static void groups_stand_together(void)
{
    static const char *const groups[] = { "hardware", "kernel",    "permissions", "memory", "rocm",
                                          "pytorch",  "libraries", "environment", "disk" };
    size_t n, g = 0;
    const struct check *t = checks_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(t[i].group, groups[g]) && g + 1 < ARRAY_LEN(groups))
            g++;
        CHECK_STR(t[i].group, groups[g]);
    }
    CHECK_INT(g, ARRAY_LEN(groups) - 1);
    CHECK(checks_has_group("memory") && !checks_has_group("nonsense"));
}

static void judge(void (*make)(struct machine *), void (*spoil)(struct machine *), struct machine *m,
                  struct doctor *d)
{
    make(m);
    if (spoil)
        spoil(m);
    doctor_run(&m->facts, &m->plan, &m->arena, d);
}

static void healthy_machines_work(void)
{
    void (*const makers[])(struct machine *) = { machine_card, machine_halo, machine_both };
    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        struct machine m;
        struct doctor d;
        judge(makers[i], NULL, &m, &d);
        for (size_t k = 0; k < d.n; k++)
            if (d.lines[k].found.status == CHECK_WARN || d.lines[k].found.status == CHECK_FAIL)
                CHECK_FAIL_("%s: %s", d.lines[k].check->id, d.lines[k].found.fact);
        CHECK_STR(verdict_name(d.verdict), "works");
        CHECK_HAS(d.summary, "Training with PyTorch will work on GPU 0 (");
        CHECK(!d.first && !d.lacks_gpu);
        machine_release(&m);
    }
}

static void ignorance_is_never_a_warning(void)
{
    struct machine m;
    struct doctor d;
    judge(machine_blank, NULL, &m, &d);
    for (size_t k = 0; k < d.n; k++)
        if (d.lines[k].found.status == CHECK_WARN || d.lines[k].found.status == CHECK_FAIL)
            CHECK_FAIL_("%s: %s", d.lines[k].check->id, d.lines[k].found.fact);
    CHECK(d.counts[CHECK_UNKNOWN] > 10);
    CHECK_STR(verdict_name(d.verdict), "unknown");
    machine_release(&m);
}

static void deny_kfd(struct machine *m)
{
    m->facts.host.kfd_node.access = NODE_DENIED;
    m->facts.n_torches = 0;
}

static void the_first_failure_is_named(void)
{
    struct machine m;
    struct doctor d;
    judge(machine_card, deny_kfd, &m, &d);
    CHECK_STR(verdict_name(d.verdict), "broken");
    CHECK(d.counts[CHECK_FAIL] == 2); /* torch is missing too, but that comes later */
    REQUIRE(d.first != NULL);
    CHECK_STR(d.first->check->id, "kfd-access");
    CHECK_HAS(d.summary, "/dev/kfd");
    CHECK_HAS(d.summary, "(kfd-access)");
    machine_release(&m);
}

static void no_gpu_is_said_plainly(void)
{
    struct machine m;
    struct doctor d;
    judge(machine_bare, NULL, &m, &d);
    CHECK_STR(verdict_name(d.verdict), "broken");
    CHECK(d.lacks_gpu);
    CHECK_HAS(d.summary, "no AMD GPU was found");
    for (size_t k = 0; k < d.n; k++) /* what hangs on a GPU does not apply */
        if (!strcmp(d.lines[k].check->group, "kernel") && d.lines[k].found.status != CHECK_SKIP)
            CHECK_FAIL_("%s speaks without a GPU", d.lines[k].check->id);
    machine_release(&m);
}

static void need_aotriton(struct machine *m)
{
    machine_set(m, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "1");
}

static void no_huge_pages(struct machine *m)
{
    m->facts.host.thp = text_of("never");
}

static void warnings_degrade_and_advice_does_not(void)
{
    struct machine m;
    struct doctor d;
    judge(machine_halo, need_aotriton, &m, &d);
    CHECK_STR(verdict_name(d.verdict), "degraded");
    CHECK_HAS(d.summary, "will work on GPU 0");
    machine_release(&m);
    judge(machine_halo, no_huge_pages, &m, &d);
    CHECK_STR(verdict_name(d.verdict), "works");
    CHECK_INT(d.counts[CHECK_WARN], 1);
    machine_release(&m);
}

static void choose_second(struct machine *m)
{
    m->plan.gpu = &m->gpus[1];
}

static void the_planned_gpu_is_judged(void)
{
    struct machine m;
    struct doctor d;
    judge(machine_both, choose_second, &m, &d);
    CHECK(d.gpu == &m.gpus[1]);
    CHECK_STR(d.target, "gfx1036");
    CHECK_INT(line_of(&d, "gpu-bf16")->found.status, CHECK_WARN);
    machine_release(&m);
}

/* A finding that is not well says why or what to do; one that is well stays short. */
static void findings_are_complete(void)
{
    for (size_t t = 0; t < ARRAY_LEN(case_tables); t++) {
        for (const struct check_case *c = case_tables[t]; c->id; c++) {
            struct machine m;
            struct doctor d;
            judge(c->make, c->spoil, &m, &d);
            for (size_t i = 0; i < d.n; i++) {
                const struct finding *f = &d.lines[i].found;
                bool bad = f->status == CHECK_WARN || f->status == CHECK_FAIL;
                if (!f->fact || !*f->fact || (bad && !f->why) || (!bad && f->status == CHECK_OK && f->remedy))
                    CHECK_FAIL_("%s (case of %s) is not whole", d.lines[i].check->id, c->id);
            }
            machine_release(&m);
        }
    }
}

int main(void)
{
    RUN(every_case_holds);
    RUN(every_check_has_cases_of_both_kinds);
    RUN(rows_are_whole_and_unique);
    RUN(groups_stand_together);
    RUN(healthy_machines_work);
    RUN(ignorance_is_never_a_warning);
    RUN(the_first_failure_is_named);
    RUN(no_gpu_is_said_plainly);
    RUN(warnings_degrade_and_advice_does_not);
    RUN(the_planned_gpu_is_judged);
    RUN(findings_are_complete);
    return check_done();
}
