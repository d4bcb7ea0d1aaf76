/* SPDX-License-Identifier: Apache-2.0
 * Names of gfx targets: their parts, and their positions inside other text (file names, identifiers of code
 * objects, lists). */
#ifndef CAIRN_CHIP_GFXNAME_H
#define CAIRN_CHIP_GFXNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GFXNAME_MAX = 16 };

/* KFD's decimal number to LLVM's name: 90010 is gfx90a, 110501 is gfx1151 (minor and stepping are hex). */
bool gfxname_from_kfd(uint64_t gfx_target_version, char name[GFXNAME_MAX]);
/* "gfx1151" to major.minor.stepping (11, 5, 1); false for anything that is not such a name. */
bool gfxname_split(const char *name, int *major, int *minor, int *stepping);

/* Length of the whole target name that starts at s ("gfx90a", "gfx1151", "gfx9-4-generic"); 0 if there is
 * none.  Families ("gfx110x", "gfx103X-dgpu") are not targets.  What follows may be "_", "-", ":" or ".". */
size_t gfxname_span(const char *s, size_t n);
/* The first target in a text, with its length; NULL if there is none. */
const char *gfxname_find(const char *s, size_t n, size_t *len);
/* Length of the target at s when a number may be glued to it, as in MIOpen's "gfx90a68" (gfx90a with 0x68
 * compute units): by the major version a target has three or four characters.  0 if there is none. */
size_t gfxname_span_glued(const char *s, size_t n);

#endif
