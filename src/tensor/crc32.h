/* SPDX-License-Identifier: Apache-2.0
 * CRC-32 as zip archives have it (polynomial 0x04c11db7, reflected), at the speed of memory.
 *
 * There is a plain reference; a variant with carry-less multiplication is chosen at run time and gives the
 * same sums. */
#ifndef CAIRN_TENSOR_CRC32_H
#define CAIRN_TENSOR_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Continues the CRC `crc` with n more bytes; 0 at the start. */
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n);
/* The CRC of two concatenated parts, the second of n bytes. */
uint32_t crc32_join(uint32_t first, uint32_t second, uint64_t n);
/* For tests: the reference. */
uint32_t crc32_add_plain(uint32_t crc, const void *bytes, size_t n);

#endif
