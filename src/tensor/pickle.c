/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/pickle.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct machine {
    const unsigned char *bytes;
    size_t n, at;
    const struct pickle_host *host;
    struct arena *arena;
    struct pickle_value **stack; /* NULL is a mark */
    size_t depth, capacity;
    struct pickle_value **memo;
    size_t memo_room, memo_used;
    size_t pushes;
    bool stopped;
};

static const char *const kind_names[PICKLE_KINDS] = {
    [PICKLE_NONE] = "None",      [PICKLE_BOOL] = "a bool",     [PICKLE_INT] = "an int",
    [PICKLE_FLOAT] = "a float",  [PICKLE_TEXT] = "text",       [PICKLE_BYTES] = "bytes",
    [PICKLE_TUPLE] = "a tuple",  [PICKLE_LIST] = "a list",     [PICKLE_DICT] = "a dict",
    [PICKLE_SET] = "a set",      [PICKLE_GLOBAL] = "a global", [PICKLE_OBJECT] = "an object",
    [PICKLE_OPAQUE] = "a value",
};

static const char *kind_name(const struct pickle_value *v)
{
    return v ? kind_names[v->kind] : "a mark";
}

static const unsigned char *take(struct machine *m, uint64_t n, struct cairn_error *err)
{
    if (n > m->n - m->at) {
        cairn_fail(err, CAIRN_EFORMAT, "the pickle is truncated: expected %" PRIu64 " more bytes, %zu left",
                   n, m->n - m->at);
        return NULL;
    }
    m->at += n;
    return m->bytes + m->at - n;
}

/* A little-endian number of up to eight bytes. */
static int take_number(struct machine *m, int size, uint64_t *out, struct cairn_error *err)
{
    const unsigned char *p = take(m, (uint64_t)size, err);
    if (!p)
        return -1;
    *out = 0;
    for (int i = size; i-- > 0;)
        *out = *out << 8 | p[i];
    return 0;
}

static int grow(struct pickle_value ***items, size_t *capacity, size_t need, struct cairn_error *err)
{
    if (need <= *capacity)
        return 0;
    size_t bigger = need < 64 ? 64 : need * 2;
    struct pickle_value **moved = realloc(*items, bigger * sizeof(*moved));
    if (!moved)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu values", bigger);
    memset(moved + *capacity, 0, (bigger - *capacity) * sizeof(*moved));
    *items = moved;
    *capacity = bigger;
    return 0;
}

static int push(struct machine *m, struct pickle_value *v, struct cairn_error *err)
{
    if (++m->pushes > PICKLE_PUSH_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "more than %d values", PICKLE_PUSH_MAX);
    if (grow(&m->stack, &m->capacity, m->depth + 1, err))
        return -1;
    m->stack[m->depth++] = v;
    return 0;
}

static int push_new(struct machine *m, struct pickle_value v, struct cairn_error *err)
{
    struct pickle_value *kept = ARENA_NEW(m->arena, struct pickle_value, 1);
    *kept = v;
    return push(m, kept, err);
}

/* The value on top; NULL, with the error set, if there is none or a mark. */
static struct pickle_value *pop(struct machine *m, struct cairn_error *err)
{
    if (!m->depth || !m->stack[m->depth - 1]) {
        cairn_fail(err, CAIRN_EFORMAT, "no value on the stack");
        return NULL;
    }
    return m->stack[--m->depth];
}

/* How many values lie above the last mark; they stay, the mark below them is found at depth - n - 1. */
static int above_mark(const struct machine *m, size_t *n, struct cairn_error *err)
{
    for (size_t i = m->depth; i-- > 0;) {
        if (!m->stack[i]) {
            *n = m->depth - i - 1;
            return 0;
        }
    }
    return cairn_fail(err, CAIRN_EFORMAT, "no mark on the stack");
}

static void add_items(struct machine *m, struct pickle_value *v, struct pickle_value *const *items, size_t n)
{
    if (v->list.n + n > v->list.capacity) {
        size_t capacity = (v->list.n + n) * 2;
        struct pickle_value **moved = ARENA_NEW(m->arena, struct pickle_value *, capacity);
        if (v->list.n)
            memcpy(moved, v->list.items, v->list.n * sizeof(*moved));
        v->list.items = moved;
        v->list.capacity = capacity;
    }
    if (n)
        memcpy(v->list.items + v->list.n, items, n * sizeof(*items));
    v->list.n += n;
}

static int no_marks(struct pickle_value *const *items, size_t n, struct cairn_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!items[i])
            return cairn_fail(err, CAIRN_EFORMAT, "expected a value, found a mark");
    return 0;
}

/* The n values on top become a container. */
static int gather(struct machine *m, enum pickle_kind kind, size_t n, struct cairn_error *err)
{
    struct pickle_value *made = ARENA_NEW(m->arena, struct pickle_value, 1);
    if (n > m->depth)
        return cairn_fail(err, CAIRN_EFORMAT, "no value on the stack");
    m->depth -= n;
    made->kind = kind;
    if (n && no_marks(m->stack + m->depth, n, err))
        return -1;
    if (n)
        add_items(m, made, m->stack + m->depth, n);
    return push(m, made, err);
}

/* Each opcode is a function and a number that says which of its relatives it is. */
static int op_nothing(struct machine *m, int skip, struct cairn_error *err)
{
    return take(m, (uint64_t)skip, err) ? 0 : -1;
}

static int op_stop(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg, (void)err;
    m->stopped = true;
    return 0;
}

static int op_mark(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    return push(m, NULL, err);
}

static int op_pop(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    if (!m->depth)
        return cairn_fail(err, CAIRN_EFORMAT, "no value on the stack");
    m->depth--;
    return 0;
}

static int op_pop_mark(struct machine *m, int arg, struct cairn_error *err)
{
    size_t n = 0;
    (void)arg;
    if (above_mark(m, &n, err))
        return -1;
    m->depth -= n + 1;
    return 0;
}

static int op_dup(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    struct pickle_value *v = pop(m, err);
    return v && !push(m, v, err) && !push(m, v, err) ? 0 : -1;
}

static int op_none(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    return push_new(m, (struct pickle_value){ .kind = PICKLE_NONE }, err);
}

static int op_bool(struct machine *m, int truth, struct cairn_error *err)
{
    return push_new(m, (struct pickle_value){ .kind = PICKLE_BOOL, .i = truth }, err);
}

/* Four bytes are signed, one and two are not. */
static int op_int(struct machine *m, int size, struct cairn_error *err)
{
    uint64_t v;
    if (take_number(m, size, &v, err))
        return -1;
    int64_t i = size == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
    return push_new(m, (struct pickle_value){ .kind = PICKLE_INT, .i = i }, err);
}

/* Two's complement of any length, the length before it. */
static int op_long(struct machine *m, int size, struct cairn_error *err)
{
    uint64_t n, v = 0;
    if (take_number(m, size, &n, err))
        return -1;
    const unsigned char *p = take(m, n, err);
    if (!p)
        return -1;
    if (n > 8)
        return push_new(m, (struct pickle_value){ .kind = PICKLE_OPAQUE }, err);
    for (uint64_t i = 0; i < 8; i++)
        v |= (uint64_t)(i < n ? p[i] : n && p[n - 1] >> 7 ? 0xff : 0) << 8 * i;
    return push_new(m, (struct pickle_value){ .kind = PICKLE_INT, .i = (int64_t)v }, err);
}

static int op_float(struct machine *m, int size, struct cairn_error *err)
{
    const unsigned char *p = take(m, (uint64_t)size, err);
    uint64_t bits;
    struct pickle_value v = { .kind = PICKLE_FLOAT };
    if (!p)
        return -1;
    memcpy(&bits, p, sizeof(bits));
    bits = be64toh(bits);
    memcpy(&v.f, &bits, sizeof(v.f));
    return push_new(m, v, err);
}

static int push_string(struct machine *m, enum pickle_kind kind, int size, struct cairn_error *err)
{
    uint64_t n;
    if (take_number(m, size, &n, err))
        return -1;
    const unsigned char *p = take(m, n, err);
    if (!p)
        return -1;
    const char *s = arena_strndup(m->arena, (const char *)p, (size_t)n);
    return push_new(m, (struct pickle_value){ .kind = kind, .text = { s, (size_t)n } }, err);
}

static int op_text(struct machine *m, int size, struct cairn_error *err)
{
    return push_string(m, PICKLE_TEXT, size, err);
}

static int op_bytes(struct machine *m, int size, struct cairn_error *err)
{
    return push_string(m, PICKLE_BYTES, size, err);
}

static int op_tuple(struct machine *m, int n, struct cairn_error *err)
{
    return gather(m, PICKLE_TUPLE, (size_t)n, err);
}

static int op_empty(struct machine *m, int kind, struct cairn_error *err)
{
    return gather(m, (enum pickle_kind)kind, 0, err);
}

/* From the mark upwards. */
static int op_gather(struct machine *m, int kind, struct cairn_error *err)
{
    size_t n = 0;
    if (above_mark(m, &n, err) || gather(m, (enum pickle_kind)kind, n, err))
        return -1;
    struct pickle_value *made = pop(m, err);
    m->depth--;
    return push(m, made, err);
}

static int add_top(struct machine *m, enum pickle_kind kind, size_t n, size_t marks, struct cairn_error *err)
{
    if (m->depth < n + marks + 1)
        return cairn_fail(err, CAIRN_EFORMAT, "no value on the stack");
    struct pickle_value *const *items = m->stack + m->depth - n;
    struct pickle_value *target = m->stack[m->depth - n - marks - 1];
    if (!target || target->kind != kind)
        return cairn_fail(err, CAIRN_EFORMAT, "found %s, expected %s", kind_name(target), kind_names[kind]);
    if (no_marks(items, n, err))
        return -1;
    if (kind == PICKLE_DICT && n % 2)
        return cairn_fail(err, CAIRN_EFORMAT, "a key without a value");
    add_items(m, target, items, n);
    m->depth -= n + marks;
    return 0;
}

static int op_add_one(struct machine *m, int kind, struct cairn_error *err)
{
    return add_top(m, (enum pickle_kind)kind, kind == PICKLE_DICT ? 2 : 1, 0, err);
}

static int op_add_all(struct machine *m, int kind, struct cairn_error *err)
{
    size_t n = 0;
    return above_mark(m, &n, err) ? -1 : add_top(m, (enum pickle_kind)kind, n, 1, err);
}

static int push_global(struct machine *m, const char *module, const char *name, struct cairn_error *err)
{
    struct pickle_value v = { .kind = PICKLE_OPAQUE };
    if (m->host->global(m->host->context, m->arena, module, name, &v, err))
        return -1;
    return push_new(m, v, err);
}

static const char *take_line(struct machine *m, struct cairn_error *err)
{
    const unsigned char *start = m->bytes + m->at;
    const unsigned char *end = memchr(start, '\n', m->n - m->at);
    if (!end || memchr(start, 0, (size_t)(end - start))) {
        cairn_fail(err, CAIRN_EFORMAT, "a name is not terminated");
        return NULL;
    }
    m->at += (size_t)(end - start) + 1;
    return arena_strndup(m->arena, (const char *)start, (size_t)(end - start));
}

static int op_global(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    const char *module = take_line(m, err);
    const char *name = module ? take_line(m, err) : NULL;
    return name ? push_global(m, module, name, err) : -1;
}

static int op_stack_global(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    struct pickle_value *name = pop(m, err), *module = name ? pop(m, err) : NULL;
    if (!module)
        return -1;
    if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
        return cairn_fail(err, CAIRN_EFORMAT, "the name of a global is not text");
    return push_global(m, module->text.s, name->text.s, err);
}

static int op_reduce(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    struct pickle_value *arguments = pop(m, err), *function = arguments ? pop(m, err) : NULL;
    struct pickle_value v = { .kind = PICKLE_OPAQUE };
    if (!function)
        return -1;
    if (function->kind != PICKLE_GLOBAL || arguments->kind != PICKLE_TUPLE)
        return cairn_fail(err, CAIRN_EFORMAT, "a call of %s with %s", kind_name(function),
                          kind_name(arguments));
    if (m->host->call(m->host->context, m->arena, function, arguments, &v, err))
        return -1;
    return push_new(m, v, err);
}

/* Sets attributes.  Those of an OrderedDict (a state_dict's _metadata) say nothing about tensors. */
static int op_build(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    struct pickle_value *state = pop(m, err), *target = state ? pop(m, err) : NULL;
    if (!target)
        return -1;
    if (target->kind != PICKLE_DICT)
        return cairn_fail(err, CAIRN_EFORMAT, "refusing to set attributes of %s", kind_name(target));
    return push(m, target, err);
}

static int op_persistent(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    struct pickle_value *id = pop(m, err);
    struct pickle_value v = { .kind = PICKLE_OPAQUE };
    if (!id || m->host->persistent(m->host->context, m->arena, id, &v, err))
        return -1;
    return push_new(m, v, err);
}

static int remember(struct machine *m, uint64_t i, struct cairn_error *err)
{
    if (!m->depth || !m->stack[m->depth - 1])
        return cairn_fail(err, CAIRN_EFORMAT, "no value for the memo");
    if (i >= PICKLE_PUSH_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "memo %" PRIu64 " is beyond %d", i, PICKLE_PUSH_MAX);
    if (grow(&m->memo, &m->memo_room, (size_t)i + 1, err))
        return -1;
    m->memo_used += !m->memo[i];
    m->memo[i] = m->stack[m->depth - 1];
    return 0;
}

static int op_put(struct machine *m, int size, struct cairn_error *err)
{
    uint64_t i;
    return take_number(m, size, &i, err) ? -1 : remember(m, i, err);
}

static int op_memoize(struct machine *m, int arg, struct cairn_error *err)
{
    (void)arg;
    return remember(m, m->memo_used, err);
}

static int op_get(struct machine *m, int size, struct cairn_error *err)
{
    uint64_t i;
    if (take_number(m, size, &i, err))
        return -1;
    if (i >= m->memo_room || !m->memo[i])
        return cairn_fail(err, CAIRN_EFORMAT, "memo %" PRIu64 " was never set", i);
    return push(m, m->memo[i], err);
}

static const struct {
    int (*run)(struct machine *m, int arg, struct cairn_error *err);
    int arg;
} opcodes[256] = {
    /* clang-format off */
    [0x80] = { op_nothing, 1 },           /* PROTO */
    [0x95] = { op_nothing, 8 },           /* FRAME */
    ['.']  = { op_stop, 0 },
    ['(']  = { op_mark, 0 },
    ['0']  = { op_pop, 0 },
    ['1']  = { op_pop_mark, 0 },
    ['2']  = { op_dup, 0 },
    ['N']  = { op_none, 0 },
    [0x88] = { op_bool, 1 },              [0x89] = { op_bool, 0 },
    ['K']  = { op_int, 1 },               ['M']  = { op_int, 2 },
    ['J']  = { op_int, 4 },
    [0x8a] = { op_long, 1 },              [0x8b] = { op_long, 4 },
    ['G']  = { op_float, 8 },
    [0x8c] = { op_text, 1 },              ['X']  = { op_text, 4 },
    [0x8d] = { op_text, 8 },
    ['C']  = { op_bytes, 1 },             ['B']  = { op_bytes, 4 },
    [0x8e] = { op_bytes, 8 },             [0x96] = { op_bytes, 8 },
    [')']  = { op_tuple, 0 },             [0x85] = { op_tuple, 1 },
    [0x86] = { op_tuple, 2 },             [0x87] = { op_tuple, 3 },
    ['t']  = { op_gather, PICKLE_TUPLE }, [0x91] = { op_gather, PICKLE_SET },
    [']']  = { op_empty, PICKLE_LIST },   ['}']  = { op_empty, PICKLE_DICT },
    [0x8f] = { op_empty, PICKLE_SET },
    ['a']  = { op_add_one, PICKLE_LIST }, ['e']  = { op_add_all, PICKLE_LIST },
    ['s']  = { op_add_one, PICKLE_DICT }, ['u']  = { op_add_all, PICKLE_DICT },
    [0x90] = { op_add_all, PICKLE_SET },
    ['c']  = { op_global, 0 },            [0x93] = { op_stack_global, 0 },
    ['R']  = { op_reduce, 0 },
    ['b']  = { op_build, 0 },
    ['Q']  = { op_persistent, 0 },
    ['q']  = { op_put, 1 },               ['r']  = { op_put, 4 },
    [0x94] = { op_memoize, 0 },
    ['h']  = { op_get, 1 },               ['j']  = { op_get, 4 },
    /* clang-format on */
};

static int step(struct machine *m, struct cairn_error *err)
{
    size_t at = m->at;
    const unsigned char *code = take(m, 1, err);
    if (code && !opcodes[*code].run)
        cairn_fail(err, CAIRN_EFORMAT, "opcode 0x%02x is not one that torch writes", *code);
    else if (code && !opcodes[*code].run(m, opcodes[*code].arg, err))
        return 0;
    return cairn_wrap(err, "byte %zu", at);
}

int pickle_read(const void *bytes, size_t n, const struct pickle_host *host, struct arena *a,
                struct pickle_value **out, struct cairn_error *err)
{
    struct machine m = { .bytes = bytes, .n = n, .host = host, .arena = a };
    if (n > PICKLE_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "the pickle is too large (%zu bytes)", n);
    int r = 0;
    while (!r && !m.stopped)
        r = step(&m, err);
    struct pickle_value *result = r ? NULL : pop(&m, err);
    free(m.stack);
    free(m.memo);
    if (!result)
        return -1;
    *out = result;
    return 0;
}
