/* SPDX-License-Identifier: Apache-2.0 */
#include "job/job_row.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/str.h"
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char *const kinds[] = { "train", "run", "cache", "sample" };
static const char *const states[] = {
    [JOB_DRAFT] = "draft",     [JOB_QUEUED] = "queued",     [JOB_STARTING] = "starting",
    [JOB_ACTIVE] = "active",   [JOB_FINISHED] = "finished", [JOB_FAILED] = "failed",
    [JOB_STOPPED] = "stopped", [JOB_PAUSED] = "paused",     [JOB_LOST] = "lost",
};
static const char *const wants[] = { NULL, "stop", "pause", "kill" };

const char *job_kind_name(enum job_kind k)
{
    return kinds[k];
}

const char *job_state_name(enum job_state s)
{
    return states[s];
}

const char *job_want_name(enum job_want w)
{
    return wants[w];
}

bool job_kind_parse(const char *name, enum job_kind *out)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq(name, kinds[i])) {
            *out = (enum job_kind)i;
            return true;
        }
    return false;
}

bool job_state_parse(const char *name, enum job_state *out)
{
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (str_eq(name, states[i])) {
            *out = (enum job_state)i;
            return true;
        }
    return false;
}

enum job_want job_want_parse(const char *name)
{
    for (size_t i = 1; i < ARRAY_LEN(wants); i++)
        if (str_eq(name, wants[i]))
            return (enum job_want)i;
    return JOB_WANT_NOTHING;
}

int job_kind_grace_s(enum job_kind k)
{
    return k == JOB_RUN ? 60 : 120;
}

bool job_state_is_running(enum job_state s)
{
    return s == JOB_STARTING || s == JOB_ACTIVE;
}

bool job_state_has_ended(enum job_state s)
{
    return s == JOB_FINISHED || s == JOB_FAILED || s == JOB_STOPPED || s == JOB_LOST;
}

/* ---- names: nine digits of milliseconds to the base of 36, then seven of chance ---- */

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
enum { TIME_DIGITS = 9, UID_DIGITS = JOB_UID_SIZE - 1 };

static void write_digits(uint64_t v, char *out, int n)
{
    for (; n > 0; v /= 36)
        out[--n] = digits[v % 36];
}

static void write_uid(int64_t time_ms, uint64_t rest, char out[JOB_UID_SIZE])
{
    write_digits((uint64_t)time_ms, out, TIME_DIGITS);
    write_digits(rest, out + TIME_DIGITS, UID_DIGITS - TIME_DIGITS);
    out[UID_DIGITS] = '\0';
}

void job_uid_make(char out[JOB_UID_SIZE])
{
    uint64_t chance;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
        chance = (uint64_t)now.tv_nsec * 2654435761u + (uint64_t)(uintptr_t)out;
    write_uid((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, chance, out);
}

void job_uid_of(int64_t time_ms, const char *content, char out[JOB_UID_SIZE])
{
    write_uid(time_ms, hash_bytes(content, strlen(content)), out);
}

bool job_uid_is_valid(const char *uid)
{
    return strlen(uid) == UID_DIGITS && strspn(uid, digits) == UID_DIGITS;
}
