/* SPDX-License-Identifier: Apache-2.0 */
#include "job/environment.h"

#include "base/str.h"
#include "check.h"

static struct arena arena;
static struct cairn_error err;

static void a_shell_is_taken_without_its_session(void)
{
    static const char *const shell[] = {
        "PATH=/bin",
        "HF_TOKEN=x",
        "EMPTY=",
        "TERM=xterm",
        "SSH_AUTH_SOCK=/s",
        "HIP_VISIBLE_DEVICES=1",
        "ROCR_VISIBLE_DEVICES=0",
        "CAIRN_RUN=/j",
        "BASH_FUNC_x%%=() { :; }",
        "no value",
        "=odd",
        "A=b=c",
        "HSA_OVERRIDE_GFX_VERSION=10.3.0",
        "BAD=\xff",
        "XDG_RUNTIME_DIR=/run",
        "XDG_STATE_HOME=/s",
        NULL,
    };
    const char *skipped;
    CLEANUP(json_cleanup) struct json *v = environment_take(shell, &skipped);
    CLEANUP(mem_free) char *text = json_to_string(v);
    CHECK_STR(text, "{\"PATH\":\"/bin\",\"HF_TOKEN\":\"x\",\"EMPTY\":\"\",\"A\":\"b=c\","
                    "\"HSA_OVERRIDE_GFX_VERSION\":\"10.3.0\",\"XDG_STATE_HOME\":\"/s\"}");
    CHECK(skipped && !strncmp(skipped, "BAD=", 4));
    CHECK_INT(environment_check(text, &err), 0);
}

static void what_is_none_is_refused(void)
{
    static const char *const wrong[] = { "",
                                         "[]",
                                         "7",
                                         "{\"A\":1}",
                                         "{\"A B\":\"1\"}",
                                         "{\"\":\"1\"}",
                                         "{\"A=\":\"1\"}",
                                         "{\"1A\":\"1\"}",
                                         "{\"A\":[]}",
                                         "{\"A\":\"\\u0000\"}" };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        err = (struct cairn_error){ 0 };
        if (environment_check(wrong[i], &err) != -1 || strncmp(err.msg, "environment", 11) != 0)
            CHECK_FAIL_("%s: \"%s\"", wrong[i], err.msg);
    }
}

static void a_job_has_its_own_and_little_else(void)
{
    static const char *const own[] = {
        "HOME=/root",       "PATH=/usr/bin",        "LC_TIME=C", "TZ=UTC", "SECRET=1",
        "LD_PRELOAD=/x.so", "XDG_STATE_HOME=/mine", "LANG=C",    NULL
    };
    char **made;
    REQUIRE(!environment_make("{\"PATH\":\"/job\",\"A\":\"1\",\"TZ\":null,\"PWD\":\"/wrong\"}", own, "/work",
                              &arena, &made, &err));
    static const char *const want[] = { "HOME=/root", "LC_TIME=C", "XDG_STATE_HOME=/mine",
                                        "LANG=C",     "PATH=/job", "A=1",
                                        "PWD=/work" };
    size_t n = 0;
    for (; made[n]; n++)
        CHECK_STR(made[n], n < ARRAY_LEN(want) ? want[n] : NULL);
    CHECK_INT(n, ARRAY_LEN(want));
}

static void secrets_are_known_by_name(void)
{
    static const char *const secret[] = { "HF_TOKEN",
                                          "wandb_api_key",
                                          "AWS_SECRET_ACCESS_KEY",
                                          "MY_PASSWORD",
                                          "GOOGLE_APPLICATION_CREDENTIALS",
                                          "HUGGING_FACE_HUB_TOKEN" },
                             *const open[] = { "PATH", "HF_HOME", "KEYBOARD", "PYTHONPATH" };
    for (size_t i = 0; i < ARRAY_LEN(secret); i++)
        CHECK(environment_is_secret(secret[i]));
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        CHECK(!environment_is_secret(open[i]));
}

int main(void)
{
    RUN(a_shell_is_taken_without_its_session);
    RUN(what_is_none_is_refused);
    RUN(a_job_has_its_own_and_little_else);
    RUN(secrets_are_known_by_name);
    arena_release(&arena);
    return check_done();
}
