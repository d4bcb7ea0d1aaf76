/* SPDX-License-Identifier: Apache-2.0
 * `cairn cache` and `cairn decode` in which each outside call fails once, in turn.
 *
 * However it goes: an error with a message, a failed item, or success; every file under its final name is whole; no
 * temporary file, descriptor or child is left; and the next run makes the files that an undisturbed one makes.
 *
 *     fault_cache [STRIDE]      every STRIDE-th call only */
#include "base/file.h"
#include "check.h"
#include "encode/decode.h"
#include "media/png_write.h"
#include "os/fault.h"
#include "os/list.h"
#include "start/cache.h"
#include "tree.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { SIDE = 16, MOST_CALLS = 20000, PATIENCE_S = 60 };

static struct tree home;
static int stride = 1;
static volatile int nth; /* the call that fails */

static void ignore(void *context, const char *text)
{
    (void)context;
    (void)text;
}
static void ignore_error(void *context, const struct cairn_error *err)
{
    (void)context;
    (void)err;
}
static const struct message_sink messages = { .say = ignore, .commands = ignore, .error = ignore_error };

/* ---- the dataset and the models ---- */

static void put_picture(const char *name, unsigned seed)
{
    struct picture p;
    struct cairn_error err;
    if (picture_new(&p, SIDE, SIDE, 3, &err))
        exit(99);
    for (size_t i = 0; i < picture_bytes(&p); i++)
        p.at[i] = (uint8_t)((i * 7 + i / SIDE * seed * 31) % 256);
    if (png_write(tree_path(&home, name), &p, &err))
        exit(99);
    picture_free(&p);
}

/* Its pieces are single letters. */
static void put_tokenizer(void)
{
    FILE *f = fopen(tree_path(&home, "tokenizer.json"), "w");
    if (!f)
        exit(99);
    fputs(
        "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Metaspace\", "
        "\"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": \"always\"}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 2, "
        "\"vocab\": [[\"<pad>\", 0], [\"</s>\", 0], [\"<unk>\", 0], [\"\xe2\x96\x81\", -2]",
        f);
    for (char c = 'a'; c <= 'z'; c++)
        fprintf(f, ", [\"%c\", -2]", c);
    fputs("]}}\n", f);
    if (fclose(f))
        exit(99);
}

static void put_dataset(void)
{
    put_picture("media/stone.png", 1);
    put_picture("media/river.png", 2);
    tree_put(&home, "media/stone.txt", "a stone");
    tree_put(&home, "media/river.txt", "a river");
    put_tokenizer();
}

/* ---- one run ---- */

/* An item that was left out is a failure here. */
static int fail_of_items(const struct start_cache *s, struct cairn_error *err)
{
    if (s->result.n_failures)
        return cairn_fail(err, CAIRN_EIO, "%s: %s", s->result.failures[0].path, s->result.failures[0].why);
    for (size_t i = 0; i < dataset_count(s->dataset); i++)
        if (dataset_item(s->dataset, i)->problem)
            return cairn_fail(err, CAIRN_EIO, "%s: %s", dataset_item(s->dataset, i)->path,
                              dataset_item(s->dataset, i)->why);
    return 0;
}

static int run_cache(struct cairn_error *err)
{
    static const char *const set[] = { "data.resolution=16" };
    static const volatile sig_atomic_t never;
    CLEANUP(arena_release) struct arena a = { 0 };
    char *argv[] = { NULL };
    const struct start_cache_options o = {
        .changes = { .set = set, .n_set = ARRAY_LEN(set), .device = "cpu", .steps = -1 },
        .file = arena_printf(&a, "%s/media", home.dir),
        .vae = check_data("golden/vae/vae21_b.weights.safetensors"),
        .text_encoder = check_data("golden/t5/umt5_a.weights_hf.safetensors"),
        .tokenizer = arena_printf(&a, "%s/tokenizer.json", home.dir),
        .dir = arena_printf(&a, "%s/made", home.dir),
        .argv = argv,
        .messages = &messages,
        .stop = &never,
    };
    struct start_cache s;
    int r = start_cache_list(&s, &o, &a, err) || start_cache_run(&s, &o, &a, err) || fail_of_items(&s, err)
                ? -1
                : 0;
    start_cache_close(&s);
    return r;
}

static int run_decode(const char *out, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu *g = NULL;
    struct decoder *d = NULL;
    if (gpu_open("cpu", &g, err))
        return -1;
    const struct decode_options o = {
        .device = { .part = ENCODE_VAE, .g = g, .sink = &messages },
        .vae = check_data("golden/vae/vae21_b.weights.safetensors"),
    };
    int r = decoder_open(&d, &o, err) ||
                    decode_file(d, arena_printf(&a, "%s/latents/stone_0016x0016_wan.safetensors", home.dir),
                                arena_printf(&a, "%s/made/%s", home.dir, out), err)
                ? -1
                : 0;
    decoder_close(d);
    gpu_close(g);
    return r;
}

static int run_decode_png(struct cairn_error *err)
{
    return run_decode("stone.png", err);
}

static int run_decode_mp4(struct cairn_error *err)
{
    return run_decode("stone.mp4", err);
}

/* ---- what a run leaves ---- */

static int open_descriptors(void)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open("/proc/self/fd", 0);
    int n = 0;
    while (l && os_list_next(l))
        n++;
    return n;
}

static bool is_same(const char *one, const char *other)
{
    CLEANUP(mem_free) char *a = NULL;
    CLEANUP(mem_free) char *b = NULL;
    size_t n, m;
    struct cairn_error err;
    return !file_read_whole(one, 1 << 24, &a, &n, &err) && !file_read_whole(other, 1 << 24, &b, &m, &err) &&
           n == m && !memcmp(a, b, n);
}

/* Each file that was made is that of the undisturbed run. */
static int count_whole(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    char **names;
    size_t n = 0;
    if (file_names(arena_printf(&a, "%s/made", home.dir), &a, &names, &n))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!is_same(arena_printf(&a, "%s/made/%s", home.dir, names[i]),
                     arena_printf(&a, "%s/whole/%s", home.dir, names[i])))
            CHECK_FAIL_("call %d: %s is left, and is another", nth, names[i]);
    return (int)n;
}

static void remove_folder(const char *name)
{
    nftw(tree_path(&home, name), tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the loop ---- */

static void say_stuck(int number)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "Bail out! call %d never ended (signal %d)\n", nth, number);
    _exit(write(1, line, (size_t)n) == n ? 1 : 2);
}

/* files: of a run without a failure. */
static bool fails_once(int (*run)(struct cairn_error *), int error, int files)
{
    struct cairn_error err = { 0 };
    tree_path(&home, "made/x"); /* makes the folder */
    alarm(PATIENCE_S);
    fault_arm(nth, error);
    int r = run(&err);
    bool reached = fault_disarm();
    if (r && !err.msg[0])
        CHECK_FAIL_("call %d: an error without a message", nth);
    if (r && !reached)
        CHECK_FAIL_("call %d: %s", nth, err.msg);
    int made = count_whole();
    if (!r && made != files)
        CHECK_FAIL_("call %d: no error, but %d of %d files", nth, made, files);
    return reached;
}

static void every_call_may_fail(int (*run)(struct cairn_error *), int error)
{
    struct cairn_error err = { 0 };
    remove_folder("made");
    remove_folder("whole");
    tree_path(&home, "made/x");
    if (run(&err))
        CHECK_FAIL_("undisturbed: %s", err.msg);
    REQUIRE(!rename(tree_path(&home, "made"), tree_path(&home, "whole")));
    const int files = tree_count(tree_path(&home, "whole")), before = open_descriptors();
    CHECK(files > 0);
    nth = 1;
    for (bool reached = true; reached && nth < MOST_CALLS; nth += stride) {
        reached = fails_once(run, error, files);
        CHECK_INT(open_descriptors(), before);
        CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
        if (run(&err))
            CHECK_FAIL_("after call %d: %s", nth, err.msg);
        CHECK_INT(count_whole(), files);
        remove_folder("made");
    }
    alarm(0);
    printf("# %d calls\n", nth);
    CHECK(nth > 10 && nth < MOST_CALLS);
}

static void caching(void)
{
    every_call_may_fail(run_cache, EIO);
}

static void decoding_to_png(void)
{
    every_call_may_fail(run_decode_png, EIO);
}

static void decoding_to_mp4(void)
{
    every_call_may_fail(run_decode_mp4, ENOSPC);
}

int main(int argc, char **argv)
{
    struct cairn_error err = { 0 };
    stride = argc > 1 ? atoi(argv[1]) : 1;
    if (!getenv("CAIRN_MEDIA")) {
        puts("1..0 # SKIP cairn-media is not built");
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, say_stuck);
    tree_make(&home);
    put_dataset();
    RUN(caching);
    tree_path(&home, "made/x");
    if (run_cache(&err) || rename(tree_path(&home, "made"), tree_path(&home, "latents")))
        return 1;
    RUN(decoding_to_png);
    RUN(decoding_to_mp4);
    tree_remove(&home);
    return check_done();
}
