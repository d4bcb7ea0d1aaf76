/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a picture file: an upright picture within the limit, or a message. */
#include "media/child/stills.h"

#include "base/cleanup.h"
#include "fuzz.h"

enum { MOST_PIXELS = 1 << 14 };

static void read_it(const struct still_format *f, const uint8_t *data, size_t size, bool header_only)
{
    CLEANUP(image_release) struct image im = { 0 };
    struct cairn_error err = { 0 };
    const struct image_source s = { data, size, header_only, MOST_PIXELS, 1 };
    if (still_read(f, &s, &im, &err)) {
        FUZZ_REQUIRE(err.msg[0] && !im.at);
        return;
    }
    FUZZ_REQUIRE(im.width && im.height && im.width * im.height <= MOST_PIXELS);
    FUZZ_REQUIRE(memchr(im.colour, '\0', sizeof(im.colour)));
    FUZZ_REQUIRE(header_only == !im.at);
    CLEANUP(mem_free) uint8_t *out = malloc(3 * im.width * im.height);
    FUZZ_REQUIRE(out);
    for (int plane = WIRE_RGB; im.at && plane <= WIRE_ALPHA; plane++)
        image_plane(&im, (enum wire_plane)plane, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *bytes = fuzz_text(data, size);
    const struct still_format *f = still_recognise((const uint8_t *)bytes, size);
    if (!f)
        return 0;
    read_it(f, (const uint8_t *)bytes, size, true);
    read_it(f, (const uint8_t *)bytes, size, false);
    return 0;
}
