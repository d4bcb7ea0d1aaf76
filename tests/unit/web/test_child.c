/* SPDX-License-Identifier: Apache-2.0
 * Children: the test starts itself, as the server starts its own program. */
#include "web/child.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "check.h"
#include "web/answer.h"
#include "web/web.h"
#include <signal.h>
#include <unistd.h>

/* ---- the child ---- */

static int be_child(const char *what)
{
    char buf[4096];
    size_t n = 0, got;
    if (!strcmp(what, "json"))
        return puts("{\"a\": 1}"), 1; /* a command that found something returns 1, and its JSON counts */
    if (!strcmp(what, "usage"))
        return fputs(
                   "cairn: /dev/stdin:12:5: unknown key x; did you mean y?\n  cairn help config lists the keys\n",
                   stderr),
               2;
    if (!strcmp(what, "lacks"))
        return fputs("cairn: no GPU\n", stderr), 3;
    if (!strcmp(what, "silent"))
        return 7;
    if (!strcmp(what, "crash"))
        return raise(SIGSEGV);
    if (!strcmp(what, "text"))
        return puts("not JSON"), 0;
    if (!strcmp(what, "hang"))
        return (int)sleep(100);
    if (!strcmp(what, "orphan")) { /* leaves a process that keeps the output open */
        if (!fork())
            return (int)sleep(100);
        return puts("{}"), 0;
    }
    if (!strcmp(what, "flood"))
        for (;;)
            if (fwrite(buf, 1, sizeof(buf), stdout) < sizeof(buf))
                return 1;
    if (!strcmp(what, "talk")) /* more than a pipe holds on both streams */
        for (int i = 0; i < 40000; i++)
            fputs("a line of talk\n", stderr);
    while ((got = fread(buf, 1, sizeof(buf), stdin)))
        n += got;
    printf("{\"input\": %zu}\n", n);
    return 0;
}

/* ---- the parent ---- */

static struct web web;
static struct cairn_error err;

struct seen {
    bool done, timed_out;
    struct os_end end;
    char out[256];
    size_t out_n;
};

static int left;

static void keep_result(void *context, const struct child_result *result)
{
    struct seen *s = context;
    *s = (struct seen){
        .done = true, .timed_out = result->timed_out, .end = result->end, .out_n = result->out_n
    };
    snprintf(s->out, sizeof(s->out), "%s", result->out);
    if (!--left)
        loop_stop(web.loop);
}

static bool open_all(void)
{
    return !loop_open(&web.loop, &err) && !children_open(web.loop, &web.children, &err);
}

static void close_all(void)
{
    children_close(web.children);
    loop_close(web.loop);
}

static int start(const char *what, struct child_spec spec, struct seen *s)
{
    const char *argv[] = { what, NULL };
    spec.argv = argv;
    *s = (struct seen){ 0 };
    return child_run(web.children, &spec, keep_result, s, &err);
}

static struct seen run_one(const char *what, struct child_spec spec)
{
    struct seen s;
    if (!open_all())
        abort();
    left = 1;
    CHECK(!start(what, spec, &s));
    CHECK(!loop_run(web.loop, &err));
    close_all();
    return s;
}

static void output_and_status_come_back(void)
{
    struct seen s = run_one("json", (struct child_spec){ 0 });
    CHECK_STR(s.out, "{\"a\": 1}\n");
    CHECK_INT(s.end.code, 1);
    s = run_one("crash", (struct child_spec){ 0 });
    CHECK(s.done && (s.end.signal || s.end.code)); /* a sanitizer turns it into a status */
    s = run_one("talk", (struct child_spec){ 0 });
    CHECK_STR(s.out, "{\"input\": 0}\n");
}

static void input_is_handed_over(void)
{
    size_t n = 5 << 20;
    CLEANUP(mem_free) char *text = malloc(n);
    REQUIRE(text);
    memset(text, 'x', n);
    struct seen s = run_one("input", (struct child_spec){ .input = text, .input_n = n });
    CHECK_STR(s.out, "{\"input\": 5242880}\n");
    s = run_one("input", (struct child_spec){ .input = "", .input_n = 0 });
    CHECK_STR(s.out, "{\"input\": 0}\n");
}

static void slow_children_are_killed(void)
{
    double begin = clock_s();
    struct seen s = run_one("hang", (struct child_spec){ .seconds = 1 });
    CHECK(s.done && s.timed_out);
    CHECK(clock_s() - begin > 0.9 && clock_s() - begin < 5);
    begin = clock_s();
    s = run_one("orphan", (struct child_spec){ .seconds = 1 });
    CHECK(s.done && s.timed_out);
    CHECK(clock_s() - begin < 5);
}

static void a_flood_is_cut(void)
{
    struct seen s = run_one("flood", (struct child_spec){ .seconds = 20 });
    CHECK(s.done && s.out_n <= CHILD_OUTPUT && !s.timed_out);
}

static void two_run_and_others_wait(void)
{
    struct seen s[CHILD_AT_ONCE + CHILD_WAITING + 1];
    REQUIRE(open_all());
    left = CHILD_AT_ONCE + CHILD_WAITING;
    for (int i = 0; i < CHILD_AT_ONCE; i++)
        CHECK(!start("hang", (struct child_spec){ .seconds = 1 }, &s[i]));
    for (int i = CHILD_AT_ONCE; i < CHILD_AT_ONCE + CHILD_WAITING; i++)
        CHECK(!start("json", (struct child_spec){ 0 }, &s[i]));
    CHECK(start("json", (struct child_spec){ 0 }, &s[CHILD_AT_ONCE + CHILD_WAITING]) == -1);
    CHECK(!loop_run(web.loop, &err));
    for (int i = 0; i < CHILD_AT_ONCE + CHILD_WAITING; i++)
        CHECK(s[i].done && s[i].timed_out == (i < CHILD_AT_ONCE));
    close_all();
}

static void the_end_of_the_server_ends_them(void)
{
    struct seen s[4];
    REQUIRE(open_all());
    left = 9;
    for (int i = 0; i < 4; i++)
        CHECK(!start("hang", (struct child_spec){ .seconds = 50 }, &s[i]));
    double begin = clock_s();
    close_all();
    CHECK(clock_s() - begin < 3);
    for (int i = 0; i < 4; i++)
        CHECK(!s[i].done);
}

/* ---- as answers ---- */

static void stop_on_wake(struct request *r)
{
    (void)r;
    loop_stop(web.loop);
}

static void check_answer(const char *what, unsigned seconds, int status, const char *part)
{
    const char *argv[] = { what, NULL };
    struct request *r = calloc(1, sizeof(*r));
    REQUIRE(r && open_all());
    r->web = &web;
    r->wake = stop_on_wake;
    child_answer(r, &(struct child_spec){ .argv = argv, .seconds = seconds });
    CHECK(r->later && !loop_run(web.loop, &err));
    CHECK_INT(r->answer.status, status);
    CLEANUP(str_release) struct str body = { 0 };
    str_addn(&body, r->answer.bytes, r->answer.n);
    CHECK_HAS(body.s, part);
    request_release(r);
    close_all();
}

static void failures_are_problems(void)
{
    check_answer("json", 0, 200, "{\"a\": 1}");
    check_answer(
        "usage", 0, 422,
        "\"detail\":\"unknown key x; did you mean y?\",\"hint\":\"cairn help config lists the keys\",\"line\":12");
    check_answer("lacks", 0, 424, "\"detail\":\"no GPU\"");
    check_answer("silent", 0, 500, "exit status 7");
    check_answer("text", 0, 500, "exit status 0");
    check_answer("hang", 1, 504, "did not end in time");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return be_child(argv[1]);
    RUN(output_and_status_come_back);
    RUN(input_is_handed_over);
    RUN(slow_children_are_killed);
    RUN(a_flood_is_cut);
    RUN(two_run_and_others_wait);
    RUN(the_end_of_the_server_ends_them);
    RUN(failures_are_problems);
    return check_done();
}
