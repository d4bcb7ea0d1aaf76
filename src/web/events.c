/* SPDX-License-Identifier: Apache-2.0 */
#include "web/events.h"

#include "base/parse.h"
#include "base/str.h"
#include "web/answer.h"
#include "web/session.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct client {
    struct events *events;
    struct request *request;
    struct str out; /* what it has not got yet, behind `sent` */
    size_t sent;
    bool dropped;
    char *topics; /* the text that the list points into */
    const char *topic[EVENTS_TOPICS];
    size_t n_topics;
    struct client *next;
};

struct kept {
    uint64_t n;
    char *topic, *text; /* topic: NULL for all */
    size_t bytes;
};

struct watched {
    char *topic;
    size_t clients;
    struct watched *next;
};

struct listener {
    void (*changed)(void *context, const char *topic, bool watched);
    void *context;
};

struct events {
    struct loop *loop;
    struct loop_timer *ping;
    char start[17]; /* of this server: ids of another mean nothing here */
    uint64_t last;  /* the number of the newest event */
    uint64_t lost;  /* that of the newest that is no longer kept */
    struct kept ring[EVENTS_RING];
    size_t first, n_kept, kept_bytes;
    struct client *clients;
    struct watched *watched;
    struct listener listener[8];
    size_t n_listeners;
};

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- clients ---- */

static bool wants(const struct client *c, const char *topic)
{
    for (size_t i = 0; i < c->n_topics; i++)
        if (!strcmp(c->topic[i], topic))
            return true;
    return !topic[0];
}

static void send_text(struct client *c, const char *text, size_t n)
{
    if (c->dropped)
        return;
    if (c->out.len - c->sent + n > EVENTS_BEHIND) {
        c->dropped = true;
        str_release(&c->out);
        request_cut(c->request);
        return;
    }
    str_addn(&c->out, text, n);
    request_wake(c->request);
}

static ssize_t read_client(void *context, char *to, size_t most)
{
    struct client *c = context;
    if (c->dropped)
        return -1;
    size_t left = c->out.len - c->sent, n = left < most ? left : most;
    if (!n)
        return 0;
    memcpy(to, c->out.s + c->sent, n);
    c->sent += n;
    if (c->sent == c->out.len) {
        enum { KEEP = 16 << 10 };
        if (c->out.cap > KEEP)
            str_release(&c->out);
        c->out.len = c->sent = 0;
    }
    return (ssize_t)n;
}

static void tell_listeners(struct events *e, const char *topic, bool watched)
{
    for (size_t i = 0; i < e->n_listeners; i++)
        e->listener[i].changed(e->listener[i].context, topic, watched);
}

static void watch(struct events *e, const char *topic)
{
    struct watched *w = e->watched;
    while (w && strcmp(w->topic, topic))
        w = w->next;
    if (w) {
        w->clients++;
        return;
    }
    w = need(malloc(sizeof(*w)));
    *w = (struct watched){ need(strdup(topic)), 1, e->watched };
    e->watched = w;
    tell_listeners(e, w->topic, true);
}

static void unwatch(struct events *e, const char *topic)
{
    struct watched **at = &e->watched;
    while (*at && strcmp((*at)->topic, topic))
        at = &(*at)->next;
    struct watched *w = *at;
    if (!w || --w->clients)
        return;
    *at = w->next;
    tell_listeners(e, w->topic, false);
    free(w->topic);
    free(w);
}

static void close_client(void *context)
{
    struct client *c = context, **at = &c->events->clients;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    for (size_t i = 0; i < c->n_topics; i++)
        unwatch(c->events, c->topic[i]);
    str_release(&c->out);
    free(c->topics);
    free(c);
}

/* ---- the ring ---- */

static void forget_oldest(struct events *e)
{
    struct kept *k = &e->ring[e->first];
    e->lost = k->n;
    e->kept_bytes -= k->bytes;
    free(k->topic);
    free(k->text);
    *k = (struct kept){ 0 };
    e->first = (e->first + 1) % EVENTS_RING;
    e->n_kept--;
}

static void keep_event(struct events *e, const char *topic, const char *text, size_t n)
{
    while (e->n_kept == EVENTS_RING || (e->n_kept && e->kept_bytes + n > EVENTS_RING_BYTES))
        forget_oldest(e);
    struct kept *k = &e->ring[(e->first + e->n_kept++) % EVENTS_RING];
    *k = (struct kept){ e->last, topic[0] ? need(strdup(topic)) : NULL, need(strndup(text, n)), n };
    e->kept_bytes += n;
}

/* The number in an id of ours; false: it is from another server, or none at all. */
static bool parse_id(const struct events *e, const char *id, uint64_t *n)
{
    size_t start = strlen(e->start);
    return !strncmp(id, e->start, start) && id[start] == '-' && cairn_parse_u64(id + start + 1, n);
}

static void send_reset(struct client *c)
{
    CLEANUP(str_release) struct str text = { 0 };
    str_addf(&text, "id: %s-%" PRIu64 "\nevent: reset\ndata: {}\n\n", c->events->start, c->events->last);
    send_text(c, text.s, text.len);
}

/* What the client missed since that id. */
static void replay(struct client *c, const char *id)
{
    struct events *e = c->events;
    uint64_t seen;
    if (!parse_id(e, id, &seen) || seen > e->last || seen < e->lost) {
        send_reset(c);
        return;
    }
    for (size_t i = 0; i < e->n_kept; i++) {
        const struct kept *k = &e->ring[(e->first + i) % EVENTS_RING];
        if (k->n > seen && (!k->topic || wants(c, k->topic)))
            send_text(c, k->text, k->bytes);
    }
}

/* ---- the rest of the interface ---- */

static void ping(void *context)
{
    static const char text[] = ": ping\n\n";
    struct events *e = context;
    for (struct client *c = e->clients; c; c = c->next)
        send_text(c, text, sizeof(text) - 1);
}

int events_open(struct loop *l, struct events **out, struct cairn_error *err)
{
    char secret[SESSION_SECRET + 1];
    if (session_secret(secret, err))
        return -1;
    struct events *e = need(calloc(1, sizeof(*e)));
    e->loop = l;
    snprintf(e->start, sizeof(e->start), "%.16s", secret);
    e->ping = loop_every(l, EVENTS_PING_S, ping, e);
    *out = e;
    return 0;
}

void events_close(struct events *e)
{
    if (!e)
        return;
    loop_cancel(e->loop, e->ping);
    while (e->n_kept)
        forget_oldest(e);
    free(e);
}

void events_publish(struct events *e, const char *topic, const char *name, const char *data,
                    enum events_keep keep)
{
    CLEANUP(str_release) struct str text = { 0 };
    topic = topic ? topic : "";
    e->last++;
    str_addf(&text, "id: %s-%" PRIu64 "\nevent: %s\ndata: ", e->start, e->last, name);
    str_add(&text, data);
    str_add(&text, "\n\n");
    if (keep == EVENTS_KEEP)
        keep_event(e, topic, text.s, text.len);
    for (struct client *c = e->clients; c; c = c->next)
        if (wants(c, topic))
            send_text(c, text.s, text.len);
}

void events_publish_json(struct events *e, const char *topic, const char *name, struct json *v,
                         enum events_keep keep)
{
    CLEANUP(mem_free) char *text = json_to_short(v);
    json_free(v);
    events_publish(e, topic, name, text, keep);
}

bool events_is_watched(const struct events *e, const char *topic)
{
    for (const struct watched *w = e->watched; w; w = w->next)
        if (!strcmp(w->topic, topic))
            return true;
    return false;
}

void events_on_watch(struct events *e, void (*changed)(void *context, const char *topic, bool watched),
                     void *context)
{
    if (e->n_listeners == ARRAY_LEN(e->listener))
        abort();
    e->listener[e->n_listeners++] = (struct listener){ changed, context };
}

/* "jobs", "job:" and a uid: small letters, digits, colons and hyphens. */
static bool split_topics(struct client *c)
{
    char *rest = c->topics;
    for (char *topic; (topic = strsep(&rest, ","));) {
        bool known = false;
        for (size_t i = 0; i < c->n_topics; i++)
            known = known || !strcmp(c->topic[i], topic);
        if (!topic[0] || known)
            continue;
        if (c->n_topics == EVENTS_TOPICS || strlen(topic) > 64 ||
            topic[strspn(topic, "abcdefghijklmnopqrstuvwxyz0123456789:-")])
            return false;
        c->topic[c->n_topics++] = topic;
    }
    return true;
}

void events_subscribe(struct events *e, struct request *r, const char *topics)
{
    struct client *c = need(calloc(1, sizeof(*c)));
    c->events = e;
    c->request = r;
    c->topics = need(strdup(topics ? topics : ""));
    if (!split_topics(c)) {
        free(c->topics);
        free(c);
        answer_problem(r, 400, "topics takes at most %d names, separated by commas: jobs, machine, job:UID",
                       EVENTS_TOPICS);
        return;
    }
    c->next = e->clients;
    e->clients = c;
    answer_stream(r, "text/event-stream", read_client, close_client, c);
    str_add(&c->out, "retry: 2000\n\n");
    const char *seen = request_header(r, "Last-Event-ID");
    seen = seen ? seen : request_query(r, "after");
    if (seen)
        replay(c, seen);
    for (size_t i = 0; i < c->n_topics; i++)
        watch(e, c->topic[i]);
}
