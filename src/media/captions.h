/* SPDX-License-Identifier: Apache-2.0
 * Captions: a text file beside each picture or clip. */
#ifndef CAIRN_MEDIA_CAPTIONS_H
#define CAIRN_MEDIA_CAPTIONS_H

#include "base/arena.h"
#include <stdbool.h>

enum { CAPTION_MOST_BYTES = 1 << 20 };

enum caption_state {
    CAPTION_OK,
    CAPTION_MISSING,    /* no such file */
    CAPTION_EMPTY,      /* nothing but white space */
    CAPTION_UNREADABLE, /* no permission, too large, not UTF-8, or has a NUL */
};

/* The text of a file without the white space around it.  `text` is the caption, or else why there is none. */
enum caption_state caption_read(const char *path, struct arena *a, const char **text);
/* The text without the white space around it (Unicode's, as Python's strip) and without a byte order mark. */
const char *caption_strip(const char *text, struct arena *a);
/* [trigger] and [name] become the trigger word, which is put first if the caption does not contain it.
 * trigger "" or NULL: both are removed. */
const char *caption_add_trigger(const char *caption, const char *trigger, struct arena *a);

#endif
