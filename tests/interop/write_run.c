/* SPDX-License-Identifier: Apache-2.0
 * write_run DIR: a run of twelve steps that is resumed after the eighth, for board.py to look at. */
#include "record/run_log.h"

#include <math.h>
#include <stdio.h>

static int write_steps(const char *dir, uint64_t first, uint64_t last, double shift)
{
    struct cairn_error err = { 0 };
    struct run_log *m;
    if (run_log_open(dir, first, &m, &err))
        return fprintf(stderr, "%s\n", err.msg), 1;
    for (uint64_t i = first; i <= last; i++) {
        struct step_record s = { .step = i, .event = i % 4 ? NULL : "eval" };
        step_record_set(&s, METRIC_LOSS, i == 6 ? (double)NAN : shift + 1.0 / (double)i);
        step_record_set(&s, METRIC_LR, 3e-4);
        step_record_set(&s, METRIC_GRAD_NORM, (double)i);
        step_record_set(&s, METRIC_TOKENS_PER_S, 1850.5);
        step_record_set(&s, METRIC_MEM_BYTES, 1.5e9);
        if (i % 4 == 0)
            step_record_set(&s, METRIC_VAL_LOSS, shift + 2);
        run_log_add(m, &s);
    }
    run_log_add_text(m, last, "sample", "once upon a time, **ümlaut**");
    return run_log_close(m, &err) ? fprintf(stderr, "%s\n", err.msg), 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    return write_steps(argv[1], 1, 12, 0) || write_steps(argv[1], 9, 15, 10);
}
