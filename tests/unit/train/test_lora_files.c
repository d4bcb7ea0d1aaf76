/* SPDX-License-Identifier: Apache-2.0 */
#include "train/lora_files.h"
#include "base/file.h"
#include "os/fault.h"
#include "os/file.h"

#include "check.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/cairn-lora-files-XXXXXX", from[200], to[200];
static struct cairn_error err;

static void only_our_names_match(void)
{
    static const char *const others[] = {
        "a.safetensors",           "a_1.safetensors", "a_b_000000001.safetensors", "a_000000001x.safetensors",
        "b_000000001.safetensors", "a_000000001"
    };
    struct lora_files f = { LORA_FILES_AI_TOOLKIT, dir, "a" };
    struct lora_files_stamp s;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(!lora_files_parse(&f, others[i], &s));
    CHECK(lora_files_parse(&f, "a_000000012_high_noise.safetensors", &s) && s.number == 12);
    f.style = LORA_FILES_MUSUBI;
    CHECK(lora_files_parse(&f, "a-000003.safetensors", &s) && s.kind == LORA_FILES_EPOCH && s.number == 3);
    CHECK(lora_files_parse(&f, "a-step00000250.safetensors", &s) && s.kind == LORA_FILES_STEP);
}

static ino_t inode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

/* Whichever call fails first, a copy or the link is there in the end. */
static void copies_where_links_fail(void)
{
    struct lora_files f = { LORA_FILES_MUSUBI, dir, "a" };
    struct lora_files_stamp s = { .kind = LORA_FILES_LAST, .suffix = "" };
    bool copied = false, hit = true;
    for (int nth = 1; hit && nth < 40; nth++) {
        unlink(to);
        fault_arm(nth, EPERM);
        int r = lora_files_put(&f, &s, from, &err);
        hit = fault_disarm();
        char *text = NULL;
        size_t n = 0;
        CHECK(r == 0);
        if (!r && !file_read_whole(to, 100, &text, &n, &err))
            CHECK(n == 5 && !memcmp(text, "bytes", 5));
        copied = copied || (inode_of(to) && inode_of(to) != inode_of(from));
        free(text);
    }
    CHECK(copied && inode_of(to) == inode_of(from));
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    snprintf(from, sizeof(from), "%s/from", dir);
    snprintf(to, sizeof(to), "%s/a.safetensors", dir);
    if (file_write(from, "bytes", 5, &err))
        return 1;
    RUN(only_our_names_match);
    RUN(copies_where_links_fail);
    os_remove_folder(dir);
    return check_done();
}
