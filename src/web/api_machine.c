/* SPDX-License-Identifier: Apache-2.0
 * The machine: GPUs, their figures, and what the doctor finds. */
#include "web/api.h"
#include "web/child.h"
#include "web/machine.h"
#include "web/machine_sample.h"
#include "web/web.h"

void api_machine(struct request *r)
{
    machine_answer(r->web->machine, r);
}

void api_machine_history(struct request *r)
{
    int64_t seconds;
    if (request_query_int(r, "seconds", 1, MACHINE_KEPT_S, MACHINE_KEPT_S, &seconds))
        machine_answer_history(r->web->machine, r, (int)seconds);
}

void api_doctor(struct request *r)
{
    const char *root = r->web->options->root;
    const char *argv[] = { "doctor", "--json", root ? arena_printf(&r->arena, "--root=%s", root) : NULL,
                           NULL };
    child_answer(r, &(struct child_spec){ .argv = argv });
}
