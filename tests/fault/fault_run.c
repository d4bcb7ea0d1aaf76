/* SPDX-License-Identifier: Apache-2.0
 * An attempt in which each outside call fails once, in turn: it is refused with a message or carried through, nothing
 * of the child is left, and no descriptor stays open. */
#include "os/fault.h"
#include "check.h"
#include "run/attempt.h"
#include "run/known_good.h"
#include "run/tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char state[] = "/tmp/cairn-fault-XXXXXX";

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void ignore(void *context, const char *text)
{
    (void)context;
    (void)text;
}

static int attempt(struct attempt *out, struct cairn_error *err)
{
    static char echo[] = "/bin/echo", word[] = "# child";
    static char *const argv[] = { echo, word, NULL };
    static const char *const env[] = { "PATH=/bin", NULL };
    static const int forwarded[] = { SIGTERM };
    const struct message_sink messages = { .say = ignore };
    struct facts f = { .root.fd = -1 };
    struct memory_monitor g = { .root = &f.root };
    CLEANUP(journal_close) struct journal j = { 0 };
    CLEANUP(signals_close) struct signals s = { .fd = -1 };
    if (root_open(&f.root, NULL, err))
        return -1;
    int r = journal_open(&j, state, NULL, err);
    r = r ? r : signals_open(&s, forwarded, 1, err);
    const struct attempt_options o = {
        .argv = argv, .env = env, .monitor = &g, .journal = &j, .signals = &s, .messages = &messages
    };
    r = r ? r : attempt_run(&o, out, err);
    root_close(&f.root);
    return r;
}

static void every_call_of_an_attempt_may_fail(void)
{
    struct attempt result;
    struct cairn_error first = { 0 };
    REQUIRE(!attempt(&result, &first)); /* so that whatever is opened once is open */
    int before = open_descriptors(), nth = 0;
    for (bool reached = true; reached && nth < 500;) {
        struct cairn_error err = { 0 };
        struct tree t;
        result = (struct attempt){ .code = -1 };
        fault_arm(++nth, EMFILE);
        int r = attempt(&result, &err);
        reached = fault_disarm();
        if (r ? !err.msg[0] : result.code != 0)
            CHECK_FAIL_("call %d: returned %d, code %d, message \"%s\"", nth, r, result.code, err.msg);
        tree_read(&t, "/proc", getpid());
        CHECK_INT(t.n, 0);
        tree_release(&t);
        CHECK_INT(open_descriptors(), before);
    }
    CHECK(nth > 10 && nth < 500);
}

static void what_was_known_survives(void)
{
    const struct known_good_key key = { "m", "t", "", "", "", "" }, other = { "m", "other", "", "", "", "" };
    struct plan_var var = { .name = "A", .value = "1" };
    const struct known_good entry = { .class_id = "hang", .set = &var, .n_set = 1 };
    struct cairn_error err = { 0 };
    REQUIRE(!known_good_keep(state, &key, &entry, &err) && !known_good_keep(state, &other, &entry, &err));
    int nth = 0;
    for (bool reached = true; reached && nth < 500;) {
        struct arena a = { 0 };
        struct known_good *found;
        fault_arm(++nth, EIO);
        int r = known_good_keep(state, &key, &entry, &err);
        reached = fault_disarm();
        CHECK(!r || err.msg[0]);
        CHECK_INT(known_good_list(state, &key, &a, &found), 1);
        CHECK_INT(known_good_list(state, &other, &a, &found), 1);
        arena_release(&a);
    }
    CHECK(nth > 3 && nth < 500);
}

int main(void)
{
    if (!mkdtemp(state))
        return 1;
    RUN(every_call_of_an_attempt_may_fail);
    RUN(what_was_known_survives);
    char line[128];
    snprintf(line, sizeof(line), "rm -rf '%s'", state);
    return check_done() | (system(line) != 0);
}
