/* SPDX-License-Identifier: Apache-2.0
 * A folder of pictures as a clip. */
#ifndef CAIRN_MEDIA_FRAME_FOLDER_H
#define CAIRN_MEDIA_FRAME_FOLDER_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>

/* Has this file name the extension of a picture? */
bool frame_folder_is_picture(const char *name);
/* The paths of the pictures in a folder, in byte order of their names.  None is an error. */
int frame_folder_list(const char *folder, struct arena *a, char ***paths, size_t *n, struct cairn_error *err);

#endif
