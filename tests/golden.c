/* SPDX-License-Identifier: Apache-2.0
 * golden [--device NAME] [--dtype f32|bf16|f16] DIR…: runs every case of golden data below the folders.
 *
 * A case is known by the tensors in its files, never by their names on the disk.  Files with the same metadata
 * "golden" in a folder belong together. */
#include "golden.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct golden_kind *const kinds[] = {
    &golden_gpt,   &golden_adamw, &golden_adamw8, &golden_fp8,  &golden_times, &golden_solver,
    &golden_cache, &golden_lora,  &golden_wan,    &golden_umt5, &golden_vae,
};

struct run {
    struct gpu *g;
    enum gpu_storage storage;
    size_t passed, failed;
};

struct file {
    char *path;
    struct st_file st;
    bool used;
};

/* ---- what cases ask for ---- */

static const struct st_tensor *find(struct golden *c, const struct st_file *f, const char *name)
{
    const struct st_tensor *t = st_find(f, name);
    if (!t)
        cairn_fail(&c->err, CAIRN_EFORMAT, "there is no tensor %s", name);
    return t;
}

float *golden_floats(struct golden *c, const struct st_file *f, const char *name, size_t *n)
{
    const struct st_tensor *t = find(c, f, name);
    if (!t)
        return NULL;
    void *raw = arena_alloc(&c->arena, t->bytes + 1);
    float *out = ARENA_NEW(&c->arena, float, t->elements + 1);
    if (st_read(f, t, 0, t->elements, raw, &c->err))
        return NULL;
    dtype_convert(out, DTYPE_F32, raw, t->dtype, t->elements, &(struct dtype_how){ 0 });
    if (n)
        *n = t->elements;
    return out;
}

uint8_t *golden_bytes(struct golden *c, const struct st_file *f, const char *name, size_t *n)
{
    const struct st_tensor *t = find(c, f, name);
    if (!t)
        return NULL;
    uint8_t *out = arena_alloc(&c->arena, t->bytes + 1);
    if (st_read(f, t, 0, t->elements, out, &c->err))
        return NULL;
    if (n)
        *n = t->bytes;
    return out;
}

int *golden_ints(struct golden *c, const struct st_file *f, const char *name, size_t *n)
{
    size_t bytes;
    int *out = (int *)golden_bytes(c, f, name, &bytes);
    if (out && n)
        *n = bytes / sizeof(int);
    return out;
}

struct json *golden_config(struct golden *c)
{
    const char *text = st_meta_find(c->file, "config");
    struct json *v = NULL;
    if (!text)
        cairn_fail(&c->err, CAIRN_EFORMAT, "there is no metadata \"config\"");
    else if (json_parse(text, strlen(text), &v, &c->err))
        return NULL;
    return v;
}

double golden_share(const struct golden *c, double share)
{
    double least = c->storage == GPU_BF16 ? 0.04 : c->storage == GPU_F16 ? 0.02 : 0;
    if (c->share16 > 0 && c->storage != GPU_F32)
        least = c->share16;
    return share > least ? share : least;
}

void golden_compare(struct golden *c, const char *name, const float *a, const float *b, size_t n,
                    double share, double least)
{
    double error = 0, most = least;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        error = isfinite(d) ? fmax(error, d) : INFINITY;
        most = fmax(most, fabs((double)b[i]));
    }
    double allowed = golden_share(c, share) * most;
    double of_allowed = allowed > 0 ? error / allowed : error > 0 ? INFINITY : 0;
    if (of_allowed < c->worst && c->worst_name[0])
        return;
    c->worst = of_allowed;
    c->worst_error = most > 0 ? error / most : error;
    c->tolerance = golden_share(c, share);
    snprintf(c->worst_name, sizeof(c->worst_name), "%s", name);
}

/* ---- cases in a folder ---- */

static const struct golden_kind *kind_of(const struct st_file *f)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i]->is(f))
            return kinds[i];
    return NULL;
}

static bool belong_together(const struct st_file *a, const struct st_file *b)
{
    const char *x = st_meta_find(a, "golden"), *y = st_meta_find(b, "golden");
    return x && y && !strcmp(x, y);
}

/* A LoRA that goes with a case, rather than its weights. */
static bool is_lora(const struct st_file *f)
{
    return f->n_tensors && strstr(f->tensors[0].name, "lora_");
}

static void run_case(struct run *run, struct file *files, size_t n, size_t which)
{
    struct golden c = { .g = run->g, .storage = run->storage, .file = &files[which].st };
    const struct golden_kind *kind = kind_of(c.file);
    for (size_t i = 0; i < n; i++)
        if (i != which && !kind_of(&files[i].st) && belong_together(&files[i].st, c.file)) {
            *(is_lora(&files[i].st) ? &c.lora : &c.weights) = &files[i].st;
            files[i].used = true;
        }
    c.others = ARENA_NEW(&c.arena, struct golden_other, n);
    for (size_t i = 0; i < n; i++)
        c.others[i] = (struct golden_other){ .file = kind_of(&files[i].st) ? NULL : &files[i].st,
                                             .path = files[i].path };
    c.n_others = n;
    files[which].used = true;
    bool ok = !kind->run(&c) && c.worst <= 1;
    if (c.err.msg[0])
        printf("not ok  %-8s %s: %s\n", kind->name, files[which].path, c.err.msg);
    else
        printf("%s  %-8s %s: worst relative error %.2e of %.2e, %s\n", ok ? "ok    " : "not ok", kind->name,
               files[which].path, c.worst_error, c.tolerance, c.worst_name);
    ok ? run->passed++ : run->failed++;
    for (size_t i = 0; i < n; i++)
        files[i].used |= c.others[i].used;
    arena_release(&c.arena);
}

static void fail(struct run *run, const char *path, const char *why)
{
    printf("not ok  %s: %s\n", path, why);
    run->failed++;
}

static void run_files(struct run *run, struct file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (kind_of(&files[i].st))
            run_case(run, files, n, i);
    for (size_t i = 0; i < n; i++)
        if (!files[i].used)
            fail(run, files[i].path, "no kind of case that is known here");
}

static int is_shown(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void walk(struct run *run, const char *dir)
{
    struct arena arena = { 0 };
    struct dirent **names = NULL;
    struct file *files = NULL;
    size_t n_files = 0;
    int n = scandir(dir, &names, is_shown, alphasort);
    if (n < 0)
        fail(run, dir, "cannot be read");
    for (int i = 0; i < n; i++) {
        char *path = arena_printf(&arena, "%s/%s", dir, names[i]->d_name);
        struct stat st;
        struct cairn_error err = { 0 };
        size_t len = strlen(path);
        free(names[i]);
        if (!stat(path, &st) && S_ISDIR(st.st_mode))
            walk(run, path);
        else if (len > 12 && !strcmp(path + len - 12, ".safetensors")) {
            struct file *f = ARENA_PUSH(&arena, files, n_files);
            f->path = path;
            if (st_open(&f->st, path, &err)) {
                n_files--;
                fail(run, path, err.msg);
            }
        }
    }
    free(names);
    run_files(run, files, n_files);
    for (size_t i = 0; i < n_files; i++)
        st_close(&files[i].st);
    arena_release(&arena);
}

static enum gpu_storage storage_of(const char *name)
{
    return !strcmp(name, "bf16") ? GPU_BF16 : !strcmp(name, "f16") ? GPU_F16 : GPU_F32;
}

int main(int argc, char **argv)
{
    const char *device = "cpu", *dtype = "f32";
    struct run run = { 0 };
    struct cairn_error err = { 0 };
    int i = 1;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2)
        if (!strcmp(argv[i], "--device"))
            device = argv[i + 1];
        else if (!strcmp(argv[i], "--dtype"))
            dtype = argv[i + 1];
        else
            break;
    if (i >= argc || argv[i][0] == '-') {
        fprintf(stderr, "usage: golden [--device NAME] [--dtype f32|bf16|f16] DIR...\n");
        return 2;
    }
    run.storage = storage_of(dtype);
    if (gpu_open(device, &run.g, &err)) {
        fprintf(stderr, "golden: %s\n", err.msg);
        return 3;
    }
    for (; i < argc; i++)
        walk(&run, argv[i]);
    gpu_close(run.g);
    printf("%zu passed, %zu failed\n", run.passed, run.failed);
    return run.failed || !run.passed;
}
