/* SPDX-License-Identifier: Apache-2.0
 * The database of jobs: rows, versions, the order against a plain model, claims of two programs at once. */
#include "job/store.h"

#include "base/splitmix.h"
#include "base/str.h"
#include "os/process.h"
#include "store_test.h"
#include <fcntl.h>
#include <sys/stat.h>

static struct cairn_error err;

static void rows_come_back_as_they_went(void)
{
    struct store *s = store_at(new_state("rows"));
    REQUIRE(s);
    const struct job_row row = {
        .uid = uid_of('a'),
        .name = "n'\"\xc3\xa4",
        .kind = JOB_TRAIN,
        .config = "a: 1\n",
        .argv = "[]",
        .cwd = "/x",
        .env = "{\"A\":\"1\"}",
        .options = "{\"steps\":3}",
        .gpu = "0,1",
        .gpu_used = "1",
        .state = JOB_FAILED,
        .attempt = 4,
        .pid = 7,
        .pid_start = 8,
        .boot_id = "boot",
        .run_dir = "/r",
        .has_exit = true,
        .exit_code = 3,
        .class_id = "oom",
        .cause = "why",
        .note = "note",
        .created = 10,
        .started = 11,
        .finished = 12,
    };
    struct job_row got;
    REQUIRE(!store_add(s, &row, &err));
    got = get_row(s, 'a');
    const char *const texts[][2] = {
        { got.uid, row.uid },         { got.name, row.name },       { got.config, row.config },
        { got.argv, row.argv },       { got.cwd, row.cwd },         { got.env, row.env },
        { got.options, row.options }, { got.gpu, row.gpu },         { got.gpu_used, row.gpu_used },
        { got.boot_id, row.boot_id }, { got.run_dir, row.run_dir }, { got.class_id, row.class_id },
        { got.cause, row.cause },     { got.note, row.note },       { got.parent, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        CHECK_STR(texts[i][0], texts[i][1]);
    CHECK(got.kind == JOB_TRAIN && got.state == JOB_FAILED && got.want == JOB_WANT_NOTHING && got.has_exit);
    CHECK_INT(got.attempt, 4);
    CHECK_INT(got.pid * 10 + got.pid_start, 78);
    CHECK_INT(got.exit_code, 3);
    CHECK_INT(got.created + got.started + got.finished, 33);
    CHECK_INT(got.version, 1);
    CHECK(store_add(s, &row, &err) == -1 && err.msg[0]);
    store_close(s);
}

static void jobs_are_found_by_uid_name_and_ending(void)
{
    struct store *s = store_at(new_state("find"));
    struct job_row row, second = row_named('c', JOB_DRAFT);
    REQUIRE(s);
    add_row(s, 'a', JOB_DRAFT);
    add_row(s, 'b', JOB_DRAFT);
    second.name = "job-b";
    REQUIRE(!store_add(s, &second, &err));
    static const struct {
        const char *word;
        char uid; /* 0: none */
        const char *message;
    } cases[] = {
        { "aaaaaaaaaaaaaaaa", 'a', NULL },
        { "aa", 'a', NULL },
        { "job-a", 'a', NULL },
        { "job-b", 0, "more than one" },
        { "ccc", 'c', NULL },
        { "ac", 0, "there is no job \"ac\"" },
        { "", 0, "empty" },
        { "%", 0, "there is no job" },
        { "aaaaaaaaaaaaaaaaa", 0, "there is no" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        err = (struct cairn_error){ 0 };
        int r = store_find(s, cases[i].word, &store_arena, &row, &err);
        if (cases[i].uid)
            CHECK(!r && row.uid[0] == cases[i].uid);
        else {
            CHECK_INT(r, -1);
            CHECK_INT(err.code, CAIRN_EUSAGE);
            CHECK_HAS(err.msg, cases[i].message);
        }
    }
    store_close(s);
}

static void lists_are_filtered(void)
{
    struct store *s = store_at(new_state("list"));
    struct job_row *rows;
    size_t n;
    REQUIRE(s);
    for (char c = 'a'; c <= 'f'; c++)
        add_row(s, c, c < 'd' ? JOB_FINISHED : JOB_QUEUED);
    static const struct {
        struct store_query q;
        const char *uids; /* their first characters, the newest first */
    } cases[] = {
        { { 0 }, "fedcba" },
        { { .states = 1u << JOB_FINISHED }, "cba" },
        { { .states = 1u << JOB_FINISHED | 1u << JOB_QUEUED, .limit = 2 }, "fe" },
        { { .before = "dddddddddddddddd" }, "cba" },
        { { .before = "dddddddddddddddd", .limit = 1 }, "c" },
        { { .text = "JOB-E" }, "e" },
        { { .text = "true" }, "fedcba" },
        { { .text = "nowhere" }, "" },
        { { .states = 1u << JOB_LOST }, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char got[16] = "";
        REQUIRE(!store_list(s, &cases[i].q, &store_arena, &rows, &n, &err));
        for (size_t k = 0; k < n; k++)
            got[k] = rows[k].uid[0];
        CHECK_STR(got, cases[i].uids);
    }
    store_close(s);
}

static int refuse(void *context, const struct job_row *row, struct cairn_error *e)
{
    (void)context;
    return cairn_fail(e, CAIRN_EIO, "no folder for %s", row->name);
}

static void edits_carry_a_version(void)
{
    struct store *s = store_at(new_state("edit"));
    const struct store_keeper keeper = { .keep = refuse };
    bool changed;
    REQUIRE(s);
    add_row(s, 'a', JOB_QUEUED);
    add_row(s, 'b', JOB_ACTIVE);
    REQUIRE(!store_edit(s, uid_of('a'), 1, &(struct store_edit){ .name = "one" }, NULL, &changed, &err));
    CHECK(changed);
    REQUIRE(!store_edit(s, uid_of('a'), 1, &(struct store_edit){ .name = "two" }, NULL, &changed, &err));
    CHECK(!changed);
    REQUIRE(!store_edit(s, uid_of('a'), 0, &(struct store_edit){ .note = "any" }, NULL, &changed, &err));
    CHECK(changed);
    CHECK_INT(get_row(s, 'a').version, 3);
    REQUIRE(!store_edit(s, uid_of('b'), 0, &(struct store_edit){ .name = "runs" }, NULL, &changed, &err));
    CHECK(!changed);
    CHECK_INT(store_edit(s, uid_of('a'), 3, &(struct store_edit){ .name = "kept" }, &keeper, &changed, &err),
              -1);
    CHECK_STR(err.msg, "no folder for kept");
    CHECK_STR(get_row(s, 'a').name, "one");
    CHECK_STR(get_row(s, 'a').note, "any");
    CHECK_INT(get_row(s, 'a').version, 3);
    store_close(s);
}

/* ---- order ---- */

enum { JOBS = 12 };

/* The same in an array. */
struct model {
    char order[JOBS + 1];
};

static void model_move(struct model *m, char c, char before)
{
    char *at = strchr(m->order, c);
    if (c == before)
        return;
    memmove(at, at + 1, strlen(at));
    size_t n = strlen(m->order), to = before ? (size_t)(strchr(m->order, before) - m->order) : n;
    memmove(m->order + to + 1, m->order + to, n - to + 1);
    m->order[to] = c;
}

static void order_in(struct store *s, char out[JOBS + 1])
{
    struct job_row *rows;
    size_t n;
    if (store_queue(s, &store_arena, &rows, &n, &err))
        CHECK_FAIL_("%s", err.msg);
    for (size_t i = 0; i < n; i++)
        out[i] = rows[i].uid[0];
    out[n] = '\0';
}

static void moves_agree_with_a_plain_list(void)
{
    struct store *s = store_at(new_state("moves"));
    struct model m = { "" };
    char got[JOBS + 1];
    uint64_t seed = 7;
    REQUIRE(s);
    for (int i = 0; i < JOBS; i++) {
        add_row(s, (char)('a' + i), i % 3 ? JOB_QUEUED : JOB_PAUSED);
        m.order[i] = (char)('a' + i);
    }
    for (int i = 0; i < 300; i++) {
        char c = (char)('a' + splitmix_next(&seed) % JOBS),
             before = (char)('a' + splitmix_next(&seed) % (JOBS + 1));
        bool last = before == 'a' + JOBS;
        REQUIRE(!store_move(s, uid_of(c), last ? NULL : uid_of(before), &err));
        model_move(&m, c, last ? 0 : before);
        order_in(s, got);
        if (strcmp(got, m.order) != 0) {
            CHECK_FAIL_("move %d: %s, want %s", i, got, m.order);
            break;
        }
    }
    store_close(s);
}

/* Always between the same two: halving would run out of numbers after some fifty. */
static void there_is_always_a_place_between_two(void)
{
    struct store *s = store_at(new_state("between"));
    char got[JOBS + 1];
    REQUIRE(s);
    for (char c = 'a'; c <= 'd'; c++)
        add_row(s, c, JOB_QUEUED);
    for (int i = 0; i < 120; i++)
        REQUIRE(!store_move(s, uid_of(i % 2 ? 'c' : 'd'), uid_of('b'), &err));
    order_in(s, got);
    CHECK_STR(got, "adcb");
    store_close(s);
}

static void only_waiting_jobs_have_a_place(void)
{
    struct store *s = store_at(new_state("place"));
    char got[JOBS + 1];
    REQUIRE(s);
    add_row(s, 'a', JOB_ACTIVE);
    add_row(s, 'b', JOB_QUEUED);
    add_row(s, 'c', JOB_QUEUED);
    add_row(s, 'd', JOB_FINISHED);
    static const struct {
        char c, before;
    } wrong[] = { { 'a', 'b' }, { 'b', 'a' }, { 'd', 0 }, { 'b', 'd' }, { 'b', 'z' }, { 'z', 'b' } };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        err = (struct cairn_error){ 0 };
        CHECK(store_move(s, uid_of(wrong[i].c), wrong[i].before ? uid_of(wrong[i].before) : NULL, &err) ==
                  -1 &&
              err.code == CAIRN_EUSAGE);
    }
    /* One that runs and is paused comes back before those that were behind it. */
    REQUIRE(!store_move(s, uid_of('c'), uid_of('b'), &err));
    REQUIRE(!store_set_state(s, uid_of('a'), 1u << JOB_ACTIVE, JOB_PAUSED, NULL, &err));
    order_in(s, got);
    CHECK_STR(got, "acb");
    store_close(s);
}

/* ---- claims ---- */

/* Lanes as in the queue: a wish is one lane, or "a,b" for both. */
static const char *choose(void *context, const struct job_row *job, const char *const *taken, size_t n)
{
    (void)context;
    for (size_t i = 0; i < n; i++)
        for (const char *p = job->gpu; *p; p++)
            if (*p != ',' && strchr(taken[i], *p))
                return NULL;
    return job->gpu;
}
static const struct store_lanes lanes = { .choose = choose };

static char claim(struct store *s)
{
    struct job_row row;
    bool found;
    if (store_claim(s, &lanes, &store_arena, &row, &found, &err))
        CHECK_FAIL_("%s", err.msg);
    return found ? row.uid[0] : '-';
}

static void add_wish(struct store *s, char c, const char *gpu)
{
    struct job_row row = row_named(c, JOB_QUEUED);
    row.gpu = gpu;
    if (store_add(s, &row, &err))
        CHECK_FAIL_("%s", err.msg);
}

static void two_programs_never_claim_the_same(void)
{
    const char *state = new_state("claims");
    struct store *one = store_at(state), *two = store_at(state);
    REQUIRE(one && two);
    add_wish(one, 'a', "0");
    add_wish(one, 'b', "0");
    add_wish(one, 'c', "1");
    CHECK_INT(claim(one), 'a');
    CHECK_INT(claim(two), 'c');
    CHECK_INT(claim(one), '-');
    CHECK_INT(claim(two), '-');
    struct job_row a = get_row(two, 'a');
    CHECK(a.state == JOB_STARTING && a.attempt == 1 && a.claims == 1 && a.since_ms > 0);
    CHECK_STR(a.gpu_used, "0");
    store_close(one);
    store_close(two);
}

static int hold_the_database(void *context, struct store *s, struct cairn_error *e)
{
    struct store *other = context;
    struct job_row row;
    bool found;
    (void)s;
    (void)e;
    err = (struct cairn_error){ 0 };
    CHECK_INT(store_claim(other, &lanes, &store_arena, &row, &found, &err), -1);
    CHECK_HAS(err.msg, "locked");
    CHECK_HAS(err.hint, "try again");
    CHECK(!found);
    return 0;
}

static void a_claim_waits_for_another_program(void)
{
    const char *state = new_state("locked");
    struct store *one = store_at(state), *two = store_at(state);
    REQUIRE(one && two);
    add_wish(one, 'a', "0");
    REQUIRE(!store_change(one, hold_the_database, two, &err));
    CHECK_INT(claim(two), 'a');
    store_close(one);
    store_close(two);
}

static void jobs_are_claimed_in_their_order(void)
{
    struct store *s = store_at(new_state("order"));
    REQUIRE(s);
    add_wish(s, 'a', "0,1");
    add_wish(s, 'b', "1");
    add_wish(s, 'c', "2");
    add_row(s, 'd', JOB_PAUSED);
    REQUIRE(!store_move(s, uid_of('d'), uid_of('a'), &err));
    CHECK_INT(claim(s), 'a');
    CHECK_INT(claim(s), 'c');
    CHECK_INT(claim(s), '-');
    store_close(s);
}

/* 'a' runs on 0; 'b' wants both; 'c' must not take 1 before it. */
static void nobody_overtakes_on_a_lane_that_is_waited_for(void)
{
    struct store *s = store_at(new_state("overtake"));
    const struct store_end end = { .state = JOB_FINISHED };
    REQUIRE(s);
    add_wish(s, 'a', "0");
    CHECK_INT(claim(s), 'a');
    add_wish(s, 'b', "0,1");
    add_wish(s, 'c', "1");
    CHECK_INT(claim(s), '-');
    REQUIRE(!store_set_end(s, uid_of('a'), 1, &end, NULL, &err));
    CHECK_INT(claim(s), 'b');
    CHECK_INT(claim(s), '-');
    store_close(s);
}

static void an_ended_job_with_a_process_keeps_its_lane(void)
{
    struct store *s = store_at(new_state("kept"));
    const struct os_process_id me = { .pid = 5, .start = 6, .boot = "b" };
    const struct store_end end = { .state = JOB_STOPPED, .keep_process = true };
    bool changed;
    REQUIRE(s);
    add_wish(s, 'a', "0");
    add_wish(s, 'b', "0");
    CHECK_INT(claim(s), 'a');
    REQUIRE(!store_set_process(s, uid_of('a'), 1, &me, &changed, &err) && changed);
    REQUIRE(!store_set_active(s, uid_of('a'), 1, &changed, &err) && changed);
    REQUIRE(!store_set_end(s, uid_of('a'), 1, &end, &changed, &err) && changed);
    CHECK_INT(claim(s), '-');
    REQUIRE(!store_enqueue(s, uid_of('a'), 1u << JOB_STOPPED, &changed, &err));
    CHECK(!changed);
    bool removed;
    REQUIRE(!store_remove(s, uid_of('a'), NULL, &removed, &err));
    CHECK(!removed);
    REQUIRE(!store_forget_process(s, uid_of('a'), &err));
    CHECK_INT(claim(s), 'b');
    store_close(s);
}

static void a_change_names_the_attempt_and_the_state(void)
{
    struct store *s = store_at(new_state("attempts"));
    const struct os_process_id me = { .pid = 5, .start = 6, .boot = "b" };
    const struct store_end end = { .state = JOB_FINISHED };
    bool changed;
    REQUIRE(s);
    add_wish(s, 'a', "0");
    CHECK_INT(claim(s), 'a');
    REQUIRE(!store_set_process(s, uid_of('a'), 2, &me, &changed, &err));
    CHECK(!changed);
    REQUIRE(!store_set_active(s, uid_of('a'), 2, &changed, &err));
    CHECK(!changed);
    REQUIRE(!store_unclaim(s, uid_of('a'), 2, true, &err));
    CHECK(get_row(s, 'a').state == JOB_STARTING);
    REQUIRE(!store_unclaim(s, uid_of('a'), 1, true, &err));
    struct job_row row = get_row(s, 'a');
    CHECK(row.state == JOB_QUEUED && row.attempt == 0 && row.claims == 1 && !row.gpu_used);
    CHECK_INT(claim(s), 'a');
    REQUIRE(!store_unclaim(s, uid_of('a'), 1, false, &err));
    CHECK_INT(get_row(s, 'a').claims, 1);
    CHECK_INT(claim(s), 'a');
    /* A wish of the user is not lost, neither by going back nor by going on. */
    REQUIRE(!store_set_want(s, uid_of('a'), JOB_WANT_STOP, &err));
    REQUIRE(!store_unclaim(s, uid_of('a'), 1, true, &err));
    REQUIRE(!store_set_active(s, uid_of('a'), 1, &changed, &err));
    CHECK(!changed && get_row(s, 'a').state == JOB_STARTING && get_row(s, 'a').want == JOB_WANT_STOP);
    REQUIRE(!store_set_end(s, uid_of('a'), 1, &end, &changed, &err));
    CHECK(changed && get_row(s, 'a').want == JOB_WANT_NOTHING);
    REQUIRE(!store_set_end(s, uid_of('a'), 1, &(struct store_end){ .state = JOB_LOST }, &changed, &err));
    CHECK(!changed && get_row(s, 'a').state == JOB_FINISHED);
    REQUIRE(!store_set_want(s, uid_of('a'), JOB_WANT_STOP, &err));
    CHECK(get_row(s, 'a').want == JOB_WANT_NOTHING);
    store_close(s);
}

/* ---- the file ---- */

static int fill_one(void *context, struct store *s, struct cairn_error *e)
{
    int *calls = context;
    struct job_row row = row_named('f', JOB_DRAFT);
    ++*calls;
    return store_add(s, &row, e);
}

static int fill_badly(void *context, struct store *s, struct cairn_error *e)
{
    (void)fill_one(context, s, e);
    return cairn_fail(e, CAIRN_EIO, "no folders");
}

static void a_new_database_is_filled_once_and_wholly(void)
{
    const char *state = new_state("fill");
    struct store *s = NULL;
    int calls = 0;
    struct store_options o = { .state = state, .fill = fill_badly, .context = &calls };
    CHECK_INT(store_open(&o, &store_arena, &s, NULL, &err), -1);
    CHECK_STR(err.msg, "no folders");
    o.fill = fill_one;
    REQUIRE(!store_open(&o, &store_arena, &s, NULL, &err));
    CHECK_INT(calls, 2);
    CHECK_STR(get_row(s, 'f').name, "job-f");
    store_close(s);
    REQUIRE(!store_open(&o, &store_arena, &s, NULL, &err));
    CHECK_INT(calls, 2);
    store_close(s);
}

static void a_replaced_file_is_noticed(void)
{
    const char *state = new_state("replaced");
    struct store *s = store_at(state);
    REQUIRE(s);
    add_row(s, 'a', JOB_DRAFT);
    CHECK(store_is_current(s));
    char path[256];
    snprintf(path, sizeof(path), "%s/cairn.db", state);
    REQUIRE(!remove(path));
    CHECK(!store_is_current(s));
    struct store *new = store_at(state);
    add_row(new, 'b', JOB_DRAFT);
    CHECK(!store_is_current(s) && store_is_current(new));
    store_close(s); /* does not take the new one's files away */
    add_row(new, 'c', JOB_DRAFT);
    store_close(new);
    new = store_at(state);
    CHECK_STR(get_row(new, 'b').name, "job-b");
    CHECK_STR(get_row(new, 'c').name, "job-c");
    store_close(new);
}

static void damage_is_told_apart(void)
{
    const char *state = new_state("damaged");
    struct store *s = store_at(state);
    const struct store_options o = { .state = state };
    REQUIRE(s);
    for (char c = 'a'; c <= 'z'; c++)
        add_row(s, c, JOB_DRAFT);
    CHECK_INT(store_check(s, &err), 0);
    store_close(s);
    char path[256], noise[3000];
    snprintf(path, sizeof(path), "%s/cairn.db", state);
    memset(noise, 0x5a, sizeof(noise));
    int fd = open(path, O_WRONLY);
    REQUIRE(fd >= 0 && pwrite(fd, noise, sizeof(noise), 4100) == (ssize_t)sizeof(noise));
    err = (struct cairn_error){ 0 };
    bool bad = store_open(&o, &store_arena, &s, NULL, &err) || store_check(s, &err);
    CHECK(bad && err.code == CAIRN_EFORMAT);
    REQUIRE(pwrite(fd, noise, 100, 0) == 100);
    close(fd);
    err = (struct cairn_error){ 0 };
    struct store *again = NULL;
    CHECK_INT(store_open(&o, &store_arena, &again, NULL, &err), -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.hint, "cairn job rebuild");
    store_close(s);
}

static void others_cannot_read_it(void)
{
    const char *state = new_state("private");
    mode_t before = umask(0);
    struct store *s = store_at(state);
    umask(before);
    struct stat st;
    char path[256];
    REQUIRE(s);
    add_row(s, 'a', JOB_DRAFT);
    static const char *const files[] = { "cairn.db", "cairn.db-wal", "cairn.db-shm" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", state, files[i]);
        CHECK(!stat(path, &st) && !(st.st_mode & 077));
    }
    store_close(s);
}

static void settings_are_kept(void)
{
    const char *state = new_state("settings"), *value;
    struct store *s = store_at(state);
    REQUIRE(s && !store_setting(s, "queue.paused", &store_arena, &value, &err));
    CHECK_STR(value, NULL);
    REQUIRE(!store_set_setting(s, "queue.paused", "true", &err));
    REQUIRE(!store_set_setting(s, "queue.paused", "false", &err));
    store_close(s);
    s = store_at(state);
    REQUIRE(!store_setting(s, "queue.paused", &store_arena, &value, &err));
    CHECK_STR(value, "false");
    store_close(s);
}

int main(void)
{
    RUN(rows_come_back_as_they_went);
    RUN(jobs_are_found_by_uid_name_and_ending);
    RUN(lists_are_filtered);
    RUN(edits_carry_a_version);
    RUN(moves_agree_with_a_plain_list);
    RUN(there_is_always_a_place_between_two);
    RUN(only_waiting_jobs_have_a_place);
    RUN(two_programs_never_claim_the_same);
    RUN(a_claim_waits_for_another_program);
    RUN(jobs_are_claimed_in_their_order);
    RUN(nobody_overtakes_on_a_lane_that_is_waited_for);
    RUN(an_ended_job_with_a_process_keeps_its_lane);
    RUN(a_change_names_the_attempt_and_the_state);
    RUN(a_new_database_is_filled_once_and_wholly);
    RUN(a_replaced_file_is_noticed);
    RUN(damage_is_told_apart);
    RUN(others_cannot_read_it);
    RUN(settings_are_kept);
    arena_release(&store_arena);
    return check_done();
}
