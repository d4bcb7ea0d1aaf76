/* SPDX-License-Identifier: Apache-2.0
 * Any text as a key: what is understood can be written in the same dialect and is understood the same again. */
#include "tensor/lora_names.h"

#include "base/cleanup.h"
#include "fuzz.h"

static void check_written(const struct lora_name *n)
{
    for (int d = LORA_MUSUBI; d < LORA_DIALECT_COUNT; d++) {
        char key[2 * LORA_NAME_MAX];
        struct lora_name again;
        struct cairn_error err = { 0 };
        if (lora_name_format(n->module, n->part, (enum lora_dialect)d, key, sizeof(key), &err)) {
            FUZZ_REQUIRE(err.msg[0] && (!n->known || n->part >= LORA_ALPHA));
            continue;
        }
        FUZZ_REQUIRE(n->known && !lora_name_parse(key, &again, &err));
        FUZZ_REQUIRE(again.known && !strcmp(again.module, n->module) && again.part == n->part);
        FUZZ_REQUIRE(again.dialect == (enum lora_dialect)d && again.expert == 0);
    }
}

static void check_base(const char *key)
{
    char module[LORA_NAME_MAX];
    bool is_bias;
    if (!lora_base_name(key, module, &is_bias))
        return;
    size_t len = strlen(key);
    FUZZ_REQUIRE(*module && strlen(module) < LORA_NAME_MAX);
    FUZZ_REQUIRE(!strcmp(is_bias ? key + len - 5 : key + len - 7, is_bias ? ".bias" : ".weight"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *key = fuzz_text(data, size);
    struct lora_name n;
    struct cairn_error err = { 0 };
    if (lora_name_parse(key, &n, &err)) {
        FUZZ_REQUIRE(err.msg[0]);
    } else {
        FUZZ_REQUIRE(*n.module && strlen(n.module) < sizeof(n.module) && n.part < LORA_PART_COUNT);
        FUZZ_REQUIRE(lora_module_compare(n.module, n.module) == 0);
        check_written(&n);
    }
    check_base(key);
    return 0;
}
