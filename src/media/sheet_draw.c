/* SPDX-License-Identifier: Apache-2.0 */
#include "media/sheet_draw.h"

#include "base/cleanup.h"
#include "media/resize.h"
#include "media/sheet_font.h"
#include <string.h>

enum { INK = 230 };
_Static_assert(SHEET_LETTER == FONT_WIDTH + 1, "letters are one pixel apart");

static void draw_letter(struct picture *p, size_t x, size_t y, char c, size_t scale)
{
    unsigned char u = (unsigned char)c;
    const uint8_t *columns = font[u >= FONT_FIRST && u <= FONT_LAST ? u - FONT_FIRST : '?' - FONT_FIRST];
    for (size_t i = 0; i < FONT_WIDTH * scale; i++)
        for (size_t j = 0; j < FONT_HEIGHT * scale; j++)
            if (columns[i / scale] >> (j / scale) & 1 && x + i < p->width && y + j < p->height)
                memset(p->at + ((y + j) * p->width + x + i) * 3, INK, 3);
}

void sheet_text(struct picture *sheet, size_t x, size_t y, const char *text, size_t scale, size_t most)
{
    size_t drawn = 0;
    for (; *text && drawn < most; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80)
            continue;
        draw_letter(sheet, x + drawn++ * SHEET_LETTER * scale, y, *text, scale);
    }
}

int sheet_paste(struct picture *sheet, const struct sheet_place *at, const struct picture *p,
                struct cairn_error *err)
{
    CLEANUP(picture_free) struct picture small = { 0 };
    struct picture_fit fit;
    if (picture_fit_plan(&fit, p->width, p->height, at->width, at->height, err) ||
        picture_fit(p, &fit, &small, err))
        return -1;
    for (size_t y = 0; y < small.height && at->y + y < sheet->height; y++)
        memcpy(sheet->at + ((at->y + y) * sheet->width + at->x) * 3, small.at + y * small.width * 3,
               small.width * 3);
    return 0;
}

void sheet_fill(struct picture *sheet, const struct sheet_place *at, int value)
{
    for (size_t y = 0; y < at->height && at->y + y < sheet->height; y++)
        memset(sheet->at + ((at->y + y) * sheet->width + at->x) * 3, value, at->width * 3);
}
