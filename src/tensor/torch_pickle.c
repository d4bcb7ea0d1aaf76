/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/torch_pickle.h"

#include "base/str.h"
#include <inttypes.h>
#include <string.h>

/* clang-format off */
static const struct torch_dtype dtypes[] = {
    { "DoubleStorage",       "float64",         DTYPE_F64,     "F64",         8 },
    { "FloatStorage",        "float32",         DTYPE_F32,     "F32",         4 },
    { "HalfStorage",         "float16",         DTYPE_F16,     "F16",         2 },
    { "BFloat16Storage",     "bfloat16",        DTYPE_BF16,    "BF16",        2 },
    { NULL,                  "float8_e4m3fn",   DTYPE_F8_E4M3, "F8_E4M3",     1 },
    { NULL,                  "float8_e5m2",     DTYPE_F8_E5M2, "F8_E5M2",     1 },
    { "LongStorage",         "int64",           DTYPE_I64,     "I64",         8 },
    { "IntStorage",          "int32",           DTYPE_I32,     "I32",         4 },
    { "ShortStorage",        "int16",           DTYPE_I16,     "I16",         2 },
    { "CharStorage",         "int8",            DTYPE_I8,      "I8",          1 },
    { NULL,                  "uint64",          DTYPE_U64,     "U64",         8 },
    { NULL,                  "uint32",          DTYPE_U32,     "U32",         4 },
    { NULL,                  "uint16",          DTYPE_U16,     "U16",         2 },
    { "ByteStorage",         "uint8",           DTYPE_U8,      "U8",          1 },
    { "BoolStorage",         "bool",            DTYPE_BOOL,    "BOOL",        1 },
    { "ComplexFloatStorage", "complex64",       DTYPE_OTHER,   "C64",         8 },
    { NULL,                  "float8_e8m0fnu",  DTYPE_OTHER,   "F8_E8M0",     1 },
    { NULL,                  "float8_e4m3fnuz", DTYPE_OTHER,   "F8_E4M3FNUZ", 1 },
    { NULL,                  "float8_e5m2fnuz", DTYPE_OTHER,   "F8_E5M2FNUZ", 1 },
};
/* clang-format on */

/* What may be imported.  A row with `call` may be called; a row with a dtype stands for it. */
struct torch_global {
    const char *module, *name;
    int (*call)(struct arena *a, const struct torch_global *self, struct pickle_value *const *args, size_t n,
                struct pickle_value *out, struct cairn_error *err);
    const struct torch_dtype *type;
    bool is_storage;
};

static int bad_call(const struct torch_global *g, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s.%s is called with unexpected arguments", g->module, g->name);
}

static bool is_sequence(const struct pickle_value *v)
{
    return v->kind == PICKLE_TUPLE || v->kind == PICKLE_LIST;
}

static const struct torch_global *global_of(const struct pickle_value *v)
{
    return v->kind == PICKLE_GLOBAL ? v->object : NULL;
}

/* The object behind a value says what it is by its first word. */
enum object_kind { OBJECT_STORAGE = 1, OBJECT_VIEW };
struct object {
    enum object_kind kind;
    union {
        struct torch_storage storage;
        struct torch_view view;
    };
};

static const struct object *object_of(const struct pickle_value *v, enum object_kind kind)
{
    const struct object *o = v->kind == PICKLE_OBJECT ? v->object : NULL;
    return o && o->kind == kind ? o : NULL;
}

/* A tuple of whole numbers, none negative. */
static const uint64_t *numbers(struct arena *a, const struct pickle_value *v)
{
    if (!is_sequence(v) || v->list.n > TORCH_RANK_MAX)
        return NULL;
    uint64_t *out = ARENA_NEW(a, uint64_t, v->list.n + 1);
    for (size_t i = 0; i < v->list.n; i++) {
        const struct pickle_value *item = v->list.items[i];
        if (item->kind != PICKLE_INT || item->i < 0)
            return NULL;
        out[i] = (uint64_t)item->i;
    }
    return out;
}

/* (storage, offset, size, stride, requires_grad, hooks, dtype, …); the dtype only in the third version, where
 * the storage is bytes. */
static int call_rebuild(struct arena *a, const struct torch_global *g, struct pickle_value *const *args,
                        size_t n, struct pickle_value *out, struct cairn_error *err)
{
    const struct object *from = n >= 4 ? object_of(args[0], OBJECT_STORAGE) : NULL;
    if (!from || args[1]->kind != PICKLE_INT || args[1]->i < 0)
        return bad_call(g, err);
    const struct torch_global *named = n >= 7 ? global_of(args[6]) : NULL;
    const struct torch_dtype *type = from->storage.type ? from->storage.type : named ? named->type : NULL;
    const uint64_t *shape = numbers(a, args[2]), *stride = numbers(a, args[3]);
    if (!type || !shape || !stride || args[2]->list.n != args[3]->list.n)
        return bad_call(g, err);
    struct object *made = ARENA_NEW(a, struct object, 1);
    *made = (struct object){
        .kind = OBJECT_VIEW,
        .view = { &from->storage, type, (uint64_t)args[1]->i, shape, stride, (int)args[2]->list.n },
    };
    *out = (struct pickle_value){ .kind = PICKLE_OBJECT, .object = made };
    return 0;
}

/* (tensor, requires_grad, hooks): the tensor. */
static int call_parameter(struct arena *a, const struct torch_global *g, struct pickle_value *const *args,
                          size_t n, struct pickle_value *out, struct cairn_error *err)
{
    (void)a;
    if (!n || !object_of(args[0], OBJECT_VIEW))
        return bad_call(g, err);
    *out = *args[0];
    return 0;
}

static int call_ordered_dict(struct arena *a, const struct torch_global *g, struct pickle_value *const *args,
                             size_t n, struct pickle_value *out, struct cairn_error *err)
{
    (void)a, (void)args;
    *out = (struct pickle_value){ .kind = PICKLE_DICT };
    return n ? bad_call(g, err) : 0;
}

/* torch.Size and sets of a sequence: one more name for its items.  As a tuple it can not grow, so that no
 * pickle makes us copy one long list a million times. */
static int call_tuple(struct arena *a, const struct torch_global *g, struct pickle_value *const *args,
                      size_t n, struct pickle_value *out, struct cairn_error *err)
{
    (void)a;
    *out = (struct pickle_value){ .kind = PICKLE_TUPLE };
    if (!n)
        return 0;
    if (n > 1 || !is_sequence(args[0]))
        return bad_call(g, err);
    out->list = args[0]->list;
    return 0;
}

static int call_opaque(struct arena *a, const struct torch_global *g, struct pickle_value *const *args,
                       size_t n, struct pickle_value *out, struct cairn_error *err)
{
    (void)a, (void)g, (void)args, (void)n, (void)err;
    *out = (struct pickle_value){ .kind = PICKLE_OPAQUE };
    return 0;
}

static const struct torch_global globals[] = {
    { "torch._utils", "_rebuild_tensor", .call = call_rebuild },
    { "torch._utils", "_rebuild_tensor_v2", .call = call_rebuild },
    { "torch._utils", "_rebuild_tensor_v3", .call = call_rebuild },
    { "torch._utils", "_rebuild_parameter", .call = call_parameter },
    { "torch", "Size", .call = call_tuple },
    { "torch", "device", .call = call_opaque },
    { "torch.storage", "UntypedStorage", .is_storage = true },
    { "torch", "UntypedStorage", .is_storage = true },
    { "collections", "OrderedDict", .call = call_ordered_dict },
    { "builtins", "set", .call = call_tuple },
    { "__builtin__", "set", .call = call_tuple },
    { "builtins", "frozenset", .call = call_tuple },
    { "__builtin__", "frozenset", .call = call_tuple },
    /* Bytes, as protocol 2 writes them. */
    { "_codecs", "encode", .call = call_opaque },
    { "builtins", "bytes", .call = call_opaque },
    { "__builtin__", "bytes", .call = call_opaque },
    { "builtins", "bytearray", .call = call_opaque },
    { "__builtin__", "bytearray", .call = call_opaque },
};

static const struct torch_global *find_dtype(struct arena *a, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        bool storage = str_eq(name, dtypes[i].storage);
        if (!storage && strcmp(name, dtypes[i].name))
            continue;
        struct torch_global *g = ARENA_NEW(a, struct torch_global, 1);
        *g = (struct torch_global){ .module = "torch", .type = &dtypes[i], .is_storage = storage };
        g->name = storage ? dtypes[i].storage : dtypes[i].name;
        return g;
    }
    return NULL;
}

/* What goes into a message goes to a terminal. */
static bool is_plain(const char *s)
{
    return str_clean_span(s, strlen(s)) == strlen(s);
}

static int on_global(void *context, struct arena *a, const char *module, const char *name,
                     struct pickle_value *out, struct cairn_error *err)
{
    (void)context;
    const struct torch_global *found = str_eq(module, "torch") ? find_dtype(a, name) : NULL;
    for (size_t i = 0; !found && i < ARRAY_LEN(globals); i++)
        if (str_eq(module, globals[i].module) && str_eq(name, globals[i].name))
            found = &globals[i];
    if (!found && (!is_plain(module) || !is_plain(name)))
        return cairn_fail(err, CAIRN_EFORMAT, "refusing to load a name that is not plain text");
    if (!found) {
        cairn_fail(err, CAIRN_EFORMAT, "refusing to load %.150s.%.150s", module, name);
        return cairn_hint(
            err, "cairn reads only tensors and plain containers; save the state_dict() of a file that "
                 "you trust, or look for a safetensors version");
    }
    *out = (struct pickle_value){ .kind = PICKLE_GLOBAL, .object = found };
    return 0;
}

static int on_call(void *context, struct arena *a, const struct pickle_value *function,
                   const struct pickle_value *arguments, struct pickle_value *out, struct cairn_error *err)
{
    (void)context;
    const struct torch_global *g = function->object;
    if (!g->call)
        return cairn_fail(err, CAIRN_EFORMAT, "refusing to call %s.%s", g->module, g->name);
    return g->call(a, g, arguments->list.items, arguments->list.n, out, err);
}

/* ('storage', type, key, location, n). */
static int on_persistent(void *context, struct arena *a, const struct pickle_value *id,
                         struct pickle_value *out, struct cairn_error *err)
{
    (void)context;
    struct pickle_value *const *part = id->kind == PICKLE_TUPLE && id->list.n >= 5 ? id->list.items : NULL;
    const struct torch_global *type = part ? global_of(part[1]) : NULL;
    if (!type || !type->is_storage || part[0]->kind != PICKLE_TEXT || !str_eq(part[0]->text.s, "storage") ||
        part[2]->kind != PICKLE_TEXT || !is_plain(part[2]->text.s) || part[4]->kind != PICKLE_INT ||
        part[4]->i < 0)
        return cairn_fail(err, CAIRN_EFORMAT, "a persistent id that is not a storage");
    struct object *made = ARENA_NEW(a, struct object, 1);
    *made = (struct object){
        .kind = OBJECT_STORAGE,
        .storage = { part[2]->text.s, type->type, (uint64_t)part[4]->i },
    };
    *out = (struct pickle_value){ .kind = PICKLE_OBJECT, .object = made };
    return 0;
}

static const struct pickle_host host = { NULL, on_global, on_call, on_persistent };

/* One list may hang in many places, each of them in many others: the tree can be larger than the pickle.  So
 * what is walked over is counted. */
enum { WALK_MAX = 16 << 20 };

/* The way down to a value; the names of its tensors are made of it. */
struct walk {
    struct arena *arena;
    struct torch_named *found;
    size_t n_found;
    size_t spent;
    int depth;
    struct str name;
    bool unnamed; /* below a key that is neither text nor a whole number */
};

static int spend(struct walk *w, size_t n, struct cairn_error *err)
{
    if (n > WALK_MAX - w->spent)
        return cairn_fail(err, CAIRN_EFORMAT, "containers are nested too often");
    w->spent += n;
    return 0;
}

static int add_tensor(struct walk *w, const struct torch_view *view, struct cairn_error *err)
{
    const char *name = w->name.len ? w->name.s : w->depth ? "" : "tensor";
    if (w->unnamed || str_clean_span(name, w->name.len) != w->name.len)
        return cairn_fail(err, CAIRN_EFORMAT, "a tensor below \"%.*s\" has a name that is not plain text",
                          (int)str_clean_span(name, w->name.len), name);
    if (spend(w, w->name.len, err))
        return -1;
    struct torch_named *t = ARENA_PUSH(w->arena, w->found, w->n_found);
    *t = (struct torch_named){ arena_strdup(w->arena, name), view };
    return 0;
}

static void add_key(struct walk *w, const struct pickle_value *key)
{
    if (w->depth > 1)
        str_add(&w->name, ".");
    if (key->kind == PICKLE_TEXT)
        str_addn(&w->name, key->text.s, key->text.len);
    else if (key->kind == PICKLE_INT)
        str_addf(&w->name, "%" PRId64, key->i);
    else
        w->unnamed = true;
}

static int walk(struct walk *w, struct pickle_value *v, struct cairn_error *err);

static int walk_items(struct walk *w, struct pickle_value *v, struct cairn_error *err)
{
    size_t each = v->kind == PICKLE_DICT ? 2 : 1, len = w->name.len;
    bool unnamed = w->unnamed;
    for (size_t i = 0; i + each <= v->list.n; i += each) {
        struct pickle_value position = { .kind = PICKLE_INT, .i = (int64_t)i };
        add_key(w, each == 2 ? v->list.items[i] : &position);
        if (spend(w, 1 + w->name.len - len, err) || walk(w, v->list.items[i + each - 1], err))
            return -1;
        w->name.len = len;
        if (w->name.s)
            w->name.s[len] = '\0';
        w->unnamed = unnamed;
    }
    return 0;
}

static int walk(struct walk *w, struct pickle_value *v, struct cairn_error *err)
{
    const struct object *view = object_of(v, OBJECT_VIEW);
    if (view)
        return add_tensor(w, &view->view, err);
    if (v->kind != PICKLE_DICT && v->kind != PICKLE_SET && !is_sequence(v))
        return 0;
    if (v->open || ++w->depth > TORCH_DEPTH_MAX)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "a container contains itself, or containers are nested more than %d deep",
                          TORCH_DEPTH_MAX);
    v->open = true;
    int r = walk_items(w, v, err);
    v->open = false;
    w->depth--;
    return r;
}

int torch_pickle_read(const void *bytes, size_t n, struct arena *a, struct torch_named **out, size_t *n_out,
                      struct cairn_error *err)
{
    struct pickle_value *top;
    if (pickle_read(bytes, n, &host, a, &top, err))
        return -1;
    struct walk w = { .arena = a };
    int r = walk(&w, top, err);
    str_release(&w.name);
    if (r)
        return -1;
    *out = w.found;
    *n_out = w.n_found;
    return 0;
}
