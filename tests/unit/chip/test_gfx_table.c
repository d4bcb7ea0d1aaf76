/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/gfx_table.h"
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
    RUN(code_runs_exactly_or_by_generic_target);
    RUN(overrides_are_decimal);
    RUN(overrides_are_read_as_the_runtime_reads_them);
    return check_done();
}
