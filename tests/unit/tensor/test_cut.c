/* SPDX-License-Identifier: Apache-2.0
 * A file that is cut, or grows, while it is open: every reader says so, and nothing is written. */
#include "check.h"
#include "lora_files.h"
#include "tensor/convert.h"
#include "tensor/diff.h"
#include "tensor/merge.h"
#include "tensor/scan.h"
#include "tree.h"
#include <fcntl.h>

static struct tree tree;
static char base_path[128], lora_path[128], out_path[128];

static void put_files(void)
{
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F32, 600, 700, 0, 1 },
                                        { "blocks.0.ffn.0.bias", DTYPE_F32, 600, 0, 0, 1 },
                                        { 0 } });
    put_file(lora_path,
             (struct put[]){ { "lora_unet_blocks_0_ffn_0.lora_down.weight", DTYPE_F32, 4, 700, 0, 1 },
                             { "lora_unet_blocks_0_ffn_0.lora_up.weight", DTYPE_F32, 600, 4, 0, 1 },
                             { 0 } });
    unlink(out_path);
}

static int scan(const struct tensor_source *base, const struct lora_file *lora, struct cairn_error *err)
{
    struct scan_stats stats[2];
    (void)lora;
    return scan_source(base, 0, stats, NULL, err);
}

static int convert(const struct tensor_source *base, const struct lora_file *lora, struct cairn_error *err)
{
    struct convert_options o = { .to = DTYPE_BF16 };
    struct convert_report report;
    (void)lora;
    return convert_file(base, out_path, &o, &report, err);
}

static int merge(const struct tensor_source *base, const struct lora_file *lora, struct cairn_error *err)
{
    struct merge_options o = { .scale = 1 };
    struct merge_report report;
    return merge_lora(base, lora, out_path, &o, &report, err);
}

static int diff(const struct tensor_source *base, const struct lora_file *lora, struct cairn_error *err)
{
    struct diff_options o = { 0 };
    struct diff_pair pair = { .a = &base->tensors[0], .b = &base->tensors[0] };
    (void)lora;
    return diff_pairs(base, base, &pair, 1, &o, err);
}

static void cut(const char *path)
{
    CHECK(!truncate(path, 1000));
}

static void grow(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
}

/* Opened whole, spoilt, then used. */
static void check_spoilt(int (*use)(const struct tensor_source *base, const struct lora_file *lora,
                                    struct cairn_error *err),
                         void (*spoil)(const char *path), const char *path)
{
    struct tensor_source base;
    struct lora_file lora;
    struct cairn_error err = { 0 };
    put_files();
    REQUIRE(!source_open(&base, base_path, &err) && !lora_open(&lora, lora_path, &err));
    spoil(path);
    CHECK(use(&base, &lora, &err) == -1);
    CHECK_HAS(err.msg, strrchr(path, '/') + 1);
    CHECK(access(out_path, F_OK));
    source_close(&base);
    lora_close(&lora);
}

static void every_reader_says_so(void)
{
    int (*const uses[])(const struct tensor_source *base, const struct lora_file *lora,
                        struct cairn_error *err) = { scan, convert, merge, diff };
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        check_spoilt(uses[i], cut, base_path);
        check_spoilt(uses[i], grow, base_path);
    }
    check_spoilt(merge, cut, lora_path);
    check_spoilt(merge, grow, lora_path);
}

static void a_whole_file_is_taken(void)
{
    struct tensor_source base;
    struct lora_file lora;
    struct cairn_error err = { 0 };
    put_files();
    REQUIRE(!source_open(&base, base_path, &err) && !lora_open(&lora, lora_path, &err));
    CHECK(!scan(&base, &lora, &err) && !diff(&base, &lora, &err) && !merge(&base, &lora, &err));
    CHECK(!access(out_path, F_OK));
    source_close(&base);
    lora_close(&lora);
}

int main(void)
{
    tree_make(&tree);
    strcpy(base_path, tree_path(&tree, "base.safetensors"));
    strcpy(lora_path, tree_path(&tree, "lora.safetensors"));
    strcpy(out_path, tree_path(&tree, "out.safetensors"));
    RUN(a_whole_file_is_taken);
    RUN(every_reader_says_so);
    tree_remove(&tree);
    return check_done();
}
