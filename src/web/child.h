/* SPDX-License-Identifier: Apache-2.0
 * Slow or dangerous work in a child: `cairn … --json`, this very program, by its arguments and never by a shell.
 *
 * At most two run at a time; others wait their turn, and too many are refused with 503.  Each has limits of time,
 * CPU and memory.  The request waits without holding up the others:
 *
 *     const char *argv[] = { "doctor", "--json", NULL };
 *     child_answer(r, &(struct child_spec){ .argv = argv });                 in a handler; nothing else to do
 *
 * What the child prints on standard output is the answer, if it is JSON, whatever its exit status; otherwise the
 * answer is a problem with the last line of its standard error. */
#ifndef CAIRN_WEB_CHILD_H
#define CAIRN_WEB_CHILD_H

#include "base/error.h"
#include "os/process.h"
#include "web/loop.h"
#include "web/request.h"

enum { CHILD_AT_ONCE = 2, CHILD_WAITING = 32, CHILD_OUTPUT = 16 << 20, CHILD_SECONDS = 60 };

struct child_spec {
    const char *const *argv; /* after the program's name; copied */
    const char *input;       /* its standard input, at most 32 MiB; copied */
    size_t input_n;
    const char *folder; /* its working folder; NULL: ours */
    unsigned seconds;   /* of time; 0: CHILD_SECONDS */
    uint64_t memory;    /* bytes of address space; 0: 4 GiB */
    bool opens_gpu;     /* GPU runtimes reserve much address space: its private memory is limited instead */
};

struct child_result {
    struct os_end end;
    bool timed_out;
    const char *out, *err; /* terminated; valid during the call */
    size_t out_n;
};

struct children;
int children_open(struct loop *l, struct children **out, struct cairn_error *err);
/* Kills those that run; accepts NULL. */
void children_close(struct children *c);

/* Calls done(context, result) when it has ended.  -1: too many wait, or it did not start. */
int child_run(struct children *c, const struct child_spec *spec,
              void (*done)(void *context, const struct child_result *result), void *context,
              struct cairn_error *err);
/* Answers the request with what the child prints. */
void child_answer(struct request *r, const struct child_spec *spec);

#endif
