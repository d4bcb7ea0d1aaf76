/* SPDX-License-Identifier: Apache-2.0 */
#include "host/kfd.h"

#include "base/parse.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define NODES "/sys/class/kfd/kfd/topology/nodes"

/* A file of "name number" lines: which names we use, where they go, and the largest value that makes
 * sense. */
struct property {
    const char *name;
    size_t at; /* of a struct num */
    uint64_t most;
};

static const struct property node_properties[] = {
    { "simd_count", offsetof(struct kfd_node, simd_count), 1u << 16 },
    { "simd_per_cu", offsetof(struct kfd_node, simd_per_cu), 64 },
    { "wave_front_size", offsetof(struct kfd_node, wave_front_size), 1024 },
    { "gfx_target_version", offsetof(struct kfd_node, gfx_target_version), 999999 },
    { "vendor_id", offsetof(struct kfd_node, vendor_id), 0xffff },
    { "device_id", offsetof(struct kfd_node, device_id), 0xffff },
    { "location_id", offsetof(struct kfd_node, location_id), 0xffff },
    { "domain", offsetof(struct kfd_node, domain), 0xffffffff },
    { "drm_render_minor", offsetof(struct kfd_node, drm_render_minor), 1u << 20 },
};

struct bank {
    struct num heap_type, size_in_bytes;
};
static const struct property bank_properties[] = {
    { "heap_type", offsetof(struct bank, heap_type), 16 },
    { "size_in_bytes", offsetof(struct bank, size_in_bytes), (uint64_t)1 << 50 },
};

struct link {
    struct num type, flags;
};
static const struct property link_properties[] = {
    { "type", offsetof(struct link, type), 64 },
    { "flags", offsetof(struct link, flags), 0xffffffff },
};

struct property_file {
    const char *path;
    const struct property *rows;
    size_t n_rows;
    void *into;
    /* Called for every line, known or not; may be NULL. */
    void (*other)(void *into, const char *name, uint64_t value, struct arena *a);
};

static void take_line(const struct property_file *f, const char *name, uint64_t value, struct arena *a,
                      struct problems *p)
{
    if (f->other)
        f->other(f->into, name, value, a);
    for (size_t i = 0; i < f->n_rows; i++) {
        if (strcmp(name, f->rows[i].name))
            continue;
        if (value > f->rows[i].most)
            problems_add(p, a, "%s: %s %" PRIu64 " is out of range and was ignored", f->path, name, value);
        else
            *(struct num *)((char *)f->into + f->rows[i].at) = (struct num){ (int64_t)value, f->path };
    }
}

/* Lines are split by hand because a damaged file may contain NUL bytes and lines of any length. */
static void parse_file(const char *text, size_t len, const struct property_file *f, struct arena *a,
                       struct problems *p)
{
    size_t bad = 0, first_bad = 0, number = 1;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        char line[256], name[64];
        uint64_t value;
        bool fits = n < sizeof(line) && !memchr(text + at, '\0', n);
        if (fits) {
            memcpy(line, text + at, n);
            line[n] = '\0';
        }
        if (fits && cairn_parse_pair(line, name, sizeof(name), &value))
            take_line(f, name, value, a, p);
        else if (n && !bad++)
            first_bad = number;
        at += n + 1;
    }
    if (bad)
        problems_add(p, a, "%s:%zu: expected \"name number\"; %zu such line%s ignored", f->path, first_bad,
                     bad, bad > 1 ? "s" : "");
}

static void node_other(void *into, const char *name, uint64_t value, struct arena *a)
{
    struct kfd_node *node = into;
    if (!strcmp(name, "unique_id") && value)
        node->uuid = arena_printf(a, "GPU-%016" PRIx64, value);
    if (!strcmp(name, "cwsr_size"))
        node->has_cwsr_size = TRI_YES;
}

void kfd_parse_properties(const char *text, size_t len, const char *path, struct arena *a,
                          struct kfd_node *node, struct problems *p)
{
    node->has_cwsr_size = TRI_NO;
    struct property_file f = { path, node_properties, ARRAY_LEN(node_properties), node, node_other };
    parse_file(text, len, &f, a, p);
}

static bool read_small(const struct root *r, struct arena *a, struct property_file *f, struct problems *p)
{
    size_t len;
    const char *text = root_read(r, a, f->path, &len);
    if (text)
        parse_file(text, len, f, a, p);
    return text != NULL;
}

static void read_banks(const struct root *r, struct arena *a, struct kfd_node *node, struct problems *p)
{
    for (int k = 0; k < 16; k++) {
        struct bank b = { 0 };
        char *path = arena_printf(a, NODES "/%d/mem_banks/%d/properties", node->number, k);
        struct property_file f = { path, bank_properties, ARRAY_LEN(bank_properties), &b, NULL };
        if (!read_small(r, a, &f, p))
            return;
        enum { HEAP_SYSTEM = 0 };
        if (!b.size_in_bytes.from || !b.heap_type.from || b.heap_type.v == HEAP_SYSTEM)
            continue;
        node->bank_bytes.v += b.size_in_bytes.v;
        node->bank_bytes.from = path;
    }
}

/* The first PCIe link of a GPU leads to its CPU.  The other flag bits count only if bit 0 is set. */
static void read_links(const struct root *r, struct arena *a, struct kfd_node *node, struct problems *p)
{
    enum { TYPE_PCIE = 2, OVERRIDE = 1 << 0, NO_ATOMICS = 1 << 2 | 1 << 3 };
    for (int k = 0; k < 4 && node->pcie_atomics == TRI_UNKNOWN; k++) {
        struct link l = { 0 };
        char *path = arena_printf(a, NODES "/%d/io_links/%d/properties", node->number, k);
        struct property_file f = { path, link_properties, ARRAY_LEN(link_properties), &l, NULL };
        if (!read_small(r, a, &f, p))
            return;
        if (l.type.from && l.type.v == TYPE_PCIE && l.flags.from)
            node->pcie_atomics = (l.flags.v & OVERRIDE) && (l.flags.v & NO_ATOMICS) ? TRI_NO : TRI_YES;
    }
}

bool kfd_node_is_gpu(const struct kfd_node *n)
{
    return n->simd_count.from && n->simd_count.v > 0;
}

static bool read_node(const struct root *r, struct arena *a, struct kfd_node *node, struct kfd_topology *t,
                      struct problems *p)
{
    char *path = arena_printf(a, NODES "/%d/properties", node->number);
    size_t len;
    const char *text = root_read(r, a, path, &len);
    if (!text && errno == EPERM) {
        t->masked = true;
    } else if (!text && errno != ENOENT) {
        problems_add(p, a, "read %s: %s", path, strerror(errno));
        t->unreadable = true;
    }
    if (!text)
        return false;
    kfd_parse_properties(text, len, path, a, node, p);
    if (!kfd_node_is_gpu(node))
        return true;
    uint64_t id;
    char *id_path = arena_printf(a, NODES "/%d/gpu_id", node->number);
    const char *gpu_id = root_read(r, a, id_path, NULL);
    if (gpu_id && cairn_parse_u64(gpu_id, &id) && id <= UINT32_MAX)
        node->gpu_id = (struct num){ (int64_t)id, id_path };
    else if (gpu_id)
        problems_add(p, a, "%s: expected a number", id_path);
    read_banks(r, a, node, p);
    read_links(r, a, node, p);
    return true;
}

void kfd_read(const struct root *r, struct arena *a, struct kfd_topology *out, struct problems *p)
{
    struct kfd_topology t = { .present = TRI_NO };
    char **names;
    size_t n;
    if (root_list(r, a, NODES, &names, &n)) {
        if (errno == EPERM) {
            t.masked = true;
        } else if (errno != ENOENT) {
            problems_add(p, a, "list " NODES ": %s", strerror(errno));
            t.unreadable = true;
        }
        t.present = t.masked || t.unreadable ? TRI_UNKNOWN : TRI_NO;
        *out = t;
        return;
    }
    t.present = TRI_YES;
    for (size_t i = 0; i < n; i++) {
        uint64_t number;
        if (!cairn_parse_u64(names[i], &number) || number > 100000)
            continue;
        struct kfd_node node = { .number = (int)number };
        if (read_node(r, a, &node, &t, p))
            *ARENA_PUSH(a, t.nodes, t.n_nodes) = node;
    }
    *out = t;
}
