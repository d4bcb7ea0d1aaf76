/* SPDX-License-Identifier: Apache-2.0
 * Text and thumbnails on a contact sheet, an RGB picture. */
#ifndef CAIRN_MEDIA_SHEET_DRAW_H
#define CAIRN_MEDIA_SHEET_DRAW_H

#include "media/picture.h"

enum {
    SHEET_LETTER = 6 /* pixels from one letter to the next, at scale 1 */,
    SHEET_PAPER = 24,
    SHEET_MISSING = 96
};

/* At most so many letters.  A character of several bytes is one '?'. */
void sheet_text(struct picture *sheet, size_t x, size_t y, const char *text, size_t scale, size_t most);

struct sheet_place {
    size_t x, y, width, height;
};
/* The picture, scaled and cropped to the place. */
int sheet_paste(struct picture *sheet, const struct sheet_place *at, const struct picture *p,
                struct cairn_error *err);
/* Grey, for a picture that cannot be read. */
void sheet_fill(struct picture *sheet, const struct sheet_place *at, int value);

#endif
