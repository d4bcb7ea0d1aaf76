/* SPDX-License-Identifier: Apache-2.0 */
#include "media/dataset_sheet.h"

#include "base/int.h"
#include "media/sheet_font.h"
#include "os/path.h"
#include <stdio.h>
#include <string.h>

enum {
    GAP = 8,
    TITLE = 24,
    LABEL = 11,
    CELL_SIDE = 160, /* a thumbnail's longer side */
    INK = 230,
    PAPER = 24,
    MISSING = 96,
};

static void draw_letter(struct picture *p, size_t x, size_t y, char c, size_t scale)
{
    unsigned char u = (unsigned char)c;
    const uint8_t *columns = font[u >= FONT_FIRST && u <= FONT_LAST ? u - FONT_FIRST : '?' - FONT_FIRST];
    for (size_t i = 0; i < FONT_WIDTH * scale; i++)
        for (size_t j = 0; j < FONT_HEIGHT * scale; j++)
            if (columns[i / scale] >> (j / scale) & 1 && x + i < p->width && y + j < p->height)
                memset(p->at + ((y + j) * p->width + x + i) * 3, INK, 3);
}

/* A character of several bytes is one '?'. */
static void draw_text(struct picture *p, size_t x, size_t y, const char *text, size_t scale, size_t most)
{
    size_t drawn = 0;
    for (; *text && drawn < most; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80)
            continue;
        draw_letter(p, x + drawn++ * (FONT_WIDTH + 1) * scale, y, *text, scale);
    }
}

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
    size_t x, y, width, height;
};

static int paste(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    struct thumbnail *t = ctx;
    CLEANUP(picture_free) struct picture small = { 0 };
    struct picture_fit fit;
    (void)frame;
    if (picture_fit_plan(&fit, p->width, p->height, t->width, t->height, err) ||
        picture_fit(p, &fit, &small, err))
        return -1;
    for (size_t y = 0; y < small.height && t->y + y < t->sheet->height; y++)
        memcpy(t->sheet->at + ((t->y + y) * t->sheet->width + t->x) * 3, small.at + y * small.width * 3,
               small.width * 3);
    return 0;
}

static void fill(const struct thumbnail *t, int value)
{
    for (size_t y = 0; y < t->height; y++)
        memset(t->sheet->at + ((t->y + y) * t->sheet->width + t->x) * 3, value, t->width * 3);
}

static void draw_item(struct picture *sheet, const struct layout *l, size_t place,
                      const struct dataset_item *item, struct media *m)
{
    size_t cell = at_least(l->cell_width, 60);
    struct thumbnail t = { sheet, GAP + place % l->columns * (cell + GAP),
                           l->y + TITLE + place / l->columns * (l->cell_height + LABEL + GAP), l->cell_width,
                           l->cell_height };
    struct cairn_error err = { 0 };
    if (dataset_item_read_range(item, 0, 1, m, paste, &t, &err))
        fill(&t, MISSING);
    draw_text(sheet, t.x, t.y + t.height + 2, path_name(item->path), 1, cell / (FONT_WIDTH + 1));
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
    draw_text(sheet, GAP, l->y + 4, title, 2, sheet->width / 12);
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
    memset(out->at, PAPER, picture_bytes(out));
    for (size_t i = 0; i < t.n_buckets; i++) {
        done += draw_bucket(out, d, &t.bucket[i], &l[i], m);
        if (o && o->progress.step)
            o->progress.step(o->progress.context, done, total);
    }
    return 0;
}
