/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/dl.h"

#include "check.h"

/* Found through LD_LIBRARY_PATH: the fake of tests/gpu. */
static const char *const names[] = { "libnosuch-cairn.so.7", "libhiprtc.so.7", NULL };

struct rtc {
    const char *(*error)(int);
    void (*none)(void);
};

static void the_first_that_is_there_is_opened(void)
{
    void *library = NULL;
    char path[512] = "";
    struct cairn_error err = { 0 };
    REQUIRE(!dl_open(names, NULL, &library, path, sizeof(path), &err));
    CHECK(library);
    CHECK_HAS(path, "/libhiprtc.so.7");
}

static void folders_are_tried_too(void)
{
    static const char *const only[] = { "libnosuch-cairn.so", NULL };
    const char *const folders[] = { "/nonexistent", NULL };
    void *library = NULL;
    char path[512] = "";
    struct cairn_error err = { 0 };
    CHECK_INT(dl_open(only, folders, &library, path, sizeof(path), &err), -1);
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK_HAS(err.msg, "libnosuch-cairn.so was not found");
    CHECK(!library);
}

static void functions_are_resolved_and_missing_ones_named(void)
{
    void *library;
    char path[512];
    struct cairn_error err = { 0 };
    struct rtc rtc = { 0 };
    REQUIRE(!dl_open(names, NULL, &library, path, sizeof(path), &err));
    struct dl_symbol symbols[] = {
        { "hiprtcGetErrorString", offsetof(struct rtc, error), false },
        { "hiprtcNoSuch", offsetof(struct rtc, none), true },
    };
    REQUIRE(!dl_resolve(library, path, symbols, 2, &rtc, &err));
    REQUIRE(rtc.error);
    CHECK_STR(rtc.error(0), "HIPRTC_SUCCESS");
    CHECK(!rtc.none);
    symbols[1].optional = false;
    CHECK_INT(dl_resolve(library, path, symbols, 2, &rtc, &err), -1);
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK_HAS(err.msg, "hiprtcNoSuch");
}

int main(void)
{
    RUN(the_first_that_is_there_is_opened);
    RUN(folders_are_tried_too);
    RUN(functions_are_resolved_and_missing_ones_named);
    return check_done();
}
