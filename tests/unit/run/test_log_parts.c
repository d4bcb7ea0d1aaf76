/* SPDX-License-Identifier: Apache-2.0
 * A rotated log as one text, against all that the recorder was given. */
#include "run/log_parts.h"

#include "base/cleanup.h"
#include "base/splitmix.h"
#include "base/str.h"
#include "check.h"
#include "run/recorder.h"
#include "tree.h"
#include <limits.h>

static struct tree tree;
static char path[PATH_MAX];
static uint64_t seed = 11;

/* The bytes of a range are those that were written there, or those of the line in the gap. */
static void check_range(const struct log_parts *p, const struct str *all, uint64_t offset, uint64_t limit)
{
    uint64_t at = log_parts_at(p, offset), n = log_parts_length(p, at, limit), where;
    uint64_t gap = p->size[0] + p->dropped - p->line_n, gap_end = p->size[0] + p->dropped;
    CLEANUP(mem_free) char *got = malloc(n + 1);
    REQUIRE(got != NULL);
    CHECK_INT(log_parts_read(p, at, got, n), n);
    CHECK(at >= offset || at == p->total);
    CHECK(at == offset || at == p->total || at == gap);
    for (uint64_t i = 0; i < n; i++) {
        bool in_gap = at + i >= gap && at + i < gap_end;
        CHECK(got[i] == (in_gap ? p->line[at + i - gap] : all->s[at + i]));
    }
    int fd = log_parts_find(p, at, n, &where);
    if (fd >= 0) {
        CLEANUP(mem_free) char *again = malloc(n + 1);
        REQUIRE(again != NULL);
        CHECK(pread(fd, again, n, (off_t)where) == (ssize_t)n && !memcmp(got, again, n));
    }
}

static void check_log(const struct str *all)
{
    CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
    REQUIRE(!log_parts_open(&p, path));
    CHECK_INT(p.total, all->len);
    for (int i = 0; i < 30; i++)
        check_range(&p, all, splitmix_next(&seed) % (all->len + 2),
                    splitmix_next(&seed) % (i % 2 ? 100 : 5000));
    /* All of it, as a client would that goes on from what it got. */
    CLEANUP(str_release) struct str read = { 0 };
    for (uint64_t at = 0, n; (at = log_parts_at(&p, at)) < p.total; at += n) {
        char piece[777];
        n = log_parts_length(&p, at, sizeof(piece));
        CHECK_INT(log_parts_read(&p, at, piece, n), n);
        str_addn(&read, piece, n);
    }
    CHECK_INT(read.len, all->len - p.dropped + p.line_n);
    CHECK(!p.dropped || (read.s && strstr(read.s, " bytes of the log were dropped here]\n")));
}

static void offsets_are_those_of_all_that_was_written(void)
{
    CLEANUP(str_release) struct str all = { 0 };
    struct cairn_error err;
    const struct recorder_options o = { .log = path, .rotate_bytes = 1000 };
    for (int round = 0; round < 60; round++) {
        struct recorder *r;
        REQUIRE(!recorder_start(&r, &o, &err));
        for (int i = (int)(splitmix_next(&seed) % 8); i > 0; i--) {
            char line[200];
            int n = snprintf(line, sizeof(line), "line %zu %*s\n", all.len, (int)(splitmix_next(&seed) % 150),
                             "");
            recorder_put(r, NULL, line, (size_t)n);
            str_addn(&all, line, (size_t)n);
        }
        recorder_stop(r);
        recorder_free(r);
        check_log(&all);
    }
    CHECK(all.len > 8000); /* so that parts were dropped */
}

static void a_log_that_does_not_exist_is_empty(void)
{
    CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
    char piece[8];
    REQUIRE(!log_parts_open(&p, "/no/such/log"));
    CHECK_INT(p.total, 0);
    CHECK_INT(log_parts_at(&p, 7), 0);
    CHECK_INT(log_parts_length(&p, 0, 8), 0);
    CHECK_INT(log_parts_read(&p, 0, piece, sizeof(piece)), 0);
}

static void what_is_no_file_is_refused(void)
{
    CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
    CHECK(log_parts_open(&p, tree.dir) == -1);
}

/* A number that somebody damaged does not count. */
static void a_damaged_number_is_none(void)
{
    static const char *const texts[] = { "", "x", "-5", "99999999999999999999", "18446744073709551615\n" };
    char log[PATH_MAX];
    snprintf(log, sizeof(log), "%s", tree_path(&tree, "other/log"));
    tree_put(&tree, "other/log", "abc");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
        tree_put(&tree, "other/log.dropped", texts[i]);
        REQUIRE(!log_parts_open(&p, log));
        CHECK_INT(p.total, 3);
    }
}

int main(void)
{
    tree_make(&tree);
    snprintf(path, sizeof(path), "%s/log", tree.dir);
    RUN(offsets_are_those_of_all_that_was_written);
    RUN(a_log_that_does_not_exist_is_empty);
    RUN(what_is_no_file_is_refused);
    RUN(a_damaged_number_is_none);
    tree_remove(&tree);
    return check_done();
}
