/* SPDX-License-Identifier: Apache-2.0 */
#include "text/data.h"
#include "text/tokenizer_train.h"

#include "os/fault.h"
#include "check.h"
#include "base/shuffle.h"
#include "text/tokenizer_parts.h"
#include "tree.h"
#include <errno.h>

static struct cairn_error err;
static struct tree dir;
static struct tokenizer *bytes;

/* ---- the order ---- */

static void permutations_are_whole(void)
{
    static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 16, 17, 100, 255, 1000, 4097 };
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        for (uint64_t key = 0; key < 20; key++) {
            static bool seen[5000];
            uint64_t n = sizes[k];
            memset(seen, 0, sizeof(seen));
            for (uint64_t i = 0; i < n; i++) {
                uint64_t v = shuffle(i, n, shuffle_key(key, 3));
                REQUIRE(v < n && !seen[v]);
                seen[v] = true;
            }
        }
    CHECK(shuffle(7, UINT64_MAX, 5) != shuffle(8, UINT64_MAX, 5));
}

/* Each number comes to each place about as often: chi-square with 63 degrees of freedom is below 130 but once in 10^6. */
static void permutations_look_like_chance(void)
{
    enum { N = 64, KEYS = 6400 };
    static int at[N][N];
    double worst = 0;
    int neighbours = 0;
    for (uint64_t key = 0; key < KEYS; key++)
        for (uint64_t i = 0, before = 0; i < N; i++) {
            uint64_t v = shuffle(i, N, shuffle_key(1, key));
            at[i][v]++;
            neighbours += i && v == before + 1;
            before = v;
        }
    for (int i = 0; i < N; i++) {
        double chi = 0;
        for (int v = 0; v < N; v++)
            chi += (at[i][v] - KEYS / N) * (at[i][v] - KEYS / N) / (double)(KEYS / N);
        worst = chi > worst ? chi : worst;
    }
    CHECK(worst < 140);
    /* In a shuffled row one neighbour in N follows the other. */
    CHECK(neighbours > KEYS * 63 / 64 * 0.9 && neighbours < KEYS * 63 / 64 * 1.1);
}

/* ---- batches ---- */

enum { SEQ = 8 };

static struct data_options options(const char *const *paths, size_t n)
{
    static char cache[80];
    snprintf(cache, sizeof(cache), "%s/cache", dir.dir);
    mkdir(cache, 0755);
    return (struct data_options){
        .paths = paths, .n_paths = n, .cache_dir = cache, .seq = SEQ, .batch = 4, .seed = 1
    };
}

/* A file of 16-bit tokens 0 … n-1. */
static const char *counting(const char *name, size_t n)
{
    uint16_t tokens[4096];
    for (size_t i = 0; i < n; i++)
        tokens[i] = (uint16_t)(i % 256);
    tree_put_bytes(&dir, name, tokens, 2 * n);
    return strdup(tree_path(&dir, name));
}

static struct data *open_one(const char *path, double val_split)
{
    struct data_options o = options(&path, 1);
    struct data *d = NULL;
    o.val_split = val_split;
    err = (struct cairn_error){ 0 };
    if (data_open(&o, bytes, &d, &err))
        printf("# %s\n", err.msg);
    return d;
}

/* 161 tokens: 20 windows and the last target. */
static void every_window_once_an_epoch(void)
{
    CLEANUP(mem_free) const char *path = counting("160.bin", 161);
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0);
    struct data_info info;
    int32_t ids[4 * SEQ], targets[4 * SEQ];
    REQUIRE(d);
    data_info_get(d, &info);
    CHECK_INT(info.windows, 20);
    CHECK_INT(info.val_windows, 0);
    int order[3][20];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        bool seen[20] = { 0 };
        for (uint64_t step = 0; step < 5; step++) {
            CHECK(!data_batch(d, 5 * epoch + step, 0, 4, ids, targets, &err));
            for (int i = 0; i < 4; i++) {
                int w = ids[i * SEQ] / SEQ;
                REQUIRE(ids[i * SEQ] % SEQ == 0 && w < 20 && !seen[w]);
                seen[w] = true;
                order[epoch][4 * step + (uint64_t)i] = w;
                for (int k = 0; k < SEQ; k++)
                    REQUIRE(ids[i * SEQ + k] == w * SEQ + k && targets[i * SEQ + k] == w * SEQ + k + 1);
            }
        }
    }
    CHECK(memcmp(order[0], order[1], sizeof(order[0])) && memcmp(order[1], order[2], sizeof(order[0])));
}

static void micro_batches_do_not_matter(void)
{
    CLEANUP(mem_free) const char *path = counting("m.bin", 200);
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0);
    REQUIRE(d);
    for (uint64_t step = 0; step < 20; step++) {
        int32_t whole[2][4 * SEQ], parts[2][4 * SEQ];
        CHECK(!data_batch(d, step, 0, 4, whole[0], whole[1], &err));
        for (size_t size = 1; size < 4; size *= 2) {
            for (size_t m = 0; m < 4 / size; m++)
                CHECK(!data_batch(d, step, m, size, parts[0] + m * size * SEQ, parts[1] + m * size * SEQ,
                                  &err));
            CHECK(!memcmp(whole, parts, sizeof(whole)));
        }
    }
}

static void the_seed_decides(void)
{
    CLEANUP(mem_free) const char *path = counting("s.bin", 2000);
    int32_t ids[2][4 * SEQ], targets[4 * SEQ];
    for (uint64_t seed = 0; seed < 2; seed++) {
        CLEANUP(data_cleanup) struct data *d = NULL;
        struct data_options o = options(&path, 1);
        o.seed = seed;
        REQUIRE(!data_open(&o, bytes, &d, &err));
        CHECK(!data_batch(d, 0, 0, 4, ids[seed], targets, &err));
    }
    CHECK(memcmp(ids[0], ids[1], sizeof(ids[0])));
}

/* No token is in both. */
static void validation_is_set_aside(void)
{
    CLEANUP(mem_free) const char *path = counting("v.bin", 250);
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0.2);
    struct data_info info;
    int32_t ids[SEQ], targets[SEQ], again[SEQ];
    REQUIRE(d);
    data_info_get(d, &info);
    CHECK_INT(info.tokens, 200);
    CHECK_INT(info.val_tokens, 50);
    CHECK_INT(info.val_windows, 6);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(!data_batch(d, i, 0, 1, ids, targets, &err));
        for (int k = 0; k < SEQ; k++)
            REQUIRE(ids[k] < 200 && targets[k] < 200);
    }
    bool seen[6] = { 0 };
    for (uint64_t i = 0; i < 6; i++) {
        CHECK(!data_val_batch(d, i, 1, ids, targets, &err));
        CHECK(!data_val_batch(d, i + 6, 1, again, targets, &err));
        CHECK(ids[0] >= 200 && !memcmp(ids, again, sizeof(ids)) && !seen[(ids[0] - 200) / SEQ]);
        seen[(ids[0] - 200) / SEQ] = true;
    }
}

static void a_small_share_is_one_window(void)
{
    CLEANUP(mem_free) const char *path = counting("w.bin", 100), *tiny = counting("tiny.bin", 17);
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0.01), *t = open_one(tiny, 0.5);
    struct data_info info;
    REQUIRE(d && t);
    data_info_get(d, &info);
    CHECK_INT(info.val_tokens, SEQ + 1);
    CHECK_INT(info.val_windows, 1);
    data_info_get(t, &info);
    CHECK_INT(info.val_windows, 0);
    CHECK_INT(info.windows, 2);
}

static void a_file_of_its_own_for_validation(void)
{
    CLEANUP(mem_free) const char *path = counting("t.bin", 100), *val = counting("own.bin", 33);
    CLEANUP(data_cleanup) struct data *d = NULL;
    struct data_options o = options(&path, 1);
    struct data_info info;
    o.val_path = val;
    o.val_split = 0.5;
    REQUIRE(!data_open(&o, bytes, &d, &err));
    data_info_get(d, &info);
    CHECK_INT(info.tokens, 100);
    CHECK_INT(info.val_windows, 4);
}

/* Windows go on from one source to the next, and documents end. */
static void sources_make_one_row(void)
{
    const char *paths[3];
    int32_t ids[SEQ], targets[SEQ];
    bool joined = false;
    tree_put(&dir, "one.txt", "abcdef");
    tree_put(&dir, "two.txt", "ghijklm");
    CLEANUP(mem_free) char *one = strdup(tree_path(&dir, "one.txt"));
    CLEANUP(mem_free) char *two = strdup(tree_path(&dir, "two.txt"));
    CLEANUP(mem_free) const char *bin = counting("three.bin", 10);
    paths[0] = one, paths[1] = two, paths[2] = bin;
    CLEANUP(data_cleanup) struct data *d = NULL;
    struct data_options o = options(paths, 3);
    struct data_info info;
    REQUIRE(!data_open(&o, bytes, &d, &err));
    data_info_get(d, &info);
    CHECK_INT(info.tokens, 7 + 8 + 10);
    CHECK_INT(info.windows, 3);
    CHECK_INT(info.made, 2);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK(!data_batch(d, i, 0, 1, ids, targets, &err));
        if (ids[0] != 'a')
            continue;
        joined = true;
        CHECK(ids[5] == 'f' && ids[6] == 0 && ids[7] == 'g' && targets[7] == 'h' && targets[5] == 0);
    }
    CHECK(joined);
}

/* ---- the cache ---- */

static char *only_file(const char *folder)
{
    static char path[400];
    DIR *d = opendir(folder);
    path[0] = '\0';
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
    if (d)
        closedir(d);
    return path;
}

/* Opens a text with a cache folder of its own; says how many sources were tokenized. */
static int made_now(const char *path, const char *cache, const struct tokenizer *t)
{
    CLEANUP(data_cleanup) struct data *d = NULL;
    struct data_options o = options(&path, 1);
    struct data_info info;
    o.cache_dir = cache;
    if (data_open(&o, t, &d, &err))
        return -1;
    data_info_get(d, &info);
    return (int)info.made;
}

static void tokens_are_kept(void)
{
    CLEANUP(mem_free) char *cache = strdup(tree_path(&dir, "kept/x"));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "kept.txt"));
    *strrchr(cache, '/') = '\0';
    tree_put(&dir, "kept.txt", "a text that is long enough for a window or two");
    CHECK_INT(made_now(path, cache, bytes), 1);
    CHECK_INT(made_now(path, cache, bytes), 0);
    CHECK_INT(tree_count(cache), 1);
    /* A byte of the file is turned; then it is cut short; then it is something else. */
    CLEANUP(mem_free) char *file = strdup(only_file(cache));
    FILE *f = fopen(file, "r+");
    REQUIRE(f && !fseek(f, 80, SEEK_SET) && fputc('!', f) == '!' && !fclose(f));
    CHECK_INT(made_now(path, cache, bytes), 1);
    CHECK_INT(truncate(file, 90), 0);
    CHECK_INT(made_now(path, cache, bytes), 1);
    CHECK_INT(truncate(file, 0), 0);
    CHECK_INT(made_now(path, cache, bytes), 1);
    CHECK_INT(made_now(path, cache, bytes), 0);
    CHECK_INT(tree_count(cache), 1);
    tree_put(&dir, "kept.txt", "a text that is long enough for a window or TWO");
    CHECK_INT(made_now(path, cache, bytes), 1);
    CHECK_INT(tree_count(cache), 2);
}

static void another_tokenizer_has_its_own_tokens(void)
{
    CLEANUP(mem_free) char *cache = strdup(tree_path(&dir, "other/x"));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "other.txt"));
    CLEANUP(tokenizer_cleanup) struct tokenizer *bpe = NULL;
    const char *paths = path;
    *strrchr(cache, '/') = '\0';
    tree_put(&dir, "other.txt", "a stone on a stone on a stone on a stone on a stone, and one more stone");
    struct data_options o = options(&paths, 1);
    REQUIRE(!data_train_tokenizer(&o, 262, &bpe, &err));
    CHECK_INT(tokenizer_vocab(bpe), 262);
    CHECK_INT(made_now(path, cache, bytes), 1);
    CHECK_INT(made_now(path, cache, bpe), 1);
    CHECK_INT(made_now(path, cache, bpe), 0);
    CHECK_INT(tree_count(cache), 2);
}

/* By a signal, in whatever it does. */
static void a_stop_ends_it(void)
{
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "stopped.txt"));
    CLEANUP(word_counts_cleanup) struct word_counts *w = word_counts_new();
    const volatile sig_atomic_t stop = SIGINT;
    const char *paths = path;
    struct tokenizer *t = NULL;
    struct data *d = NULL;
    tree_put(&dir, "stopped.txt", "a text that is long enough for a window or two");
    struct data_options o = options(&paths, 1);
    o.stop = &stop;
    REQUIRE(data_open(&o, bytes, &d, &err));
    CHECK_STR(err.msg, "interrupted");
    REQUIRE(data_train_tokenizer(&o, 262, &t, &err));
    CHECK_STR(err.msg, "interrupted");
    REQUIRE(!word_counts_add(w, "stone on stone", 14, &err));
    REQUIRE(tokenizer_train(w, 262, &stop, &t, &err));
    CHECK_STR(err.msg, "interrupted");
    err = (struct cairn_error){ 0 };
}

/* Each outside call fails once: an error that says so, and no half file. */
static void faults(void)
{
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "fault/text/a.txt"));
    CLEANUP(mem_free) char *cache = strdup(tree_path(&dir, "faultcache/x"));
    tree_put(&dir, "fault/text/a.txt", "a text that is long enough for a window or two");
    *strrchr(cache, '/') = *strrchr(path, '/') = '\0';
    int nth = 1;
    for (;; nth++) {
        err = (struct cairn_error){ 0 };
        fault_arm(nth, ENOSPC);
        int made = made_now(path, cache, bytes);
        if (!fault_disarm()) {
            CHECK(made >= 0);
            break;
        }
        CHECK(made >= 0 || err.msg[0]);
        CHECK(tree_count(cache) <= 1);
        if (tree_count(cache))
            CHECK(str_ends(only_file(cache), ".tokens") && !unlink(only_file(cache)));
    }
    CHECK(nth > 10);
}

static void a_full_disk_is_said(void)
{
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "full.txt"));
    CLEANUP(mem_free) char *cache = strdup(tree_path(&dir, "full/x"));
    bool said = false;
    *strrchr(cache, '/') = '\0';
    tree_put(&dir, "full.txt", "a text that is long enough for a window or two");
    for (int nth = 1; nth < 30 && !said; nth++) {
        fault_arm(nth, ENOSPC);
        int made = made_now(path, cache, bytes);
        fault_disarm();
        said = made < 0 && strstr(err.msg, "write ") && strstr(err.msg, "No space left") &&
               strstr(err.hint, "XDG_CACHE_HOME");
        CHECK(made < 0 || !tree_count(cache) || !unlink(only_file(cache)));
        CHECK(!said || !tree_count(cache));
    }
    CHECK(said);
}

static void the_cache_of_the_user(void)
{
    CLEANUP(mem_free) char *home = strdup(tree_path(&dir, "home/x"));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "user.txt"));
    *strrchr(home, '/') = '\0';
    tree_put(&dir, "user.txt", "a text that is long enough");
    setenv("XDG_CACHE_HOME", home, 1);
    CHECK_INT(made_now(path, NULL, bytes), 1);
    CHECK_INT(tree_count(tree_path(&dir, "home/cairn/tokens")), 1);
    unsetenv("XDG_CACHE_HOME");
    CLEANUP(mem_free) char *own = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    CHECK_INT(made_now(path, NULL, bytes), 1); /* without a folder, for this process alone */
    CHECK_INT(made_now(path, NULL, bytes), 1);
    if (own)
        setenv("HOME", own, 1);
}

/* ---- .bin ---- */

static void the_head_of_llm_c(void)
{
    struct {
        int32_t head[256];
        uint16_t tokens[20];
    } file = { .head = { 20240520, 1, 20 } };
    for (int i = 0; i < 20; i++)
        file.tokens[i] = (uint16_t)(100 + i);
    tree_put_bytes(&dir, "llmc.bin", &file, sizeof(file));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "llmc.bin"));
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0);
    struct data_info info;
    int32_t ids[SEQ], targets[SEQ];
    REQUIRE(d);
    data_info_get(d, &info);
    CHECK_INT(info.tokens, 20);
    CHECK(!data_batch(d, 0, 0, 1, ids, targets, &err));
    CHECK(ids[0] >= 100 && ids[1] == ids[0] + 1);
    tree_put_bytes(&dir, "llmc.bin", &file, sizeof(file) - 2);
    CHECK(!open_one(path, 0));
    CHECK_HAS(err.msg, "says 20 tokens, but it has 19");
}

static void the_head_of_llm_c_with_wide_tokens(void)
{
    struct {
        int32_t head[256];
        uint32_t tokens[20];
    } file = { .head = { 20240801, 7, 20 } };
    for (uint32_t i = 0; i < 20; i++)
        file.tokens[i] = 200 + i;
    tree_put_bytes(&dir, "wide.bin", &file, sizeof(file));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "wide.bin"));
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0);
    int32_t ids[SEQ], targets[SEQ];
    REQUIRE(d);
    CHECK(!data_batch(d, 0, 0, 1, ids, targets, &err));
    CHECK(ids[0] >= 200 && targets[0] == ids[0] + 1);
}

static void ids_beyond_the_vocabulary(void)
{
    uint16_t tokens[40] = { [17] = 256 };
    tree_put_bytes(&dir, "far.bin", tokens, sizeof(tokens));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "far.bin"));
    CHECK(!open_one(path, 0));
    CHECK_HAS(err.msg, "far.bin: token 17 has the id 256");
    CHECK_HAS(err.hint, "data.tokenizer");
    tree_put_bytes(&dir, "odd.bin", tokens, 7);
    CLEANUP(mem_free) char *odd = strdup(tree_path(&dir, "odd.bin"));
    CHECK(!open_one(odd, 0));
    CHECK_HAS(err.msg, "7 bytes");
}

static void a_file_that_is_cut_meanwhile(void)
{
    uint16_t tokens[4000] = { 0 };
    tree_put_bytes(&dir, "live.bin", tokens, sizeof(tokens));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "live.bin"));
    CLEANUP(data_cleanup) struct data *d = open_one(path, 0);
    int32_t ids[SEQ], targets[SEQ];
    REQUIRE(d);
    CHECK(!data_batch(d, 0, 0, 1, ids, targets, &err));
    CHECK(!truncate(path, 4));
    CHECK(data_batch(d, 0, 0, 1, ids, targets, &err) == -1);
    CHECK_HAS(err.msg, "live.bin is truncated");
}

/* ---- what is refused ---- */

static void too_short_a_text(void)
{
    tree_put(&dir, "short.txt", "abcde");
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "short.txt"));
    CHECK(!open_one(path, 0.05));
    CHECK_HAS(err.msg, "short.txt: 6 tokens");
    CHECK_HAS(err.hint, "train.seq");
}

static void a_folder_without_text(void)
{
    tree_put_bytes(&dir, "pictures/a.png", "\x89PNG\0", 5);
    tree_put(&dir, "pictures/b", "");
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "pictures"));
    CHECK(!open_one(path, 0));
    CHECK_HAS(err.msg, "2 files skipped");
}

/* What the tokenizer refuses is said of the file. */
static void the_tokenizer_refuses(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *nfc = NULL;
    CLEANUP(str_release) struct str json = { 0 };
    static const char none[] = "\"normalizer\":null";
    const char *at = strstr(bytes->json.s, none);
    REQUIRE(at);
    str_addn(&json, bytes->json.s, (size_t)(at - bytes->json.s));
    str_add(&json, "\"normalizer\":{\"type\":\"NFC\"}");
    str_add(&json, at + sizeof(none) - 1);
    REQUIRE(!tokenizer_parse("nfc", json.s, json.len, &nfc, &err));
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "open.txt"));
    CLEANUP(mem_free) char *cache = strdup(tree_path(&dir, "nfccache/x"));
    *strrchr(cache, '/') = '\0';
    tree_put(&dir, "open.txt", "cafe\xcc\x81 and more of it");
    CHECK_INT(made_now(path, cache, nfc), -1);
    CHECK_HAS(err.msg, "open.txt: ");
    CHECK_HAS(err.hint, "uconv");
    CHECK_INT(tree_count(cache), 0);
}

static void lines_of_json_are_documents(void)
{
    tree_put(&dir, "x.jsonl", "{\"body\":\"abcd\"}\n{\"body\":\"efgh\"}\n");
    CLEANUP(mem_free) char *path = strdup(tree_path(&dir, "x.jsonl"));
    CLEANUP(data_cleanup) struct data *d = NULL;
    const char *paths = path;
    struct data_options o = options(&paths, 1);
    int32_t ids[SEQ], targets[SEQ];
    CHECK(data_open(&o, bytes, &d, &err) == -1);
    CHECK_HAS(err.msg, "x.jsonl:1: no key \"text\"");
    o.text_key = "body";
    REQUIRE(!data_open(&o, bytes, &d, &err));
    CHECK(!data_batch(d, 0, 0, 1, ids, targets, &err));
    CHECK(ids[0] == 'a' && ids[4] == 0 && ids[5] == 'e' && targets[7] == 'h');
}

static void options_that_make_no_sense(void)
{
    CLEANUP(data_cleanup) struct data *d = NULL;
    struct data_options o = options(NULL, 0);
    CHECK(data_open(&o, bytes, &d, &err) == -1);
    CHECK_HAS(err.msg, "data.path is empty");
    const char *path = "x";
    o = options(&path, 1);
    o.val_split = 1;
    CHECK(data_open(&o, bytes, &d, &err) == -1);
    CHECK_HAS(err.msg, "val_split");
    o = options(&path, 1);
    o.seq = 0;
    CHECK(data_open(&o, bytes, &d, &err) == -1);
}

int main(void)
{
    tree_make(&dir);
    if (tokenizer_new_bytes(&bytes, &err))
        return 99;
    RUN(permutations_are_whole);
    RUN(permutations_look_like_chance);
    RUN(every_window_once_an_epoch);
    RUN(micro_batches_do_not_matter);
    RUN(the_seed_decides);
    RUN(validation_is_set_aside);
    RUN(a_small_share_is_one_window);
    RUN(a_file_of_its_own_for_validation);
    RUN(sources_make_one_row);
    RUN(tokens_are_kept);
    RUN(another_tokenizer_has_its_own_tokens);
    RUN(a_stop_ends_it);
    RUN(faults);
    RUN(a_full_disk_is_said);
    RUN(the_cache_of_the_user);
    RUN(the_head_of_llm_c);
    RUN(the_head_of_llm_c_with_wide_tokens);
    RUN(ids_beyond_the_vocabulary);
    RUN(a_file_that_is_cut_meanwhile);
    RUN(too_short_a_text);
    RUN(a_folder_without_text);
    RUN(the_tokenizer_refuses);
    RUN(lines_of_json_are_documents);
    RUN(options_that_make_no_sense);
    tokenizer_free(bytes);
    tree_remove(&dir);
    return check_done();
}
