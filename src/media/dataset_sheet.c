/* SPDX-License-Identifier: Apache-2.0 */
#include "media/dataset_sheet.h"

#include "base/int.h"
#include "media/sheet_draw.h"
#include "os/path.h"
#include <stdio.h>
#include <string.h>

enum {
    GAP = 8,
    TITLE = 24,
    LABEL = 11,
    CELL_SIDE = 160, /* a thumbnail's longer side */
};

/* ---- the places ---- */

struct layout {
    size_t cell_width, cell_height; /* of a thumbnail */
    size_t columns, rows, shown;
    size_t y; /* of the title */
};

static void place_bucket(struct layout *l, const struct dataset_bucket *b, size_t width, size_t most,
                         size_t *y)
{
    size_t longer = at_least(b->width, b->height);
    l->cell_width = at_least(b->width * CELL_SIDE / longer, 1);
    l->cell_height = at_least(b->height * CELL_SIDE / longer, 1);
    l->columns = at_least((width - GAP) / (at_least(l->cell_width, 60) + GAP), 1);
    l->shown = at_most(b->items, most);
    l->rows = div_up(l->shown, l->columns);
    l->y = *y;
    *y += TITLE + l->rows * (l->cell_height + LABEL + GAP) + GAP;
}

struct thumbnail {
    struct picture *sheet;
    struct sheet_place at;
};

static int paste(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    struct thumbnail *t = ctx;
    (void)frame;
    return sheet_paste(t->sheet, &t->at, p, err);
}

static void draw_item(struct picture *sheet, const struct layout *l, size_t place,
                      const struct dataset_item *item, struct media *m)
{
    size_t cell = at_least(l->cell_width, 60);
    struct thumbnail t = { sheet,
                           { GAP + place % l->columns * (cell + GAP),
                             l->y + TITLE + place / l->columns * (l->cell_height + LABEL + GAP),
                             l->cell_width, l->cell_height } };
    struct cairn_error err = { 0 };
    if (dataset_item_read_range(item, 0, 1, m, paste, &t, &err))
        sheet_fill(sheet, &t.at, SHEET_MISSING);
    sheet_text(sheet, t.at.x, t.at.y + t.at.height + 2, path_name(item->path), 1, cell / SHEET_LETTER);
}

static size_t draw_bucket(struct picture *sheet, const struct dataset *d, const struct dataset_bucket *b,
                          const struct layout *l, struct media *m)
{
    char title[128];
    size_t place = 0;
    int n = snprintf(title, sizeof(title), "%zu x %zu x %zu: %zu item%s", b->width, b->height, b->frames,
                     b->items, b->items == 1 ? "" : "s");
    if (l->shown < b->items)
        snprintf(title + n, sizeof(title) - (size_t)n, ", the first %zu", l->shown);
    sheet_text(sheet, GAP, l->y + 4, title, 2, sheet->width / 12);
    for (size_t i = 0; i < dataset_count(d) && place < l->shown; i++) {
        const struct dataset_item *item = dataset_item(d, i);
        if (!item->problem && item->bucket.width == b->width && item->bucket.height == b->height &&
            item->n_frames == b->frames)
            draw_item(sheet, l, place++, item, m);
    }
    return place;
}

int dataset_sheet(const struct dataset *d, struct media *m, const struct dataset_sheet_options *o,
                  struct picture *out, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct dataset_totals t;
    size_t width = o && o->width ? at_least(o->width, CELL_SIDE + 2 * GAP) : 1280;
    size_t most = o && o->most ? o->most : 60, height = GAP, done = 0, total = 0;
    dataset_total(d, &a, &t);
    if (dataset_check(d, err))
        return -1;
    struct layout *l = ARENA_NEW(&a, struct layout, t.n_buckets);
    for (size_t i = 0; i < t.n_buckets; i++) {
        place_bucket(&l[i], &t.bucket[i], width, most, &height);
        total += l[i].shown;
    }
    if (picture_new(out, width, height, 3, err))
        return -1;
    memset(out->at, SHEET_PAPER, picture_bytes(out));
    for (size_t i = 0; i < t.n_buckets; i++) {
        done += draw_bucket(out, d, &t.bucket[i], &l[i], m);
        if (o && o->progress.step)
            o->progress.step(o->progress.context, done, total);
    }
    return 0;
}
