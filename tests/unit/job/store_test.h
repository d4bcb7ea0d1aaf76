/* SPDX-License-Identifier: Apache-2.0
 * A database of jobs in a scratch folder, and rows for it. */
#ifndef CAIRN_TESTS_UNIT_JOB_STORE_TEST_H
#define CAIRN_TESTS_UNIT_JOB_STORE_TEST_H

#include "../run/scratch.h"
#include "check.h"
#include "job/sql.h"
#include "job/store.h"

static struct arena store_arena;

/* A state folder of its own for each test; the name is used once. */
static inline const char *new_state(const char *name)
{
    const char *dir = scratch(name);
    mkdir(dir, 0700);
    return arena_strdup(&store_arena, dir);
}

static inline struct store *store_at(const char *state)
{
    struct cairn_error err = { 0 };
    struct store *s = NULL;
    const struct store_options o = { .state = state, .busy_ms = 100 };
    if (store_open(&o, &store_arena, &s, NULL, &err))
        CHECK_FAIL_("%s", err.msg);
    return s;
}

/* uid: 16 times a character. */
static inline const char *uid_of(char c)
{
    char uid[JOB_UID_SIZE];
    memset(uid, c, JOB_UID_SIZE - 1);
    uid[JOB_UID_SIZE - 1] = '\0';
    return arena_strdup(&store_arena, uid);
}

static inline struct job_row row_named(char c, enum job_state state)
{
    return (struct job_row){
        .uid = uid_of(c),
        .name = arena_printf(&store_arena, "job-%c", c),
        .kind = JOB_RUN,
        .argv = "[\"true\"]",
        .cwd = "/",
        .gpu = "cpu",
        .state = state,
    };
}

static inline void add_row(struct store *s, char c, enum job_state state)
{
    struct cairn_error err = { 0 };
    struct job_row row = row_named(c, state);
    if (store_add(s, &row, &err))
        CHECK_FAIL_("%s", err.msg);
}

static inline struct job_row get_row(struct store *s, char c)
{
    struct cairn_error err = { 0 };
    struct job_row row = { 0 };
    if (store_get(s, uid_of(c), &store_arena, &row, &err))
        CHECK_FAIL_("%s", err.msg);
    return row;
}

/* What no function of the store would write. */
static inline void change(const char *state, const char *statement)
{
    struct cairn_error err = { 0 };
    struct sql_db db;
    if (sql_open(&db, arena_printf(&store_arena, "%s/cairn.db", state), true, 5000, &err) ||
        sql_run(&db, statement, &err))
        CHECK_FAIL_("%s: %s", statement, err.msg);
    sql_close(&db);
}

#endif
