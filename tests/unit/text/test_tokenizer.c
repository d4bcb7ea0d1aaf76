/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer.h"

#include "os/fault.h"
#include "check.h"
#include "text/split.h"
#include "text/tokenizer_parts.h"
#include "text/tokenizer_train.h"
#include "text/unicode.h"
#include "tree.h"
#include <errno.h>
#include <time.h>

static struct cairn_error err;

static uint32_t state = 3;
static uint32_t dice(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

static char *corpus(size_t *n)
{
    FILE *f = fopen(check_data("text/stones.txt"), "r");
    char *text = malloc(1 << 16);
    *n = f && text ? fread(text, 1, 1 << 16, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static struct tokenizer *train(const char *text, size_t n, uint32_t vocab)
{
    CLEANUP(word_counts_cleanup) struct word_counts *w = word_counts_new();
    struct tokenizer *t = NULL;
    err = (struct cairn_error){ 0 };
    if (word_counts_add(w, text, n, &err) || tokenizer_train(w, vocab, NULL, &t, &err))
        printf("# %s\n", err.msg);
    return t;
}

static struct tokenizer *train_corpus(uint32_t vocab)
{
    size_t n;
    CLEANUP(mem_free) char *text = corpus(&n);
    return train(text, n, vocab);
}

/* Ids as text, "1 2 3". */
static const char *ids_of(const struct tokenizer *t, const char *text)
{
    static struct str out;
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    out.len = 0;
    str_add(&out, "");
    if (tokenizer_encode(t, text, strlen(text), &ids, &err))
        return err.msg;
    for (size_t i = 0; i < ids.n; i++)
        str_addf(&out, "%s%u", i ? " " : "", ids.ids[i]);
    return out.s;
}

static bool comes_back(const struct tokenizer *t, const char *text, size_t n)
{
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    CLEANUP(str_release) struct str back = { 0 };
    return !tokenizer_encode(t, text, n, &ids, &err) && !tokenizer_decode(t, ids.ids, ids.n, &back, &err) &&
           back.len == n && (!n || !memcmp(back.s, text, n));
}

static void random_bytes_come_back(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *bpe = train_corpus(550), *bytes = NULL;
    REQUIRE(bpe && !tokenizer_new_bytes(&bytes, &err));
    for (int round = 0; round < 2000; round++) {
        char s[300];
        size_t n = dice(sizeof(s));
        for (size_t i = 0; i < n; i++)
            s[i] = (char)(dice(3) ? "the stone \n's"[dice(13)] : (int)dice(256));
        REQUIRE(comes_back(bpe, s, n) && comes_back(bytes, s, n));
    }
}

static void bytes_are_ids(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    REQUIRE(!tokenizer_new_bytes(&t, &err));
    CHECK_INT(tokenizer_vocab(t), 256);
    CHECK_INT(tokenizer_end_of_text(t), 0);
    CHECK_STR(ids_of(t, "a\xc3\xa9\n"), "97 195 169 10");
    CHECK_STR(ids_of(t, ""), "");
}

/* "ab" four times, "abc" twice: ab is learned first, then abc with the space in front of it. */
static void learns_in_order(void)
{
    const char *text = "ab ab abc abc";
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = train(text, strlen(text), 1000);
    REQUIRE(t);
    /* Bytes have ids in the order of their letters: '!' is 1, so 'a' is 65. */
    CHECK_STR(ids_of(t, "a"), "65");
    CHECK_STR(ids_of(t, "ab"), "257");
    CHECK_STR(ids_of(t, " ab"), "258");
    CHECK_STR(ids_of(t, " abc"), "259");
    CHECK_STR(ids_of(t, "<|endoftext|>"), "0");
    CHECK_INT(tokenizer_vocab(t), 260);
    CHECK_INT(tokenizer_end_of_text(t), 0);
}

/* All pairs twice: the smaller ids first, not what was seen first. */
static void of_equal_pairs_the_smaller_ids(void)
{
    const char *text = "zb zb ab ab";
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = train(text, strlen(text), 1000);
    REQUIRE(t);
    CHECK_STR(ids_of(t, "ab"), "257");
    CHECK_STR(ids_of(t, "zb"), "258");
    CHECK_STR(ids_of(t, " ab"), "259");
}

static void the_same_text_gives_the_same_tokenizer(void)
{
    CLEANUP(tokenizer_cleanup)
    struct tokenizer *a = train_corpus(500), *b = train_corpus(500), *c = train_corpus(501);
    REQUIRE(a && b && c);
    CHECK_INT(tokenizer_vocab(a), 500);
    CHECK(!memcmp(tokenizer_hash(a), tokenizer_hash(b), 16));
    CHECK(memcmp(tokenizer_hash(a), tokenizer_hash(c), 16));
    CHECK_STR(a->json.s, b->json.s);
}

static void too_small_a_vocabulary_is_refused(void)
{
    CHECK(!train("a", 1, 256));
    CHECK_HAS(err.msg, "257");
}

static void saved_and_opened_again(void)
{
    struct tree dir;
    tree_make(&dir);
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = train_corpus(400), *again = NULL, *folder = NULL;
    REQUIRE(t && !tokenizer_save(t, tree_path(&dir, "tokenizer.json"), &err));
    CHECK(!tokenizer_open(tree_path(&dir, "tokenizer.json"), &again, &err) &&
          !memcmp(tokenizer_hash(t), tokenizer_hash(again), 16));
    CHECK(!tokenizer_open(dir.dir, &folder, &err));
    CHECK(tokenizer_open(tree_path(&dir, "none.json"), &(struct tokenizer *){ 0 }, &err) == -1);
    CHECK_HAS(err.msg, "none.json");
    tree_remove(&dir);
}

/* Pairs one after the other until none is left: what bpe.h says, said as slowly as possible. */
static void slow_encode(const struct bpe *b, const char *s, size_t n, struct token_list *out)
{
    token_list_reserve(out, n, &err);
    uint32_t *id = out->ids;
    for (size_t i = 0; i < n; i++)
        id[i] = b->byte_ids[(unsigned char)s[i]];
    for (;;) {
        size_t best = n;
        uint32_t rank = BPE_NONE;
        for (size_t i = 0; i + 1 < n; i++)
            if (bpe_rank(b, id[i], id[i + 1]) < rank) {
                rank = bpe_rank(b, id[i], id[i + 1]);
                best = i;
            }
        if (best == n)
            break;
        id[best] = b->made[rank];
        memmove(id + best + 1, id + best + 2, (n - best - 2) * sizeof(*id));
        n--;
    }
    out->n = n;
}

static void short_and_long_words_follow_the_rule(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = train_corpus(550);
    REQUIRE(t);
    for (int round = 0; round < 300; round++) {
        CLEANUP(token_list_release) struct token_list got = { 0 }, want = { 0 };
        char s[200];
        size_t n = 1 + dice(sizeof(s));
        for (size_t i = 0; i < n; i++)
            s[i] = "thesandono"[dice(10)];
        slow_encode(&t->bpe, s, n, &want);
        REQUIRE(!bpe_encode(&t->bpe, s, n, &got, &err));
        REQUIRE(got.n == want.n && !memcmp(got.ids, want.ids, got.n * sizeof(*got.ids)));
    }
}

/* A quadratic way takes minutes. */
static void a_long_word_is_no_trap(void)
{
    enum { N = 1 << 20 };
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = train_corpus(550);
    CLEANUP(mem_free) char *s = malloc(N);
    REQUIRE(t && s);
    for (size_t i = 0; i < N; i++)
        s[i] = "thestonesandof"[dice(14)];
    clock_t begin = clock();
    CHECK(comes_back(t, s, N));
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
}

/* Many times the corpus: cut into pieces for threads, the ids are those of one piece. */
static void threads_change_nothing(void)
{
    size_t n;
    CLEANUP(mem_free) char *text = corpus(&n);
    CLEANUP(str_release) struct str all = { 0 };
    CLEANUP(token_list_release) struct token_list got = { 0 }, want = { 0 };
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = train(text, n, 550);
    REQUIRE(t && n > 1000);
    while (all.len < 2 << 20) {
        str_addn(&all, text, 1 + dice((uint32_t)n - 1));
        str_add(&all, dice(2) ? "  \n" : "<|endoftext|>");
    }
    struct tokenizer_piece one = { all.s, all.len, true, false };
    REQUIRE(!tokenizer_encode(t, all.s, all.len, &got, &err) &&
            !tokenizer_encode_pieces(t, &one, 1, &want, &err));
    CHECK(got.n == want.n && !memcmp(got.ids, want.ids, got.n * sizeof(*got.ids)));
}

static void documents_end(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    REQUIRE(!tokenizer_new_bytes(&t, &err));
    struct tokenizer_piece pieces[] = { { "a", 1, true, false },
                                        { "b", 1, false, true },
                                        { "c", 1, true, true } };
    REQUIRE(!tokenizer_encode_pieces(t, pieces, 3, &ids, &err));
    REQUIRE(ids.n == 5);
    CHECK(ids.ids[0] == 'a' && ids.ids[1] == 'b' && ids.ids[2] == 0 && ids.ids[3] == 'c' && ids.ids[4] == 0);
}

static void ids_that_are_none(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    CLEANUP(str_release) struct str out = { 0 };
    REQUIRE(!tokenizer_new_bytes(&t, &err));
    CHECK(tokenizer_decode(t, (uint32_t[]){ 65, 256 }, 2, &out, &err) == -1);
    CHECK_HAS(err.msg, "no id 256");
}

/* ---- files ---- */

static void add_bytes(struct str *out, int but)
{
    for (int b = 0; b < 256; b++) {
        char name[5] = "";
        unicode_put(name, tokenizer_byte_char((unsigned char)b));
        if (b != but)
            str_addf(out, "%s\"%s%s\":%d", b ? "," : "", name[0] == '"' || name[0] == '\\' ? "\\" : "", name,
                     b);
    }
}

static struct tokenizer *parse(const char *head, const char *model, const char *vocab, const char *merges)
{
    CLEANUP(str_release) struct str json = { 0 };
    struct tokenizer *t = NULL;
    str_addf(&json, "{%s,\"model\":{\"type\":\"BPE\"%s,\"vocab\":{", head, model);
    add_bytes(&json, -1);
    str_addf(&json, "%s},\"merges\":[%s]}}", vocab, merges);
    err = (struct cairn_error){ 0 };
    if (tokenizer_parse("x.json", json.s, json.len, &t, &err))
        CHECK(err.msg[0]);
    return t;
}

#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define PREFIX "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}"
#define ADDED(more) BYTE_LEVEL ",\"added_tokens\":[{\"id\":300,\"content\":\"<x>\"" more "}]"

static void both_spellings_of_merges(void)
{
    const char *vocab = ",\"ab\":256,\"abc\":257";
    CLEANUP(tokenizer_cleanup)
    struct tokenizer *a = parse(BYTE_LEVEL, "", vocab, "\"a b\",\"ab c\""),
                     *b = parse(BYTE_LEVEL, "", vocab, "[\"a\",\"b\"],[\"ab\",\"c\"]");
    REQUIRE(a && b);
    CHECK_STR(ids_of(a, "abcab"), "257 256");
    CHECK_STR(ids_of(b, "abcab"), "257 256");
    CHECK(!memcmp(tokenizer_hash(a), tokenizer_hash(b), 16));
}

static void a_space_in_front(void)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = parse(PREFIX, "", "", "");
    REQUIRE(t);
    CHECK_STR(ids_of(t, "a"), "32 97");
    CHECK_STR(ids_of(t, " a"), "32 97");
    CHECK_STR(ids_of(t, ""), "");
}

static void added_tokens_are_found(void)
{
    CLEANUP(tokenizer_cleanup)
    struct tokenizer *t =
        parse(BYTE_LEVEL ",\"added_tokens\":[{\"id\":300,\"content\":\"<x>\",\"special\":true},"
                         "{\"id\":301,\"content\":\"<x>y\",\"special\":true},"
                         "{\"id\":302,\"content\":\"</s>\",\"special\":true}]",
              "", "", "");
    REQUIRE(t);
    CHECK_STR(ids_of(t, "a<x>b<x>y<x"), "97 300 98 301 60 120");
    CHECK_INT(tokenizer_end_of_text(t), 302);
    CHECK_INT(tokenizer_vocab(t), 303);
    CHECK(comes_back(t, "a<x>b<x>y<x", 11));
}

static void whole_words(void)
{
    CLEANUP(tokenizer_cleanup)
    struct tokenizer *t = parse(BYTE_LEVEL, ",\"ignore_merges\":true", ",\"abc\":256", "");
    REQUIRE(t);
    CHECK_STR(ids_of(t, "abc"), "256");
    CHECK_STR(ids_of(t, "abcd"), "97 98 99 100");
}

static void text_that_is_not_composed_is_refused(void)
{
    CLEANUP(tokenizer_cleanup)
    struct tokenizer *t = parse(BYTE_LEVEL ",\"normalizer\":{\"type\":\"NFC\"}", "", "", "");
    REQUIRE(t);
    CHECK(comes_back(t, "caf\xc3\xa9", 5));
    CHECK_HAS(ids_of(t, "cafe\xcc\x81"), "U+0301");
}

static void what_is_refused(void)
{
    static const struct {
        const char *head, *model, *vocab, *merges, *word;
    } rows[] = {
        { "\"x\":1", "", "", "", "no ByteLevel pre-tokenizer" },
        { "\"pre_tokenizer\":{\"type\":\"Metaspace\"}", "", "", "", "Metaspace" },
        { "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\w+\"}}", "", "", "", "\\w+" },
        { BYTE_LEVEL ",\"normalizer\":{\"type\":\"Lowercase\"}", "", "", "", "Lowercase" },
        { BYTE_LEVEL, ",\"dropout\":0.1", "", "", "dropout" },
        { BYTE_LEVEL, ",\"byte_fallback\":true", "", "", "byte_fallback" },
        { BYTE_LEVEL, ",\"end_of_word_suffix\":\"</w>\"", "", "", "end_of_word_suffix" },
        { BYTE_LEVEL, "", ",\"ab\":256", "\"a b\",\"ab c\"", "merge 1" },
        { BYTE_LEVEL, "", "", "\"ab\"", "merge 0" },
        { BYTE_LEVEL, "", ",\"ab\":97", "", "two tokens have the id 97" },
        { BYTE_LEVEL, "", ",\"ab\":-1", "", "no id" },
        { BYTE_LEVEL, "", ",\"ab\":4000000000", "", "far above" },
        { ADDED(",\"lstrip\":true"), "", "", "", "lstrip" },
        { ADDED(",\"single_word\":true"), "", "", "", "single_word" },
        { BYTE_LEVEL ",\"added_tokens\":[{\"id\":300,\"content\":\"two words\"}]", "", "", "", "two words" },
        { ADDED(""), "", ",\"<x>\":256", "", "256 in the vocabulary" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tokenizer *t = parse(rows[i].head, rows[i].model, rows[i].vocab, rows[i].merges);
        CHECK(!t);
        CHECK_HAS(err.msg, rows[i].word);
        CHECK_HAS(err.msg, "x.json: ");
        tokenizer_free(t);
    }
}

static void a_missing_byte_is_named(void)
{
    CLEANUP(str_release) struct str json = { 0 };
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    str_add(&json, "{" BYTE_LEVEL ",\"model\":{\"type\":\"BPE\",\"vocab\":{");
    add_bytes(&json, 200);
    str_add(&json, "},\"merges\":[]}}");
    CHECK(tokenizer_parse("x.json", json.s, json.len, &t, &err) == -1);
    CHECK_HAS(err.msg, "0xc8");
}

static void a_file_that_cannot_be_written_leaves_the_old_one(void)
{
    struct tree dir;
    tree_make(&dir);
    tree_put(&dir, "t.json", "old");
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    REQUIRE(!tokenizer_new_bytes(&t, &err));
    for (int nth = 1;; nth++) {
        fault_arm(nth, ENOSPC);
        int r = tokenizer_save(t, tree_path(&dir, "t.json"), &err);
        if (!fault_disarm()) {
            CHECK_INT(r, 0);
            break;
        }
        CHECK_INT(r, -1);
        CHECK_INT(tree_count(dir.dir), 1);
    }
    tree_remove(&dir);
}

int main(void)
{
    RUN(random_bytes_come_back);
    RUN(bytes_are_ids);
    RUN(learns_in_order);
    RUN(of_equal_pairs_the_smaller_ids);
    RUN(the_same_text_gives_the_same_tokenizer);
    RUN(too_small_a_vocabulary_is_refused);
    RUN(saved_and_opened_again);
    RUN(short_and_long_words_follow_the_rule);
    RUN(a_long_word_is_no_trap);
    RUN(threads_change_nothing);
    RUN(documents_end);
    RUN(ids_that_are_none);
    RUN(both_spellings_of_merges);
    RUN(a_space_in_front);
    RUN(added_tokens_are_found);
    RUN(whole_words);
    RUN(text_that_is_not_composed_is_refused);
    RUN(what_is_refused);
    RUN(a_missing_byte_is_named);
    RUN(a_file_that_cannot_be_written_leaves_the_old_one);
    return check_done();
}
