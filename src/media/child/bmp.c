/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/stills.h"

#include <stdlib.h>
#include <string.h>

enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, ALPHA_MASKS = 6 };

struct bmp {
    const uint8_t *bytes, *pixels;
    size_t n, pixels_size;
    size_t width, height;
    bool top_down;
    unsigned bits, compression, colours;
    uint32_t masks[4]; /* red, green, blue, alpha */
    uint8_t palette[256][3];
};

static int damaged(const char *why, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "damaged BMP file: %s", why);
}

static void read_masks(struct bmp *b, const uint8_t *head, size_t head_size)
{
    static const uint32_t five[4] = { 0x7c00, 0x3e0, 0x1f, 0 }, eight[4] = { 0xff0000, 0xff00, 0xff, 0 };
    memcpy(b->masks, b->bits == 16 ? five : eight, sizeof(b->masks));
    if (b->compression != MASKS && b->compression != ALPHA_MASKS)
        return;
    /* In the larger headers, or right behind the small one. */
    size_t count = head_size >= 56 || b->compression == ALPHA_MASKS ? 4 : 3;
    b->masks[3] = 0;
    for (size_t i = 0; i < count; i++)
        if ((size_t)(head - b->bytes) + 40 + 4 * i + 4 <= b->n)
            b->masks[i] = le32(head + 40 + 4 * i);
}

static int read_head(struct bmp *b, struct cairn_error *err)
{
    const uint8_t *head = b->bytes + 14;
    size_t head_size = le32(head), start = le32(b->bytes + 10), entry = head_size == 12 ? 3 : 4;
    if (b->n < 14 + head_size || start > b->n)
        return damaged("it ends early", err);
    int64_t height;
    if (head_size == 12) {
        b->width = le16(head + 4);
        height = (int64_t)le16(head + 6);
        b->bits = le16(head + 10);
    } else {
        int32_t width = (int32_t)le32(head + 4);
        b->width = width > 0 ? (size_t)width : 0;
        height = (int32_t)le32(head + 8);
        b->bits = le16(head + 14);
        b->compression = le32(head + 16);
        b->colours = le32(head + 32);
    }
    b->top_down = height < 0;
    b->height = (size_t)(height < 0 ? -height : height);
    if (b->bits <= 8) {
        size_t most = (size_t)1 << b->bits, at = 14 + head_size;
        size_t count = b->colours && b->colours < most ? b->colours : most;
        if (b->compression == MASKS && head_size == 40)
            at += 12;
        for (size_t i = 0; i < count && at + entry <= b->n; i++, at += entry)
            for (size_t c = 0; c < 3; c++)
                b->palette[i][c] = b->bytes[at + 2 - c];
    } else
        read_masks(b, head, head_size);
    b->pixels = b->bytes + start;
    b->pixels_size = b->n - start;
    return 0;
}

static int check_kind(const struct bmp *b, struct cairn_error *err)
{
    static const struct {
        unsigned bits, compression;
    } kinds[] = { { 1, PLAIN },  { 4, PLAIN },  { 8, PLAIN },        { 16, PLAIN },
                  { 24, PLAIN }, { 32, PLAIN }, { 8, RLE8 },         { 4, RLE4 },
                  { 16, MASKS }, { 32, MASKS }, { 16, ALPHA_MASKS }, { 32, ALPHA_MASKS } };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].bits == b->bits && kinds[i].compression == b->compression)
            return 0;
    return cairn_fail(err, CAIRN_EFORMAT,
                      "a BMP file with %u bits a pixel and compression %u is not supported", b->bits,
                      b->compression);
}

/* The value under a mask as 8 bits. */
static uint8_t masked(uint32_t value, uint32_t mask)
{
    if (!mask)
        return 0;
    int shift = __builtin_ctz(mask);
    uint64_t most = mask >> shift;
    return (uint8_t)(((uint64_t)((value & mask) >> shift) * 255 + most / 2) / most);
}

static void read_row(const struct bmp *b, const uint8_t *in, uint8_t *out, int channels)
{
    for (size_t x = 0; x < b->width; x++, out += channels) {
        if (b->bits == 24) {
            for (size_t c = 0; c < 3; c++)
                out[c] = in[3 * x + 2 - c];
        } else if (b->bits > 8) {
            uint32_t value = b->bits == 16 ? le16(in + 2 * x) : le32(in + 4 * x);
            for (int c = 0; c < channels; c++)
                out[c] = masked(value, b->masks[c]);
        } else {
            size_t bit = x * b->bits;
            unsigned index = in[bit / 8] >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1);
            memcpy(out, b->palette[index], 3);
        }
    }
}

/* Runs of equal pixels, literal runs, and jumps; what nothing sets stays the first colour. */
static int read_runs(const struct bmp *b, struct image *im, struct cairn_error *err)
{
    size_t x = 0, y = 0, at = 0;
    for (size_t i = 0; i < im->width * im->height; i++)
        memcpy(im->at + 3 * i, b->palette[0], 3);
    while (at + 2 <= b->pixels_size) {
        unsigned count = b->pixels[at], value = b->pixels[at + 1];
        bool literal = !count && value > 2;
        at += 2;
        if (!count && value == 1)
            return 0;
        if (!count && value == 0) {
            x = 0;
            y++;
            continue;
        }
        if (!count && value == 2) {
            if (b->pixels_size - at < 2)
                break;
            x += b->pixels[at];
            y += b->pixels[at + 1];
            at += 2;
            continue;
        }
        if (literal)
            count = value;
        size_t bytes = !literal ? 0 : b->bits == 8 ? count : (count + 1) / 2;
        if (b->pixels_size - at < bytes)
            break;
        for (unsigned i = 0; i < count; i++, x++) {
            unsigned pair = literal ? b->pixels[at + (b->bits == 8 ? i : i / 2)] : value;
            unsigned index = b->bits == 8 ? pair : i & 1 ? pair & 15 : pair >> 4;
            size_t row = b->top_down ? y : b->height - 1 - y;
            if (x < b->width && y < b->height)
                memcpy(im->at + 3 * (row * b->width + x), b->palette[index], 3);
        }
        at += bytes + (bytes & 1);
    }
    return damaged("it ends early", err);
}

int bmp_read(const struct image_source *s, struct image *out, struct cairn_error *err)
{
    struct bmp b = { .bytes = s->bytes, .n = s->n };
    if (read_head(&b, err) || check_kind(&b, err))
        return -1;
    out->width = b.width;
    out->height = b.height;
    out->bits = b.bits == 16 ? 5 : 8;
    out->has_alpha = b.bits > 8 && b.masks[3];
    out->channels = out->has_alpha ? 4 : 3;
    if (image_check_size(out, s, err))
        return -1;
    if (s->header_only)
        return 0;
    size_t row = (b.width * b.bits + 31) / 32 * 4;
    bool runs = b.compression == RLE8 || b.compression == RLE4;
    if (!runs && b.pixels_size / row < b.height)
        return damaged("it ends early", err);
    if (image_allocate(out, err))
        return -1;
    if (runs)
        return read_runs(&b, out, err);
    for (size_t y = 0; y < b.height; y++)
        read_row(&b, b.pixels + (b.top_down ? y : b.height - 1 - y) * row,
                 out->at + y * b.width * (size_t)out->channels, out->channels);
    return 0;
}
