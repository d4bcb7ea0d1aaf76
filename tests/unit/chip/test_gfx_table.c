/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/gfx_table.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "check.h"
#include "chip/gfxname.h"

static void every_row_is_whole(void)
{
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++) {
        int major, minor, stepping, bad = check_bad_here;
        CHECK(gfxname_split(c->gfx, &major, &minor, &stepping));
        CHECK(c->codename && c->products && c->support && c->source);
        CHECK(gfx_family_name(c->family) != NULL);
        CHECK(str_list_has("none emulated native", ' ', c->bf16));
        CHECK_INT(c->wave, c->family >= GFX_RDNA1 ? 32 : 64);
        CHECK(c->vgpr_kib == 256 || c->vgpr_kib == 384 || c->vgpr_kib == 512);
        CHECK(!c->matrix_core == (strcmp(c->bf16, "native") != 0));
        CHECK(!c->fp8 || c->matrix_core);
        CHECK(!c->wheel_major || c->wheel);
        CHECK(c->kind == GPU_KIND_UNKNOWN ? c->apu_id : !c->apu_id);
        CHECK(!c->generic || gfx_find_arch(c->generic));
        CHECK_INT(c->train_f16, c->family == GFX_RDNA2);
        CHECK(!c->aotriton_stable[1] || c->aotriton[1]);
        CHECK(gfx_find(c->gfx) == c);
        if (check_bad_here != bad)
            printf("# in the row of %s\n", c->gfx);
    }
}

static bool ids_meet(const struct gfx_ids *a, const struct gfx_ids *b)
{
    return a->first && b->first && a->first <= b->last && b->first <= a->last;
}

static bool gc_meet(const struct gfx_gc *a, const struct gfx_gc *b)
{
    return a->major && a->major == b->major && a->minor == b->minor && a->revision == b->revision;
}

static bool share_a_number(const struct gfx_chip *a, const struct gfx_chip *b)
{
    for (size_t i = 0; i < ARRAY_LEN(a->ids); i++)
        for (size_t k = 0; k < ARRAY_LEN(b->ids); k++)
            if (ids_meet(&a->ids[i], &b->ids[k]))
                return true;
    for (size_t i = 0; i < ARRAY_LEN(a->gc); i++)
        for (size_t k = 0; k < ARRAY_LEN(b->gc); k++)
            if (gc_meet(&a->gc[i], &b->gc[k]))
                return true;
    return a->mach == b->mach;
}

/* A number leads to one row, and to the one that has it. */
static void numbers_are_of_one_chip(void)
{
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++) {
        for (const struct gfx_chip *o = c + 1; o->gfx; o++)
            if (share_a_number(c, o))
                CHECK_FAIL_("%s and %s", c->gfx, o->gfx);
        CHECK_STR(gfx_from_mach(c->mach), c->gfx);
        for (size_t i = 0; i < ARRAY_LEN(c->gc) && c->gc[i].major; i++)
            CHECK_STR(gfx_from_gc(c->gc[i].major, c->gc[i].minor, c->gc[i].revision), c->gfx);
        for (size_t i = 0; i < ARRAY_LEN(c->ids) && c->ids[i].first; i++) {
            CHECK(c->ids[i].first <= c->ids[i].last);
            CHECK_STR(gfx_from_device_id(c->ids[i].first), c->gfx);
            CHECK_STR(gfx_from_device_id(c->ids[i].last), c->gfx);
        }
    }
}

static void targets_outside_the_table_are_recognised(void)
{
    CHECK_STR(gfx_from_mach(0x54), "gfx11-generic");
    CHECK_STR(gfx_from_mach(0x40), "gfx940");
    CHECK_STR(gfx_from_mach(0), NULL);
    CHECK_STR(gfx_from_mach(0xff), NULL);
    CHECK_STR(gfx_from_device_id(0x1309), "gfx700");
    CHECK(!gfx_find("gfx700") && !gfx_find("gfx11-generic"));
    REQUIRE(gfx_find_arch("gfx90a:sramecc+:xnack-"));
    CHECK(gfx_find_arch("gfx90a:sramecc+:xnack-") == gfx_find("gfx90a"));
    CHECK(gfx_find_arch("gfx1151") == gfx_find("gfx1151"));
    CHECK(!gfx_find_arch("gfx90") && !gfx_find_arch("gfx90ab") && !gfx_find_arch("sm_90"));
}

static struct version version(const char *text)
{
    struct version v = { 0 };
    version_parse(text, &v);
    return v;
}

static void wheels_and_aotriton_grow(void)
{
    const struct gfx_chip *halo = gfx_find("gfx1151"), *old = gfx_find("gfx900"), *none = gfx_find("gfx1031");
    REQUIRE(halo && old && none);
    CHECK(gfx_in_wheel(old, version("2.5.1"), 6) && !gfx_in_wheel(none, version("2.12"), 7));
    CHECK(!gfx_in_wheel(halo, version("2.9.1"), 6) && gfx_in_wheel(halo, version("2.9.1"), 7));
    CHECK(gfx_in_wheel(halo, version("2.10.0"), 6) && !gfx_in_wheel(halo, version("2.8.0"), 7));
    CHECK(!gfx_in_aotriton(halo, version("0.9.2")) && gfx_in_aotriton(halo, version("0.10.0")));
    CHECK(gfx_in_aotriton(halo, (struct version){ 0 }) && !gfx_in_aotriton(none, (struct version){ 0 }));
    CHECK(gfx_is_experimental(halo, version("0.11.2")) && !gfx_is_experimental(halo, version("0.13")));
    CHECK(!gfx_is_experimental(halo, (struct version){ 0 }) && !gfx_is_experimental(none, version("0.11")));
    CHECK(!gfx_is_experimental(gfx_find("gfx90a"), version("0.4")));
}

static void graphics_block_is_not_the_target(void)
{
    CHECK_STR(gfx_from_gc(11, 0, 1), "gfx1103");
    CHECK_STR(gfx_from_gc(11, 0, 3), "gfx1101");
    CHECK_STR(gfx_from_gc(10, 3, 2), "gfx1031");
    CHECK_STR(gfx_from_gc(10, 3, 4), "gfx1032");
    CHECK_STR(gfx_from_gc(10, 1, 10), "gfx1010");
    CHECK_STR(gfx_from_gc(11, 5, 4), NULL);
    CHECK_STR(gfx_from_gc(6, 0, 0), NULL);
}

static void device_ids(void)
{
    CHECK_STR(gfx_from_device_id(0x67df), "gfx803");
    CHECK_STR(gfx_from_device_id(0x9874), "gfx801");
    CHECK_STR(gfx_from_device_id(0x73df), "gfx1031");
    CHECK_STR(gfx_from_device_id(0x73ff), "gfx1032");
    CHECK_STR(gfx_from_device_id(0x73f0), "gfx1102");
    CHECK_STR(gfx_from_device_id(0x1586), "gfx1151");
    CHECK_STR(gfx_from_device_id(0x6617), NULL); /* GFX6 */
    CHECK_STR(gfx_from_device_id(0x6818), NULL);
}

static void kinds(void)
{
    CHECK_INT(gfx_kind("gfx1151", 0), GPU_INTEGRATED);
    CHECK_INT(gfx_kind("gfx1036", 0), GPU_INTEGRATED);
    CHECK_INT(gfx_kind("gfx1100", 0), GPU_DISCRETE);
    CHECK_INT(gfx_kind("gfx1250", 0), GPU_KIND_UNKNOWN);
    CHECK_INT(gfx_kind("gfx942", 0), GPU_KIND_UNKNOWN);
    CHECK_INT(gfx_kind("gfx942", 0x74a0), GPU_INTEGRATED);
    CHECK_INT(gfx_kind("gfx942", 0x74a1), GPU_DISCRETE);
    CHECK_INT(gfx_kind("gfx94", 0), GPU_KIND_UNKNOWN); /* no prefix match */
}

static void code_runs_exactly_or_by_generic_target(void)
{
    CHECK(gfx_code_runs("gfx1030", "gfx1030"));
    CHECK(!gfx_code_runs("gfx1030", "gfx1031"));
    CHECK(!gfx_code_runs("gfx103", "gfx1030"));
    CHECK(gfx_code_runs("gfx10-3-generic", "gfx1031"));
    CHECK(!gfx_code_runs("gfx10-1-generic", "gfx1031"));
    CHECK(gfx_code_runs("gfx11-generic", "gfx1151"));
    CHECK(!gfx_code_runs("gfx9-generic", "gfx90a"));
    CHECK(gfx_code_runs("gfx9-4-generic", "gfx950"));
    CHECK(gfx_code_runs("gfx90a:sramecc+:xnack-", "gfx90a"));
    CHECK(!gfx_code_runs("gfx90a:xnack+", "gfx90a"));
    CHECK(gfx_code_runs("gfx1299", "gfx1299"));
    CHECK(!gfx_code_runs("gfx12-generic", "gfx1299"));
    CHECK(!gfx_code_runs(NULL, "gfx1100"));
}

static void overrides_are_decimal(void)
{
    char out[16];
    CHECK(gfx_override_value("gfx1030", out));
    CHECK_STR(out, "10.3.0");
    CHECK(gfx_override_value("gfx90a", out));
    CHECK_STR(out, "9.0.10");
    CHECK(gfx_override_value("gfx1151", out));
    CHECK_STR(out, "11.5.1");
    CHECK(!gfx_override_value("gfx11-generic", out));
    CHECK(!gfx_override_value("navi", out));
}

/* Whatever the runtime's own parser refuses, and numbers that no chip has. */
static void overrides_are_read_as_the_runtime_reads_them(void)
{
    static const char *const refused[] = { "",         "10",      "10.3",     "10.3.",   "10.3.0.",
                                           "10.3.0.1", "10.3.0 ", " 10.3.0",  "gfx1030", "10.3.-1",
                                           "0x10.3.0", "10..0",   "1000.3.0", "64.0.0",  "10.256.0" };
    char out[16];
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        CHECK(gfx_override_value(c->gfx, out) && gfx_find_override(out) == c);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        CHECK(!gfx_override_is_valid(refused[i]) && !gfx_find_override(refused[i]));
    CHECK(gfx_override_is_valid("10.3.9") && !gfx_find_override("10.3.9"));
    CHECK(gfx_find_override("10.03.0") == gfx_find("gfx1030"));
}

int main(void)
{
    RUN(every_row_is_whole);
    RUN(numbers_are_of_one_chip);
    RUN(targets_outside_the_table_are_recognised);
    RUN(wheels_and_aotriton_grow);
    RUN(graphics_block_is_not_the_target);
    RUN(device_ids);
    RUN(kinds);
    RUN(code_runs_exactly_or_by_generic_target);
    RUN(overrides_are_decimal);
    RUN(overrides_are_read_as_the_runtime_reads_them);
    return check_done();
}
