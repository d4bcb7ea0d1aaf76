/* SPDX-License-Identifier: Apache-2.0
 * The outside of a 64-bit little-endian ELF file: its header, its sections, the libraries it asks for.
 *
 * Reads headers and names only, never contents.  Every section that is listed lies in the file.  All memory
 * is the arena's. */
#ifndef CAIRN_HOST_ELFFILE_H
#define CAIRN_HOST_ELFFILE_H

#include "base/arena.h"
#include "host/binary.h"

enum { ELF_MACHINE_AMDGPU = 224 };

struct elf_section {
    const char *name;
    uint32_t type, link;
    uint64_t at, size; /* in the file; size 0 for a section without contents */
};

struct elf {
    uint16_t machine;
    uint32_t flags;
    struct elf_section *sections;
    size_t n_sections;
};

/* Does the file start as an ELF file does?  False on a read error, too. */
bool elf_is(const struct binary *b);
/* The header only: machine and flags. */
int elf_read_header(const struct binary *b, struct elf *out, struct cairn_error *err);
int elf_read(const struct binary *b, struct arena *a, struct elf *out, struct cairn_error *err);
/* NULL if there is none of that name. */
const struct elf_section *elf_section(const struct elf *e, const char *name);
/* *out: is there a needed library (DT_NEEDED) whose name starts so? */
int elf_needs(const struct binary *b, const struct elf *e, struct arena *a, const char *start, bool *out,
              struct cairn_error *err);

#endif
