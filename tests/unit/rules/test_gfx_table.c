/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/gfx_table.h"
#include "base/str.h"
#include "check.h"
#include "host/chip.h"

static struct version version(const char *text)
{
    struct version v = { 0 };
    version_parse(text, &v);
    return v;
}

static void every_row_is_whole(void)
{
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++) {
        int major, minor, stepping, bad = check_bad_here;
        CHECK(chip_name_split(c->gfx, &major, &minor, &stepping));
        CHECK(c->codename && c->products && c->support && c->source);
        CHECK(gfx_family_name(c->family) != NULL);
        CHECK(str_list_has("none emulated native", ' ', c->bf16));
        CHECK_INT(c->wave, c->family >= GFX_RDNA1 ? 32 : 64);
        CHECK(c->vgpr_kib == 256 || c->vgpr_kib == 384 || c->vgpr_kib == 512);
        CHECK(!c->matrix_core == (strcmp(c->bf16, "native") != 0));
        CHECK(!c->fp8 || c->matrix_core);
        CHECK(!c->wheel_major || c->wheel);
        CHECK(gfx_find(c->gfx) == c);
        if (check_bad_here != bad)
            printf("# in the row of %s\n", c->gfx);
    }
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

static void wheels_list_chips_by_version(void)
{
    struct version rocm6 = version("6.4"), rocm7 = version("7.0"), none = { 0 };
    const struct gfx_chip *halo = gfx_find("gfx1151"), *navi33 = gfx_find("gfx1102");
    CHECK_INT(gfx_in_wheel(halo, version("2.9.1+rocm6.4"), rocm6), TRI_NO);
    CHECK_INT(gfx_in_wheel(halo, version("2.9.1"), rocm7), TRI_YES);
    CHECK_INT(gfx_in_wheel(halo, version("2.9.1"), none), TRI_UNKNOWN);
    CHECK_INT(gfx_in_wheel(halo, version("2.10.0"), rocm6), TRI_YES);
    CHECK_INT(gfx_in_wheel(navi33, version("2.6.0"), rocm6), TRI_NO);
    CHECK_INT(gfx_in_wheel(navi33, version("2.7.0"), rocm6), TRI_YES);
    CHECK_INT(gfx_in_wheel(gfx_find("gfx1031"), version("2.12.0"), rocm7), TRI_NO);
    CHECK_INT(gfx_in_wheel(gfx_find("gfx1103"), version("2.12.0"), rocm7), TRI_UNKNOWN);
    CHECK_INT(gfx_in_wheel(gfx_find("gfx1030"), version("2.4.0"), rocm6), TRI_UNKNOWN);
}

int main(void)
{
    RUN(every_row_is_whole);
    RUN(code_runs_exactly_or_by_generic_target);
    RUN(overrides_are_decimal);
    RUN(wheels_list_chips_by_version);
    return check_done();
}
