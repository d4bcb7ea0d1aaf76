/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the answers of cairn-media: a result within the limits, or an error that names the file. */
#include "media/helper.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include "os/socket.h"
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_PIXELS = 4096, LARGEST = 1 << 16 };
static const char file[] = "/proc/self/exe"; /* a file that is there; nobody reads it */

static int take(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    (void)ctx;
    (void)err;
    FUZZ_REQUIRE(frame <= 1 && p->channels == 3 && p->width * p->height <= MOST_PIXELS);
    unsigned sum = 0;
    for (size_t i = 0; i < picture_bytes(p); i++)
        sum += p->at[i];
    return sum == 12345 ? -1 : 0;
}

static void ask(const uint8_t *data, size_t size, int probe)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct cairn_error err = { 0 };
    struct media_info info;
    int ends[2];
    if (os_socket_pair(ends) || os_socket_send(ends[1], data, size, -1, 1000))
        abort();
    struct media *m = media_from_socket(ends[0], MOST_PIXELS);
    FUZZ_REQUIRE(m);
    /* The reader has what was sent, and then the end. */
    FUZZ_REQUIRE(!shutdown(ends[1], SHUT_WR));
    if (probe && !media_probe(m, file, &arena, &info, &err))
        FUZZ_REQUIRE(info.frames >= 1 && info.width * info.height <= MOST_PIXELS && info.orientation >= 1 &&
                     info.orientation <= 8);
    else if (!probe && !media_read(m, file, (const size_t[]){ 0, 1 }, 2, take, NULL, &err))
        FUZZ_REQUIRE(!err.msg[0]);
    else
        FUZZ_REQUIRE(strstr(err.msg, file) || !err.msg[0]);
    media_close(m);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > LARGEST)
        return 0;
    ask(data, size, 1);
    ask(data, size, 0);
    return 0;
}
