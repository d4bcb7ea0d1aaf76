/* SPDX-License-Identifier: Apache-2.0
 * Offload bundles: how clang packs code objects of several targets into one blob.
 *
 * A region (the section .hip_fatbin, or a whole file) holds bundles one after the other, plain
 * ("__CLANG_OFFLOAD_BUNDLE__") or compressed ("CCOB", zlib or zstd).  The table of targets is at the start of
 * a bundle, so only its first few kilobytes are read or decompressed; the rest is hopped over.
 * https://clang.llvm.org/docs/ClangOffloadBundler.html, clang/lib/Driver/OffloadBundler.cpp. */
#ifndef CAIRN_HOST_BUNDLE_H
#define CAIRN_HOST_BUNDLE_H

#include "base/arena.h"
#include "host/binary.h"
#include "host/facts.h"

/* Decompressing a bundle's start costs some 0.1 ms and a big library has hundreds, nearly all with the same
 * targets.  They are visited in an order that spreads over the whole region, until this many in a row have
 * added nothing. */
enum { BUNDLE_QUIET = 24 };

struct bundle_set {
    struct targets targets; /* features (":xnack-") cut off, in order of appearance */
    bool spirv;             /* also contains portable code that the runtime compiles at load time */
    size_t n_bundles, n_read;
    bool all_found; /* false: the region was not searched to its end, there may be more bundles */
};

/* Does a bundle of either kind start here?  n is how many bytes there are at p. */
bool bundle_is(const void *p, size_t n);
/* Fails if the region contains no bundle, or a damaged one. */
int bundle_scan(const struct binary *b, uint64_t at, uint64_t size, struct arena *a, struct bundle_set *out,
                struct cairn_error *err);

#endif
