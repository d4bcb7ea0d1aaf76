/* SPDX-License-Identifier: Apache-2.0
 * How late it is, for telling how long something took. */
#ifndef CAIRN_BASE_CLOCK_H
#define CAIRN_BASE_CLOCK_H

double clock_s(void); /* seconds of the monotonic clock */

#endif
