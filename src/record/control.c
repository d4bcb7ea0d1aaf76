/* SPDX-License-Identifier: Apache-2.0 */
#include "record/control.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "os/file.h"
#include "record/runs.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- the file ---- */

static int fail(const char *path, const char *key, const char *want, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" must be %s", path, key, want);
}

static int parse_bool(const char *path, const struct json_member *m, bool *out, struct cairn_error *err)
{
    bool is_bool = json_bool(m->value, true) == json_bool(m->value, false);
    if (!is_bool && !json_is_null(m->value))
        return fail(path, m->key, "true or false", err);
    *out = json_bool(m->value, false);
    return 0;
}

static int parse_stop(const char *path, const struct json_member *m, struct control_order *out,
                      struct cairn_error *err)
{
    out->stop = json_is_null(m->value) ? CONTROL_STOP_NONE : CONTROL_STOP_AT;
    if (out->stop == CONTROL_STOP_AT && !json_to_u64(m->value, &out->stop_at_step))
        return fail(path, m->key, "a step or null", err);
    return 0;
}

/* unknown: the first key that means nothing; "": there is none. */
static int read_order(const char *path, struct control_order *out, char unknown[CONTROL_KEY],
                      struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *o = NULL;
    struct control_order order = { 0 };
    unknown[0] = '\0';
    if (json_read_object(path, &o, err))
        return -1;
    if (!json_to_u64(json_get(o, "seq"), &order.seq) || !order.seq)
        return fail(path, "seq", "a number above 0", err);
    for (struct json_member m = json_first(o); m.key; m = json_next(o, m)) {
        int r = 0;
        if (str_eq(m.key, "save"))
            r = parse_bool(path, &m, &order.save, err);
        else if (str_eq(m.key, "sample"))
            r = parse_bool(path, &m, &order.sample, err);
        else if (str_eq(m.key, "stop_at_step"))
            r = parse_stop(path, &m, &order, err);
        else if (!str_eq(m.key, "seq") && !unknown[0])
            snprintf(unknown, CONTROL_KEY, "%s", m.key);
        if (r)
            return -1;
    }
    *out = order;
    return 0;
}

/* ---- for those who ask ---- */

static int write_order(const char *path, const struct control_order *order, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *o = json_new_object();
    CLEANUP(str_release) struct str text = { 0 };
    json_add_int(o, "seq", (int64_t)order->seq);
    json_add_bool(o, "save", order->save);
    json_add_bool(o, "sample", order->sample);
    if (order->stop == CONTROL_STOP_AT)
        json_add_int(o, "stop_at_step", (int64_t)order->stop_at_step);
    else if (order->stop == CONTROL_STOP_NONE)
        json_add_null(o, "stop_at_step");
    CLEANUP(mem_free) char *line = json_to_string(o);
    str_addf(&text, "%s\n", line);
    return file_write(path, text.s, text.len, err);
}

/* The order in the file, if there is a good one; what is wrong is replaced. */
static struct control_order waiting_order(const char *path)
{
    struct control_order found = { 0 };
    struct cairn_error ignored = { 0 };
    char unknown[CONTROL_KEY];
    (void)read_order(path, &found, unknown, &ignored);
    return found;
}

static uint64_t obeyed_order(const char *dir, struct arena *a)
{
    struct run_info info = { 0 };
    struct cairn_error ignored = { 0 };
    return run_info_read(dir, a, &info, &ignored) ? 0 : info.control_seq;
}

int control_write(const char *dir, const struct control_order *order, uint64_t *seq, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(fd_close) int fd = os_open(dir, OS_READ | OS_FOLDER);
    const char *path = arena_printf(&a, "%s/" CONTROL_FILE, dir);
    if (fd < 0)
        return cairn_fail_errno(err, "open %s", dir);
    (void)os_lock(fd, true); /* some network file systems have none */
    struct control_order next = *order, waiting = waiting_order(path);
    uint64_t obeyed = obeyed_order(dir, &a);
    next.seq = waiting.seq > obeyed ? waiting.seq : obeyed;
    if (next.seq >= INT64_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: its \"seq\" cannot become larger", path);
    next.seq++;
    if (waiting.seq > obeyed) {
        next.save |= waiting.save;
        next.sample |= waiting.sample;
        if (next.stop == CONTROL_STOP_SAME) {
            next.stop = waiting.stop;
            next.stop_at_step = waiting.stop_at_step;
        }
    }
    if (write_order(path, &next, err))
        return -1;
    if (seq)
        *seq = next.seq;
    return 0;
}

/* ---- for the training ---- */

void control_init(struct control *c, const char *dir, uint64_t obeyed, struct arena *a)
{
    *c = (struct control){ .path = arena_printf(a, "%s/" CONTROL_FILE, dir), .obeyed = obeyed };
}

static bool has_changed(struct control *c)
{
    struct os_info now;
    if (os_info(c->path, &now)) {
        c->is_seen = c->is_seen && errno != ENOENT;
        return false;
    }
    bool same = c->is_seen && os_info_is_same(&c->seen, &now) && os_info_is_unchanged(&c->seen, &now);
    c->seen = now;
    c->is_seen = true;
    return !same;
}

/* -1 for the first that is wrong, 0 for those that follow. */
static int complain(struct control *c)
{
    bool told = c->has_told_bad;
    c->has_told_bad = true;
    return told ? 0 : -1;
}

int control_look(struct control *c, struct control_order *out, struct cairn_error *err)
{
    struct control_order order;
    c->unknown[0] = '\0';
    if (!has_changed(c))
        return 0;
    if (read_order(c->path, &order, c->unknown, err))
        return complain(c);
    if (order.seq < c->obeyed) {
        cairn_fail(err, CAIRN_EFORMAT,
                   "%s: \"seq\" is %" PRIu64 ", but the last order had %" PRIu64 "; it must be larger",
                   c->path, order.seq, c->obeyed);
        return complain(c);
    }
    c->has_told_bad = false;
    if (c->has_told_unknown || order.seq == c->obeyed)
        c->unknown[0] = '\0';
    if (order.seq == c->obeyed)
        return 0;
    c->has_told_unknown |= c->unknown[0] != '\0';
    c->obeyed = order.seq;
    *out = order;
    return 1;
}

const char *control_text(const struct control_order *order, uint64_t step, struct arena *a)
{
    CLEANUP(str_release) struct str text = { 0 };
    if (order->save)
        str_add(&text, "save");
    if (order->sample)
        str_addf(&text, "%ssample", text.len ? ", " : "");
    if (order->stop == CONTROL_STOP_AT && order->stop_at_step > step)
        str_addf(&text, "%sstop at step %" PRIu64, text.len ? ", " : "", order->stop_at_step);
    else if (order->stop != CONTROL_STOP_SAME)
        str_addf(&text, "%s%s", text.len ? ", " : "",
                 order->stop == CONTROL_STOP_AT ? "stop" : "do not stop");
    return arena_strdup(a, text.len ? text.s : "nothing");
}
