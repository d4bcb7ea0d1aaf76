/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include "check.h"
#include <unistd.h>

static struct arena arena;

static const struct yaml_node *parsed(const char *text)
{
    struct cairn_error err;
    struct yaml_node *root = NULL;
    if (yaml_parse("f.yaml", text, strlen(text), &arena, &root, &err))
        CHECK_FAIL_("%s", err.msg);
    return root;
}

/* The message of what must fail. */
static const char *refusal(const char *text, size_t len)
{
    static struct cairn_error err;
    struct yaml_node *root = NULL;
    err = (struct cairn_error){ 0 };
    CHECK_INT(yaml_parse("f.yaml", text, len, &arena, &root, &err), -1);
    CHECK(!root);
    return err.msg;
}

static const char *refused(const char *text)
{
    return refusal(text, strlen(text));
}

static const struct yaml_node *child(const struct yaml_node *n, int i)
{
    const struct yaml_node *c = n ? n->first : NULL;
    for (; c && i; i--)
        c = c->next;
    return c;
}

static void a_map_keeps_its_order(void)
{
    const struct yaml_node *root = parsed("b: 1\na: 2\nc:\n  d: x\n");
    REQUIRE(root && root->kind == YAML_MAP && child(root, 2) && !child(root, 3));
    CHECK_STR(child(root, 0)->key->text, "b");
    CHECK_STR(child(root, 1)->key->text, "a");
    CHECK_STR(child(root, 1)->text, "2");
    CHECK_INT(child(root, 2)->kind, YAML_MAP);
    CHECK_STR(child(child(root, 2), 0)->text, "x");
}

static void a_list_has_items_without_keys(void)
{
    const struct yaml_node *list = child(parsed("a: [x, 'y', [z]]\n"), 0);
    REQUIRE(list && list->kind == YAML_LIST && child(list, 2) && !child(list, 3));
    CHECK_STR(child(list, 1)->text, "y");
    CHECK(!child(list, 1)->key);
    CHECK_STR(child(child(list, 2), 0)->text, "z");
}

static void every_node_knows_its_place(void)
{
    const struct yaml_node *root = parsed("# c\na: 1\nbb:\n  - x\n  - ä: 2\n");
    REQUIRE(root && child(root, 1));
    CHECK_INT(root->line, 2);
    CHECK_INT(root->column, 1);
    CHECK_INT(child(root, 0)->column, 4);
    CHECK_INT(child(root, 1)->key->line, 3);
    const struct yaml_node *inner = child(child(child(root, 1), 1), 0);
    REQUIRE(inner);
    CHECK_INT(inner->line, 5);
    CHECK_INT(inner->column, 8); /* characters, not bytes */
}

static void styles_are_told(void)
{
    const struct yaml_node *root = parsed("a: x\nb: 'x'\nc: \"x\\u00e4\"\nd: |\n  x\ne: >\n  x\n");
    REQUIRE(child(root, 4));
    CHECK_INT(child(root, 0)->style, YAML_PLAIN);
    CHECK_INT(child(root, 1)->style, YAML_QUOTED);
    CHECK_INT(child(root, 2)->style, YAML_QUOTED);
    CHECK_STR(child(root, 2)->text, "xä");
    CHECK_INT(child(root, 3)->style, YAML_BLOCK);
    CHECK_INT(child(root, 4)->style, YAML_BLOCK);
    CHECK_STR(child(root, 3)->text, "x\n");
}

static void null_is_nothing_without_quotes(void)
{
    const struct yaml_node *root = parsed("a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: nul\n");
    REQUIRE(child(root, 5));
    for (int i = 0; i < 6; i++)
        CHECK_INT(yaml_is_null(child(root, i)), i < 3);
    CHECK(!yaml_is_null(root));
}

static void nothing_is_a_null(void)
{
    static const char *const texts[] = { "", "\n\n", "# only this\n", "---\n", "---\n...\n" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct yaml_node *root = parsed(texts[i]);
        CHECK(root && yaml_is_null(root));
    }
}

static void syntax_errors_have_a_place(void)
{
    CHECK_HAS(refused("a: 1\nb: [1, 2\nc: 3\n"), "f.yaml:3:2: ");
    CHECK_HAS(refused("a: 1\n\tb: 2\n"), "f.yaml:2:1: ");
    CHECK_HAS(refused("a: 'x\n"), "f.yaml:2:1: ");
}

static void bad_bytes_have_a_place(void)
{
    CHECK_HAS(refused("a: 1\nbä: x\xff\n"), "f.yaml:2:6: ");
    CHECK_HAS(refused("a: 1\nb: \x01\n"), "f.yaml:2:4: ");
}

static void what_is_not_understood_is_refused(void)
{
    CHECK_HAS(refused("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: duplicate key a, first in line 1");
    CHECK_HAS(refused("x: {a: 1, 'a': 3}\n"), "f.yaml:1:11: duplicate key a");
    CHECK_HAS(refused("a: &x 1\n"), "f.yaml:1:4: anchors");
    CHECK_HAS(refused("a: *x\n"), "f.yaml:1:4: aliases");
    CHECK_HAS(refused("a: &x [*x]\n"), "f.yaml:1:4: anchors");
    CHECK_HAS(refused("<<: {a: 1}\n"), "f.yaml:1:1: merge keys");
    CHECK_HAS(refused("a: !!python/object/apply:os.system [x]\n"), "f.yaml:1:4: tags");
    CHECK_HAS(refused("a: !!str 5\n"), "f.yaml:1:4: tags");
    CHECK_HAS(refused("? [a, b]\n: c\n"), "f.yaml:1:3: a key must be");
    CHECK_HAS(refused("a: 1\n---\nb: 2\n"), "f.yaml:2:1: a second document");
    CHECK_HAS(refused("a: \"x\\0y\"\n"), "f.yaml:1:4: ");
}

static void the_same_key_in_two_maps_is_fine(void)
{
    const struct yaml_node *root = parsed("x: {a: 1}\ny: {a: 2}\n");
    CHECK_STR(child(child(root, 1), 0)->text, "2");
}

/* Part, n times; on the heap. */
static char *repeated(const char *part, size_t n)
{
    struct str s = { 0 };
    for (size_t i = 0; i < n; i++)
        str_add(&s, part);
    return s.s;
}

static void limits_hold(void)
{
    CLEANUP(mem_free) char *deep = repeated("[", YAML_MOST_DEPTH + 1);
    CHECK_HAS(refused(deep), "f.yaml:1:33: nested too deep");
    CLEANUP(mem_free) char *many = repeated("- x\n", YAML_MOST_NODES);
    CHECK_HAS(refused(many), "f.yaml:20000:3: too many values");
    many[strlen(many) - 4] = '\0'; /* with the list itself, as many as there may be */
    CHECK(parsed(many) != NULL);
    CLEANUP(mem_free) char *large = repeated("#", YAML_MOST_BYTES + 1);
    CHECK_HAS(refused(large), "f.yaml: larger than 1 MiB");
    large[YAML_MOST_BYTES] = '\0';
    CHECK(parsed(large) != NULL);
}

static void deepest_is_fine(void)
{
    CLEANUP(mem_free) char *open = repeated("[", YAML_MOST_DEPTH);
    CLEANUP(mem_free) char *close = repeated("]", YAML_MOST_DEPTH);
    const struct yaml_node *n = parsed(arena_printf(&arena, "%s%s", open, close));
    int depth = 1;
    for (; n && n->first; n = n->first)
        depth++;
    CHECK_INT(depth, YAML_MOST_DEPTH);
}

/* Every character that matters to a reader, alone and between others. */
static void quoted_text_reads_back(void)
{
    static const char *const texts[] = {
        "",
        "x",
        " x ",
        "a\"b\\c",
        "\n",
        "\t \r\n",
        "# no: comment",
        "ä€𝄞",
        "\x01\x1f\x7f",
        "\xc2\x85",
        "\xc2\x80x",
        "\xe2\x80\xa8|\xe2\x80\xa9",
        "\xef\xbb\xbf",
        "\xef\xbf\xbe",
        "\xef\xbf\xbf",
        "\xee\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "\xc2\xa0",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(str_release) struct str s = { 0 };
        str_add(&s, "a: ");
        yaml_add_quoted(&s, texts[i]);
        const struct yaml_node *n = child(parsed(s.s), 0);
        CHECK_STR(n ? n->text : NULL, texts[i]);
    }
}

static void a_file_is_read(void)
{
    char path[] = "/tmp/test_yaml_XXXXXX";
    struct cairn_error err = { 0 };
    struct yaml_node *root = NULL;
    int fd = mkstemp(path);
    REQUIRE(fd >= 0 && write(fd, "a: 1\nb: ]\n", 10) == 10);
    CHECK_INT(yaml_read(path, &arena, &root, &err), -1);
    CHECK_HAS(err.msg, ":2:4: ");
    CHECK_HAS(err.msg, path);
    REQUIRE(ftruncate(fd, 5) == 0);
    CHECK_INT(yaml_read(path, &arena, &root, &err), 0);
    CHECK_STR(child(root, 0) ? child(root, 0)->text : NULL, "1");
    REQUIRE(ftruncate(fd, YAML_MOST_BYTES + 1) == 0);
    CHECK_INT(yaml_read(path, &arena, &root, &err), -1);
    CHECK_HAS(err.msg, "too large");
    close(fd);
    unlink(path);
    CHECK_INT(yaml_read(path, &arena, &root, &err), -1);
    CHECK_HAS(err.msg, "No such file");
    CHECK_INT(yaml_read("/", &arena, &root, &err), -1);
    CHECK_HAS(err.msg, "a directory");
}

int main(void)
{
    RUN(a_map_keeps_its_order);
    RUN(a_list_has_items_without_keys);
    RUN(every_node_knows_its_place);
    RUN(styles_are_told);
    RUN(null_is_nothing_without_quotes);
    RUN(nothing_is_a_null);
    RUN(syntax_errors_have_a_place);
    RUN(bad_bytes_have_a_place);
    RUN(what_is_not_understood_is_refused);
    RUN(the_same_key_in_two_maps_is_fine);
    RUN(limits_hold);
    RUN(deepest_is_fine);
    RUN(quoted_text_reads_back);
    RUN(a_file_is_read);
    arena_release(&arena);
    return check_done();
}
