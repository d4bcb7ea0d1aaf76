/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/exif.h"
#include "media/child/stills.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct png {
    png_structp png;
    png_infop info;
    const uint8_t *at;
    size_t left;
    png_bytepp rows;
    char why[128];
};

static void png_end(struct png *p)
{
    png_destroy_read_struct(&p->png, &p->info, NULL);
    free(p->rows);
}

static void on_error(png_structp png, png_const_charp why)
{
    struct png *p = png_get_error_ptr(png);
    snprintf(p->why, sizeof(p->why), "%s", why);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    struct png *p = png_get_io_ptr(png);
    if (n > p->left)
        png_error(png, "the file ends early");
    memcpy(to, p->at, n);
    p->at += n;
    p->left -= n;
}

/* The chunk may also stand after the pixels. */
static int find_orientation(const uint8_t *at, size_t n)
{
    for (size_t i = 8; n - i >= 12;) {
        size_t size = be32(at + i);
        if (size > n - i - 12)
            return 1;
        if (!memcmp(at + i + 4, "eXIf", 4))
            return exif_orientation(at + i + 8, size);
        i += 12 + size;
    }
    return 1;
}

static void find_colour(struct png *p, struct image *im)
{
    png_charp name;
    png_bytep profile;
    png_uint_32 n;
    int method;
    if (png_get_iCCP(p->png, p->info, &name, &method, &profile, &n))
        icc_note(profile, n, im->colour);
}

/* Asks for 8-bit rows of grey or RGB, with alpha as stored.  16-bit colour loses its low byte, as in PIL;
 * 16-bit grey without alpha keeps both bytes for clip_grey. */
static void set_transforms(struct png *p, struct image *im, int type)
{
    bool trns = png_get_valid(p->png, p->info, PNG_INFO_tRNS);
    bool grey = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA;
    im->has_alpha = trns || type & PNG_COLOR_MASK_ALPHA;
    if (im->bits == 16 && type != PNG_COLOR_TYPE_GRAY)
        png_set_strip_16(p->png);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(p->png);
    if (grey && im->bits < 8)
        png_set_expand_gray_1_2_4_to_8(p->png);
    if (trns && im->bits < 16)
        png_set_tRNS_to_alpha(p->png);
    bool alpha = type & PNG_COLOR_MASK_ALPHA || (trns && im->bits < 16);
    im->channels = (grey ? 1 : 3) + alpha;
}

/* PIL clips 16-bit grey at 255 instead of scaling it; caches made with PIL hold that. */
static void clip_grey(struct image *im, const uint8_t *wide)
{
    for (size_t i = 0; i < im->width * im->height; i++)
        im->at[i] = wide[2 * i] ? 255 : wide[2 * i + 1];
}

static int read_pixels(struct png *p, struct image *im, bool wide, struct cairn_error *err)
{
    struct image stored = *im;
    stored.channels = wide ? 2 : im->channels;
    size_t row = im->width * (size_t)stored.channels;
    p->rows = malloc(im->height * sizeof(*p->rows));
    if (!p->rows)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu rows", im->height);
    if (image_allocate(&stored, err))
        return -1;
    im->at = stored.at;
    for (size_t y = 0; y < im->height; y++)
        p->rows[y] = stored.at + y * row;
    png_read_update_info(p->png, p->info);
    if (png_get_rowbytes(p->png, p->info) != row)
        return cairn_fail(err, CAIRN_EFORMAT, "a kind of PNG that is not known here");
    png_read_image(p->png, p->rows);
    png_read_end(p->png, NULL);
    if (wide)
        clip_grey(im, stored.at);
    return 0;
}

static int read_png(struct png *p, const struct image_source *s, struct image *im, struct cairn_error *err)
{
    if (setjmp(png_jmpbuf(p->png)))
        return cairn_fail(err, CAIRN_EFORMAT, "damaged PNG file: %s", p->why);
    png_set_read_fn(p->png, p, read_bytes);
    png_set_user_limits(p->png, 0x7fffffff, 0x7fffffff); /* image_check_size has the limit */
    png_set_chunk_malloc_max(p->png, 64 << 20);
    png_read_info(p->png, p->info);
    im->width = png_get_image_width(p->png, p->info);
    im->height = png_get_image_height(p->png, p->info);
    im->bits = png_get_bit_depth(p->png, p->info);
    int type = png_get_color_type(p->png, p->info);
    if (image_check_size(im, s, err))
        return -1;
    bool wide = im->bits == 16 && type == PNG_COLOR_TYPE_GRAY;
    find_colour(p, im);
    if (wide && !im->colour[0])
        snprintf(im->colour, sizeof(im->colour), "16-bit grey, clipped at 255 as PIL does");
    set_transforms(p, im, type);
    png_set_interlace_handling(p->png);
    return s->header_only ? 0 : read_pixels(p, im, wide, err);
}

int png_read(const struct image_source *s, struct image *out, struct cairn_error *err)
{
    CLEANUP(png_end) struct png p = { .at = s->bytes, .left = s->n };
    p.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &p, on_error, on_warning);
    p.info = p.png ? png_create_info_struct(p.png) : NULL;
    if (!p.info)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read a PNG file");
    out->orientation = find_orientation(s->bytes, s->n);
    return read_png(&p, s, out, err);
}
