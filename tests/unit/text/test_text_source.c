/* SPDX-License-Identifier: Apache-2.0 */
#include "text/text_source.h"

#include "base/str.h"
#include "check.h"
#include "text/split.h"
#include "tree.h"
#include <fcntl.h>

static struct cairn_error err;
static struct tree dir;

/* Documents in brackets; parts of one have a bar between them. */
static int note(void *context, const struct text_source_part *part, struct cairn_error *e)
{
    struct str *out = context;
    (void)e;
    str_add(out, part->begins ? "[" : "|");
    str_addn(out, part->text, part->n);
    str_add(out, part->ends ? "]" : "");
    return 0;
}

static int read_into(const char *path, const char *key, struct str *out, size_t *skipped)
{
    CLEANUP(text_source_close) struct text_source s = { 0 };
    uint64_t before[2], now[2];
    err = (struct cairn_error){ 0 };
    out->len = 0;
    str_add(out, "");
    if (text_source_open(&s, path, &err) || text_source_hash(&s, before, NULL, &err) ||
        text_source_read(&s, key, note, out, now, NULL, &err))
        return -1;
    CHECK(!memcmp(before, now, sizeof(now)));
    if (skipped)
        *skipped = s.skipped;
    return 0;
}

static const char *documents(const char *name, const char *key)
{
    static struct str out;
    return read_into(tree_path(&dir, name), key, &out, NULL) ? err.msg : out.s;
}

static void a_file_is_a_document(void)
{
    tree_put(&dir, "a.txt", "one\ntwo\n");
    CHECK_STR(documents("a.txt", ""), "[one\ntwo\n]");
    tree_put_bytes(&dir, "b.txt", "\xff\xfe\xc3", 3);
    CHECK_STR(documents("b.txt", ""), "[\xff\xfe\xc3]");
}

static void what_is_no_text(void)
{
    tree_put(&dir, "empty.txt", "");
    CHECK_HAS(documents("empty.txt", ""), "empty.txt is empty");
    tree_put_bytes(&dir, "zero.txt", "ab\0c", 4);
    CHECK_HAS(documents("zero.txt", ""), "byte 2 is zero");
    CHECK_HAS(documents("nothing", ""), "nothing: No such file");
}

static void a_folder_is_sorted(void)
{
    size_t skipped = 0;
    CLEANUP(str_release) struct str out = { 0 };
    tree_put(&dir, "f/b/2.txt", "B");
    tree_put(&dir, "f/a.txt", "A");
    tree_put(&dir, "f/b/1.jsonl", "{\"text\":\"x\"}\n{\"text\":\"y\"}");
    tree_put(&dir, "f/.git/config", "no");
    tree_put(&dir, "f/none", "");
    tree_put_bytes(&dir, "f/picture", "\x89PNG\0", 5);
    tree_link(&dir, "f/loop", ".");
    REQUIRE(!read_into(tree_path(&dir, "f"), "text", &out, &skipped));
    CHECK_STR(out.s, "[A][x][y][B]");
    CHECK_INT(skipped, 2);
    tree_put(&dir, "g/.hidden", "x");
    CHECK_HAS(documents("g", ""), "g: ");
}

/* Nothing is left out without a word. */
static void a_folder_too_deep(void)
{
    char path[300] = "deep";
    for (int i = 0; i < 66; i++)
        strcat(path, "/d");
    strcat(path, "/x.txt");
    tree_put(&dir, path, "text");
    CHECK_HAS(documents("deep", ""), "64 deep");
}

static void lines_of_json(void)
{
    static const char nul[] = "{\"text\":\"a\\u0000b\"}\n";
    CLEANUP(str_release) struct str got = { 0 };
    tree_put(&dir, "nul.jsonl", nul);
    CHECK(!read_into(tree_path(&dir, "nul.jsonl"), "text", &got, NULL));
    CHECK(got.len == 5 && !memcmp(got.s, "[a\0b]", 5));
    tree_put(&dir, "l.jsonl",
             "{\"text\":\"a\\nb\",\"n\":1}\r\n\n  \n{\"text\":\"\"}\n{\"text\":\"\xc3\xa9\"}");
    CHECK_STR(documents("l.jsonl", "text"), "[a\nb][\xc3\xa9]");
    CHECK_HAS(documents("l.jsonl", "body"), "l.jsonl:1: no key \"body\"");
    CHECK_HAS(err.hint, "\"text\"");
    tree_put(&dir, "m.jsonl", "{\"text\":\"a\"}\n{\"text\":5}\n");
    CHECK_HAS(documents("m.jsonl", "text"), "m.jsonl:2: \"text\" is not");
    tree_put(&dir, "n.jsonl", "{\"text\":\"a\"}\n{\"text\":\n");
    CHECK_HAS(documents("n.jsonl", "text"), "n.jsonl:2: not JSON");
    tree_put(&dir, "o.jsonl", "[1]\n");
    CHECK_HAS(documents("o.jsonl", "text"), "o.jsonl:1: no key");
}

/* Lines that are longer than a block of reading. */
static void long_lines(void)
{
    CLEANUP(str_release) struct str file = { 0 }, want = { 0 }, got = { 0 };
    static const size_t sizes[] = { 10, 3 << 20, 1, 1 << 20, (1 << 20) - 13, 5 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        str_add(&file, "{\"text\":\"");
        str_add(&want, "[");
        for (size_t k = 0; k < sizes[i]; k++) {
            str_addn(&file, &"abcdefghijk"[(i + k) % 11], 1);
            str_addn(&want, &"abcdefghijk"[(i + k) % 11], 1);
        }
        str_add(&file, "\"}\n");
        str_add(&want, "]");
    }
    tree_put_bytes(&dir, "long.jsonl", file.s, file.len);
    REQUIRE(!read_into(tree_path(&dir, "long.jsonl"), "text", &got, NULL));
    CHECK(got.len == want.len && !memcmp(got.s, want.s, got.len));
}

/* A text of some MiB comes in parts, and is whole. */
static void large_files_come_in_parts(void)
{
    CLEANUP(str_release) struct str file = { 0 }, got = { 0 };
    size_t bars = 0;
    for (int i = 0; file.len < 5 << 20; i++)
        str_addf(&file, "line %d of a text\n%s", i, i % 3 ? "" : "\n  ");
    tree_put_bytes(&dir, "large.txt", file.s, file.len);
    REQUIRE(!read_into(tree_path(&dir, "large.txt"), "", &got, NULL));
    for (size_t i = 0; i < got.len; i++)
        if (got.s[i] == '|') {
            bars++;
            CHECK(got.s[i + 1] == ' ' || got.s[i - 1] == '\n');
        }
    CHECK(bars >= 2);
    CHECK_INT(got.len, file.len + bars + 2);
}

static int touch(void *context, const struct text_source_part *part, struct cairn_error *e)
{
    (void)part, (void)e;
    int fd = open(context, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
    return 0;
}

static void a_file_that_changes(void)
{
    CLEANUP(text_source_close) struct text_source s = { 0 };
    uint64_t hash[2];
    char *path = tree_path(&dir, "changing.txt");
    tree_put(&dir, "changing.txt", "some text");
    path = tree_path(&dir, "changing.txt");
    REQUIRE(!text_source_open(&s, path, &err));
    CHECK(text_source_read(&s, "", touch, path, hash, NULL, &err) == -1);
    CHECK_HAS(err.msg, "changing.txt changed");
    CHECK(text_source_hash(&s, hash, NULL, &err) == -1);
    CHECK_HAS(err.msg, "changed");
}

static void content_decides_on_the_hash(void)
{
    static const char *const texts[] = { "abc", "abd", "ab" };
    uint64_t seen[4][2];
    for (int i = 0; i < 3; i++) {
        CLEANUP(text_source_close) struct text_source s = { 0 };
        tree_put(&dir, "h.txt", texts[i]);
        REQUIRE(!text_source_open(&s, tree_path(&dir, "h.txt"), &err) &&
                !text_source_hash(&s, seen[i], NULL, &err));
    }
    CLEANUP(text_source_close) struct text_source other = { 0 };
    tree_put(&dir, "another name", "abc");
    REQUIRE(!text_source_open(&other, tree_path(&dir, "another name"), &err) &&
            !text_source_hash(&other, seen[3], NULL, &err));
    CHECK(!memcmp(seen[0], seen[3], 16) && memcmp(seen[0], seen[1], 16) && memcmp(seen[0], seen[2], 16));
}

int main(void)
{
    tree_make(&dir);
    RUN(a_file_is_a_document);
    RUN(what_is_no_text);
    RUN(a_folder_is_sorted);
    RUN(a_folder_too_deep);
    RUN(lines_of_json);
    RUN(long_lines);
    RUN(large_files_come_in_parts);
    RUN(a_file_that_changes);
    RUN(content_decides_on_the_hash);
    tree_remove(&dir);
    return check_done();
}
