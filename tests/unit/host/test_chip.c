/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "check.h"
#include "host/chip.h"

static void graphics_block_is_not_the_target(void)
{
    CHECK_STR(chip_from_gc(11, 0, 1), "gfx1103");
    CHECK_STR(chip_from_gc(11, 0, 3), "gfx1101");
    CHECK_STR(chip_from_gc(10, 3, 2), "gfx1031");
    CHECK_STR(chip_from_gc(10, 3, 4), "gfx1032");
    CHECK_STR(chip_from_gc(10, 1, 10), "gfx1010");
    CHECK_STR(chip_from_gc(11, 5, 4), NULL);
    CHECK_STR(chip_from_gc(6, 0, 0), NULL);
}

static void device_ids(void)
{
    CHECK_STR(chip_from_device_id(0x67df), "gfx803");
    CHECK_STR(chip_from_device_id(0x9874), "gfx801");
    CHECK_STR(chip_from_device_id(0x73df), "gfx1031");
    CHECK_STR(chip_from_device_id(0x73ff), "gfx1032");
    CHECK_STR(chip_from_device_id(0x73f0), "gfx1102");
    CHECK_STR(chip_from_device_id(0x1586), "gfx1151");
    CHECK_STR(chip_from_device_id(0x6617), NULL); /* GFX6 */
    CHECK_STR(chip_from_device_id(0x6818), NULL);
}

static void kinds(void)
{
    struct num none = { 0 };
    CHECK_INT(chip_kind("gfx1151", none), GPU_INTEGRATED);
    CHECK_INT(chip_kind("gfx1036", none), GPU_INTEGRATED);
    CHECK_INT(chip_kind("gfx1100", none), GPU_DISCRETE);
    CHECK_INT(chip_kind("gfx1250", none), GPU_KIND_UNKNOWN);
    CHECK_INT(chip_kind("gfx942", none), GPU_KIND_UNKNOWN);
    CHECK_INT(chip_kind("gfx942", (struct num){ 0x74a0, "x" }), GPU_INTEGRATED);
    CHECK_INT(chip_kind("gfx942", (struct num){ 0x74a1, "x" }), GPU_DISCRETE);
    CHECK_INT(chip_kind("gfx94", none), GPU_KIND_UNKNOWN); /* no prefix match */
}

int main(void)
{
    RUN(graphics_block_is_not_the_target);
    RUN(device_ids);
    RUN(kinds);
    return check_done();
}
