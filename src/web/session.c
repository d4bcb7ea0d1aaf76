/* SPDX-License-Identifier: Apache-2.0 */
#include "web/session.h"

#include "base/str.h"
#include "os/random.h"
#include "web/guard.h"
#include <stdio.h>
#include <string.h>

int session_secret(char out[SESSION_SECRET + 1], struct cairn_error *err)
{
    unsigned char bytes[SESSION_SECRET / 2];
    if (os_random(bytes, sizeof(bytes)))
        return cairn_fail_errno(err, "get random bytes from the kernel");
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static void hash_of(const char *cookie, size_t n, char out[SHA256_TEXT + 1])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, cookie, n);
    sha256_end_text(&h, out);
}

static bool is_old(const struct session *s, int64_t today)
{
    return s->created > today + 86400 || today - s->created > (int64_t)SESSION_DAYS * 86400;
}

/* ---- codes ---- */

int session_code_new(struct sessions *s, bool read_only, double now, char out[SESSION_SECRET + 1],
                     struct cairn_error *err)
{
    struct session_code *to = &s->code[0];
    for (size_t i = 0; i < SESSION_CODES; i++) {
        struct session_code *c = &s->code[i];
        if (!c->text[0] || c->expires <= now) {
            to = c;
            break;
        }
        if (c->expires < to->expires)
            to = c;
    }
    if (session_secret(out, err))
        return -1;
    memcpy(to->text, out, sizeof(to->text));
    to->read_only = read_only;
    to->expires = now + SESSION_CODE_S;
    return 0;
}

double session_wait(struct sessions *s, double now)
{
    if (s->misses < SESSION_FREE_MISSES)
        return 0;
    s->next_try = (s->next_try > now ? s->next_try : now) + 1;
    return s->next_try - now;
}

/* All are compared, so that the time says nothing. */
static struct session_code *find_code(struct sessions *s, const char *text, double now)
{
    struct session_code *found = NULL;
    size_t n = strlen(text);
    for (size_t i = 0; i < SESSION_CODES; i++) {
        bool same = guard_secret_is(text, n, s->code[i].text);
        if (same && s->code[i].expires > now)
            found = &s->code[i];
    }
    return found;
}

/* A free place, or that of the oldest. */
static struct session *place_for(struct sessions *s, int64_t today)
{
    struct session *to = &s->session[0];
    for (size_t i = 0; i < SESSION_MOST; i++) {
        struct session *c = &s->session[i];
        if (!c->hash[0] || is_old(c, today))
            return c;
        if (c->created < to->created)
            to = c;
    }
    return to;
}

const struct session *session_login(struct sessions *s, const char *code, double now, int64_t today,
                                    char cookie[SESSION_SECRET + 1], struct cairn_error *err)
{
    struct session_code *c = find_code(s, code, now);
    struct session made = { .created = today };
    if (!c) {
        s->misses++;
        return NULL;
    }
    made.read_only = c->read_only;
    if (session_secret(cookie, err) || session_secret(made.csrf, err))
        return NULL;
    *c = (struct session_code){ 0 };
    s->misses = 0;
    hash_of(cookie, SESSION_SECRET, made.hash);
    struct session *to = place_for(s, today);
    *to = made;
    return to;
}

const struct session *session_find(const struct sessions *s, const char *cookie, size_t n, int64_t today)
{
    char hash[SHA256_TEXT + 1];
    const struct session *found = NULL;
    if (n != SESSION_SECRET)
        return NULL;
    hash_of(cookie, n, hash);
    for (size_t i = 0; i < SESSION_MOST; i++)
        if (guard_secret_is(hash, SHA256_TEXT, s->session[i].hash) && !is_old(&s->session[i], today))
            found = &s->session[i];
    return found;
}

void session_end(struct sessions *s, const struct session *which)
{
    s->session[which - s->session] = (struct session){ 0 };
}

/* ---- ui.json ---- */

void session_write(const struct sessions *s, struct json *parent)
{
    struct json *list = json_add_array(parent, "sessions");
    for (size_t i = 0; i < SESSION_MOST; i++) {
        const struct session *c = &s->session[i];
        if (!c->hash[0])
            continue;
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "hash", c->hash);
        json_add_text(o, "csrf", c->csrf);
        json_add_bool(o, "read_only", c->read_only);
        json_add_int(o, "created", c->created);
    }
}

void session_read(struct sessions *s, const struct json *parent, int64_t today)
{
    const struct json *list = json_get(parent, "sessions");
    size_t n = 0;
    for (size_t i = 0; i < json_length(list) && n < SESSION_MOST; i++) {
        const struct json *o = json_at(list, i);
        const char *hash = json_text(json_get(o, "hash")), *csrf = json_text(json_get(o, "csrf"));
        if (!hash || strlen(hash) != SHA256_TEXT || !csrf || strlen(csrf) != SESSION_SECRET)
            continue;
        struct session c = { .read_only = json_bool(json_get(o, "read_only"), true),
                             .created = json_int(json_get(o, "created"), 0) };
        memcpy(c.hash, hash, sizeof(c.hash));
        memcpy(c.csrf, csrf, sizeof(c.csrf));
        if (!is_old(&c, today))
            s->session[n++] = c;
    }
}
