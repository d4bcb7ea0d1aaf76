/* SPDX-License-Identifier: Apache-2.0 */
#include "text/unigram.h"

#include "base/str.h"
#include "check.h"
#include "text/grapheme.h"
#include "tree.h"

static struct cairn_error err;

/* ---- a ModelProto ---- */

static void add_text(struct str *out, int field, const char *s, size_t n)
{
    str_addn(out, &(char){ (char)(field << 3 | 2) }, 1);
    str_addn(out, &(char){ (char)n }, 1);
    str_addn(out, s, n);
}

static void add_number(struct str *out, int field, int v)
{
    if (field > 15)
        str_addn(out, (char[]){ (char)((field << 3 & 0x7f) | 0x80), (char)(field >> 4), (char)v }, 3);
    else
        str_addn(out, (char[]){ (char)(field << 3), (char)v }, 2);
}

static void add_piece(struct str *out, const char *text, float score, int kind)
{
    CLEANUP(str_release) struct str piece = { 0 };
    add_text(&piece, 1, text, strlen(text));
    str_addn(&piece, "\x15", 1);
    str_addn(&piece, (const char *)&score, 4);
    add_number(&piece, 3, kind);
    add_text(out, 1, piece.s, piece.len);
}

static void add_model(struct str *out)
{
    add_piece(out, "<unk>", 0, 2);
    add_piece(out, "</s>", 0, 3);
    add_piece(out, "\xe2\x96\x81", -3, 1);
    add_piece(out, "a", -2, 1);
    add_piece(out, "b", -2, 1);
    add_piece(out, "ab", -3, 1);
    add_piece(out,
              "\xe2\x96\x81"
              "ab",
              -4, 1);
    add_piece(out, "<x>", 0, 4);
    add_piece(out, "abb", -1, 5);
}

static const char *ids_of(const struct unigram *u, const char *text)
{
    static struct str out;
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    out.len = 0;
    str_add(&out, "");
    if (unigram_encode(u, text, strlen(text), &ids, &err))
        return err.msg;
    for (size_t i = 0; i < ids.n; i++)
        str_addf(&out, "%s%u", i ? " " : "", ids.ids[i]);
    return out.s;
}

static void a_model_encodes(void)
{
    CLEANUP(str_release) struct str m = { 0 };
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    add_model(&m);
    REQUIRE(!unigram_parse_model(&u, "m", m.s, m.len, &err));
    CHECK_INT(unigram_vocab(u), 9);
    CHECK_INT(unigram_unknown(u), 0);
    CHECK_INT(unigram_end(u), 1);
    CHECK_STR(ids_of(u, ""), "");
    CHECK_STR(ids_of(u, "   "), "");
    CHECK_STR(ids_of(u, "ab"), "6");
    CHECK_STR(ids_of(u, "  ab   ab "), "6 6");
    /* An unused piece is not used; unknown characters in a row are one token. */
    CHECK_STR(ids_of(u, "abb"), "6 4");
    CHECK_STR(ids_of(u, "azzb"), "2 3 0 4");
    CHECK_STR(ids_of(u, "a\xff\xfe"), "2 3 0");
    CHECK_STR(ids_of(u, "</s><x>"), "2 0 7");
}

static void a_model_obeys_its_specifications(void)
{
    CLEANUP(str_release) struct str m = { 0 }, trainer = { 0 }, normalizer = { 0 };
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    add_model(&m);
    add_number(&trainer, 24, 1);
    add_number(&normalizer, 4, 0);
    add_text(&m, 2, trainer.s, trainer.len);
    add_text(&m, 3, normalizer.s, normalizer.len);
    REQUIRE(!unigram_parse_model(&u, "m", m.s, m.len, &err));
    CHECK_STR(ids_of(u, "a  b"), "3 2 2 4 2");
}

static int parse_with(const char *text, float score, int kind, int model_type)
{
    CLEANUP(str_release) struct str m = { 0 }, trainer = { 0 };
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    add_model(&m);
    if (text)
        add_piece(&m, text, score, kind);
    add_number(&trainer, 3, model_type);
    add_text(&m, 2, trainer.s, trainer.len);
    err = (struct cairn_error){ 0 };
    return unigram_parse_model(&u, "the-model", m.s, m.len, &err);
}

static void bad_models_are_refused(void)
{
    CLEANUP(str_release) struct str m = { 0 };
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    CHECK_INT(parse_with(NULL, 0, 1, 1), 0);
    CHECK_INT(parse_with("new", 0, 1, 1), 0);
    CHECK_INT(parse_with(NULL, 0, 1, 2), -1);
    CHECK_HAS(err.msg, "BPE");
    CHECK_INT(parse_with("a", 0, 1, 1), -1);      /* twice */
    CHECK_INT(parse_with("", 0, 1, 1), -1);       /* empty */
    CHECK_INT(parse_with("<u>", 0, 2, 1), -1);    /* another unknown */
    CHECK_INT(parse_with("<0x00>", 0, 6, 1), -1); /* bytes without byte_fallback */
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, "the-model");
    add_model(&m);
    size_t refused = 0;
    for (size_t n = 0; n < m.len; n++) {
        int r = unigram_parse_model(&u, "m", m.s, n, &err);
        refused += r != 0;
        unigram_free(TAKE(u));
    }
    /* A message may end between two pieces. */
    CHECK_INT(refused, m.len - 8);
}

/* ---- tokenizer.json ---- */

#define VOCAB                                                                                               \
    "\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-3.0],[\"a\",-2],[\"b\",-2.0],[\"ab\",-3],[\"\\u2581ab\",-4e0]," \
    "[\"</s>\",0.0],[\"\\ud83d\\ude42\",-5]]"

static struct unigram *from_json(const char *parts, const char *model)
{
    CLEANUP(str_release) struct str json = { 0 };
    struct unigram *u = NULL;
    str_addf(&json, "{%s\"model\":{\"type\":\"Unigram\",\"unk_id\":0,%s" VOCAB "}}", parts, model);
    err = (struct cairn_error){ 0 };
    if (unigram_parse_json(&u, "the-json", json.s, json.len, &err))
        return NULL;
    return u;
}

#define METASPACE(scheme)                                                                                \
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"" scheme \
    "\"},"

static void a_json_encodes(void)
{
    CLEANUP(unigram_cleanup) struct unigram *u = from_json(METASPACE("always"), "");
    REQUIRE(u);
    CHECK_INT(unigram_vocab(u), 8);
    CHECK_INT(unigram_end(u), 6);
    CHECK_STR(ids_of(u, "ab ab"), "5 5");
    CHECK_STR(ids_of(u, ""), "");
    CHECK_STR(ids_of(u, "azz\xf0\x9f\x99\x82"), "1 2 0 7");
    CHECK_STR(ids_of(u, "a\xff"), "1 2 0");
    CLEANUP(unigram_cleanup) struct unigram *never = from_json(METASPACE("never"), "");
    REQUIRE(never);
    CHECK_STR(ids_of(never, "ab ab"), "4 5");
}

static void added_tokens_are_found(void)
{
    CLEANUP(unigram_cleanup)
    struct unigram *u =
        from_json("\"added_tokens\":[{\"content\":\"</s>\",\"special\":true,\"normalized\":false},"
                  "{\"content\":\"<n>\",\"lstrip\":true,\"single_word\":true}]," METASPACE("first"),
                  "");
    REQUIRE(u);
    CHECK_INT(unigram_vocab(u), 9);
    CHECK_STR(ids_of(u, "ab</s>ab  <n>"), "5 6 4 8");
    CHECK_STR(ids_of(u, "ab<n>"), "5 0");
}

static void bad_json_is_refused(void)
{
    CHECK(!from_json("\"normalizer\":{\"type\":\"Strange\"},", ""));
    CHECK_HAS(err.msg, "Strange");
    CHECK_HAS(err.msg, "the-json");
    CHECK(!from_json("\"pre_tokenizer\":{\"type\":\"Odd\"},", ""));
    CHECK_HAS(err.msg, "Odd");
    CHECK(!from_json("", "\"vocab\":[[\"a\",\"b\"]],"));
    CHECK(!from_json("", "\"unk_id\":99,"));
    CHECK(!from_json("\"x\":", ""));
    CHECK_INT(err.code, CAIRN_EFORMAT);
}

/* ---- files ---- */

static void files_and_folders_open(void)
{
    CLEANUP(str_release) struct str m = { 0 };
    CLEANUP(unigram_cleanup) struct unigram *a = NULL, *b = NULL, *c = NULL;
    struct tree t;
    add_model(&m);
    tree_make(&t);
    CHECK_INT(unigram_open(&a, tree_path(&t, "."), &err), -1);
    tree_put_bytes(&t, "google/umt5-xxl/spiece.model", m.s, m.len);
    CHECK_INT(unigram_open(&a, tree_path(&t, "google/umt5-xxl/spiece.model"), &err), 0);
    CHECK_INT(unigram_open(&b, tree_path(&t, "."), &err), 0);
    tree_remove(&t);
    REQUIRE(a && b);
    CHECK(!memcmp(unigram_hash(a), unigram_hash(b), 16));
    add_piece(&m, "more", -9, 1);
    REQUIRE(!unigram_parse_model(&c, "m", m.s, m.len, &err));
    CHECK(memcmp(unigram_hash(a), unigram_hash(c), 16));
}

static void clusters_are_whole(void)
{
    static const char *const whole[] = { "a",
                                         "\r\n",
                                         "e\xcc\x81\xcc\x82",
                                         "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9",
                                         "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
                                         "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8",
                                         "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\x95" };
    CLEANUP(str_release) struct str two = { 0 };
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        two.len = 0;
        str_addf(&two, "%sx", whole[i]);
        CHECK_INT(grapheme_next(two.s, two.len), strlen(whole[i]));
    }
    CHECK_INT(grapheme_next("\n\r", 2), 1);
    CHECK(grapheme_is_word('_') && grapheme_is_word(0xe9) && !grapheme_is_word('-') &&
          !grapheme_is_word(0x2581));
}

int main(void)
{
    RUN(a_model_encodes);
    RUN(a_model_obeys_its_specifications);
    RUN(bad_models_are_refused);
    RUN(a_json_encodes);
    RUN(added_tokens_are_found);
    RUN(bad_json_is_refused);
    RUN(files_and_folders_open);
    RUN(clusters_are_whole);
    return check_done();
}
