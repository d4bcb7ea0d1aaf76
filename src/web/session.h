/* SPDX-License-Identifier: Apache-2.0
 * Sessions and the one-time codes that start them.
 *
 * A code is 128 random bits, works once, for ten minutes.  The cookie is 128 random bits, of which only the hash is
 * kept.  After ten wrong codes each further attempt has to wait a second.  Times are seconds, given by the caller:
 * `now` of a clock that never goes back, `today` of the calendar. */
#ifndef CAIRN_WEB_SESSION_H
#define CAIRN_WEB_SESSION_H

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stdint.h>

enum { SESSION_SECRET = 32 }; /* hexadecimal digits of a code, a cookie, a CSRF token */
enum { SESSION_MOST = 64, SESSION_CODES = 16 };
enum { SESSION_CODE_S = 600, SESSION_DAYS = 30, SESSION_FREE_MISSES = 10 };

struct session {
    char hash[SHA256_TEXT + 1]; /* of the cookie's value; "": the place is free */
    char csrf[SESSION_SECRET + 1];
    bool read_only;
    int64_t created; /* seconds since 1970 */
};

struct session_code {
    char text[SESSION_SECRET + 1]; /* "": the place is free */
    bool read_only;
    double expires;
};

struct sessions {
    struct session session[SESSION_MOST];
    struct session_code code[SESSION_CODES];
    unsigned misses;
    double next_try; /* no attempt is judged before */
};

/* A secret in hexadecimal. */
int session_secret(char out[SESSION_SECRET + 1], struct cairn_error *err);

/* A new code; the oldest is forgotten if there are too many. */
int session_code_new(struct sessions *s, bool read_only, double now, char out[SESSION_SECRET + 1],
                     struct cairn_error *err);
/* How long this attempt has to wait before session_login may judge it; 0: not at all.  Reserves the place. */
double session_wait(struct sessions *s, double now);
/* Uses up a code and starts a session: *cookie is its value.  NULL: the code is wrong, used or too old, or (err) no
 * session could be made. */
const struct session *session_login(struct sessions *s, const char *code, double now, int64_t today,
                                    char cookie[SESSION_SECRET + 1], struct cairn_error *err);
/* The session of a cookie, n bytes; NULL: there is none, or it is too old. */
const struct session *session_find(const struct sessions *s, const char *cookie, size_t n, int64_t today);
void session_end(struct sessions *s, const struct session *which);

/* For ui.json; codes are not written. */
void session_write(const struct sessions *s, struct json *parent);
void session_read(struct sessions *s, const struct json *parent, int64_t today);

#endif
