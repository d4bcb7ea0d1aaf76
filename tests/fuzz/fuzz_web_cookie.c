/* SPDX-License-Identifier: Apache-2.0
 * Any text as a Cookie header, and as Host and Origin: a value lies in the header behind its whole name; a host that
 * is ours is one of a few. */
#include "web/cookie.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"
#include "web/guard.h"
#include <strings.h>

static void check_cookie(const char *text)
{
    static const char name[] = "cairn_22476";
    size_t n = 0;
    const char *value = cookie_find(text, name, &n);
    if (!value)
        return;
    const char *start = value - sizeof(name);
    FUZZ_REQUIRE(start >= text && value + n <= text + strlen(text));
    FUZZ_REQUIRE(!memcmp(start, name, sizeof(name) - 1) && value[-1] == '=' && !memchr(value, ';', n));
    for (start--; start >= text && (*start == ' ' || *start == '\t'); start--)
        ;
    FUZZ_REQUIRE(start < text || *start == ';');
}

static void check_host(const char *text)
{
    static const struct guard guard = { .port = 22476 };
    static const char port[] = ":22476";
    size_t n = strlen(text), name = n - (sizeof(port) - 1);
    if (!guard_host_is_ours(&guard, text)) {
        FUZZ_REQUIRE(!guard_origin_is_ours(&guard, "http://localhost:22476", text));
        return;
    }
    FUZZ_REQUIRE(n >= sizeof(port) && !strcmp(text + name, port));
    FUZZ_REQUIRE((name == 9 && !strncasecmp(text, "localhost", 9)) ||
                 (name == 9 && !strncmp(text, "127.0.0.1", 9)) || (name == 5 && !strncmp(text, "[::1]", 5)) ||
                 (name > 10 && !strncasecmp(text + name - 10, ".localhost", 10)));
    FUZZ_REQUIRE(!text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:[]")]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    check_cookie(text);
    check_host(text);
    guard_type_is_allowed(text);
    return 0;
}
