/* SPDX-License-Identifier: Apache-2.0
 * Pickles written by hand, opcode by opcode; Python's pickletools explains them. */
#include "tensor/torch_pickle.h"

#include "check.h"

static struct arena arena;
static struct cairn_error err;
static struct torch_named *found;
static size_t n_found;

static int read_bytes(const void *bytes, size_t n)
{
    arena_release(&arena);
    err = (struct cairn_error){ 0 };
    found = NULL;
    n_found = 0;
    return torch_pickle_read(bytes, n, &arena, &found, &n_found, &err);
}

/* A string literal without its NUL. */
#define READ(text) read_bytes((text), sizeof(text) - 1)

#define REFUSED(text, why)              \
    do {                                \
        if (!READ(text))                \
            CHECK_FAIL_("it was read"); \
        CHECK_HAS(err.msg, why);        \
    } while (0)

#define STORAGE "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\6tQ"
#define TENSOR                                     \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE \
    "K\1K\2K\3\206K\3K\1\206\211ccollections\nOrderedDict\n)RtR"

static void reads_a_tensor(void)
{
    CHECK_INT(READ("\x80\2" TENSOR "."), 0);
    REQUIRE(n_found == 1);
    const struct torch_view *v = found[0].view;
    CHECK_STR(found[0].name, "tensor");
    CHECK_STR(v->type->safetensors, "F32");
    CHECK_STR(v->storage->key, "0");
    CHECK_INT(v->storage->n, 6);
    CHECK_INT(v->offset, 1);
    CHECK_INT(v->rank, 2);
    CHECK(v->shape[0] == 2 && v->shape[1] == 3 && v->stride[0] == 3 && v->stride[1] == 1);
}

static void reads_a_parameter_and_a_typed_view_of_bytes(void)
{
    CHECK_INT(READ("\x80\2ctorch._utils\n_rebuild_parameter\n" TENSOR "\210N\207R."), 0);
    CHECK_INT(n_found, 1);
    CHECK_INT(
        READ("\x80\2ctorch._utils\n_rebuild_tensor_v3\n((X\7\0\0\0storagectorch.storage\nUntypedStorage\n"
             "X\1\0\0\0009X\3\0\0\0cpuK\4tQK\0K\4\205K\1\205\211Nctorch\nfloat8_e4m3fn\ntR."),
        0);
    REQUIRE(n_found == 1);
    CHECK_STR(found[0].view->type->safetensors, "F8_E4M3");
}

static void joins_names_with_dots(void)
{
    CHECK_INT(READ("\x80\2}(X\1\0\0\0a}(X\3\0\0\0b.c" TENSOR "K\7](NN" TENSOR "euu."), 0);
    REQUIRE(n_found == 2);
    CHECK_STR(found[0].name, "a.b.c");
    CHECK_STR(found[1].name, "a.7.2");
}

static void passes_over_plain_values(void)
{
    CHECK_INT(
        READ("\x80\4\x95\0\0\0\0\0\0\0\0}(\x8c\1i\x8a\x09\1\2\3\4\5\6\7\x08\x09\x8c\1lJ\xff\xff\xff\xff\x8c\1"
             "fG?\xf0\0\0\0\0\0\0\x8c\1bC\3abc\x8c\1tN\x88\x89\x87\x8c\1s\x8f(K\1M\1\2\x90\x8c\1e)u\x94."),
        0);
    CHECK_INT(n_found, 0);
}

static void shares_through_the_memo(void)
{
    CHECK_INT(READ("\x80\2}(X\1\0\0\0a" TENSOR "q\5X\1\0\0\0bh\5u."), 0);
    CHECK_INT(n_found, 2);
    CHECK(found[0].view == found[1].view);
    CHECK_INT(READ("\x80\4](" TENSOR "\x94h\0e."), 0);
    CHECK_INT(n_found, 2);
}

static void keeps_an_ordered_dict_and_drops_its_attributes(void)
{
    CHECK_INT(READ("\x80\2ccollections\nOrderedDict\n)R(X\1\0\0\0w" TENSOR "u}X\1\0\0\0xNsb."), 0);
    REQUIRE(n_found == 1);
    CHECK_STR(found[0].name, "w");
}

static void refuses_every_other_name(void)
{
    REFUSED("\x80\2cos\nsystem\nX\4\0\0\0true\205R.", " load os.system");
    REFUSED("\x80\4\x8c\5posix\x8c\6system\x93\x8c\4true\x85R.", " load posix.system");
    REFUSED("\x80\2cbuiltins\neval\n.", " load builtins.eval");
    REFUSED("\x80\2ctorch\nload\n.", " load torch.load");
    REFUSED("\x80\2cos\n\033[31m\n.", "not plain text");
    /* Allowed as a value, not as a function. */
    REFUSED("\x80\2ctorch\nfloat32\n)R.", " call torch.float32");
    REFUSED("\x80\2ctorch\nSize\n)\x81.", "opcode 0x81");
    REFUSED("\x80\2(cos\nsystem\no.", " load os.system");
    REFUSED("\x80\2(ios\nsystem\n.", "opcode 0x69");
    REFUSED("\x80\2\x82\1.", "opcode 0x82");
    REFUSED("\x80\2" TENSOR "}b.", "attributes");
}

static void refuses_what_torch_does_not_write(void)
{
    REFUSED("\x80\2ctorch._utils\n_rebuild_tensor_v2\n)R.", "_rebuild_tensor_v2");
    REFUSED("\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE "J\xff\xff\xff\xff)))tR.",
            "_rebuild_tensor_v2");
    REFUSED("\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE "K\0K\1\205)tR.", "_rebuild_tensor_v2");
    REFUSED("\x80\2X\7\0\0\0storageQ.", "storage");
    REFUSED("\x80\2}(N" TENSOR "u.", "not plain text");
    REFUSED("\x80\2}(X\2\0\0\0a\0" TENSOR "u.", "not plain text");
    REFUSED("\x80\2}(X\1\0\0\0\xff" TENSOR "u.", "not plain text");
}

static void refuses_a_broken_program(void)
{
    REFUSED("", "truncated");
    REFUSED("\x80\2", "byte 2: the pickle is truncated");
    REFUSED("\x80\2.", "no value");
    REFUSED("\x80\2X\xff\xff\xff\xff.", "truncated");
    REFUSED("\x80\2\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "truncated");
    REFUSED("\x80\2\x8b\xff\xff\xff\x7f.", "truncated");
    REFUSED("\x80\2"
            "0.",
            "no value");
    REFUSED("\x80\2t.", "no mark");
    REFUSED("\x80\2(R.", "no value");
    REFUSED("\x80\2NNs.", "no value");
    REFUSED("\x80\2]NNs.", "found a list, expected a dict");
    REFUSED("\x80\2}(Nu.", "a key without a value");
    REFUSED("\x80\2](Na.", "found a mark, expected a list");
    REFUSED("\x80\2(\x85.", "a mark");
    REFUSED("\x80\2h\1.", "memo 1 was never set");
    REFUSED("\x80\2Nr\xff\xff\xff\xff.", "beyond");
    REFUSED("\x80\2cos", "name");
    REFUSED("\x80\2NNR.", "a call of None with None");
}

/* A list that holds itself, and lists that hold the next one twice, thirty levels deep. */
static void refuses_endless_containers(void)
{
    REFUSED("\x80\2]q\0h\0a.", "contains itself");
    char text[1024] = "\x80\2]";
    size_t n = 3;
    for (int i = 0; i < 30; i++) {
        memcpy(text + n, "q\1](h\1h\1e", 9);
        n += 9;
    }
    text[n++] = '.';
    CHECK(read_bytes(text, n));
    CHECK_HAS(err.msg, "too often");
    memset(text, ']', sizeof(text));
    for (n = 80; n < 160; n++)
        text[n] = 'a';
    text[n - 1] = '.';
    CHECK(read_bytes(text, n));
    CHECK_HAS(err.msg, "64 deep");
}

int main(void)
{
    RUN(reads_a_tensor);
    RUN(reads_a_parameter_and_a_typed_view_of_bytes);
    RUN(joins_names_with_dots);
    RUN(passes_over_plain_values);
    RUN(shares_through_the_memo);
    RUN(keeps_an_ordered_dict_and_drops_its_attributes);
    RUN(refuses_every_other_name);
    RUN(refuses_what_torch_does_not_write);
    RUN(refuses_a_broken_program);
    RUN(refuses_endless_containers);
    arena_release(&arena);
    return check_done();
}
