/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/out.h"

#include "media_config.h"
#include "os/file.h"
#include <errno.h>

const struct out_format out_formats[WIRE_FORMATS] = {
    [WIRE_MP4] = { "MP4", "FFmpeg",
#ifdef HAVE_CLIPS
                   mp4_out
#else
                   NULL
#endif
    },
    [WIRE_JPEG] = { "JPEG", "libjpeg",
#ifdef HAVE_JPEG
                    jpeg_out
#else
                    NULL
#endif
    },
    [WIRE_WEBP] = { "WebP", "libwebp",
#ifdef HAVE_WEBP
                    webp_out
#else
                    NULL
#endif
    },
};

int out_write_all(int fd, const void *bytes, size_t n, struct cairn_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = os_write_at(fd, (const char *)bytes + done, n - done, done);
        if (w <= 0) {
            errno = w ? errno : EIO;
            return cairn_fail_errno(err, "write");
        }
        done += (size_t)w;
    }
    return 0;
}
