/* SPDX-License-Identifier: Apache-2.0 */
#include "media/helper.h"

#include "base/str.h"
#include "os/file.h"
#include "os/path.h"
#include "os/process.h"
#include "os/socket.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { END_S = 2 }; /* for a process whose socket is closed */

static int find_program(char *path, size_t size, struct cairn_error *err)
{
    const char *value = getenv("CAIRN_MEDIA");
    if (value && value[0]) {
        snprintf(path, size, "%s", value);
        return access(path, X_OK) ? cairn_fail_errno(err, "CAIRN_MEDIA: %s", value) : 0;
    }
    static const char *const places[] = { "", "../libexec/cairn" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (!path_beside_program(places[i], "cairn-media", path, size) && !access(path, X_OK))
            return 0;
    cairn_fail(err, CAIRN_ELACK, "cairn-media, which reads pictures and clips, is not installed");
    return cairn_hint(err, "run scripts/setup, which installs libpng, libjpeg, libwebp, libavif and FFmpeg's "
                           "libraries, then build cairn again");
}

int helper_init(struct helper *h, const struct media_options *options, bool writes, struct cairn_error *err)
{
    *h = (struct helper){ .options = options ? *options : (struct media_options){ 0 },
                          .writes = writes,
                          .fd = -1 };
    struct media_options *o = &h->options;
    o->memory = o->memory ? o->memory : (uint64_t)6 << 30;
    o->pixels = o->pixels ? o->pixels : (uint64_t)1 << 29;
    o->wait_s = o->wait_s ? o->wait_s : 60;
    o->threads = o->threads ? o->threads : 2;
    if (!o->program)
        return find_program(h->program, sizeof(h->program), err);
    snprintf(h->program, sizeof(h->program), "%s", o->program);
    return access(h->program, X_OK) ? cairn_fail_errno(err, "%s", h->program) : 0;
}

static int start(struct helper *h, struct cairn_error *err)
{
    char memory[24], pixels[24], wait[16], threads[16];
    snprintf(memory, sizeof(memory), "%" PRIu64, h->options.memory);
    snprintf(pixels, sizeof(pixels), "%" PRIu64, h->options.pixels);
    snprintf(wait, sizeof(wait), "%u", h->options.wait_s);
    snprintf(threads, sizeof(threads), "%u", h->options.threads);
    const char *argv[] = { h->program, h->writes ? "write" : "read", memory, pixels, wait, threads, NULL };
    CLEANUP(fd_close) int null = os_open_null();
    int ends[2];
    if (null < 0 || os_socket_pair(ends))
        return cairn_fail_errno(err, "start %s", h->program);
    const int files[3] = { ends[1], null, null };
    int r = os_spawn(h->program, argv, files, &h->pid);
    int why = errno;
    fd_close(&ends[1]);
    if (!r) {
        h->fd = ends[0];
        return 0;
    }
    fd_close(&ends[0]);
    errno = why;
    return cairn_fail_errno(err, "start %s", h->program);
}

void helper_stop(struct helper *h)
{
    struct os_end end;
    fd_close(&h->fd);
    h->fd = -1;
    if (h->pid > 0) {
        kill(h->pid, SIGKILL);
        os_wait(h->pid, END_S, &end);
    }
    h->pid = 0;
}

/* The process has closed its end: says why. */
static int tell_end(struct helper *h, const char *path, struct cairn_error *err)
{
    struct os_end end = { 0 };
    fd_close(&h->fd);
    h->fd = -1;
    bool ended = h->pid > 0 && !os_wait(h->pid, END_S, &end);
    h->pid = 0;
    if (!ended || (!end.signal && !end.code))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the process that decodes it ended without an answer",
                          path);
    if (end.signal == SIGXCPU || end.signal == SIGALRM)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: decoding it took more than %u s", path, h->options.wait_s);
    if (end.signal == SIGXFSZ)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: its decoder tried to write a file", path);
    if (end.signal == SIGKILL) {
        cairn_fail(err, CAIRN_ENOMEM, "%s: the process that decodes it was killed", path);
        return cairn_hint(err, "`dmesg` shows whether the kernel's OOM killer did it");
    }
    if (end.signal) {
        cairn_fail(err, CAIRN_EFORMAT, "%s: its decoder crashed (signal %d)", path, end.signal);
        return cairn_hint(err, "the file may be damaged; remove it, or convert it with another program");
    }
    cairn_fail(err, CAIRN_ELACK, "%s: %s ended with exit status %d", path, h->program, end.code);
    return cairn_hint(err, "`%s --formats` shows whether it can start", h->program);
}

/* errno says what happened to the socket. */
static int lost(struct helper *h, const char *path, struct cairn_error *err)
{
    if (errno == ETIMEDOUT) {
        helper_stop(h);
        return cairn_fail(err, CAIRN_EFORMAT, "%s: decoding it made no progress for %u s", path,
                          h->options.wait_s);
    }
    if (errno == EPROTO)
        return helper_confused(h, path, err);
    if (errno == EPIPE || errno == ECONNRESET)
        return tell_end(h, path, err);
    cairn_fail_errno(err, "%s: talk to %s", path, h->program);
    helper_stop(h);
    return -1;
}

int helper_confused(struct helper *h, const char *path, struct cairn_error *err)
{
    helper_stop(h);
    cairn_fail(err, CAIRN_EFORMAT, "%s: %s gave an answer that makes no sense", path, h->program);
    return cairn_hint(err,
                      "if this happens with every file, cairn and cairn-media are of different versions");
}

/* In the child the clock ends sooner, so that its message comes first. */
static int limit_ms(const struct helper *h)
{
    uint64_t ms = (uint64_t)h->options.wait_s * 1000 + 2000;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int helper_ask(struct helper *h, const char *path, const struct wire_message *m, struct cairn_error *err)
{
    /* One that ended while it had nothing to do, killed by somebody, is not this file's fault. */
    if (h->fd >= 0 && !h->writes && os_socket_is_closed(h->fd))
        helper_stop(h);
    if (h->fd < 0 && start(h, err))
        return -1;
    return wire_send(h->fd, m, limit_ms(h)) ? lost(h, path, err) : 0;
}

int helper_payload(struct helper *h, const char *path, void *into, size_t n, struct cairn_error *err)
{
    return os_socket_receive(h->fd, into, n, NULL, limit_ms(h)) ? lost(h, path, err) : 0;
}

/* What the process says of the file; its texts are not trusted. */
static int tell_error(struct helper *h, const char *path, struct cairn_error *err)
{
    struct wire_error e;
    CLEANUP(str_release) struct str msg = { 0 }, hint = { 0 };
    if (helper_payload(h, path, &e, sizeof(e), err))
        return -1;
    str_add_clean(&msg, e.msg, strnlen(e.msg, sizeof(e.msg)));
    str_add_clean(&hint, e.hint, strnlen(e.hint, sizeof(e.hint)));
    enum cairn_code code =
        e.code > CAIRN_OK && e.code <= CAIRN_EDEVICE ? (enum cairn_code)e.code : CAIRN_EFORMAT;
    cairn_fail(err, code, "%s: %s", path, msg.len ? msg.s : "it cannot be decoded");
    return hint.len ? cairn_hint(err, "%s", hint.s) : -1;
}

int helper_answer(struct helper *h, const char *path, struct wire_head *head, struct cairn_error *err)
{
    do {
        if (wire_receive_head(h->fd, head, NULL, limit_ms(h)))
            return lost(h, path, err);
    } while (head->kind == WIRE_ALIVE && !head->size);
    if (head->kind != WIRE_ERROR)
        return 0;
    return head->size == sizeof(struct wire_error) ? tell_error(h, path, err) : helper_confused(h, path, err);
}
