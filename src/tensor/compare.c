/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/compare.h"

#include <stdlib.h>
#include <string.h>

bool compare_covers(const struct compare_options *o, const char *name)
{
    return source_name_matches(name, o->only, o->n_only);
}

bool compare_differs(const struct compare_options *o, const struct diff_pair *p)
{
    bool dtype = !o->ignore_dtype && strcmp(p->a->dtype_text, p->b->dtype_text) != 0;
    return dtype || !p->compared || p->result.differing;
}

bool compare_meta_differs(const struct tensor_source *other, const struct st_meta *m)
{
    const char *value = source_meta_find(other, m->key);
    return !value || strcmp(value, m->value);
}

bool compare_is_same(const struct comparison *k)
{
    return !k->differ && !k->only_a && !k->only_b && !k->meta;
}

void compare_index(const struct st_tensor *t, uint64_t index, uint64_t *out)
{
    for (int i = t->rank - 1; i >= 0; i--) {
        out[i] = index % t->shape[i];
        index /= t->shape[i];
    }
}

int compare_open(struct comparison *k, const char *a, const char *b, const struct compare_options *o,
                 struct cairn_error *err)
{
    k->o = o;
    if (source_open(&k->a, a, err) || source_open(&k->b, b, err))
        return -1;
    k->pairs = calloc(k->a.n_tensors + 1, sizeof(*k->pairs));
    if (!k->pairs)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tensors", k->a.n_tensors);
    for (size_t i = 0; i < k->a.n_tensors; i++) {
        const struct st_tensor *t = &k->a.tensors[i], *other = source_find(&k->b, t->name);
        if (!other || !compare_covers(o, t->name))
            continue;
        k->pairs[k->n_pairs++] = (struct diff_pair){ .a = t, .b = other };
        k->bytes += t->bytes;
    }
    return 0;
}

static size_t count_missing(const struct comparison *k, const struct tensor_source *in,
                            const struct tensor_source *from)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n_tensors; i++)
        n += compare_covers(k->o, from->tensors[i].name) && !source_find(in, from->tensors[i].name);
    return n;
}

int compare_run(struct comparison *k, struct cairn_error *err)
{
    if (diff_pairs(&k->a, &k->b, k->pairs, k->n_pairs, &k->o->values, err))
        return -1;
    k->only_a = count_missing(k, &k->b, &k->a);
    k->only_b = count_missing(k, &k->a, &k->b);
    for (size_t i = 0; i < k->n_pairs; i++)
        k->differ += compare_differs(k->o, &k->pairs[i]);
    k->same = k->n_pairs - k->differ;
    for (size_t i = 0; k->o->metadata && i < k->a.n_meta; i++)
        k->meta += compare_meta_differs(&k->b, &k->a.meta[i]);
    for (size_t i = 0; k->o->metadata && i < k->b.n_meta; i++)
        k->meta += !source_meta_find(&k->a, k->b.meta[i].key);
    return 0;
}

void compare_close(struct comparison *k)
{
    source_close(&k->a);
    source_close(&k->b);
    free(k->pairs);
}
