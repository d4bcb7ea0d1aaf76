/* SPDX-License-Identifier: Apache-2.0 */
#include "run/optimizer.h"

#include "run/resume.h"
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* The 8-bit optimizers of bitsandbytes, and the same rule with 32-bit state out of PyTorch (or the
 * trainer). */
static const struct {
    const char *option, *from, *to;
} rows[] = {
    { "--optimizer_type", "AdamW8bit", "AdamW" },
    { "--optimizer_type", "PagedAdamW8bit", "AdamW" },
    { "--optimizer_type", "PagedAdamW", "AdamW" },
    { "--optimizer_type", "Lion8bit", "Lion" },
    { "--optimizer_type", "PagedLion8bit", "Lion" },
    { "--optimizer_type", "SGDNesterov8bit", "SGDNesterov" },
    { "--optim", "adamw_bnb_8bit", "adamw_torch" },
    { "--optim", "adamw_8bit", "adamw_torch" },
    { "--optim", "paged_adamw_8bit", "adamw_torch" },
    { "--optim", "paged_adamw_32bit", "adamw_torch" },
};

static char **without(char *const *argv, const char *flag, struct arena *a)
{
    char **out = NULL;
    size_t n = 0;
    for (; *argv; argv++)
        if (strcmp(*argv, flag))
            *ARENA_PUSH(a, out, n) = *argv;
    *ARENA_PUSH(a, out, n) = NULL;
    return out;
}

struct optimizer_change optimizer_replace(char *const *argv, struct arena *a)
{
    static const char flag[] = "--use_8bit_adam";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *value = resume_option(argv, rows[i].option);
        if (value && !strcasecmp(value, rows[i].from))
            return (struct optimizer_change){
                .argv = resume_with_option(argv, rows[i].option, rows[i].to, a),
                .text = arena_printf(
                    a, "%s %s instead of %s: its state needs more memory, 8 bytes per trained weight",
                    rows[i].option, rows[i].to, value),
            };
    }
    for (char *const *arg = argv; *arg; arg++)
        if (!strcmp(*arg, flag))
            return (struct optimizer_change){
                .argv = without(argv, flag, a),
                .text = "without --use_8bit_adam: its state needs more memory, 8 bytes per trained weight",
            };
    return (struct optimizer_change){ NULL, NULL };
}
