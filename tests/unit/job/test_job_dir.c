/* SPDX-License-Identifier: Apache-2.0 */
#include "job/job_dir.h"

#include "../run/scratch.h"
#include "base/str.h"
#include "check.h"
#include "job/rebuild.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static struct arena arena;
static struct cairn_error err;
static const char uid[] = "aaaaaaaaaaaaaaaa";

static const char *new_state(const char *name)
{
    const char *dir = arena_strdup(&arena, scratch(name));
    mkdir(dir, 0700);
    return dir;
}

static const struct job_row job = {
    .uid = uid,
    .name = "n\xc3\xa4me \"x\"",
    .kind = JOB_TRAIN,
    .config = "a: 1 # kept\n",
    .argv = "[\"-v\"]",
    .cwd = "/work",
    .env = "{\"A\":\"1\"}",
    .options = "{\"file\":\"x.yaml\"}",
    .gpu = "0",
    .note = "note\nof two lines",
    .parent = "bbbbbbbbbbbbbbbb",
    .created = 1234,
};

static void a_job_is_read_as_it_was_written(void)
{
    const char *state = new_state("written");
    struct job_row got;
    REQUIRE(!job_dir_write(state, &job, &err));
    REQUIRE(!job_dir_read(state, uid, &arena, &got, &err));
    CHECK_STR(got.name, job.name);
    CHECK_STR(got.config, job.config);
    CHECK_STR(got.argv, job.argv);
    CHECK_STR(got.cwd, job.cwd);
    CHECK_STR(got.env, job.env);
    CHECK_STR(got.options, job.options);
    CHECK_STR(got.gpu, job.gpu);
    CHECK_STR(got.note, job.note);
    CHECK_STR(got.parent, job.parent);
    CHECK(got.kind == JOB_TRAIN && got.created == 1234);
    struct job_row musubi = job;
    musubi.options = "{\"file\":\"x.toml\"}";
    CHECK_STR(job_dir_config_name(&musubi), "config.toml");
    musubi.options = "damaged";
    CHECK_STR(job_dir_config_name(&musubi), "config.yaml");
    struct stat st;
    CHECK(!stat(job_dir_path(state, uid, &arena), &st) && (st.st_mode & 0777) == 0700);
}

static void damaged_files_are_refused(void)
{
    static const char *const texts[] = { "",
                                         "{",
                                         "[]",
                                         "{}",
                                         "{\"name\":\"x\",\"cwd\":\"/\"}",
                                         "{\"name\":1,\"cwd\":\"/\",\"kind\":\"run\"}",
                                         "{\"name\":\"x\",\"cwd\":\"/\",\"kind\":\"walk\"}" };
    struct job_row got;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        scratch_file("damaged/jobs/aaaaaaaaaaaaaaaa/job.json", texts[i]);
        err = (struct cairn_error){ 0 };
        CHECK_INT(job_dir_read(scratch("damaged"), uid, &arena, &got, &err), -1);
        CHECK_HAS(err.msg, "job.json");
    }
    scratch_file("damaged/jobs/aaaaaaaaaaaaaaaa/job.json", "{\"name\":\"x\",\"cwd\":\"/\",\"kind\":\"run\"}");
    REQUIRE(!job_dir_read(scratch("damaged"), uid, &arena, &got, &err));
    CHECK_STR(got.gpu, "auto");
    CHECK_STR(got.env, "{}");
    struct job_row large = job;
    char *many = malloc(2 << 20);
    memset(many, 'x', (2 << 20) - 1);
    many[(2 << 20) - 1] = '\0';
    large.env = many;
    CHECK(job_dir_write(scratch("damaged"), &large, &err) == -1 && strstr(err.msg, "longer than"));
    free(many);
}

static void folders_are_listed_and_numbered(void)
{
    const char *state = new_state("listed");
    char **uids;
    size_t n;
    REQUIRE(!job_dir_list(state, &arena, &uids, &n, &err));
    CHECK_INT(n, 0);
    static const char *const files[] = { "listed/jobs/aaaaaaaaaaaaaaaa/attempt-1/log",
                                         "listed/jobs/aaaaaaaaaaaaaaaa/attempt-12/log",
                                         "listed/jobs/aaaaaaaaaaaaaaaa/attempt-x/log",
                                         "listed/jobs/bbbbbbbbbbbbbbbb/lock",
                                         "listed/jobs/.cairn-trash/cccccccccccccccc/lock",
                                         "listed/jobs/short/lock",
                                         "listed/jobs/AAAAAAAAAAAAAAAA/lock" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        scratch_file(files[i], "");
    REQUIRE(!job_dir_list(state, &arena, &uids, &n, &err));
    CHECK_INT(n, 2);
    CHECK_INT(job_dir_last_attempt(state, uid), 12);
    CHECK_INT(job_dir_last_attempt(state, "bbbbbbbbbbbbbbbb"), 0);
    CHECK_INT(job_dir_last_attempt(state, "nowhere"), 0);
}

static void the_trash_keeps_what_was_removed(void)
{
    const char *state = new_state("trash");
    REQUIRE(!job_dir_write(state, &job, &err));
    REQUIRE(!job_dir_trash(state, uid, &err));
    REQUIRE(!job_dir_trash(state, uid, &err)); /* gone already */
    struct stat st;
    CHECK(!stat(arena_printf(&arena, "%s/jobs/.cairn-trash/%s/job.json", state, uid), &st));
    CHECK(stat(job_dir_path(state, uid, &arena), &st) == -1 && errno == ENOENT);
}

/* ---- the lock ---- */

static void a_lock_is_held_as_long_as_anybody_has_it(void)
{
    const char *state = new_state("lock");
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    int lock = -1, second = -1, pipes[2];
    CHECK(!job_dir_is_held(state, uid)); /* there is not even a folder */
    REQUIRE(!job_dir_open(state, uid, true, &d, &err));
    CHECK(!job_dir_is_held(state, uid) && !job_dir_has_lock(state, uid));
    REQUIRE(!job_dir_hold(&d, &lock, &err) && lock >= 0);
    CHECK(job_dir_is_held(state, uid) && job_dir_has_lock(state, uid));
    CHECK(!job_dir_hold(&d, &second, &err) && second == -1);
    REQUIRE(!pipe(pipes));
    pid_t child = fork(); /* inherits it */
    if (!child) {
        char byte;
        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) != 0);
    }
    close(pipes[0]);
    close(lock);
    CHECK(job_dir_is_held(state, uid));
    CHECK(!job_dir_hold(&d, &second, &err) && second == -1);
    close(pipes[1]);
    waitpid(child, NULL, 0);
    CHECK(!job_dir_is_held(state, uid));
    REQUIRE(!job_dir_hold(&d, &lock, &err) && lock >= 0);
    close(lock);
}

static void what_cannot_be_asked_counts_as_held(void)
{
    const char *state = new_state("unknown");
    scratch_file("unknown/jobs/aaaaaaaaaaaaaaaa/lock/x", ""); /* a folder in its place */
    CHECK(job_dir_is_held(state, uid));
    CHECK(!job_dir_is_held(state, "bbbbbbbbbbbbbbbb"));
}

static void the_lock_tells_what_the_attempt_is(void)
{
    const char *state = new_state("told");
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    struct job_row long_one = { .attempt = 123456,
                                .gpu_used = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                                .pid = 4194303,
                                .pid_start = 1 << 30,
                                .boot_id = "01234567-89ab-cdef-0123-456789abcdef" },
                   short_one = { .attempt = 2, .gpu_used = "1", .pid = 7, .pid_start = 8, .boot_id = "b" },
                   got = { 0 };
    int lock;
    REQUIRE(!job_dir_open(state, uid, true, &d, &err));
    CHECK(!job_dir_ask(state, uid, &arena, &got));
    REQUIRE(!job_dir_hold(&d, &lock, &err));
    CHECK(!job_dir_ask(state, uid, &arena, &got)); /* empty */
    job_dir_tell(lock, &long_one);
    CHECK(job_dir_ask(state, uid, &arena, &got) && got.attempt == 123456 && got.pid == 4194303);
    CHECK_STR(got.gpu_used, long_one.gpu_used);
    job_dir_tell(lock, &short_one);
    CHECK(job_dir_ask(state, uid, &arena, &got) && got.attempt == 2 && got.pid == 7 && got.pid_start == 8);
    CHECK_STR(got.gpu_used, "1");
    CHECK_STR(got.boot_id, "b");
    close(lock);
}

/* ---- rebuilding ---- */

static void a_job_that_runs_is_restored_with_its_gpu(void)
{
    const char *state = new_state("restored");
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(store_close_at) struct store *s = NULL;
    struct job_row row = job, got;
    struct rebuild_result result;
    int lock;
    row.kind = JOB_RUN;
    row.gpu = "auto";
    REQUIRE(!job_dir_write(state, &row, &err) && !job_dir_open(state, uid, false, &d, &err));
    REQUIRE(!job_dir_hold(&d, &lock, &err));
    row.attempt = 3;
    row.gpu_used = "1";
    row.pid = getpid();
    job_dir_tell(lock, &row);
    scratch_file("restored/jobs/aaaaaaaaaaaaaaaa/attempt-3/log", "");
    scratch_file("restored/jobs/bbbbbbbbbbbbbbbb/job.json",
                 "{\"name\":\"x\",\"cwd\":\"/\",\"kind\":\"run\"}");
    scratch_file("restored/jobs/cccccccccccccccc/job.json", "damaged");
    REQUIRE(!rebuild(state, &arena, &result, &err));
    CHECK_INT(result.n_jobs, 2);
    CHECK_INT(result.n_skipped, 1);
    CHECK_STR(result.old, NULL);
    const struct store_options o = { .state = state };
    REQUIRE(!store_open(&o, &arena, &s, NULL, &err));
    REQUIRE(!store_get(s, uid, &arena, &got, &err));
    CHECK(got.state == JOB_ACTIVE && got.attempt == 3 && got.pid == getpid());
    CHECK_STR(got.gpu_used, "1");
    REQUIRE(!store_get(s, "bbbbbbbbbbbbbbbb", &arena, &got, &err));
    CHECK(got.state == JOB_DRAFT && got.attempt == 0);
    close(lock);
}

int main(void)
{
    RUN(a_job_is_read_as_it_was_written);
    RUN(damaged_files_are_refused);
    RUN(folders_are_listed_and_numbered);
    RUN(the_trash_keeps_what_was_removed);
    RUN(a_lock_is_held_as_long_as_anybody_has_it);
    RUN(what_cannot_be_asked_counts_as_held);
    RUN(the_lock_tells_what_the_attempt_is);
    RUN(a_job_that_runs_is_restored_with_its_gpu);
    arena_release(&arena);
    return check_done();
}
