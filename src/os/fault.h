/* SPDX-License-Identifier: Apache-2.0
 * Fault injection: every system call (open, read, readdir, spawn, mmap) asks fault_hit() first.
 *
 * A test arms it so that the nth such call fails; otherwise it is one comparison.  Only tests arm it, before
 * they start threads; fault_hit() is safe from any thread. */
#ifndef CAIRN_OS_FAULT_H
#define CAIRN_OS_FAULT_H

#include <stdbool.h>

/* The nth outside call from now on fails with this errno (n counts from 1). */
void fault_arm(int nth, int error);
/* Disarms it; true if the fault was reached, false if fewer calls were made. */
bool fault_disarm(void);
/* True: the caller must behave as if the call had failed; errno is set. */
bool fault_hit(void);

#endif
