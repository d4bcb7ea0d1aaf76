/* SPDX-License-Identifier: Apache-2.0 */
#include "base/toml.h"

#include "check.h"
#include <string.h>

static struct arena arena;

static const struct yaml_node *get(const struct yaml_node *n, const char *path)
{
    char part[64];
    for (; n && *path; path += strlen(part) + (path[strlen(part)] != '\0')) {
        snprintf(part, sizeof(part), "%.*s", (int)strcspn(path, "/"), path);
        const struct yaml_node *c = n->first;
        if (n->kind == YAML_LIST)
            for (int i = atoi(part); c && i; i--)
                c = c->next;
        else
            while (c && strcmp(c->key->text, part))
                c = c->next;
        n = c;
    }
    return n;
}

static const char *text_of(const struct yaml_node *n, const char *path)
{
    const struct yaml_node *found = get(n, path);
    return found && found->text ? found->text : "(none)";
}

static struct yaml_node *parse(const char *text)
{
    struct yaml_node *root = NULL;
    struct cairn_error err = { 0 };
    if (toml_parse("t.toml", text, strlen(text), &arena, &root, &err))
        CHECK_FAIL_("%s", err.msg);
    return root;
}

static void tables_and_arrays_of_them(void)
{
    struct yaml_node *r =
        parse("top = 1\n[general]\nresolution = [960, 544]\n\n[[datasets]]\nvideo_directory = '/a b'\n"
              "[[datasets.subsets]]\nx = true\n[[datasets]] # second\ncache_directory = \"/c\" # here\n"
              "[datasets.more]\na.\"b c\".d = {k = 1.5e-4, l = []}\n");
    REQUIRE(r);
    CHECK_STR(text_of(r, "top"), "1");
    CHECK_STR(text_of(r, "general/resolution/1"), "544");
    CHECK_STR(text_of(r, "datasets/0/video_directory"), "/a b");
    CHECK_STR(text_of(r, "datasets/0/subsets/0/x"), "true");
    CHECK_STR(text_of(r, "datasets/1/cache_directory"), "/c");
    CHECK_STR(text_of(r, "datasets/1/more/a/b c/d/k"), "1.5e-4");
    CHECK_INT(get(r, "datasets/1/cache_directory")->line, 10);
    CHECK_INT(get(r, "datasets/1/cache_directory")->key->column, 1);
    CHECK_INT(get(r, "datasets/1/more/a/b c/d/l")->kind, YAML_LIST);
}

static void strings_of_all_kinds(void)
{
    struct yaml_node *r = parse(
        "a = \"t\\t\\u00e9\\\"\"\nb = 'C:\\x'\nc = \"\"\"\none\\\n   two\"\"\"\nd = '''\nx'y\n'''\ne = \"\"\"q\"\"\"\"\n");
    REQUIRE(r);
    CHECK_STR(text_of(r, "a"), "t\t\303\251\"");
    CHECK_STR(text_of(r, "b"), "C:\\x");
    CHECK_STR(text_of(r, "c"), "onetwo");
    CHECK_STR(text_of(r, "d"), "x'y\n");
    CHECK_STR(text_of(r, "e"), "q\"");
    CHECK_INT(get(r, "a")->style, YAML_QUOTED);
}

static void what_is_wrong_has_a_place(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "a = 1\nb\n", "t.toml:2:2: " },
        { "a = 1\na = 2\n", "t.toml:2:3: " },
        { "a = \"x\n", "t.toml:1:7: " },
        { "a = [1, 2\n", "t.toml:2:1: " },
        { "a = [1 [2]]\n", "comma" },
        { "[a]\n[[a]]\n", "t.toml:2:6: " },
        { "a = \"\\ud800\"", "character" },
        { "a = \n", "value" },
        { "[a\n", "t.toml:1:3: " },
        { "a = 1 b = 2\n", "t.toml:1:9: " },
        { "a = \"\\", "escape" },
        { "\377 = 1", "UTF-8" },
        { "a = \"\\x4\x11\"", "hexadecimal" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct yaml_node *root = NULL;
        struct cairn_error err = { 0 };
        CHECK_INT(toml_parse("t.toml", cases[i].text, strlen(cases[i].text), &arena, &root, &err), -1);
        CHECK_HAS(err.msg, cases[i].want);
    }
    char deep[400] = "a=";
    memset(deep + 2, '[', 300);
    struct yaml_node *root = NULL;
    struct cairn_error err = { 0 };
    CHECK_INT(toml_parse("t.toml", deep, strlen(deep), &arena, &root, &err), -1);
    CHECK_HAS(err.msg, "deep");
}

int main(void)
{
    RUN(tables_and_arrays_of_them);
    RUN(strings_of_all_kinds);
    RUN(what_is_wrong_has_a_place);
    arena_release(&arena);
    return check_done();
}
