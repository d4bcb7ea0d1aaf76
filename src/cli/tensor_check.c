/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor check: scans files on all cores, judges them, and tells which are damaged. */
#include "cli/tensor_check.h"

#include "base/progress.h"
#include "base/str.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/tensor_commands.h"
#include "tensor/find.h"
#include <stdio.h>
#include <stdlib.h>

/* Larger files are scanned one after the other with all threads, smaller ones side by side. */
enum { LARGE_BYTES = 64 << 20 };

struct wish {
    bool json, verbose, direct;
    int threads;
};

struct job {
    const struct wish *wish;
    const struct found_files *found;
    struct checked_file *checked;
    struct progress progress;
    int not_direct; /* atomic: files whose file system refused */
};

static void keep_tensors(struct checked_file *c, const struct tensor_source *s)
{
    c->tensors = ARENA_NEW(&c->arena, struct st_tensor, s->n_tensors + 1);
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct st_tensor *t = &s->tensors[i];
        uint64_t *shape = ARENA_NEW(&c->arena, uint64_t, t->rank + 1);
        for (int k = 0; k < t->rank; k++)
            shape[k] = t->shape[k];
        c->tensors[i] = *t;
        c->tensors[i].name = arena_strdup(&c->arena, t->name);
        c->tensors[i].dtype_text = arena_strdup(&c->arena, t->dtype_text);
        c->tensors[i].shape = shape;
    }
}

static int scan(struct job *j, struct checked_file *c, const struct tensor_source *s, int threads,
                struct cairn_error *err)
{
    CLEANUP(mem_free) struct scan_stats *stats = calloc(s->n_tensors + 1, sizeof(*stats));
    if (!stats)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to check it", s->path);
    if (scan_source(s, threads, stats, &j->progress, err))
        return -1;
    c->verdicts = ARENA_NEW(&c->arena, struct tensor_verdict, s->n_tensors + 1);
    verdict_judge(s, stats, &c->arena, c->verdicts, &c->verdict);
    if (!c->verdict.damaged && !j->wish->json && !j->wish->verbose)
        return 0;
    keep_tensors(c, s);
    c->stats = ARENA_NEW(&c->arena, struct scan_stats, s->n_tensors + 1);
    for (size_t i = 0; i < s->n_tensors; i++)
        c->stats[i] = stats[i];
    return 0;
}

/* The shards of an index that lies in a folder are files of the folder too: of the index only the header counts. */
static bool is_index(const struct found_file *f)
{
    return !f->named && str_ends(f->path, ".index.json");
}

static int check_source(struct job *j, struct checked_file *c, const struct found_file *f, int threads,
                        struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    if (f->error)
        return cairn_fail(err, CAIRN_EIO, "%s", f->error);
    if (source_open(&s, f->path, err))
        return -1;
    if (j->wish->direct && !source_set_direct(&s))
        __atomic_fetch_add(&j->not_direct, 1, __ATOMIC_RELAXED);
    c->format = s.format;
    c->n_tensors = is_index(f) ? 0 : s.n_tensors;
    for (size_t i = 0; i < c->n_tensors; i++)
        c->data_bytes += s.tensors[i].bytes;
    return is_index(f) ? 0 : scan(j, c, &s, threads, err);
}

static void check_file(struct job *j, size_t i, int threads)
{
    const struct found_file *f = &j->found->file[i];
    struct checked_file *c = &j->checked[i];
    struct cairn_error err = { 0 };
    c->path = f->path;
    c->named = f->named;
    if (check_source(j, c, f, threads, &err)) {
        c->n_tensors = 0;
        verdict_unread(f->path, &err, &c->arena, &c->verdict);
    }
    /* A healthy file that will not be shown needs no memory: there may be a hundred thousand. */
    if (c->verdict.verdict == TENSOR_OK && !c->tensors)
        arena_release(&c->arena);
}

static int check_small(void *context, size_t i, struct cairn_error *err)
{
    struct job *j = context;
    (void)err;
    if (j->found->file[i].bytes < LARGE_BYTES)
        check_file(j, i, 1);
    return 0;
}

static void check_all(struct job *j)
{
    struct cairn_error err;
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->found->n; i++)
        bytes += j->found->file[i].bytes;
    progress_start(&j->progress, stderr, "check", bytes);
    parallel_for(j->found->n, j->wish->threads, check_small, j, &err);
    for (size_t i = 0; i < j->found->n; i++)
        if (j->found->file[i].bytes >= LARGE_BYTES)
            check_file(j, i, j->wish->threads);
    progress_end(&j->progress);
    if (j->not_direct)
        fprintf(stderr, "cairn: %d files were read through the page cache: there is no other way\n",
                j->not_direct);
}

static int report(const struct job *j)
{
    size_t damaged = 0, n = j->found->n;
    for (size_t i = 0; i < n; i++)
        damaged += j->checked[i].verdict.damaged;
    if (j->wish->json)
        print_report(report_tensor_check(j->checked, n));
    else
        check_print_table(j->checked, n, j->wish->verbose);
    return damaged ? EXIT_TROUBLE : EXIT_FINE;
}

static int check_paths(int n, char **paths, const struct wish *w)
{
    struct arena a = { 0 };
    struct found_files found = { 0 };
    for (int i = 0; i < n; i++)
        find_tensor_files(paths[i], &a, &found);
    struct cairn_error err = { 0 };
    struct checked_file *checked = calloc(found.n + 1, sizeof(*checked));
    int code;
    if (!found.n) {
        cairn_fail(&err, CAIRN_EFORMAT, "no tensor files (.safetensors, .pt, .pth) below %s", paths[0]);
        code = print_error(&err);
    } else if (!checked) {
        cairn_fail(&err, CAIRN_ENOMEM, "no memory to check %zu files", found.n);
        code = print_error(&err);
    } else {
        struct job j = { .wish = w, .found = &found, .checked = checked };
        check_all(&j);
        code = report(&j);
    }
    for (size_t i = 0; checked && i < found.n; i++)
        arena_release(&checked[i].arena);
    free(checked);
    arena_release(&a);
    return code;
}

int tensor_check(int argc, char **argv)
{
    struct wish w = { .threads = 0 };
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_FLAG('v', "verbose", &w.verbose, "list every tensor with its statistics"),
        OPT_INT(0, "threads", &w.threads, "N", "use N threads instead of all cores"),
        OPT_FLAG(0, "direct", &w.direct, "read past the page cache (O_DIRECT)"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn tensor check FILE|FOLDER... [options]",
        .about =
            "Reads every number and tells which files are damaged: cut short, NaN, Inf, all zero, half zero, "
            "constant, numbers that cannot be those of a latent or a weight, or a .pth whose bytes do not have "
            "the CRC-32 that it says; and what to do. Numbers of a dtype that cairn does not know are counted as "
            "not looked at. Folders are walked for .safetensors, .pt and .pth. Exit 1 if a file is damaged.",
        .examples = "  cairn tensor check ~/dataset/cache\n"
                    "  cairn tensor check lora.safetensors --verbose\n"
                    "  cairn tensor check . --json | jq -r '.files[] | select(.damaged) | .path'\n",
        .mixed = true,
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (rest == argc)
        return options_error(argv[0], "wants a FILE or FOLDER");
    return check_paths(argc - rest, argv + rest, &w);
}
