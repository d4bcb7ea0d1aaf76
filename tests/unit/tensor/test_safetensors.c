/* SPDX-License-Identifier: Apache-2.0
 * The format's rules one by one, then files cut at every byte, shards, and a writer whose every call fails once. */
#include "tensor/safetensors.h"

#include "os/fault.h"
#include "check.h"
#include "tensor/source.h"
#include "tree.h"
#include <errno.h>

static struct tree tree;

/* A file with this header and n bytes of data 0, 1, 2 …; length 0 means the header's own. */
static const char *put(const char *name, const char *header, uint64_t length, size_t n)
{
    char bytes[4096];
    size_t len = strlen(header);
    if (!length)
        length = len;
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, len);
    for (size_t i = 0; i < n; i++)
        bytes[8 + len + i] = (char)i;
    tree_put_bytes(&tree, name, bytes, 8 + len + n);
    return tree_path(&tree, name);
}

#define T(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

/* Each row is a header and the size of its data; `says` is part of the refusal, NULL where it must be accepted. */
static const struct {
    const char *header;
    size_t data;
    const char *says;
} rules[] = {
    { "{}", 0, NULL },
    { "{}  \n ", 0, NULL },
    { "{" T("a", "F32", "[2,3]", 0, 24) "}", 24, NULL },
    { "{" T("a", "F32", "[]", 0, 4) "}", 4, NULL },
    { "{" T("a", "F32", "[0,3]", 0, 0) "}", 0, NULL },
    { "{" T("b", "U8", "[1]", 1, 2) "," T("a", "U8", "[1]", 0, 1) "}", 2, NULL },
    { "{" T("e", "I64", "[0]", 1, 1) "," T("b", "U8", "[1]", 1, 2) "," T("a", "U8", "[1]", 0, 1) "}", 2,
      NULL },
    { "{" T("a", "F4", "[2]", 0, 1) "}", 1, NULL },
    { "{" T("a", "F8_E8M0", "[3]", 0, 3) "}", 3, NULL },
    { "{" T("a", "C64", "[1]", 0, 8) "}", 8, NULL },
    { "{" T("a", "F2_FUTURE", "[1]", 0, 5) "}", 5, NULL },
    { "{\"__metadata__\":{\"k\":\"v\"}," T("a", "U8", "[1]", 0, 1) "}", 1, NULL },
    { "{" T("\\u00e9 / \\\"x\\\"", "BOOL", "[1]", 0, 1) "}", 1, NULL },

    { "{" T("a", "F32", "[4]", 0, 16) "}", 12, "truncated" },
    { "{" T("a", "F32", "[4]", 0, 12) "}", 12, "do not take 12 bytes" },
    { "{" T("a", "F32", "[1]", 0, 4) "," T("b", "F32", "[1]", 0, 4) "}", 4, "inside another tensor's" },
    { "{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[1]", 4, 8) "}", 8, "inside another tensor's" },
    { "{" T("a", "F32", "[1]", 4, 8) "}", 8, "leaves a hole" },
    { "{" T("a", "F32", "[1]", 0, 4) "}", 9, "5 bytes after the last tensor" },
    { "{" T("a", "F32", "[1]", 4, 0) "}", 4, "data_offsets must be" },
    { "{" T("a", "F4", "[3]", 0, 2) "}", 2, "do not take" },
    { "{" T("a", "F32", "[4611686018427387904,8]", 0, 0) "}", 0, "overflows" },
    { "{" T("a", "F64", "[2305843009213693952]", 0, 0) "}", 0, "overflows" },
    { "{" T("a", "F32", "[-1]", 0, 4) "}", 4, "shape[0] is not" },
    { "{" T("a", "F32", "[1.0]", 0, 4) "}", 4, "shape[0] is not" },
    { "{" T("a", "F32", "\"1\"", 0, 4) "}", 4, "shape must be a list" },
    { "{" T("a", "F32", "[1]", -4, 4) "}", 4, "data_offsets must be" },
    { "{" T("a", "F32", "[1]", 0, 99999999999999999999) "}", 4, "header: " },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "data_offsets must be" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets must be" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "shape must be a list" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype" },
    { "{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype" },
    { "{\"a\":7}", 0, "no dtype" },
    { "{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 0, 1) "}", 1, "duplicate" },
    { "{\"__metadata__\":{\"k\":1}}", 0, "k is not a string" },
    { "{\"__metadata__\":[]}", 0, "__metadata__ must be an object" },
    { "{\"__metadata__\":{\"k\":\"\\u0000\"}}", 0, "header: " },
    { "{" T("a\\u0000b", "U8", "[1]", 0, 1) "}", 1, "header: " },
    { "{" T("a\xff", "U8", "[1]", 0, 1) "}", 1, "header: " },
    { "{\"a\":", 0, "header: " },
    { "{} x", 0, "header: " },
    { "[]", 0, "not a JSON object" },
    { "7", 0, "header: " },
};

static void each_rule(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct st_file f;
        struct cairn_error err = { 0 };
        const char *path = put("rule", rules[i].header, 0, rules[i].data);
        int r = st_open(&f, path, &err);
        if ((r == 0) != !rules[i].says)
            CHECK_FAIL_("%s: %s", rules[i].header, r ? err.msg : "accepted");
        if (r && rules[i].says) {
            CHECK_HAS(err.msg, rules[i].says);
            CHECK_HAS(err.msg, "/rule: ");
            CHECK_INT(err.code, CAIRN_EFORMAT);
            CHECK_INT(f.n_tensors, 0);
        }
        if (!r)
            st_close(&f);
    }
}

static void lengths_of_the_header(void)
{
    struct st_file f;
    struct cairn_error err = { 0 };
    CHECK(st_open(&f, put("long", "{}", 3, 0), &err) == -1);
    CHECK_HAS(err.msg, "truncated: header of 3 bytes in a file of 10");
    CHECK(st_open(&f, put("huge", "{}", (uint64_t)1 << 63, 0), &err) == -1);
    CHECK_HAS(err.msg, "not a safetensors file");
    CHECK(st_open(&f, put("over", "{}", ST_HEADER_MAX + 1, 0), &err) == -1);
    CHECK_HAS(err.msg, "not a safetensors file");
    tree_put_bytes(&tree, "empty", "", 0);
    CHECK(st_open(&f, tree_path(&tree, "empty"), &err) == -1);
    CHECK_HAS(err.msg, "0 bytes are too few");
    tree_put_bytes(&tree, "none", "\0\0\0\0\0\0\0\0", 8);
    CHECK(st_open(&f, tree_path(&tree, "none"), &err) == -1);
    CHECK(st_open(&f, tree.dir, &err) == -1);
    CHECK_HAS(err.msg, "is a directory");
}

static void a_long_shape(void)
{
    char header[2048] = "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[1";
    struct st_file f;
    struct cairn_error err = { 0 };
    for (int i = 1; i < ST_RANK_MAX; i++)
        strcat(header, ",1");
    size_t n = strlen(header);
    strcpy(header + n, "]}}");
    REQUIRE(st_open(&f, put("rank", header, 0, 1), &err) == 0);
    CHECK_INT(f.tensors[0].rank, ST_RANK_MAX);
    st_close(&f);
    strcpy(header + n, ",1]}}");
    CHECK(st_open(&f, put("rank", header, 0, 1), &err) == -1);
    CHECK_HAS(err.msg, "at most 64");
}

static const char small[] =
    "{\"__metadata__\":{\"k\":\"v\"}," T("w", "F32", "[2]", 0, 8) "," T("i", "I16", "[3]", 8, 14) "}";

/* A download that stopped: no prefix of a file is a file. */
static void cut_at_every_byte(void)
{
    char bytes[512];
    FILE *file = fopen(put("whole", small, 0, 14), "r");
    size_t n = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    CHECK_INT(n, 8 + strlen(small) + 14);
    for (size_t cut = 0; cut < n; cut++) {
        struct st_file f;
        struct cairn_error err = { 0 };
        tree_put_bytes(&tree, "cut", bytes, cut);
        CHECK(st_open(&f, tree_path(&tree, "cut"), &err) == -1);
        CHECK_HAS(err.msg, "/cut: ");
    }
}

static void finds_and_reads(void)
{
    struct st_file f;
    struct cairn_error err = { 0 };
    char bytes[14];
    REQUIRE(st_open(&f, put("read", small, 0, 14), &err) == 0);
    CHECK_INT(f.n_tensors, 2);
    CHECK_STR(st_meta_find(&f, "k"), "v");
    CHECK(!st_meta_find(&f, "l") && !st_find(&f, "x"));
    const struct st_tensor *i = st_find(&f, "i");
    REQUIRE(i && st_find(&f, "w"));
    CHECK_INT(i->dtype, DTYPE_I16);
    CHECK_INT(i->elements, 3);
    CHECK(st_read(&f, i, 1, 2, bytes, &err) == 0 && bytes[0] == 10 && bytes[3] == 13);
    CHECK(st_read(&f, i, 3, 0, bytes, &err) == 0);
    CHECK(st_read(&f, i, 2, 2, bytes, &err) == -1);
    CHECK(st_read(&f, i, 1, UINT64_MAX, bytes, &err) == -1);
    st_close(&f);
}

static void reads_as_another_type(void)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    struct cairn_error err = { 0 };
    double wide[2];
    REQUIRE(source_open(&s, put("read", small, 0, 14), &err) == 0);
    CHECK(source_read_as(&s, source_find(&s, "w"), 0, 2, DTYPE_F64, wide, &err) == 0);
    CHECK(source_read_as(&s, source_find(&s, "i"), 0, 2, DTYPE_F64, wide, &err) == -1);
    CHECK_HAS(err.msg, "i is I16");
}

/* The file shrinks after it was opened: the error names file, place and tensor. */
static void shrinks_while_read(void)
{
    struct st_file f;
    struct cairn_error err = { 0 };
    char bytes[16];
    const char *path = put("shrink", small, 0, 14);
    REQUIRE(st_open(&f, path, &err) == 0);
    CHECK(truncate(path, (off_t)(8 + strlen(small) + 10)) == 0);
    CHECK(st_read(&f, st_find(&f, "i"), 0, 3, bytes, &err) == -1);
    CHECK_HAS(err.msg, "/shrink is truncated: at byte");
    CHECK_HAS(err.hint, "tensor i");
    st_close(&f);
}

static void shards(void)
{
    struct st_file f;
    struct cairn_error err = { 0 };
    char byte;
    put("m/one", "{" T("a", "U8", "[2]", 0, 2) "}", 0, 2);
    put("m/two", "{" T("b", "U8", "[2]", 0, 2) "}", 0, 2);
    tree_put(&tree, "m/x.index.json", "{\"metadata\":{},\"weight_map\":{\"b\":\"two\",\"a\":\"one\"}}");
    REQUIRE(st_open(&f, tree_path(&tree, "m/x.index.json"), &err) == 0);
    CHECK_INT(f.n_shards, 2);
    CHECK_INT(f.n_tensors, 2);
    CHECK(st_read(&f, st_find(&f, "a"), 1, 1, &byte, &err) == 0 && byte == 1);
    CHECK(st_read(&f, st_find(&f, "b"), 1, 1, &byte, &err) == 0 && byte == 1);
    st_close(&f);
}

static void names_of_shards(void)
{
    static const struct {
        const char *path;
        unsigned number, of; /* 0: it is no shard */
    } rows[] = {
        { "a/b-00002-of-00006.safetensors", 2, 6 },
        { "m-x-1-of-2.safetensors", 1, 2 },
        { "a-1-of-2/b.safetensors", 0, 0 },
        { "m-00003-of-00002.safetensors", 0, 0 },
        { "m-00000-of-00002.safetensors", 0, 0 },
        { "m-1-of-2.safetensors.index.json", 0, 0 },
        { "m-1-of-2.pth", 0, 0 },
        { "m-x-of-2.safetensors", 0, 0 },
        { "m-1-of-.safetensors", 0, 0 },
        { "m-1-of-99999999.safetensors", 0, 0 },
        { "", 0, 0 },
        { "-", 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned number = 0, of = 0;
        size_t at;
        bool is = st_is_shard(rows[i].path, &number, &of, &at);
        if (is != (rows[i].of > 0) || (is && (number != rows[i].number || of != rows[i].of)))
            CHECK_FAIL_("%s", rows[i].path);
    }
}

static void one_shard_opens_all(void)
{
    static const char *const names[] = { "s/m-1-of-2.safetensors", "s/m-2-of-2.safetensors" };
    struct st_file f;
    struct cairn_error err = { 0 };
    put(names[0], "{" T("a", "U8", "[2]", 0, 2) "}", 0, 2);
    put(names[1], "{" T("b", "U8", "[2]", 0, 2) "}", 0, 2);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        REQUIRE(!st_open_siblings(&f, tree_path(&tree, names[i]), &err));
        CHECK(f.n_shards == 2 && st_find(&f, "a") && st_find(&f, "b"));
        st_close(&f);
        REQUIRE(!st_open(&f, tree_path(&tree, names[i]), &err));
        CHECK_INT(f.n_shards, 1);
        st_close(&f);
    }
    /* The same tensor twice, and a shard that is not there. */
    put(names[1], "{" T("a", "U8", "[2]", 0, 2) "}", 0, 2);
    CHECK(st_open_siblings(&f, tree_path(&tree, names[0]), &err));
    CHECK_INT(err.code, CAIRN_EFORMAT);
    unlink(tree_path(&tree, names[1]));
    CHECK(st_open_siblings(&f, tree_path(&tree, names[0]), &err));
    CHECK_HAS(err.msg, "m-2-of-2.safetensors");
}

static void wrong_indexes(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "", "x.index.json: " },
        { "{}", "no \"weight_map\"" },
        { "{\"weight_map\":[]}", "no \"weight_map\"" },
        { "{\"weight_map\":{\"a\":7}}", "the file of a is not a string" },
        { "{\"weight_map\":{\"a\":\"../one\"}}", "is not a file name" },
        { "{\"weight_map\":{\"a\":\"..\"}}", "is not a file name" },
        { "{\"weight_map\":{\"a\":\"\"}}", "is not a file name" },
        { "{\"weight_map\":{\"a\":\"gone\"}}", "No such file" },
        { "{\"weight_map\":{\"z\":\"one\"}}", "z is not in one" },
        { "{\"weight_map\":{\"a\":\"one\",\"b\":\"again\"}}", "tensor a is in " },
    };
    put("n/one", "{" T("a", "U8", "[2]", 0, 2) "}", 0, 2);
    put("n/again", "{" T("a", "U8", "[2]", 0, 2) "}", 0, 2);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct st_file f;
        struct cairn_error err = { 0 };
        tree_put(&tree, "n/x.index.json", rows[i].text);
        CHECK(st_open(&f, tree_path(&tree, "n/x.index.json"), &err) == -1);
        CHECK_HAS(err.msg, rows[i].says);
    }
}

static const uint64_t two[] = { 2 };
static const struct st_tensor list[] = {
    { .name = "z",
      .dtype = DTYPE_F32,
      .dtype_text = "F32",
      .shape = two,
      .rank = 1,
      .elements = 2,
      .bytes = 8 },
    { .name = "b",
      .dtype = DTYPE_U8,
      .dtype_text = "U8",
      .shape = two,
      .rank = 1,
      .elements = 2,
      .bytes = 2 },
    { .name = "a",
      .dtype = DTYPE_F32,
      .dtype_text = "F32",
      .shape = two,
      .rank = 1,
      .elements = 2,
      .bytes = 8 },
    { .name = "s", .dtype = DTYPE_I64, .dtype_text = "I64", .elements = 1, .bytes = 8 },
};
static const struct st_meta meta[] = { { "k", "v \"\xc3\xa9\"\n" } };

static int write_list(const char *path, enum st_order order, struct cairn_error *err)
{
    struct st_writer w;
    if (st_writer_open(&w, path,
                       &(struct st_contents){
                           .tensors = list, .n = ARRAY_LEN(list), .meta = meta, .n_meta = 1, .order = order },
                       true, err))
        return -1;
    int r = 0;
    for (size_t i = ARRAY_LEN(list); i-- && !r;) {
        char bytes[8];
        memset(bytes, (int)i + 1, sizeof(bytes));
        r = st_writer_put(&w, i, 0, bytes, list[i].bytes, err);
    }
    r = r || st_writer_commit(&w, err) ? -1 : 0;
    st_writer_close(&w);
    return r;
}

static void check_order(enum st_order order, const char *want)
{
    struct st_file f;
    struct cairn_error err = { 0 };
    char names[8] = "", bytes[8];
    const char *path = tree_path(&tree, "order");
    REQUIRE(write_list(path, order, &err) == 0);
    REQUIRE(st_open(&f, path, &err) == 0);
    for (size_t i = 0; i < f.n_tensors; i++)
        strcat(names, f.tensors[i].name);
    CHECK_STR(names, want);
    CHECK_STR(st_meta_find(&f, "k"), meta[0].value);
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        const struct st_tensor *t = st_find(&f, list[i].name);
        CHECK(t && t->dtype == list[i].dtype && t->rank == list[i].rank);
        CHECK(st_read(&f, t, 0, t->elements, bytes, &err) == 0 && bytes[t->bytes - 1] == (char)(i + 1));
        CHECK(order == ST_ORDER_GIVEN || t->at % dtype_size(t->dtype) == 0);
    }
    CHECK(f.shards[0].data_at % 8 == 0);
    st_close(&f);
}

/* Given, b's two bytes would leave the eight of a and s at odd places. */
static void writes_in_order(void)
{
    check_order(ST_ORDER_REFERENCE, "sazb");
    check_order(ST_ORDER_GIVEN, "zbas");
    check_order(ST_ORDER_ALIGNED, "szab");
}

static bool is_old(const char *path)
{
    char text[8] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
    if (f)
        fclose(f);
    return n == 3 && !memcmp(text, "old", 3);
}

/* The old file is whole and alone after any failure.  The last call, the flush of the directory, fails when the
 * new one is in place. */
static void every_call_of_the_writer_fails_once(void)
{
    const char *path = tree_path(&tree, "w/out");
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s/w", tree.dir);
    int nth = 0;
    for (bool reached = true; reached;) {
        struct cairn_error err = { 0 };
        tree_put(&tree, "w/out", "old");
        fault_arm(++nth, ENOSPC);
        int r = write_list(path, ST_ORDER_GIVEN, &err);
        reached = fault_disarm();
        CHECK_INT(r, reached ? -1 : 0);
        CHECK(!reached || strstr(err.msg, "No space left"));
        CHECK(is_old(path) == (reached && !strstr(err.msg, "the file is written")));
        CHECK_INT(tree_count(dir), 1);
        REQUIRE(nth < 100);
    }
    CHECK(nth > 10);
}

static void every_call_of_the_reader_fails_once(void)
{
    const char *path = put("fault", small, 0, 14);
    int nth = 0;
    for (bool reached = true; reached;) {
        struct st_file f = { 0 };
        struct cairn_error err = { 0 };
        float wide[2];
        fault_arm(++nth, EIO);
        int r = st_open(&f, path, &err);
        if (!r)
            r = st_read(&f, st_find(&f, "w"), 0, 2, wide, &err);
        reached = fault_disarm();
        CHECK_INT(r, reached ? -1 : 0);
        CHECK(!reached || strstr(err.msg, "Input/output error"));
        st_close(&f);
        REQUIRE(nth < 100);
    }
    CHECK(nth > 5);
}

int main(void)
{
    tree_make(&tree);
    RUN(each_rule);
    RUN(lengths_of_the_header);
    RUN(a_long_shape);
    RUN(cut_at_every_byte);
    RUN(finds_and_reads);
    RUN(reads_as_another_type);
    RUN(shrinks_while_read);
    RUN(shards);
    RUN(names_of_shards);
    RUN(one_shard_opens_all);
    RUN(wrong_indexes);
    RUN(writes_in_order);
    RUN(every_call_of_the_writer_fails_once);
    RUN(every_call_of_the_reader_fails_once);
    tree_remove(&tree);
    return check_done();
}
