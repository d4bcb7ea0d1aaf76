/* SPDX-License-Identifier: Apache-2.0
 * Monotonic clock. */
#ifndef CAIRN_BASE_CLOCK_H
#define CAIRN_BASE_CLOCK_H

double clock_s(void); /* seconds */

#endif
