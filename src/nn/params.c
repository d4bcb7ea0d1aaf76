/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/params.h"
#include <assert.h>
#include <stdarg.h>
#include <string.h>

static size_t add(struct params *p, struct param new, size_t rows_padded)
{
    new.at = p->numbers[new.kind];
    p->numbers[new.kind] += (rows_padded * new.columns + PARAMS_ALIGN - 1) / PARAMS_ALIGN * PARAMS_ALIGN;
    if (new.kind == PARAM_QUANTIZED) {
        new.scale_at = p->scales;
        p->scales += new.rows;
    }
    *ARENA_PUSH(&p->arena, p->list, p->n) = new;
    return p->n - 1;
}

size_t params_add(struct params *p, enum param_kind kind, size_t rows, size_t columns, const char *fmt, ...)
{
    assert(kind != PARAM_VECTOR || rows == 1);
    va_list ap;
    va_start(ap, fmt);
    const char *name = arena_vprintf(&p->arena, fmt, ap);
    va_end(ap);
    return add(p, (struct param){ .name = name, .kind = kind, .rows = rows, .columns = columns }, rows);
}

size_t params_add_padded(struct params *p, size_t rows, size_t columns, size_t rows_padded, const char *name)
{
    assert(rows_padded >= rows);
    struct param new = { .name = arena_strdup(&p->arena, name), .rows = rows, .columns = columns };
    return add(p, new, rows_padded);
}

const struct param *params_find(const struct params *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->list[i].name, name))
            return &p->list[i];
    return NULL;
}

size_t params_count(const struct params *p)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->list[i].rows * p->list[i].columns;
    return sum;
}

void params_release(struct params *p)
{
    arena_release(&p->arena);
    *p = (struct params){ 0 };
}
