/* SPDX-License-Identifier: Apache-2.0
 * Restart after a device failure: the process executes itself anew and resumes from the last checkpoint,
 * first without a workaround, then with one more workaround each time.  After a good hour that made a
 * checkpoint, the next failure counts as the first one again; workarounds in use are kept.
 *
 * If the call that never returned is one of a text encoder or a VAE, only this encoder moves to the CPU.
 *
 * Everything is prepared beforehand, so that the watchdog thread can restart while another thread hangs. */
#ifndef CAIRN_START_RESTART_H
#define CAIRN_START_RESTART_H

#include "base/arena.h"
#include "base/message_sink.h"
#include "encode/encode_device.h"
#include "gpu/gpu.h"
#include "train/config.h"
#include <stdbool.h>

/* How far a run has climbed the ladder of workarounds. */
struct restart_rung {
    int times;      /* restarts in a row */
    int workaround; /* this one and those before it are in use; 0: none */
};
/* Climbs to the next rung; false if there is none.  lived_s: age of the process; came_further: it made a
 * checkpoint. */
bool restart_next(struct restart_rung *p, double lived_s, bool came_further, enum gpu_api api,
                  bool allow_cpu);

/* argv starts with the command's name; without `resume`, --resume is added to it.  Finds the rung of this
 * process: the one that a restart handed over, or, with `resume`, the workaround of a run that died
 * (run.json in dir; NULL: the command has no such folder).  After a good end the workaround is dropped. */
void restart_prepare(int argc, char **argv, bool resume, const char *dir, const struct message_sink *messages,
                     struct arena *a);
/* Sets the workarounds' environment variables.  Call it before the first thread starts, and after
 * own_env_apply. */
void restart_apply(void);
bool restart_wants_cpu(void);
/* Encoders in which a call never returned compute on the CPU from then on. */
int restart_set_encoders(struct job_config *c, struct cairn_error *err);
/* The same for a command without a configuration. */
bool restart_wants_encoder_on_cpu(enum encode_part part);
/* Restarts with this encoder on the CPU; returns only if it cannot. */
void restart_encoder(const struct cairn_error *why, enum encode_part part);
const char *restart_workaround(void); /* its name, for run.json; NULL: none */
const char *restart_why(void);        /* why the last process was restarted; NULL: this is the first one */
/* The device decides which workarounds apply. */
void restart_set_device(enum gpu_api api, bool allow_cpu);
/* Returns only if it cannot restart: exec failed, nothing was prepared, or no rung is left.  once: the
 * message says that no other restart will follow. */
void restart_now(const struct cairn_error *why, bool once);

#endif
