/* SPDX-License-Identifier: Apache-2.0
 * A pickle of any bytes: no crash, nothing outside the table of names, and tensors that are complete. */
#include "tensor/torch_pickle.h"

#include "fuzz.h"

static void check_tensor(const struct torch_named *t)
{
    FUZZ_REQUIRE(t->name && t->view && t->view->storage && t->view->storage->key && t->view->type);
    FUZZ_REQUIRE(t->view->rank >= 0 && t->view->rank <= TORCH_RANK_MAX);
    FUZZ_REQUIRE(t->view->type->size >= 1 && t->view->type->size <= 8);
    for (int i = 0; i < t->view->rank; i++)
        FUZZ_REQUIRE(t->view->shape[i] <= INT64_MAX && t->view->stride[i] <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(mem_free) char *bytes = fuzz_text(data, size);
    struct torch_named *found = NULL;
    struct cairn_error err = { 0 };
    size_t n = 0;
    if (torch_pickle_read(bytes, size, &a, &found, &n, &err)) {
        FUZZ_REQUIRE(err.msg[0] && err.code);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        check_tensor(&found[i]);
    return 0;
}
