/* SPDX-License-Identifier: Apache-2.0
 * JPEG files of one picture, by libjpeg. */
#include "media/child/out.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { QUALITY = 95 };

struct jpeg_file {
    struct out out;
    int fd;
    struct wire_write size;
    bool has_picture;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    char why[JMSG_LENGTH_MAX];
    unsigned char *bytes;
    unsigned long n;
};

static void on_error(j_common_ptr c)
{
    struct jpeg_file *j = c->client_data;
    c->err->format_message(c, j->why);
    longjmp(j->failed, 1);
}

static void close_file(struct out *o)
{
    struct jpeg_file *j = (struct jpeg_file *)o;
    free(j->bytes);
    fd_close(&j->fd);
    free(j);
}

static int compress(struct jpeg_file *j, const uint8_t *rgb, struct cairn_error *err)
{
    size_t row = (size_t)j->size.width * 3;
    j->c.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = on_error;
    j->c.client_data = j;
    if (setjmp(j->failed)) {
        jpeg_destroy_compress(&j->c);
        return cairn_fail(err, CAIRN_EIO, "%s", j->why);
    }
    jpeg_create_compress(&j->c);
    jpeg_mem_dest(&j->c, &j->bytes, &j->n);
    j->c.image_width = (JDIMENSION)j->size.width;
    j->c.image_height = (JDIMENSION)j->size.height;
    j->c.input_components = 3;
    j->c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&j->c);
    jpeg_set_quality(&j->c, QUALITY, TRUE);
    jpeg_start_compress(&j->c, TRUE);
    while (j->c.next_scanline < j->c.image_height) {
        JSAMPROW line = (JSAMPROW)(uintptr_t)(rgb + j->c.next_scanline * row);
        jpeg_write_scanlines(&j->c, &line, 1);
    }
    jpeg_finish_compress(&j->c);
    jpeg_destroy_compress(&j->c);
    return 0;
}

static int add(struct out *o, const uint8_t *rgb, struct cairn_error *err)
{
    struct jpeg_file *j = (struct jpeg_file *)o;
    if (j->has_picture)
        return cairn_fail(err, CAIRN_EUSAGE, "a JPEG file has one frame");
    j->has_picture = true;
    return compress(j, rgb, err);
}

static int finish(struct out *o, struct cairn_error *err)
{
    struct jpeg_file *j = (struct jpeg_file *)o;
    if (!j->has_picture)
        return cairn_fail(err, CAIRN_EUSAGE, "a picture without pixels");
    return out_write_all(j->fd, j->bytes, (size_t)j->n, err);
}

int jpeg_out(struct out **out, int fd, const struct wire_write *w, unsigned threads, struct cairn_error *err)
{
    static const struct out_ops ops = { add, finish, close_file };
    (void)threads;
    if (!w->width || !w->height || w->width > JPEG_MAX_DIMENSION || w->height > JPEG_MAX_DIMENSION)
        return cairn_fail(err, CAIRN_EFORMAT, "a JPEG file of this size cannot be written");
    struct jpeg_file *j = calloc(1, sizeof(*j));
    if (!j)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to write a picture");
    j->out.ops = &ops;
    j->fd = fd;
    j->size = *w;
    *out = &j->out;
    return 0;
}
