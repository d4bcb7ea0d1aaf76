/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as known-good.json: no crash, and no variable that a shell would not take for one or that finds code. */
#include "run/known_good.h"

#include "base/str.h"
#include "fuzz.h"
#include <fcntl.h>
#include <sys/stat.h>
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
        snprintf(path, sizeof(path), "%s/known-good.json", folder);
        atexit(clean_up);
    }
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
}

static void check(const char *name)
{
    FUZZ_REQUIRE(str_is_variable(name, strlen(name)));
    FUZZ_REQUIRE(strcmp(name, "PATH") != 0 && strcmp(name, "LD_PRELOAD") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct known_good_key any = { 0 };
    struct known_good *found;
    put(data, size);
    size_t n = known_good_list(folder, &any, &a, &found);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < found[i].n_set; k++) {
            check(found[i].set[k].name);
            FUZZ_REQUIRE(!str_starts(found[i].set[k].name, "LD_") && !strchr(found[i].set[k].value, '\n'));
        }
        for (size_t k = 0; k < found[i].n_unset; k++)
            check(found[i].unset[k]);
        FUZZ_REQUIRE(known_good_text(&found[i], &a));
    }
    return 0;
}
