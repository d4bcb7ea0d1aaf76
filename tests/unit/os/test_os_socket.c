/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include "check.h"
#include "os/fault.h"
#include "os/file.h"
#include <errno.h>
#include <unistd.h>

static void bytes_and_a_file_arrive(void)
{
    int ends[2], passed = -1;
    char got[6] = "", text[5] = "";
    REQUIRE(!os_socket_pair(ends));
    int file = os_open_memory("passed");
    REQUIRE(file >= 0 && os_write_at(file, "data", 4, 0) == 4);
    CHECK_INT(os_socket_send(ends[0], "hello", 5, file, 100), 0);
    CHECK_INT(os_socket_receive(ends[1], got, 5, &passed, 100), 0);
    CHECK_STR(got, "hello");
    REQUIRE(passed >= 0 && passed != file);
    CHECK_INT(os_read_at(passed, text, 4, 0), 4);
    CHECK_STR(text, "data");
    close(passed);
    CHECK_INT(os_socket_send(ends[1], "x", 1, -1, 100), 0);
    CHECK_INT(os_socket_receive(ends[0], got, 1, &passed, 100), 0);
    CHECK_INT(passed, -1);
    /* A file that nobody asked for does not stay open. */
    int next = dup(file);
    close(next);
    CHECK_INT(os_socket_send(ends[0], "y", 1, file, 100), 0);
    CHECK_INT(os_socket_receive(ends[1], got, 1, NULL, 100), 0);
    int after = dup(file);
    CHECK_INT(after, next);
    close(after);
    close(file);
    close(ends[0]);
    close(ends[1]);
}

static void silence_and_a_closed_end_are_told_apart(void)
{
    int ends[2];
    char got[2];
    static char many[1 << 23];
    REQUIRE(!os_socket_pair(ends));
    CHECK(!os_socket_is_closed(ends[0]));
    errno = 0;
    CHECK_INT(os_socket_receive(ends[0], got, 1, NULL, 10), -1);
    CHECK_INT(errno, ETIMEDOUT);
    CHECK_INT(os_socket_send(ends[0], many, sizeof(many), -1, 10), -1);
    CHECK_INT(errno, ETIMEDOUT);
    close(ends[0]);
    REQUIRE(!os_socket_pair(ends));
    close(ends[1]);
    CHECK(os_socket_is_closed(ends[0]));
    CHECK_INT(os_socket_receive(ends[0], got, 1, NULL, 10), -1);
    CHECK_INT(errno, ECONNRESET);
    CHECK_INT(os_socket_send(ends[0], "x", 1, -1, 10), -1);
    CHECK_INT(errno, EPIPE);
    close(ends[0]);
}

static void a_system_call_may_fail(void)
{
    int ends[2];
    fault_arm(1, EMFILE);
    CHECK_INT(os_socket_pair(ends), -1);
    CHECK_INT(errno, EMFILE);
    CHECK(fault_disarm());
}

int main(void)
{
    RUN(bytes_and_a_file_arrive);
    RUN(silence_and_a_closed_end_are_told_apart);
    RUN(a_system_call_may_fail);
    return check_done();
}
