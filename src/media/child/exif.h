/* SPDX-License-Identifier: Apache-2.0
 * What picture files carry beside the pixels: EXIF's orientation, and the name of an ICC colour profile. */
#ifndef CAIRN_MEDIA_CHILD_EXIF_H
#define CAIRN_MEDIA_CHILD_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* 1-8; 1 also if there is none.  The bytes may begin with "Exif\0\0". */
int exif_orientation(const uint8_t *bytes, size_t n);
/* The note for a profile, empty for sRGB; `out` holds 128 bytes. */
void icc_note(const uint8_t *bytes, size_t n, char out[128]);

#endif
