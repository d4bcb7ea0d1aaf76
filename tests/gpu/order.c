/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"
#include <string.h>

int k_first, k_step = 1;

static const struct {
    const char *name;
    int first, step;
} orders[] = { { "forward", 0, 1 }, { "reversed", -1, -1 }, { "strided", 0, 97 } };

bool k_order_set(const char *name)
{
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (!strcmp(name, orders[i].name)) {
            k_first = orders[i].first;
            k_step = orders[i].step;
            return true;
        }
    return false;
}
