/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/exif.h"
#include "media/child/stills.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

struct jpeg {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    jmp_buf out;
    uint8_t *icc;
    uint8_t *line; /* of a CMYK picture */
    char why[JMSG_LENGTH_MAX];
};

static void jpeg_end(struct jpeg *j)
{
    jpeg_destroy_decompress(&j->d);
    free(j->icc);
    free(j->line);
}

static void on_error(j_common_ptr d)
{
    struct jpeg *j = d->client_data;
    d->err->format_message(d, j->why);
    longjmp(j->out, 1);
}

/* These leave a part of the picture grey, which nobody wants to train on; other warnings are harmless. */
static void on_message(j_common_ptr d, int level)
{
    int code = d->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        on_error(d);
}

static void find_orientation(struct jpeg *j, struct image *im)
{
    for (jpeg_saved_marker_ptr m = j->d.marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length >= 6 && !memcmp(m->data, "Exif\0", 5)) {
            im->orientation = exif_orientation(m->data, m->data_length);
            return;
        }
}

static void find_colour(struct jpeg *j, struct image *im)
{
    unsigned n = 0;
    JOCTET *profile = NULL;
    if (jpeg_read_icc_profile(&j->d, &profile, &n))
        icc_note(profile, n, im->colour);
    j->icc = profile;
    if (!im->colour[0] && j->d.num_components == 4)
        snprintf(im->colour, sizeof(im->colour), "CMYK without a colour profile, converted as PIL does");
}

/* PIL's arithmetic; the values in the file are inverted, as Adobe writes them. */
static void cmyk_row(const uint8_t *in, uint8_t *out, size_t width)
{
    for (size_t x = 0; x < width; x++, in += 4, out += 3) {
        unsigned light = in[3];
        for (size_t c = 0; c < 3; c++) {
            unsigned t = (255u - in[c]) * light + 128;
            unsigned ink = ((t >> 8) + t) >> 8;
            out[c] = (uint8_t)(ink < light ? light - ink : 0);
        }
    }
}

static int read_rows(struct jpeg *j, struct image *im, struct cairn_error *err)
{
    bool cmyk = j->d.out_color_space == JCS_CMYK;
    if (image_allocate(im, err))
        return -1;
    if (cmyk && !(j->line = malloc(im->width * 4)))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a row of %zu pixels", im->width);
    jpeg_start_decompress(&j->d);
    while (j->d.output_scanline < j->d.output_height) {
        uint8_t *to = im->at + (size_t)j->d.output_scanline * im->width * (size_t)im->channels;
        JSAMPROW row = cmyk ? j->line : to;
        jpeg_read_scanlines(&j->d, &row, 1);
        if (cmyk)
            cmyk_row(j->line, to, im->width);
    }
    jpeg_finish_decompress(&j->d);
    return 0;
}

static int read_jpeg(struct jpeg *j, const struct image_source *s, struct image *im, struct cairn_error *err)
{
    if (setjmp(j->out))
        return cairn_fail(err, CAIRN_EFORMAT, "damaged JPEG file: %s", j->why);
    jpeg_create_decompress(&j->d);
    jpeg_mem_src(&j->d, s->bytes, s->n);
    jpeg_save_markers(&j->d, JPEG_APP0 + 1, 0xffff);
    jpeg_save_markers(&j->d, JPEG_APP0 + 2, 0xffff);
    jpeg_read_header(&j->d, TRUE);
    im->width = j->d.image_width;
    im->height = j->d.image_height;
    im->bits = j->d.data_precision;
    if (image_check_size(im, s, err))
        return -1;
    find_orientation(j, im);
    find_colour(j, im);
    im->channels = j->d.num_components == 1 ? 1 : 3;
    j->d.out_color_space = j->d.num_components == 1   ? JCS_GRAYSCALE
                           : j->d.num_components == 4 ? JCS_CMYK
                                                      : JCS_RGB;
    return s->header_only ? 0 : read_rows(j, im, err);
}

int jpeg_read(const struct image_source *s, struct image *out, struct cairn_error *err)
{
    CLEANUP(jpeg_end) struct jpeg j = { 0 };
    j.d.err = jpeg_std_error(&j.errors);
    j.d.client_data = &j;
    j.errors.error_exit = on_error;
    j.errors.emit_message = on_message;
    return read_jpeg(&j, s, out, err);
}
