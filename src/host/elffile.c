/* SPDX-License-Identifier: Apache-2.0 */
#include "host/elffile.h"

#include <elf.h>
#include <string.h>

/* Real libraries have some 40 sections; more than this is a mistake or an attack. */
enum { SECTIONS_MAX = 16384, NAMES_MAX = 1 << 20, DYNAMIC_MAX = 1 << 16, STRINGS_MAX = 64 << 20 };

bool elf_is(const struct binary *b)
{
    char magic[SELFMAG];
    struct cairn_error unused = { 0 };
    return b->size >= sizeof(magic) && !binary_read(b, 0, magic, sizeof(magic), &unused) &&
           !memcmp(magic, ELFMAG, SELFMAG);
}

static int read_header(const struct binary *b, Elf64_Ehdr *h, struct cairn_error *err)
{
    if (!elf_is(b))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: not an ELF file", b->path);
    if (binary_read(b, 0, h, sizeof(*h), err))
        return -1;
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: not a 64-bit little-endian ELF file", b->path);
    return 0;
}

int elf_read_header(const struct binary *b, struct elf *out, struct cairn_error *err)
{
    Elf64_Ehdr h;
    if (read_header(b, &h, err))
        return -1;
    *out = (struct elf){ .machine = le16(&h.e_machine), .flags = le32(&h.e_flags) };
    return 0;
}

struct table {
    uint64_t at, count, names;
};

/* Where the section headers are.  With many sections the numbers move into section 0. */
static int find_table(const struct binary *b, const Elf64_Ehdr *h, struct table *t, struct cairn_error *err)
{
    *t = (struct table){ le64(&h->e_shoff), le16(&h->e_shnum), le16(&h->e_shstrndx) };
    if (t->at == 0 || le16(&h->e_shentsize) != sizeof(Elf64_Shdr))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: ELF file without section headers", b->path);
    Elf64_Shdr first;
    if (binary_read(b, t->at, &first, sizeof(first), err))
        return -1;
    if (t->count == 0)
        t->count = le64(&first.sh_size);
    if (t->names == SHN_XINDEX)
        t->names = le32(&first.sh_link);
    if (t->count > SECTIONS_MAX || t->names >= t->count)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: ELF section table is invalid", b->path);
    return 0;
}

static int take_section(const struct binary *b, const Elf64_Shdr *raw, const char *names, size_t names_len,
                        struct elf_section *s, struct cairn_error *err)
{
    uint32_t name = le32(&raw->sh_name);
    *s = (struct elf_section){
        .name = name < names_len ? names + name : "",
        .type = le32(&raw->sh_type),
        .link = le32(&raw->sh_link),
        .at = le64(&raw->sh_offset),
        .size = le64(&raw->sh_size),
    };
    if (s->type == SHT_NOBITS || s->type == SHT_NULL)
        s->size = 0;
    else if (!binary_has(b, s->at, s->size))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: section %.40s runs past the end of the file", b->path,
                          s->name);
    return 0;
}

static char *read_names(const struct binary *b, struct arena *a, const Elf64_Shdr *raw, size_t *len,
                        struct cairn_error *err)
{
    uint64_t size = le64(&raw->sh_size);
    if (size > NAMES_MAX) {
        cairn_fail(err, CAIRN_EFORMAT, "%s: ELF section names take %zu bytes", b->path, (size_t)size);
        return NULL;
    }
    char *names = arena_alloc(a, (size_t)size + 1); /* one more, so that the last name ends */
    *len = (size_t)size;
    return binary_read(b, le64(&raw->sh_offset), names, *len, err) ? NULL : names;
}

int elf_read(const struct binary *b, struct arena *a, struct elf *out, struct cairn_error *err)
{
    Elf64_Ehdr h;
    struct table t;
    if (read_header(b, &h, err) || find_table(b, &h, &t, err))
        return -1;
    size_t bytes = (size_t)t.count * sizeof(Elf64_Shdr);
    if (!binary_has(b, t.at, bytes)) /* before memory is taken for it */
        return cairn_fail(err, CAIRN_EFORMAT, "%s: ELF section table runs past the end of the file", b->path);
    Elf64_Shdr *raw = arena_alloc(a, bytes);
    if (binary_read(b, t.at, raw, bytes, err))
        return -1;
    size_t names_len;
    const char *names = read_names(b, a, &raw[t.names], &names_len, err);
    if (!names)
        return -1;
    struct elf e = { .machine = le16(&h.e_machine),
                     .flags = le32(&h.e_flags),
                     .n_sections = (size_t)t.count };
    e.sections = ARENA_NEW(a, struct elf_section, e.n_sections);
    for (size_t i = 0; i < e.n_sections; i++)
        if (take_section(b, &raw[i], names, names_len, &e.sections[i], err))
            return -1;
    *out = e;
    return 0;
}

const struct elf_section *elf_section(const struct elf *e, const char *name)
{
    for (size_t i = 0; i < e->n_sections; i++)
        if (!strcmp(e->sections[i].name, name))
            return &e->sections[i];
    return NULL;
}

static const struct elf_section *section_of_type(const struct elf *e, uint32_t type)
{
    for (size_t i = 0; i < e->n_sections; i++)
        if (e->sections[i].type == type)
            return &e->sections[i];
    return NULL;
}

int elf_needs(const struct binary *b, const struct elf *e, struct arena *a, const char *start, bool *out,
              struct cairn_error *err)
{
    *out = false;
    const struct elf_section *dyn = section_of_type(e, SHT_DYNAMIC);
    if (!dyn || dyn->link >= e->n_sections)
        return 0;
    const struct elf_section *strings = &e->sections[dyn->link];
    if (dyn->size > DYNAMIC_MAX || strings->size > STRINGS_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: ELF dynamic section is invalid", b->path);
    size_t n = (size_t)dyn->size / sizeof(Elf64_Dyn), len = strlen(start);
    Elf64_Dyn *d = arena_alloc(a, n * sizeof(*d) + 1);
    if (binary_read(b, dyn->at, d, n * sizeof(*d), err))
        return -1;
    char name[64];
    for (size_t i = 0; i < n && len < sizeof(name); i++) {
        uint64_t at = le64(&d[i].d_un.d_val);
        if (le64(&d[i].d_tag) != DT_NEEDED || at >= strings->size || strings->size - at < len)
            continue;
        if (binary_read(b, strings->at + at, name, len, err))
            return -1;
        if (!memcmp(name, start, len))
            *out = true;
    }
    return 0;
}
