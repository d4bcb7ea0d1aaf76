/* SPDX-License-Identifier: Apache-2.0
 * Server-sent events: GET /api/v1/events?topics=jobs,machine,job:UID.
 *
 * An event has a topic, a name and a line of JSON.  It goes to every client that asked for its topic; the topic
 * NULL reaches all.  The last 1,024 that are worth keeping can be sent again to a client that reconnects with
 * Last-Event-ID; one that missed more gets `reset`, and fetches anew.  A client that is 1 MiB behind is dropped.
 *
 *     events_publish(w->events, "jobs", "job", text, EVENTS_KEEP);
 *     events_publish(w->events, topic, "log", text, EVENTS_KEEP);          topic: "job:" and the uid
 *     events_publish(w->events, "machine", "machine", text, EVENTS_FLEETING);
 *
 * Work that only watched topics need starts and ends with the functions of events_on_watch. */
#ifndef CAIRN_WEB_EVENTS_H
#define CAIRN_WEB_EVENTS_H

#include "base/error.h"
#include "web/loop.h"
#include "web/request.h"

enum {
    EVENTS_RING = 1024,
    EVENTS_RING_BYTES = 4 << 20, /* of all kept events; older ones go before there are 1,024 */
    EVENTS_BEHIND = 1 << 20,
    EVENTS_PING_S = 15,
    EVENTS_TOPICS = 32, /* of one client */
};
enum events_keep { EVENTS_FLEETING, EVENTS_KEEP }; /* fleeting: of no use later */

struct events;

int events_open(struct loop *l, struct events **out, struct cairn_error *err);
void events_close(struct events *e); /* after all clients are gone; accepts NULL */

/* `data` is one line of JSON. */
void events_publish(struct events *e, const char *topic, const char *name, const char *data,
                    enum events_keep keep);
/* The same; takes the value. */
void events_publish_json(struct events *e, const char *topic, const char *name, struct json *v,
                         enum events_keep keep);

/* Whether some client has asked for the topic. */
bool events_is_watched(const struct events *e, const char *topic);
/* changed(context, topic, true) when the first client asks for a topic, and with false when the last has gone.
 * Several may be added. */
void events_on_watch(struct events *e, void (*changed)(void *context, const char *topic, bool watched),
                     void *context);

/* Answers a request with the stream of these topics, separated by commas. */
void events_subscribe(struct events *e, struct request *r, const char *topics);

#endif
