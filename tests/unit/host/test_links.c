/* SPDX-License-Identifier: Apache-2.0 */
#include "host/links.h"

#include "check.h"

static enum gpu_link between(const char *path_a, const char *path_b, int numa_a, int numa_b)
{
    const struct gpu_facts g = { 0 };
    const struct gpu_place a = { &g, path_a, { 0 }, { numa_a, numa_a < 0 ? NULL : "test" }, NULL, 0 };
    const struct gpu_place b = { &g, path_b, { 0 }, { numa_b, numa_b < 0 ? NULL : "test" }, NULL, 0 };
    enum gpu_link there = links_between(&a, &b);
    CHECK(links_between(&b, &a) == there);
    return there;
}

#define PCI "/sys/devices/pci0000:"
static void places_in_the_pci_tree(void)
{
    CHECK(between(PCI "00/0000:00:01.1/0000:03:00.0", PCI "00/0000:00:08.1/0000:c5:00.0", -1, -1) ==
          GPU_LINK_HOST);
    CHECK(between(PCI "00/0000:00:01.0", PCI "00/0000:00:02.0", 0, 0) == GPU_LINK_HOST);
    CHECK(between(PCI "00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0",
                  PCI "00/0000:00:01.1/0000:01:00.0/0000:02:01.0/0000:04:00.0", 0, 0) == GPU_LINK_SWITCH);
    CHECK(between(PCI "00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0/0000:05:00.0",
                  PCI "00/0000:00:01.1/0000:01:00.0/0000:02:01.0/0000:04:00.0", 0, 0) == GPU_LINK_BRIDGES);
    CHECK(between(PCI "40/0000:40:01.1/0000:43:00.0", PCI "80/0000:80:01.1/0000:83:00.0", 0, 0) ==
          GPU_LINK_NODE);
    CHECK(between(PCI "40/0000:40:01.1/0000:43:00.0", PCI "80/0000:80:01.1/0000:83:00.0", 0, 1) ==
          GPU_LINK_SYSTEM);
    CHECK(between(PCI "40/0000:40:01.1/0000:43:00.0", PCI "80/0000:80:01.1/0000:83:00.0", -1, 1) ==
          GPU_LINK_NODE);
    /* The first digits of a name are no part of the path. */
    CHECK(between(PCI "40/0000:40:01.1/0000:43:00.0", PCI "41/0000:41:01.1/0000:44:00.0", 0, 1) ==
          GPU_LINK_SYSTEM);
    CHECK(between(PCI "40/0000:40:01.1/0000:43:00.0", PCI "40/0000:40:01.2/0000:44:00.0", 0, 0) ==
          GPU_LINK_HOST);
    CHECK(between(NULL, PCI "80/0000:80:01.1/0000:83:00.0", 0, 1) == GPU_LINK_UNKNOWN);
    CHECK(between(NULL, NULL, 0, 0) == GPU_LINK_UNKNOWN);
}

/* Two partitions of a card. */
static void one_device_twice(void)
{
    CHECK(between(PCI "00/0000:00:01.1/0000:03:00.0", PCI "00/0000:00:01.1/0000:03:00.0", 0, 0) ==
          GPU_LINK_SWITCH);
}

/* It is enough that one of the two tells of the link. */
static void xgmi_counts_first(void)
{
    int64_t to[] = { 7, 3 };
    const struct gpu_facts ga = { .kfd_node = { 2, "test" } }, gb = { .kfd_node = { 3, "test" } },
                           gc = { .kfd_node = { 4, "test" } };
    const struct gpu_place a = { .gpu = &ga, .xgmi = to, .n_xgmi = 2 }, b = { .gpu = &gb },
                           c = { .gpu = &gc };
    CHECK(links_between(&a, &b) == GPU_LINK_XGMI);
    CHECK(links_between(&b, &a) == GPU_LINK_XGMI);
    CHECK(links_between(&a, &c) == GPU_LINK_UNKNOWN);
}

int main(void)
{
    RUN(places_in_the_pci_tree);
    RUN(one_device_twice);
    RUN(xgmi_counts_first);
    return check_done();
}
