/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/clip.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdio.h>

const char *clip_encoder(void)
{
    static const char *const names[] = { "libx264", "libopenh264", "mpeg4" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (avcodec_find_encoder_by_name(names[i]))
            return names[i];
    return NULL;
}

const char *clip_library(void)
{
    static char text[80];
    unsigned v = avcodec_version();
    snprintf(text, sizeof(text), "FFmpeg (libavcodec %u.%u.%u)", v >> 16, v >> 8 & 255, v & 255);
    return text;
}

void clip_out_close(struct clip_out *c)
{
    (void)c;
}
