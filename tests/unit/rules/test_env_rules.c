/* SPDX-License-Identifier: Apache-2.0
 * The tables are whole: every name has its row, every rule its reason, and conditions mean what they say. */
#include "rules/env_rules.h"

#include "base/str.h"
#include "check.h"
#include "rules/env_names.h"
#include "rules/trainers.h"
#include <unistd.h>

static struct version version(const char *text)
{
    struct version v = { 0 };
    if (text)
        version_parse(text, &v);
    return v;
}

static void every_name_is_whole(void)
{
    const struct env_name *r;
    size_t n = 0;
    for (; (r = env_name_at(n)); n++) {
        int bad = check_bad_here;
        CHECK(r->reader && *r->reader && r->effect && *r->effect && r->source && *r->source);
        CHECK(r->verdict == ENV_UNREAD || r->values || strchr(r->name, '*'));
        CHECK(r->syntax != ENV_WORD || strchr(r->values, '|'));
        CHECK(env_verdict_name(r->verdict) != NULL);
        CHECK(env_name_find(r->name) == r);
        if (check_bad_here != bad)
            printf("# in the row of %s\n", r->name);
    }
    CHECK(n > 120);
}

/* A list of all names that the evidence mentions, one a line. */
static void every_known_name_is_answered(void)
{
    char line[256];
    FILE *f = fopen(check_data("env/names.txt"), "re");
    size_t n = 0;
    REQUIRE(f != NULL);
    for (; fgets(line, sizeof(line), f); n++) {
        line[strcspn(line, "\n")] = '\0';
        if (!env_name_find(line))
            CHECK_FAIL_("no row for %s", line);
    }
    fclose(f);
    CHECK(n > 120);
}

static void patterns_match_what_they_should(void)
{
    CHECK_STR(env_name_find("HSA_OVERRIDE_GFX_VERSION")->name, "HSA_OVERRIDE_GFX_VERSION");
    CHECK_STR(env_name_find("HSA_OVERRIDE_GFX_VERSION_2")->name, "HSA_OVERRIDE_GFX_VERSION_<n>");
    CHECK(!env_name_find("HSA_OVERRIDE_GFX_VERSION_"));
    CHECK(!env_name_find("HSA_OVERRIDE_GFX_VERSION_x"));
    CHECK_STR(env_name_find("UCX_TLS")->name, "UCX_TLS");
    CHECK_STR(env_name_find("UCX_NET_DEVICES")->name, "UCX_*");
    CHECK(!env_name_find("UCX_X;reboot")); /* would be a command in `unset` */
    CHECK_STR(env_name_find("MIOPEN_DEBUG_CONV_DIRECT")->name, "MIOPEN_DEBUG_CONV_DIRECT");
    CHECK_STR(env_name_find("MIOPEN_DEBUG_CONV_FFT")->name, "MIOPEN_DEBUG_CONV_*");
    CHECK(!env_name_find("UCX_"));
    CHECK(!env_name_find("HOME"));
    CHECK(!env_name_find(""));
}

static void near_names_are_found(void)
{
    const char *near[3] = { 0 };
    CHECK_INT(env_name_distance("HIP_PATH", "HIP_PATH"), 0);
    CHECK_INT(env_name_distance("", "abc"), 3);
    CHECK_INT(env_name_distance("kitten", "sitting"), 3);
    CHECK(env_name_nearest("HIP_VISIBLE_DEVICE", near, 3) >= 1);
    CHECK_STR(near[0], "HIP_VISIBLE_DEVICES");
    CHECK(env_name_nearest("PYTORCH_HIP_ALOC_CONF", near, 1) == 1);
    CHECK_STR(near[0], "PYTORCH_HIP_ALLOC_CONF");
    CHECK(env_name_nearest("hsa_override_gfx_version", near, 1) == 1);
    CHECK_STR(near[0], "HSA_OVERRIDE_GFX_VERSION");
    CHECK_INT(env_name_nearest("XYZZY", near, 3), 0);
    char longer[600];
    memset(longer, 'A', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    CHECK(env_name_nearest(longer, near, 3) <= 3);
}

/* A document that is named must be there. */
static bool source_exists(const char *source)
{
    if (!str_starts(source, "docs/"))
        return str_starts(source, "https://");
    char path[512];
    snprintf(path, sizeof(path), "../../%s", source);
    return !access(check_data(path), R_OK);
}

static void every_rule_has_reason_source_and_row(void)
{
    for (const struct env_rule *r = env_rules(); r->name; r++) {
        const struct env_name *row = env_name_find(r->name);
        int bad = check_bad_here;
        CHECK(r->why && *r->why && r->source && source_exists(r->source));
        CHECK(!r->value == (r->computed != ENV_VALUE_LITERAL));
        CHECK(row && (row->verdict == ENV_SETS || row->verdict == ENV_DEBUGS));
        CHECK(row && (!row->linux_only || r->when.os == ENV_OS_LINUX));
        CHECK(r->when.debug == (row && row->verdict == ENV_DEBUGS));
        if (check_bad_here != bad)
            printf("# in the rule of %s\n", r->name);
    }
    for (const struct env_note *n = env_notes(); n->text; n++)
        CHECK(source_exists(n->source));
    for (const struct env_note *n = trainer_notes(); n->text; n++)
        CHECK(n->when.trainer && trainer_find(n->when.trainer) && source_exists(n->source));
}

static bool some_rule_sets(const char *name)
{
    for (const struct env_rule *r = env_rules(); r->name; r++)
        if (!strcmp(r->name, name))
            return true;
    return false;
}

static void what_is_said_to_be_set_is_set(void)
{
    const struct env_name *r;
    for (size_t i = 0; (r = env_name_at(i)); i++) {
        bool sets = r->verdict == ENV_SETS || r->verdict == ENV_DEBUGS;
        if (sets && !some_rule_sets(r->name))
            CHECK_FAIL_("no rule sets %s", r->name);
        CHECK(source_exists(r->source));
    }
}

static struct situation situation(const char *gfx, const char *torch, const char *rocm, const char *aotriton)
{
    return (struct situation){ .gfx = gfx,
                               .chip = gfx ? gfx_find(gfx) : NULL,
                               .unified = TRI_NO,
                               .n_visible = 1,
                               .torch = version(torch),
                               .rocm = version(rocm),
                               .aotriton = version(aotriton) };
}

static void conditions_mean_what_they_say(void)
{
    struct situation s = situation("gfx1151", "2.9.1", "7.0", "0.11");
    s.kernel = version("6.17.0");
    CHECK(env_when_met(&(struct env_when){ 0 }, &s));
    CHECK(env_when_met(&(struct env_when){ .gfx = "gfx1151" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .gfx = "gfx1150" }, &s));
    CHECK(env_when_met(&(struct env_when){ .experimental = true }, &s));
    CHECK(env_when_met(&(struct env_when){ .family = "RDNA3.5" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .family = "RDNA3 RDNA4" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .unified = TRI_YES }, &s));
    CHECK(env_when_met(&(struct env_when){ .torch_from = "2.9", .torch_below = "2.10" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .torch_from = "2.10" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .torch_below = "2.9.1" }, &s));
    CHECK(env_when_met(&(struct env_when){ .rocm_from = "7.0", .rocm_below = "7.1" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .rocm_below = "7.0" }, &s));
    CHECK(env_when_met(&(struct env_when){ .kernel_from = "6.16" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .kernel_below = "6.16" }, &s));
    CHECK(env_when_met(&(struct env_when){ .os = ENV_OS_LINUX }, &s));
    CHECK(!env_when_met(&(struct env_when){ .os = ENV_OS_WINDOWS }, &s));
    CHECK(!env_when_met(&(struct env_when){ .gpus = ENV_GPUS_SEVERAL }, &s));
    CHECK(!env_when_met(&(struct env_when){ .debug = true }, &s));
    CHECK(!env_when_met(&(struct env_when){ .trainer = "unsloth" }, &s));
}

static void what_is_not_known_meets_no_range(void)
{
    struct situation s = situation(NULL, NULL, NULL, NULL);
    CHECK(!env_when_met(&(struct env_when){ .gfx = "gfx1151" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .experimental = true }, &s));
    CHECK(!env_when_met(&(struct env_when){ .torch_below = "9.0" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .torch_from = "0" }, &s));
    CHECK(!env_when_met(&(struct env_when){ .kernel_below = "99" }, &s));
}

static void a_library_that_lacks_the_chip_counts(void)
{
    const char *names[] = { "gfx1100" };
    struct torch_facts t = { .hipblaslt = { names, 1, "test" }, .aotriton = { NULL, 0, "test" } };
    struct situation s = situation("gfx1100", "2.8", "6.4", "0.10");
    struct env_when lt = { .library = ENV_LIBRARY_HIPBLASLT },
                    attention = { .library = ENV_LIBRARY_AOTRITON };
    CHECK(env_when_met(&lt, &s));
    s.lists = &t;
    CHECK(env_when_met(&lt, &s));
    CHECK(!env_when_met(&attention, &s));
    s.gfx = "gfx1101";
    CHECK(!env_when_met(&lt, &s));
    t.hipblaslt.from = NULL;
    CHECK(env_when_met(&lt, &s));
}

/* The experimental list of each tag of AOTriton, as read there; gfx1100 of 0.11b is left out on purpose. */
static void aotriton_lists_are_right(void)
{
    static const struct {
        const char *aotriton, *gfx;
    } tags[] = {
        { "0.4", "" },
        { "0.7", "gfx1100" },
        { "0.8", "" },
        { "0.9", "gfx950 gfx1201" },
        { "0.10", "gfx950 gfx1101 gfx1150 gfx1151 gfx1200 gfx1201" },
        { "0.11", "gfx950 gfx1101 gfx1102 gfx1150 gfx1151 gfx1200 gfx1201" },
        { "0.11.1", "gfx950 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1200 gfx1201" },
        { "0.11.2", "gfx950 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201" },
        { "0.12", "gfx950 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201" },
        { "0.13", "gfx1101 gfx1102 gfx1103 gfx1150 gfx1152 gfx1153 gfx1200" },
    };
    for (size_t i = 0; i < ARRAY_LEN(tags); i++)
        for (const struct gfx_chip *c = gfx_table(); c->gfx; c++) {
            struct situation s = situation(c->gfx, "2.9", "6.4", tags[i].aotriton);
            bool set = false;
            for (const struct env_rule *r = env_rules(); r->name; r++)
                set |=
                    str_eq(r->name, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL") && env_when_met(&r->when, &s);
            if (set != str_list_has(tags[i].gfx, ' ', c->gfx))
                CHECK_FAIL_("AOTriton %s, %s: %s", tags[i].aotriton, c->gfx, set ? "set" : "not set");
        }
}

static void trainers_are_found(void)
{
    CHECK_STR(trainer_find("SimpleTuner")->name, "simpletuner");
    CHECK_STR(trainer_find("kohya")->name, "kohya_ss");
    CHECK(!trainer_find("photoshop"));
    CHECK_STR(trainer_nearest("onetraner"), "onetrainer");
    CHECK(!trainer_nearest("xy"));
}

int main(void)
{
    RUN(every_name_is_whole);
    RUN(every_known_name_is_answered);
    RUN(patterns_match_what_they_should);
    RUN(near_names_are_found);
    RUN(every_rule_has_reason_source_and_row);
    RUN(what_is_said_to_be_set_is_set);
    RUN(conditions_mean_what_they_say);
    RUN(what_is_not_known_meets_no_range);
    RUN(a_library_that_lacks_the_chip_counts);
    RUN(aotriton_lists_are_right);
    RUN(trainers_are_found);
    return check_done();
}
