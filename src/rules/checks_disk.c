/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"

static struct finding judge_disk(const struct check_ctx *l, const char *what, int64_t fail_gib,
                                 int64_t warn_gib, const char *why)
{
    const struct disk_facts *d = NULL;
    for (size_t i = 0; i < l->facts->n_disks; i++)
        if (str_eq(l->facts->disks[i].what, what))
            d = &l->facts->disks[i];
    if (!d || !d->free_bytes.from)
        return found_unknown(ctx_text(l, "free space for %s files is unknown", what),
                             l->facts->root.live ? "no such directory" : "a captured tree does not show it",
                             NULL);
    const char *fact =
        ctx_text(l, "%s free for %s files in %s", ctx_bytes(l, d->free_bytes.v), what, d->path);
    if (d->free_bytes.v >= warn_gib * GIB)
        return found_ok(l, "%s", fact);
    return found(d->free_bytes.v < fail_gib * GIB ? CHECK_FAIL : CHECK_WARN, fact, why,
                 ctx_text(l, "du -xh --max-depth=2 %s | sort -h | tail", ctx_shell_word(l, d->path)));
}

struct finding check_disk_cache(const struct check_ctx *l)
{
    return judge_disk(
        l, "cache", 1, 10,
        "compiled kernels, MIOpen's database and downloaded models are stored here; a full disk stops a job");
}

struct finding check_disk_work(const struct check_ctx *l)
{
    return judge_disk(
        l, "work", 2, 50,
        "a 14B model takes 28 GB in bf16, and a checkpoint with optimizer state takes several times that");
}
