/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dataset_print.h"

#include "cli/print.h"
#include "os/path.h"
#include <stdio.h>

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void print_totals(const struct dataset_totals *t)
{
    printf("%zu file%s, %zu item%s, %s%zu usable%s", t->files, plural(t->files), t->items, plural(t->items),
           print_color(t->usable < t->items ? COLOR_YELLOW : COLOR_GREEN), t->usable,
           print_color(COLOR_PLAIN));
    if (t->samples != t->usable)
        printf(", %zu samples per epoch", t->samples);
    putchar('\n');
    if (t->captions_missing)
        printf("%zu file%s without a caption\n", t->captions_missing, plural(t->captions_missing));
    if (t->duplicates)
        printf("%zu duplicate file%s\n", t->duplicates, plural(t->duplicates));
}

static void print_buckets(const struct dataset_totals *t)
{
    if (t->n_buckets)
        printf("\n%-22s %8s\n", "BUCKET", "ITEMS");
    for (size_t i = 0; i < t->n_buckets; i++) {
        const struct dataset_bucket *b = &t->bucket[i];
        char size[64];
        snprintf(size, sizeof(size), "%zu x %zu x %zu", b->width, b->height, b->frames);
        printf("%-22s %8zu\n", size, b->items);
    }
}

static void print_remarks(const struct dataset_item *item)
{
    for (size_t i = 0; i < item->n_notes; i++) {
        fputs("    ", stdout);
        print_wrapped(stdout, item->notes[i], 4, print_width());
    }
}

static void print_item(const struct dataset_item *item)
{
    const struct picture_rect *c = &item->fit.crop;
    char text[128];
    print_cut(stdout, path_name(item->path), 30);
    snprintf(text, sizeof(text), "%zux%zu", item->media.width, item->media.height);
    printf(" %-11s", text);
    snprintf(text, sizeof(text), "%zux%zux%zu", item->bucket.width, item->bucket.height, item->n_frames);
    printf(" %-14s %zu,%zu %zux%zu\n", text, c->x, c->y, c->width, c->height);
    if (item->caption) {
        const char *caption = *item->caption ? item->caption : "(empty caption)";
        int width = print_columns(caption);
        fputs("    ", stdout);
        print_cut(stdout, caption, width < 72 ? width : 72);
        putchar('\n');
    }
    print_remarks(item);
}

static void print_items(const struct dataset *d)
{
    printf("\n%-30s %-11s %-14s %s\n", "FILE", "SIZE", "BUCKET", "CROP");
    for (size_t i = 0; i < dataset_count(d); i++)
        if (!dataset_item(d, i)->problem)
            print_item(dataset_item(d, i));
}

static void print_problems(const struct dataset *d, bool verbose)
{
    enum { SHOWN = 20 };
    size_t n = 0;
    for (size_t i = 0; i < dataset_count(d); i++) {
        const struct dataset_item *item = dataset_item(d, i);
        if (!item->problem)
            continue;
        if (!n)
            printf("\nSKIPPED\n");
        if (n++ >= SHOWN && !verbose)
            continue;
        printf("%s%-10s%s ", print_color(COLOR_YELLOW), dataset_problem_name(item->problem),
               print_color(COLOR_PLAIN));
        print_padded(stdout, item->path, 0);
        fputs("\n    ", stdout);
        print_wrapped(stdout, item->why, 4, print_width());
    }
    if (n > SHOWN && !verbose)
        printf("and %zu more (--verbose lists them)\n", n - SHOWN);
}

void dataset_print(const struct dataset *d, bool verbose)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct dataset_totals t;
    const char *const *notes;
    size_t n = dataset_notes(d, &notes);
    dataset_total(d, &a, &t);
    print_totals(&t);
    for (size_t i = 0; i < n; i++) {
        fputs("note: ", stdout);
        print_wrapped(stdout, notes[i], 6, print_width());
    }
    print_buckets(&t);
    if (verbose)
        print_items(d);
    print_problems(d, verbose);
}
