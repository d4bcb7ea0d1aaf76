/* SPDX-License-Identifier: Apache-2.0
 * control.json in the folder of a run: what somebody asks of a training that goes on.
 *
 *     {"seq":3,"save":true,"sample":false,"stop_at_step":500}
 *
 * Others write the file, and replace it as a whole.  The training looks at it after every step, with one stat, and
 * reads it when it has changed.  An order is obeyed once, if its `seq` is larger than that of the last one; run.json
 * has that number, so that a run that resumes does not obey an order again.  Keys may be missing: nothing is asked
 * then.  A `stop_at_step` of null calls off a stop that was asked for; without the key such a stop remains. */
#ifndef CAIRN_RECORD_CONTROL_H
#define CAIRN_RECORD_CONTROL_H

#include "base/arena.h"
#include "base/error.h"
#include "os/info.h"

#define CONTROL_FILE "control.json"

enum control_stop { CONTROL_STOP_SAME, CONTROL_STOP_NONE, CONTROL_STOP_AT };
struct control_order {
    uint64_t seq; /* above 0; chosen by control_write */
    bool save, sample;
    enum control_stop stop;
    uint64_t stop_at_step; /* with CONTROL_STOP_AT; one that is done already: the current one */
};

/* ---- for those who ask ---- */

/* Replaces the file.  What an older order asks that the run has not obeyed yet is asked again.  Several processes
 * may call it at once.  *seq: the number of the order, which run.json has (control_seq) once it is obeyed; may be
 * NULL. */
int control_write(const char *dir, const struct control_order *order, uint64_t *seq, struct cairn_error *err);

/* ---- for the training ---- */

enum { CONTROL_KEY = 64 };
struct control {
    const char *path;
    struct os_info seen; /* the file as it was read */
    bool is_seen;
    uint64_t obeyed;           /* the last order */
    char unknown[CONTROL_KEY]; /* a key of the new order that is ignored, said at most once; "": none */
    bool has_told_unknown;
    bool has_told_bad; /* of a wrong file; until there is a good one */
};
/* obeyed: the last order that an earlier process obeyed; 0: none. */
void control_init(struct control *c, const char *dir, uint64_t obeyed, struct arena *a);
/* 1: *out is a new order, and counts as obeyed.  0: there is none.  -1: the file is wrong, or its order is older
 * than the last one; it is ignored, and *err is for the user, who was not told yet. */
int control_look(struct control *c, struct control_order *out, struct cairn_error *err);
/* "save, sample, stop at step 500", for messages; `step` is the current one. */
const char *control_text(const struct control_order *order, uint64_t step, struct arena *a);

#endif
