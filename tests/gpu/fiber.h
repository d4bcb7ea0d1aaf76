/* SPDX-License-Identifier: Apache-2.0
 * Kernels with one fiber per work-item (K_FIBER in the prelude), to find what loops over work-items hide: a missing
 * barrier, a barrier that not all work-items reach.
 *
 * Each fiber runs to its next barrier or shuffle before the next one gets a turn, from the first work-item to the last or
 * the other way round.  A shuffle waits for the wave of 32 only: a wave runs to the next barrier of the group before
 * the next wave gets a turn.  A fault of barriers ends the process with a line on stderr. */
#ifndef CAIRN_TESTS_GPU_FIBER_H
#define CAIRN_TESTS_GPU_FIBER_H

#include "gpu/kernels/types.h"
#include <stdbool.h>

/* For all groups that start from now on. */
void k_fiber_set_reversed(bool reversed);

/* A barrier is known by the place in the program that waits there.  `seen` is told of each, at each wait, from any thread;
 * the one that is left out does not wait.  NULL: neither. */
void k_fiber_set_seen(void (*seen)(const void *place));
void k_fiber_leave_out(const void *place);

/* What the prelude calls. */
extern _Thread_local int k_item; /* the work-item that runs */
void k_fiber_group(void (*once)(const void *args, struct k_place place), const void *args,
                   struct k_place place, int items);
void k_fiber_wait(int line);
void k_fiber_wave(void); /* waits for the 32 */
float k_fiber_shuffle_xor(float v, int mask);

#endif
