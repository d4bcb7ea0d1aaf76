/* SPDX-License-Identifier: Apache-2.0
 * Which override fits a chip on a wheel, and what is wrong with one that is set. */
#include "rules/override.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "check.h"

static const char *rdna2[] = { "gfx1030", "gfx1100" };
static const char *halo[] = { "gfx1100", "gfx1150", "gfx1151" };
static const char *halo_old[] = { "gfx1030", "gfx1100", "gfx1102" };
static const char *halo_only[] = { "gfx1151" };
static const char *relative[] = { "gfx11-generic" };

#define WHEEL(list)                                                         \
    {                                                                       \
        .code = { .name = (list), .n = ARRAY_LEN(list), .from = "a test" }, \
    }
static const struct override_wheel unknown, old = WHEEL(rdna2), new = WHEEL(halo), before = WHEEL(halo_old),
                                            alone = WHEEL(halo_only), generic = WHEEL(relative);

static void the_value_that_fits(void)
{
    static const struct {
        const struct override_wheel *wheel;
        const char *chip, *want;
    } rows[] = {
        { &old, "gfx1031", "gfx1030" }, { &new, "gfx1151", NULL },     { &before, "gfx1151", "gfx1100" },
        { &alone, "gfx1151", NULL },    { &alone, "gfx1100", NULL },   { &before, "gfx1103", "gfx1102" },
        { &generic, "gfx1151", NULL },  { &unknown, "gfx1031", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct gfx_chip *c = override_stand_in(rows[i].wheel, gfx_find(rows[i].chip));
        if (!str_eq(c ? c->gfx : NULL, rows[i].want))
            CHECK_FAIL_("row %zu: %s for %s, want %s", i, c ? c->gfx : "none", rows[i].chip,
                        rows[i].want ? rows[i].want : "none");
    }
}

/* What stands in on the wheels from before the chip. */
static void wheels_from_before_the_chip(void)
{
    static const struct {
        const char *chip, *want;
    } rows[] = {
        { "gfx1031", "gfx1030" }, { "gfx1151", "gfx1100" }, { "gfx1100", NULL },
        { "gfx1030", NULL },      { "gfx1201", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(arena_release) struct arena a = { 0 };
        const struct gfx_chip *real = gfx_find(rows[i].chip);
        const struct override_wheel w = { .code = override_code_before(real, &a) };
        const struct gfx_chip *c = override_stand_in(&w, real);
        CHECK_STR(c ? c->gfx : "none", rows[i].want ? rows[i].want : "none");
        CHECK_INT(override_has_code(&w, real->gfx), TRI_NO);
    }
}

/* rocBLAS aborts on a target that it has no files for. */
static void rocblas_has_a_say(void)
{
    static const char *only[] = { "gfx1100" };
    struct override_wheel w = before;
    w.rocblas = (struct targets){ .name = only, .n = 1, .from = "a test" };
    CHECK(!override_stand_in(&w, gfx_find("gfx1031")));
    CHECK_STR(override_stand_in(&w, gfx_find("gfx1151"))->gfx, "gfx1100");
}

static void what_is_wrong_with_one(void)
{
    static const struct {
        const struct override_wheel *wheel;
        const char *chip, *value;
        enum override_flaw want;
    } rows[] = {
        { &old, "gfx1031", "10.3.0", OVERRIDE_FINE },
        { &old, "gfx1031", "gfx1031", OVERRIDE_MALFORMED },
        { &old, "gfx1031", "", OVERRIDE_MALFORMED },
        { &old, "gfx1031", "10.3.99", OVERRIDE_NO_CHIP },
        { &old, "gfx1031", "10.3.1", OVERRIDE_SAME },
        { &old, "gfx1031", "11.0.0", OVERRIDE_OTHER_GENERATION },
        { &new, "gfx1151", "11.0.0", OVERRIDE_NATIVE },
        { &alone, "gfx1151", "11.0.0", OVERRIDE_NATIVE_ONLY },
        { &alone, "gfx1103", "11.0.2", OVERRIDE_NO_CODE },
        { &unknown, "gfx1151", "11.0.0", OVERRIDE_OBSOLETE },
        { &before, "gfx1151", "11.0.0", OVERRIDE_FINE },
        { &before, "gfx1103", "11.0.0", OVERRIDE_TOO_MANY_REGISTERS },
        { &unknown, NULL, "11.0.0", OVERRIDE_FINE },
        { &unknown, NULL, "11", OVERRIDE_MALFORMED },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum override_flaw got =
            override_judge(rows[i].wheel, rows[i].value, rows[i].chip ? gfx_find(rows[i].chip) : NULL);
        if (got != rows[i].want)
            CHECK_FAIL_("row %zu: %d, want %d", i, (int)got, (int)rows[i].want);
    }
}

static void device_wheels_count_where_code_is_split_off(void)
{
    static const char *device[] = { "gfx1151" };
    struct torch_facts t = {
        .kpack = true,
        .compiled = before.code,
        .device_wheels = { .name = device, .n = 1, .from = "device wheels" },
    };
    struct override_wheel w = override_wheel_of(&t);
    CHECK(override_has_code(&w, "gfx1151") == TRI_YES && override_has_code(&w, "gfx1100") == TRI_NO);
    w = override_wheel_of(NULL);
    CHECK(override_has_code(&w, "gfx1151") == TRI_UNKNOWN);
}

int main(void)
{
    RUN(the_value_that_fits);
    RUN(wheels_from_before_the_chip);
    RUN(rocblas_has_a_say);
    RUN(what_is_wrong_with_one);
    RUN(device_wheels_count_where_code_is_split_off);
    return check_done();
}
