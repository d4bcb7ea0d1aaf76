/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a cache of latents and as one of text: what is accepted can be read to the last value. */
#include "video/item.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include <sys/mman.h>
#include <unistd.h>

enum { VALUES_MOST = 1 << 16 };

static void read_part(const struct video_item *item, enum video_part part)
{
    uint64_t n = item->parts[part].values;
    struct cairn_error err = { 0 };
    if (!n || n > VALUES_MOST)
        return;
    CLEANUP(mem_free) float *values = malloc(n * sizeof(*values));
    if (values && video_item_read(item, part, values, &err))
        FUZZ_REQUIRE(err.msg[0] && err.code == CAIRN_EFORMAT);
}

static void open_latents(const char *path)
{
    struct video_item item = { .path = path };
    struct cairn_error err = { 0 };
    if (video_item_open(&item, &(struct video_needs){ 0 }, &err)) {
        FUZZ_REQUIRE(err.msg[0] && err.code != CAIRN_OK);
        return;
    }
    FUZZ_REQUIRE(item.parts[VIDEO_LATENTS].values ==
                 (uint64_t)item.channels * item.frames * item.height * item.width);
    FUZZ_REQUIRE(item.parts[VIDEO_CLIP].values == (uint64_t)item.clip_tokens * item.clip_dim);
    FUZZ_REQUIRE(!video_item_compare_size(&item, &item));
    for (int part = 0; part < VIDEO_TEXT; part++)
        read_part(&item, (enum video_part)part);
}

static void open_text(const char *path)
{
    struct video_item item = { .text_path = path };
    struct cairn_error err = { 0 };
    if (video_item_open_text(&item, &(struct video_needs){ 0 }, &err)) {
        FUZZ_REQUIRE(err.msg[0] && err.code != CAIRN_OK);
        return;
    }
    FUZZ_REQUIRE(item.parts[VIDEO_TEXT].values == (uint64_t)item.text_rows * item.text_dim);
    read_part(&item, VIDEO_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    open_latents(path);
    open_text(path);
    close(fd);
    return 0;
}
