/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_HEADER_CODES_H
#define CAIRN_TESTS_HEADER_CODES_H

#include "check.h"

/* Every code of a driver's header that means a lost device is in our list. */
static inline void check_codes(const int *wanted, size_t n_wanted, const int *list, size_t n)
{
    for (size_t i = 0; i < n_wanted; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++)
            known |= list[k] == wanted[i];
        if (!known)
            CHECK_FAIL_("code %d is not in the list", wanted[i]);
    }
}

#endif
