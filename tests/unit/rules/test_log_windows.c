/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_windows.h"

#include "base/cleanup.h"
#include "check.h"

static void codes_that_end_programs(void)
{
    CHECK(log_windows_status(3221225477) && log_windows_status(0xC0000409) && log_windows_status(0xC0000135));
    CHECK(!log_windows_status(139) && !log_windows_status(-1) && !log_windows_status(3221225472));
}

static bool has_status(const char *s)
{
    for (size_t at = 0; s[at]; at++)
        if (log_windows_has_status(s, strlen(s), at))
            return true;
    return false;
}

static void codes_in_every_spelling(void)
{
    CHECK(has_status("exit code -1073741819 (0xC0000005)") && has_status("code 0xc0000374"));
    CHECK(has_status("returned -1073740791") && has_status("exited with 3221225781"));
    CHECK(!has_status("address 0xc0000005f0") && !has_status("0xC0000005C") &&
          !has_status("allocated 3221225472"));
    CHECK(!has_status("x0xC0000005") && !has_status("0xC00") && !has_status("-1073741") &&
          !has_status("0x") && !has_status("-"));
}

static bool has_path(const char *s)
{
    for (size_t at = 0; s[at]; at++)
        if (s[at] == ':' && s[at + 1] == '\\' && log_windows_has_path(s, strlen(s), at))
            return true;
    return false;
}

static void paths_with_a_drive(void)
{
    CHECK(has_path("  File \"C:\\Users\\me\\train.py\", line 3") &&
          has_path("PS D:\\toolkit> python run.py") && has_path("G:\\AI>set X=1"));
    CHECK(!has_path("print(\"E:\\n\")") && !has_path("loc:\\x\\y") && !has_path("C:\\") &&
          !has_path(":\\a\\b"));
}

int main(void)
{
    RUN(codes_that_end_programs);
    RUN(codes_in_every_spelling);
    RUN(paths_with_a_drive);
    return check_done();
}
