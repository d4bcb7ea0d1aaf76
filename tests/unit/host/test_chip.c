/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "check.h"
#include "host/chip.h"

static void kfd_numbers_have_hex_steppings(void)
{
    static const struct {
        uint64_t v;
        const char *name;
    } cases[] = { { 90000, "gfx900" },   { 90010, "gfx90a" },   { 90012, "gfx90c" },   { 90402, "gfx942" },
                  { 90500, "gfx950" },   { 100301, "gfx1031" }, { 110000, "gfx1100" }, { 110501, "gfx1151" },
                  { 120001, "gfx1201" }, { 80003, "gfx803" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[CHIP_NAME_MAX];
        CHECK(chip_name_from_kfd(cases[i].v, name));
        CHECK_STR(name, cases[i].name);
    }
}

static void numbers_that_are_no_target(void)
{
    char name[CHIP_NAME_MAX];
    static const uint64_t bad[] = { 0, 1, 90016, 91600, 50000, 1000000, UINT64_MAX };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!chip_name_from_kfd(bad[i], name));
}

static void names_split(void)
{
    int major, minor, stepping;
    REQUIRE(chip_name_split("gfx90a", &major, &minor, &stepping));
    CHECK_INT(major * 10000 + minor * 100 + stepping, 90010);
    REQUIRE(chip_name_split("gfx1151", &major, &minor, &stepping));
    CHECK_INT(major * 10000 + minor * 100 + stepping, 110501);
    static const char *const bad[] = { "",         "gfx",     "gfx90",         "gfx90G",  "gfx11510", "1151",
                                       "gfx1151 ", "GFX1151", "gfx11-generic", "gfx-101", "gfx10\x01" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (chip_name_split(bad[i], &major, &minor, &stepping))
            CHECK_FAIL_("\"%s\" was taken for a name", bad[i]);
}

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
    RUN(kfd_numbers_have_hex_steppings);
    RUN(numbers_that_are_no_target);
    RUN(names_split);
    RUN(graphics_block_is_not_the_target);
    RUN(device_ids);
    RUN(kinds);
    return check_done();
}
