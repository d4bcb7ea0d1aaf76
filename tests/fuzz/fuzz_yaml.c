/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a YAML document: a tree within the limits, or a message that begins with the file. */
#include "base/yaml.h"

#include "base/cleanup.h"
#include "fuzz.h"

static void check_scalar(const struct yaml_node *n, struct arena *arena)
{
    CLEANUP(str_release) struct str s = { 0 };
    struct yaml_node *again;
    struct cairn_error err;
    FUZZ_REQUIRE(n->text && str_is_utf8(n->text) && !n->first);
    yaml_add_quoted(&s, n->text);
    if (s.len > YAML_MOST_BYTES)
        return;
    FUZZ_REQUIRE(yaml_parse("again", s.s, s.len, arena, &again, &err) == 0);
    FUZZ_REQUIRE(again->kind == YAML_SCALAR && !strcmp(again->text, n->text));
}

static size_t check_tree(const struct yaml_node *n, int depth, struct arena *arena)
{
    size_t count = 1;
    FUZZ_REQUIRE(depth <= YAML_MOST_DEPTH + 1 && n->line >= 1 && n->column >= 1);
    if (n->kind == YAML_SCALAR)
        check_scalar(n, arena);
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        FUZZ_REQUIRE((n->kind == YAML_MAP) == (c->key != NULL));
        if (c->key)
            count += check_tree(c->key, depth + 1, arena);
        count += check_tree(c, depth + 1, arena);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct cairn_error err = { 0 };
    struct yaml_node *root = NULL;
    if (yaml_parse("f.yaml", text, size, &arena, &root, &err))
        FUZZ_REQUIRE(!root && !strncmp(err.msg, "f.yaml:", 7));
    else
        FUZZ_REQUIRE(check_tree(root, 1, &arena) <= YAML_MOST_NODES);
    return 0;
}
