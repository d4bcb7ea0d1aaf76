/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a TOML document: a tree within the limits, or a message that begins with the file. */
#include "base/toml.h"

#include "base/cleanup.h"
#include "fuzz.h"

static size_t check_tree(const struct yaml_node *n, int depth)
{
    size_t count = 1;
    FUZZ_REQUIRE(depth <= 2 * YAML_MOST_DEPTH && n->line >= 1 && n->column >= 1);
    FUZZ_REQUIRE((n->kind == YAML_SCALAR) == (n->text != NULL));
    if (n->text)
        FUZZ_REQUIRE(str_is_utf8(n->text) && !n->first);
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        FUZZ_REQUIRE((n->kind == YAML_MAP) == (c->key != NULL));
        if (c->key)
            count += check_tree(c->key, depth + 1);
        count += check_tree(c, depth + 1);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct cairn_error err = { 0 };
    struct yaml_node *root = NULL;
    if (toml_parse("f.toml", text, size, &arena, &root, &err))
        FUZZ_REQUIRE(!root && !strncmp(err.msg, "f.toml:", 7));
    else
        FUZZ_REQUIRE(check_tree(root, 1) <= YAML_MOST_NODES);
    return 0;
}
