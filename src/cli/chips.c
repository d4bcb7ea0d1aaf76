/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chips.h"

#include "chip/gfx_table.h"
#include "cli/print.h"
#include "rules/reviewed.h"
#include <stdio.h>

static const char *or_dash(const char *s)
{
    return s ? s : "-";
}

/* MI300 exists in both kinds; every other chip has one. */
static const char *kind_of(const struct gfx_chip *c)
{
    const char *kind = gpu_kind_name(c->kind);
    return kind ? kind : "both";
}

void chips_print_table(void)
{
    printf("%s%-8s %-15s %-7s %-10s %-8s %-6s %-4s %-7s %s%s\n", print_color(COLOR_BOLD), "TARGET",
           "CODE NAME", "FAMILY", "KIND", "BF16", "MATRIX", "FP8", "WHEEL", "THEROCK",
           print_color(COLOR_PLAIN));
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++) {
        char wheel[16] = "-";
        if (c->wheel_major)
            snprintf(wheel, sizeof(wheel), "%s%d.%d", c->wheel_rocm7 ? "(7) " : "", c->wheel_major,
                     c->wheel_minor);
        printf("%-8s %-15.15s %-7s %-10s %-8s %-6s %-4s %-7s %s\n", c->gfx, c->codename,
               gfx_family_name(c->family), kind_of(c), c->bf16, or_dash(c->matrix_core), or_dash(c->fp8),
               wheel, or_dash(c->therock));
        printf("         ");
        print_wrapped(stdout, c->products, 9, print_width());
        if (!c->problems)
            continue;
        printf("         %s", print_color(COLOR_YELLOW));
        print_wrapped(stdout, c->problems, 9, print_width());
        printf("%s", print_color(COLOR_PLAIN));
    }
    putchar('\n');
    print_wrapped(
        stdout,
        "WHEEL: the first pytorch.org version that carries it; (7): before 2.10 only built with ROCm >= 7.0.",
        0, print_width());
    print_wrapped(stdout,
                  "THEROCK: AMD's own wheels: ready = released for it, build = built but not qualified.", 0,
                  print_width());
    printf("Reviewed %s.\n", RULES_REVIEWED);
}

void chips_print_markdown(void)
{
    printf(
        "# AMD GPU targets\n\n"
        "Made by `cairn gpu --chips --markdown` from the table that cairn itself uses; reviewed %s.\n\n"
        "Wheel: the first pytorch.org ROCm wheel that carries the target. TheRock: AMD's own wheels (ready: released\n"
        "for it; build: built but not qualified). VGPR: vector registers per compute unit in KiB; code tuned for 384\n"
        "must not run on 256.\n\n"
        "| target | products | code name | family | kind | wave | VGPR | bf16 | matrix unit | fp8 | wheel | TheRock | AMD "
        "support (Linux) |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        RULES_REVIEWED);
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        printf("| %s | %s | %s | %s | %s | %d | %d | %s | %s | %s | %s | %s | %s |\n", c->gfx, c->products,
               c->codename, gfx_family_name(c->family), kind_of(c), c->wave, c->vgpr_kib, c->bf16,
               or_dash(c->matrix_core), or_dash(c->fp8), or_dash(c->wheel), or_dash(c->therock),
               or_dash(c->support));
    printf("\n## Known problems\n\n");
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (c->problems)
            printf("- **%s**: %s\n  Source: %s\n", c->gfx, c->problems, c->source);
}
