/* SPDX-License-Identifier: Apache-2.0 */
#include "web/session.h"

#include "base/cleanup.h"
#include "check.h"
#include "os/fault.h"
#include <errno.h>

enum { TODAY = 1700000000 };
static struct cairn_error err;

static void codes_work_once_for_ten_minutes(void)
{
    static struct sessions s;
    char code[SESSION_SECRET + 1], other[SESSION_SECRET + 1], cookie[SESSION_SECRET + 1];
    REQUIRE(!session_code_new(&s, false, 100, code, &err) && !session_code_new(&s, true, 100, other, &err));
    CHECK_INT(strlen(code), 32);
    CHECK(strcmp(code, other));
    CHECK(!session_login(&s, "", 101, TODAY, cookie, &err));
    const struct session *one = session_login(&s, code, 101, TODAY, cookie, &err);
    REQUIRE(one);
    CHECK(!one->read_only && strlen(one->csrf) == 32 && strcmp(one->csrf, cookie));
    CHECK(!session_login(&s, code, 101, TODAY, cookie, &err));
    CHECK(!session_login(&s, other, 700, TODAY, cookie, &err)); /* 600 s later */
    REQUIRE(!session_code_new(&s, true, 1000, other, &err));
    const struct session *two = session_login(&s, other, 1599, TODAY, cookie, &err);
    CHECK(two && two->read_only);
    CHECK(!err.msg[0]);
}

static void cookies_are_kept_as_hashes(void)
{
    static struct sessions s;
    char code[SESSION_SECRET + 1], cookie[SESSION_SECRET + 1];
    REQUIRE(!session_code_new(&s, false, 0, code, &err));
    const struct session *one = session_login(&s, code, 1, TODAY, cookie, &err);
    REQUIRE(one);
    CHECK(session_find(&s, cookie, 32, TODAY) == one);
    CHECK(!strstr(one->hash, cookie));
    CHECK(!session_find(&s, cookie, 31, TODAY));
    CHECK(!session_find(&s, one->hash, 32, TODAY));
    cookie[0] ^= 1;
    CHECK(!session_find(&s, cookie, 32, TODAY));
    cookie[0] ^= 1;
    CHECK(session_find(&s, cookie, 32, TODAY + 29 * 86400));
    CHECK(!session_find(&s, cookie, 32, TODAY + 31 * 86400));
    CHECK(!session_find(&s, cookie, 32, TODAY - 2 * 86400)); /* a clock that was set back by years */
    session_end(&s, one);
    CHECK(!session_find(&s, cookie, 32, TODAY));
}

static void misses_have_to_wait(void)
{
    static struct sessions s;
    char code[SESSION_SECRET + 1], cookie[SESSION_SECRET + 1];
    for (int i = 0; i < SESSION_FREE_MISSES; i++) {
        CHECK(session_wait(&s, 50) == 0);
        CHECK(!session_login(&s, "00000000000000000000000000000000", 50, TODAY, cookie, &err));
    }
    CHECK(session_wait(&s, 50) == 1);
    CHECK(session_wait(&s, 50) == 2); /* one after the other, also those that come together */
    CHECK(session_wait(&s, 60) == 1);
    REQUIRE(!session_code_new(&s, false, 60, code, &err));
    CHECK(session_login(&s, code, 61, TODAY, cookie, &err));
    CHECK(session_wait(&s, 62) == 0);
}

static void the_oldest_give_way(void)
{
    static struct sessions s;
    char code[SESSION_CODES + 1][SESSION_SECRET + 1], cookie[SESSION_MOST + 1][SESSION_SECRET + 1];
    for (int i = 0; i <= SESSION_CODES; i++)
        REQUIRE(!session_code_new(&s, false, i, code[i], &err));
    CHECK(!session_login(&s, code[0], 20, TODAY, cookie[0], &err));
    CHECK(session_login(&s, code[1], 20, TODAY, cookie[0], &err));
    static struct sessions many;
    for (int i = 0; i <= SESSION_MOST; i++) {
        REQUIRE(!session_code_new(&many, false, 0, code[0], &err));
        REQUIRE(session_login(&many, code[0], 1, TODAY + i, cookie[i], &err));
    }
    CHECK(!session_find(&many, cookie[0], 32, TODAY + 100));
    for (int i = 1; i <= SESSION_MOST; i++)
        CHECK(session_find(&many, cookie[i], 32, TODAY + 100));
}

static void a_file_holds_them(void)
{
    static struct sessions s, again;
    char code[SESSION_SECRET + 1], cookie[SESSION_SECRET + 1], waiting[SESSION_SECRET + 1];
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    REQUIRE(!session_code_new(&s, true, 0, code, &err) && session_login(&s, code, 1, TODAY, cookie, &err));
    REQUIRE(!session_code_new(&s, true, 0, waiting, &err));
    session_write(&s, v);
    CLEANUP(mem_free) char *text = json_to_string(v);
    CHECK(!strstr(text, cookie) && !strstr(text, waiting));
    session_read(&again, v, TODAY);
    const struct session *one = session_find(&again, cookie, 32, TODAY);
    CHECK(one && one->read_only);
    static struct sessions late;
    session_read(&late, v, TODAY + 40 * 86400);
    CHECK(!late.session[0].hash[0]);
}

static void damaged_files_hold_none(void)
{
    static const char *const texts[] = { "{}", "{\"sessions\":5}", "{\"sessions\":[{}]}",
                                         "{\"sessions\":[{\"hash\":\"x\",\"csrf\":\"y\"}]}",
                                         "{\"sessions\":[null,[],\"x\"]}" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        static struct sessions s;
        CLEANUP(json_cleanup) struct json *v = NULL;
        REQUIRE(!json_parse(texts[i], strlen(texts[i]), &v, &err));
        session_read(&s, v, TODAY);
        CHECK(!s.session[0].hash[0]);
    }
}

static void without_random_bytes_there_is_no_secret(void)
{
    static struct sessions s;
    struct cairn_error why = { 0 };
    char code[SESSION_SECRET + 1];
    fault_arm(1, ENOSYS);
    CHECK(session_code_new(&s, false, 0, code, &why) == -1);
    CHECK(fault_disarm() && why.msg[0]);
    CHECK(!s.code[0].text[0]);
}

int main(void)
{
    RUN(codes_work_once_for_ten_minutes);
    RUN(cookies_are_kept_as_hashes);
    RUN(misses_have_to_wait);
    RUN(the_oldest_give_way);
    RUN(a_file_holds_them);
    RUN(damaged_files_hold_none);
    RUN(without_random_bytes_there_is_no_secret);
    return check_done();
}
