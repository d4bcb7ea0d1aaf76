/* SPDX-License-Identifier: Apache-2.0 */
#include "web/events.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "check.h"
#include "web/answer.h"

static struct loop *loop;
static struct cairn_error err;
static int cuts;

static void count_cut(struct request *r)
{
    (void)r;
    cuts++;
}

/* A client: a request without a connection. */
static struct request *subscribe(struct events *e, const char *topics, const char *seen)
{
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->cut = count_cut;
    if (seen) {
        struct header *h = ARENA_PUSH(&r->arena, r->headers, r->n_headers);
        *h = (struct header){ "Last-Event-ID", seen };
    }
    events_subscribe(e, r, topics);
    return r;
}

/* What it would have been sent by now. */
static void take(struct request *r, struct str *out)
{
    char buf[1000];
    ssize_t n;
    str_release(out);
    str_add(out, "");
    while ((n = r->answer.read(r->answer.context, buf, sizeof(buf))) > 0)
        str_addn(out, buf, (size_t)n);
    if (n < 0)
        str_add(out, "(over)");
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static void only_topics_that_were_asked_for(void)
{
    CLEANUP(str_release) struct str got = { 0 };
    struct events *e;
    REQUIRE(!events_open(loop, &e, &err));
    struct request *r = subscribe(e, "jobs,job:abc", NULL);
    take(r, &got);
    CHECK_STR(got.s, "retry: 2000\n\n");
    events_publish(e, "machine", "machine", "{}", EVENTS_FLEETING);
    events_publish(e, "job:abd", "log", "{}", EVENTS_KEEP);
    take(r, &got);
    CHECK_STR(got.s, "");
    events_publish(e, "job:abc", "log", "{\"a\":1}", EVENTS_KEEP);
    events_publish(e, NULL, "notice", "{}", EVENTS_KEEP);
    take(r, &got);
    CHECK_HAS(got.s, "-3\nevent: log\ndata: {\"a\":1}\n\nid: ");
    CHECK_HAS(got.s, "-4\nevent: notice\ndata: {}\n\n");
    request_release(r);
    events_close(e);
}

static void the_last_1024_are_sent_again(void)
{
    CLEANUP(str_release) struct str got = { 0 };
    struct events *e;
    char id[64], start[32] = "";
    REQUIRE(!events_open(loop, &e, &err));
    struct request *r = subscribe(e, "jobs", NULL);
    for (int i = 0; i < 1100; i++)
        events_publish(e, i % 2 ? "jobs" : "other", "job", "{}", EVENTS_KEEP);
    take(r, &got);
    CHECK_INT(count(got.s, "event: job"), 550);
    sscanf(strstr(got.s, "id: "), "id: %31[0-9a-f]", start);
    request_release(r);
    /* 1..76 are gone. */
    static const struct {
        int seen;
        size_t again;
        bool reset;
    } rows[] = { { 1100, 0, false }, { 1098, 1, false }, { 1000, 50, false }, { 77, 512, false },
                 { 76, 512, false }, { 75, 0, true },    { 0, 0, true },      { 1101, 0, true } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(id, sizeof(id), "%s-%d", start, rows[i].seen);
        r = subscribe(e, "jobs", id);
        take(r, &got);
        CHECK_INT(count(got.s, "event: job"), rows[i].again);
        CHECK_INT(count(got.s, "event: reset"), rows[i].reset);
        request_release(r);
    }
    static const char *const strange[] = { "", "x", "-1", "0123456789abcdef-5", "1100" };
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        r = subscribe(e, "jobs", strange[i]);
        take(r, &got);
        CHECK_INT(count(got.s, "event: reset"), 1);
        request_release(r);
    }
    events_close(e);
}

static void fleeting_events_do_not_push_others_out(void)
{
    CLEANUP(str_release) struct str got = { 0 };
    struct events *e;
    char id[64];
    REQUIRE(!events_open(loop, &e, &err));
    events_publish(e, "jobs", "job", "{}", EVENTS_KEEP);
    struct request *r = subscribe(e, "machine", NULL);
    for (int i = 0; i < 3000; i++)
        events_publish(e, "machine", "machine", "{}", EVENTS_FLEETING);
    take(r, &got);
    sscanf(strstr(got.s, "id: "), "id: %40[0-9a-f]", id);
    strcat(id, "-0");
    request_release(r);
    r = subscribe(e, "jobs,machine", id);
    take(r, &got);
    CHECK_INT(count(got.s, "event: job"), 1);
    CHECK_INT(count(got.s, "event: machine"), 0);
    CHECK_INT(count(got.s, "event: reset"), 0);
    request_release(r);
    events_close(e);
}

static void large_events_push_old_ones_out(void)
{
    CLEANUP(str_release) struct str got = { 0 }, large = { 0 };
    struct events *e;
    char id[64];
    REQUIRE(!events_open(loop, &e, &err));
    for (int i = 0; i < 200 << 10; i++)
        str_add(&large, "x");
    struct request *r = subscribe(e, "jobs", NULL);
    events_publish(e, "jobs", "job", "{}", EVENTS_KEEP);
    take(r, &got);
    sscanf(strstr(got.s, "id: "), "id: %40[-0-9a-f]", id);
    for (int i = 0; i < 30; i++)
        events_publish(e, "other", "log", large.s, EVENTS_KEEP); /* 6 MiB */
    request_release(r);
    r = subscribe(e, "jobs", id);
    take(r, &got);
    CHECK_INT(count(got.s, "event: reset"), 1);
    request_release(r);
    events_close(e);
}

static void a_client_a_mebibyte_behind_is_dropped(void)
{
    CLEANUP(str_release) struct str got = { 0 }, large = { 0 };
    struct events *e;
    REQUIRE(!events_open(loop, &e, &err));
    for (int i = 0; i < 100 << 10; i++)
        str_add(&large, "x");
    struct request *slow = subscribe(e, "jobs", NULL), *quick = subscribe(e, "jobs", NULL);
    cuts = 0;
    for (int i = 0; i < 20; i++) {
        events_publish(e, "jobs", "log", large.s, EVENTS_FLEETING);
        take(quick, &got);
        CHECK_INT(count(got.s, "event: log"), 1);
        CHECK_INT(cuts, i >= 10); /* the eleventh is too much */
    }
    take(slow, &got);
    CHECK_STR(got.s, "(over)");
    request_release(slow);
    request_release(quick);
    events_close(e);
}

static char told[256];

static void tell(void *context, const char *topic, bool watched)
{
    (void)context;
    size_t n = strlen(told);
    snprintf(told + n, sizeof(told) - n, "%c%s ", watched ? '+' : '-', topic);
}

static void watchers_are_counted(void)
{
    struct events *e;
    REQUIRE(!events_open(loop, &e, &err));
    events_on_watch(e, tell, NULL);
    struct request *a = subscribe(e, "machine,jobs,machine", NULL), *b = subscribe(e, "machine", NULL);
    CHECK_STR(told, "+machine +jobs ");
    CHECK(events_is_watched(e, "machine") && !events_is_watched(e, "job:1"));
    request_release(a);
    CHECK_STR(told, "+machine +jobs -jobs ");
    request_release(b);
    CHECK_STR(told, "+machine +jobs -jobs -machine ");
    CHECK(!events_is_watched(e, "machine"));
    struct request *wrong = subscribe(e, "jobs,UPPER", NULL);
    CHECK_INT(wrong->answer.status, 400);
    CHECK(!events_is_watched(e, "jobs"));
    request_release(wrong);
    events_close(e);
}

int main(void)
{
    if (loop_open(&loop, &err))
        return 1;
    RUN(only_topics_that_were_asked_for);
    RUN(the_last_1024_are_sent_again);
    RUN(fleeting_events_do_not_push_others_out);
    RUN(large_events_push_old_ones_out);
    RUN(a_client_a_mebibyte_behind_is_dropped);
    RUN(watchers_are_counted);
    loop_close(loop);
    return check_done();
}
