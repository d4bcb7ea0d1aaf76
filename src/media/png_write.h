/* SPDX-License-Identifier: Apache-2.0
 * PNG files, without another process. */
#ifndef CAIRN_MEDIA_PNG_WRITE_H
#define CAIRN_MEDIA_PNG_WRITE_H

#include "base/error.h"
#include "media/picture.h"

/* Writes the picture, 8-bit RGB or grey; replaces a file of that name only when it is complete. */
int png_write(const char *path, const struct picture *p, struct cairn_error *err);

#endif
