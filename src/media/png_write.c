/* SPDX-License-Identifier: Apache-2.0 */
#include "media/png_write.h"

#include "base/deflate.h"
#include "base/file.h"
#include "base/int.h"
#include <stdlib.h>
#include <string.h>

enum { NONE, SUB, UP, AVERAGE, PAETH, FILTERS };
enum { MOST_CHUNK = 1 << 30, MOST_SIDE = 0x7fffffff, AROUND = 12 /* bytes of a chunk besides its data */ };

static uint8_t paeth(int left, int up, int corner)
{
    int guess = left + up - corner;
    int to_left = abs(guess - left), to_up = abs(guess - up), to_corner = abs(guess - corner);
    return (uint8_t)(to_left <= to_up && to_left <= to_corner ? left : to_up <= to_corner ? up : corner);
}

/* Puts the filtered row into `out` and returns the sum of its differences from 0, which tells how well it
 * will pack.  above is a row of zeros for the first. */
static uint64_t filter_row(int filter, const uint8_t *row, const uint8_t *above, size_t n, size_t pixel,
                           uint8_t *out)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int left = i >= pixel ? row[i - pixel] : 0, up = above[i], corner = i >= pixel ? above[i - pixel] : 0;
        int guess = filter == SUB       ? left
                    : filter == UP      ? up
                    : filter == AVERAGE ? (left + up) / 2
                    : filter == PAETH   ? paeth(left, up, corner)
                                        : 0;
        out[i] = (uint8_t)(row[i] - guess);
        sum += (uint64_t)abs((int8_t)out[i]);
    }
    return sum;
}

/* Each row with the filter that suits it best. */
static int filter_rows(const struct picture *p, uint8_t *out, struct cairn_error *err)
{
    size_t pixel = (size_t)p->channels, n = p->width * pixel;
    CLEANUP(mem_free) uint8_t *zeros = calloc(1, n), *trial = malloc(n);
    if (!zeros || !trial)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a row of %zu pixels", p->width);
    const uint8_t *above = zeros;
    for (size_t y = 0; y < p->height; y++, out += n + 1) {
        const uint8_t *row = p->at + y * n;
        uint64_t best = UINT64_MAX;
        for (int f = NONE; f < FILTERS; f++) {
            uint64_t sum = filter_row(f, row, above, n, pixel, trial);
            if (sum >= best)
                continue;
            best = sum;
            out[0] = (uint8_t)f;
            memcpy(out + 1, trial, n);
        }
        above = row;
    }
    return 0;
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static int write_chunk(struct file_out *f, const char *type, const void *bytes, size_t n, uint64_t *at,
                       struct cairn_error *err)
{
    uint8_t head[8], tail[4];
    put32(head, (uint32_t)n);
    memcpy(head + 4, type, 4);
    put32(tail, deflate_crc(deflate_crc(0, head + 4, 4), bytes, n));
    if (file_out_write(f, head, 8, *at, err) || (n && file_out_write(f, bytes, n, *at + 8, err)) ||
        file_out_write(f, tail, 4, *at + 8 + n, err))
        return -1;
    *at += n + AROUND;
    return 0;
}

int png_write(const char *path, const struct picture *p, struct cairn_error *err)
{
    static const uint8_t signature[8] = "\x89PNG\r\n\x1a\n";
    CLEANUP(file_out_close) struct file_out f = FILE_OUT_NONE;
    CLEANUP(mem_free) void *packed = NULL;
    size_t size = 0, plain = p->height * (p->width * (size_t)p->channels + 1);
    uint8_t head[13] = { [8] = 8, [9] = p->channels == 3 ? 2 : 0 };
    uint64_t at = sizeof(signature);
    if (p->width > MOST_SIDE || p->height > MOST_SIDE)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %zu x %zu pixels are too many for PNG", path, p->width,
                          p->height);
    CLEANUP(mem_free) uint8_t *filtered = malloc(plain);
    if (!filtered)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu x %zu pixels", path, p->width, p->height);
    put32(head, (uint32_t)p->width);
    put32(head + 4, (uint32_t)p->height);
    if (filter_rows(p, filtered, err) || deflate_pack(filtered, plain, &packed, &size, err))
        return cairn_wrap(err, "%s", path);
    uint64_t whole = at + AROUND + sizeof(head) + div_up(size, MOST_CHUNK) * AROUND + size + AROUND;
    if (file_out_open(&f, path, whole, true, err) ||
        file_out_write(&f, signature, sizeof(signature), 0, err) ||
        write_chunk(&f, "IHDR", head, sizeof(head), &at, err))
        return -1;
    for (size_t done = 0; done < size; done += MOST_CHUNK)
        if (write_chunk(&f, "IDAT", (const char *)packed + done, at_most(size - done, MOST_CHUNK), &at, err))
            return -1;
    return write_chunk(&f, "IEND", "", 0, &at, err) || file_out_commit(&f, err) ? -1 : 0;
}
