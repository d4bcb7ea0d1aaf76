/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/fix_names.h"

#include "base/str.h"
#include "rules/issue_rules.h"
#include "rules/plan.h"
#include <string.h>

/* What the keys of issue_fixes stand for, where they are names. */
static const struct {
    const char *key, *names[4];
} keys[] = {
    { "{alloc}", { "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF" } },
    { "{alloc_names}", { "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF" } },
    { "{visible_name}", { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES" } },
    { "{visible_others}", { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES" } },
};

/* Is it the name that the first n characters of a table's text stand for? */
static bool is_word(const char *word, size_t n, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strlen(keys[i].key) == n && !memcmp(keys[i].key, word, n)) {
            for (const char *const *known = keys[i].names; *known; known++)
                if (!strcmp(*known, name))
                    return true;
            return false;
        }
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
