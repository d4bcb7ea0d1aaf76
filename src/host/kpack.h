/* SPDX-License-Identifier: Apache-2.0
 * Archives of device code that was split off its library (".kpack").
 *
 * "KPAK", a version, and the offset of a table of contents in MessagePack, whose "gfx_arches" lists the
 * targets.  https://github.com/ROCm/rocm-systems, shared/kpack. */
#ifndef CAIRN_HOST_KPACK_H
#define CAIRN_HOST_KPACK_H

#include "base/arena.h"
#include "host/binary.h"
#include "host/facts.h"

bool kpack_is(const void *p, size_t n);
int kpack_read(const struct binary *b, struct arena *a, struct targets *out, struct cairn_error *err);

#endif
