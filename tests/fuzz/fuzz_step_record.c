/* SPDX-License-Identifier: Apache-2.0
 * A line of log.jsonl from any text: what was read comes back when it is written, and the quick reader says what the
 * JSON library says.  Reading some of the metrics is for lines that cairn wrote, which have them in order. */
#include "record/step_record.h"

#include "fuzz.h"
#include <math.h>

/* What is a float is written so that it is read as the same float. */
static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || ((double)(float)a == a && (float)a == (float)b);
}

static bool same(const struct step_record *a, const struct step_record *b)
{
    if (a->step != b->step || a->has != b->has || a->event != b->event)
        return false;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (step_record_has(a, i) && !same_number(a->value[i], b->value[i]))
            return false;
    return true;
}

/* Bytes and thousandths of seconds are rounded when they are written. */
static void round_off(struct step_record *m)
{
    for (int i = METRIC_MEM_BYTES; i <= METRIC_MEM_HOLE; i++)
        m->has &= ~(1u << i);
    m->has &= ~(1u << METRIC_ELAPSED_S);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    CLEANUP(str_release) struct str line = { 0 }, again = { 0 };
    struct cairn_error err = { 0 };
    struct step_record quick, slow, back;
    size_t len = strlen(text);
    str_addn(&line, text, len);
    str_add(&line, "\n");
    if (step_record_parse(line.s, line.len, &quick, &err))
        return 0;
    /* Without the line feed the library reads it; it refuses some that the quick reader takes (01). */
    if (!step_record_parse(text, len, &slow, &err))
        FUZZ_REQUIRE(same(&quick, &slow));
    round_off(&quick);
    step_record_add_line(&quick, &again);
    FUZZ_REQUIRE(!step_record_parse(again.s, again.len, &back, &err) && same(&quick, &back));
    FUZZ_REQUIRE(!step_record_parse_some(again.s, again.len, 1u << METRIC_LR, &back, &err));
    FUZZ_REQUIRE(back.step == quick.step && back.event == quick.event);
    FUZZ_REQUIRE(step_record_has(&back, METRIC_LR) == step_record_has(&quick, METRIC_LR));
    FUZZ_REQUIRE(!step_record_has(&quick, METRIC_LR) ||
                 same_number(quick.value[METRIC_LR], back.value[METRIC_LR]));
    return 0;
}
