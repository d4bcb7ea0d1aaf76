/* SPDX-License-Identifier: Apache-2.0
 * `cairn doctor --probe`: runs this machine's PyTorch on the GPU and compares the result with the doctor's
 * prediction.
 *
 * A child process runs probe.py in its own process group, without input, for a limited time.  However it
 * or cairn ends, no process is left.  A crash or a hang is a result, not an error. */
#ifndef CAIRN_RUN_PROBE_H
#define CAIRN_RUN_PROBE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "rules/checks.h"
#include <stdbool.h>

enum probe_end {
    PROBE_ANSWERED,    /* result is valid */
    PROBE_SILENT,      /* the process ended by itself without a result; code is its exit status */
    PROBE_CRASHED,     /* code is the signal */
    PROBE_HUNG,        /* killed after the time limit */
    PROBE_NO_PYTHON,   /* the interpreter could not be started; code is errno */
    PROBE_INTERRUPTED, /* cairn got a signal; code is the signal */
};

struct probe_options {
    const char *python;     /* looked up in PATH if it has no slash */
    const char *site;       /* folder to import torch from; NULL: the interpreter's default */
    const char *const *env; /* NULL-terminated */
    int timeout_s;
};

struct probe {
    enum probe_end end;
    int code;
    const char *stage;   /* the step it was at; NULL: none began */
    const char *tail;    /* the last line it printed; NULL: none */
    struct json *result; /* owned; see probe.py */
    bool stuck;          /* it sleeps in the kernel, so that SIGKILL has no effect yet */
    double seconds;
};

/* Fails only if no pipe or signal descriptor can be made. */
int probe_run(const struct probe_options *o, struct arena *a, struct probe *out, struct cairn_error *err);
void probe_release(struct probe *p);

/* A prediction and the result.  The doctor made the prediction for the environment of the child. */
struct probe_line {
    const char *id;
    const char *predicted; /* NULL: nothing was predicted */
    struct finding found;
    bool differs; /* from the prediction */
};
struct probe_report {
    struct probe_line *lines;
    size_t n;
    enum verdict prediction, reality;
    bool agrees; /* prediction and result agree */
    const char *summary;
};
/* The report points into the probe. */
void probe_judge(const struct probe *p, const struct facts *f, const struct doctor *d, int timeout_s,
                 struct arena *a, struct probe_report *out);

struct probe_request {
    const struct facts *facts;
    const struct plan *plan;
    const struct doctor *doctor; /* of this machine without the plan */
    int gpu;                     /* -1: the default one */
    int timeout_s;
};
/* Runs the probe with the planned environment and judges it, unless interrupted (PROBE_INTERRUPTED).  The
 * report points into the probe, which the caller releases. */
int probe_examine(const struct probe_request *r, struct arena *a, struct probe *probe,
                  struct probe_report *out, struct cairn_error *err);

#endif
