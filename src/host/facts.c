/* SPDX-License-Identifier: Apache-2.0 */
#include "host/facts.h"

#include "os/fault.h"
#include "base/str.h"
#include "chip/gfxname.h"
#include "host/miopen_cache.h"
#include "host/gpus.h"
#include "host/kernel.h"
#include "host/memory.h"
#include "host/rocm.h"
#include "host/runtimes.h"
#include "host/torch.h"
#include "base/own.h"
#include "os/file.h"
#include <stdarg.h>
#include <string.h>

struct text text_read(const struct root *r, struct arena *a, const char *path)
{
    const char *s = root_read(r, a, path, NULL);
    return s && *s ? (struct text){ s, path } : (struct text){ 0 };
}

void problems_add(struct problems *p, struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *ARENA_PUSH(a, p->text, p->n) = arena_vprintf(a, fmt, ap);
    va_end(ap);
}

bool targets_has(const struct targets *t, const char *gfx)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->name[i], gfx))
            return true;
    return false;
}

void targets_add(struct targets *t, struct arena *a, const char *gfx, size_t len)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strncmp(t->name[i], gfx, len) && !t->name[i][len])
            return;
    *ARENA_PUSH(a, t->name, t->n) = arena_strndup(a, gfx, len);
}

const char *facts_env(const struct facts *f, const char *name)
{
    return str_env(f->env, name);
}

const struct torch_facts *facts_torch(const struct facts *f)
{
    return f->n_torches ? &f->torches[0] : NULL;
}

static void disk_add(struct facts *f, const char *what, const char *path)
{
    struct os_disk disk;
    /* The cache directory may not exist yet; what counts is the file system it will be on. */
    char *probe = arena_strdup(&f->arena, path);
    while (os_disk(probe, &disk)) {
        char *slash = strrchr(probe, '/');
        if (!slash || !probe[1])
            return;
        slash[slash == probe] = '\0'; /* the last one stays */
    }
    struct disk_facts *d = ARENA_PUSH(&f->arena, f->disks, f->n_disks);
    *d = (struct disk_facts){ .path = path, .what = what };
    d->free_bytes = (struct num){ (int64_t)disk.free, probe };
}

/* Sizes of this machine's disks say nothing about a captured tree. */
static void disks_read(struct facts *f)
{
    if (!f->root.live)
        return;
    const char *cache = own_place(PLACE_CACHE, f->env, &f->arena);
    if (cache)
        disk_add(f, "cache", cache);
    disk_add(f, "work", ".");
}

int facts_read(struct facts *f, const struct facts_options *o, struct cairn_error *err)
{
    *f = (struct facts){ .env = o->env, .default_gpu = -1, .still = o->still };
    if (root_open(&f->root, o->root, err))
        return -1;
    int r = 0;
    kernel_read(f);
    memory_read(f);
    if (o->parts & FACTS_HARDWARE)
        gpus_read(f);
    if (o->parts & FACTS_SOFTWARE) {
        disks_read(f);
        miopen_cache_read(f);
        r = torch_find(f, o, err);
        if (!r)
            r = rocm_find(f, o, err);
        if (!r)
            runtimes_find(f);
    }
    if (f->root.live && f->default_gpu >= 0 && f->gpus[f->default_gpu].gfx.s)
        f->has_selftest =
            selftest_record_read(f->gpus[f->default_gpu].gfx.s, f->env, &f->arena, &f->selftest);
    if (r)
        facts_release(f);
    return r;
}

void facts_release(struct facts *f)
{
    root_close(&f->root);
    arena_release(&f->arena);
    *f = (struct facts){ .default_gpu = -1, .root.fd = -1 };
}

int facts_set_gfx(struct facts *f, const char *gfx, struct cairn_error *err)
{
    int major, minor, stepping;
    if (!gfxname_split(gfx, &major, &minor, &stepping)) {
        cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is not a gfx target", gfx);
        return cairn_hint(err, "a name such as gfx1031 or gfx90a; `cairn gpu --chips` lists them");
    }
    if (!f->n_gpus)
        ARENA_PUSH(&f->arena, f->gpus, f->n_gpus);
    struct gpu_facts *g = &f->gpus[f->default_gpu >= 0 ? f->default_gpu : 0];
    bool other = !str_eq(g->gfx.s, gfx);
    g->gfx = (struct text){ arena_strdup(&f->arena, gfx), "--gfx" };
    if (g->hip_index < 0)
        g->hip_index = 0;
    g->rocm_capable = true;
    if (other) {
        g->kind = gfx_kind(gfx, g->device_id.from ? (uint64_t)g->device_id.v : 0);
        g->kind_from = "--gfx";
        if (!g->usable_bytes.from) /* an integrated GPU shares this host's memory */
            memory_judge_gpu(&f->host, &f->arena, g);
    }
    gpus_choose_default(f);
    return 0;
}
