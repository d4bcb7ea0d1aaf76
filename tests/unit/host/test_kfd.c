/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "host/kfd.h"
#include "tree.h"

#define NODES "sys/class/kfd/kfd/topology/nodes/"

static struct arena arena;

static struct kfd_node parse(const char *text, size_t len, struct problems *p)
{
    struct kfd_node n = { 0 };
    kfd_parse_properties(text, len, "properties", &arena, &n, p);
    return n;
}

static void takes_what_it_knows(void)
{
    struct problems p = { 0 };
    const char *text =
        "simd_count 80\nsomething_new 18446744073709551615\ngfx_target_version 110501\nunique_id 0\n"
        "drm_render_minor 128"; /* no final newline */
    struct kfd_node n = parse(text, strlen(text), &p);
    CHECK_INT(n.simd_count.v, 80);
    CHECK_INT(n.gfx_target_version.v, 110501);
    CHECK_INT(n.drm_render_minor.v, 128);
    CHECK_STR(n.simd_count.from, "properties");
    CHECK(!n.vendor_id.from); /* missing is not 0 */
    CHECK(!n.uuid);
    CHECK_INT(n.has_cwsr_size, TRI_NO);
    CHECK_INT(p.n, 0);
}

static void serial_numbers_use_all_64_bits(void)
{
    struct problems p = { 0 };
    const char *text = "unique_id 16404946649897475633\ncwsr_size 1\n";
    struct kfd_node n = parse(text, strlen(text), &p);
    CHECK_STR(n.uuid, "GPU-e3aa140f9a5f9e31");
    CHECK_INT(n.has_cwsr_size, TRI_YES);
    CHECK_INT(p.n, 0);
}

static void damage_is_named_and_never_a_number(void)
{
    struct problems p = { 0 };
    static const char text[] = "simd_count 99999999999\nvendor_id -1\ndevice_id 0x1586\nlocation_id 12 34\n"
                               "domain 18446744073709551616\n\0\x01\xff\nwave_front_size 32\n";
    struct kfd_node n = parse(text, sizeof(text) - 1, &p);
    CHECK(!n.simd_count.from && !n.vendor_id.from && !n.device_id.from && !n.location_id.from &&
          !n.domain.from);
    CHECK_INT(n.wave_front_size.v, 32);
    REQUIRE(p.n == 2);
    CHECK_HAS(p.text[0], "simd_count 99999999999 is out of range");
    CHECK_HAS(p.text[1], "properties:2:");
    CHECK_HAS(p.text[1], "5 such lines ignored");
}

static void a_line_without_end(void)
{
    struct problems p = { 0 };
    char *text = malloc(1 << 20);
    memset(text, 'a', 1 << 20);
    struct kfd_node n = parse(text, 1 << 20, &p);
    free(text);
    CHECK(!n.simd_count.from);
    CHECK_INT(p.n, 1);
}

static void reads_nodes_banks_and_links(void)
{
    struct tree t;
    struct root r;
    struct cairn_error err;
    struct kfd_topology topo;
    struct problems p = { 0 };
    tree_make(&t);
    tree_put(&t, NODES "0/properties", "cpu_cores_count 16\nsimd_count 0\n");
    tree_put(&t, NODES "7/properties", "simd_count 80\n");
    tree_put(&t, NODES "7/gpu_id", "41001\n");
    tree_put(&t, NODES "7/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 268435456\n");
    tree_put(&t, NODES "7/mem_banks/1/properties", "heap_type 2\nsize_in_bytes 1000\n");
    tree_put(&t, NODES "7/mem_banks/2/properties", "heap_type 0\nsize_in_bytes 5\n");
    tree_put(&t, NODES "7/io_links/0/properties", "type 11\nflags 13\n");
    tree_put(&t, NODES "7/io_links/1/properties", "type 2\nflags 13\n");
    tree_put(&t, NODES "junk/properties", "simd_count 80\n");
    REQUIRE(!root_open(&r, t.dir, &err));
    kfd_read(&r, &arena, &topo, &p);
    CHECK_INT(topo.present, TRI_YES);
    REQUIRE(topo.n_nodes == 2);
    CHECK(!kfd_node_is_gpu(&topo.nodes[0]));
    const struct kfd_node *g = &topo.nodes[1];
    CHECK_INT(g->number, 7);
    CHECK_INT(g->gpu_id.v, 41001);
    CHECK_INT(g->bank_bytes.v, 268436456);
    CHECK_INT(g->pcie_atomics, TRI_NO);
    CHECK_INT(p.n, 0);
    root_close(&r);
    tree_remove(&t);
}

static void absent_is_not_a_problem(void)
{
    struct tree t;
    struct root r;
    struct cairn_error err;
    struct kfd_topology topo;
    struct problems p = { 0 };
    tree_make(&t);
    REQUIRE(!root_open(&r, t.dir, &err));
    kfd_read(&r, &arena, &topo, &p);
    CHECK_INT(topo.present, TRI_NO);
    CHECK_INT(topo.n_nodes + p.n, 0);
    tree_put(&t, "sys/class/kfd/kfd/topology/nodes", "not a directory");
    kfd_read(&r, &arena, &topo, &p);
    CHECK_INT(p.n, 1);
    root_close(&r);
    tree_remove(&t);
}

int main(void)
{
    RUN(takes_what_it_knows);
    RUN(serial_numbers_use_all_64_bits);
    RUN(damage_is_named_and_never_a_number);
    RUN(a_line_without_end);
    RUN(reads_nodes_banks_and_links);
    RUN(absent_is_not_a_problem);
    arena_release(&arena);
    return check_done();
}
