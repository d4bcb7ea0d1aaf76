/* SPDX-License-Identifier: Apache-2.0
 * Any text as a shell script that may start a Python.  No crash, an end within bounds, and an answer with a reason. */
#include "host/command.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/nowhere", NULL };
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    CLEANUP(root_close) struct root live = { .fd = -1 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct command_python out;
    const char *const argv[] = { "/bin/sh", "-c", text, "sh", "train", "x.yaml", NULL };
    FUZZ_REQUIRE(!root_open(&live, NULL, &err));
    command_python(&live, &a, argv, env, "/nowhere", &out);
    FUZZ_REQUIRE(out.how && (out.exe != NULL) == (out.sure != COMMAND_UNKNOWN));
    FUZZ_REQUIRE(!out.exe || *out.exe == '/');
    return 0;
}
