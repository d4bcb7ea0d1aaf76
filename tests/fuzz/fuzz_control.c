/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as control.json: no crash, an order has a number and is given once, and another can be written over it. */
#include "record/control.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include <fcntl.h>
#include <unistd.h>

static char folder[] = "/tmp/cairn-fuzz-XXXXXX", path[sizeof(folder) + 32];

static void clean_up(void)
{
    unlink(path);
    rmdir(folder);
}

static void put(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        FUZZ_REQUIRE(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/" CONTROL_FILE, folder);
        atexit(clean_up);
    }
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct control c;
    struct control_order order = { 0 }, next = { 0 }, save = { .save = true };
    put(data, size);
    control_init(&c, folder, 0, &a);
    int r = control_look(&c, &order, &err);
    FUZZ_REQUIRE(r == 1 ? order.seq > 0 && c.obeyed == order.seq : r == -1 && err.msg[0] && !c.obeyed);
    FUZZ_REQUIRE(!control_look(&c, &next, &err));
    FUZZ_REQUIRE(control_text(&order, 7, &a)[0]);
    if (control_write(folder, &save, NULL, &err)) {
        FUZZ_REQUIRE(order.seq == INT64_MAX);
        return 0;
    }
    FUZZ_REQUIRE(control_look(&c, &next, &err) == 1 && next.seq > order.seq && next.save);
    FUZZ_REQUIRE(next.sample == order.sample && next.stop == order.stop);
    return 0;
}
