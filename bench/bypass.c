/* SPDX-License-Identifier: Apache-2.0
 * Lets the calls of one process go past the library to preload, and through it again, so that both can be timed in turn.
 * Processes of PyTorch differ more from each other than the library could cost.
 *
 * Whoever calls a function of another object finds its address in a slot that the loader has filled.  All slots that
 * hold one of the library's functions are looked for, and get the runtime's own or the library's.  Addresses that were
 * asked for with dlsym are not in such slots and stay as they are.
 *
 * Only while no other thread is about to call: with PyTorch, after a synchronize.  Pages of slots stay writable. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Looks for slots; file names begin so.  How many there are, or -1: one of the two is not loaded. */
int bypass_find(const char *library, const char *runtime);
/* A line an object: its name and how many slots it has. */
const char *bypass_slots(void);
void bypass_on(void);
void bypass_off(void);

enum { MOST_OBJECTS = 2048, MOST_SLOTS = 8192 };

struct object {
    const char *path;
    uintptr_t base;
    const ElfW(Phdr) * parts;
    size_t n_parts;
};
struct slot {
    void **at;
    void *through, *straight;
    const struct object *object;
};
struct relocations {
    const ElfW(Rela) * rows;
    size_t bytes;
};

static struct object objects[MOST_OBJECTS];
static size_t n_objects;
static struct slot slots[MOST_SLOTS];
static size_t n_slots;
static char text[16384];

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    if (n_objects < MOST_OBJECTS)
        objects[n_objects++] =
            (struct object){ info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };
    return 0;
}

static const char *file_of(const struct object *o)
{
    const char *slash = strrchr(o->path, '/');
    return slash ? slash + 1 : o->path;
}

static const struct object *object_named(const char *begin)
{
    for (size_t i = 0; i < n_objects; i++)
        if (!strncmp(file_of(&objects[i]), begin, strlen(begin)))
            return &objects[i];
    return NULL;
}

static bool holds(const struct object *o, const void *p, unsigned flags)
{
    uintptr_t at = (uintptr_t)p - o->base;
    for (size_t i = 0; i < o->n_parts; i++) {
        const ElfW(Phdr) *part = &o->parts[i];
        if (part->p_type == PT_LOAD && (part->p_flags & flags) == flags && at >= part->p_vaddr &&
            at - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

/* What the library shows under that name; NULL: that is not its own. */
static void *function_of(const struct object *library, void *handle, const char *name)
{
    void *p = dlsym(handle, name);
    return p && holds(library, p, PF_X) ? p : NULL;
}

/* --- the slots of an object -------------------------------------------------------------------------------------- */

static const ElfW(Dyn) * dynamic_of(const struct object *o)
{
    for (size_t i = 0; i < o->n_parts; i++)
        if (o->parts[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(o->base + o->parts[i].p_vaddr);
    return NULL;
}

/* The loader of glibc has made addresses of these, others leave them as the file has them. */
static const void *place_of(const struct object *o, const ElfW(Dyn) * d)
{
    return (const void *)(d->d_un.d_ptr < o->base ? o->base + d->d_un.d_ptr : d->d_un.d_ptr);
}

static bool is_slot(unsigned long type)
{
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
}

struct search {
    const struct object *library, *runtime;
    void *library_handle, *runtime_handle;
};

/* A slot that is filled at the first call holds a place of its own object until then. */
static void look_at(const struct search *s, const struct object *o, void **at, bool lazy, const char *name)
{
    if (!holds(o, at, PF_W) || n_slots == MOST_SLOTS)
        return;
    bool ours = holds(s->library, *at, PF_X);
    if (!ours && !(lazy && holds(o, *at, PF_X)))
        return;
    void *through = function_of(s->library, s->library_handle, name);
    void *straight = through ? function_of(s->runtime, s->runtime_handle, name) : NULL;
    if (!straight || (ours && *at != through) || (!ours && *at == straight))
        return;
    slots[n_slots++] = (struct slot){ at, through, straight, o };
}

static void look_through(const struct search *s, const struct object *o)
{
    struct relocations tables[2] = { 0 };
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (const ElfW(Dyn) *d = dynamic_of(o); d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            symbols = place_of(o, d);
        if (d->d_tag == DT_STRTAB)
            names = place_of(o, d);
        if (d->d_tag == DT_RELA)
            tables[0].rows = place_of(o, d);
        if (d->d_tag == DT_RELASZ)
            tables[0].bytes = d->d_un.d_val;
        if (d->d_tag == DT_JMPREL)
            tables[1].rows = place_of(o, d);
        if (d->d_tag == DT_PLTRELSZ)
            tables[1].bytes = d->d_un.d_val;
    }
    for (size_t t = 0; t < 2 && symbols && names; t++) {
        const struct relocations *table = &tables[t];
        for (size_t i = 0; table->rows && i < table->bytes / sizeof(*table->rows); i++) {
            const ElfW(Rela) *r = &table->rows[i];
            if (is_slot(ELF64_R_TYPE(r->r_info)) && ELF64_R_SYM(r->r_info))
                look_at(s, o, (void **)(o->base + r->r_offset), ELF64_R_TYPE(r->r_info) == R_X86_64_JUMP_SLOT,
                        names + symbols[ELF64_R_SYM(r->r_info)].st_name);
        }
    }
}

/* Slots of an object that was bound at once lie on pages that cannot be written any more. */
static bool make_writable(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < n_slots; i++)
        if (mprotect((void *)((uintptr_t)slots[i].at & ~(page - 1)), page, PROT_READ | PROT_WRITE))
            return false;
    return true;
}

/* --- what others call --------------------------------------------------------------------------------------------- */

int bypass_find(const char *library, const char *runtime)
{
    bypass_off(); /* what was found before */
    n_objects = n_slots = 0;
    dl_iterate_phdr(add_object, NULL);
    struct search s = { .library = object_named(library), .runtime = object_named(runtime) };
    s.library_handle = s.library ? dlopen(s.library->path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    s.runtime_handle = s.runtime ? dlopen(s.runtime->path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!s.library_handle || !s.runtime_handle)
        return -1;
    for (size_t i = 0; i < n_objects; i++)
        if (&objects[i] != s.library)
            look_through(&s, &objects[i]);
    if (!make_writable())
        n_slots = 0;
    return (int)n_slots;
}

const char *bypass_slots(void)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0, n = 1; i < n_slots && length < sizeof(text); i++, n++) {
        if (i + 1 < n_slots && slots[i].object == slots[i + 1].object)
            continue;
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, "%s %zu\n", file_of(slots[i].object), n);
        n = 0;
    }
    return text;
}

void bypass_on(void)
{
    for (size_t i = 0; i < n_slots; i++)
        *slots[i].at = slots[i].straight;
}

void bypass_off(void)
{
    for (size_t i = 0; i < n_slots; i++)
        *slots[i].at = slots[i].through;
}
