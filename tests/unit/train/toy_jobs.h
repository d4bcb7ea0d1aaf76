/* SPDX-License-Identifier: Apache-2.0
 * Small jobs of the kind toy (task_toy.h), for tests: trained in this process, and what they leave.  The device is the
 * first argument of the program.  With further arguments it is the process that a test kills:
 *
 *     PROGRAM DEVICE train DIR KEY=VALUE… */
#ifndef CAIRN_TESTS_UNIT_TRAIN_TOY_JOBS_H
#define CAIRN_TESTS_UNIT_TRAIN_TOY_JOBS_H

#include "base/json.h"
#include "check.h"
#include "gpu/gemm_cpu.h"
#include "task_toy.h"
#include "train/job.h"
#include "tree.h"
#include <math.h>

static const char *device;
static struct tree tmp;
static struct cairn_error err;

#define KEYS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define MOST_STEPS 64

static inline bool on_gpu(void)
{
    return strcmp(device, "cpu") != 0;
}

static inline const char *new_dir(void)
{
    static int n;
    static char path[8][128];
    char *out = path[n % 8];
    snprintf(out, sizeof(path[0]), "%s/%d", tmp.dir, n++);
    mkdir(out, 0755);
    return out;
}

/* Of a test that takes more steps on the CPU, which is quicker than the fake HIP. */
static inline int steps_here(int cpu, int gpu)
{
    return on_gpu() ? gpu : cpu;
}

static inline const char *steps_key(int steps)
{
    static char text[4][32];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, sizeof(text[0]), "train.steps=%d", steps);
    return out;
}

/* ---- jobs ---- */

/* f32: the fake HIP emulates matrix cores, slowly. */
static const char *const small[] = {
    "model.kind=toy",     "model.layers=3",
    "model.width=16",     "model.ffn=32",
    "lora.rank=4",        "train.steps=4",
    "train.batch=2",      "train.lr=2e-2",
    "train.warmup=0",     "train.dtype=f32",
    "checkpoint.every=2", "checkpoint.keep=0",
    "eval.every=0",       NULL,
};

static inline void set_keys(struct job_config *c, const char *const *pairs)
{
    for (size_t i = 0; pairs[i]; i++)
        if (config_set_pair(c, pairs[i], &err))
            CHECK_FAIL_("%s: %s", pairs[i], err.msg);
}

struct setup {
    struct arena arena;
    struct job_config config;
    struct train_options o;
    struct job j;
};

static inline void open_setup(struct setup *s, const char *dir, const char *const *pairs)
{
    *s = (struct setup){ 0 };
    config_init(&s->config, &s->arena);
    set_keys(&s->config, small);
    set_keys(&s->config, pairs);
    if (config_check(&s->config, &err))
        CHECK_FAIL_("%s", err.msg);
    s->o = (struct train_options){
        .config = &s->config, .dir = dir, .version = "test", .why_device = "a test", .talk = tmpfile()
    };
    if (gpu_open(device, &s->o.g, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    s->j = (struct job){ .o = &s->o, .c = &s->config };
}

static inline void close_setup(struct setup *s)
{
    job_close(&s->j);
    gpu_close(s->o.g);
    fclose(s->o.talk);
    arena_release(&s->arena);
}

static inline int try_to_train(const char *dir, bool resume, uint64_t budget, const char *const *pairs)
{
    struct setup s;
    enum train_end end;
    open_setup(&s, dir, pairs);
    s.o.resume = resume;
    s.o.budget_bytes = budget;
    err = (struct cairn_error){ 0 };
    int r = train_run(&s.o, &end, &err);
    s.j = (struct job){ 0 };
    close_setup(&s);
    return r;
}

static inline const char *train(const char *const *pairs)
{
    const char *dir = new_dir();
    if (try_to_train(dir, false, 0, pairs))
        CHECK_FAIL_("%s", err.msg);
    return dir;
}

static inline struct train_plan plan(uint64_t budget, const char *const *pairs)
{
    struct setup s;
    struct train_plan p = { 0 };
    open_setup(&s, "", pairs);
    s.o.budget_bytes = budget;
    if (train_plan(&s.o, &p, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK_INT(gpu_allocated(s.o.g).most_bytes, 0); /* nor was any clip prepared */
    s.j = (struct job){ 0 };
    close_setup(&s);
    return p;
}

/* ---- what they leave ---- */

static inline const char *in(const char *dir, const char *name)
{
    static char path[4][512];
    static int turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof(path[0]), "%s/%s", dir, name);
    return out;
}

static inline bool exists(const char *dir, const char *name)
{
    return !access(in(dir, name), F_OK);
}

/* A number of each line of the log that has it. */
static inline size_t logged(const char *dir, const char *key, double out[MOST_STEPS])
{
    FILE *f = fopen(in(dir, "log.jsonl"), "r");
    char line[4096];
    size_t n = 0;
    while (f && fgets(line, sizeof(line), f) && n < MOST_STEPS) {
        CLEANUP(json_cleanup) struct json *v = NULL;
        if (json_parse(line, strlen(line), &v, &err))
            CHECK_FAIL_("%s: %s", dir, err.msg);
        double number = json_number(json_get(v, key), NAN);
        if (!isnan(number))
            out[n++] = number;
    }
    if (f)
        fclose(f);
    return n;
}

static inline double last_logged(const char *dir, const char *key)
{
    double all[MOST_STEPS];
    size_t n = logged(dir, key, all);
    return n ? all[n - 1] : NAN;
}

/* The largest difference between the losses of two runs. */
static inline double far(const char *dir, const char *other)
{
    double a[MOST_STEPS], b[MOST_STEPS], most = 0;
    size_t n = logged(dir, "loss", a), m = logged(other, "loss", b);
    for (size_t i = 0; i < n && i < m; i++)
        most = fabs(a[i] - b[i]) > most ? fabs(a[i] - b[i]) : most;
    return n && n == m ? most : INFINITY;
}

static inline char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    *n = f ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static inline bool same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_all(a, &n), *y = read_all(b, &m);
    bool same = n && n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

/* All numbers of two checkpoints, and the losses on the way to them. */
static inline void check_same_run(const char *dir, const char *other, int step)
{
    char name[64];
    int files = 0;
    snprintf(name, sizeof(name), "checkpoints/step-%d", step);
    DIR *d = opendir(in(dir, name));
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[400];
        snprintf(path, sizeof(path), "%s/%.255s", name, e->d_name);
        if (!strstr(e->d_name, ".safetensors"))
            continue;
        files++;
        if (!same_file(in(dir, path), in(other, path)))
            CHECK_FAIL_("%s/%s differs", dir, path);
    }
    if (d)
        closedir(d);
    CHECK(files >= 2);
    CHECK(far(dir, other) == 0);
}

static inline void check_near(const char *what, double planned, double taken)
{
    if (!(fabs(planned - taken) <= 0.05 * taken))
        CHECK_FAIL_("%s: %.0f planned, %.0f taken", what, planned, taken);
}

/* Runs the tests in a folder of their own. */
static inline int run_in_folder(int argc, char **argv, void (*all)(void))
{
    device = argc > 1 ? argv[1] : "cpu";
    task_add(&task_toy);
    if (argc > 3)
        return try_to_train(argv[3], true, 0, (const char *const *)argv + 4) ? 1 : 0;
    tree_make(&tmp);
    setenv("XDG_CACHE_HOME", tmp.dir, 1);
    setenv("XDG_STATE_HOME", tmp.dir, 1);
    all();
    tree_remove(&tmp);
    return check_done();
}

#endif
