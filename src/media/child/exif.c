/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/exif.h"

#include "media/child/image.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

int exif_orientation(const uint8_t *bytes, size_t n)
{
    enum { TAG = 0x0112, SHORT = 3, LONG = 4, ENTRY = 12 };
    if (n >= 6 && !memcmp(bytes, "Exif\0", 5)) {
        bytes += 6;
        n -= 6;
    }
    if (n < 8 || (memcmp(bytes, "II*\0", 4) && memcmp(bytes, "MM\0*", 4)))
        return 1;
    bool little = bytes[0] == 'I';
    uint32_t (*const u16)(const uint8_t *) = little ? le16 : be16;
    uint32_t (*const u32)(const uint8_t *) = little ? le32 : be32;
    size_t at = u32(bytes + 4);
    if (at > n || n - at < 2)
        return 1;
    size_t count = u16(bytes + at), entry = at + 2;
    for (size_t i = 0; i < count && n - entry >= ENTRY; i++, entry += ENTRY) {
        if (u16(bytes + entry) != TAG)
            continue;
        uint32_t type = u16(bytes + entry + 2);
        uint32_t value = type == SHORT ? u16(bytes + entry + 8) : type == LONG ? u32(bytes + entry + 8) : 0;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* ASCII of a profile's description: "desc" of version 2, or the first "mluc" text (UTF-16) of version 4. */
static void read_description(const uint8_t *tag, size_t n, char *out, size_t size)
{
    size_t len = 0;
    if (n >= 12 && !memcmp(tag, "desc", 4)) {
        size_t count = be32(tag + 8);
        for (size_t i = 0; i < count && 12 + i < n && tag[12 + i] && len + 1 < size; i++)
            out[len++] = (char)tag[12 + i];
    } else if (n >= 28 && !memcmp(tag, "mluc", 4)) {
        size_t count = be32(tag + 20), at = be32(tag + 24);
        for (size_t i = 0; i + 1 < count && at < n && n - at > i + 1 && len + 1 < size; i += 2)
            out[len++] = tag[at + i] ? '?' : (char)tag[at + i + 1];
    }
    for (size_t i = 0; i < len; i++)
        if (out[i] < ' ' || out[i] > '~')
            out[i] = '?';
    out[len] = '\0';
}

void icc_note(const uint8_t *bytes, size_t n, char out[128])
{
    enum { HEAD = 128, ROW = 12 };
    char name[80] = "";
    out[0] = '\0';
    if (n < HEAD + 4)
        return;
    size_t count = be32(bytes + HEAD);
    for (size_t i = 0, row = HEAD + 4; i < count && n - row >= ROW; i++, row += ROW) {
        size_t at = be32(bytes + row + 4), size = be32(bytes + row + 8);
        if (!memcmp(bytes + row, "desc", 4) && at <= n && size <= n - at) {
            read_description(bytes + at, size, name, sizeof(name));
            break;
        }
    }
    bool cmyk = !memcmp(bytes + 16, "CMYK", 4);
    if (!cmyk && (!strncasecmp(name, "sRGB", 4) || !strcmp(name, "c2") || !memcmp(bytes + 16, "GRAY", 4)))
        return;
    snprintf(out, 128, "%scolour profile %s, not converted", cmyk ? "CMYK " : "",
             name[0] ? name : "without a name");
}
