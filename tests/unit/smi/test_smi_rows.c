/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/rows.h"

#include "check.h"
#include "smi/fields.h"

/* A column that is none would be N/A for ever. */
static void check_column(const struct smi_row *r, const struct gpu_process *process)
{
    const struct smi_line l = { .process = process };
    if (r->column && r->column[0] && r->column[0] != '=' && !smi_field_of(&l, r->column))
        CHECK_STR(r->column, "a column");
}

static void every_column_is_one(void)
{
    const struct gpu_process process = { 0 };
    for (size_t i = 0; i < smi_n_gpu_rows; i++)
        check_column(&smi_gpu_rows[i], NULL);
    for (size_t i = 0; i < smi_n_process_rows; i++) {
        CHECK(smi_process_rows[i].column && smi_process_rows[i].label && smi_process_rows[i].element);
        check_column(&smi_process_rows[i], &process);
    }
}

/* Only a heading has rows beneath it, and each of those is one step deeper. */
static void rows_are_nested(void)
{
    CHECK(smi_gpu_rows[0].depth == 1);
    for (size_t i = 0; i < smi_n_gpu_rows; i++) {
        const struct smi_row *r = &smi_gpu_rows[i];
        CHECK(r->label || r->element);
        CHECK(r->depth == 1 || (!r->sections && !r->asked));
        if (i)
            CHECK(r->depth <= r[-1].depth + !r[-1].column);
    }
}

/* Two of a name in one place are a list to those who read XML. */
static void elements_are_their_own(void)
{
    for (size_t i = 0; i < smi_n_gpu_rows; i++) {
        const struct smi_row *r = &smi_gpu_rows[i];
        for (size_t k = i + 1; k < smi_n_gpu_rows && smi_gpu_rows[k].depth >= r->depth; k++)
            if (r->element && smi_gpu_rows[k].element && smi_gpu_rows[k].depth == r->depth &&
                !strcmp(r->element, smi_gpu_rows[k].element))
                CHECK_STR(r->element, "once");
    }
}

static void names_of_sections(void)
{
    CHECK(smi_section("MEMORY", 6) && smi_section("memory", 6) == smi_section("MEMORY", 6));
    CHECK(smi_section("POWER,CLOCK", 5) == smi_section("POWER", 5));
    CHECK(smi_section("POWER", 5) != smi_section("CLOCK", 5));
    CHECK(!smi_section("", 0) && !smi_section("MEM", 3) && !smi_section("MEMORYX", 7));
}

int main(void)
{
    RUN(every_column_is_one);
    RUN(rows_are_nested);
    RUN(elements_are_their_own);
    RUN(names_of_sections);
    return check_done();
}
