/* SPDX-License-Identifier: Apache-2.0
 * cairn-media: decodes users' pictures and clips, and writes samples, in a process of its own with limits.
 *
 *     cairn-media read|write MEMORY PIXELS SECONDS THREADS   requests on standard input, a socket
 *     cairn-media --formats                                  what it was built with
 *
 * Not for people, but for the last; cairn starts it.  It ends when the other end of the socket is closed. */
#include "media/child/server.h"
#include "media/child/stills.h"
#include "media_config.h"
#ifdef HAVE_CLIPS
#include "media/child/clip.h"
#endif
#include "os/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_formats(void)
{
    for (size_t i = 0; i < still_formats_count; i++)
        printf("%-6s %-10s %s\n", still_formats[i].name, still_formats[i].read ? "yes" : "no",
               still_formats[i].library);
#ifdef HAVE_CLIPS
    const char *encoder = clip_encoder();
    printf("%-6s %-10s %s\n", "clips", "yes", clip_library());
    printf("%-6s %-10s %s\n", "mp4", encoder ? "yes" : "no", encoder ? encoder : "no encoder");
#else
    printf("%-6s %-10s %s\n%-6s %-10s %s\n", "clips", "no", "FFmpeg", "mp4", "no", "FFmpeg");
#endif
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--formats"))
        return print_formats();
    if (argc != 6) {
        fprintf(stderr, "cairn-media is run by cairn, not by hand; try --formats\n");
        return 2;
    }
    bool writes = !strcmp(argv[1], "write");
    const struct server_limits limits = { strtoull(argv[3], NULL, 10), (unsigned)strtoul(argv[4], NULL, 10),
                                          (unsigned)strtoul(argv[5], NULL, 10) };
    /* Descriptors 0 to 2 are in use, and 3 is for the file that comes with a request: nothing else can be
     * opened while it is worked on. */
    const struct os_limits own = { strtoull(argv[2], NULL, 10), writes, 4 };
    if (os_limit_self(&own))
        return 3;
    return server_run(0, &limits);
}
