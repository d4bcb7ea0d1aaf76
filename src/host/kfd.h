/* SPDX-License-Identifier: Apache-2.0
 * The kernel's compute topology: /sys/class/kfd/kfd/topology/nodes.
 *
 * This is what the HSA runtime itself reads, so its order is HIP's order.  A key that is missing is not
 * known; a line that is not "name number", or a number out of its range, becomes a problem and its key stays
 * unknown. */
#ifndef CAIRN_HOST_KFD_H
#define CAIRN_HOST_KFD_H

#include "host/facts.h"

struct kfd_node {
    int number; /* of the directory */
    struct num gpu_id;
    struct num simd_count, simd_per_cu, wave_front_size;
    struct num gfx_target_version, vendor_id, device_id, location_id, domain, drm_render_minor;
    struct num bank_bytes; /* framebuffer banks, public and private, added up */
    const char *uuid;      /* "GPU-<16 hex>"; NULL when the chip has none */
    enum tri has_cwsr_size, pcie_atomics;
};

struct kfd_topology {
    enum tri present;
    bool masked;     /* some files answered EPERM: a container hides them */
    bool unreadable; /* some did not read for another reason: what KFD has is not all known */
    struct kfd_node *nodes;
    size_t n_nodes;
};

bool kfd_node_is_gpu(const struct kfd_node *n);
void kfd_read(const struct root *r, struct arena *a, struct kfd_topology *out, struct problems *p);

/* For the fuzzer: fills node from the text of a properties file; path is for messages. */
void kfd_parse_properties(const char *text, size_t len, const char *path, struct arena *a,
                          struct kfd_node *node, struct problems *p);

#endif
