/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/fix_names.h"

#include "base/str.h"
#include "rules/issue_rules.h"
#include "rules/plan.h"
#include <string.h>

static bool is_allocator(const char *name)
{
    return !strcmp(name, "PYTORCH_ALLOC_CONF") || !strcmp(name, "PYTORCH_HIP_ALLOC_CONF") ||
           !strcmp(name, "PYTORCH_CUDA_ALLOC_CONF");
}

/* An override goes with the GPU selection that it is for. */
static bool is_override_or_selector(const char *name)
{
    return override_is_name(name) || plan_is_selector(name);
}

/* What the keys of issue_fixes stand for, if they are names. */
static const struct {
    const char *key;
    bool (*is)(const char *name);
} keys[] = {
    { "{alloc}", is_allocator },
    { "{alloc_names}", is_allocator },
    { "{visible_name}", plan_is_selector },
    { "{visible_others}", plan_is_selector },
    { FIX_OVERRIDE, is_override_or_selector },
    { "{overrides}", override_is_name },
};

/* Is it the name at the start (n characters) of a table's text? */
static bool is_word(const char *word, size_t n, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strlen(keys[i].key) == n && !memcmp(keys[i].key, word, n))
            return keys[i].is(name);
    return strlen(name) == n && !memcmp(name, word, n);
}

static bool finds_code(const char *name)
{
    return str_starts(name, "LD_") || str_starts(name, "PYTHON") || !strcmp(name, "PATH");
}

bool fix_name_is_set(const char *name)
{
    for (const struct issue_fix *f = issue_fixes; f->text && !finds_code(name); f++)
        if (f->set && is_word(f->set, strcspn(f->set, "="), name))
            return true;
    return false;
}

bool fix_name_is_unset(const char *name)
{
    for (const struct issue_fix *f = issue_fixes; f->text; f++)
        for (const char *at = f->unset; at && *at;) {
            size_t n = strcspn(at, " ");
            if (is_word(at, n, name))
                return true;
            at += n + strspn(at + n, " ");
        }
    return false;
}
