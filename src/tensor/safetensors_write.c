/* SPDX-License-Identifier: Apache-2.0
 * Writing safetensors: lay out, reserve, fill from any thread, replace at once. */
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "tensor/safetensors.h"
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reference writer puts larger dtypes first; this is the order of its enumeration, from the last. */
static const char *const reference_order[] = {
    "U64", "I64",     "F64",     "C64",     "F32", "U32", "I32",     "BF16",    "F16", "U16",
    "I16", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8",  "U8",  "F6_E3M2", "F6_E2M3", "F4",  "BOOL",
};

static size_t reference_rank(const struct st_tensor *t)
{
    size_t i = 0;
    while (i < ARRAY_LEN(reference_order) && strcmp(reference_order[i], t->dtype_text))
        i++;
    return i;
}

struct entry {
    const struct st_tensor *tensor;
    size_t index, rank;
};

static int by_reference(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->tensor->name, y->tensor->name);
}

static size_t element_size(const struct st_tensor *t)
{
    return t->dtype == DTYPE_OTHER ? 8 : dtype_size(t->dtype);
}

static int by_element(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t left = element_size(x->tensor), right = element_size(y->tensor);
    return left != right ? (left > right ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

static bool is_aligned(const struct st_tensor *tensors, size_t n)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].dtype != DTYPE_OTHER && at % dtype_size(tensors[i].dtype))
            return false;
        at += tensors[i].bytes;
    }
    return true;
}

static void put_in_order(struct entry *entries, size_t n, const struct st_tensor *tensors,
                         enum st_order order)
{
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct entry){ &tensors[i], i, reference_rank(&tensors[i]) };
    if (order == ST_ORDER_REFERENCE && n > 1)
        qsort(entries, n, sizeof(*entries), by_reference);
    if (order == ST_ORDER_ALIGNED && !is_aligned(tensors, n))
        qsort(entries, n, sizeof(*entries), by_element);
}

static void add_tensor(struct json *top, const struct st_tensor *t, uint64_t at)
{
    struct json *o = json_add_object(top, t->name);
    json_add_text(o, "dtype", t->dtype_text);
    struct json *shape = json_add_array(o, "shape");
    for (int i = 0; i < t->rank; i++)
        json_add_int(shape, NULL, (int64_t)t->shape[i]);
    struct json *offsets = json_add_array(o, "data_offsets");
    json_add_int(offsets, NULL, (int64_t)at);
    json_add_int(offsets, NULL, (int64_t)(at + t->bytes));
}

/* The header's text, padded with spaces so that the data starts on a multiple of eight. */
static char *make_header(const struct entry *entries, size_t n, const struct st_meta *meta, size_t n_meta,
                         uint64_t *at, size_t *len)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    if (n_meta) {
        struct json *m = json_add_object(top, "__metadata__");
        for (size_t i = 0; i < n_meta; i++)
            json_add_text(m, meta[i].key, meta[i].value);
    }
    uint64_t place = 0;
    for (size_t i = 0; i < n; i++) {
        at[entries[i].index] = place;
        add_tensor(top, entries[i].tensor, place);
        place += entries[i].tensor->bytes;
    }
    char *text = json_to_string(top);
    size_t used = strlen(text);
    *len = (used + 7) & ~(size_t)7;
    char *padded = realloc(text, *len + 1);
    if (!padded)
        abort();
    memset(padded + used, ' ', *len - used);
    padded[*len] = '\0';
    return padded;
}

/* ---- hashes ---- */

enum { LEGACY_AT = 0x100000, LEGACY_BYTES = 0x10000, LEGACY_TEXT = 8 };
static const char model_key[] = "sshs_model_hash", legacy_key[] = "sshs_legacy_hash";
static const char no_hash[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* The metadata with room for the hashes; the caller frees it. */
static struct st_meta *with_hashes(const struct st_contents *c, size_t *n)
{
    struct st_meta *meta = calloc(c->n_meta + 2, sizeof(*meta));
    *n = 0;
    if (!meta)
        abort();
    for (size_t i = 0; i < c->n_meta; i++)
        if (strcmp(c->meta[i].key, model_key) != 0 && strcmp(c->meta[i].key, legacy_key) != 0)
            meta[(*n)++] = c->meta[i];
    meta[(*n)++] = (struct st_meta){ model_key, no_hash };
    meta[(*n)++] = (struct st_meta){ legacy_key, no_hash + sizeof(no_hash) - 1 - LEGACY_TEXT };
    return meta;
}

/* Where in the file a hash goes.  A quotation mark within a value is escaped, so the first match is the key. */
static uint64_t hash_place(const char *header, const char *key)
{
    char text[64];
    snprintf(text, sizeof(text), "\"%s\":\"", key);
    const char *at = strstr(header, text);
    return at ? sizeof(uint64_t) + (uint64_t)(at - header) + strlen(text) : 0;
}

/* Without the metadata that does not count, the data begins earlier.  A header of 1 MiB, which no LoRA has, would be part of
 * the legacy hash; ours is then of the data. */
static void find_hashes(struct st_writer *w, const struct entry *entries, const struct st_contents *c,
                        const char *header)
{
    CLEANUP(mem_free) struct st_meta *lasting = calloc(c->n_meta + 1, sizeof(*lasting));
    size_t n = 0, len;
    if (!lasting)
        abort();
    for (size_t i = 0; i < c->n_meta; i++)
        if (str_starts(c->meta[i].key, "ss_"))
            lasting[n++] = c->meta[i];
    free(make_header(entries, c->n, lasting, n, w->at, &len)); /* its length alone counts */
    uint64_t data_at = sizeof(uint64_t) + len;
    w->hashes = (struct st_hashes){
        .model_at = hash_place(header, model_key),
        .legacy_at = hash_place(header, legacy_key),
        .legacy_data = data_at < LEGACY_AT ? LEGACY_AT - data_at : 0,
    };
}

/* Of `n` bytes of the data, or as many as there are. */
static int hash_data(struct st_writer *w, uint64_t from, uint64_t n, char text[SHA256_TEXT + 1],
                     struct cairn_error *err)
{
    enum { PIECE = 1 << 20 };
    struct sha256 h;
    uint64_t end = w->size - w->data_at;
    CLEANUP(mem_free) char *bytes = malloc(PIECE);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read %s back", w->out.path);
    end = from < end && n < end - from ? from + n : end;
    sha256_init(&h);
    for (uint64_t k; from < end; from += k) {
        k = end - from < PIECE ? end - from : PIECE;
        if (file_read_at(w->out.file.fd, w->out.path, bytes, k, w->data_at + from, err))
            return -1;
        sha256_add(&h, bytes, k);
    }
    sha256_end_text(&h, text);
    return 0;
}

static int write_hashes(struct st_writer *w, struct cairn_error *err)
{
    char model[SHA256_TEXT + 1], legacy[SHA256_TEXT + 1];
    if (hash_data(w, 0, UINT64_MAX, model, err) ||
        hash_data(w, w->hashes.legacy_data, LEGACY_BYTES, legacy, err) ||
        file_out_write(&w->out, model, SHA256_TEXT, w->hashes.model_at, err))
        return -1;
    return file_out_write(&w->out, legacy, LEGACY_TEXT, w->hashes.legacy_at, err);
}

/* ---- writing ---- */

static uint64_t total_bytes(const struct st_tensor *tensors, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += tensors[i].bytes;
    return sum;
}

static int write_header(struct st_writer *w, const char *text, size_t len, struct cairn_error *err)
{
    uint64_t prefix = htole64(len);
    if (file_out_write(&w->out, &prefix, sizeof(prefix), 0, err))
        return -1;
    return file_out_write(&w->out, text, len, sizeof(prefix), err);
}

int st_writer_open(struct st_writer *w, const char *path, const struct st_contents *c, bool replace,
                   struct cairn_error *err)
{
    size_t n = c->n;
    *w = (struct st_writer){ .out = FILE_OUT_NONE, .n = n };
    CLEANUP(mem_free) struct entry *entries = calloc(n + 1, sizeof(*entries));
    w->at = calloc(n + 1, sizeof(*w->at));
    if (!entries || !w->at) {
        st_writer_close(w);
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu tensors", path, n);
    }
    put_in_order(entries, n, c->tensors, c->order);
    size_t len, n_meta = c->n_meta;
    CLEANUP(mem_free) struct st_meta *hashed = c->hashes ? with_hashes(c, &n_meta) : NULL;
    CLEANUP(mem_free) char *header = make_header(entries, n, hashed ? hashed : c->meta, n_meta, w->at, &len);
    if (c->hashes)
        find_hashes(w, entries, c, header);
    w->data_at = sizeof(uint64_t) + len;
    w->size = w->data_at + total_bytes(c->tensors, n);
    if (len > ST_HEADER_MAX) {
        st_writer_close(w);
        return cairn_fail(err, CAIRN_EFORMAT, "%s: a header of %zu bytes exceeds the limit of the format",
                          path, len);
    }
    if (file_out_open(&w->out, path, w->size, replace, err) || write_header(w, header, len, err)) {
        st_writer_close(w);
        return -1;
    }
    return 0;
}

int st_writer_put(struct st_writer *w, size_t tensor, uint64_t byte, const void *bytes, size_t n,
                  struct cairn_error *err)
{
    return file_out_write(&w->out, bytes, n, w->data_at + w->at[tensor] + byte, err);
}

int st_writer_verify(struct st_writer *w, size_t tensor, uint64_t byte, const void *bytes, size_t n,
                     struct cairn_error *err)
{
    enum { PIECE = 1 << 20 };
    uint64_t at = w->data_at + w->at[tensor] + byte;
    CLEANUP(mem_free) char *read = malloc(PIECE);
    if (!read)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read %s back", w->out.path);
    file_out_drop(&w->out, at, n);
    for (size_t done = 0, k; done < n; done += k) {
        k = n - done < PIECE ? n - done : PIECE;
        if (file_read_at(w->out.file.fd, w->out.path, read, k, at + done, err))
            return -1;
        if (memcmp(read, (const char *)bytes + done, k) != 0)
            return cairn_fail(err, CAIRN_EIO, "%s: the disk gave back other bytes than were written",
                              w->out.path);
    }
    return 0;
}

int st_writer_commit(struct st_writer *w, struct cairn_error *err)
{
    if (w->hashes.model_at && write_hashes(w, err))
        return -1;
    return file_out_commit(&w->out, err);
}

void st_writer_close(struct st_writer *w)
{
    file_out_close(&w->out);
    free(w->at);
    *w = (struct st_writer){ .out = FILE_OUT_NONE };
}
