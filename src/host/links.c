/* SPDX-License-Identifier: Apache-2.0 */
#include "host/links.h"

#include "base/parse.h"
#include "base/str.h"
#include <string.h>

#define DEVICES "/sys/devices/"

/* One link of a KFD node. */
static void take_link(const char *text, struct arena *a, struct gpu_place *out)
{
    enum { TYPE_XGMI = 11 };
    uint64_t type = 0, to = UINT64_MAX, value;
    char name[64];
    for (const char *line = text; line && *line; line = str_next_line(line)) {
        const char *one = arena_strndup(a, line, strcspn(line, "\n"));
        if (!cairn_parse_pair(one, name, sizeof(name), &value))
            continue;
        if (!strcmp(name, "type"))
            type = value;
        else if (!strcmp(name, "node_to"))
            to = value;
    }
    if (type == TYPE_XGMI && to <= INT64_MAX)
        *ARENA_PUSH(a, out->xgmi, out->n_xgmi) = (int64_t)to;
}

void links_read(const struct root *r, struct arena *a, const struct gpu_facts *g, struct gpu_place *out)
{
    *out = (struct gpu_place){ .gpu = g };
    const char *dir = g->pci.s ? arena_printf(a, "/sys/bus/pci/devices/%s", g->pci.s) : NULL;
    const char *path = dir ? root_resolve(r, a, dir) : NULL;
    int64_t numa;
    if (path && str_starts(path, DEVICES "pci"))
        out->path = path;
    if (dir) {
        out->cpus = text_read(r, a, arena_printf(a, "%s/local_cpulist", dir));
        const char *from = arena_printf(a, "%s/numa_node", dir), *text = root_read(r, a, from, NULL);
        if (text && cairn_parse_i64(text, &numa) && numa >= 0)
            out->numa = (struct num){ numa, from };
    }
    for (int k = 0; g->kfd_node.from && k < 256; k++) {
        const char *text =
            root_read(r, a,
                      arena_printf(a, "/sys/class/kfd/kfd/topology/nodes/%d/io_links/%d/properties",
                                   (int)g->kfd_node.v, k),
                      NULL);
        if (!text)
            break;
        take_link(text, a, out);
    }
}

static bool has_xgmi(const struct gpu_place *from, const struct gpu_place *to)
{
    for (size_t i = 0; to->gpu->kfd_node.from && i < from->n_xgmi; i++)
        if (from->xgmi[i] == to->gpu->kfd_node.v)
            return true;
    return false;
}

static int count_slashes(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += *s == '/';
    return n;
}

enum gpu_link links_between(const struct gpu_place *a, const struct gpu_place *b)
{
    if (has_xgmi(a, b) || has_xgmi(b, a))
        return GPU_LINK_XGMI;
    if (!a->path || !b->path)
        return GPU_LINK_UNKNOWN;
    /* `same` ends after the last part that the two paths share: "/sys/devices/pci0000:00/0000:00:01.1". */
    const char *pa = a->path, *pb = b->path;
    size_t same = 0;
    for (size_t i = 0; pa[i] && pb[i] && pa[i] == pb[i]; i++)
        if ((pa[i + 1] == '/' || !pa[i + 1]) && (pb[i + 1] == '/' || !pb[i + 1]))
            same = i + 1;
    if (same < strlen(DEVICES))
        return a->numa.from && b->numa.from && a->numa.v != b->numa.v ? GPU_LINK_SYSTEM : GPU_LINK_NODE;
    if (!memchr(pa + strlen(DEVICES), '/', same - strlen(DEVICES)))
        return GPU_LINK_HOST;
    int bridges_a = count_slashes(pa + same) - 1, bridges_b = count_slashes(pb + same) - 1;
    return bridges_a <= 1 && bridges_b <= 1 ? GPU_LINK_SWITCH : GPU_LINK_BRIDGES;
}
