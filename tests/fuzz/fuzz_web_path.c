/* SPDX-License-Identifier: Apache-2.0
 * Any text as a path below a folder, and as the name of one: what is accepted has no part that leads up or hides. */
#include "web/folder.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    const char *why = NULL;
    if (folder_name_is_valid(text))
        FUZZ_REQUIRE(folder_path_is_valid(text, &why) && !strchr(text, '/'));
    if (!folder_path_is_valid(text, &why)) {
        FUZZ_REQUIRE(why);
        return 0;
    }
    FUZZ_REQUIRE(*text && *text != '/' && *text != '.' && strlen(text) <= FOLDER_PATH_BYTES &&
                 str_is_utf8(text));
    FUZZ_REQUIRE(!strstr(text, "//") && !strstr(text, "/.") && !str_ends(text, "/"));
    for (const char *part = text; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        FUZZ_REQUIRE(strcspn(part, "/") <= FOLDER_NAME_BYTES);
    return 0;
}
