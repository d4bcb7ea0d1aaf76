/* SPDX-License-Identifier: Apache-2.0
 * The tables of classes and ladders themselves. */
#include "rules/issue_rules.h"

#include "base/cleanup.h"
#include "base/match.h"
#include "check.h"
#include "rules/fix_names.h"

static void every_class_is_told(void)
{
    for (int i = 0; i < N_ISSUES; i++) {
        CHECK(issue_classes[i].id && issue_classes[i].about && issue_classes[i].cause);
        size_t fixes = 0;
        for (const struct issue_fix *f = issue_fixes; f->text; f++)
            fixes += f->issue == (enum issue)i;
        CHECK(fixes > 0 || i == ISSUE_NOT_ROCM || i == ISSUE_NO_FAILURE);
        CHECK_STR(diagnose_class((size_t)i).id, issue_classes[i].id);
    }
    CHECK(!diagnose_class(N_ISSUES).id);
}

static void a_rung_changes_one_thing(void)
{
    for (const struct issue_fix *f = issue_fixes; f->text; f++) {
        /* Which GPU is chosen is one thing, whatever variables say it, and so is the override. */
        bool override = f->set && !strcmp(f->set, FIX_OVERRIDE);
        CHECK(!f->set || (override && !f->unset) ||
              (strchr(f->set, '=') && (!f->unset || f->action == DIAGNOSE_ACT_OTHER_GPU)));
        CHECK(f->action != DIAGNOSE_ACT_ENV || f->set || f->unset);
        CHECK(f->action != DIAGNOSE_ACT_NONE || (!f->set && !f->unset));
    }
}

/* What Windows does not have is in rows for Linux, or in those for a run that cairn watched. */
static void rows_for_any_system_fit_any(void)
{
    static const char words[] =
        "sudo|dmesg|/dev/|/etc/|docker|container|cairn run|cairn doctor|amdgpu|rocminfo|kernel parameter|udev";
    static const enum fix_when watched[] = { FIX_BY_GUARD,  FIX_BY_WATCH,      FIX_STAGE,        FIX_LOADING,
                                             FIX_LIMIT_LOW, FIX_LOADING_STAGE, FIX_LIMIT_UNKNOWN };
    for (const struct issue_fix *f = issue_fixes; f->text; f++) {
        bool exempt = f->os == FIX_ON_LINUX || f->set || f->unset || strstr(f->text, "{cmd_");
        for (size_t i = 0; i < ARRAY_LEN(watched); i++)
            exempt |= f->when == watched[i];
        if (!exempt && match_any(f->text, strlen(f->text), words))
            CHECK_FAIL_("for any system: %s", f->text);
    }
}

/* What a fix sets may be remembered, and is taken from the file again: every name of the table, and no other. */
static void what_a_fix_sets_can_be_remembered(void)
{
    for (const struct issue_fix *f = issue_fixes; f->text; f++) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", f->set ? (int)strcspn(f->set, "=") : 0, f->set ? f->set : "");
        if (name[0] == '{')
            CHECK(!strcmp(name, "{alloc}") || !strcmp(name, "{visible_name}") || !strcmp(name, "{override}"));
        else if (name[0] && strncmp(name, "PYTHON", 6) && !fix_name_is_set(name))
            CHECK_FAIL_("%s is not taken", name);
        for (const char *at = f->unset; at && (at = strchr(at, '{')); at++)
            CHECK(!strncmp(at, "{alloc_names}", 13) || !strncmp(at, "{visible_others}", 16) ||
                  !strncmp(at, "{overrides}", 11));
    }
    CHECK(fix_name_is_set("PYTORCH_HIP_ALLOC_CONF") && fix_name_is_set("ROCR_VISIBLE_DEVICES"));
    CHECK(fix_name_is_unset("HIP_VISIBLE_DEVICES") && fix_name_is_unset("PYTORCH_CUDA_ALLOC_CONF"));
    CHECK(fix_name_is_set("HSA_OVERRIDE_GFX_VERSION_1") && fix_name_is_unset("HSA_OVERRIDE_GFX_VERSION"));
    CHECK(!fix_name_is_set("HSA_OVERRIDE_GFX_VERSION_") && !fix_name_is_set("HSA_OVERRIDE_GFX_VERSION_1A"));
    CHECK(fix_name_is_unset("LD_LIBRARY_PATH") && !fix_name_is_set("LD_LIBRARY_PATH"));
    CHECK(!fix_name_is_set("PATH") && !fix_name_is_set("LD_PRELOAD") && !fix_name_is_set("PYTHONPATH"));
    CHECK(!fix_name_is_set("") && !fix_name_is_unset("") && !fix_name_is_set("HSA_ENABLE"));
}

static const struct issue_rule *const tables[] = {
    issue_rules_device,  issue_rules_fault, issue_rules_memory,
    issue_rules_library, issue_rules_other, issue_rules_not_rocm,
};

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* The same words twice would be two scores, of which the lower one means nothing. */
static bool comes_again(const struct issue_rule *r)
{
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct issue_rule *o = tables[t]; o->text; o++)
            if (o != r && o->issue == r->issue && is_same_text(o->text, r->text) &&
                is_same_text(o->with, r->with) && is_same_text(o->without, r->without))
                return true;
    return false;
}

static void every_row_has_a_source_and_a_score(void)
{
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct issue_rule *r = tables[t]; r->text; r++)
            if (!r->source || !*r->source || r->score < 1 || r->score > 97 || comes_again(r))
                CHECK_FAIL_("the row of \"%s\"", r->text);
    for (const struct issue_noise *n = issue_noises; n->words; n++)
        CHECK(n->source && *n->source);
}

/* Rulings look for these flags among the hard hits of one class, in words that only ROCm uses. */
static void a_flag_stands_where_a_ruling_looks(void)
{
    static const struct {
        enum issue_flags flag;
        enum issue issue;
    } rulings[] = { { RULE_NO_GPU, ISSUE_NO_DEVICE }, { RULE_GPU_GONE, ISSUE_GPU_RESET } };
    for (size_t i = 0; i < ARRAY_LEN(rulings); i++) {
        size_t rows = 0;
        for (size_t t = 0; t < ARRAY_LEN(tables); t++)
            for (const struct issue_rule *r = tables[t]; r->text; r++) {
                if (!(r->flags & rulings[i].flag))
                    continue;
                rows++;
                if (r->issue != rulings[i].issue ||
                    r->flags & (RULE_SOFT | RULE_WARN | RULE_ECHO | RULE_CUDA))
                    CHECK_FAIL_("the row of \"%s\"", r->text);
            }
        CHECK(rows > 0);
    }
}

int main(void)
{
    RUN(a_flag_stands_where_a_ruling_looks);
    RUN(every_row_has_a_source_and_a_score);
    RUN(what_a_fix_sets_can_be_remembered);
    RUN(every_class_is_told);
    RUN(a_rung_changes_one_thing);
    RUN(rows_for_any_system_fit_any);
    return check_done();
}
