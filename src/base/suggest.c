/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include "base/int.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 63 };

size_t suggest_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t row[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                row[i][j] = i + j;
                continue;
            }
            size_t d = row[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d = at_most(d, at_most(row[i - 1][j], row[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = at_most(d, row[i - 2][j - 2] + 1);
            row[i][j] = d;
        }
    }
    return row[n][m];
}

/* A third of the letters may differ; one in a short word. */
void suggest_try(struct suggestion *n, const char *candidate)
{
    size_t longer = strlen(n->word) > strlen(candidate) ? strlen(n->word) : strlen(candidate);
    size_t d = suggest_distance(n->word, candidate);
    if (d >= longer || d > (longer < 6 ? 1 : longer / 3) || (n->best && d >= n->distance))
        return;
    n->best = candidate;
    n->distance = d;
}
