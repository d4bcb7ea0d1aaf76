/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention.h"

#include "check.h"
#include "gpu/attention_cpu.h"
#include "gpu/backend.h"
#include <math.h>

/* So many queries share a head of keys that they are not packed at once. */
enum {
    HEADS = 19,
    QUERIES = 1100,
    KEYS = 40,
    SIZE = 128,
    NQ = HEADS * QUERIES * SIZE,
    NK = HEADS * KEYS * SIZE
};

struct rig {
    struct gpu *g;
    float *q, *k, *v, *d_o, *o, *dq, *dk, *dv, *lse, *delta;
};

/* The same in every run, and not the same at any two places. */
static float *make(size_t n, unsigned seed)
{
    float *x = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
    return x;
}

static void open_rig(struct rig *r)
{
    struct cairn_error err = { 0 };
    *r = (struct rig){ .q = make(NQ, 1),
                       .k = make(NK, 2),
                       .v = make(NK, 3),
                       .d_o = make(NQ, 4),
                       .o = make(NQ, 5),
                       .dq = make(NQ, 6),
                       .dk = make(NK, 7),
                       .dv = make(NK, 8),
                       .lse = make(HEADS * QUERIES, 9),
                       .delta = make(HEADS * QUERIES, 10) };
    CHECK(!gpu_open("cpu", &r->g, &err));
}

static void close_rig(struct rig *r)
{
    float *all[] = { r->q, r->k, r->v, r->d_o, r->o, r->dq, r->dk, r->dv, r->lse, r->delta };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
    gpu_close(r->g);
}

/* All heads read the first of keys and values; its gradients are one, or with `apart` one for each. */
static void run(struct rig *r, bool apart)
{
    struct cairn_error err = { 0 };
    struct attention_stride q = { NQ, HEADS * SIZE, SIZE }, k = { NK, SIZE, 0 },
                            dk = { NK, SIZE, KEYS * SIZE };
    struct attention_args there = {
        .o = r->o,
        .lse = r->lse,
        .q = r->q,
        .k = r->k,
        .v = r->v,
        .o_by = q,
        .q_by = q,
        .k_by = k,
        .v_by = k,
        .heads = HEADS,
        .kv_heads = apart ? HEADS : 1,
        .queries = QUERIES,
        .keys = KEYS,
        .size = SIZE,
        .causal = 1,
        .scale = 0.1f,
    };
    struct attention_backward_args back = {
        .dq = r->dq,
        .dk = r->dk,
        .dv = r->dv,
        .delta = r->delta,
        .q = r->q,
        .k = r->k,
        .v = r->v,
        .o = r->o,
        .d_o = r->d_o,
        .lse = r->lse,
        .dq_by = q,
        .dk_by = dk,
        .dv_by = dk,
        .q_by = q,
        .k_by = k,
        .v_by = k,
        .o_by = q,
        .d_o_by = q,
        .heads = HEADS,
        .kv_heads = there.kv_heads,
        .queries = QUERIES,
        .keys = KEYS,
        .size = SIZE,
        .causal = 1,
        .scale = 0.1f,
    };
    CHECK(!attention_forward(r->g, NULL, GPU_F32, 1, &there, &err));
    CHECK(!attention_backward(r->g, NULL, GPU_F32, 1, &back, &err));
    CHECK(!gpu_wait(r->g, NULL, &err));
}

static double worst_of_sums(const float *shared, const float *apart)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < KEYS * SIZE; i++) {
        double sum = 0;
        for (size_t h = 0; h < HEADS; h++)
            sum += apart[h * KEYS * SIZE + i];
        worst = fmax(worst, fabs(sum - shared[i]));
        largest = fmax(largest, fabs(sum));
    }
    return worst / largest;
}

static void heads_that_share_keys_add_up(void)
{
    struct rig together, apart;
    open_rig(&together);
    open_rig(&apart);
    run(&together, false);
    run(&apart, true);
    CHECK(worst_of_sums(together.dk, apart.dk) < 1e-5);
    CHECK(worst_of_sums(together.dv, apart.dv) < 1e-5);
    CHECK(!memcmp(together.dq, apart.dq, NQ * sizeof(float)));
    close_rig(&together);
    close_rig(&apart);
}

static void their_number_does_not_make_the_room_larger(void)
{
    struct rig r;
    open_rig(&r);
    run(&r, false);
    CHECK(gpu_host_scratch_size(r.g) > 0);
    CHECK(gpu_host_scratch_size(r.g) <= (4 << 20) + 4 * KEYS * SIZE);
    close_rig(&r);
}

static void the_room_is_known_before(void)
{
    for (int apart = 0; apart < 2; apart++) {
        struct rig r;
        struct attention_backward_args sizes = {
            .heads = HEADS, .kv_heads = apart ? HEADS : 1, .queries = QUERIES, .keys = KEYS, .size = SIZE
        };
        open_rig(&r);
        size_t room = attention_cpu_scratch(r.g, GPU_F32, 1, &sizes, true);
        run(&r, apart);
        CHECK_INT(gpu_host_scratch_size(r.g), room);
        CHECK_INT(gpu_allocated(r.g).bytes, room * sizeof(float)); /* so it counts */
        close_rig(&r);
    }
}

int main(void)
{
    RUN(heads_that_share_keys_add_up);
    RUN(their_number_does_not_make_the_room_larger);
    RUN(the_room_is_known_before);
    return check_done();
}
