/* SPDX-License-Identifier: Apache-2.0
 * The pool against a simple model of it, and the trace of a training step.  CAIRN_POOL_OPERATIONS: how many, if not a
 * million. */
#include "pool_device.h"

/* ---- a model ---- */

static struct gpu_stream *stream_of(int i)
{
    return i == STREAMS ? POOL_ANY : i ? &dev.streams[i] : NULL;
}

static void forget_ghosts(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_ghosts; i++) {
        bool done = true;
        for (int s = 0; s < STREAMS; s++)
            done &= ghosts[i].used.of[s] <= dev.host.of[s];
        if (!done)
            ghosts[kept++] = ghosts[i];
    }
    n_ghosts = kept;
}

static void sign(struct piece *x)
{
    if (x->n >= 2 * sizeof(x->name)) {
        memcpy(x->at, &x->name, sizeof(x->name));
        memcpy(x->at + x->n - sizeof(x->name), &x->name, sizeof(x->name));
    }
}

static bool is_signed(const struct piece *x)
{
    return x->n < 2 * sizeof(x->name) || (!memcmp(x->at, &x->name, sizeof(x->name)) &&
                                          !memcmp(x->at + x->n - sizeof(x->name), &x->name, sizeof(x->name)));
}

static void check_new(const struct piece *x)
{
    for (int i = 0; i < PIECES; i++)
        if (&pieces[i] != x && overlap(&pieces[i], x))
            CHECK_FAIL_("piece %d overlaps another", i);
    for (size_t i = 0; i < n_ghosts; i++)
        if (overlap(&ghosts[i], x) && is_too_early(&ghosts[i], x))
            CHECK_FAIL_("memory before its stream is done");
}

static size_t any_size(void)
{
    static const size_t most[] = { 300, 5000, 200000, 3 * MIB, 9 * MIB };
    return dice(most[dice(5)]);
}

/* A piece moves: its old place is free after all work was waited for. */
static void on_move(void *context, void *now)
{
    ((struct piece *)context)->at = now;
}

static void make_piece(struct pool *p, struct piece *x)
{
    struct cairn_error err = { 0 };
    void *at;
    *x = (struct piece){ .n = any_size(), .stream = (int)dice(STREAMS + 1), .name = ++seed };
    if (dice(4) == 0) {
        struct pool_owner owner = { on_move, x, dice(2) };
        x->stream = STREAMS;
        if (pool_buffer_open(p, x->n, &owner, &x->buffer, &err) || pool_buffer_pin(p, x->buffer, &at, &err)) {
            pool_buffer_close(p, x->buffer);
            *x = (struct piece){ 0 };
            return;
        }
        pool_buffer_unpin(p, x->buffer);
    } else if (pool_alloc(p, x->n, stream_of(x->stream), &at, &err)) {
        CHECK(err.code && err.msg[0]);
        *x = (struct piece){ 0 };
        return;
    }
    x->at = at;
    check_new(x);
    sign(x);
}

static void use_piece(struct piece *x)
{
    int s = x->stream == STREAMS ? (int)dice(STREAMS) : x->stream;
    if (x->at)
        x->used.of[s] = ++dev.queued.of[s];
}

static void drop_piece(struct pool *p, struct piece *x)
{
    struct cairn_error err = { 0 };
    void *at = x->at;
    if (x->buffer && !at && pool_buffer_pin(p, x->buffer, &at, &err))
        return; /* no room to look at it; another time */
    CHECK(is_signed(x));
    ghosts[n_ghosts++] = *x;
    if (x->buffer)
        pool_buffer_close(p, x->buffer);
    else
        pool_free(p, at, stream_of(x->stream));
    *x = (struct piece){ 0 };
}

static void move_some(struct pool *p)
{
    struct cairn_error err = { 0 };
    uint64_t moved;
    struct piece *x = &pieces[dice(PIECES)];
    void *at;
    switch (dice(8)) {
    case 0:
        (void)pool_compact(p, &moved, &err);
        break;
    case 1:
        pool_release(p);
        break;
    case 2: {
        int s = (int)dice(STREAMS);
        if (!dev_wait(&device, stream_of(s), &err))
            pool_note_wait(p, stream_of(s));
        break;
    }
    default:
        if (x->buffer && x->at)
            (void)pool_buffer_evict(p, x->buffer, &err);
        else if (x->buffer && !pool_buffer_pin(p, x->buffer, &at, &err)) {
            pool_buffer_unpin(p, x->buffer);
            CHECK(is_signed(x));
        }
    }
}

static void wait_for_all(struct pool *p)
{
    struct cairn_error err = { 0 };
    dev.fail_one_in = 0;
    for (int s = 0; s < STREAMS; s++)
        if (!dev_wait(&device, stream_of(s), &err))
            pool_note_wait(p, stream_of(s));
    forget_ghosts();
}

static void drop_all(struct pool *p)
{
    wait_for_all(p);
    for (int i = 0; i < PIECES; i++) {
        if (pieces[i].buffer)
            pool_buffer_close(p, pieces[i].buffer);
        else if (pieces[i].at)
            pool_free(p, pieces[i].at, POOL_ANY);
        pieces[i] = (struct piece){ 0 };
    }
}

static long operations(void)
{
    const char *told = getenv("CAIRN_POOL_OPERATIONS");
    return told ? atol(told) : 1000000;
}

static void a_million_operations_agree_with_a_model(void)
{
    struct cairn_error err = { 0 };
    struct pool *p = start((uint64_t)80 * MIB);
    n_ghosts = 0;
    dev.ends_only = true;
    for (int i = 1; i < STREAMS; i++)
        REQUIRE(!pool_add_stream(p, &dev.streams[i], &err));
    for (long i = 0; i < operations() && !check_bad_here; i++) {
        struct piece *x = &pieces[dice(PIECES)];
        dev.fail_one_in = i / 1000 % 2 ? 50 : 0;
        if (n_ghosts > 200)
            wait_for_all(p);
        if (dice(40) == 0)
            move_some(p);
        else if (!x->at && !x->buffer)
            make_piece(p, x);
        else if (dice(2))
            use_piece(x);
        else
            drop_piece(p, x);
    }
    struct pool_stats st = stats_of(p);
    for (int i = 0; i < POOL_RUNGS; i++)
        if (!st.rungs[i])
            CHECK_FAIL_("rung %d was never reached", i);
    drop_all(p);
    CHECK_INT(stats_of(p).live, 0);
    CHECK_INT(stats_of(p).allocated_bytes, 0);
    finish(p);
}

/* ---- a trace ---- */

enum { LAYERS = 12, KEPT = 6, LENGTHS = 8, STEPS = 10000 };

/* A step of training: what each layer keeps for the way back, with short-lived pieces between. */
static void step(struct pool *p, size_t tokens)
{
    static const size_t widths[KEPT] = { 768, 2304, 768, 768, 3072, 3072 };
    void *kept[LAYERS * KEPT];
    for (int i = 0; i < LAYERS * KEPT; i++) {
        kept[i] = get(p, tokens * widths[i % KEPT] * 2);
        pool_free(p, get(p, tokens * 4), NULL);
    }
    for (int i = LAYERS * KEPT; i-- > 0;) {
        void *gradient = get(p, tokens * widths[i % KEPT] * 2);
        pool_free(p, kept[i], NULL);
        pool_free(p, gradient, NULL);
    }
}

/* Does again what the lines say; how many there were. */
static long replay(struct pool *p, const char *text)
{
    enum { MOST = 1000 };
    void *at[MOST] = { 0 };
    unsigned long number, bytes;
    long n = 0;
    for (; *text; text = strchr(text, '\n') + 1, n++)
        if (sscanf(text, "a %lu %lu", &number, &bytes) == 2 && number < MOST)
            at[number] = get(p, bytes);
        else if (sscanf(text, "f %lu", &number) == 1 && number < MOST)
            pool_free(p, at[number], NULL);
        else
            CHECK_FAIL_("a line of the trace: %.20s", text);
    return n;
}

static void a_trace_of_mixed_steps_leaves_few_holes(void)
{
    char *traces[LENGTHS];
    size_t size;
    for (int i = 0; i < LENGTHS; i++) {
        struct pool *p = start(UINT64_MAX / 2);
        dev.next = 1 << 20;
        FILE *f = open_memstream(&traces[i], &size);
        REQUIRE(f);
        pool_trace(p, f);
        step(p, 1000 + (size_t)i * 1017);
        pool_trace(p, NULL);
        fclose(f);
        pool_close(p);
    }
    struct pool *p = start(UINT64_MAX / 2);
    dev.next = 1 << 20;
    void *weights = get(p, 250 * MIB);
    for (int i = 0; i < STEPS; i++) {
        CHECK_INT(replay(p, traces[dice(LENGTHS)]), 6 * LAYERS * KEPT);
        pool_settle(p);
    }
    struct pool_stats st = stats_of(p);
    double lost = 1 - (double)st.peak_bytes / (double)st.reserved_bytes;
    printf("# %.2f %% of %" PRIu64 " MiB are never in use\n", 100 * lost, st.reserved_bytes / MIB);
    CHECK(lost >= 0 && lost <= 0.05);
    CHECK_INT(st.live, 1);
    pool_free(p, weights, NULL);
    pool_close(p);
    for (int i = 0; i < LENGTHS; i++)
        free(traces[i]);
}

int main(void)
{
    RUN(a_million_operations_agree_with_a_model);
    RUN(a_trace_of_mixed_steps_leaves_few_holes);
    return check_done();
}
