/* SPDX-License-Identifier: Apache-2.0
 * A node's properties file with any bytes in it: no crash, and no number that was not there. */
#include "host/kfd.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include <string.h>

/* What is known has a source and is in the range of an honest machine: never a wrapped number. */
static void check_num(struct num n)
{
    FUZZ_REQUIRE(!n.from || n.v >= 0);
    FUZZ_REQUIRE(n.from || n.v == 0);
}

static void check_node(const struct kfd_node *n)
{
    const struct num all[] = {
        n->simd_count, n->simd_per_cu, n->wave_front_size, n->gfx_target_version, n->vendor_id,
        n->device_id,  n->location_id, n->domain,          n->drm_render_minor,
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        check_num(all[i]);
    FUZZ_REQUIRE(!n->uuid || strlen(n->uuid) == strlen("GPU-0123456789abcdef"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    struct kfd_node node = { 0 };
    struct problems p = { 0 };
    kfd_parse_properties(text, size, "properties", &a, &node, &p);
    check_node(&node);
    for (size_t i = 0; i < p.n; i++)
        FUZZ_REQUIRE(p.text[i] && p.text[i][0]);
    return 0;
}
