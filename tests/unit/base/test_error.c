/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/str.h"
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void fail_says_what(void)
{
    struct cairn_error err = { 0 };
    CHECK_INT(cairn_fail(&err, CAIRN_EFORMAT, "%s:%d: want a number", "properties", 12), -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_STR(err.msg, "properties:12: want a number");
    CHECK_STR(err.hint, "");
}

static void fail_errno_adds_the_reason(void)
{
    struct cairn_error err = { 0 };
    errno = EACCES;
    CHECK_INT(cairn_fail_errno(&err, "open %s", "/dev/kfd"), -1);
    CHECK_INT(err.code, CAIRN_EIO);
    CHECK_STR(err.msg, "open /dev/kfd: Permission denied");
    CHECK_INT(errno, EACCES);
}

static void hint_keeps_the_message(void)
{
    struct cairn_error err = { 0 };
    cairn_fail(&err, CAIRN_ELACK, "no GPU");
    CHECK_INT(cairn_hint(&err, "load %s", "amdgpu"), -1);
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK_STR(err.msg, "no GPU");
    CHECK_STR(err.hint, "load amdgpu");
}

/* A hint belongs to one failure; the next one must not show it. */
static void next_failure_drops_the_hint(void)
{
    struct cairn_error err = { 0 };
    cairn_fail(&err, CAIRN_ELACK, "no GPU");
    cairn_hint(&err, "load amdgpu");
    cairn_fail(&err, CAIRN_EUSAGE, "no such GPU");
    CHECK_STR(err.hint, "");
    cairn_hint(&err, "see cairn gpu");
    errno = ENOENT;
    cairn_fail_errno(&err, "open x");
    CHECK_STR(err.hint, "");
}

static void wrap_keeps_code_and_hint(void)
{
    struct cairn_error err = { 0 };
    cairn_fail(&err, CAIRN_EFORMAT, "line 3: want a number");
    cairn_hint(&err, "write one");
    CHECK_INT(cairn_wrap(&err, "%s", "a.json"), -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_STR(err.msg, "a.json: line 3: want a number");
    CHECK_STR(err.hint, "write one");
    CHECK_INT(cairn_wrap(&err, "model %d", 7), -1);
    CHECK_STR(err.msg, "model 7: a.json: line 3: want a number");
    CHECK_STR(err.hint, "write one");
}

/* Both the context and the reason may be too long. */
static void long_wraps_are_cut(void)
{
    struct cairn_error err = { 0 };
    for (int context = 80; context < 520; context++) {
        cairn_fail(&err, CAIRN_EIO, "read-only file system");
        cairn_wrap(&err, "%0*d\u2026", context, 1);
        CHECK_HAS(err.msg, ": read-only file system");
        CHECK(str_is_utf8(err.msg));
        cairn_fail(&err, CAIRN_EIO, "%0*d\u2026", context, 2);
        cairn_wrap(&err, "%0*d", context, 1);
        CHECK_HAS(err.msg, ": 000");
        CHECK(str_is_utf8(err.msg) || context > 500); /* so long that cairn_fail cuts a character */
        CHECK(strlen(err.msg) < sizeof(err.msg));
    }
}

static void long_messages_are_cut(void)
{
    struct cairn_error err = { 0 };
    cairn_fail(&err, CAIRN_EIO, "%0*d", 5000, 1);
    CHECK_INT(strlen(err.msg), sizeof(err.msg) - 1);
    cairn_hint(&err, "%0*d", 5000, 1);
    CHECK_INT(strlen(err.hint), sizeof(err.hint) - 1);
    for (int width = 470; width < 515; width++) {
        errno = EIO;
        cairn_fail_errno(&err, "%0*d", width, 1);
        CHECK_HAS(err.msg, width <= 488 ? "01: Input/output error" : "0...: Input/output error");
    }
    for (int width = 475; width < 490; width++) { /* no half of a character is left */
        errno = EIO;
        cairn_fail_errno(&err, "%0*d\u2026\u2026\u2026\u2026\u2026", width, 1);
        CHECK(str_is_utf8(err.msg));
    }
}

static int open_then_fail(int *fd_seen)
{
    CLEANUP(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *fd_seen = fd;
    errno = ENODATA;
    return -1;
}

static void fd_is_closed_and_errno_kept(void)
{
    int fd = -1;
    CHECK_INT(open_then_fail(&fd), -1);
    CHECK_INT(errno, ENODATA);
    CHECK(fd >= 0 && fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    fd = -1;
    fd_close(&fd); /* not open: nothing happens */
    errno = ENODATA;
    fd = 999999; /* close() fails, and the error that is being told must not change */
    fd_close(&fd);
    CHECK_INT(errno, ENODATA);
}

static char *hand_over(void)
{
    CLEANUP(mem_free) char *text = strdup("kept");
    return TAKE(text);
}

static void take_hands_over(void)
{
    char *text = hand_over();
    CHECK_STR(text, "kept"); /* freed memory here is what the sanitizer build would see */
    free(text);
}

int main(void)
{
    RUN(fail_says_what);
    RUN(fail_errno_adds_the_reason);
    RUN(hint_keeps_the_message);
    RUN(next_failure_drops_the_hint);
    RUN(wrap_keeps_code_and_hint);
    RUN(long_wraps_are_cut);
    RUN(long_messages_are_cut);
    RUN(fd_is_closed_and_errno_kept);
    RUN(take_hands_over);
    return check_done();
}
