/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a library, a bundle, a code object, an archive: no crash, no endless work, and a list that is
 * handed out holds only names of targets. */
#include "host/codeobj.h"

#include "fuzz.h"
#include "chip/gfxname.h"
#include <sys/mman.h>
#include <unistd.h>

static void check_names(const struct targets *t)
{
    for (size_t i = 0; i < t->n; i++)
        FUZZ_REQUIRE(gfxname_span(t->name[i], strlen(t->name[i])) == strlen(t->name[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct codeobj c;
    struct targets t;
    if (!codeobj_read(fd, "fuzz", &a, &c, &err))
        check_names(&c.targets);
    else
        FUZZ_REQUIRE(err.code == CAIRN_EFORMAT && err.msg[0]);
    if (!codeobj_arch_list(fd, "fuzz", &a, &t, &err))
        check_names(&t);
    return 0;
}
