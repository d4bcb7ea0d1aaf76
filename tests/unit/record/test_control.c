/* SPDX-License-Identifier: Apache-2.0 */
#include "record/control.h"

#include "check.h"
#include "os/fault.h"
#include "record/runs.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tree tree;
static struct arena arena;

/* A new folder of a run. */
static const char *new_run(void)
{
    static int number;
    char relative[32];
    snprintf(relative, sizeof(relative), "run-%d", number++);
    tree_path(&tree, arena_printf(&arena, "%s/x", relative));
    return arena_printf(&arena, "%s/%s", tree.dir, relative);
}

/* Replaces the file as others should. */
static void put(const char *dir, const char *text)
{
    char *to = arena_printf(&arena, "%s/" CONTROL_FILE, dir), *from = arena_printf(&arena, "%s.new", to);
    FILE *f = fopen(from, "w");
    REQUIRE(f);
    fputs(text, f);
    CHECK(!fclose(f) && !rename(from, to));
}

static void put_obeyed(const char *dir, uint64_t seq)
{
    struct run_info info = { .name = "run", .state = RUN_RUNNING, .control_seq = seq };
    struct cairn_error err = { 0 };
    CHECK(!run_info_write(dir, &info, &err));
}

/* What the training sees of a file. */
static int look_at(const char *text, struct control_order *out, struct cairn_error *err)
{
    struct control c;
    const char *dir = new_run();
    put(dir, text);
    control_init(&c, dir, 0, &arena);
    *out = (struct control_order){ 0 };
    return control_look(&c, out, err);
}

static void orders_are_read(void)
{
    struct control_order o;
    struct cairn_error err = { 0 };
    CHECK_INT(look_at("{\"seq\":7,\"save\":true,\"sample\":false,\"stop_at_step\":500}", &o, &err), 1);
    CHECK(o.seq == 7 && o.save && !o.sample && o.stop == CONTROL_STOP_AT && o.stop_at_step == 500);
    CHECK_INT(look_at("{\"seq\":1,\"sample\":true}\n", &o, &err), 1);
    CHECK(o.seq == 1 && !o.save && o.sample && o.stop == CONTROL_STOP_SAME);
    CHECK_INT(look_at("{\"seq\":1,\"save\":null,\"stop_at_step\":null}", &o, &err), 1);
    CHECK(!o.save && o.stop == CONTROL_STOP_NONE);
    CHECK_INT(look_at("{\"stop_at_step\":0,\"seq\":2}", &o, &err), 1);
    CHECK(o.stop == CONTROL_STOP_AT && !o.stop_at_step);
}

static void wrong_files_are_told(void)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        { "", CONTROL_FILE },
        { "{\"seq\":1,", CONTROL_FILE },
        { "[1]", "not an object" },
        { "{\"save\":true}", "\"seq\" must be a number above 0" },
        { "{\"seq\":0,\"save\":true}", "\"seq\" must be" },
        { "{\"seq\":-3}", "\"seq\" must be" },
        { "{\"seq\":1.5}", "\"seq\" must be" },
        { "{\"seq\":\"1\"}", "\"seq\" must be" },
        { "{\"seq\":99999999999999999999}", CONTROL_FILE },
        { "{\"seq\":1,\"seq\":2}", CONTROL_FILE },
        { "{\"seq\":1,\"save\":1}", "\"save\" must be true or false" },
        { "{\"seq\":1,\"sample\":\"yes\"}", "\"sample\" must be true or false" },
        { "{\"seq\":1,\"stop_at_step\":-1}", "\"stop_at_step\" must be a step or null" },
        { "{\"seq\":1,\"stop_at_step\":true}", "\"stop_at_step\" must be" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct control_order o;
        struct cairn_error err = { 0 };
        if (look_at(cases[i].text, &o, &err) != -1 || !strstr(err.msg, cases[i].told) || o.seq)
            CHECK_FAIL_("%s: %s", cases[i].text, err.msg);
    }
}

/* Once until there is a good one; and it can come after a bad one. */
static void bad_files_are_told_once(void)
{
    struct control c;
    struct control_order o;
    struct cairn_error err = { 0 };
    const char *dir = new_run();
    control_init(&c, dir, 0, &arena);
    CHECK_INT(control_look(&c, &o, &err), 0);
    put(dir, "{");
    CHECK_INT(control_look(&c, &o, &err), -1);
    CHECK_INT(control_look(&c, &o, &err), 0);
    put(dir, "{\"seq\"}");
    CHECK_INT(control_look(&c, &o, &err), 0);
    put(dir, "{\"seq\":1,\"save\":true}");
    CHECK_INT(control_look(&c, &o, &err), 1);
    put(dir, "bad");
    CHECK_INT(control_look(&c, &o, &err), -1);
}

static void orders_are_obeyed_once(void)
{
    struct control c;
    struct control_order o;
    struct cairn_error err = { 0 };
    const char *dir = new_run();
    control_init(&c, dir, 4, &arena);
    put(dir, "{\"seq\":4,\"save\":true}");
    CHECK_INT(control_look(&c, &o, &err), 0); /* by an earlier process */
    put(dir, "{\"seq\":6,\"save\":true}");
    CHECK_INT(control_look(&c, &o, &err), 1);
    CHECK_INT(control_look(&c, &o, &err), 0);
    put(dir, "{\"seq\":6,\"save\":true}"); /* the same in another file */
    CHECK_INT(control_look(&c, &o, &err), 0);
    put(dir, "{\"seq\":5,\"save\":true}");
    CHECK_INT(control_look(&c, &o, &err), -1);
    CHECK_HAS(err.msg, "\"seq\" is 5, but the last order had 6");
    CHECK(!unlink(arena_printf(&arena, "%s/" CONTROL_FILE, dir)));
    CHECK_INT(control_look(&c, &o, &err), 0);
    put(dir, "{\"seq\":7,\"sample\":true}");
    CHECK_INT(control_look(&c, &o, &err), 1);
    CHECK(o.seq == 7 && o.sample && c.obeyed == 7);
}

/* The file is read only if it is another: one of the same size and time is not opened, whatever it says. */
static void a_file_is_read_when_it_changes(void)
{
    struct control c;
    struct control_order o;
    struct cairn_error err = { 0 };
    const char *dir = new_run(), *path = arena_printf(&arena, "%s/" CONTROL_FILE, dir);
    put(dir, "{\"seq\":1,\"save\":true}");
    control_init(&c, dir, 0, &arena);
    CHECK_INT(control_look(&c, &o, &err), 1);
    struct stat st;
    REQUIRE(!stat(path, &st));
    int fd = open(path, O_WRONLY);
    CHECK(write(fd, "{\"seq\":2", 8) == 8);
    struct timespec times[2] = { st.st_mtim, st.st_mtim };
    CHECK(!futimens(fd, times));
    close(fd);
    CHECK_INT(control_look(&c, &o, &err), 0);
    /* One call fails: it is the stat, and there is no other. */
    fault_arm(1, EIO);
    CHECK_INT(control_look(&c, &o, &err), 0);
    CHECK(fault_disarm());
    fault_arm(2, EIO);
    CHECK_INT(control_look(&c, &o, &err), 0);
    CHECK(!fault_disarm());
    put(dir, "{\"seq\":2,\"save\":true}"); /* the same size, another file */
    CHECK(!utimensat(AT_FDCWD, path, times, 0));
    CHECK_INT(control_look(&c, &o, &err), 1);
}

static void unknown_keys_are_told_once(void)
{
    struct control c;
    struct control_order o;
    struct cairn_error err = { 0 };
    const char *dir = new_run();
    control_init(&c, dir, 0, &arena);
    put(dir, "{\"pause\":true,\"seq\":1,\"save\":true,\"later\":1}");
    CHECK_INT(control_look(&c, &o, &err), 1);
    CHECK(o.save);
    CHECK_STR(c.unknown, "pause");
    put(dir, "{\"later\":true,\"seq\":2,\"sample\":true}");
    CHECK_INT(control_look(&c, &o, &err), 1);
    CHECK(o.sample);
    CHECK_STR(c.unknown, "");
}

/* A pipe or a folder in its place does not stop the training. */
static void other_things_are_no_orders(void)
{
    struct control c;
    struct control_order o;
    struct cairn_error err = { 0 };
    for (int i = 0; i < 2; i++) {
        const char *dir = new_run(), *path = arena_printf(&arena, "%s/" CONTROL_FILE, dir);
        CHECK(i ? !mkfifo(path, 0600) : !mkdir(path, 0700));
        control_init(&c, dir, 0, &arena);
        CHECK_INT(control_look(&c, &o, &err), -1);
        CHECK_INT(control_look(&c, &o, &err), 0);
    }
}

/* ---- writing ---- */

static struct control_order read_back(const char *dir, uint64_t obeyed)
{
    struct control c;
    struct control_order o = { 0 };
    struct cairn_error err = { 0 };
    control_init(&c, dir, obeyed, &arena);
    CHECK_INT(control_look(&c, &o, &err), 1);
    CHECK_STR(c.unknown, "");
    return o;
}

static void what_is_written_is_read(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_run();
    uint64_t seq;
    struct control_order stop = { .save = true, .stop = CONTROL_STOP_AT, .stop_at_step = 90 };
    CHECK(!control_write(dir, &stop, &seq, &err));
    CHECK_INT(seq, 1);
    struct control_order o = read_back(dir, 0);
    CHECK(o.seq == 1 && o.save && !o.sample && o.stop == CONTROL_STOP_AT && o.stop_at_step == 90);
    put_obeyed(dir, 1);
    CHECK(!control_write(dir, &(struct control_order){ .sample = true }, &seq, &err));
    CHECK_INT(seq, 2);
    o = read_back(dir, 1);
    CHECK(!o.save && o.sample && o.stop == CONTROL_STOP_SAME); /* the old stop remains */
    put_obeyed(dir, 2);
    CHECK(!control_write(dir, &(struct control_order){ .stop = CONTROL_STOP_NONE }, NULL, &err));
    o = read_back(dir, 2);
    CHECK(!o.save && !o.sample && o.stop == CONTROL_STOP_NONE);
    CHECK_INT(tree_count(dir), 2);
}

/* What the run has not seen yet is not lost. */
static void waiting_orders_are_kept(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_run();
    uint64_t seq;
    put_obeyed(dir, 10);
    CHECK(!control_write(dir, &(struct control_order){ .save = true }, &seq, &err));
    CHECK_INT(seq, 11);
    struct control_order stop = { .stop = CONTROL_STOP_AT, .stop_at_step = 50 };
    CHECK(!control_write(dir, &stop, &seq, &err) && seq == 12);
    CHECK(!control_write(dir, &(struct control_order){ .sample = true }, &seq, &err) && seq == 13);
    struct control_order o = read_back(dir, 10);
    CHECK(o.seq == 13 && o.save && o.sample && o.stop == CONTROL_STOP_AT && o.stop_at_step == 50);
    put(dir, "damaged");
    CHECK(!control_write(dir, &(struct control_order){ .sample = true }, &seq, &err));
    CHECK_INT(seq, 11);
}

static void many_write_at_once(void)
{
    enum { WRITERS = 4, EACH = 25 };
    const char *dir = new_run();
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            struct cairn_error err = { 0 };
            int bad = 0;
            for (int k = 0; k < EACH; k++)
                bad |= control_write(dir, &(struct control_order){ .save = i == 0, .sample = i == 1 }, NULL,
                                     &err);
            _exit(bad ? 1 : 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
    struct control_order o = read_back(dir, 0);
    CHECK_INT(o.seq, WRITERS * EACH);
    CHECK(o.save && o.sample);
    CHECK_INT(tree_count(dir), 1);
}

static void is_replaced_whole(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_run();
    struct control_order save = { .save = true };
    CHECK(!control_write(dir, &save, NULL, &err));
    for (int nth = 1;; nth++) {
        fault_arm(nth, ENOSPC);
        int r = control_write(dir, &save, NULL, &err);
        if (!fault_disarm()) {
            CHECK(r == 0 && nth > 3);
            break;
        }
        struct control_order o = read_back(dir, 0);
        CHECK(o.seq >= 1 && o.save);
        CHECK_INT(tree_count(dir), 1);
    }
    CHECK(control_write(arena_printf(&arena, "%s/nowhere", dir), &save, NULL, &err) == -1);
    CHECK_HAS(err.msg, "nowhere");
    put(dir, "{\"seq\":9223372036854775807}");
    CHECK(control_write(dir, &save, NULL, &err) == -1);
    CHECK_HAS(err.msg, "cannot become larger");
}

static void texts(void)
{
    struct control_order o = {
        .seq = 1, .save = true, .sample = true, .stop = CONTROL_STOP_AT, .stop_at_step = 9
    };
    CHECK_STR(control_text(&o, 5, &arena), "save, sample, stop at step 9");
    CHECK_STR(control_text(&o, 9, &arena), "save, sample, stop");
    CHECK_STR(control_text(&(struct control_order){ .stop = CONTROL_STOP_NONE }, 5, &arena), "do not stop");
    CHECK_STR(control_text(&(struct control_order){ 0 }, 5, &arena), "nothing");
}

int main(void)
{
    tree_make(&tree);
    RUN(orders_are_read);
    RUN(wrong_files_are_told);
    RUN(bad_files_are_told_once);
    RUN(orders_are_obeyed_once);
    RUN(a_file_is_read_when_it_changes);
    RUN(unknown_keys_are_told_once);
    RUN(other_things_are_no_orders);
    RUN(what_is_written_is_read);
    RUN(waiting_orders_are_kept);
    RUN(many_write_at_once);
    RUN(is_replaced_whole);
    RUN(texts);
    tree_remove(&tree);
    arena_release(&arena);
    return check_done();
}
