/* SPDX-License-Identifier: Apache-2.0 */
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

int token_list_reserve(struct token_list *l, size_t more, struct cairn_error *err)
{
    if (l->cap - l->n >= more)
        return 0;
    size_t cap = l->cap * 2 > l->n + more ? l->cap * 2 : l->n + more;
    uint32_t *ids = cap > SIZE_MAX / sizeof(*ids) ? NULL : realloc(l->ids, cap * sizeof(*ids));
    if (!ids)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tokens", cap);
    l->ids = ids;
    l->cap = cap;
    return 0;
}

void token_list_release(struct token_list *l)
{
    free(l->ids);
    *l = (struct token_list){ 0 };
}

int bpe_init(struct bpe *b, size_t n, struct cairn_error *err)
{
    size_t slots = 16;
    while (slots < 2 * n)
        slots *= 2;
    *b = (struct bpe){ .mask = slots - 1 };
    b->made = malloc((n + 1) * sizeof(*b->made));
    b->slots = malloc(slots * sizeof(*b->slots));
    if (!b->made || !b->slots) {
        bpe_release(b);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu merges", n);
    }
    for (size_t i = 0; i < slots; i++)
        b->slots[i] = (struct bpe_slot){ 0, BPE_NONE };
    return 0;
}

static struct bpe_slot *find(const struct bpe *b, uint64_t pair)
{
    size_t at = (size_t)((pair * 0x9e3779b97f4a7c15u) >> 32);
    while (b->slots[at & b->mask].rank != BPE_NONE && b->slots[at & b->mask].pair != pair)
        at++;
    return &b->slots[at & b->mask];
}

void bpe_add(struct bpe *b, uint32_t left, uint32_t right, uint32_t made)
{
    uint64_t pair = (uint64_t)left << 32 | right;
    *find(b, pair) = (struct bpe_slot){ pair, (uint32_t)b->n_merges };
    b->made[b->n_merges++] = made;
}

uint32_t bpe_rank(const struct bpe *b, uint32_t left, uint32_t right)
{
    return find(b, (uint64_t)left << 32 | right)->rank;
}

/* ---- short words: scan all pairs for each merge ---- */

enum { SHORT = 48 };

static void encode_short(const struct bpe *b, const char *word, size_t n, struct token_list *out)
{
    uint32_t *id = out->ids + out->n, rank[SHORT];
    for (size_t i = 0; i < n; i++)
        id[i] = b->byte_ids[(unsigned char)word[i]];
    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = bpe_rank(b, id[i], id[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == BPE_NONE)
            break;
        id[best] = b->made[rank[best]];
        memmove(id + best + 1, id + best + 2, (n - best - 2) * sizeof(*id));
        memmove(rank + best, rank + best + 1, (n - best - 2) * sizeof(*rank));
        n--;
        if (best)
            rank[best - 1] = bpe_rank(b, id[best - 1], id[best]);
        if (best + 1 < n)
            rank[best] = bpe_rank(b, id[best], id[best + 1]);
    }
    out->n += n;
}

/* ---- long words: a linked list, and a heap of the pairs that can be merged ---- */

struct node {
    uint32_t id, before, after; /* neighbours; BPE_NONE at the ends */
};

struct work {
    struct node *nodes;
    uint64_t *heap; /* rank << 32 | position of the left one: the smallest goes first */
    size_t n_heap;
};

static void work_release(struct work *w)
{
    free(w->nodes);
    free(w->heap);
}

static void heap_push(struct work *w, uint64_t key)
{
    size_t at = w->n_heap++;
    for (; at && w->heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = key;
}

static uint64_t heap_pop(struct work *w)
{
    uint64_t top = w->heap[0], key = w->heap[--w->n_heap];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < w->n_heap) {
        if (child + 1 < w->n_heap && w->heap[child + 1] < w->heap[child])
            child++;
        if (w->heap[child] >= key)
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = key;
    return top;
}

static uint32_t rank_at(const struct bpe *b, const struct work *w, uint32_t at)
{
    uint32_t after = w->nodes[at].after;
    return after == BPE_NONE ? BPE_NONE : bpe_rank(b, w->nodes[at].id, w->nodes[after].id);
}

static void offer(const struct bpe *b, struct work *w, uint32_t at)
{
    uint32_t rank = at == BPE_NONE ? BPE_NONE : rank_at(b, w, at);
    if (rank != BPE_NONE)
        heap_push(w, (uint64_t)rank << 32 | at);
}

/* Removes the right one from the list and marks it by its id. */
static void merge(const struct bpe *b, struct work *w, uint32_t at, uint32_t rank)
{
    struct node *left = &w->nodes[at], *right = &w->nodes[left->after];
    left->id = b->made[rank];
    left->after = right->after;
    right->id = BPE_NONE;
    if (left->after != BPE_NONE)
        w->nodes[left->after].before = at;
    offer(b, w, left->before);
    offer(b, w, at);
}

static int encode_long(const struct bpe *b, const char *word, size_t n, struct token_list *out,
                       struct cairn_error *err)
{
    CLEANUP(work_release) struct work w = { 0 };
    if (n >= BPE_NONE)
        return cairn_fail(err, CAIRN_EFORMAT, "a word of %zu bytes is too long", n);
    w.nodes = malloc(n * sizeof(*w.nodes));
    w.heap = malloc(3 * n * sizeof(*w.heap)); /* the first pairs, and two for each merge */
    if (!w.nodes || !w.heap)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a word of %zu bytes", n);
    for (uint32_t i = 0; i < n; i++)
        w.nodes[i] = (struct node){ b->byte_ids[(unsigned char)word[i]], i ? i - 1 : BPE_NONE,
                                    i + 1 < n ? i + 1 : BPE_NONE };
    for (uint32_t i = 0; i < n; i++)
        offer(b, &w, i);
    while (w.n_heap) {
        uint64_t top = heap_pop(&w);
        uint32_t at = (uint32_t)top, rank = (uint32_t)(top >> 32);
        /* The entry may be stale: one of the two may have been merged since. */
        if (w.nodes[at].id != BPE_NONE && rank_at(b, &w, at) == rank)
            merge(b, &w, at, rank);
    }
    for (uint32_t i = 0; i != BPE_NONE; i = w.nodes[i].after)
        out->ids[out->n++] = w.nodes[i].id;
    return 0;
}

int bpe_encode(const struct bpe *b, const char *word, size_t n, struct token_list *out,
               struct cairn_error *err)
{
    if (!n)
        return 0;
    if (token_list_reserve(out, n, err))
        return -1;
    if (n > SHORT)
        return encode_long(b, word, n, out, err);
    encode_short(b, word, n, out);
    return 0;
}

void bpe_release(struct bpe *b)
{
    free(b->made);
    free(b->slots);
    *b = (struct bpe){ 0 };
}
